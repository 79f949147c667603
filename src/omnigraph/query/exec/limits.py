"""What one query may use: time, and memory for the rows it makes.

Rows are counted before they are made: an expansion knows its size from degrees, a product from its
factors. So a runaway query stops with an error that says where, and not with a dead process.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

from omnigraph.clock import Clock
from omnigraph.errors import LimitError, UsageError
from omnigraph.query.topology.array_files import ArrayFiles
from omnigraph.query.topology.saved import TopologyFiles

MEMORY_DEFAULT = 4 << 30
MEMORY_VARIABLE = "OMNIGRAPH_QUERY_MEMORY"
TIMEOUT_VARIABLE = "OMNIGRAPH_QUERY_TIMEOUT"
CACHE_DEFAULT = 1 << 30
CACHE_VARIABLE = "OMNIGRAPH_CACHE_BYTES"
DISK_DEFAULT = 16 << 30
DISK_VARIABLE = "OMNIGRAPH_DISK_CACHE_BYTES"
FOLDER_VARIABLE = "OMNIGRAPH_CACHE_DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one query."""

    timeout_s: float | None = None
    memory_bytes: int = MEMORY_DEFAULT

    @staticmethod
    def of(timeout_s: float | None, memory_bytes: int | None) -> Limits:
        """What was asked for, else the environment's, else the defaults."""
        if timeout_s is None:
            timeout_s = _from_environment(TIMEOUT_VARIABLE, None)
        if memory_bytes is None:
            memory_bytes = whole_from_environment(MEMORY_VARIABLE, MEMORY_DEFAULT)
        if timeout_s is not None and (not _is_number(timeout_s) or not timeout_s > 0):
            shown = timeout_s if _is_number(timeout_s) else repr(timeout_s)
            raise UsageError(f"the timeout is {shown} s", hint="give a number above 0")
        if not _is_number(memory_bytes):
            raise UsageError(f"the memory limit is {memory_bytes!r}", hint="give a number of bytes")
        if memory_bytes <= 0:
            raise UsageError(
                f"the memory limit is {memory_bytes} bytes", hint="give a number above 0"
            )
        return Limits(timeout_s=timeout_s, memory_bytes=memory_bytes)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _from_environment(name: str, default: float | None) -> float | None:
    text = os.environ.get(name)
    if not text:
        return default
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{name} is {text!r}", hint="it has to be a number") from None


def cache_bytes() -> int:
    """How much derived state an open graph may keep for its queries."""
    return whole_from_environment(CACHE_VARIABLE, CACHE_DEFAULT)


def topology_files(graph: str) -> TopologyFiles | None:
    """Where derived state of a graph is kept on disk; None if that is not wanted."""
    said = os.environ.get(FOLDER_VARIABLE)
    bytes_max = whole_from_environment(DISK_VARIABLE, DISK_DEFAULT)
    if said in ("", "off") or bytes_max <= 0:
        return None
    base = said or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(base).expanduser() / ("topology" if said else "omnigraph/topology")
    return TopologyFiles(ArrayFiles(folder, bytes_max), graph)


def whole_from_environment(name: str, default: int) -> int:
    """A whole number such as ``1e9``; the default when nothing is said."""
    value = _from_environment(name, default)
    if value is None or not math.isfinite(value):
        raise UsageError(f"{name} is {value}", hint="it has to be a number of bytes")
    return int(value)


class Guard:
    """Watches over one running query."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._deadline = (
            None if limits.timeout_s is None else clock.monotonic_s() + limits.timeout_s
        )

    @property
    def is_timed(self) -> bool:
        """Whether time can run out."""
        return self._deadline is not None

    def check_time(self, where: str) -> None:
        """Raise if time is up."""
        if self._deadline is not None and self._clock.monotonic_s() > self._deadline:
            raise LimitError(
                f"the query took longer than {self._limits.timeout_s:g} s (in {where})",
                hint="narrow it with a filter or a key, or allow more time",
                details={"limit": "time", "timeout_s": self._limits.timeout_s, "step": where},
            )

    def check_rows(self, rows: int, columns: int, where: str) -> None:
        """Raise if so many rows would not fit; called before they are made."""
        # Eight bytes a value, and as much again for the working arrays that make them.
        self.check_bytes(rows * (columns + 2) * 8 * 2, rows, where)

    def check_bytes(self, needed: int, rows: int, where: str) -> None:
        """Raise if rows that need so much would not fit."""
        if self._deadline is not None:
            self.check_time(where)
        if needed > self._limits.memory_bytes:
            raise LimitError(
                f"{where} would make {rows:,} rows (about {_human(needed)}); "
                f"the limit is {_human(self._limits.memory_bytes)}",
                hint="narrow the query with a filter or a key, or allow more memory",
                details={
                    "limit": "memory",
                    "memory_bytes": self._limits.memory_bytes,
                    "rows": rows,
                    "step": where,
                },
            )


def _human(size: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size = size // 1024 if unit == "B" else size / 1024  # type: ignore[assignment]
    return f"{size:,.0f} TiB"
