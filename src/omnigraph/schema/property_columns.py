"""Whole Arrow columns into the column of a property, exactly.

    fast path (columns that pyarrow.json parsed) | tables given by the user -> [columns] -> rows

The vectorised counterpart of `values`: it may refuse more (the caller then asks `values`, or tells
the user), but what it returns is what `values` would have returned. Columns that have the right
type already are checked and passed on without a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from omnigraph.arrow.compute import pc
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.property_values import ValueRefused, decode_blob
from omnigraph.schema.temporal import DAY_MAX, DAY_MIN, MS_MAX, MS_MIN


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    scalar: Scalar
    arrow: pa.DataType


_ZONE = r"[T ]\d{2}.*(?:Z|[+-]\d{2}(?::?\d{2})?)$"


class ColumnRefused(Exception):
    """Some value of the column is not a value of the property.

    ``whole`` means that no single row is wrong: the column's type cannot be read as this property.
    """

    def __init__(self, message: str, *, whole: bool = False) -> None:
        super().__init__(message)
        self.whole = whole


def to_column(array: pa.Array, property_type: PropertyType) -> pa.Array:
    """The array in ``arrow_type(property_type)``. Raises ColumnRefused or an Arrow error."""
    target = arrow_type(property_type)
    array = _plain(array, property_type)
    if pt.is_null(array.type):
        return pa.nulls(len(array), target)
    scalar = property_type.scalar
    if property_type.vector_size is not None:
        return _vector(array, target, property_type.vector_size)
    if property_type.is_list:
        return _list(array, target, scalar)
    return _convert(array, _Target(scalar=scalar, arrow=target))


def _plain(array: pa.Array, wanted: PropertyType) -> pa.Array:
    """The values themselves: without dictionaries and extension types that add no meaning."""
    while True:
        if isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        elif isinstance(array, pa.ExtensionArray):
            if not _means_its_storage(array.type, wanted):
                name = array.type.extension_name
                raise ColumnRefused(
                    f"values of the extension type {name} cannot be read as {type_label(wanted)};"
                    " convert the column to a plain type",
                    whole=True,
                )
            array = array.storage
        else:
            return array


def _means_its_storage(kind: Any, wanted: PropertyType) -> bool:
    """Whether the storage of an extension type is the value itself.

    Elsewhere it is a code for the value: a month that is stored as a number would be read as a day.
    """
    if wanted.vector_size is not None:
        return kind.extension_name == "arrow.fixed_shape_tensor" and len(kind.shape) == 1
    return not wanted.is_list and _MEANING.get(kind.extension_name) is wanted.scalar


def type_label(wanted: PropertyType) -> str:
    """A property's type in a message."""
    if wanted.vector_size is not None:
        return f"Vector({wanted.vector_size})"
    return f"[{wanted.scalar}]" if wanted.is_list else str(wanted.scalar)


def _convert(array: pa.Array, target: _Target) -> pa.Array:
    array = _plain(array, PropertyType(scalar=target.scalar))
    if pt.is_null(array.type):
        return pa.nulls(len(array), target.arrow)
    return _SCALARS[target.scalar](array, target)


def _is_text(data_type: pa.DataType) -> bool:
    return pt.is_string(data_type) or pt.is_large_string(data_type) or pt.is_string_view(data_type)


def _no_way(array: pa.Array, target: _Target) -> ColumnRefused:
    return ColumnRefused(
        f"values of Arrow type {array.type} cannot be read as {target.scalar}", whole=True
    )


def _checked(text: pa.Array) -> pa.Array:
    """The text, with every byte validated: Arrow does not check its input, and a store does."""
    try:
        text.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise ColumnRefused(f"the Arrow array is damaged: {error}", whole=True) from None
        raise ColumnRefused("the text is not valid UTF-8") from None
    return text


def _string(array: pa.Array, target: _Target) -> pa.Array:
    if not _is_text(array.type):
        raise _no_way(array, target)
    text = _checked(array)
    return _without_hidden(text if pt.is_string(text.type) else text.cast(target.arrow))


def _without_hidden(text: pa.Array) -> pa.Array:
    """The same strings without bytes below nulls that are no text: a store looks at these too."""
    if not text.null_count:
        return text
    buffers = [None, *text.buffers()[1:]]
    try:
        unmasked = pa.Array.from_buffers(text.type, len(text), buffers, offset=text.offset)
        unmasked.validate(full=True)
    except pa.ArrowInvalid:
        return text.take(pa.array(np.arange(len(text))))
    return text


def _blob(array: pa.Array, target: _Target) -> pa.Array:
    kind = array.type
    if pt.is_large_binary(kind):
        return array
    if pt.is_binary(kind) or pt.is_fixed_size_binary(kind) or pt.is_binary_view(kind):
        return array.cast(target.arrow)
    if not _is_text(kind):
        raise _no_way(array, target)
    try:
        cells = [None if v is None else decode_blob(v) for v in _checked(array).to_pylist()]
    except ValueRefused as error:
        raise ColumnRefused(str(error)) from None
    return pa.array(cells, target.arrow)


def _bool(array: pa.Array, target: _Target) -> pa.Array:
    if not pt.is_boolean(array.type):
        raise _no_way(array, target)
    return array


def _integer(array: pa.Array, target: _Target) -> pa.Array:
    if array.type == target.arrow:
        return array
    # Whole floats are taken because pandas turns an integer column with gaps into floats, whole
    # decimals because some stores (Spark is one) have nothing else for 64 bits without a sign.
    kind = array.type
    if not (pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)):
        raise _no_way(array, target)
    return array.cast(target.arrow, safe=True)


