"""Columns as sets: which values are among others, at which positions, which are distinct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.text_set import TextSet

Column: TypeAlias = pa.Array | pa.ChunkedArray
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]

NO_POSITIONS: Positions = np.empty(0, dtype=np.int64)
TEXT_SET_ROWS_MIN = 50_000
"""Below this, in both columns, a set of texts costs more than it saves."""


def among(values: Column, known: Column) -> Column:
    """A mask of the values that are known; a null is not."""
    return known_among(known, len(values))(values)


def known_among(known: Column, asked: int) -> Callable[[Column], Column]:
    """The same for several columns, which have so many rows in all."""

    def by_arrow(values: Column) -> Column:
        # A single one needs no hash table.
        if len(known) == 1 and known.null_count == 0:
            return pc.fill_null(pc.equal(values, known[0]), False)
        return pc.is_in(values, value_set=known, skip_nulls=True)

    if asked + len(known) < TEXT_SET_ROWS_MIN or len(known) < 2 or not _is_text(known):
        return by_arrow
    texts = TextSet(known)
    return lambda values: pa.array(texts.holds(values)) if _is_text(values) else by_arrow(values)


def _is_text(column: Column) -> bool:
    return pa.types.is_string(column.type) or pa.types.is_large_string(column.type)


def without(values: pa.Array, known: Column) -> pa.Array:
    """The values that are not known."""
    if not len(values) or not len(known):
        return values
    return values.filter(pc.invert(among(values, known)))


def true_at(mask: Column) -> Positions:
    """Positions where a mask is true; null counts as false."""
    mask = one_array(mask)
    if not len(mask) or not mask.true_count:
        return NO_POSITIONS
    return np.flatnonzero(pc.fill_null(mask, False).to_numpy(zero_copy_only=False))


def positions_in(wanted: pa.Array, known: pa.Array) -> Positions:
    """Where each value stands in the other array; -1 if it does not."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    if wanted.type != known.type:
        wanted, known = wanted.cast(pa.large_string()), known.cast(pa.large_string())
    found = pc.index_in(wanted, value_set=known)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def one_array(column: Column) -> pa.Array:
    """The column as one array; copied only if it is in several pieces."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def strings(column: Column) -> pa.StringArray:
    """The column as one string array."""
    array = one_array(column)
    return array if array.type == pa.string() else array.cast(pa.string())


def union(columns: Sequence[Column]) -> pa.StringArray:
    """The distinct strings of all columns, in order of first appearance, without null."""
    chunks: list[pa.Array] = []
    for column in columns:
        chunks += column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    distinct = pc.unique(pa.chunked_array(chunks, pa.string()))
    return distinct.drop_null() if distinct.null_count else distinct
