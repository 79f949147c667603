"""Groups of rows to one row each.

Group keys become integer codes, and every function is arithmetic over codes and weights: a row that
stands for many (paths counted, not walked) counts as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query import typed
from omnigraph.query.exec.columns import numeric, take
from omnigraph.query.exec.frame import Frame, Mask, summed
from omnigraph.query.exec.order import sortable
from omnigraph.schema.arrow import arrow_type

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

HEADROOM = 128
"""Bits, more than a count of rows has: no sum of numbers made so much smaller is out of range."""


def codes_of(values: pa.Array) -> Codes:
    """Integers that are equal exactly where the values are; null is -1."""
    if isinstance(values, pa.DictionaryArray):
        coded = values.indices
    elif pa.types.is_integer(values.type) and not values.null_count:
        found = values.to_numpy(zero_copy_only=False)
        if found.dtype.kind == "i" and len(found) and found.min() >= 0:
            return found.astype(np.int64)
        return np.unique(found, return_inverse=True)[1]
    elif pa.types.is_struct(values.type):
        # Flattened, the id of an object that is not there is null as well.
        return codes_of(values.flatten()[0])
    elif pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        return sortable(values, descending=False).astype(np.int64)
    else:
        if pa.types.is_floating(values.type):
            # The two zeros are one number.
            values = pa.array(
                values.to_numpy(zero_copy_only=False) + 0.0,
                values.type,
                mask=_nulls(values),
            )
        coded = values.dictionary_encode().indices
    if coded.null_count:
        coded = coded.fill_null(-1)
    return coded.to_numpy(zero_copy_only=False).astype(np.int64)


def _nulls(values: pa.Array) -> Mask | None:
    return values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None


class Grouped:
    """Rows in groups, and the functions over them."""

    def __init__(self, frame: Frame, keys: Sequence[Codes]) -> None:
        self._frame = frame
        self.groups: Groups = group(keys, frame.length)
        self.count = self.groups.count if keys else 1

    def row_counts(self, mask: Mask | None = None) -> npt.NDArray[np.int64]:
        """How many rows each group stands for."""
        of_row, weights = self.groups.of_row, self._frame.weights
        if mask is not None and not mask.all():
            of_row = of_row[mask]
            weights = weights[mask] if weights is not None else None
        return summed(of_row, weights, self.count)

    def evaluate(self, call: typed.AggregateCall, values: pa.Array) -> pa.Array:
        """One aggregate; ``values`` are those of its operand."""
        valid = values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None
        if call.function == "count":
            if call.distinct:
                return pa.array(self._distinct(values, valid), pa.int64())
            return pa.array(self.row_counts(valid), pa.int64())
        if call.function in ("min", "max"):
            return self._extreme(call, values, valid)
        return self._sum(call, values, valid)

    def _distinct(self, values: pa.Array, valid: Mask | None) -> npt.NDArray[np.int64]:
        return self.distinct_codes(codes_of(values), valid)

    def distinct_codes(self, codes: Codes, valid: Mask | None) -> npt.NDArray[np.int64]:
        """Different values in each group."""
        of_row = self.groups.of_row
        if valid is not None:
            codes, of_row = codes[valid], of_row[valid]
        if self.count == 1:
            return np.array([distinct_count([codes], len(codes))], np.int64)
        pairs = group([of_row, codes], len(codes))
        return np.bincount(of_row[pairs.first], minlength=self.count)

    def _sum(self, call: typed.AggregateCall, values: pa.Array, valid: Mask | None) -> pa.Array:
        of_row, weights = self.groups.of_row, self._frame.weights
        present = values if valid is None else values.drop_null()
        numbers = numeric(present).astype(np.float64)
        if valid is not None:
            of_row = of_row[valid]
            weights = weights[valid] if weights is not None else None
        if call.distinct:
            pairs = group([of_row, codes_of(present)], len(numbers))
            of_row, numbers, weights = of_row[pairs.first], numbers[pairs.first], None
        counts = summed(of_row, weights, self.count)
        empty = counts == 0

        def made(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
            weighed = numbers if weights is None else numbers * weights
            sums = np.bincount(of_row, weights=weighed, minlength=self.count).astype(np.float64)
            if call.function == "sum":
                return sums
            return np.divide(sums, counts, out=np.zeros(self.count), where=~empty)

        with np.errstate(over="ignore", invalid="ignore"):
            found = made(numbers)
            beyond = ~np.isfinite(found)
            if beyond.any():
                # A sum can be out of range on the way although its end, or the average, is not.
                small = np.ldexp(made(np.ldexp(numbers, -HEADROOM)), HEADROOM)
                found = np.where(beyond, small, found)
        return pa.array(found, pa.float64(), mask=empty)

    def _extreme(self, call: typed.AggregateCall, values: pa.Array, valid: Mask | None) -> pa.Array:
        """The row that holds the least or greatest value of each group, then its value."""
        ranks = sortable(values, descending=call.function == "max")
        rows = np.arange(len(ranks)) if valid is None else np.flatnonzero(valid)
        of_row, ranks = self.groups.of_row[rows], ranks[rows]
        order = np.lexsort((ranks, of_row))
        starts = np.flatnonzero(np.diff(of_row[order], prepend=-1) != 0)
        best = np.full(self.count, -1, np.int64)
        best[of_row[order][starts]] = rows[order][starts]
        found = take(values, best)
        if isinstance(found, pa.DictionaryArray):
            found = found.dictionary_decode()
        return found.cast(arrow_type(call.type))


# -- grouping --------------------------------------------------------------------------------------
# Equal rows found by integers: the one way to group, to make distinct and to count distinct.


Codes = npt.NDArray[np.int64]
DENSE = 4
"""A table of flags serves values up to so many times the number of rows."""
DENSE_MIN = 1 << 20
FEW = 256
"""So few rows are quicker through a set than through arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Rows by group."""

    of_row: Codes
    """The group of each row."""
    first: Codes
    """The first row of each group."""

    @property
    def count(self) -> int:
        return len(self.first)


def group(keys: Sequence[Codes], length: int) -> Groups:
    """Rows with equal keys together. Codes are at least -1; no key at all makes one group."""
    if not keys:
        one = min(1, length)
        return Groups(of_row=np.zeros(length, np.int64), first=np.zeros(one, np.int64))
    codes, span = _dense(keys[0])
    for key in keys[1:]:
        other, more = _dense(key)
        if span * more >= 1 << 62:
            codes, span = _renumbered(codes)
            other, more = _renumbered(other)
        codes, span = codes * more + other, span * more
    return _grouped(codes, span)


def distinct_count(keys: Sequence[Codes], length: int) -> int:
    """How many different rows."""
    if len(keys) == 1 and length:
        if length <= FEW:
            return len(set(keys[0].tolist()))
        codes, span = _dense(keys[0])
        if span <= max(DENSE * length, DENSE_MIN):
            if length * 32 < span:
                return len(np.unique(codes))
            flags = np.zeros(span, np.bool_)
            flags[codes] = True
            return int(np.count_nonzero(flags))
    return group(keys, length).count


def _dense(key: Codes) -> tuple[Codes, int]:
    """Codes from zero, and one more than the greatest."""
    if not len(key):
        return key, 1
    least, most = int(key.min()), int(key.max())
    return (key if least == 0 else key - least), most - least + 1


def _renumbered(codes: Codes) -> tuple[Codes, int]:
    values, inverse = np.unique(codes, return_inverse=True)
    return inverse, max(1, len(values))


def _grouped(codes: Codes, span: int) -> Groups:
    length = len(codes)
    if length == 0:
        return Groups(of_row=codes, first=codes)
    if span <= max(DENSE * length, 4096) and span <= DENSE_MIN * 64:
        flags = np.zeros(span, np.bool_)
        flags[codes] = True
        numbers = np.cumsum(flags) - 1
        of_row = numbers[codes]
        first = np.empty(int(numbers[-1]) + 1, np.int64)
        # Written backwards, the first row of a group is what stays.
        first[of_row[::-1]] = np.arange(length - 1, -1, -1)
        return Groups(of_row=of_row, first=first)
    _, first, of_row = np.unique(codes, return_index=True, return_inverse=True)
    return Groups(of_row=of_row, first=first)
