"""Arrow columns as text: JSON, or plain text for people and CSV.

    batches -> [jsontext] -> export (JSONL that loads back), results of queries

Text is put together column by column with Arrow's string functions; only text that needs escaping
costs a Python object. One place decides how a value is spelled:

    String, Bool, integers    as JSON has them; 64-bit integers are plain numbers
    F32, F64                  the shortest text that reads back as the same value of its width
    not finite                "NaN", "Infinity", "-Infinity" as strings, or refused
    Date, DateTime            "2026-01-31", "2026-01-31T12:00:00.250Z"
    Blob                      "base64:…"
    list, vector, node        array, array, object with its nulls
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.errors import CorruptionError
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.property_values import BLOB_PREFIX

TEXT = pa.large_string()
_BYTES_PER_PIECE = 8 << 20
_NEEDS_ESCAPE = r'["\\\x00-\x1f]'


class NotJsonError(Exception):
    """A value that JSON has no spelling for."""


def join(*fragments: pa.Array | str) -> pa.LargeStringArray:
    """Concatenation row by row; null where a fragment is null."""
    parts = [pa.scalar(f, TEXT) if isinstance(f, str) else f for f in fragments]
    return pc.binary_join_element_wise(*parts, pa.scalar("", TEXT))


def json_text(values: pa.Array, *, finite: bool = False) -> pa.Array:
    """Every value as JSON text; null stays null.

    With ``finite`` a number that is not finite raises ``NotJsonError``; else it becomes a string.
    """
    kind = values.type
    if _is_text(kind):
        return _strings(values)
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return join('"', plain_text(values), '"')
    if pa.types.is_floating(kind):
        return _floats(values, finite=finite)
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(values, finite=finite)
    if pa.types.is_struct(kind):
        return _objects(values, finite=finite)
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind):
        return pa.array([_blob(v) for v in values.to_pylist()], TEXT)
    return values.cast(TEXT)


def plain_text(values: pa.Array) -> pa.Array:
    """Every value as text without quotes; lists and objects as JSON. Null stays null."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        naive = values.cast(pa.timestamp("ms"))
        day = naive.cast(pa.date32(), safe=False).cast(TEXT)
        return join(day, "T", naive.cast(pa.time32("ms"), safe=False).cast(TEXT), "Z")
    if pa.types.is_floating(kind):
        return _named(values, values.cast(TEXT), quote="")
    if _is_text(kind) or pa.types.is_date32(kind):
        return values.cast(TEXT)
    return json_text(values)


def json_objects(batch: pa.RecordBatch) -> pa.Array:
    """Every row as a JSON object, nulls included."""
    return _members(batch.schema.names, batch.columns, finite=False)


def pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of a few megabytes, so that the text in memory stays small."""
    if not batch.num_rows:
        return
    rows = max(1, batch.num_rows * _BYTES_PER_PIECE // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def content(lines: pa.LargeStringArray) -> memoryview:
    """All texts of an array behind each other, without a copy; nulls count as empty."""
    _, offsets, text = lines.buffers()
    if text is None:
        return memoryview(b"")
    bounds = np.frombuffer(offsets, dtype=np.int64)
    return memoryview(text)[bounds[lines.offset] : bounds[lines.offset + len(lines)]]


def write_all(out: BinaryIO, text: memoryview) -> None:
    """Write everything: an unbuffered stream may take only a part at a time."""
    while text:
        text = text[out.write(text) :]


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _strings(values: pa.Array) -> pa.Array:
    escape = pc.fill_null(pc.match_substring_regex(values, _NEEDS_ESCAPE), False)
    values = values.cast(TEXT)
    quoted = join('"', values, '"')
    if not pc.any(escape, min_count=0).as_py():
        return quoted
    escaped = [orjson.dumps(v).decode() for v in values.filter(escape).to_pylist()]
    return pc.replace_with_mask(quoted, escape, pa.array(escaped, TEXT))


def _floats(values: pa.Array, *, finite: bool) -> pa.Array:
    if finite and not pc.all(pc.is_finite(values), min_count=0).as_py():
        raise NotJsonError("JSON cannot carry a number that is not finite")
    return _named(values, values.cast(TEXT), quote='"')


def _named(values: pa.Array, text: pa.Array, *, quote: str) -> pa.Array:
    """The text of floats with our names for those that are not finite."""
    odd = pc.fill_null(pc.invert(pc.is_finite(values)), False)
    if not pc.any(odd, min_count=0).as_py():
        return text
    names = [f"{quote}{_NOT_FINITE[t]}{quote}" for t in text.filter(odd).to_pylist()]
    return pc.replace_with_mask(text, odd, pa.array(names, TEXT))


_NOT_FINITE = {"nan": "NaN", "-nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def _lists(values: pa.Array, *, finite: bool) -> pa.Array:
    # An element that is null would make its whole list null in a join.
    elements = pc.fill_null(json_text(values.flatten(), finite=finite), "null")
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), elements, mask=values.is_null())
    return join("[", pc.binary_join(lists, pa.scalar(",", TEXT)), "]")


def _objects(values: pa.Array, *, finite: bool) -> pa.Array:
    names = [field.name for field in values.type]
    made = _members(names, values.flatten(), finite=finite)
    return pc.if_else(values.is_valid(), made, pa.scalar(None, TEXT)) if values.null_count else made


def _members(names: list[str], columns: list[pa.Array], *, finite: bool) -> pa.Array:
    fragments: list[pa.Array | str] = []
    for name, values in zip(names, columns, strict=True):
        label = json.dumps(name, ensure_ascii=False)
        fragments.append(f"{',' if fragments else '{'}{label}:")
        fragments.append(pc.fill_null(json_text(values, finite=finite), "null"))
    return join(*fragments, "}")


def _blob(value: Any) -> str | None:
    if value is None:
        return None
    return f'"{BLOB_PREFIX}{binascii.b2a_base64(value, newline=False).decode()}"'


# -- json rows -------------------------------------------------------------------------------------
# Writing rows as JSONL that loads back exactly.
#
#     batches of one type -> [export] -> lines
#
# Each cell becomes a fragment such as `,"since":2001`, empty where the value is null, and a line is
# the concatenation of its fragments; how a value is spelled is decided in ``jsontext``.


def write_jsonl(graph_type: GraphType, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    """Write every row as one line; returns how many.

    Batches have the columns of ``table_schema(graph_type)`` in any order, blobs as bytes. `data.id`
    is always there, null properties are left out, members stand in declaration order.
    """
    written = 0
    for batch in batches:
        for piece in pieces(batch):
            lines = _lines(graph_type, piece)
            write_all(out, content(lines))
            written += len(lines)
    return written


def _lines(graph_type: GraphType, batch: pa.RecordBatch) -> pa.LargeStringArray:
    name = json.dumps(graph_type.name)
    if isinstance(graph_type, EdgeType):
        src, dst = json_text(batch.column("src")), json_text(batch.column("dst"))
        fragments = [f'{{"edge":{name},"from":', src, ',"to":', dst, ',"data":{"id":']
    else:
        fragments = [f'{{"type":{name},"data":{{"id":']
    fragments.append(json_text(batch.column("id")))
    return join(*fragments, *members(graph_type, batch), "}}\n")


def members(graph_type: GraphType, batch: pa.RecordBatch) -> list[pa.Array | str]:
    """The properties of each row as fragments to be joined, each after a comma; nulls left out."""
    fragments: list[pa.Array | str] = []
    for field in table_schema(graph_type):
        if field.name in graph_type.system_columns:
            continue
        values = batch.column(field.name)
        if values.null_count == len(values):
            continue
        try:
            text = json_text(values, finite=True)
        except NotJsonError as error:
            raise CorruptionError(f"{graph_type.name}.{field.name}: {error}") from error
        fragments += _optional(f",{json.dumps(field.name)}:", text)
    return fragments


def _optional(label: str, text: pa.Array) -> list[pa.Array | str]:
    if not text.null_count:
        return [label, text]
    return [pc.fill_null(join(label, text), "")]
