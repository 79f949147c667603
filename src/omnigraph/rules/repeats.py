"""Rows that hold the same tuple of values: fast to deny, exact when they exist.

Nearly every input has no repeats, so the work is in proving that. Rows are hashed to 64 bits and
the hashes sorted; a row whose hash no other row has is unique for certain, and only the few others
are compared by value. The hash decides nothing but speed: equal tuples always share it.

Eight million distinct 8-byte strings take 0.06 s of one core to hash and 0.05 s to sort (NumPy
sorts numbers with the processor's vectors), Arrow's ``dictionary_encode`` 0.8 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.hashes import BLOCK_ROWS, Hashes, bounds_of, every_word, mix, words_before
from omnigraph.rules.findings import Positions

_EXACT_ROWS_MAX = 4096
"""So few rows are compared by value straight away."""
_WORDS_MAX = 4
"""Eight-byte words hashed from the end of a string, where ids differ; long ones add their head."""
HASHED_BYTES = 8 * _WORDS_MAX + 8
"""A string of at most so many bytes is hashed as a whole."""
_COMMON_PART = 8
"""If more than one row in so many shares its hash with another, all are compared by value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeats:
    """The rows whose tuple occurs more than once, ordered by tuple and then by row."""

    rows: Positions
    groups: Positions
    """Which tuple each row holds; equal numbers are neighbours."""

    def __len__(self) -> int:
        return len(self.rows)

    def later(self) -> tuple[Positions, Positions]:
        """Every row but the first of its tuple, ascending, and that first row of each."""
        new_group = np.append(True, self.groups[1:] != self.groups[:-1])[: len(self.rows)]
        starts = np.flatnonzero(new_group)
        firsts = np.repeat(self.rows[starts], np.diff(np.append(starts, len(self.rows))))
        later, firsts = self.rows[~new_group], firsts[~new_group]
        order = np.argsort(later, kind="stable")
        return later[order], firsts[order]

    def superseded(self) -> Positions:
        """Every row but the last of its tuple, ascending."""
        last = np.append(self.groups[1:] != self.groups[:-1], True)[: len(self.rows)]
        return np.sort(self.rows[~last])


NO_REPEATS = Repeats(rows=np.empty(0, np.int64), groups=np.empty(0, np.int64))


def find_repeats(columns: Sequence[pa.ChunkedArray]) -> Repeats:
    """Rows that agree in all columns. Rows with a null in any of them take no part."""
    partial = any(column.null_count for column in columns)
    rows = complete_rows(columns) if partial else None
    if (len(columns[0]) if rows is None else len(rows)) > _EXACT_ROWS_MAX:
        rows = _shared_hashes(columns, rows)
    elif rows is None:
        rows = complete_rows(columns)
    if len(rows) < 2:
        return NO_REPEATS
    taken = pa.array(rows)
    return _group(rows, tuple_codes([c.take(taken) for c in columns]))


def none_more_often(column: pa.ChunkedArray, times: int) -> bool:
    """Whether certainly no value occurs more than so many times. If not, one may all the same."""
    if times >= len(column) or not times:
        return times >= len(column)
    hashes = _hash_rows([column])
    hashes.sort()
    return not bool((hashes[times:] == hashes[:-times]).any())


def stable_hashes(columns: Sequence[pa.ChunkedArray]) -> Hashes:
    """A number for each row, equal where the tuples are, in whatever process and batch they stand.

    The converse does not hold: of a long text only the ends are looked at.
    """
    return _hash_rows(columns, longest=8 * _WORDS_MAX + 1)


def complete_rows(columns: Sequence[pa.ChunkedArray]) -> Positions:
    """The rows without a null in any of the columns."""
    partial = [c for c in columns if c.null_count]
    if not partial:
        return np.arange(len(columns[0]), dtype=np.int64)
    valid = partial[0].is_valid()
    for column in partial[1:]:
        valid = pc.and_(valid, column.is_valid())
    return np.flatnonzero(valid.to_numpy())


