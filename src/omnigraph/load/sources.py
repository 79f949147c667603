"""What people hand to ``load``: files, streams, records, tables, sorted out by their kind.

graph.load(source) -> [sources] -> a reader -> LoadedRows by table key
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import pyarrow as pa

from omnigraph.errors import InputError, UsageError
from omnigraph.ids import IdSource
from omnigraph.load.jsonl import JsonlSource, Progress, file_source, read_jsonl
from omnigraph.load.records import rows_from_records
from omnigraph.load.rows import LoadedRows
from omnigraph.load.tables import is_frame, is_series, rows_from_table
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.lookup import type_named

_KINDS = (
    "a path or list of paths of JSONL files, a binary stream, dict records, "
    "an Arrow table, DataFrame or dict rows with type=…, or a mapping of type names to these"
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
    if is_series(source):
        raise _no_table(source)
    if type_name is not None:
        return _of_one_type(source, type_name, ids)
    if isinstance(source, (str, os.PathLike)):
        return _files([_path(source)], ids, progress)
    if isinstance(source, JsonlSource):
        return _jsonl([source], ids, progress, repeatable=False)
    if hasattr(source, "read"):
        return _jsonl([_stream(source)], ids, progress, repeatable=False)
    if isinstance(source, Mapping):
        return _mapping(source, ids)
    if _is_table(source):
        raise UsageError("a table needs its type", hint='say load(table, type="Person")')
    if isinstance(source, (bytes, bytearray, memoryview)):
        raise UsageError("bytes are not a source", hint="wrap them: load(io.BytesIO(content))")
    if isinstance(source, Sequence) and source:
        if all(isinstance(s, (str, os.PathLike)) for s in source):
            return _files([_path(s) for s in source], ids, progress)
        if all(isinstance(s, JsonlSource) for s in source):
            return _jsonl(source, ids, progress, repeatable=False)
    if isinstance(source, Iterable):
        return PlannedInput(
            read=lambda catalog: rows_from_records(source, catalog, ids),
            repeatable=isinstance(source, Sequence),
        )
    raise UsageError(f"cannot load from {type(source).__name__}", hint=f"load takes {_KINDS}")


def _path(path: str | os.PathLike[str]) -> str:
    text = os.fsdecode(path)
    if text.lstrip().startswith("{"):
        raise UsageError(
            "a string names a file; this one looks like JSON",
            hint="give dicts, load([{…}]), or wrap text in io.BytesIO(text.encode())",
        )
    return text


def _stream(source: Any) -> JsonlSource:
    if isinstance(source, io.TextIOBase):
        raise UsageError("a text stream is not bytes", hint='open the file in mode "rb"')
    stream = cast(BinaryIO, source)
    name = str(getattr(source, "name", "<stream>"))
    return JsonlSource(name=name, open=lambda: stream, owned=False)


def _mapping(source: Mapping[Any, Any], ids: IdSource) -> PlannedInput:
    for value in source.values():
        if is_series(value):
            raise _no_table(value)
    if source and all(isinstance(k, str) and _is_of_one_type(v) for k, v in source.items()):
        return _by_type(source, ids)
    hint = f"load takes {_KINDS}"
    if "type" in source or "edge" in source:
        hint = "one record goes into a list: load([record])"
    raise UsageError("cannot load from this mapping", hint=hint)


def _of_one_type(source: Any, type_name: str, ids: IdSource) -> PlannedInput:
    """A table, or plain dict rows, of one named type."""
    files = [source] if isinstance(source, (str, os.PathLike, JsonlSource)) else source
    if isinstance(files, Sequence) and files and all(map(_is_file, files)):
        raise UsageError(
            "a file with a type is for Spark: this process reads JSONL, which names its types",
            hint="leave the type out, or take the engine spark",
        )
    if _is_of_one_type(source):
        return _by_type({type_name: source}, ids, rows_name="rows")
    raise UsageError(
        f"type= does not go with {type(source).__name__}",
        hint="with a type, load takes a table, a DataFrame or dict rows",
    )


def _is_file(member: Any) -> bool:
    return isinstance(member, (str, os.PathLike, JsonlSource))


def _records(rows: Iterable[Any], graph_type: GraphType) -> Iterator[Any]:
    """Rows of one type as records; anything that is no row is passed on to be refused."""
    for row in rows:
        if not isinstance(row, Mapping):
            yield row
        elif graph_type.kind == "node":
            yield {"type": graph_type.name, "data": dict(row)}
        else:
            data = dict(row)
            ends = {
                end: data.pop(end if end in data else column)
                for end, column in (("from", "src"), ("to", "dst"))
                if end in data or column in data
            }
            yield {"edge": graph_type.name, **ends, "data": data}


def _files(paths: Iterable[str], ids: IdSource, progress: Progress | None) -> PlannedInput:
    sources = [file_source(path) for path in paths]
    return _jsonl(sources, ids, progress, repeatable=True)


def _jsonl(
    sources: Sequence[JsonlSource], ids: IdSource, progress: Progress | None, *, repeatable: bool
) -> PlannedInput:
    return PlannedInput(
        read=lambda catalog: read_jsonl(sources, catalog, ids, progress=progress),
        repeatable=repeatable,
    )


def _by_type(
    sources: Mapping[str, Any], ids: IdSource, *, rows_name: str | None = None
) -> PlannedInput:
    """Tables or dict rows by the name of their type; ``rows_name``: how messages call dict rows."""

    def read(catalog: Catalog) -> dict[str, LoadedRows]:
        types = _types_of(sources, catalog)
        loaded: dict[str, LoadedRows] = {}
        for name, source in sources.items():
            graph_type = types[name]
            table = _as_table(source, name)
            if table is None:
                records = _records(source, graph_type)
                loaded |= rows_from_records(records, catalog, ids, source_name=rows_name or name)
            else:
                rows = rows_from_table(graph_type, table, ids, source_name=name)
                loaded[graph_type.table_key] = rows
        return loaded

    repeatable = all(
        isinstance(s, Sequence) or (_is_table(s) and not isinstance(s, pa.RecordBatchReader))
        for s in sources.values()
    )
    return PlannedInput(read=read, repeatable=repeatable)


def _types_of(names: Iterable[str], catalog: Catalog) -> dict[str, GraphType]:
    """The type that every name means. Two spellings of one would silently replace each other."""
    types: dict[str, GraphType] = {}
    first: dict[str, str] = {}
    for name in names:
        graph_type = types[name] = type_named(catalog, name)
        other = first.setdefault(graph_type.table_key, name)
        if other != name:
            raise UsageError(
                f"'{other}' and '{name}' both name the {graph_type.kind} type {graph_type.name}",
                hint="put all of its rows under one name",
            )
    return types


def _is_of_one_type(value: Any) -> bool:
    """Whether a value can be the rows of one type."""
    if _is_table(value):
        return True
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping)):
        return False
    return isinstance(value, Iterable)


def _as_table(value: Any, name: str) -> Any:
    """The table or the list of record batches as one table, None for anything else."""
    if _is_table(value):
        return value
    if not isinstance(value, Sequence) or not value:
        return None
    if not all(isinstance(v, pa.RecordBatch) for v in value):
        return None
    try:
        return pa.Table.from_batches(value)
    except pa.ArrowInvalid:
        raise InputError(f"{name}: the batches do not have the same columns") from None


def _no_table(value: Any) -> UsageError:
    return UsageError(
        f"a {type(value).__name__} is not a table", hint="make it one: series.to_frame()"
    )


def _is_table(value: Any) -> bool:
    arrow = (pa.Table, pa.RecordBatch, pa.RecordBatchReader)
    return isinstance(value, arrow) or is_frame(value) or hasattr(value, "__arrow_c_stream__")
