"""Tables to infer a schema from: files and data frames, with the names of their types.

    files, frames -> [tables] -> GivenTable -> schema

Every row is read: a key is a key only if no row repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.csv as pcsv

from omnigraph.errors import InputError, UsageError
from omnigraph.infer.columns import ColumnFacts, facts_of
from omnigraph.infer.graphs.detect import graph_tables
from omnigraph.infer.graphs.entities import EdgeRows
from omnigraph.input.ranges import BOM
from omnigraph.input.sources import is_table, sort_out, unreadable
from omnigraph.input.streams import SourceFile, SourceReader, open_source
from omnigraph.input.table_files import ARROW_FILE, ARROW_STREAM, PARQUET, open_arrow, open_parquet
from omnigraph.input.tables import is_frame
from omnigraph.input.unpack import compression_of, unpacked_stream
from omnigraph.lang.source import one_line
from omnigraph.storage.inputs import UnreadableInput

_PACKED = (".gz", ".zst", ".zstd")


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
    ends: tuple[str, str] | None = None
    """The node types at its ends, if it is known to hold edges."""


def given_tables(source: Any) -> list[GivenTable]:
    """All tables of what was given: a path, several, or a mapping of type names to them."""
    found: list[GivenTable] = []
    for name, given in _members(source):
        ends = (given.source, given.target) if isinstance(given, EdgeRows) else None
        value = given.rows if isinstance(given, EdgeRows) else given
        table, label, is_text = _read(value)
        title = name or type_name(label)
        if any(other.name == title for other in found):
            raise UsageError(
                f"two tables would be the type {title}", hint="name one: TYPE=FILE, {type: table}"
            )
        facts = tuple(
            facts_of(column, table.column(place), is_text=is_text)
            for place, column in enumerate(table.column_names)
        )
        if not facts:
            raise InputError(f"{label}: there are no columns")
        found.append(
            GivenTable(
                name=title,
                source=value,
                label=label,
                columns=facts,
                rows=table.num_rows,
                ends=ends,
            )
        )
    if not found:
        raise UsageError("there is nothing to infer from", hint="give files, or {type: table}")
    return found


def type_name(label: str) -> str:
    """``flight_routes.csv`` becomes ``FlightRoute``."""
    path = PurePosixPath(label)
    while path.suffix.lower() in (*_PACKED, ".csv", ".tsv", ".parquet", ".arrow", ".feather"):
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
    known = graph_tables(source)
    if known is not None:
        return list(known.items())
    if isinstance(source, Mapping):
        return [(str(name), value) for name, value in source.items()]
    if isinstance(source, (list, tuple)):
        return [(None, value) for value in source]
    return [(None, source)]


def _read(value: Any) -> tuple[pa.Table, str, bool]:
    """The rows, how the source is called, and whether it knows nothing but text."""
    if is_frame(value):
        return pa.Table.from_pandas(value, preserve_index=False), "the DataFrame", False
    if is_table(value):
        return pa.table(value), "the table", False
    files = sort_out(value, type_name="T").files
    if not files:
        raise UsageError(
            f"cannot infer from {type(value).__name__}", hint="give files, tables or DataFrames"
        )
    parts = [_file(file) for file in files]
    try:
        whole = pa.concat_tables([part for part, _ in parts])
    except pa.ArrowInvalid:
        raise InputError(f"{files[0].name}: files of one type have the same columns") from None
    return whole, files[0].name, all(is_text for _, is_text in parts)


def _file(file: SourceFile) -> tuple[pa.Table, bool]:
    try:
        with open_source(file) as reader:
            return _content(file.name, reader)
    except UnreadableInput as error:
        raise unreadable(file.name, error) from error
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{one_line(file.name)}: cannot be read: {reason}") from error


def _content(name: str, reader: SourceReader) -> tuple[pa.Table, bool]:
    head = reader.head(16)
    if head.startswith(PARQUET):
        return open_parquet(reader).read(), False
    if head.startswith((ARROW_FILE, ARROW_STREAM)):
        return open_arrow(reader).read_all(), False
    packed = compression_of(head)
    stream = unpacked_stream(reader, packed) if packed else reader.seekable()
    text = bytes(stream.read()).removeprefix(BOM)
    if text.lstrip()[:1] in (b"{", b"["):
        return _json_rows(name, text), False
    return _csv(name, text), True


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


def _json_rows(name: str, text: bytes) -> pa.Table:
    """JSONL names its types line by line and so needs no schema to be made from columns."""
    try:
        first = orjson.loads(text.lstrip().split(b"\n", 1)[0])
    except orjson.JSONDecodeError:
        first = None
    records = isinstance(first, dict) and ("type" in first or "edge" in first)
    what = "records of a graph" if records else "JSON"
    raise InputError(
        f"{one_line(name)}: this is {what}, not a table",
        hint="infer takes CSV, TSV, Parquet and Arrow files; in Python also DataFrames",
    )
