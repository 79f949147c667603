"""How many rows to read at once, so that images in memory stay within a few megabytes.

Rows of one type may be twenty bytes or twenty megabytes. The first piece is small; what it weighed
says how large the next one may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

PIECE_BYTES = 8 << 20
ROWS_MAX = 65_536
ROWS_FIRST = 512
BLOBS_FIRST = 16
"""The first piece of rows with blobs, which may be large."""
GROWTH_MAX = 8


class Pace:
    """Slices of ``total`` rows; tell it what each one weighed."""

    def __init__(self, total: int, *, blobs: bool = False, rows_max: int = ROWS_MAX) -> None:
        self._total = total
        self._rows = min(BLOBS_FIRST if blobs else ROWS_FIRST, rows_max)
        self._rows_max = rows_max
        self._taken = 0

    def __iter__(self) -> Iterator[slice]:
        start = 0
        while start < self._total:
            end = min(start + self._rows, self._total)
            self._taken = end - start
            yield slice(start, end)
            start = end

    def weighed(self, nbytes: int) -> None:
        """The piece just taken was this large in memory."""
        fitting = PIECE_BYTES * self._taken // max(nbytes, 1)
        self._rows = max(1, min(fitting, self._taken * GROWTH_MAX, self._rows_max))


# -- parallel --------------------------------------------------------------------------------------
# Two reads at once: the sides of a difference do not wait for each other.


First = TypeVar("First")
Second = TypeVar("Second")


def both(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Both results; the first is made in another thread meanwhile."""
    with ThreadPoolExecutor(1, thread_name_prefix="omnigraph-branch") as pool:
        ahead = pool.submit(first)
        later = second()
        return ahead.result(), later
