"""What an operation costs at the object store: requests, bytes, and serial hops.

Reads the proxy's log; ``proxy`` does the counting. A budget test asserts on ``Measured`` and gives
``io.log()`` as the message, so that a failure shows which request is new.

Must not: guess. Serial hops are not derived from overlapping times in the log but measured: an
operation that waits for the store N times in a row becomes N milliseconds slower with each
millisecond of injected latency.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from urllib.parse import unquote

from omnigraph.clock import Clock, SystemClock
from omnigraph.testing.http1 import Operation, Request
from omnigraph.testing.proxy import CountingProxy

# Names that differ in every run: ULIDs, hex strings, UUIDs, Lance's bit-and-hex file names.
_NOISE = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4,}){2,}|[0-7][0-9A-HJKMNP-TV-Z]{25}|\d{15,}")
_KEPT = 6


class Measured:
    """The requests that arrived during the block. Complete when the block has ended."""

    def __init__(self) -> None:
        self.requests: tuple[Request, ...] = ()
        self.wall_s = 0.0
        """How long the block ran; waiting for the proxy to be idle is not part of it."""

    def count(self, *operations: Operation | str) -> int:
        """How many requests of these operations; of all, when none is named."""
        return sum(1 for r in self.requests if not operations or r.operation in operations)

    @property
    def bytes_sent(self) -> int:
        """Body bytes from us to the store."""
        return sum(r.bytes_sent for r in self.requests)

    @property
    def bytes_received(self) -> int:
        """Body bytes from the store to us."""
        return sum(r.bytes_received for r in self.requests)

    def log(self) -> str:
        """The requests as a table: when each started and ended, in ms from the first."""
        if not self.requests:
            return "no requests"
        first_s = self.requests[0].start_s
        summary = " ".join(
            f"{operation} {n}" for operation in Operation if (n := self.count(operation))
        )
        lines = [
            f"{len(self.requests)} requests ({summary}), "
            f"{self.bytes_sent} bytes sent, {self.bytes_received} received, {self.wall_s:.3f} s"
        ]
        lines += [_line(request, first_s) for request in self.requests]
        return "\n".join(lines)


@contextmanager
def measure(
    proxy: CountingProxy, *, until: Callable[[tuple[Request, ...]], bool] | None = None
) -> Generator[Measured, None, None]:
    """Measure the block. Its end waits until the proxy is idle: settle work counts as well.

    ``until`` is for work that starts its requests only after the block: it gets the finished
    requests of this measurement and says whether all of them are there.
    """
    io = Measured()
    mark = proxy.sequence

    def ours(requests: tuple[Request, ...]) -> tuple[Request, ...]:
        return tuple(r for r in requests if r.sequence > mark)

    start_s = time.monotonic()
    try:
        yield io
    finally:
        io.wall_s = time.monotonic() - start_s
        proxy.wait_idle(until=None if until is None else lambda seen: until(ours(seen)))
        io.requests = ours(proxy.requests)


def serial_hops(
    proxy: CountingProxy,
    operation: Callable[[], object],
    *,
    latencies_s: Sequence[float] = (0.02, 0.1),
    repeat: int = 4,
    after: Callable[[], object] | None = None,
    clock: Clock | None = None,
) -> float:
    """How often ``operation`` waits for the store in a row: the slope of its time over the latency.

    The latencies take turns, so that an operation that grows slower with every call (a longer
    history) does not look like more hops; the median per latency drops the cold first call.
    ``after`` is done after each call and not timed: what an answered operation still has to do.
    """
    clock = clock or SystemClock()
    before_s = proxy.latency_s
    walls_s: dict[float, list[float]] = {latency_s: [] for latency_s in latencies_s}
    try:
        for _ in range(repeat):
            for latency_s, walls in walls_s.items():
                # What the last call left running must not compete with this one.
                proxy.wait_idle()
                proxy.latency_s = latency_s
                start_s = clock.monotonic_s()
                operation()
                walls.append(clock.monotonic_s() - start_s)
                if after is not None:
                    after()
    finally:
        proxy.latency_s = before_s
    proxy.wait_idle()
    medians_s = [statistics.median(walls) for walls in walls_s.values()]
    return statistics.linear_regression(list(walls_s), medians_s).slope


def shorten(path: str) -> str:
    """A path with its random names cut to their first characters."""
    return _NOISE.sub(lambda match: match.group()[:_KEPT] + "…", unquote(path))


def _line(request: Request, first_s: float) -> str:
    start_ms = (request.start_s - first_s) * 1000
    end_ms = max(request.end_s - first_s, request.start_s - first_s) * 1000
    notes = [
        "conditional" if request.conditional else "",
        request.range or "",
        f"↑{request.bytes_sent}" if request.bytes_sent else "",
        f"↓{request.bytes_received}" if request.bytes_received else "",
        f"fault={request.fault}" if request.fault else "",
    ]
    target = shorten(request.path) + (f"?{shorten(request.query)}" if request.query else "")
    status = str(request.status or "---")
    return " ".join(
        [
            f"{start_ms:8.1f} {end_ms:8.1f} {request.operation:<6} {status}",
            target,
            *(note for note in notes if note),
        ]
    )