def _float(array: pa.Array, target: _Target) -> pa.Array:
    if not (pt.is_floating(array.type) or pt.is_integer(array.type)):
        raise _no_way(array, target)
    number = array if array.type == target.arrow else array.cast(target.arrow, safe=True)
    if not pc.all(pc.is_finite(number), min_count=0).as_py():
        raise ColumnRefused("a number is not finite or out of range")
    return number


def _date(array: pa.Array, target: _Target) -> pa.Array:
    kind = array.type
    if pt.is_timestamp(kind):
        # Whole naive days only: pandas has no other type for a day. With a zone it is an instant.
        day = array.cast(target.arrow, safe=False) if kind.tz is None else None
        if day is None or not pc.all(pc.equal(day.cast(kind), array), min_count=0).as_py():
            raise ColumnRefused("a timestamp is not a Date")
    elif _is_text(kind):
        day = _checked(array).cast(target.arrow)
    elif pt.is_date(kind):
        day = array.cast(target.arrow)
    elif pt.is_integer(kind):
        day = array.cast(pa.int32(), safe=True).cast(target.arrow)
    else:
        raise _no_way(array, target)
    return _within(day, pa.int32(), DAY_MIN, DAY_MAX)


def _datetime(array: pa.Array, target: _Target) -> pa.Array:
    kind = array.type
    if _is_text(kind):
        instant = _parse_instants(_checked(array)).cast(target.arrow, safe=True)
    elif pt.is_timestamp(kind) or pt.is_date(kind):
        instant = array if kind == target.arrow else array.cast(target.arrow, safe=True)
    elif pt.is_integer(kind):
        instant = array.cast(pa.int64(), safe=True).cast(target.arrow)
    else:
        raise _no_way(array, target)
    return _within(instant, pa.int64(), MS_MIN, MS_MAX)


def _parse_instants(array: pa.Array) -> pa.Array:
    """Text to instants in microseconds.

    Microseconds, because text with six decimals is common and the checked cast to milliseconds then
    tells zeros from a loss. Arrow takes texts that all have a zone or all have none.
    """
    zoned, naive = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
    for kind in (zoned, naive):
        try:
            return array.cast(kind)
        except pa.ArrowInvalid:
            continue
    has_zone = pc.fill_null(pc.match_substring_regex(array, _ZONE), False)
    nothing = pa.scalar(None, array.type)
    with_zone = pc.if_else(has_zone, array, nothing).cast(zoned)
    without = pc.if_else(has_zone, nothing, array).cast(naive)
    return pc.if_else(has_zone, with_zone, without.cast(zoned))


def _within(array: pa.Array, integer: pa.DataType, low: int, high: int) -> pa.Array:
    bounds = pc.min_max(array.cast(integer)).as_py()
    if bounds["min"] is not None and (bounds["min"] < low or bounds["max"] > high):
        raise ColumnRefused("outside of the years 0001 to 9999")
    return array


def _lengths(array: pa.Array) -> pa.Array:
    kind = array.type
    if not (
        pt.is_list(kind)
        or pt.is_large_list(kind)
        or pt.is_fixed_size_list(kind)
        or pt.is_list_view(kind)
        or pt.is_large_list_view(kind)
    ):
        raise ColumnRefused(f"values of Arrow type {kind} are not lists", whole=True)
    return pc.list_value_length(array)


def _elements(array: pa.Array, target: _Target) -> pa.Array:
    """All elements of all lists that are not null, converted."""
    elements = array.flatten()
    if elements.null_count:
        raise ColumnRefused("an element of a list is null")
    return _convert(elements, target)


def _list(array: pa.Array, target: pa.DataType, scalar: Scalar) -> pa.Array:
    lengths = _lengths(array)
    elements = _elements(array, _Target(scalar=scalar, arrow=target.value_type))
    if array.type == target:
        return array
    offsets = np.zeros(len(array) + 1, dtype=np.int64)
    np.cumsum(pc.fill_null(lengths, 0).to_numpy(), out=offsets[1:])
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ColumnRefused("too many list elements in one chunk", whole=True)
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), elements, type=target, mask=mask
    )


def _vector(array: pa.Array, target: pa.DataType, size: int) -> pa.Array:
    if not pc.all(pc.equal(_lengths(array), size), min_count=0).as_py():
        raise ColumnRefused(f"a vector does not have {size} numbers")
    elements = _elements(array, _Target(scalar=Scalar.F32, arrow=pa.float32()))
    if array.type == target:
        return array
    if not array.null_count:
        return pa.FixedSizeListArray.from_arrays(elements, type=target)
    # Null vectors still take their place among the values.
    full = np.zeros((len(array), size), dtype=np.float32)
    full[array.is_valid().to_numpy(zero_copy_only=False)] = elements.to_numpy().reshape(-1, size)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(full.ravel()), type=target, mask=array.is_null()
    )


_MEANING = {"arrow.json": Scalar.STRING, "arrow.uuid": Scalar.BLOB}
"""Extension types whose storage is the value, and what it is a value of."""

_SCALARS: dict[Scalar, Callable[[pa.Array, _Target], pa.Array]] = {
    Scalar.STRING: _string,
    Scalar.BLOB: _blob,
    Scalar.BOOL: _bool,
    Scalar.I32: _integer,
    Scalar.I64: _integer,
    Scalar.U32: _integer,
    Scalar.U64: _integer,
    Scalar.F32: _float,
    Scalar.F64: _float,
    Scalar.DATE: _date,
    Scalar.DATETIME: _datetime,
}
