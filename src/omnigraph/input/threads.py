"""An input read by this process: blocks in order, their content by a few threads.

    members -> plan -> blocks -> (threads) pieces -> [threads] -> LoadedRows by table key

All or nothing: with one problem anywhere there are no rows. Reading stops after some problems,
unless all of them are wanted for a file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph.errors import InputError, UsageError
from omnigraph.ids import IdSource
from omnigraph.input.csv import csv_blocks, csv_pieces
from omnigraph.input.jsonl import jsonl_blocks, jsonl_pieces
from omnigraph.input.jsonl_exact import rows_from_records
from omnigraph.input.loaded_rows import InputPiece, LoadedRows, Part, finish, shown_text
from omnigraph.input.plan import plan_files, types_of
from omnigraph.input.problems import PROBLEMS_MAX, Problem, input_error
from omnigraph.input.rejects import RejectFile
from omnigraph.input.sources import Given, Kind, Member
from omnigraph.input.streams import SourceReader, open_source
from omnigraph.input.table_files import arrow_batches, batch_pieces, parquet_batches
from omnigraph.input.tables import rows_from_table
from omnigraph.input.units import Format, InputUnit, PlannedFile, WorkPlan
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.storage.inputs import UnreadableInput

_THREADS = 2
_BLOCKS_IN_WORK_MAX = _THREADS + 1
"""One more than threads: a thread that becomes free finds work, and memory stays bounded."""

Progress = Callable[[int], None]


def read_input(
    given: Given,
    catalog: Catalog,
    ids: IdSource,
    *,
    progress: Progress | None = None,
    rejects: RejectFile | None = None,
) -> dict[str, LoadedRows]:
    """The rows of all members by table key, in order of first mention.

    Raises InputError with every problem found (up to a bound), NotFoundError for a missing file.
    ``progress`` gets the number of bytes that were read and converted so far. With ``rejects``
    everything is read, and all problems go there.
    """
    types = types_of(given.members, catalog)
    loaded: dict[str, LoadedRows] = {}
    for member, graph_type in zip(given.members, types, strict=True):
        loaded |= _read_member(member, graph_type, catalog, ids, progress, rejects)
    return loaded


def _read_member(
    member: Member,
    graph_type: GraphType | None,
    catalog: Catalog,
    ids: IdSource,
    progress: Progress | None,
    rejects: RejectFile | None,
) -> dict[str, LoadedRows]:
    if member.kind is Kind.FILES:
        files = plan_files(member, graph_type, range_bytes=None)
        return _Reading(files, catalog, progress, rejects).run(ids)
    if member.kind is Kind.FRAME:
        raise UsageError("a Spark DataFrame is for Spark", hint='say engine="spark"')
    if graph_type is None:
        return rows_from_records(member.value, catalog, ids, source_name=member.label)
    if member.kind is Kind.TABLE:
        rows = rows_from_table(
            graph_type, member.value, ids, source_name=member.label, columns=member.columns
        )
        return {graph_type.table_key: rows}
    records = _records(member.value, graph_type, member.columns)
    return rows_from_records(records, catalog, ids, source_name=member.label)


def _records(
    rows: Iterable[Any], graph_type: GraphType, columns: Mapping[str, str] | None
) -> Iterator[Any]:
    """Rows of one type as records; anything that is no row is passed on to be refused."""
    for row in rows:
        if not isinstance(row, Mapping):
            yield row
            continue
        data = dict(row)
        if columns is not None:
            data = {name: row[column] for name, column in columns.items() if column in row}
        if graph_type.kind == "node":
            yield {"type": graph_type.name, "data": data}
        else:
            ends = {
                end: data.pop(end if end in data else column)
                for end, column in (("from", "src"), ("to", "dst"))
                if end in data or column in data
            }
            yield {"edge": graph_type.name, **ends, "data": data}


# -- files ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """A block that was understood, or why there is none."""

    unit: InputUnit
    done: int
    pieces: Sequence[InputPiece] | UnreadableInput | InputError


class _Reading:
    """Some files on their way, in order."""

    def __init__(
        self,
        files: Sequence[PlannedFile],
        catalog: Catalog,
        progress: Progress | None,
        rejects: RejectFile | None,
    ) -> None:
        self._files = files
        self._catalog = catalog
        self._progress = progress
        self._rejects = rejects if rejects is not None and rejects.wanted else None
        self._parts: list[Part] = []
        self._problems: list[Problem] = []
        self._total = 0
        self._lines = [0] * len(files)

    def run(self, ids: IdSource) -> dict[str, LoadedRows]:
        """Read all of it. Raises InputError."""
        before = np.cumsum([0, *(f.file.size for f in self._files)])
        for result in self._results():
            pieces = result.pieces
            if not isinstance(pieces, Sequence):
                pieces = [broken(result.unit, pieces, self._lines[result.unit.file])]
            for piece in pieces:
                self._take(piece, result.unit.file)
            if self._progress is not None:
                self._progress(int(before[result.unit.file]) + result.done)
        if self._problems:
            raise input_error(self._problems, total=self._total)
        return finish([*self._mentions(), *self._parts], [f.file.name for f in self._files], ids)

    def _take(self, piece: InputPiece, file: int) -> None:
        name, before = self._files[file].file.name, self._lines[file]
        placed = [p.at(name, before) for p in piece.problems]
        if self._rejects is not None:
            texts = (piece.text_of(p.line) if p.line is not None else None for p in piece.problems)
            self._rejects.problems(zip(placed, map(shown_text, texts), strict=True))
        self._total += len(placed)
        self._problems += placed[: PROBLEMS_MAX - len(self._problems)]
        if len(self._problems) == PROBLEMS_MAX and self._rejects is None:
            raise input_error(self._problems, stopped=True)
        # Rows are not needed once there is a problem: do not collect them.
        if self._problems:
            self._parts.clear()
        else:
            self._parts += [p.placed(file, before) for p in piece.parts]
        self._lines[file] += piece.line_count

    def _mentions(self) -> Iterator[Part]:
        """Types of files that hold one: such a file mentions its type also without a row."""
        for number, planned in enumerate(self._files):
            if planned.shape is not None:
                graph_type = self._catalog.table(planned.shape.table_key)
                rows = table_schema(graph_type).empty_table()
                yield Part(type=graph_type, rows=rows, lines=np.empty(0, np.int64), source=number)

    def _results(self) -> Iterator[_Result]:
        """Every block with its content, in input order."""
        plan = WorkPlan(files=tuple(self._files), indices=tuple(range(len(self._files))))
        in_work: deque[Future[_Result]] = deque()
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="omnigraph-input") as pool:
            try:
                for unit in map(plan.unit, range(plan.unit_count)):
                    pieces_of = READERS[unit.planned.format].pieces(unit, self._catalog)
                    try:
                        for block in unit_blocks(unit):
                            if len(in_work) >= _BLOCKS_IN_WORK_MAX:
                                yield in_work.popleft().result()
                            work = pool.submit(self._understood, unit, block, pieces_of)
                            in_work.append(work)
                    except (UnreadableInput, InputError) as error:
                        while in_work:
                            yield in_work.popleft().result()
                        yield _Result(unit=unit, done=0, pieces=error)
                while in_work:
                    yield in_work.popleft().result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _understood(self, unit: InputUnit, block: Any, pieces_of: PiecesOf) -> _Result:
        """A block; no more of it than is needed to say that it is wrong."""
        found: list[InputPiece] = []
        problems = 0
        for piece in pieces_of(block):
            found.append(piece)
            problems += len(piece.problems)
            if problems >= PROBLEMS_MAX and self._rejects is None:
                break
        return _Result(unit=unit, done=block.done, pieces=found)


# -- readers ---------------------------------------------------------------------------------------
# The reader of every format: blocks are read in order, and each becomes pieces in any thread.
#
# unit -> blocks (bytes are read) -> pieces (bytes are understood) -> [readers] -> a runner


PiecesOf = Callable[[Any], Iterator[InputPiece]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatReader:
    """How one format is read."""

    blocks: Callable[[InputUnit, SourceReader], Iterator[Any]]
    """Whole records of a unit, each block with ``done``: the bytes of the file read so far."""
    pieces: Callable[[InputUnit, Catalog], PiecesOf]
    """Gives the function that reads a block of a unit; any thread may call it."""


READERS = {
    Format.JSONL: FormatReader(blocks=jsonl_blocks, pieces=jsonl_pieces),
    Format.CSV: FormatReader(blocks=csv_blocks, pieces=csv_pieces),
    Format.PARQUET: FormatReader(blocks=parquet_batches, pieces=batch_pieces),
    Format.ARROW: FormatReader(blocks=arrow_batches, pieces=batch_pieces),
}


def unit_blocks(unit: InputUnit) -> Iterator[Any]:
    """The blocks of a unit, in order. Raises ``UnreadableInput``."""
    with open_source(unit.planned.file) as reader:
        yield from READERS[unit.planned.format].blocks(unit, reader)
        reader.verify()


def read_unit(unit: InputUnit, catalog: Catalog) -> Iterator[InputPiece]:
    """All pieces of a unit, in order; that it cannot be read is a problem among the others."""
    pieces_of, lines = READERS[unit.planned.format].pieces(unit, catalog), 0
    try:
        for block in unit_blocks(unit):
            for piece in pieces_of(block):
                lines += piece.line_count
                yield piece
    except (UnreadableInput, InputError) as error:
        yield broken(unit, error, lines)


def broken(unit: InputUnit, error: UnreadableInput | InputError, lines: int) -> InputPiece:
    """That a unit cannot be read on after some lines, as a problem."""
    message = error.reason if isinstance(error, UnreadableInput) else error.message
    # Only in a file that is read from its start is it known where this happened.
    if isinstance(error, UnreadableInput) and unit.planned.in_order:
        message = f"{message} after line {lines}"
    return InputPiece(parts=(), problems=[Problem(message=message)], line_count=0)
