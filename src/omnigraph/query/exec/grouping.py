"""Equal rows found by integers: the one way to group, to make distinct and to count distinct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
