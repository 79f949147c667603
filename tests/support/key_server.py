"""A server that gives keys for S3, as containers, web identities and SSO are given them.

What it gives are keys that the S3 server of the tests knows; when they are said to end is up to the
test, so that nothing has to be waited for.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from omnigraph.clock import SystemClock
from omnigraph.testing.s3 import TemporaryKeys


class KeyServer:
    """``with KeyServer(keys) as server:``; ``server.keys`` may be replaced at any time."""

    def __init__(self, keys: TemporaryKeys, *, lasting_s: int = 3600) -> None:
        self.keys = keys
        self.lasting_s = lasting_s
        self.asked: list[str] = []
        """How each request began."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                sso = self.path.startswith("/federation/")
                self._answer("application/json", outer._as_sso() if sso else outer._as_container())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self._answer("text/xml", outer._as_web_identity())

            def _answer(self, kind: str, body: str) -> None:
                outer.asked.append(f"{self.command} {self.path}")
                content = body.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def as_process(self) -> str:
        """What a ``credential_process`` writes."""
        return json.dumps(
            {
                "Version": 1,
                "AccessKeyId": self.keys.access_key,
                "SecretAccessKey": self.keys.secret_key,
                "SessionToken": self.keys.token,
                "Expiration": self._end(),
            }
        )

    def _end(self) -> str:
        moment = datetime.fromtimestamp(self._end_s(), UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def _end_s(self) -> int:
        return SystemClock().now_us() // 1_000_000 + self.lasting_s

    def _as_container(self) -> str:
        return json.dumps(
            {
                "AccessKeyId": self.keys.access_key,
                "SecretAccessKey": self.keys.secret_key,
                "Token": self.keys.token,
                "Expiration": self._end(),
            }
        )

    def _as_sso(self) -> str:
        return json.dumps(
            {
                "roleCredentials": {
                    "accessKeyId": self.keys.access_key,
                    "secretAccessKey": self.keys.secret_key,
                    "sessionToken": self.keys.token,
                    "expiration": self._end_s() * 1000,
                }
            }
        )

    def _as_web_identity(self) -> str:
        return (
            '<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
            "<AssumeRoleWithWebIdentityResult><Credentials>"
            f"<AccessKeyId>{self.keys.access_key}</AccessKeyId>"
            f"<SecretAccessKey>{self.keys.secret_key}</SecretAccessKey>"
            f"<SessionToken>{self.keys.token}</SessionToken>"
            f"<Expiration>{self._end()}</Expiration>"
            "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )
