"""Byte ranges of a text on the borders of its records.

    file, [start, stop) -> [ranges] -> blocks of whole records -> a reader of that format

A range owns the records that *begin* in it, so ranges that tile a file own every record once and
need to know nothing about each other: one looks back a single byte to see whether a record begins
at its start, and reads past its end until its last record does. A record longer than a range leaves
some ranges with nothing. Memory is bounded by the block size and the longest record allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from omnigraph.load.blocks import BLOCK_BYTES, LINE_BYTES_MAX

RANGE_BYTES = 16 << 20
RANGE_BYTES_MAX = LINE_BYTES_MAX
"""A range is not read on after a record beyond the limit, so that must be its last one."""
BOM = b"\xef\xbb\xbf"
_BEYOND_BYTES = 64 << 10
"""The first step past the end of a range; the last record rarely is longer."""

ReadAt = Callable[[int, int], bytes]


class Borders(Protocol):
    """Where records end, in a text that begins with a record. Places are those of the newline."""

    def last(self, text: bytes) -> int:
        """The last end, -1 when there is none."""
        ...

    def first(self, text: bytes, at: int) -> int:
        """The first end at this place or after it, -1 when there is none."""
        ...


class Lines:
    """Every newline ends a record."""

    def last(self, text: bytes) -> int:
        """The last newline."""
        return text.rfind(b"\n")

    def first(self, text: bytes, at: int) -> int:
        """The first newline from here."""
        return text.find(b"\n", max(at, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Whole records, the last one with a newline."""

    text: bytes
    start: int
    """Where the text begins in the file, behind a byte order mark."""
    stop: int


def record_blocks(
    read_at: ReadAt,
    *,
    start: int,
    stop: int,
    size: int,
    borders: Borders,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[Block]:
    """The records that begin in ``[start, stop)`` of a file of ``size`` bytes, in blocks.

    A record beyond the limit comes without its end, as the last block, for the reader of that block
    to refuse. A byte order mark at the start of the file is dropped.
    """
    offset = _first_record(read_at, start, stop)
    if offset is None:
        return
    text = b""
    read_to, step = offset, block_bytes
    while True:
        limit = stop if read_to < stop else size
        chunk = read_at(read_to, min(step, limit - read_to))
        text += chunk
        read_to += len(chunk)
        done = read_to >= size
        if read_to < stop:
            cut = borders.last(text) + 1
        else:
            step = min(2 * step, block_bytes) if limit == size else _BEYOND_BYTES
            owned = borders.first(text, stop - 1 - offset)
            done = done or owned >= 0
            cut = owned + 1 if owned >= 0 else len(text) if done else borders.last(text) + 1
        if not done and len(text) - cut > LINE_BYTES_MAX:
            cut, done = len(text), True
        if cut:
            yield from _block(text[:cut], offset)
        if done:
            return
        text, offset = text[cut:], offset + cut


def prefetched(read_at: ReadAt, *, start: int, stop: int) -> ReadAt:
    """The same bytes, those of a range in one request: on a bucket each request is a journey."""
    first = max(start - 1, 0)
    ahead = read_at(first, stop + _BEYOND_BYTES - first)

    def read(offset: int, size: int) -> bytes:
        at = offset - first
        if at < 0 or at >= len(ahead):
            return read_at(offset, size)
        return ahead[at : at + size]

    return read


def _first_record(read_at: ReadAt, start: int, stop: int) -> int | None:
    """Where the first record of a range begins, None if none does."""
    if start == 0:
        return 0 if stop > 0 else None
    at = start - 1
    while at < stop - 1:
        chunk = read_at(at, min(_BEYOND_BYTES, stop - 1 - at))
        if not chunk:
            return None
        found = chunk.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(chunk)
    return None


def _block(text: bytes, offset: int) -> Iterator[Block]:
    stop = offset + len(text)
    if offset == 0:
        text = text.removeprefix(BOM)
    if text:
        whole = text if text.endswith(b"\n") else text + b"\n"
        yield Block(text=whole, start=stop - len(text), stop=stop)
