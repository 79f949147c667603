"""One column of a table that no schema describes yet: which type holds all of its values.

    column -> [columns] -> ColumnFacts -> schema

Text, as CSV has it, is tried against the types with the loader's own conversions, so that what is
found here can be loaded. Columns that have a type keep it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import one_array
from omnigraph.input.csv import column_of
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.property_columns import ColumnRefused

ENUM_WORDS_MAX = 12
ENUM_ROWS_EACH = 5
"""So often every word of an enum is used at least, on average."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LEADING_ZERO = r"^[+-]?0[0-9]"
_TEXTUAL = (
    "Bool", "I64", "U64", "F64", "Date", "DateTime", "[I64]", "[F64]", "[String]",
)  # fmt: skip
"""What text may stand for, the narrowest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What is known of a column."""

    name: str
    type: str | None
    """In words of the schema language; None if no type holds it."""
    rows: int
    nulls: int
    texts: pa.StringArray
    """The distinct values as ids spell them; empty if they are no ids."""
    was_text: bool

    @property
    def identifies(self) -> bool:
        """Whether every row has a value of its own."""
        return self.rows > 0 and not self.nulls and len(self.texts) == self.rows

    @property
    def enum(self) -> tuple[str, ...]:
        """The few words that the column consists of, if it does."""
        count = len(self.texts)
        if self.type != "String" or not 1 < count <= ENUM_WORDS_MAX:
            return ()
        words = tuple(self.texts.to_pylist())
        often = self.rows - self.nulls >= ENUM_ROWS_EACH * count
        return words if often and all(map(_WORD.fullmatch, words)) else ()


def facts_of(name: str, values: pa.ChunkedArray, *, is_text: bool) -> ColumnFacts:
    """Look at a column; ``is_text`` if it comes from a file that knows nothing but text."""
    column = one_array(values)
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    empty = pa.types.is_string(column.type) and is_text
    if empty:  # An empty cell is null.
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    found = _of_text(column) if is_text else _of_arrow(column)
    ids = found in ("String", "I32", "I64", "U32", "U64")
    texts = pc.unique(column.drop_null()).cast(pa.string()) if ids else pa.array([], pa.string())
    return ColumnFacts(
        name=name,
        type=found,
        rows=len(column),
        nulls=column.null_count,
        texts=texts,
        was_text=is_text,
    )


def _of_text(column: pa.Array) -> str:
    filled = column.drop_null()
    if not len(filled):
        return "String"
    # A number with a leading zero is a code: as a number it would lose it.
    codes = pc.any(pc.match_substring_regex(filled, _LEADING_ZERO)).as_py()
    for word in _TEXTUAL:
        numeric = word in ("I64", "U64", "F64")
        if not (numeric and codes) and _fits(column, word):
            return word
    return "String"


def _fits(column: pa.Array, word: str) -> bool:
    scalar = Scalar(word.strip("[]"))
    property_type = PropertyType(scalar=scalar, is_list=word.startswith("["), nullable=True)
    if property_type.is_list and not pc.all(pc.starts_with(column.drop_null(), "[")).as_py():
        return False
    try:
        column_of(column, property_type)
    except (ColumnRefused, pa.ArrowException):
        return False
    return True


_EXACT = {
    pa.bool_(): "Bool",
    pa.int64(): "I64",
    pa.uint64(): "U64",
    pa.uint32(): "U32",
    pa.float32(): "F32",
    pa.float16(): "F32",
    pa.float64(): "F64",
    pa.date32(): "Date",
    pa.date64(): "Date",
    pa.string(): "String",
    pa.null(): "String",
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), "I32"),
    **dict.fromkeys((pa.uint8(), pa.uint16()), "U32"),
    **dict.fromkeys((pa.binary(), pa.large_binary()), "Blob"),
}


def _of_arrow(column: pa.Array) -> str | None:
    kind = column.type
    if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type):
        return f"Vector({kind.list_size})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = _of_arrow(pa.array([], kind.value_type))
        return f"[{inner}]" if inner in {*_EXACT.values()} - {"Blob"} else None
    if pa.types.is_timestamp(kind):
        return "DateTime"
    if pa.types.is_large_string(kind):
        return "String"
    return _EXACT.get(kind)
