"""The rows of the parsed frame: what a unit of input gives, packed so that it can be kept.

    pieces of a unit -> [parsed] -> (kind, unit, file, before, rows, payload) -> persisted
    persisted rows   -> [parsed] -> typed rows, problems, the ledger of units

One frame holds the rows of all types, because the input is read once. A payload is an Arrow stream
(zstd) of rows of one type from one piece of input, in the columns of the type's table, and `_line`.
Lines count from the piece; `before` says how many lines of the unit stand before it, and the ledger
how many lines of the file before the unit. So no task needs to know what another one has counted.

    kind        payload                                             rows
    node:T      typed rows and `_line`                              how many
    !problems   (line, column, message, text) of what is wrong      how many
    !unit       JSON: lines, problems, rows by type, a checksum     0; one per unit, the last
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.ddl import schema_of
from omnigraph.errors import InputError
from omnigraph.ids import derived_ulids
from omnigraph.input.loaded_rows import InputPiece, Part, TextOf, shown_text
from omnigraph.input.problems import Problem
from omnigraph.rules.table_delta import FILE, LINE
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.identity import is_keyed

PARSED_DDL = "kind string, unit bigint, file int, before bigint, rows bigint, payload binary"
PROBLEMS, UNIT = "!problems", "!unit"
_PARSED = schema_of(PARSED_DDL)
_PROBLEM_DDL = "line bigint, column int, message string, text string"
_PROBLEM = schema_of(_PROBLEM_DDL)
PROBLEM_DDL = f"file string, {_PROBLEM_DDL}"
_PLACED_PROBLEM = schema_of(PROBLEM_DDL)
_FIRST_LINE = b"first-line"
"""In the metadata of rows that stand in lines without a gap; they have no `_line`."""
_WRITE = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1))
"""As fast as LZ4 and half as large: what passes to Spark and back costs more than packing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStats:
    """What one unit held. Equal whenever the same unit of the same input is read."""

    unit: int
    file: int
    lines: int = 0
    problems: int = 0
    checksum: int = 0
    rows: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """By table key, in order of first mention: rows, and how many of them came with an id."""
    span: tuple[int, int] | None = None

    def plus(self, piece: InputPiece) -> UnitStats:
        """With what one more piece holds."""
        rows, span = dict(self.rows), self.span
        for part in piece.parts:
            count, given = rows.get(part.type.table_key, (0, 0))
            if not is_keyed(part.type):
                ids = part.rows.column("id")
                given += len(ids) - ids.null_count
            rows[part.type.table_key] = (count + len(part.lines), given)
        if piece.span is not None:
            span = (span[0] if span else piece.span[0], piece.span[1])
        return replace(
            self,
            lines=self.lines + piece.line_count,
            problems=self.problems + len(piece.problems),
            checksum=zlib.crc32(piece.checksum.to_bytes(8, "little"), self.checksum),
            rows=rows,
            span=span,
        )

    def to_bytes(self) -> bytes:
        """The canonical form: equal bytes mean an equal unit."""
        return orjson.dumps(
            {
                "lines": self.lines,
                "problems": self.problems,
                "checksum": self.checksum,
                "rows": [[key, *counts] for key, counts in self.rows.items()],
                "span": self.span,
            }
        )

    @classmethod
    def from_bytes(cls, unit: int, file: int, content: bytes) -> UnitStats:
        """The inverse of ``to_bytes``."""
        found: dict[str, Any] = orjson.loads(content)
        span = found["span"]
        return cls(
            unit=unit,
            file=file,
            lines=found["lines"],
            problems=found["problems"],
            checksum=found["checksum"],
            rows={key: (rows, given) for key, rows, given in found["rows"]},
            span=None if span is None else (span[0], span[1]),
        )


# -- packing -------------------------------------------------------------------------------------


_Entry = tuple[str, int, bytes]
"""Kind, number of rows and payload of a row of the parsed frame."""


def pack_unit(unit: int, file: int, pieces: Iterable[InputPiece]) -> Iterator[pa.RecordBatch]:
    """Everything that a unit gives, piece by piece, and its statistics at the end."""
    stats = UnitStats(unit=unit, file=file)
    for piece in pieces:
        entries = [(p.type.table_key, len(p.lines), _pack_part(p)) for p in piece.parts]
        if piece.problems:
            packed = _pack_problems(piece.problems, piece.text_of)
            entries.append((PROBLEMS, len(piece.problems), packed))
        if entries:
            yield _batch(stats, entries)
        stats = stats.plus(piece)
    yield _batch(stats, [(UNIT, 0, stats.to_bytes())])


def _batch(stats: UnitStats, entries: Sequence[_Entry]) -> pa.RecordBatch:
    """Rows of the parsed frame, for what follows the lines that were counted so far."""
    place = {"unit": stats.unit, "file": stats.file, "before": stats.lines}
    rows = [{"kind": kind, "rows": n, "payload": payload} | place for kind, n, payload in entries]
    return pa.RecordBatch.from_pylist(rows, schema=_PARSED)


def _pack_part(part: Part) -> bytes:
    lines = np.asarray(part.lines, np.int64)
    first, count = int(lines[0]), len(lines)
    if int(lines[-1]) == first + count - 1 and bool((np.diff(lines) == 1).all()):
        # Nearly always one row follows the other, and the first line says it all.
        return _packed(part.rows.replace_schema_metadata({_FIRST_LINE: str(first)}))
    return _packed(part.rows.append_column(LINE, pa.array(lines.astype(np.int32))))