def tuple_codes(columns: Sequence[pa.ChunkedArray]) -> Positions:
    """A number per row that is equal exactly where all columns are; -1 where one is null."""
    codes = _codes(columns[0])
    for column in columns[1:]:
        own = _codes(column)
        # Numbers are made dense after each column, so the product stays far below 2**63.
        both = codes * (int(own.max(initial=0)) + 1) + own
        both[(codes < 0) | (own < 0)] = -1
        present, inverse = np.unique(both, return_inverse=True)
        codes = inverse.astype(np.int64) - int(len(present) > 0 and present[0] < 0)
    return codes


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column such that equality of values is equality of bits: ``-0.0`` becomes ``0.0``."""
    if pa.types.is_floating(column.type):
        return pc.add(column, pa.scalar(0.0, column.type))
    return column


def _codes(column: pa.ChunkedArray) -> Positions:
    encoded = comparable(column).combine_chunks().dictionary_encode()
    return pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _group(rows: Positions, codes: Positions) -> Repeats:
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    same = ordered[1:] == ordered[:-1]
    member = np.append(False, same) | np.append(same, False)
    return Repeats(rows=rows[order[member]], groups=ordered[member])


def _shared_hashes(columns: Sequence[pa.ChunkedArray], rows: Positions | None) -> Positions:
    """Those of some rows, or of all, whose hash another of them has, too: the only possible
    repeats."""
    found = _hashes_at(columns, rows)
    found.sort()
    shared = found[1:][found[1:] == found[:-1]]
    if not len(shared):
        return NO_REPEATS.rows
    if rows is None:
        rows = np.arange(len(found), dtype=np.int64)
    if len(shared) > len(rows) // _COMMON_PART:
        return rows
    # Sorting has lost which rows they are of. To hash again is rare, and needs no more memory.
    shared, found = np.unique(shared), _hashes_at(columns, rows)
    places = np.minimum(np.searchsorted(shared, found), len(shared) - 1)
    return rows[shared[places] == found]


def _hashes_at(columns: Sequence[pa.ChunkedArray], rows: Positions | None) -> Hashes:
    hashes = _hash_rows(columns)
    return hashes if rows is None or len(rows) == len(hashes) else hashes[rows]


def _hash_rows(columns: Sequence[pa.ChunkedArray], longest: int | None = None) -> Hashes:
    total = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        start, reach = 0, _longest(column) if longest is None else longest
        for chunk in comparable(column).chunks:
            _hash_chunk(chunk, reach, total[start : start + len(chunk)])
            start += len(chunk)
    return total


def _longest(column: pa.ChunkedArray) -> int:
    """Bytes of the longest string. Every string of a column is hashed in as many steps as that one
    needs: were it decided by chunk or block, equal strings could get different hashes."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return 0
    return pc.max(pc.binary_length(column)).as_py() or 0


def _hash_chunk(chunk: pa.Array, longest: int, total: Hashes) -> None:
    """Take the values of a chunk into the hashes of their rows."""
    if pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type):
        _hash_strings(chunk, longest, total)
        return
    if pa.types.is_boolean(chunk.type):
        chunk = chunk.cast(pa.uint8())
    bits = np.frombuffer(chunk.buffers()[1], dtype=f"u{chunk.type.byte_width}")
    for start in range(0, len(chunk), BLOCK_ROWS):
        block = total[start : start + BLOCK_ROWS]
        first = chunk.offset + start
        mix(block, bits[first : first + len(block)].astype(np.uint64))


def _hash_strings(chunk: pa.Array, longest: int, total: Hashes) -> None:
    """Hash length and last words of every string, plus the head of long ones, without a copy."""
    bounds, words = bounds_of(chunk), every_word(chunk.buffers()[2])
    for start in range(0, len(chunk), BLOCK_ROWS):
        block = bounds[start : start + BLOCK_ROWS + 1]
        ends, lengths = block[1:], np.diff(block)
        hashes = lengths.astype(np.uint64)
        for word in range(1, min(-(-longest // 8), _WORDS_MAX) + 1):
            mix(hashes, words_before(words, ends, lengths, 8 * word))
        if longest > 8 * _WORDS_MAX:
            reach = np.minimum(lengths, 8)
            mix(hashes, words_before(words, ends - lengths + reach, reach, 8))
        mix(total[start : start + len(hashes)], hashes)
