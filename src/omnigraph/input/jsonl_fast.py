"""The fast path: whole groups of lines through `pyarrow.json`, without a Python object per line.

    block -> groups of equal header -> [fast] -> parts; what it declines -> exact

Lines that begin with the same header (`{"type":"Person",` as spelled) are of one type, so they can
be parsed with that type's own schema. Whenever anything looks unusual the group is declined, in
whole or in part; `exact` then decides. The fast path must never accept what `exact` refuses.

Why one parsed row is one line. The parser is fed line after line and would accept two objects in
one line, or one object over two lines. Every line here begins with `{` and ends with `}`, and
between these two bytes JSON allows nothing but a boundary between two documents (inside of a
string, the newline between them would be refused). So each line holds one or more whole objects,
and an equal number of rows and lines makes it exactly one.

Why the header is cut off. `{"type":"Person","data":…}` is parsed as `{"data":…}`: a quarter of the
work is gone, and a second `type` later in the line becomes an unexpected member. Cutting can turn a
malformed line into a valid one only if nothing follows the comma; then `data` (nodes) or `from`
(edges) is missing, and the group is declined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as pj

from omnigraph.arrow.sets import one_array
from omnigraph.input.loaded_rows import settle_ids
from omnigraph.schema.arrow import arrow_type, table_schema
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, PropertyType, Scalar
from omnigraph.schema.property_columns import ColumnRefused, to_column
from omnigraph.schema.strict_json import LineRefused, parse_line

_HEADER = re.compile(rb'\{[ \t]*"(type|edge)"[ \t]*:[ \t]*"([A-Za-z0-9_]+)"[ \t]*,')
_ODD_START = re.compile(
    rb'\{[ \t]*"(?:(?:type|edge)"[ \t]*:[ \t]*"[^"\\\n]*"[ \t]*[,}]|(?!type"|edge")[^"\\\n]*")'
)
_DATA = re.compile(rb'"data"')
_NULL_DATA = re.compile(rb'"data"[ \t\r\n]*:[ \t\r\n]*null|\\u')
HEADER_BYTES_MAX = 256
_TEXT = PropertyType(scalar=Scalar.STRING)
_TEMPORAL = (Scalar.DATE, Scalar.DATETIME)
_OPEN = ord("{")

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """How the first lines of a group begin."""

    type: GraphType
    prefix: bytes
    """Up to and including the comma."""


def header_of(line_start: bytes, catalog: Catalog) -> Header | None:
    """The header of a line, None when it is unusual or names no type."""
    match = _HEADER.match(line_start)
    if match is None:
        return None
    name = match[2].decode()
    graph_type = catalog.nodes.get(name) if match[1] == b"type" else catalog.edge(name)
    return None if graph_type is None else Header(type=graph_type, prefix=match[0])


def odd_start(line_start: bytes) -> bytes | None:
    """How an unusual line begins, so that others of its kind are recognised with it."""
    match = _ODD_START.match(line_start)
    return None if match is None else match[0]


def parse_group(header: Header, text: bytes, starts: Indices, stops: Indices) -> pa.Table | None:
    """The rows of the lines ``text[start:stop]``, None to decline.

    Every line begins with the header and ends with `}` and a newline; lines ascend.
    """
    lines = _without_header(text, starts + (len(header.prefix) - 1), stops)
    try:
        if not _is_utf8(lines):
            return None
        sample = _sample(text[starts[0] : stops[0]])
        # Edges without properties are common, and columns full of nulls are not free.
        bare = sample is None and isinstance(header.type, EdgeType) and not _DATA.search(lines.data)
        parsed = _parse(lines, _json_schema(header.type, None if bare else sample or {}))
        if parsed.num_rows != len(starts):
            return None
        rows = _to_rows(header.type, parsed, lines)
        if rows is None:
            return None
        settled, mismatches = settle_ids(header.type, rows)
        return None if mismatches else settled
    except (pa.ArrowException, ColumnRefused, UnicodeDecodeError):
        return None


def _without_header(text: bytes, starts: Indices, stops: Indices) -> npt.NDArray[np.uint8]:
    """The lines one after another, each from its start on, with `{` for the first byte."""
    # Arrow copies faster than any index arithmetic here: the wanted pieces and the gaps between
    # them are the elements of one array over the text, and every second one is taken.
    offsets = np.empty(2 * len(starts), dtype=np.int64)
    offsets[0::2], offsets[1::2] = starts, stops
    pieces = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
    wanted = pieces.take(pa.array(np.arange(0, len(offsets) - 1, 2)))
    lines = np.frombuffer(wanted.buffers()[2], dtype=np.uint8)
    first = np.frombuffer(wanted.buffers()[1], dtype=np.int64)[: len(starts) + 1]
    lines = lines[: first[-1]].copy()
    lines[first[:-1]] = _OPEN
    return lines


def _is_utf8(text: npt.NDArray[np.uint8]) -> bool:
    """Checked here because the parser does not; a newline never stands within a character."""
    if not len(text) or text.max() < 0x80:
        return True
    offsets = np.array([0, len(text)], dtype=np.int64)
    whole = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    )
    try:
        whole.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


def _parse(text: npt.NDArray[np.uint8], schema: pa.Schema) -> pa.Table:
    return pj.read_json(
        pa.BufferReader(pa.py_buffer(text)),
        # One block: the text is small, and threads are the caller's business.
        read_options=pj.ReadOptions(use_threads=False, block_size=len(text) + 1),
        parse_options=pj.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="error", newlines_in_values=False
        ),
    )


def _sample(line: bytes) -> dict[str, Any] | None:
    """The properties of a line, to see how this input spells days and instants; None: no `data`."""
    try:
        record = parse_line(line)
    except LineRefused:
        return {}
    if not isinstance(record, dict) or "data" not in record:
        return None
    sample = cast("dict[str, Any]", record)["data"]
    return cast("dict[str, Any]", sample) if isinstance(sample, dict) else {}


def _json_schema(graph_type: GraphType, sample: dict[str, Any] | None) -> pa.Schema:
    """What to parse lines of this type as; without ``data`` when there is no sample of it."""
    members: list[pa.Field] = []
    if isinstance(graph_type, EdgeType):
        members += [pa.field("from", pa.string()), pa.field("to", pa.string())]
    if sample is not None:
        own = [
            pa.field(p.name, _json_type(p.type, sample.get(p.name)))
            for p in graph_type.properties
            if p.name != "id"
        ]
        members.append(pa.field("data", pa.struct([pa.field("id", pa.string()), *own])))
    return pa.schema(members)


def _json_type(property_type: PropertyType, sample: Any) -> pa.DataType:
    """The type to parse a property as; `to_column` takes it from there."""
    scalar = property_type.scalar
    if property_type.vector_size is not None:
        return pa.list_(pa.float32())
    if isinstance(sample, list):
        sample = sample[0] if sample else None
    if scalar in _TEMPORAL:
        element = pa.int64() if isinstance(sample, int) else pa.string()
    elif scalar is Scalar.BLOB:
        element = pa.string()
    else:
        element = arrow_type(PropertyType(scalar=scalar))
    return pa.list_(pa.field("item", element)) if property_type.is_list else element


def _to_rows(
    graph_type: GraphType, parsed: pa.Table, text: npt.NDArray[np.uint8]
) -> pa.Table | None:
    columns: dict[str, pa.Array] = {}
    if isinstance(graph_type, EdgeType):
        columns = {"src": one_array(parsed.column("from")), "dst": one_array(parsed.column("to"))}
        if any(c.null_count for c in columns.values()):
            return None
    if "data" in parsed.column_names:
        properties = one_array(parsed.column("data"))
        # An edge may go without `data`, but `"data":null` is refused, and here they look alike.
        if properties.null_count and (not columns or _NULL_DATA.search(text.data)):
            return None
        fields = zip(properties.type, properties.flatten(), strict=True)
        columns |= {field.name: column for field, column in fields}
    schema = table_schema(graph_type)
    by_name = graph_type.by_name
    absent = pa.nulls(parsed.num_rows)
    arrays = [
        to_column(columns.get(name, absent), by_name[name].type if name in by_name else _TEXT)
        for name in schema.names
    ]
    return pa.Table.from_arrays(arrays, schema=schema)
