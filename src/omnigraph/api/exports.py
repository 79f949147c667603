"""A snapshot as a folder of CSV or Parquet files, a file a type, written by this process.

    snapshot -> [exports] -> out/nodes/Person/part-00000.csv …  out/_export.json

The layout is that of an export on Spark. ``_export.json`` is written last: where it is, the export
is complete. Nothing is left behind if it fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.errors import UsageError
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.table_text import write_csv, write_parquet
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects
from omnigraph.storage.streams import open_output, remove_below

MARKER = "_export.json"
Batches = Callable[[GraphType], Iterable[pa.RecordBatch]]


def export_folder(
    types: Sequence[GraphType],
    batches: Batches,
    out: str | os.PathLike[str],
    *,
    format: str,
    commit_id: str,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Write these types to an empty folder or ``s3://`` prefix; what ``_export.json`` says."""
    location = locate(out)
    objects = Objects(location, create=True)
    if next(iter(objects.names("")), None) is not None:
        raise UsageError(f"{location.uri} is not empty", hint="export to a new folder or prefix")
    write = write_csv if format == "csv" else write_parquet
    done: list[dict[str, Any]] = []
    total = 0

    def counted(graph_type: GraphType, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        nonlocal total
        for batch in batches(graph_type):
            yield batch.cast(schema)
            total += batch.num_rows
            if progress is not None:
                progress(total)

    try:
        for graph_type in types:
            name = f"{graph_type.kind}s/{graph_type.name}/part-00000.{format}"
            schema, before = table_schema(graph_type), total
            with open_output(location, name) as file:
                write(schema, counted(graph_type, schema), file)
            kind = {"type": graph_type.name, "kind": graph_type.kind}
            done.append({**kind, "rows": total - before, "files": [name]})
    except BaseException:
        for folder in ("nodes", "edges"):
            remove_below(location, folder)
        raise
    told = {"format": format, "graph_commit_id": commit_id, "rows": total, "types": done}
    objects.put(MARKER, json.dumps(told, indent=1).encode())
    return told
