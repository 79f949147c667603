"""Comparison of numbers by their mathematical value, whatever types they have.

    typed comparison -> [numbers] -> truth

No operand is ever rounded. A constant is moved to the nearest value that the column can hold and
the operator adjusted: for integers ``x < 2.5`` is ``x <= 2``, ``x = 2.5`` is false. So a column is
compared in its own type, at the speed of the machine. Days and instants are integers here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.exec.truth import Mask, Truth, unpacked, valid_mask
from omnigraph.query.typed import CompareOp

Number = int | float
_EQUALS_MAX = 16
"""Up to so many values a comparison with each is faster than a search in a sorted list."""
Numbers = npt.NDArray[Any]

COMPARE: dict[CompareOp, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIRRORED: dict[CompareOp, CompareOp] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
"""``a op b`` as ``b op' a``."""

_DTYPES: dict[pa.DataType, np.dtype[Any]] = {
    pa.int8(): np.dtype(np.int8),
    pa.int16(): np.dtype(np.int16),
    pa.int32(): np.dtype(np.int32),
    pa.int64(): np.dtype(np.int64),
    pa.uint8(): np.dtype(np.uint8),
    pa.uint16(): np.dtype(np.uint16),
    pa.uint32(): np.dtype(np.uint32),
    pa.uint64(): np.dtype(np.uint64),
    pa.float32(): np.dtype(np.float32),
    pa.float64(): np.dtype(np.float64),
    pa.date32(): np.dtype(np.int32),
    pa.timestamp("ms", tz="UTC"): np.dtype(np.int64),
    pa.bool_(): np.dtype(np.bool_),
}


@dataclass(frozen=True, slots=True)
class Moved:
    """A comparison with a constant that the column's type can hold."""

    op: CompareOp
    value: Number


def is_plain(kind: pa.DataType) -> bool:
    """Whether values of this Arrow type lie side by side as numbers."""
    return kind in _DTYPES


def dtype_of(kind: pa.DataType) -> np.dtype[Any]:
    """The numbers that a plain Arrow type is stored as."""
    return _DTYPES[kind]


def plain(values: pa.Array) -> Numbers:
    """The numbers of an array without a copy; under nulls stands anything."""
    dtype = _DTYPES[values.type]
    buffer = values.buffers()[1]
    if dtype == np.bool_:
        return unpacked(buffer, values)
    if buffer is None or not len(values):
        return np.zeros(len(values), dtype)
    return np.frombuffer(buffer, dtype, len(values), values.offset * dtype.itemsize)


def with_constant(op: CompareOp, column: pa.Array, value: Number) -> Truth:
    """``column op value`` for a plain column."""
    valid = valid_mask(column)
    moved = move(op, _DTYPES[column.type], value)
    if isinstance(moved, bool):
        return Truth.where_valid(np.full(len(column), moved, np.bool_), valid)
    values = plain(column)
    mask = COMPARE[moved.op](values, values.dtype.type(moved.value))
    return Truth.where_valid(mask, valid)


def move(op: CompareOp, dtype: np.dtype[Any], value: Number) -> Moved | bool:
    """``x op value`` as a comparison within the type, or its answer for every x of the type."""
    if value != value:
        return op == "!="
    floor, exact = _floor(dtype, value)
    if floor is None:
        return op in (">", ">=", "!=")
    if exact:
        return Moved(op, floor)
    if op in ("=", "!="):
        return op == "!="
    return Moved("<=" if op in ("<", "<=") else ">", floor)


def fitted(dtype: np.dtype[Any], value: Number) -> Number | None:
    """The value in the column's type; None when no element of the type equals it."""
    floor, exact = _floor(dtype, value) if value == value else (None, False)
    return floor if exact else None


def among(column: pa.Array, values: Sequence[Number]) -> Truth:
    """Whether a number of a plain column equals one of the values; unknown for null."""
    dtype = _DTYPES[column.type]
    fitting = [v for v in (fitted(dtype, value) for value in values) if v is not None]
    numbers, mask = plain(column), np.zeros(len(column), np.bool_)
    if len(fitting) <= _EQUALS_MAX:
        for value in fitting:
            mask |= numbers == dtype.type(value)
    else:
        mask = np.isin(numbers, np.array(fitting, dtype))
    return Truth.where_valid(mask, valid_mask(column))


def _floor(dtype: np.dtype[Any], value: Number) -> tuple[Number | None, bool]:
    """The largest element of the type that is not above the value, and whether it equals it."""
    if dtype.kind == "f":
        return _float_floor(dtype, value)
    if dtype.kind == "b":
        return bool(value), value in (False, True)
    bounds = np.iinfo(dtype)
    low, high = int(bounds.min), int(bounds.max)
    if value < low:
        return None, False
    if value > high:
        return high, False
    whole = math.floor(value)
    return whole, whole == value


def _float_floor(dtype: np.dtype[Any], value: Number) -> tuple[float, bool]:
    try:
        near = float(value)
    except OverflowError:  # an integer beyond all floats
        near = math.inf if value > 0 else -math.inf
    if dtype.itemsize == 4:
        with np.errstate(over="ignore"):
            near = float(np.float32(near))
    # Python compares integers and floats exactly, so this sees every rounding above.
    if near > value:
        near = float(np.nextafter(dtype.type(near), dtype.type(-math.inf)))
    return near, near == value


def between(op: CompareOp, left: pa.Array, right: pa.Array) -> Truth:
    """``left op right``, row by row, for two plain columns."""
    a, b = plain(left), plain(right)
    one, other = valid_mask(left), valid_mask(right)
    valid = one if other is None else other if one is None else one & other
    return Truth.where_valid(_elementwise(op, a, b), valid)


def _elementwise(op: CompareOp, a: Numbers, b: Numbers) -> Mask:
    if _wide(a) and b.dtype.kind == "f":
        return COMPARE[op](_order(a, b), 0)
    if a.dtype.kind == "f" and _wide(b):
        return COMPARE[MIRRORED[op]](_order(b, a), 0)
    # numpy compares integers of either sign exactly, and 32-bit integers and floats as doubles.
    return COMPARE[op](a, b)


def _wide(values: Numbers) -> bool:
    return values.dtype.kind in "iu" and values.dtype.itemsize == 8


def _order(whole: Numbers, floats: Numbers) -> npt.NDArray[np.int8]:
    """-1, 0 or 1 as 64-bit integers stand to floats, exactly; no float is cast out of range."""
    doubles = floats.astype(np.float64, copy=False)
    bits = 63 if whole.dtype.kind == "i" else 64
    low, high = (-(2.0**63) if bits == 63 else 0.0), 2.0**bits
    floor = np.floor(doubles)
    inside = (floor >= low) & (floor < high)
    near = np.where(inside, floor, 0.0).astype(whole.dtype)
    order = (whole > near).astype(np.int8) - (whole < near).astype(np.int8)
    order[(order == 0) & (doubles > floor)] = -1
    return np.where(inside, order, np.where(doubles < low, 1, -1)).astype(np.int8)
