"""What people hand to ``load``: files, streams, records, tables, sorted out by their kind.

graph.load(source) -> [sources] -> a reader -> LoadedRows by table key
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa

from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.ids import IdSource
from omnigraph.lang.suggest import did_you_mean
from omnigraph.load.jsonl import JsonlSource, Progress, file_source, read_jsonl
from omnigraph.load.records import rows_from_records
from omnigraph.load.rows import LoadedRows
from omnigraph.load.tables import rows_from_table
from omnigraph.schema.catalog import Catalog, GraphType

_KINDS = (
    "a path or list of paths of JSONL files, a binary stream, dict records, "
    "an Arrow table or DataFrame with type=…, or a mapping of type names to tables"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInput:
    """An input that can be read against a catalog."""

    read: Callable[[Catalog], Mapping[str, LoadedRows]]
    repeatable: bool
    """Whether it can be read a second time."""


def plan_input(
    source: Any, *, type_name: str | None, ids: IdSource, progress: Progress | None
) -> PlannedInput:
    """Decide how to read ``source``; nothing is read yet."""
    if type_name is not None:
        return _tables({type_name: source}, ids)
    if isinstance(source, (str, os.PathLike)):
        return _files([source], ids, progress)
    if isinstance(source, JsonlSource):
        return _jsonl([source], ids, progress, repeatable=False)
    if hasattr(source, "read"):
        stream = cast(BinaryIO, source)
        name = str(getattr(source, "name", "<stream>"))
        return _jsonl(
            [JsonlSource(name=name, open=lambda: stream)], ids, progress, repeatable=False
        )
    if isinstance(source, Mapping):
        if source and all(isinstance(k, str) and _is_table(v) for k, v in source.items()):
            return _tables(source, ids)
        raise UsageError("cannot load from this mapping", hint=f"load takes {_KINDS}")
    if _is_table(source):
        raise UsageError("a table needs its type", hint='say load(table, type="Person")')
    if isinstance(source, Sequence) and source:
        if all(isinstance(s, (str, os.PathLike)) for s in source):
            return _files(source, ids, progress)
        if all(isinstance(s, JsonlSource) for s in source):
            return _jsonl(source, ids, progress, repeatable=False)
    if isinstance(source, Iterable):
        return PlannedInput(
            read=lambda catalog: rows_from_records(source, catalog, ids),
            repeatable=isinstance(source, Sequence),
        )
    raise UsageError(f"cannot load from {type(source).__name__}", hint=f"load takes {_KINDS}")


def _files(
    paths: Iterable[str | os.PathLike[str]], ids: IdSource, progress: Progress | None
) -> PlannedInput:
    sources = [file_source(os.fspath(path)) for path in paths]
    return _jsonl(sources, ids, progress, repeatable=True)


def _jsonl(
    sources: Sequence[JsonlSource], ids: IdSource, progress: Progress | None, *, repeatable: bool
) -> PlannedInput:
    return PlannedInput(
        read=lambda catalog: read_jsonl(sources, catalog, ids, progress=progress),
        repeatable=repeatable,
    )


def _tables(tables: Mapping[str, Any], ids: IdSource) -> PlannedInput:
    def read(catalog: Catalog) -> dict[str, LoadedRows]:
        loaded: dict[str, LoadedRows] = {}
        for name, table in tables.items():
            graph_type = _type(catalog, name)
            loaded[graph_type.table_key] = rows_from_table(graph_type, table, ids, source_name=name)
        return loaded

    repeatable = not any(isinstance(t, pa.RecordBatchReader) for t in tables.values())
    return PlannedInput(read=read, repeatable=repeatable)


def _type(catalog: Catalog, name: str) -> GraphType:
    found = catalog.nodes.get(name) or catalog.edge(name)
    if found is None:
        known = [t.name for t in catalog.types()]
        raise NotFoundError(
            f"no type '{name}' in this graph",
            kind=ErrorKind.TYPE_NOT_FOUND,
            hint=did_you_mean(name, known) or f"it has {', '.join(known)}",
            details={"type_name": name},
        )
    return found


def _is_table(value: Any) -> bool:
    if isinstance(value, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)):
        return True
    # pandas is optional: a DataFrame is recognised without importing it.
    return type(value).__module__.partition(".")[0] == "pandas"
