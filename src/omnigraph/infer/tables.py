"""Tables to infer a schema from: files and data frames, with the names of their types.

    files, frames -> [tables] -> GivenTable -> schema

Every row is read: a key is a key only if no row repeats it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv

from omnigraph.errors import InputError, UsageError
from omnigraph.infer.columns import ColumnFacts, facts_of
from omnigraph.infer.graphs.detect import graph_tables
from omnigraph.infer.graphs.entities import EdgeRows
from omnigraph.infer.json_rows import json_tables
from omnigraph.input.ranges import BOM
from omnigraph.input.sources import is_table, sort_out, unreadable
from omnigraph.input.streams import SourceFile, SourceReader, open_source
from omnigraph.input.table_files import ARROW_FILE, ARROW_STREAM, PARQUET, open_arrow, open_parquet
from omnigraph.input.tables import is_frame
from omnigraph.input.unpack import compression_of, unpacked_stream
from omnigraph.lang.source import one_line
from omnigraph.storage.inputs import UnreadableInput

_PACKED = (".gz", ".zst", ".zstd")
_KNOWN = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".jsonl", ".ndjson", ".json")


@dataclass(frozen=True, kw_only=True)
class GivenTable:
    """One table."""

    name: str
    """Of the type that it becomes."""
    source: Any
    """As it was given: what a load takes."""
    label: str
    """What messages and comments call it."""
    columns: tuple[ColumnFacts, ...]
    rows: int
    loading: Loading
    files: tuple[str, ...]
    """What a load or an import names to read it."""
    ends: tuple[str, str] | None = None
    """The node types at its ends, if they are known."""
    is_edge: bool = False
    """Whether it is known to hold edges, with their ends in ``src`` and ``dst``."""


class Loading(StrEnum):
    """How a table gets into a graph with the schema."""

    FILE = "file"
    """A load takes it, with the name of its type."""
    RECORDS = "records"
    """A load takes the file, which names the types of its records."""
    MADE = "made"
    """It was made of something that no load reads: an import does, in one go."""


@dataclass(frozen=True, kw_only=True)
class _TypedRows:
    """The rows of one type in one file."""

    rows: pa.Table
    name: str | None = None
    """Of the type, if the file says so."""
    is_text: bool = False
    is_edge: bool = False
    loading: Loading = Loading.FILE


def given_tables(source: Any) -> list[GivenTable]:
    """All tables of what was given: a path, several, or a mapping of type names to them.

    Under the name None a mapping has what is to be named by its files.
    """
    known = graph_tables(source)
    found: list[GivenTable] = []
    for name, given in _members(source) if known is None else known.items():
        ends = (given.source, given.target) if isinstance(given, EdgeRows) else None
        value = given.rows if isinstance(given, EdgeRows) else given
        parts, label = _read(value)
        for part in parts:
            title = part.name or name or type_name(label)
            if any(other.name == title for other in found):
                raise UsageError(
                    f"two tables would be the type {title}",
                    hint="name one of them: TYPE=FILE, {type: table}",
                )
            loading = part.loading if known is None else Loading.MADE
            found.append(
                GivenTable(
                    name=title,
                    source=part.rows if loading is Loading.MADE else value,
                    label=label if known is None else ", ".join(_places(source)),
                    files=(label,) if known is None else _places(source),
                    columns=_facts(part, label),
                    rows=part.rows.num_rows,
                    loading=loading,
                    ends=ends,
                    is_edge=part.is_edge,
                )
            )
    if not found:
        raise UsageError("there is nothing to infer from", hint="give files, or {type: table}")
    _check_together(found)
    return found


def _facts(part: _TypedRows, label: str) -> tuple[ColumnFacts, ...]:
    facts = tuple(
        facts_of(column, part.rows.column(place), is_text=part.is_text)
        for place, column in enumerate(part.rows.column_names)
    )
    if not facts:
        raise InputError(f"{label}: there are no columns")
    return facts


def _check_together(found: Sequence[GivenTable]) -> None:
    records = [t.label for t in found if t.loading is Loading.RECORDS]
    if 0 < len(records) < len(found):
        raise UsageError(
            f"{one_line(records[0])} holds records of a graph, the others are tables",
            hint="infer from records by themselves",
        )


def _places(source: Any) -> tuple[str, ...]:
    """The files of a graph of another program, or what else it is."""
    given = source if isinstance(source, (list, tuple)) else [source]
    paths = [os.fspath(p) for p in given if isinstance(p, (str, os.PathLike))]
    return tuple(paths) or ("the graph",)


def type_name(label: str) -> str:
    """``flight_routes.csv`` becomes ``FlightRoute``."""
    path = PurePosixPath(label)
    while path.suffix.lower() in (*_PACKED, *_KNOWN):
        path = path.with_suffix("")
    words = re.findall(r"[A-Za-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", path.name))
    name = "".join(word[0].upper() + word[1:] for word in words)
    if not name or not name[0].isalpha():
        name = f"T{name}"
    return _singular(name)


def _singular(name: str) -> str:
    if name.endswith("ies") and len(name) > 4:
        return name[:-3] + "y"
    if name.endswith(("ses", "xes", "ches", "shes")):
        return name[:-2]
    return name[:-1] if name.endswith("s") and not name.endswith(("ss", "us", "is")) else name


def _members(source: Any) -> Iterable[tuple[str | None, Any]]:
    if isinstance(source, Mapping):
        for name, value in source.items():
            if name is None:
                yield from _members(value)
            else:
                yield str(name), value
    elif isinstance(source, (list, tuple)):
        yield from ((None, value) for value in source)
    else:
        yield None, source


def _read(value: Any) -> tuple[list[_TypedRows], str]:
    """The rows of every type in it, and how the source is called."""
    if is_frame(value):
        return [_TypedRows(rows=pa.Table.from_pandas(value, preserve_index=False))], "the DataFrame"
    if is_table(value):
        return [_TypedRows(rows=pa.table(value))], "the table"
    files = sort_out(value, type_name="T").files
    if not files:
        raise UsageError(
            f"cannot infer from {type(value).__name__}", hint="give files, tables or DataFrames"
        )
    named: dict[str | None, list[_TypedRows]] = {}
    for file in files:
        for part in _file(file):
            named.setdefault(part.name, []).append(part)
    try:
        whole = [
            replace(
                parts[0],
                rows=pa.concat_tables([p.rows for p in parts], promote_options=_promoting(parts)),
                is_text=all(p.is_text for p in parts),
            )
            for parts in named.values()
        ]
    except pa.ArrowInvalid:
        raise InputError(f"{files[0].name}: files of one type have the same columns") from None
    return whole, files[0].name


def _promoting(parts: Sequence[_TypedRows]) -> str:
    """JSON leaves out what a row does not have."""
    return "none" if parts[0].loading is Loading.FILE else "permissive"


def _file(file: SourceFile) -> list[_TypedRows]:
    try:
        with open_source(file) as reader:
            return _content(file.name, reader)
    except UnreadableInput as error:
        raise unreadable(file.name, error) from error
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{one_line(file.name)}: cannot be read: {reason}") from error


def _content(name: str, reader: SourceReader) -> list[_TypedRows]:
    head = reader.head(16)
    if head.startswith(PARQUET):
        return [_TypedRows(rows=open_parquet(reader).read())]
    if head.startswith((ARROW_FILE, ARROW_STREAM)):
        return [_TypedRows(rows=open_arrow(reader).read_all())]
    packed = compression_of(head)
    stream = unpacked_stream(reader, packed) if packed else reader.seekable()
    text = bytes(stream.read()).removeprefix(BOM)
    if text.lstrip()[:1] in (b"{", b"["):
        found = json_tables(name, text)
        if isinstance(found, pa.Table):
            return [_TypedRows(rows=found, loading=Loading.MADE)]
        return [
            _TypedRows(name=r.name, rows=r.rows, is_edge=r.is_edge, loading=Loading.RECORDS)
            for r in found
        ]
    return [_TypedRows(rows=_csv(name, text), is_text=True)]


def _csv(name: str, text: bytes) -> pa.Table:
    header = text.split(b"\n", 1)[0]
    if not header.strip():
        raise InputError(f"{one_line(name)}: the first line of a CSV file names its columns")
    path = name.lower().removesuffix(".gz").removesuffix(".zst").removesuffix(".zstd")
    parse = pcsv.ParseOptions(
        delimiter="\t" if path.endswith(".tsv") else ",", newlines_in_values=True
    )
    names = pcsv.read_csv(pa.BufferReader(header + b"\n"), parse_options=parse).column_names
    return pcsv.read_csv(
        pa.BufferReader(text),
        parse_options=parse,
        convert_options=pcsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        ),
    )
