"""One request to an object store as the proxy saw it, and the rules that make some of them fail.

Values only: ``proxy`` makes them, ``measure`` and the tests read them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Operation(StrEnum):
    """What a request does to the store, which its method alone does not tell."""

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
    method: str
    path: str
    query: str
    status: int | None = None
    """What the client was told; nothing when the connection broke first."""
    fault: Fault | None = None
    conditional: bool = False
    """Carried ``If-None-Match`` or ``If-Match``."""
    range: str | None = None
    start_s: float
    end_s: float = 0.0
    bytes_sent: int = 0
    """Body bytes, client to server."""
    bytes_received: int = 0
    """Body bytes, server to client."""


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
