"""An input of any kind, read once by Spark and kept: typed rows per type, and what is wrong.

    source -> plan (driver) -> tasks -> parsed frame, persisted -> [input] -> intake(), problems()

One pass over the input makes one frame that holds the rows of all types (`input.packed` has its
layout), and one action on it collects what every unit counted: lines, rows, problems. From these
the driver knows the line that each unit begins on, and tasks that unpack rows place them. The
driver never sees a row, and problems only as many as are asked for. Bad input is data: a task
raises only if a store does not answer, which is worth another attempt, or if the input is no longer
what it was.

Everything is the same when it is computed again: rows, lines, and the ids of rows that came without
one, which follow from the run's id and the place of the row. An input that changed meanwhile makes
the tasks that notice it fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import InputError, UsageError
from omnigraph.input.loaded_rows import InputPiece
from omnigraph.input.packed import (
    PARSED_DDL,
    PROBLEM_DDL,
    PROBLEMS,
    UNIT,
    Ledger,
    UnitStats,
    pack_unit,
    placed_problems,
    placed_rows,
    unpacked,
)
from omnigraph.input.plan import InputPlan, PlannedMember, plan_input
from omnigraph.input.problems import PROBLEMS_MAX, Problem, input_error
from omnigraph.input.ranges import RANGE_BYTES, RANGE_BYTES_MAX
from omnigraph.input.sources import Given, Kind
from omnigraph.input.streams import GivenStream
from omnigraph.input.table_shape import check_types, piece_of, table_shape
from omnigraph.input.threads import read_unit
from omnigraph.input.units import TableShape, WorkPlan, group_unit
from omnigraph.lang.source import one_line
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.identity import is_keyed
from omnigraph.schema.ir import catalog_of, to_ir
from omnigraph.spark.errors import task, translated
from omnigraph.storage.faults import short

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.spark.sessions import Pipeline


Read = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[str, pa.Table]]]

_TASK_BYTES = 64 << 20
"""Files that cannot be cut are spread over tasks of about this size, once they are read."""
_UNPACKED_FACTOR = 8
_SPREAD_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The input as tasks read it, all types together."""

    frame: DataFrame
    """Kept rows, in whatever shape ``read`` takes."""
    read: Read
    """Runs on executors: batches of the frame as rows of types, by table key. In the columns of
    ``table_schema(type)``, ``_file`` and ``_line``; values before the check, so any may be null."""


class ParsedInput:
    """An input that was read. Close it with ``unpersist`` when it is not needed any more."""

    def __init__(
        self, frame: DataFrame, plan: InputPlan, stats: Sequence[UnitStats], ir: bytes, run_id: str
    ) -> None:
        self._frame = frame
        self._plan = plan
        self._ir = ir
        self._run_id = run_id
        self._ledger = Ledger.of(plan.names, stats)
        self.files = plan.names
        """Names of all sources; ``_file`` counts them."""
        self.problem_count = sum(s.problems for s in stats)
        """How many problems there are in all."""
        self._rows = plan.counts(stats)

    @property
    def keys(self) -> tuple[str, ...]:
        """Table keys that the input mentions, in order of first mention.

        A table without rows mentions its type all the same.
        """
        return tuple(self._rows)

    def row_count(self, table_key: str) -> int:
        """How many rows there are of a type."""
        return self._rows[table_key][0]

    def ids_fresh(self, table_key: str, catalog: Catalog) -> bool:
        """Whether no row of an un-keyed type came with an id: none can exist, and none repeats."""
        return not is_keyed(catalog.table(table_key)) and self._rows[table_key][1] == 0

    def intake(self) -> Intake:
        """All rows, for tasks that unpack them on their own."""
        from pyspark.sql import functions

        kept = self._frame.filter(functions.col("kind") != PROBLEMS)
        return Intake(frame=kept, read=partial(unpack_rows, self._ir, self._run_id, self._ledger))

    def problems(self, limit: int = PROBLEMS_MAX) -> list[Problem]:
        """The first problems in the order of sources and lines."""
        if not self.problem_count:
            return []
        with translated("collecting problems"):
            return self._first_problems(limit)

    def _first_problems(self, limit: int) -> list[Problem]:
        from pyspark.sql import functions

        places = ("file", "unit", "before")
        all_of_them = self._frame.filter(functions.col("kind") == PROBLEMS)
        # Which rows of the frame hold the first ones is asked without their payloads.
        first = all_of_them.select(*places, "rows").orderBy(*places).limit(limit).collect()
        last, found = first[0], 0
        for row in first:
            if found < limit:
                last, found = row, found + row["rows"]
        file, unit, before = (functions.col(name) for name in places)
        in_unit = (unit < last["unit"]) | ((unit == last["unit"]) & (before <= last["before"]))
        chosen = (file < last["file"]) | ((file == last["file"]) & in_unit)
        rows = (
            all_of_them.filter(chosen)
            .repartition(1)
            .sortWithinPartitions(*places)
            .mapInArrow(task(partial(unpack_problems, self._ledger, limit)), PROBLEM_DDL)
            .drop("text")
            .limit(limit)
            .collect()
        )
        return [
            Problem(source=r["file"], line=r["line"], column=r["column"], message=r["message"])
            for r in rows
        ]

    def problem_frame(self) -> DataFrame:
        """All problems: file, line, column, message, and the text of the line if it has one."""
        from pyspark.sql import functions

        wanted = self._frame.filter(functions.col("kind") == PROBLEMS)
        return wanted.mapInArrow(task(partial(unpack_problems, self._ledger, None)), PROBLEM_DDL)

    def every_problem(self) -> Iterator[tuple[Problem, str | None]]:
        """All problems in no promised order, with the text of their line if it has one.

        They pass through the driver a part at a time.
        """
        for r in self.problem_frame().toLocalIterator():
            place = {name: r[name] for name in ("line", "column", "message")}
            yield Problem(source=r["file"], **place), r["text"]

    def error(self, limit: int = PROBLEMS_MAX) -> InputError | None:
        """The error with the first problems and how many there are; None without any."""
        total = self.problem_count
        return input_error(self.problems(limit), total=total) if total else None

    def unpersist(self) -> None:
        """Let go of the kept rows."""
        self._frame.unpersist()


