"""Three-valued logic over many rows at once.

    tests on columns -> [truth] -> which rows hold

A truth is two masks: where a condition *surely* holds and where it *possibly* holds. Unknown is
possible but not sure. With this pair, and, or and not need no case analysis; a condition that knows
no unknown carries one mask twice, and then half of the work falls away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.sets import Mask


@dataclass(frozen=True, slots=True)
class Truth:
    """The value of a condition in each row. ``sure`` implies ``possible``."""

    sure: Mask
    possible: Mask
    """The same object as ``sure`` when no row is unknown."""

    @staticmethod
    def known(mask: Mask) -> Truth:
        """A condition that is true or false everywhere."""
        return Truth(mask, mask)

    @staticmethod
    def constant(value: bool | None, length: int) -> Truth:
        """The same value in every row; None is unknown."""
        if value is None:
            return Truth(np.zeros(length, np.bool_), np.ones(length, np.bool_))
        return Truth.known(np.full(length, value, np.bool_))

    @staticmethod
    def where_valid(mask: Mask, valid: Mask | None) -> Truth:
        """The mask where the operand is there, unknown elsewhere; all are valid without a mask."""
        return Truth.known(mask) if valid is None else Truth(mask & valid, mask | ~valid)

    @staticmethod
    def joined(parts: Sequence[Truth]) -> Truth:
        """Truths of consecutive rows as one."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Truth.constant(False, 0)
        sure = np.concatenate([p.sure for p in parts])
        if all(p.possible is p.sure for p in parts):
            return Truth.known(sure)
        return Truth(sure, np.concatenate([p.possible for p in parts]))

    def __invert__(self) -> Truth:
        if self.possible is self.sure:
            return Truth.known(~self.sure)
        return Truth(~self.possible, ~self.sure)

    def __and__(self, other: Truth) -> Truth:
        sure = self.sure & other.sure
        if self.possible is self.sure and other.possible is other.sure:
            return Truth.known(sure)
        return Truth(sure, self.possible & other.possible)

    def __or__(self, other: Truth) -> Truth:
        sure = self.sure | other.sure
        if self.possible is self.sure and other.possible is other.sure:
            return Truth.known(sure)
        return Truth(sure, self.possible | other.possible)

    def take(self, indices: npt.NDArray[np.integer]) -> Truth:
        """The truth at other places; every index is in range."""
        # "clip" spares numpy the check of every index and halves the time.
        sure = self.sure.take(indices, mode="clip")
        if self.possible is self.sure:
            return Truth.known(sure)
        return Truth(sure, self.possible.take(indices, mode="clip"))

    def to_arrow(self) -> pa.BooleanArray:
        """As an Arrow column: null where unknown."""
        valid = None
        if self.possible is not self.sure:
            valid = _bits(self.sure | ~self.possible)
        return pa.Array.from_buffers(pa.bool_(), len(self.sure), [valid, _bits(self.sure)])


def from_arrow(values: pa.Array | pa.ChunkedArray) -> Truth:
    """An Arrow column of truth values."""
    if isinstance(values, pa.ChunkedArray):
        return Truth.joined([from_arrow(chunk) for chunk in values.chunks])
    return Truth.where_valid(unpacked(values.buffers()[1], values), valid_mask(values))


def valid_mask(values: pa.Array) -> Mask | None:
    """Where an array has a value; None when it has one everywhere."""
    return unpacked(values.buffers()[0], values) if values.null_count else None


def unpacked(bits: pa.Buffer | None, values: pa.Array) -> Mask:
    """One of the array's bitmaps as a mask: much faster than Arrow's own way to numpy."""
    start, count = values.offset, len(values)
    if bits is None:
        return np.zeros(count, np.bool_)
    # Only the bytes that are needed: a short slice of a long array must stay cheap.
    data = np.frombuffer(bits, np.uint8)[start >> 3 : (start + count + 7) >> 3]
    first = start & 7
    return np.unpackbits(data, count=first + count, bitorder="little")[first:].view(np.bool_)


def _bits(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))
