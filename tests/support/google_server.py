"""What Google's object store answers to a client of its XML interface, from memory.

There is no emulator of it among packages for Python or Node. This one follows the documented
behaviour that a graph rests on: creation under the condition that there is nothing yet, ranges,
lists, copies. It shows that requests are made as they are meant, not how the real store behaves.
"""

from __future__ import annotations

import json
import threading
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class GoogleServer:
    """``with GoogleServer() as server:``; every bucket exists."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[int, bytes]] = {}
        """Generation and content, by ``bucket/name``."""
        self.requests: list[str] = []
        self._lock = threading.Lock()
        self._generation = 0
        self._parts: dict[str, dict[int, bytes]] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, content = outer._answer(
                    self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body
                )
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "Content-Length" not in headers:
                    self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _serve

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def account(self, file: Path) -> Path:
        """A file of a service account that leads here, and needs no sign-in."""
        names = ("client_email", "private_key", "private_key_id")
        text = {"gcs_base_url": self.address, "disable_oauth": True, **dict.fromkeys(names, "")}
        file.write_text(json.dumps(text))
        return file

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(target)
        name, query = unquote(parts.path).lstrip("/"), parse_qs(parts.query, True)
        with self._lock:
            self.requests.append(f"{method} {name}")
            if "list-type" in query:
                return 200, {}, self._list(name, query)
            if method == "POST" or "uploadId" in query:
                return self._upload(method, name, query, body)
            found = self.objects.get(name)
            match method:
                case "PUT":
                    if headers.get("x-goog-if-generation-match") == "0" and found is not None:
                        return 412, {}, b""
                    if source := headers.get("x-goog-copy-source"):
                        copied = self.objects.get(unquote(source).lstrip("/"))
                        if copied is None:
                            return 404, {}, b""
                        body = copied[1]
                    return 200, self._put(name, body), b""
                case "DELETE":
                    return (204 if self.objects.pop(name, None) else 404), {}, b""
                case _:
                    return self._read(method, found, headers.get("range"))

    def _put(self, name: str, body: bytes) -> dict[str, str]:
        self._generation += 1
        self.objects[name] = (self._generation, body)
        return {"ETag": f'"{self._generation}"', "x-goog-generation": str(self._generation)}

    def _read(
        self, method: str, found: tuple[int, bytes] | None, asked: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        if found is None:
            return 404, {}, b""
        generation, content = found
        headers = {"ETag": f'"{generation}"', "Last-Modified": formatdate(usegmt=True)}
        if method == "HEAD":
            return 200, {**headers, "Content-Length": str(len(content))}, b""
        if asked is None:
            return 200, headers, content
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(len(content) - int(last), 0)
        end = min(int(last) + 1 if first and last else len(content), len(content))
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        return 206, headers, content[start:end]

    def _list(self, bucket: str, query: dict[str, list[str]]) -> bytes:
        prefix = query.get("prefix", [""])[0]
        delimiter = query.get("delimiter", [""])[0]
        moment = "2026-01-01T00:00:00.000Z"
        found: list[str] = []
        folders: set[str] = set()
        for name, (generation, content) in sorted(self.objects.items()):
            key = name.removeprefix(f"{bucket}/")
            if key == name or not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            found.append(
                f"<Contents><Key>{escape(key)}</Key><Size>{len(content)}</Size>"
                f'<LastModified>{moment}</LastModified><ETag>"{generation}"</ETag></Contents>'
            )
        found += [
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
            for folder in sorted(folders)
        ]
        return f"<ListBucketResult>{''.join(found)}</ListBucketResult>".encode()

    def _upload(
        self, method: str, name: str, query: dict[str, list[str]], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        upload = query.get("uploadId", [f"u{len(self._parts)}"])[0]
        parts = self._parts.setdefault(upload, {})
        if "uploads" in query:
            return (
                200,
                {},
                (
                    f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId>"
                    "</InitiateMultipartUploadResult>"
                ).encode(),
            )
        if method == "PUT":
            parts[int(query["partNumber"][0])] = body
            return 200, {"ETag": f'"{upload}-{len(parts)}"'}, b""
        if method == "DELETE":
            del self._parts[upload]
            return 204, {}, b""
        headers = self._put(name, b"".join(parts[number] for number in sorted(parts)))
        return (
            200,
            headers,
            (b"<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"),
        )