def parse_input(
    pipeline: Pipeline,
    given: Given,
    catalog: Catalog,
    *,
    run_id: str,
    range_bytes: int = RANGE_BYTES,
    plan: InputPlan | None = None,
) -> ParsedInput:
    """Read an input of files and Spark DataFrames; one job, whatever it holds.

    ``run_id`` is a ULID. Raises what makes reading pointless: no such file, another format, columns
    of no type. All else that is wrong with the input is reported by ``problems``. ``plan`` is that
    of ``look_at``, if it was made already.
    """
    plan = plan or look_at(given, catalog, range_bytes=range_bytes)
    with translated("looking at the input"):
        frames = [_planned(member, group) for group, member in enumerate(plan.others, start=1)]
    ir = to_ir(catalog, "")
    with translated("reading the input"):
        frame, stats = _read(pipeline.spark, plan, frames, ir)
        torn = plan.torn(stats)
        if torn:
            # A newline within quotes stood where a range begins: these files cannot be cut.
            frame.unpersist()
            plan = plan.uncut(torn)
            frame, stats = _read(pipeline.spark, plan, frames, ir)
    return ParsedInput(frame, plan, stats, ir, run_id)


def look_at(given: Given, catalog: Catalog, *, range_bytes: int = RANGE_BYTES) -> InputPlan:
    """What is read, and how it is cut. Needs no session: what is pointless is told before that."""
    if not 0 < range_bytes <= RANGE_BYTES_MAX:
        raise UsageError(f"ranges have between 1 and {RANGE_BYTES_MAX} bytes")
    _refuse_what_is_here(given)
    with translated("looking at the input"):
        return plan_input(given, catalog, range_bytes=range_bytes)


def _refuse_what_is_here(given: Given) -> None:
    """What is in the memory of this process, or comes in order, is not for executors."""
    for member in given.members:
        if member.kind not in (Kind.FILES, Kind.FRAME):
            raise UsageError(
                f"Spark cannot load from {type(member.value).__name__}",
                hint="it takes paths and Spark DataFrames; this is loaded with engine='local'",
            )
    streams = [f.name for f in given.files if isinstance(f, GivenStream)]
    if streams:
        raise UsageError(
            f"Spark cannot load from the stream {one_line(streams[0])}",
            hint="write it to a file first, or say engine='local'",
        )


def _read(
    spark: SparkSession, plan: InputPlan, frames: Sequence[PlannedFrame], ir: bytes
) -> tuple[DataFrame, Sequence[UnitStats]]:
    """The parsed frame, persisted and filled, and the statistics of all units."""
    from pyspark.sql import functions
    from pyspark.storagelevel import StorageLevel

    frame = _parsed_files(spark, plan, ir)
    for one in frames:
        read = frame_task(ir, one.shape, one.group, one.file)
        frame = frame.unionAll(one.frame.mapInArrow(read, PARSED_DDL))
    # On disk: payloads are packed already, and memory is for the joins to come.
    frame = frame.persist(StorageLevel.DISK_ONLY)
    try:
        units = frame.filter(functions.col("kind") == UNIT).select("unit", "file", "payload")
        rows = units.collect()
    except BaseException:
        frame.unpersist()
        raise
    stats = [UnitStats.from_bytes(r["unit"], r["file"], bytes(r["payload"])) for r in rows]
    return frame, sorted(stats, key=lambda s: s.unit)


