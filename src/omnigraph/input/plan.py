"""From what was given to what is read: files opened, types and columns settled, units cut.

    members, catalog -> [plan] -> InputPlan

Every file is opened once, to read its first bytes: they say what it is, and whatever makes reading
pointless (no such file, another format, columns that no type has) is raised here, before anything
is read. Any runner reads the units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

import pyarrow as pa

from omnigraph.errors import InputError, UsageError
from omnigraph.input.csv_records import cells_of, cut_records
from omnigraph.input.packed import UnitStats
from omnigraph.input.problems import Problem, input_error
from omnigraph.input.ranges import BOM
from omnigraph.input.sources import ColumnsOf, Given, Kind, Member, unreadable
from omnigraph.input.streams import GivenStream, SourceFile, SourceReader, open_source
from omnigraph.input.table_files import (
    ARROW_FILE,
    ARROW_STREAM,
    PARQUET,
    damaged,
    open_arrow,
    open_parquet,
)
from omnigraph.input.table_shape import check_types, table_shape
from omnigraph.input.units import (
    Format,
    PlannedFile,
    WorkPlan,
    byte_cuts,
    grouped_cuts,
)
from omnigraph.input.unpack import compression_of, unpacked_head, unpacked_stream
from omnigraph.lang.source import one_line
from omnigraph.schema.catalog import Catalog, GraphType, type_named
from omnigraph.storage.inputs import UnreadableInput

_HEAD_BYTES = 64 << 10
_HEADER_BYTES_MAX = 1 << 20
_LOOKERS = 16
_SUFFIXES = {
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
}
_PACKED_SUFFIXES = (".gz", ".zst", ".zstd")


@dataclass(frozen=True, kw_only=True)
class PlannedMember:
    """A member that is not files, with its type and its number among all sources."""

    member: Member
    type: GraphType
    index: int


@dataclass(frozen=True, kw_only=True)
class InputPlan:
    """All sources of an input, numbered in the order in which they were given."""

    work: WorkPlan
    others: tuple[PlannedMember, ...]
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


def plan_input(given: Given, catalog: Catalog, *, range_bytes: int | None) -> InputPlan:
    """Decide how an input is read by tasks. Raises UsageError, InputError, NotFoundError."""
    looked: list[PlannedFile | tuple[Member, GraphType]] = []
    for member, graph_type in zip(given.members, types_of(given.members, catalog), strict=True):
        if member.kind is Kind.FILES:
            looked += plan_files(member, graph_type, range_bytes=range_bytes)
        elif graph_type is not None:
            looked.append((member, graph_type))
    files = {n: f for n, f in enumerate(looked) if isinstance(f, PlannedFile)}
    others = {n: m for n, m in enumerate(looked) if not isinstance(m, PlannedFile)}
    keys = {n: f.shape.table_key for n, f in files.items() if f.shape is not None}
    return InputPlan(
        work=WorkPlan(files=tuple(files.values()), indices=tuple(files)),
        others=tuple(PlannedMember(member=m, type=t, index=n) for n, (m, t) in others.items()),
        names=tuple(m.file.name if isinstance(m, PlannedFile) else m[0].label for m in looked),
        keys=keys | {n: t.table_key for n, (_, t) in others.items()},
    )


def types_of(members: Sequence[Member], catalog: Catalog) -> list[GraphType | None]:
    """The type of every member. Two spellings of one would silently replace each other."""
    first: dict[str, str] = {}
    found: list[GraphType | None] = []
    for member in members:
        name = member.type_name
        graph_type = type_named(catalog, name) if name is not None else None
        found.append(graph_type)
        if graph_type is None or name is None:
            continue
        other = first.setdefault(graph_type.table_key, name)
        if other != name:
            raise UsageError(
                f"'{other}' and '{name}' both name the {graph_type.kind} type {graph_type.name}",
                hint="put all of its rows under one name",
            )
    return found


def plan_files(
    member: Member, graph_type: GraphType | None, *, range_bytes: int | None
) -> list[PlannedFile]:
    """The files of a member, several opened at a time; the first that is wrong is reported.

    ``range_bytes`` is how large a unit should be; None: a file is one unit.
    """
    look = _FirstLook(graph_type, member.columns, range_bytes)
    files = member.files
    if len(files) == 1:
        return [look.at(files[0])]
    with ThreadPoolExecutor(_LOOKERS, thread_name_prefix="omnigraph-look") as pool:
        return list(pool.map(look.at, files))


# -- looking at files ----------------------------------------------------------------------------


class _FirstLook:
    """What the first bytes of a file show."""

    def __init__(
        self, graph_type: GraphType | None, columns: ColumnsOf | None, range_bytes: int | None
    ) -> None:
        self._type = graph_type
        self._columns = columns
        self._range_bytes = range_bytes

    def at(self, file: SourceFile) -> PlannedFile:
        """A file, ready to be read."""
        try:
            reader = open_source(file)
            if isinstance(file, GivenStream):
                return self._planned(file, reader)  # It is read on, and closed then.
            with reader:
                return self._planned(file, reader)
        except UnreadableInput as error:
            raise unreadable(file.name, error) from error

    def _planned(self, file: SourceFile, reader: SourceReader) -> PlannedFile:
        raw = reader.head(_HEAD_BYTES)
        packed = compression_of(raw)
        path = PurePosixPath(file.name.lower())
        if packed is None and path.suffix in _PACKED_SUFFIXES and len(raw) < 4:
            raise UnreadableInput("the file ends before its packed data begins")
        if path.suffix in _PACKED_SUFFIXES:
            path = path.with_suffix("")
        whole = packed is not None or isinstance(file, GivenStream)
        planned = PlannedFile(
            file=file,
            format=Format.JSONL,
            compression=packed,
            cuts=(0, max(file.size, 1)) if whole else byte_cuts(file.size, self._range_bytes),
            delimiter="\t" if path.suffix == ".tsv" else ",",
        )
        head = _head(reader, planned, _HEAD_BYTES) if packed else raw
        kind = self._format(file.name, _SUFFIXES.get(path.suffix), head)
        planned = replace(planned, format=kind)
        if self._type is None or kind is Format.JSONL:
            refuse_foreign_format(file.name, head.removeprefix(BOM))
            return planned
        if kind is Format.CSV:
            return self._csv(planned, reader, self._type)
        if packed is not None:
            raise UnreadableInput(f"a {kind} file that is packed with {packed}: unpack it first")
        return self._table(planned, reader, self._type)

    def _format(self, name: str, by_name: Format | None, head: bytes) -> Format:
        if head.startswith(PARQUET):
            found = Format.PARQUET
        elif head.startswith((ARROW_FILE, ARROW_STREAM)):
            found = Format.ARROW
        elif head.removeprefix(BOM).lstrip().startswith(b"{"):
            found = Format.JSONL
        elif by_name is not None:
            found = by_name
        else:
            found = Format.JSONL if self._type is None else Format.CSV
        if self._type is None and found is not Format.JSONL:
            article = "an" if found is Format.ARROW else "a"
            raise UsageError(
                f"{one_line(name)}: {article} {found} file needs its type",
                hint='name it: type="Person", on the command line --type Person',
            )
        if self._type is not None and found is Format.JSONL:
            raise UsageError(
                f"{one_line(name)}: JSONL names its types itself, line by line",
                hint="leave the type out",
            )
        return found

    def _csv(
        self, planned: PlannedFile, reader: SourceReader, graph_type: GraphType
    ) -> PlannedFile:
        head = _head(reader, planned, _HEADER_BYTES_MAX)
        if planned.compression and not head:
            # Nothing could be unpacked; the task that tries again reports why.
            raise UnreadableInput(f"the {planned.compression} data is damaged or empty")
        text = head.removeprefix(BOM)
        name = planned.file.name
        records = cut_records(text if text.endswith(b"\n") else text + b"\n")
        if not len(records.starts):
            raise _header_error(
                name, "the first line of a CSV file names its columns; there is none"
            )
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
        shape = table_shape(graph_type, header, mapping=self._columns, source=name, line=line)
        # Text that is read in order comes without its byte order mark.
        skipped = 0 if planned.in_order else len(head) - len(text)
        return replace(
            planned, shape=shape, header=header, header_stop=skipped + int(records.stops[0]) + 1
        )

    def _table(
        self, planned: PlannedFile, reader: SourceReader, graph_type: GraphType
    ) -> PlannedFile:
        schema, sizes = _columns(planned.format, reader, planned.file.size)
        name = planned.file.name
        shape = table_shape(graph_type, schema.names, mapping=self._columns, source=name)
        check_types(graph_type, shape, dict(zip(schema.names, schema.types, strict=True)), name)
        return replace(planned, shape=shape, cuts=grouped_cuts(sizes, self._range_bytes))


def _head(reader: SourceReader, planned: PlannedFile, size: int) -> bytes:
    if planned.compression is None:
        return reader.head(size)
    if isinstance(planned.file, GivenStream):
        return unpacked_head(reader.head(_HEADER_BYTES_MAX), planned.compression, size)
    try:
        return unpacked_stream(reader, planned.compression).read(size)
    except UnreadableInput:
        return b""  # Reading all of it reports after which line.


def _columns(format: Format, reader: SourceReader, size_bytes: int) -> tuple[pa.Schema, list[int]]:
    """The columns of a file, and the sizes of the parts that it can be cut into."""
    try:
        if format is Format.PARQUET:
            file = open_parquet(reader)
            groups = range(file.metadata.num_row_groups)
            return file.schema_arrow, [file.metadata.row_group(g).total_byte_size for g in groups]
        opened = open_arrow(reader)
        if isinstance(opened, pa.RecordBatchFileReader):
            count = opened.num_record_batches
            return opened.schema, [size_bytes // max(count, 1)] * count
        return opened.schema, [size_bytes]
    except (pa.ArrowException, OSError) as error:
        raise damaged(format, error) from error


def _header_error(name: str, message: str, line: int = 1) -> InputError:
    return input_error([Problem(source=name, line=line, message=message)])


# -- other formats ---------------------------------------------------------------------------------
# Files that are plainly not JSONL: one helpful sentence instead of a finding per line.


_STARTS: tuple[tuple[bytes, str, str], ...] = (
    (b"PK\x03\x04", "a zip archive", "unpack it first"),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
)


def refuse_foreign_format(name: str, start: bytes) -> None:
    """Raise if the first bytes of a source cannot begin JSONL."""
    for magic, what, hint in _STARTS:
        if start.startswith(magic):
            raise _refusal(name, what, hint)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    first = text.split(b"\n", 1)[0].strip()
    if first == b"[" or first.replace(b" ", b"").startswith(b"[{"):
        raise _refusal(name, "a JSON array", "write one object per line, without commas between")
    if first == b"{":
        raise _refusal(name, "pretty-printed JSON", "write every object on one line")
    if first and not first.startswith((b"{", b'"')) and b"," in first and b"{" not in first:
        raise _refusal(name, "CSV", 'name its type: type="Person", or --type Person')


def _refusal(name: str, what: str, hint: str) -> InputError:
    message = f"{one_line(name)}:1: this is {what}, not JSONL (one JSON object per line)"
    problem = {"source": name, "line": 1, "message": f"this is {what}, not JSONL"}
    return InputError(
        message,
        hint=hint,
        details={"problems": [problem], "problem_count": 1, "stopped": True},
    )
