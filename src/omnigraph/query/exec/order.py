"""Total order of rows: user keys, then ids or columns, null before everything.

Keys become integers or floats that sort as the values do; ids are looked up only where rows tie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.query import typed
from omnigraph.query.exec.columns import numeric
from omnigraph.query.exec.frame import Index

SortKey = npt.NDArray[Any]
CUT = 4
"""A limit below a fourth of the rows cuts by the first key before the rest is sorted."""

COUNTED_MIN = 1_000
"""Fewer numbers are sorted in no time."""
COUNTED_BITS_MAX = 48
"""Numbers further apart would take more passes than comparing them is worth."""


def downwards(key: typed.OrderKey) -> bool:
    """Scores are best first: a distance upwards, every other one downwards."""
    if isinstance(key.value, (typed.Bm25, typed.Rrf)):
        return True
    return False if isinstance(key.value, typed.Nearest) else key.descending


def sortable(values: pa.Array, *, descending: bool) -> SortKey:
    """Numbers that sort ascending as the values should; null is smallest."""
    ranks = _ascending(values)
    if not descending:
        return ranks
    if ranks.dtype.kind == "u":
        return ranks.max(initial=0) - ranks
    if ranks.dtype.kind == "f":
        return -ranks
    # The most negative integer has no positive counterpart.
    return ~ranks


def _ascending(values: pa.Array) -> SortKey:
    if isinstance(values, pa.DictionaryArray):
        order = pc.array_sort_indices(values.dictionary).to_numpy()
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        codes = values.indices
        if codes.null_count:
            known = codes.is_valid().to_numpy(zero_copy_only=False)
            filled = codes.fill_null(0).to_numpy(zero_copy_only=False)
            return np.where(known, places[filled] if len(places) else 0, -1)
        return places[codes.to_numpy(zero_copy_only=False)]
    plain = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if not values.null_count and (
        plain or pa.types.is_timestamp(values.type) or pa.types.is_date32(values.type)
    ):
        found = numeric(values)
        return found + 0.0 if found.dtype.kind == "f" else found
    if pa.types.is_struct(values.type):
        return _ranks_of_rows(values)
    if pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        return _ranks_of_lists(values)
    if pa.types.is_floating(values.type):
        # The two zeros are one number.
        values = pc.add(values, pa.scalar(0.0, values.type))
    return _ascending(values.dictionary_encode())


def _ranks_of_rows(values: pa.StructArray) -> SortKey:
    """Objects sort by their id, which is their first field."""
    ids = values.field(0)
    if values.null_count:
        ids = pc.if_else(values.is_valid(), ids, pa.scalar(None, ids.type))
    return _ascending(ids)


def _ranks_of_lists(values: pa.Array) -> SortKey:
    rows = [None if v is None else tuple((x is not None, x) for x in v) for v in values.to_pylist()]
    order = sorted({r for r in rows if r is not None})
    places = {row: i for i, row in enumerate(order)}
    return np.array([-1 if r is None else places[r] for r in rows], np.int64)


def order_rows(
    keys: Sequence[SortKey],
    ties: Sequence[Callable[[Index], SortKey]],
    length: int,
    limit: int | None,
) -> Index:
    """Row numbers in order, at most ``limit``. Tie keys are made only for rows that tie."""
    index = np.arange(length)
    if keys and limit is not None and limit * CUT < length:
        index = _cut(keys[0], limit)
    if limit == 0:
        return index[:0]
    chosen = [k[index] for k in keys]
    order = _lexsort(chosen, len(index))
    index = index[order]
    if limit is not None and keys:
        index = _with_ties([k[index] for k in keys], index, limit)
    if ties and _has_ties([k[index] for k in keys], len(index)):
        chosen = [k[index] for k in keys] + [tie(index) for tie in ties]
        index = index[_lexsort(chosen, len(index))]
    return index if limit is None else index[:limit]


def _lexsort(keys: Sequence[SortKey], length: int) -> Index:
    order: Index | None = None
    # From the last key to the first: what a stable sort finds equal stays as it was.
    for key in reversed(keys):
        step = stable_order(key if order is None else key[order])
        order = step if order is None else order[step]
    return np.arange(length) if order is None else order


def stable_order(key: SortKey) -> Index:
    """Places in ascending order, equal values as they stand.

    NumPy sorts numbers of 16 bits by counting, and all others by comparing: one to three passes
    over parts of 16 bits take an eighth to a half of the time.
    """
    if len(key) < COUNTED_MIN or key.dtype.kind not in "iu":
        return np.argsort(key, kind="stable")
    if (key[1:] >= key[:-1]).all():
        return np.arange(len(key))
    low = int(key.min())
    bits = (int(key.max()) - low).bit_length()
    if bits > COUNTED_BITS_MAX:
        return np.argsort(key, kind="stable")
    wide = key.astype(np.uint64 if key.dtype.kind == "u" else np.int64) - low
    order: Index | None = None
    for shift in range(0, bits, 16):
        part = (wide >> shift).astype(np.uint16)
        step = np.argsort(part if order is None else part[order], kind="stable")
        order = step if order is None else order[step]
    return np.arange(len(key)) if order is None else order


def _cut(key: SortKey, limit: int) -> Index:
    """Rows that can be among the first by this key, those equal to the last one included."""
    if limit == 0:
        return np.empty(0, np.int64)
    last = np.partition(key, limit - 1)[limit - 1]
    return np.flatnonzero(key <= last)


def _with_ties(keys: Sequence[SortKey], index: Index, limit: int) -> Index:
    """The first rows and all that tie with the last of them."""
    if limit >= len(index):
        return index
    same = np.ones(len(index) - limit, np.bool_)
    for key in keys:
        same &= key[limit:] == key[limit - 1]
    ends = np.flatnonzero(~same)
    return index[: limit + (int(ends[0]) if len(ends) else len(same))]


def _has_ties(keys: Sequence[SortKey], length: int) -> bool:
    if length < 2:
        return False
    same = np.ones(length - 1, np.bool_)
    for key in keys:
        same &= key[1:] == key[:-1]
    return bool(same.any())
