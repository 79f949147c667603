"""What a change of a property's type means for values that are there already."""

from __future__ import annotations

from enum import Enum, auto

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
