"""Text in blocks of whole lines: cutting a stream, and turning one block into parts.

    stream -> [blocks] -> fast | exact -> parts and problems of this block

Memory stays bounded by the block size: a stream is never held as a whole. A block is independent of
its neighbours (its lines count from 1), so that blocks can be worked on in parallel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.input import jsonl_exact as exact
from omnigraph.input.jsonl_fast import (
    HEADER_BYTES_MAX,
    Header,
    Indices,
    header_of,
    odd_start,
    parse_group,
)
from omnigraph.input.loaded_rows import Part, by_type, in_line_order
from omnigraph.input.problems import PROBLEMS_MAX, Problem
from omnigraph.input.record_shape import RecordShape
from omnigraph.schema.catalog import Catalog

BLOCK_BYTES = 4 << 20
LINE_BYTES_MAX = 32 << 20
_BOM = b"\xef\xbb\xbf"
_NEWLINE, _RETURN, _OPEN, _CLOSE = (ord(c) for c in "\n\r{}")
_ODD_STARTS_MAX = 16
"""A block with more kinds of unusual lines than this is unusual: its rest goes the exact way."""
_PEELS_PER_COPY = 16
_SPLIT_INTO = 8
_SPLIT_ROWS_MIN = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockResult:
    """What one block holds; lines count from the start of the block."""

    parts: list[Part]
    """At most one per type, ordered by first line."""
    problems: list[Problem]
    line_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """A block cut into lines."""

    text: bytes
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    """Exclusive, without the newline."""
    array: pa.LargeBinaryArray
    """The same lines with their newline, for Arrow; shares the text's memory."""

    def numbered(self, indices: Indices) -> Iterator[tuple[int, bytes]]:
        """Lines that are not blank, with their 1-based number."""
        for index in indices.tolist():
            line = self.text[self.starts[index] : self.ends[index]]
            if line.strip(b" \t\r"):
                yield index + 1, line


