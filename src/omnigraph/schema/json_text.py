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
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.arrow.compute import pc
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
