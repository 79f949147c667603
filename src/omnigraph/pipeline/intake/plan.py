"""From what a user gives to what tasks read: files found and looked at, types and columns settled.

    paths | DataFrame | {type: paths | DataFrame} -> [plan] -> InputPlan

Runs on the driver. Every file is opened once, to read its first bytes: they say what it is, and
whatever makes reading pointless (no such file, another format, columns that no type has) is raised
here, in the words of the local loader, before a task runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, cast

from omnigraph.errors import ErrorKind, InputError, NotFoundError, OmnigraphError, UsageError
from omnigraph.load.formats import refuse_foreign_format
from omnigraph.load.problems import Problem, input_error, one_line
from omnigraph.pipeline.intake.columns import check_types, table_shape
from omnigraph.pipeline.intake.frames import PlannedFrame, plan_frame
from omnigraph.pipeline.intake.parquet import open_parquet
from omnigraph.pipeline.intake.parsed import UnitStats
from omnigraph.pipeline.intake.ranges import BOM
from omnigraph.pipeline.intake.records import cells_of, cut_records
from omnigraph.pipeline.intake.units import (
    Format,
    PlannedFile,
    WorkPlan,
    byte_cuts,
    grouped_cuts,
)
from omnigraph.pipeline.intake.unpack import compression_of, unpacked_stream
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.lookup import type_named
from omnigraph.storage.inputs import InputFile, InputReader, UnreadableInput, find_inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HEAD_BYTES = 64 << 10
_HEADER_BYTES_MAX = 1 << 20
_LOOKERS = 16
_SUFFIXES = {
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
}
_PACKED_SUFFIXES = (".gz", ".zst", ".zstd")
_KINDS = (
    "a path or list of paths (JSONL, or CSV and Parquet with type=…), a Spark DataFrame with "
    "type=…, or a mapping of type names to these"
)

ColumnsOf = Mapping[str, str]
"""Property to column."""


@dataclass(frozen=True, kw_only=True)
class InputPlan:
    """All sources of an input, numbered in the order in which they were given."""

    work: WorkPlan
    frames: tuple[PlannedFrame, ...]
    names: tuple[str, ...]
    """Of all sources, as shown in messages."""
    keys: Mapping[int, str]
    """The table key of every source that has one type."""

    def uncut(self, indices: frozenset[int]) -> InputPlan:
        """The same input, with these files read by one task each."""
        files = [
            replace(f, cuts=(0, f.file.size)) if index in indices else f
            for index, f in zip(self.work.indices, self.work.files, strict=True)
        ]
        return replace(self, work=replace(self.work, files=tuple(files)))

    def torn(self, stats: Sequence[UnitStats]) -> frozenset[int]:
        """CSV files that were cut within a record: their ranges do not fit together."""
        spans: dict[int, list[tuple[int, int]]] = {}
        for one in stats:
            if one.span is not None:
                spans.setdefault(one.file, []).append(one.span)
        torn: set[int] = set()
        for index, planned in zip(self.work.indices, self.work.files, strict=True):
            if planned.format is Format.CSV and planned.unit_count > 1:
                found = spans.get(index, [])
                fits = all(a[1] == b[0] for a, b in pairwise(found))
                if not fits or not found or found[-1][1] != planned.file.size:
                    torn.add(index)
        return frozenset(torn)

    def counts(self, stats: Sequence[UnitStats]) -> dict[str, tuple[int, int]]:
        """Rows and given ids by table key, in order of first mention; a table is a mention."""
        by_file: dict[int, list[UnitStats]] = {}
        for one in stats:
            by_file.setdefault(one.file, []).append(one)
        counts: dict[str, tuple[int, int]] = {}
        for file in range(len(self.names)):
            if file in self.keys:
                counts.setdefault(self.keys[file], (0, 0))
            for one in by_file.get(file, []):
                for key, (rows, given) in one.rows.items():
                    before = counts.get(key, (0, 0))
                    counts[key] = (before[0] + rows, before[1] + given)
        return counts


@dataclass(frozen=True, kw_only=True)
class _OneType:
    """What is known of a source that holds one type."""

    graph_type: GraphType
    mapping: ColumnsOf | None
    label: str


def plan_input(
    source: Any,
    catalog: Catalog,
    *,
    type_name: str | None,
    mapping: Mapping[str, Any] | None,
    range_bytes: int,
) -> InputPlan:
    """Decide how an input is read. Raises UsageError, InputError, NotFoundError."""
    if isinstance(source, Mapping):
        if type_name is not None:
            raise UsageError("type= does not go with a mapping", hint="its keys are the types")
        members = _by_type(cast("Mapping[Any, Any]", source), catalog, mapping)
    elif type_name is not None:
        graph_type = type_named(catalog, type_name)
        members = [(_OneType(graph_type=graph_type, mapping=mapping, label=type_name), source)]
    elif mapping is not None:
        raise UsageError("a mapping of columns needs a type", hint='say type="Person"')
    else:
        members = [(None, source)]
    looked: list[PlannedFile | tuple[_OneType, DataFrame]] = []
    for one_type, member in members:
        if _is_spark_frame(member):
            if one_type is None:
                raise UsageError("a DataFrame needs its type", hint='say type="Person"')
            looked.append((one_type, member))
        else:
            files = [f for path in _paths(member) for f in _found(path)]
            looked += _look_at(files, _looker(one_type, range_bytes))
    return _numbered(looked)


def _numbered(looked: Sequence[PlannedFile | tuple[_OneType, DataFrame]]) -> InputPlan:
    files: list[PlannedFile] = []
    indices: list[int] = []
    frames: list[PlannedFrame] = []
    names: list[str] = []
    keys: dict[int, str] = {}
    for index, member in enumerate(looked):
        if isinstance(member, PlannedFile):
            files.append(member)
            indices.append(index)
            names.append(member.file.name)
            shape = member.shape
        else:
            one, frame = member
            planned = plan_frame(
                frame,
                one.graph_type,
                mapping=one.mapping,
                name=one.label,
                group=len(frames) + 1,
                file=index,
            )
            frames.append(planned)
            names.append(one.label)
            shape = planned.shape
        if shape is not None:
            keys[index] = shape.table_key
    return InputPlan(
        work=WorkPlan(files=tuple(files), indices=tuple(indices)),
        frames=tuple(frames),
        names=tuple(names),
        keys=keys,
    )


# -- what the user gave --------------------------------------------------------------------------


def _by_type(
    source: Mapping[Any, Any], catalog: Catalog, mapping: Mapping[str, Any] | None
) -> list[tuple[_OneType | None, Any]]:
    members: list[tuple[_OneType | None, Any]] = []
    first: dict[str, str] = {}
    if not source:
        raise UsageError("cannot load from this mapping", hint=f"load takes {_KINDS}")
    for name, member in source.items():
        graph_type = type_named(catalog, name)
        other = first.setdefault(graph_type.table_key, name)
        if other != name:
            raise UsageError(
                f"'{other}' and '{name}' both name the {graph_type.kind} type {graph_type.name}",
                hint="put all of its rows under one name",
            )
        own = None if mapping is None else mapping.get(name)
        members.append((_OneType(graph_type=graph_type, mapping=own, label=name), member))
    return members


def _is_spark_frame(value: Any) -> bool:
    # Classic and Connect have classes of their own; both have this, and nothing else does.
    return hasattr(value, "mapInArrow")


def _paths(source: Any) -> list[str]:
    if isinstance(source, (str, os.PathLike)):
        return [_path(cast("str | os.PathLike[str]", source))]
    if isinstance(source, Sequence) and not isinstance(source, (bytes, bytearray, memoryview)):
        members = cast("Sequence[Any]", source)
        if members and all(isinstance(m, (str, os.PathLike)) for m in members):
            return [_path(m) for m in members]
    raise UsageError(
        f"Spark cannot load from {type(source).__name__}",
        hint=f"it takes {_KINDS}; everything else is loaded with engine='local'",
    )


def _path(path: str | os.PathLike[str]) -> str:
    text = os.fsdecode(path)
    if text.lstrip().startswith("{"):
        raise UsageError("a string names a file; this one looks like JSON")
    return text


def _found(path: str) -> list[InputFile]:
    try:
        return find_inputs(path)
    except UnreadableInput as error:
        raise unreadable(path, error) from error


def unreadable(name: str, error: UnreadableInput) -> OmnigraphError:
    """The error for a file that cannot be read, as the local loader raises it."""
    message = f"{one_line(name)}: {error.reason}"
    if error.missing:
        return NotFoundError(message, kind=ErrorKind.FILE_NOT_FOUND)
    return InputError(message)


# -- looking at files ----------------------------------------------------------------------------


def _look_at(
    files: Sequence[InputFile], look: Callable[[InputFile], PlannedFile]
) -> list[PlannedFile]:
    """All files, some at a time; the first of them that is wrong is told."""

    def one(file: InputFile) -> PlannedFile:
        try:
            return look(file)
        except UnreadableInput as error:
            raise unreadable(file.name, error) from error

    if len(files) == 1:
        return [one(files[0])]
    with ThreadPoolExecutor(_LOOKERS, thread_name_prefix="omnigraph-look") as pool:
        return list(pool.map(one, files))


def _looker(one_type: _OneType | None, range_bytes: int) -> Callable[[InputFile], PlannedFile]:
    def look(file: InputFile) -> PlannedFile:
        with InputReader(file) as reader:
            raw = reader.read_at(0, _HEAD_BYTES)
            packed = compression_of(raw)
            path = PurePosixPath(file.path.lower())
            if packed is None and path.suffix in _PACKED_SUFFIXES and file.size < 4:
                raise UnreadableInput("the file ends before its packed data begins")
            if path.suffix in _PACKED_SUFFIXES:
                path = path.with_suffix("")
            planned = PlannedFile(
                file=file,
                format=Format.JSONL,
                compression=packed,
                cuts=(0, file.size) if packed else byte_cuts(file.size, range_bytes),
                delimiter="\t" if path.suffix == ".tsv" else ",",
            )
            head = _head(reader, planned, _HEAD_BYTES) if packed else raw
            kind = _format(file.name, _SUFFIXES.get(path.suffix), head, one_type)
            planned = replace(planned, format=kind)
            if one_type is None or kind is Format.JSONL:
                refuse_foreign_format(file.name, head.removeprefix(BOM))
                return planned
            if kind is Format.PARQUET:
                return _parquet(planned, reader, one_type, range_bytes)
            return _csv(planned, reader, one_type)

    return look


def _head(reader: InputReader, planned: PlannedFile, size: int) -> bytes:
    if planned.compression is None:
        return reader.read_at(0, size)
    try:
        return unpacked_stream(reader, planned.compression).read(size)
    except UnreadableInput:
        return b""  # the task that reads all of it says after which line


def _format(name: str, by_name: Format | None, head: bytes, one_type: _OneType | None) -> Format:
    if head.startswith(b"PAR1"):
        found = Format.PARQUET
    elif head.removeprefix(BOM).lstrip().startswith(b"{"):
        found = Format.JSONL
    elif by_name is not None:
        found = by_name
    else:
        found = Format.JSONL if one_type is None else Format.CSV
    if one_type is None and found is not Format.JSONL:
        raise UsageError(
            f"{one_line(name)}: a {found} file needs its type",
            hint='name it: type="Person", on the command line --type Person',
        )
    if one_type is not None and found is Format.JSONL:
        raise UsageError(
            f"{one_line(name)}: JSONL names its types itself, line by line",
            hint="leave the type out",
        )
    return found


def _csv(planned: PlannedFile, reader: InputReader, one_type: _OneType) -> PlannedFile:
    head = _head(reader, planned, _HEADER_BYTES_MAX)
    if planned.compression and not head:
        # Nothing could be unpacked; the task that tries again tells why.
        raise UnreadableInput(f"the {planned.compression} data is damaged or empty")
    text = head.removeprefix(BOM)
    name = planned.file.name
    records = cut_records(text if text.endswith(b"\n") else text + b"\n")
    if not len(records.starts):
        raise _header_error(name, "the first line of a CSV file names its columns; there is none")
    line = int(records.lines[0])
    if len(head) == _HEADER_BYTES_MAX and len(records.starts) == 1:
        raise _header_error(name, "the header is too long", line)
    try:
        cells = cells_of(records.raw(0).decode(), planned.delimiter)
    except UnicodeDecodeError:
        raise _header_error(name, "the header is not valid UTF-8", line) from None
    if isinstance(cells, Problem):
        raise _header_error(name, cells.message, line)
    header = tuple(cell.text for cell in cells)
    shape = table_shape(
        one_type.graph_type, header, mapping=one_type.mapping, source=name, line=line
    )
    # Unpacked text comes without its byte order mark.
    skipped = 0 if planned.compression else len(head) - len(text)
    return replace(
        planned, shape=shape, header=header, header_stop=skipped + int(records.stops[0]) + 1
    )


def _header_error(name: str, message: str, line: int = 1) -> InputError:
    return input_error([Problem(source=name, line=line, message=message)])


def _parquet(
    planned: PlannedFile, reader: InputReader, one_type: _OneType, range_bytes: int
) -> PlannedFile:
    file = open_parquet(reader)
    schema = file.schema_arrow
    name = planned.file.name
    shape = table_shape(one_type.graph_type, schema.names, mapping=one_type.mapping, source=name)
    types = dict(zip(schema.names, schema.types, strict=True))
    check_types(one_type.graph_type, shape, types, name)
    sizes = [
        file.metadata.row_group(group).total_byte_size
        for group in range(file.metadata.num_row_groups)
    ]
    return replace(planned, shape=shape, cuts=grouped_cuts(sizes, range_bytes))
