"""CSV in a task: rows of one type, columns by the header.

    unit -> blocks of whole records -> Arrow's CSV reader | cell by cell -> [csv] -> pieces

A block goes through Arrow as a whole. If anything in it is unusual it is read record by record,
which finds every mistake and its line. The two agree (`records` and `cells` say on what).

A range begins behind a newline without knowing whether that stands within quotes. It assumes not,
and says which bytes it has read; ranges that fit together prove all assumptions, from the first
range on, and if they do not fit the file is read again by one task.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.json as pj

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import one_array
from omnigraph.errors import InternalError
from omnigraph.input.csv_records import (
    Cell,
    CsvRecords,
    CutRecords,
    cells_of,
    cut_records,
    has_lone_returns,
    quotes_are_regular,
)
from omnigraph.input.jsonl_blocks import LINE_BYTES_MAX
from omnigraph.input.jsonl_exact import RowCollector
from omnigraph.input.loaded_rows import InputPiece
from omnigraph.input.problems import Problem
from omnigraph.input.ranges import Block, text_blocks
from omnigraph.input.record_shape import ShapedRow
from omnigraph.input.streams import SourceReader
from omnigraph.input.table_shape import NULL_ENDPOINT, property_type_of, typed_piece
from omnigraph.input.units import InputUnit, PlannedFile
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, GraphType, PropertyType, Scalar
from omnigraph.schema.property_columns import ColumnRefused, to_column
from omnigraph.schema.property_values import Converter, NumberText, ValueRefused, converter
from omnigraph.schema.strict_json import LineRefused, parse_line

_RECORDS_AT_ONCE = 8192


def csv_blocks(unit: InputUnit, reader: SourceReader) -> Iterator[Block]:
    """The records of a unit. Raises ``UnreadableInput``."""
    return text_blocks(unit, reader, CsvRecords())


def csv_pieces(unit: InputUnit, catalog: Catalog) -> Callable[[Block], Iterator[InputPiece]]:
    """The function that reads a block, in the order of its records."""
    return lambda block: read_csv_block(block, unit.planned, catalog)


def read_csv_block(block: Block, planned: PlannedFile, catalog: Catalog) -> Iterator[InputPiece]:
    """One block of whole records as pieces."""
    shape = planned.shape
    if shape is None:
        raise InternalError("a CSV file without a shape")
    graph_type = catalog.table(shape.table_key)
    records = cut_records(block.text)
    skip = int(np.searchsorted(records.starts, planned.header_stop - block.start))
    whole = _read_columns(records, skip, planned, graph_type)
    single = whole is None or bool(whole.problems)
    pieces = _read_records(records, skip, planned, graph_type) if single else (whole,)
    checksum, span = zlib.crc32(block.text), (block.start, block.stop)
    for piece in pieces:
        if piece is not None:
            span_known = None if planned.in_order else span
            yield replace(piece, checksum=checksum, span=span_known)


# -- whole columns -------------------------------------------------------------------------------


def _read_columns(
    records: CutRecords, skip: int, planned: PlannedFile, graph_type: GraphType
) -> InputPiece | None:
    """The block through Arrow, None to decline."""
    shape, lines = planned.shape, records.lines[skip:]
    start = int(records.starts[skip]) if len(lines) else len(records.text)
    text = records.text[start:]
    if shape is None or not records.closed or has_lone_returns(text):
        return None
    if len(lines) and int((records.stops - records.starts).max()) > LINE_BYTES_MAX:
        return None
    if not lines.size:
        return InputPiece(parts=(), problems=(), line_count=records.line_count)
    if not quotes_are_regular(text, planned.delimiter):
        return None
    try:
        text.decode()
        table = _parse(text, planned)
        if table.num_rows != len(lines):
            return None
        arrays = {
            name: column_of(one_array(table.column(place)), property_type_of(graph_type, name))
            for place, (name, _) in enumerate(shape.columns)
        }
    except (pa.ArrowException, ColumnRefused, UnicodeDecodeError):
        return None
    if any(arrays[end].null_count for end in graph_type.end_columns):
        return None
    return typed_piece(graph_type, arrays, lines, records.line_count)


def _parse(text: bytes, planned: PlannedFile) -> pa.Table:
    """The wanted columns as text, in the order of the shape."""
    # By place and not by name: a column that is not wanted may be called as another one.
    names = [str(place) for place in range(len(planned.header))]
    columns = planned.shape.columns if planned.shape else ()
    wanted = [names[planned.header.index(column)] for _, column in columns]
    return pcsv.read_csv(
        pa.BufferReader(text),
        read_options=pcsv.ReadOptions(
            use_threads=False, block_size=len(text) + 1, column_names=names
        ),
        parse_options=pcsv.ParseOptions(
            delimiter=planned.delimiter, newlines_in_values=b'"' in text, ignore_empty_lines=True
        ),
        convert_options=pcsv.ConvertOptions(
            column_types={name: pa.string() for name in wanted},
            include_columns=wanted,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            check_utf8=True,
        ),
    )


# -- record by record ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """One column of the table and the cell that fills it."""

    name: str
    label: str
    cell: int
    kind: PropertyType
    convert: Converter
    is_end: bool


def _read_records(
    records: CutRecords, skip: int, planned: PlannedFile, graph_type: GraphType
) -> Iterator[InputPiece]:
    """Every record on its own, every problem with its line; few records at a time."""
    columns = [
        _Column(
            name=name,
            label=column,
            cell=planned.header.index(column),
            kind=(kind := property_type_of(graph_type, name)),
            convert=cell_converter(kind),
            is_end=name in graph_type.end_columns,
        )
        for name, column in (planned.shape.columns if planned.shape else ())
    ]
    count, before = len(records.starts), 0
    for start in range(skip, max(count, skip + 1), _RECORDS_AT_ONCE):
        stop = min(start + _RECORDS_AT_ONCE, count)
        lines = records.line_count if stop >= count else int(records.lines[stop]) - 1
        some = ((int(records.lines[i]) - before, records.raw(i)) for i in range(start, stop))
        yield _read_some(some, lines - before, planned, columns, graph_type)
        before = lines


def _read_some(
    records: Iterable[tuple[int, bytes]],
    line_count: int,
    planned: PlannedFile,
    columns: Sequence[_Column],
    graph_type: GraphType,
) -> InputPiece:
    collector = RowCollector()
    problems: list[Problem] = []
    texts: dict[int, bytes] = {}
    for line, raw in records:
        texts[line] = raw
        values = _record_values(raw, planned, columns)
        if isinstance(values, dict):
            collector.add(ShapedRow(type=graph_type, values=values), line)
        else:
            problems += [Problem(line=line, column=p.column, message=p.message) for p in values]
    parts, mismatches = collector.parts(_RECORDS_AT_ONCE)
    return InputPiece(
        parts=parts,
        problems=sorted([*problems, *mismatches], key=lambda p: p.line or 0),
        line_count=line_count,
        text_of=texts.get,
    )


def _record_values(
    raw: bytes, planned: PlannedFile, columns: Sequence[_Column]
) -> dict[str, object] | list[Problem]:
    if len(raw) > LINE_BYTES_MAX:
        message = f"the record is longer than {LINE_BYTES_MAX >> 20} MiB"
        return [Problem(message=f"{message} (is a quote not closed?)")]
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        place = f"byte 0x{raw[error.start]:02x} at byte {error.start + 1} of the record"
        return [Problem(message=f"not valid UTF-8: {place}")]
    cells = cells_of(text, planned.delimiter)
    if isinstance(cells, Problem):
        return [cells]
    if len(cells) != len(planned.header):
        return [Problem(message=f"expected {len(planned.header)} values, got {len(cells)}")]
    values: dict[str, object] = {}
    problems: list[Problem] = []
    for column in columns:
        cell, message = cells[column.cell], None
        if is_null(cell, column.kind):
            message = NULL_ENDPOINT if column.is_end else None
        else:
            try:
                values[column.name] = column.convert(cell.text)
            except ValueRefused as refused:
                message = str(refused)
        if message is not None:
            problems.append(Problem(message=f"column '{column.label}': {message}"))
    return problems or values


# -- csv cells -------------------------------------------------------------------------------------
# Cells of CSV as values of properties: one at a time, and whole columns.
#
#     text of a cell -> [cells] -> what `load.values` takes -> value | message
#
# A cell has no type of its own, so the schema decides: a number is written as in JSON (blanks
# around it do not matter), a boolean is `true` or `false` in any case, days and instants as ISO
# 8601, bytes as `base64:…`, lists and vectors as JSON arrays. An empty cell is null; a quoted empty
# one is the empty text where text is wanted. Whole columns may refuse more than single cells do,
# and never accept more.


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
