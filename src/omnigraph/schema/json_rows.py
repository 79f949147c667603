"""Writing rows as JSONL that loads back exactly.

    batches of one type -> [export] -> lines

Each cell becomes a fragment such as `,"since":2001`, empty where the value is null, and a line is
the concatenation of its fragments; how a value is spelled is decided in ``jsontext``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import BinaryIO

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.errors import CorruptionError
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.json_text import NotJsonError, content, join, json_text, pieces, write_all


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
