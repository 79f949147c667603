"""Cells of CSV as values of properties: one at a time, and whole columns.

    text of a cell -> [cells] -> what `load.values` takes -> value | message

A cell has no type of its own, so the schema decides: a number is written as in JSON (blanks around
it do not matter), a boolean is `true` or `false` in any case, days and instants as ISO 8601, bytes
as `base64:…`, lists and vectors as JSON arrays. An empty cell is null; a quoted empty one is the
empty text where text is wanted. Whole columns may refuse more than single cells do, and never
accept more.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from omnigraph.arrow.compute import pc
from omnigraph.input.csv_records import Cell
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.property_columns import ColumnRefused, to_column
from omnigraph.schema.property_values import Converter, NumberText, converter
from omnigraph.schema.strict_json import LineRefused, parse_line

_INTEGER = r"^-?(?:0|[1-9][0-9]{0,18})$"
_FLOAT = r"^-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,5})?$"
_NUMBERS = r"^\[[-+0-9.eE, ]*\]$"
_BLANKS = " \t\r\n"
_BOOLEANS = {"true": True, "false": False}


def is_null(cell: Cell, property_type: PropertyType) -> bool:
    """Whether a cell holds no value."""
    return not cell.text and not (cell.quoted and _is_text(property_type))


def cell_converter(property_type: PropertyType) -> Converter:
    """The function that turns the text of a cell that is not null into a value."""
    convert = converter(property_type)
    return lambda text: convert(_as_json(text, property_type))


def _is_text(property_type: PropertyType) -> bool:
    return property_type.scalar is Scalar.STRING and not property_type.is_list


def _as_json(text: str, property_type: PropertyType) -> Any:
    """What stands in the cell, as JSON would have said it; the text itself if it is something else.

    The converter then refuses the text with the words it has for a text.
    """
    scalar = property_type.scalar
    is_list = property_type.is_list or property_type.vector_size is not None
    if not is_list and scalar is Scalar.BOOL:
        return _BOOLEANS.get(text.lower(), text)
    if not is_list and not scalar.is_numeric:
        return text
    try:
        value = parse_line(text.encode())
    except (LineRefused, UnicodeEncodeError):
        return text
    wanted = list if is_list else (int, NumberText)
    return value if isinstance(value, wanted) and not isinstance(value, bool) else text


def column_of(texts: pa.Array, property_type: PropertyType) -> pa.Array:
    """A column of cells, null where a cell is empty. Raises ColumnRefused or an Arrow error."""
    if _is_text(property_type):
        return to_column(texts, property_type)
    texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
    if property_type.is_list or property_type.vector_size is not None:
        return to_column(_arrays(texts, property_type), property_type)
    scalar = property_type.scalar
    if scalar is Scalar.BOOL:
        lower = pc.ascii_lower(texts)
        _require(pc.is_in(lower, value_set=pa.array(list(_BOOLEANS))), texts)
        return to_column(pc.equal(lower, "true"), property_type)
    if scalar.is_numeric:
        texts = pc.ascii_trim(texts, characters=_BLANKS)
        _require(pc.match_substring_regex(texts, _FLOAT if scalar.is_float else _INTEGER), texts)
        texts = texts.cast(arrow_type(PropertyType(scalar=scalar)))
    return to_column(texts, property_type)


def _require(fits: pa.BooleanArray, texts: pa.Array) -> None:
    if not pc.all(pc.or_(pc.fill_null(fits, False), texts.is_null()), min_count=0).as_py():
        raise ColumnRefused("a cell is not written as its type asks")


def _arrays(texts: pa.Array, property_type: PropertyType) -> pa.Array:
    """Arrays of numbers through Arrow's JSON reader: every cell is one line, and one row."""
    scalar = Scalar.F32 if property_type.vector_size is not None else property_type.scalar
    if not scalar.is_numeric:
        raise ColumnRefused("not a list of numbers")
    _require(pc.match_substring_regex(texts, _NUMBERS), texts)
    rows = pc.binary_join_element_wise('{"v":', pc.fill_null(texts, "null"), "}\n", "")
    text = "".join(rows.to_pylist()).encode()
    parsed = pj.read_json(
        pa.BufferReader(text),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([("v", pa.list_(arrow_type(PropertyType(scalar=scalar))))]),
            unexpected_field_behavior="error",
        ),
    )
    if parsed.num_rows != len(texts):
        raise ColumnRefused("a cell is not one list")
    return parsed.column("v").combine_chunks()
