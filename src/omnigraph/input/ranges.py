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
from typing import BinaryIO, Protocol, cast

from omnigraph.input.jsonl_blocks import BLOCK_BYTES, LINE_BYTES_MAX, cut_blocks
from omnigraph.input.streams import SourceReader
from omnigraph.input.units import Compression, InputUnit
from omnigraph.input.unpack import unpacked_stream
from omnigraph.storage.inputs import InputFile, InputReader

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
    done: int = 0
    """How many bytes of the file were read for it and all before it."""


def text_blocks(unit: InputUnit, reader: SourceReader, borders: Borders) -> Iterator[Block]:
    """The records of a unit of text. Raises ``UnreadableInput``."""
    planned = unit.planned
    if not planned.in_order and isinstance(reader, InputReader):
        read_at, file = reader.read_at, planned.file
        if isinstance(file, InputFile) and file.bucket is not None:
            read_at = ahead(read_at)
        yield from record_blocks(
            read_at, start=unit.start, stop=unit.stop, size=file.size, borders=borders
        )
        return
    at = 0
    for text in _whole_records(_text(reader, planned.compression), borders):
        yield Block(text=text, start=at, stop=at + len(text), done=reader.done)
        at += len(text)


def _text(reader: SourceReader, compression: Compression | None) -> BinaryIO:
    stream = reader.stream() if compression is None else unpacked_stream(reader, compression)
    return cast(BinaryIO, stream)


def _whole_records(stream: BinaryIO, borders: Borders) -> Iterator[bytes]:
    """Blocks of lines, put together again where a record goes on in the next one."""
    pending = b""
    for text in cut_blocks(stream):
        pending += text
        cut = borders.last(pending) + 1
        if len(pending) - cut > LINE_BYTES_MAX:
            cut = len(pending)
        if cut:
            yield pending[:cut]
            pending = pending[cut:]
    if pending:
        yield pending


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


def ahead(read_at: ReadAt) -> ReadAt:
    """The same bytes in few requests: on a bucket each request is a journey."""
    window, content = 0, b""

    def read(offset: int, size: int) -> bytes:
        nonlocal window, content
        at = offset - window
        if at < 0 or at >= len(content):
            window, at = offset, 0
            content = read_at(offset, max(size, RANGE_BYTES + _BEYOND_BYTES))
        return content[at : at + size]

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
        yield Block(text=whole, start=stop - len(text), stop=stop, done=stop)