def _parsed_files(spark: SparkSession, plan: InputPlan, ir: bytes) -> DataFrame:
    work = plan.work
    numbers = spark.range(0, work.unit_count, 1, work.task_count)
    frame = numbers.mapInArrow(task(partial(read_units, ir, work)), PARSED_DDL)
    spread = 0
    for planned in work.files:
        whole = planned.file.size if planned.unit_count == 1 else 0
        factor = _UNPACKED_FACTOR if planned.compression else 1
        spread = max(spread, whole * factor // _TASK_BYTES)
    if spread > 1:
        # One task has read much: without this, one task would do everything that follows.
        frame = frame.repartition(min(spread * 2, _SPREAD_MAX), "unit", "before", "kind")
    return frame


# -- tasks ---------------------------------------------------------------------------------------


def read_units(ir: bytes, plan: WorkPlan, batches: Batches) -> Batches:
    """Numbers of units -> rows of the parsed frame."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            unit = plan.unit(number)
            yield from pack_unit(number, unit.file, read_unit(unit, catalog_of(ir)))


def unpack_rows(
    ir: bytes, run_id: str, ledger: Ledger, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[str, pa.Table]]:
    """Rows of the parsed frame -> tables with places and ids, by table key."""
    for packed in unpacked(batches, ledger):
        if packed.kind != PROBLEMS:
            yield packed.kind, placed_rows(packed, catalog_of(ir).table(packed.kind), run_id)


def unpack_problems(ledger: Ledger, limit: int | None, batches: Batches) -> Batches:
    """Rows of the parsed frame -> problems in their places; of each row of it the first ones."""
    for packed in unpacked(batches, ledger):
        if packed.kind == PROBLEMS:
            yield from placed_problems(packed, ledger, limit).to_batches()


# -- frames ----------------------------------------------------------------------------------------
# A Spark DataFrame as rows of one type.
#
#     DataFrame -> (driver) shape, numbered rows -> (tasks) piece_of -> [frames] -> pieces
#
# The line of a row is its number in the order in which `collect()` would return the rows. A
# partition of the frame is a unit: rows are numbered within it by Spark, and the ledger adds what
# stands before.


Batches = Iterator[pa.RecordBatch]
_PLACE = "place"
_PARTITION_BITS = 33
"""How Spark's increasing ids are made: the partition's number above, the row's below."""


@dataclass(frozen=True, kw_only=True)
class PlannedFrame:
    """One DataFrame, ready to be read."""

    frame: DataFrame
    """The wanted columns under the names that the shape gives them, and the place of each row."""
    shape: TableShape
    group: int
    file: int
    """Index among all sources."""


def _planned(planned: PlannedMember, group: int) -> PlannedFrame:
    """Settle columns and their types. Raises InputError."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions

    frame: DataFrame = planned.member.value
    graph_type, name = planned.type, planned.member.label
    shape = table_shape(graph_type, frame.columns, mapping=planned.member.columns, source=name)
    # By place: Spark looks for names without regard to case, and may find two.
    numbered = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    places = {column: f"c{frame.columns.index(column)}" for _, column in shape.columns}
    wanted = [functions.col(place) for place in places.values()]
    try:
        schema: pa.Schema = numbered.select(*wanted).limit(0).toArrow().schema
    except (PySparkException, pa.ArrowException) as error:
        raise input_error(
            [Problem(source=name, message=f"the DataFrame cannot be read: {short(error)}")]
        ) from error
    types = {column: schema.field(place).type for column, place in places.items()}
    check_types(graph_type, shape, types, name)
    place = functions.monotonically_increasing_id().alias(_PLACE)
    return PlannedFrame(
        frame=numbered.select(*wanted, place), shape=shape, group=group, file=planned.index
    )


def frame_task(ir: bytes, shape: TableShape, group: int, file: int) -> Callable[[Batches], Batches]:
    """For executors: rows of a user's DataFrame -> rows of the parsed frame."""

    @task
    def run(batches: Batches) -> Batches:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        graph_type = catalog_of(ir).table(shape.table_key)
        pieces = _read_batches(chain([first], filled), graph_type, shape)
        yield from pack_unit(group_unit(group, _unit_of(first)), file, pieces)

    return run


def _unit_of(batch: pa.RecordBatch) -> int:
    """The partition of the frame that a batch comes from."""
    first: Any = batch.column(batch.num_columns - 1)[0].as_py()
    return int(first) >> _PARTITION_BITS


def _read_batches(
    batches: Batches, graph_type: GraphType, shape: TableShape
) -> Iterator[InputPiece]:
    """The pieces of one partition."""
    # The distinct columns of the source in the order in which the frame has them.
    names = list(dict.fromkeys(column for _, column in shape.columns))
    for batch in batches:
        columns = dict(zip(names, batch.columns, strict=False))  # the last one is the place
        yield piece_of(graph_type, shape, columns, batch.num_rows)
