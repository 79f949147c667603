"""What a change of a property's type means for values that are there already."""

from __future__ import annotations

from enum import Enum, auto
from typing import TypeVar

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.schema.catalog import PropertyType, Scalar

_WIDER: dict[Scalar, tuple[Scalar, ...]] = {
    Scalar.I32: (Scalar.I64, Scalar.F64),
    Scalar.U32: (Scalar.U64, Scalar.I64, Scalar.F64),
    Scalar.F32: (Scalar.F64,),
}
"""Types that hold every value of a type exactly."""


class TypeChange(Enum):
    """How the values of a type become values of another, nullability apart."""

    SAME = auto()
    EXTENDED = auto()
    """An enum with more values, or a text that was an enum: every value stays."""
    NARROWED = auto()
    """An enum with fewer values, or an enum that was a text: values are looked at."""
    WIDENED = auto()
    """Numbers of a larger type: every value is rewritten and none changes."""
    OTHER = auto()


def type_change(before: PropertyType, after: PropertyType) -> TypeChange:
    """Compare two types."""
    if before.is_list != after.is_list or before.vector_size != after.vector_size:
        return TypeChange.OTHER
    if before.scalar is not after.scalar:
        wider = after.scalar in _WIDER.get(before.scalar, ())
        return TypeChange.WIDENED if wider else TypeChange.OTHER
    if before.enum_values == after.enum_values:
        return TypeChange.SAME
    if after.enum_values is None:
        return TypeChange.EXTENDED
    kept = before.enum_values is not None and set(before.enum_values) <= set(after.enum_values)
    return TypeChange.EXTENDED if kept else TypeChange.NARROWED


def can_copy(source: PropertyType, target: PropertyType) -> bool:
    """Whether values of one property can become values of another; enums are looked at later."""
    is_blob = Scalar.BLOB in (source.scalar, target.scalar)
    return not is_blob and type_change(source, target) is not TypeChange.OTHER


def keeps_text(before: PropertyType, after: PropertyType) -> bool:
    """Whether a value is written in an id as before: a key may change its type only so."""
    change = type_change(before, after)
    whole = before.scalar.is_integer and after.scalar.is_integer
    return change is not TypeChange.OTHER and (change is not TypeChange.WIDENED or whole)


# -- exact -----------------------------------------------------------------------------------------
# Values of one type as values of another, where they are exactly the same.
#
#     column of a type -> [exact] -> column of another type, null where a value has no place there
#
# Numbers become numbers, elements of lists one by one. Texts are not parsed, and nothing is
# rounded: what cannot be kept is null here, and the caller has to say so (ADR 0019).


Column = TypeVar("Column", pa.Array, pa.ChunkedArray)


def exactly(values: Column, kind: pa.DataType) -> Column:
    """The values in another type; null where they are null or have no place in it."""
    if values.type == kind:
        return values
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([_exactly(chunk, kind) for chunk in values.chunks], kind)
    return _exactly(values, kind)


def misfits(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Where a value has no place in a type; never null."""
    return pc.and_(values.is_valid(), exactly(values, kind).is_null())


def _exactly(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if values.type == kind:
        return values
    if pa.types.is_list(values.type) and pa.types.is_list(kind):
        return _lists(values, kind)
    if _is_number(values.type) and _is_number(kind):
        return _numbers(values, kind)
    return pa.nulls(len(values), kind)


def _numbers(values: pa.Array, kind: pa.DataType) -> pa.Array:
    made = _rounded(values, kind)
    # The way back shows whether anything was rounded.
    back = _rounded(made, values.type)
    return pc.if_else(pc.equal(back, values), made, pa.scalar(None, kind))


def _rounded(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers in another type, rounded; null where they lie outside of it."""
    if pa.types.is_integer(kind):
        values = pc.if_else(_within(values, kind), values, pa.scalar(None, values.type))
    return values.cast(kind, safe=False)


def _within(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Which numbers lie between the least and the greatest of a type of whole numbers."""
    low, high = _bounds(kind)
    if pa.types.is_floating(values.type):
        # The greatest itself is no float of any width: one more is.
        return pc.and_(
            pc.greater_equal(values, pa.scalar(float(low), values.type)),
            pc.less(values, pa.scalar(float(high + 1), values.type)),
        )
    least, most = _bounds(values.type)
    return pc.and_(
        pc.greater_equal(values, pa.scalar(max(low, least), values.type)),
        pc.less_equal(values, pa.scalar(min(high, most), values.type)),
    )


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_unsigned_integer(kind):
        return 0, 2**kind.bit_width - 1
    return -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1


def _lists(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Lists whose elements all have a place; one that has none leaves its list null."""
    plain = pa.concat_arrays([values]) if values.offset else values
    elements = plain.flatten()
    made = exactly(elements, kind.value_type)
    lost = pc.and_(elements.is_valid(), made.is_null())
    parents = pc.list_parent_indices(plain).filter(lost)
    kept = pc.invert(pc.is_in(pa.array(range(len(plain)), pa.int64()), value_set=parents))
    lengths = pc.fill_null(pc.list_value_length(plain), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    lists = pa.ListArray.from_arrays(offsets.cast(pa.int32()), made, type=kind)
    return pc.if_else(pc.and_(plain.is_valid(), kept), lists, pa.scalar(None, kind))


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