def cut_blocks(stream: BinaryIO, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    """The stream in pieces of whole lines, each ending with a newline; a first BOM is dropped.

    A line beyond the limit ends the stream: its beginning comes as the last block, for the reader
    of that block to refuse.
    """
    pending: list[bytes] = []
    pending_bytes = 0
    at_start = True
    while True:
        chunk = stream.read(block_bytes)
        pending.append(chunk)
        pending_bytes += len(chunk)
        if chunk and pending_bytes < block_bytes:
            continue  # a pipe gives what it has
        text = b"".join(pending)
        if at_start:
            text = text.removeprefix(_BOM)
            at_start = False
        cut = text.rfind(b"\n") + 1
        if not chunk:
            if text:
                yield text if cut == len(text) else text + b"\n"
            return
        if cut:
            yield text[:cut]
        elif len(text) > LINE_BYTES_MAX:
            yield text + b"\n"
            return
        pending = [text[cut:]]
        pending_bytes = len(pending[0])


def read_block(
    text: bytes, catalog: Catalog, shape: RecordShape, *, problems_max: int = PROBLEMS_MAX
) -> BlockResult:
    """All rows and problems of a block of whole lines; reading ends with ``problems_max``."""
    lines = _cut_lines(text)
    lengths = lines.ends - lines.starts
    too_long = lengths > LINE_BYTES_MAX
    usual = (lengths > 1) & ~too_long & _is_enclosed(lines)
    declined = [np.flatnonzero(~usual & ~too_long)]
    parts: list[Part] = []
    groups, odd = _group(lines, np.flatnonzero(usual), catalog)
    declined += odd
    for header, indices in groups:
        fast_parts, slow = _read_group(lines, header, indices)
        parts += fast_parts
        declined += slow
    exact_parts, problems = exact.read_lines(
        lines.numbered(np.sort(np.concatenate(declined))), shape, problems_max=problems_max
    )
    problems += [
        Problem(line=int(i) + 1, message=f"the line is longer than {LINE_BYTES_MAX >> 20} MiB")
        for i in np.flatnonzero(too_long)
    ]
    return BlockResult(
        parts=_merged(parts + exact_parts),
        problems=sorted(problems, key=lambda p: p.line or 0),
        line_count=len(lines.starts),
    )


def _cut_lines(text: bytes) -> _Lines:
    newlines = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
    offsets = np.zeros(len(newlines) + 1, dtype=np.int64)
    offsets[1:] = newlines + 1
    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(newlines), [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
    return _Lines(text=text, starts=offsets[:-1], ends=offsets[1:] - 1, array=array)


def _is_enclosed(lines: _Lines) -> npt.NDArray[np.bool_]:
    """Whether a line begins with `{` and ends with `}`, as the fast path requires.

    Empty lines read a neighbour's byte here; the caller has excluded them by length.
    """
    raw = np.frombuffer(lines.text, dtype=np.uint8)
    last = raw[lines.ends - 1]
    if (last == _RETURN).any():
        last = np.where(last == _RETURN, raw[lines.ends - 2], last)
    return (raw[lines.starts] == _OPEN) & (last == _CLOSE)


def _group(
    lines: _Lines, remaining: Indices, catalog: Catalog
) -> tuple[list[tuple[Header, Indices]], list[Indices]]:
    """Lines by equal header; the rest are lines whose header is unusual."""
    groups: list[tuple[Header, Indices]] = []
    odd: list[Indices] = []
    view = lines.array if len(remaining) == len(lines.array) else lines.array.take(remaining)
    alive = np.ones(len(remaining), dtype=np.bool_)
    while alive.any():
        first = int(alive.argmax())
        start = lines.starts[remaining[first]]
        line_start = lines.text[start : start + HEADER_BYTES_MAX]
        header = header_of(line_start, catalog)
        prefix = odd_start(line_start) if header is None else header.prefix
        if prefix is None or len(odd) == _ODD_STARTS_MAX:
            odd.append(remaining[alive])
            break
        same = pc.starts_with(view, prefix).to_numpy(zero_copy_only=False) & alive
        if header is None:
            odd.append(remaining[same])
        else:
            groups.append((header, remaining[same]))
        alive &= ~same
        if (len(groups) + len(odd)) % _PEELS_PER_COPY == 0:
            # Copying what is left makes the next comparisons cheaper, but not every time.
            view, remaining = view.filter(pa.array(alive)), remaining[alive]
            alive = np.ones(len(remaining), dtype=np.bool_)
    return groups, odd


def _read_group(
    lines: _Lines, header: Header, indices: Indices
) -> tuple[list[Part], list[Indices]]:
    """The group on the fast path as far as possible, and the lines that it declined.

    One unusual line declines its whole group, so a declined group is tried again in pieces: few
    unusual lines then cost few exact readings. If most pieces are declined too, the whole is.
    """
    rows = _parse_lines(lines, header, indices)
    if rows is not None:
        return [Part(type=header.type, rows=rows, lines=indices + 1)], []
    if len(indices) < _SPLIT_ROWS_MIN:
        return [], [indices]
    pieces = np.array_split(indices, _SPLIT_INTO)
    parts: list[Part] = []
    declined: list[Indices] = []
    for piece in pieces:
        rows = _parse_lines(lines, header, piece)
        if rows is None:
            declined.append(piece)
        else:
            parts.append(Part(type=header.type, rows=rows, lines=piece + 1))
    if len(declined) > _SPLIT_INTO // 2:
        return parts, declined
    slow: list[Indices] = []
    for piece in declined:
        more_parts, more_slow = _read_group(lines, header, piece)
        parts += more_parts
        slow += more_slow
    return parts, slow


def _parse_lines(lines: _Lines, header: Header, indices: Indices) -> pa.Table | None:
    return parse_group(header, lines.text, lines.starts[indices], lines.ends[indices] + 1)


def _merged(parts: list[Part]) -> list[Part]:
    merged = [in_line_order(same) for same in by_type(parts).values()]
    return sorted((p for p in merged if len(p.lines)), key=lambda p: int(p.lines[0]))
