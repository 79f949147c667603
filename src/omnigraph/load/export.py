"""Writing rows as JSONL that loads back exactly.

    batches of one type -> [export] -> lines

Lines are put together column by column with Arrow's string functions: each cell becomes a fragment
such as `,"since":2001`, empty where the value is null, and a line is the concatenation of its
fragments. Only text that needs escaping costs a Python object.
"""

# pyarrow.compute fills itself with functions when it is imported; a type checker sees none of them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import binascii
import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import CorruptionError
from omnigraph.load.values import BLOB_PREFIX
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, GraphType, PropertyType, Scalar

_BYTES_PER_WRITE = 8 << 20
_NEEDS_ESCAPE = r'["\\\x00-\x1f]'
_TEXT = pa.large_string()


class _NotJson(Exception):
    """A stored value that JSON has no spelling for."""


def write_jsonl(graph_type: GraphType, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> int:
    """Write every row as one line; returns how many.

    Batches have the columns of ``table_schema(graph_type)`` in any order, blobs as bytes. `data.id`
    is always there, null properties are left out, members stand in declaration order.
    """
    written = 0
    for batch in batches:
        for piece in _pieces(batch):
            lines = _lines(graph_type, piece)
            _, offsets, text = lines.buffers()
            if text is not None:
                bounds = np.frombuffer(offsets, dtype=np.int64)
                first, last = bounds[lines.offset], bounds[lines.offset + len(lines)]
                _write_all(out, memoryview(text)[first:last])
            written += len(lines)
    return written


def _write_all(out: BinaryIO, content: memoryview) -> None:
    """Write everything: an unbuffered stream may take only a part at a time."""
    while content:
        content = content[out.write(content) :]


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Slices of a few megabytes, so that the text in memory stays small."""
    if not batch.num_rows:
        return
    rows = max(1, batch.num_rows * _BYTES_PER_WRITE // max(batch.nbytes, 1))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _lines(graph_type: GraphType, batch: pa.RecordBatch) -> pa.LargeStringArray:
    name = json.dumps(graph_type.name)
    if isinstance(graph_type, EdgeType):
        src, dst = _strings(batch.column("src")), _strings(batch.column("dst"))
        fragments = [f'{{"edge":{name},"from":', src, ',"to":', dst, ',"data":{"id":']
    else:
        fragments = [f'{{"type":{name},"data":{{"id":']
    fragments.append(_strings(batch.column("id")))
    for field in table_schema(graph_type):
        if field.name in graph_type.system_columns:
            continue
        values = batch.column(field.name)
        if values.null_count == len(values):
            continue
        try:
            text = _json_text(values, graph_type.by_name[field.name].type)
        except _NotJson as error:
            raise CorruptionError(f"{graph_type.name}.{field.name}: {error}") from error
        fragments += _optional(f",{json.dumps(field.name)}:", text)
    return _join(*fragments, "}}\n")


def _optional(label: str, text: pa.Array) -> list[pa.Array | str]:
    if not text.null_count:
        return [label, text]
    return [pc.fill_null(_join(label, text), "")]


def _join(*fragments: pa.Array | str) -> pa.LargeStringArray:
    """Concatenation row by row; null where a fragment is null."""
    parts = [pa.scalar(f, _TEXT) if isinstance(f, str) else f for f in fragments]
    return pc.binary_join_element_wise(*parts, pa.scalar("", _TEXT))


def _json_text(values: pa.Array, property_type: PropertyType) -> pa.Array:
    if property_type.vector_size is not None:
        return _lists(values, Scalar.F32)
    if property_type.is_list:
        return _lists(values, property_type.scalar)
    return _scalars(values, property_type.scalar)


def _lists(values: pa.Array, scalar: Scalar) -> pa.Array:
    elements = _scalars(values.flatten(), scalar)
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), elements, mask=values.is_null())
    return _join("[", pc.binary_join(lists, pa.scalar(",", _TEXT)), "]")


def _scalars(values: pa.Array, scalar: Scalar) -> pa.Array:
    if scalar is Scalar.STRING:
        return _strings(values)
    if scalar is Scalar.BLOB:
        return _blobs(values)
    if scalar is Scalar.DATE:
        return _join('"', values.cast(pa.date32()).cast(_TEXT), '"')
    if scalar is Scalar.DATETIME:
        return _instants(values)
    if scalar.is_float and not pc.all(pc.is_finite(values), min_count=0).as_py():
        raise _NotJson("JSON cannot carry a number that is not finite")
    # Arrow prints a float as the shortest text that reads back as the same value of its width.
    return values.cast(_TEXT)


def _strings(values: pa.Array) -> pa.Array:
    escape = pc.fill_null(pc.match_substring_regex(values, _NEEDS_ESCAPE), False)
    values = values.cast(_TEXT)
    quoted = _join('"', values, '"')
    if not pc.any(escape, min_count=0).as_py():
        return quoted
    escaped = [orjson.dumps(v).decode() for v in values.filter(escape).to_pylist()]
    return pc.replace_with_mask(quoted, escape, pa.array(escaped, _TEXT))


def _blobs(values: pa.Array) -> pa.Array:
    return pa.array([_blob(v) for v in values.to_pylist()], _TEXT)


def _blob(value: Any) -> str | None:
    if value is None:
        return None
    return f'"{BLOB_PREFIX}{binascii.b2a_base64(value, newline=False).decode()}"'


def _instants(values: pa.Array) -> pa.Array:
    naive = values.cast(pa.timestamp("ms"))
    day = naive.cast(pa.date32(), safe=False).cast(_TEXT)
    time_of_day = naive.cast(pa.time32("ms"), safe=False).cast(_TEXT)
    return _join('"', day, "T", time_of_day, 'Z"')