def _pack_problems(problems: Sequence[Problem], text_of: TextOf) -> bytes:
    texts = [None if p.line is None else shown_text(text_of(p.line)) for p in problems]
    columns = [
        pa.array([p.line for p in problems], pa.int64()),
        pa.array([p.column for p in problems], pa.int32()),
        pa.array([_encodable(p.message) for p in problems], pa.string()),
        pa.array(texts, pa.string()),
    ]
    return _packed(pa.Table.from_arrays(columns, schema=_PROBLEM))


def _encodable(message: str) -> str:
    return message.encode(errors="backslashreplace").decode()


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITE) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


# -- unpacking -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What the driver learnt of all units, for tasks that unpack: small, whatever the input is."""

    files: tuple[str, ...]
    units: npt.NDArray[np.int64]
    """Ascending."""
    before: npt.NDArray[np.int64]
    """Lines of the same file before the unit."""
    sums: npt.NDArray[np.uint32]
    """Checksums of the statistics."""

    @classmethod
    def of(cls, files: tuple[str, ...], stats: Sequence[UnitStats]) -> Ledger:
        """From the statistics of all units, ordered by unit."""
        before: list[int] = []
        lines = dict.fromkeys(range(len(files)), 0)
        for one in stats:
            before.append(lines[one.file])
            lines[one.file] += one.lines
        return cls(
            files=files,
            units=np.array([s.unit for s in stats], dtype=np.int64),
            before=np.array(before, dtype=np.int64),
            sums=np.array([zlib.crc32(s.to_bytes()) for s in stats], dtype=np.uint32),
        )

    def lines_before(self, unit: int, file: int) -> int:
        """Lines of the file before the unit."""
        return int(self.before[self._place(unit, file)])

    def verify(self, unit: int, file: int, stats: bytes) -> None:
        """Raise unless the unit is what it was when it was read first.

        Kept rows can be lost with their machine and are then read again. An input that changed
        meanwhile would silently lose rows: this is no bad input but a broken promise.
        """
        if self.sums[self._place(unit, file)] != zlib.crc32(stats):
            raise self._changed(file)

    def _place(self, unit: int, file: int) -> int:
        place = int(np.searchsorted(self.units, unit))
        if place == len(self.units) or self.units[place] != unit:
            raise self._changed(file)
        return place

    def _changed(self, file: int) -> InputError:
        return InputError(f"{self.files[file]}: the input changed while it was being loaded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One unpacked row of the parsed frame."""

    kind: str
    unit: int
    file: int
    before: int
    rows: pa.Table
    """Without `_line`."""
    lines: npt.NDArray[np.int64]
    """In the piece; of problems none."""


def unpacked(batches: Iterable[pa.RecordBatch], ledger: Ledger) -> Iterator[Packed]:
    """The payloads of some rows of the parsed frame; units are compared with the ledger."""
    for batch in batches:
        kinds, units, files, before = (batch.column(i).to_pylist() for i in range(4))
        payloads = batch.column(5)
        for i, kind in enumerate(kinds):
            if kind == UNIT:
                ledger.verify(units[i], files[i], payloads[i].as_py())
                continue
            with pa.ipc.open_stream(payloads[i].as_buffer()) as stream:
                table = stream.read_all()
            rows, lines = _with_lines(table)
            yield Packed(
                kind=kind,
                unit=units[i],
                file=files[i],
                before=ledger.lines_before(units[i], files[i]) + before[i],
                rows=rows,
                lines=lines,
            )


def _with_lines(table: pa.Table) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    first = (table.schema.metadata or {}).get(_FIRST_LINE)
    if first is not None:
        start = int(first)
        return table.replace_schema_metadata(None), np.arange(start, start + table.num_rows)
    if LINE not in table.column_names:
        return table, np.empty(0, np.int64)
    return table.drop_columns([LINE]), table.column(LINE).to_numpy().astype(np.int64)


def placed_rows(packed: Packed, graph_type: GraphType, run_id: str) -> pa.Table:
    """Rows of a type with their places, ``_file`` and ``_line``, and all of their ids."""
    rows, lines = packed.rows, packed.lines + packed.before
    columns = rows.columns
    if not is_keyed(graph_type) and columns[0].null_count:
        columns[0] = _with_ids(columns[0], run_id, packed.file, lines)
    files = pa.array(np.full(len(lines), packed.file, dtype=np.int32))
    names = [*rows.column_names, FILE, LINE]
    return pa.Table.from_arrays([*columns, files, pa.array(lines)], names=names)


def _with_ids(
    given: pa.ChunkedArray, run_id: str, file: int, lines: npt.NDArray[np.int64]
) -> pa.ChunkedArray:
    """The given ids, and where there is none the one that belongs to the place of the row."""
    if given.null_count == len(given):
        return pa.chunked_array([derived_ulids(run_id, file, lines)])
    missing = given.is_null().combine_chunks()
    fresh = derived_ulids(run_id, file, lines[missing.to_numpy(zero_copy_only=False)])
    return pa.chunked_array([pc.replace_with_mask(given.combine_chunks(), missing, fresh)])


def placed_problems(packed: Packed, ledger: Ledger, limit: int | None) -> pa.Table:
    """The first problems of a piece in their places, as ``PROBLEM_DDL`` says."""
    rows = packed.rows if limit is None else packed.rows.slice(0, limit)
    lines = pc.add(rows.column("line"), packed.before)
    # A name of a file may hold bytes that are no text.
    name = ledger.files[packed.file].encode(errors="backslashreplace").decode()
    names = pa.array([name] * rows.num_rows, pa.string())
    columns = [names, lines, *(rows.column(name) for name in ("column", "message", "text"))]
    return pa.Table.from_arrays(columns, schema=_PLACED_PROBLEM)
