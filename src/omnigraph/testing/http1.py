"""Just enough HTTP/1.1 to relay messages: heads, and how long a body is.

Used by the proxy only. Must not: interpret or re-write a head. A head travels as the bytes it came
as, because the S3 signature covers the headers and the server checks it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

HEAD_BYTES_MAX = 1 << 18
_CHUNK_BYTES = 1 << 18


class ProtocolError(Exception):
    """The other side does not speak HTTP/1.1 as we know it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpHead:
    """The first line and the headers of a request or a response."""

    raw: bytes
    start: tuple[str, str, str]
    """Method, target, version of a request; version, status, reason of a response."""
    headers: dict[str, str]
    """Names in lower case. A repeated header keeps its last value: no header we look at repeats."""

    @property
    def chunked(self) -> bool:
        """The body comes in chunks of announced size."""
        return "chunked" in self.headers.get("transfer-encoding", "").lower()

    @property
    def length(self) -> int | None:
        """The announced size of the body, if there is one."""
        text = self.headers.get("content-length")
        return None if text is None else int(text)

    @property
    def closes(self) -> bool:
        """The sender closes the connection after this message."""
        return self.headers.get("connection", "").lower() == "close" or "HTTP/1.0" in self.start


async def read_head(reader: asyncio.StreamReader) -> HttpHead | None:
    """The next head, or nothing when the connection ended where a message ends."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ProtocolError("connection ended within a head") from error
        return None
    lines = raw.decode("latin-1").split("\r\n")
    start = lines[0].split(" ", 2)
    if len(start) == 2:
        start.append("")
    if len(start) != 3:
        raise ProtocolError(f"bad first line {lines[0]!r}")
    headers: dict[str, str] = {}
    for line in lines[1:-2]:
        name, _, text = line.partition(":")
        headers[name.strip().lower()] = text.strip()
    return HttpHead(raw=raw, start=(start[0], start[1], start[2]), headers=headers)


async def read_body(
    reader: asyncio.StreamReader, head: HttpHead, *, until_end: bool
) -> AsyncIterator[tuple[bytes, int]]:
    """The body in pieces: the bytes to pass on, and how many of them are payload.

    ``until_end`` says what no length means: for a response, that the body ends with the connection;
    for a request, that there is none.
    """
    if head.chunked:
        async for piece in _read_chunks(reader):
            yield piece
    elif head.length is not None:
        async for piece in _read_exactly(reader, head.length):
            yield piece
    elif until_end:
        while piece := await reader.read(_CHUNK_BYTES):
            yield piece, len(piece)


async def _read_exactly(
    reader: asyncio.StreamReader, count: int
) -> AsyncIterator[tuple[bytes, int]]:
    while count:
        piece = await reader.read(min(count, _CHUNK_BYTES))
        if not piece:
            raise ProtocolError("connection ended within a body")
        count -= len(piece)
        yield piece, len(piece)


async def _read_chunks(reader: asyncio.StreamReader) -> AsyncIterator[tuple[bytes, int]]:
    while True:
        line = await reader.readuntil(b"\r\n")
        yield line, 0
        size = int(line.split(b";")[0], 16)
        if size == 0:
            break
        async for piece in _read_exactly(reader, size):
            yield piece
        yield await reader.readexactly(2), 0
    # Trailers, then the empty line that ends the body.
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        yield line, 0
    yield b"\r\n", 0


# -- requests --------------------------------------------------------------------------------------
# One request to an object store as the proxy saw it, and the rules that make some of them fail.
#
# Values only: ``proxy`` makes them, ``measure`` and the tests read them.


class Operation(StrEnum):
    """What a request does to the store, which its method alone does not show."""

    GET = "GET"
    PUT = "PUT"
    COPY = "COPY"
    LIST = "LIST"
    HEAD = "HEAD"
    DELETE = "DELETE"
    POST = "POST"
    OTHER = "OTHER"


class Fault(StrEnum):
    """How a request is made to fail."""

    STATUS = "status"
    """The proxy answers with an error status; the server never sees the request."""
    DROP_BEFORE = "drop_before"
    """The connection breaks before the request reached the server."""
    DROP_AFTER = "drop_after"
    """The server did it, and the connection breaks before its answer: a lost acknowledgement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, complete. Times are those of ``time.monotonic``."""

    sequence: int
    """1, 2, 3 … in the order of arrival, over the life of the proxy."""
    operation: Operation
    path: str
    query: str
    status: int | None = None
    """What the client got; nothing when the connection broke first."""
    fault: Fault | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    start_s: float
    end_s: float = 0.0
    bytes_sent: int = 0
    """Body bytes, client to server."""
    bytes_received: int = 0
    """Body bytes, server to client."""

    @property
    def conditional(self) -> bool:
        """Whether it carried ``If-None-Match`` or ``If-Match``."""
        return "if-none-match" in self.headers or "if-match" in self.headers

    @property
    def range(self) -> str | None:
        """The bytes that were asked for, if not all."""
        return self.headers.get("range")

    @property
    def signer(self) -> str | None:
        """The id of the key in its AWS signature."""
        _, found, rest = self.headers.get("authorization", "").partition("Credential=")
        return rest.partition("/")[0] if found else None


@dataclass(slots=True, kw_only=True)
class FaultRule:
    """Which requests fail, and how; ``fired`` counts those that did."""

    fault: Fault
    matches: Callable[[Request], bool]
    status: int
    skip: int
    times: int | None
    seen: int = 0
    fired: int = 0

    def takes(self, request: Request) -> bool:
        """Count a request; true when it has to fail."""
        if not self.matches(request):
            return False
        self.seen += 1
        due = self.seen > self.skip and (self.times is None or self.fired < self.times)
        self.fired += due
        return due


def classify(method: str, path: str, query: str, headers: Mapping[str, str]) -> Operation:
    """The operation of a path-style S3 request (``/bucket/key``)."""
    if method == "PUT" and "x-amz-copy-source" in headers:
        return Operation.COPY
    if method == "GET" and ("list-type=" in query or "/" not in path.strip("/")):
        return Operation.LIST
    try:
        return Operation(method)
    except ValueError:
        return Operation.OTHER
