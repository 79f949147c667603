"""``spark.read.format("omnigraph")`` and ``df.write.format("omnigraph")``.

    options -> [datasource] -> a pinned scan -> executors;   executors -> parts -> one commit

Spark makes these objects in processes of its own beside the driver, pickles them, and reads with
the copies: so everything that says *which* rows are read is decided in the constructor, once, and
travels in every partition.

Spark's interface for data sources in Python takes no columns away; the option ``columns`` does, or
``.schema("name string, age int")`` before ``load``. It can push filters down, but it keeps the
filters of one query for the next query on the same DataFrame, and then rows are missing (Spark 4.1
to 4.3; a test shows it). So filters are given by the option ``where``, which is always right, and
Spark's own are taken only with ``option("pushdown", "true")``, for a DataFrame that is used once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    Filter,
    InputPartition,
    WriterCommitMessage,
)

from omnigraph.clock import SystemClock
from omnigraph.errors import UsageError
from omnigraph.ids import SystemIds
from omnigraph.lang.suggest import did_you_mean
from omnigraph.manifest.pinned import pin_graph
from omnigraph.manifest.snapshot import MAIN
from omnigraph.query.pinned_scan import PinnedScan
from omnigraph.rules.table_delta import WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.spark.arrow import arrow_of, spark_schema, to_spark
from omnigraph.spark.package import ship
from omnigraph.storage.location import Location, locate
from omnigraph.storage.names import TableVersion
from omnigraph.storage.pieces import FilePiece

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from omnigraph.input.parts import FrameWrite
    from omnigraph.manifest.pinned import PinnedGraph

FORMAT = "omnigraph"
_READING = ("columns", "where", "pushdown", "commit")
_WRITING = ("mode", "actor", "message")
_OPTIONS = ("graph", "type", "branch", *_READING, *_WRITING)
_ENVIRONMENT = ("aws_", "google_", "azure_")
"""Options that begin so stand for the environment variables of the same name."""


def register(spark: SparkSession) -> None:
    """Make the format known to a session, whose workers get omnigraph's code with it."""
    ship(spark)
    spark.dataSource.register(GraphSource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was said by ``option``, checked."""

    location: Location
    type_name: str
    branch: str | None = None
    commit: str | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    pushdown: bool = False
    mode: WriteMode | None = None
    actor: str | None = None
    message: str | None = None

    @staticmethod
    def of(given: Mapping[str, str], environ: Mapping[str, str]) -> Options:
        """Read options; their names in any case, as Spark has it."""
        options = {name.lower(): value for name, value in given.items()}
        # `load(path)` arrives as the option "path".
        options.setdefault("graph", options.pop("path", ""))
        for name in options:
            if name not in _OPTIONS and not name.startswith(_ENVIRONMENT):
                raise UsageError(
                    f"the format '{FORMAT}' has no option '{name}'",
                    hint=did_you_mean(name, _OPTIONS) or f"it has {', '.join(_OPTIONS)}",
                )
        if not options["graph"]:
            raise UsageError(
                "no graph named", hint=f'say .format("{FORMAT}").option("graph", "PLACE")'
            )
        if not options.get("type"):
            raise UsageError("no type named", hint='say .option("type", "Person")')
        settings = {n.upper(): v for n, v in options.items() if n.startswith(_ENVIRONMENT)}
        columns = options.get("columns")
        return Options(
            location=locate(options["graph"], {**environ, **settings}),
            type_name=options["type"],
            branch=options.get("branch"),
            commit=options.get("commit"),
            columns=None if columns is None else tuple(c.strip() for c in columns.split(",")),
            where=options.get("where"),
            pushdown=_truth("pushdown", options.get("pushdown", "false")),
            mode=_mode(options.get("mode")),
            actor=options.get("actor"),
            message=options.get("message"),
        )


class GraphSource(DataSource):
    """One type of a graph at one moment. The moment is when Spark makes this object."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = Options.of(options, os.environ)
        self._scan = _scan(self._given)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return spark_schema(self._scan.schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        _check_schema(schema, self._scan.table.type)
        scan = replace(self._scan, columns=tuple(schema.names))
        kind = PushingReader if self._given.pushdown else PieceReader
        return kind(scan, arrow_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        write = _frame_write(self._given, self._scan.table.type, schema, overwrite=overwrite)
        return PartWriter(write)


def _scan(options: Options) -> PinnedScan:
    pinned = pin_graph(options.location, branch=options.branch, commit=options.commit)
    graph_type = pinned.type(options.type_name)
    scan = PinnedScan(
        table=pinned.table(graph_type),
        columns=options.columns or tuple(table_schema(graph_type).names),
    )
    if options.where is None:
        return scan
    from omnigraph.query.compile import condition_of
    from omnigraph.query.exec.evaluate import Values

    now = datetime.fromtimestamp(SystemClock().now_us() // 1_000_000, UTC)
    return replace(
        scan,
        condition=condition_of(options.where, graph_type, pinned.catalog),
        values=Values(params={}, now=now),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecePlace:
    """What a partition reads: an exact version, and which part of it."""

    name: TableVersion
    piece: FilePiece


class PieceReader(DataSourceReader):
    """Reads a scan, one partition for each of its pieces."""

    def __init__(self, scan: PinnedScan, carried: pa.Schema) -> None:
        self._scan = scan
        self._carried = carried

    def partitions(self) -> Sequence[InputPartition]:
        name = self._scan.table.name
        if name is None:
            return []
        return [InputPartition(PiecePlace(name=name, piece=p)) for p in self._scan.pieces()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        place: PiecePlace | None = partition.value
        if place is None:  # Spark's own partition, where we had none.
            return
        table = replace(self._scan.table, name=place.name)
        for batch in replace(self._scan, table=table).batches(place.piece):
            yield to_spark(batch, self._carried)


class PushingReader(PieceReader):
    """The same, with the filters of the query as far as they are ours to answer.

    Spark refuses it where ``spark.sql.python.filterPushdown.enabled`` is off.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        from omnigraph.spark.filters import to_conditions

        conditions, rest = to_conditions(filters, self._scan.table.type)
        if conditions:
            self._scan = self._scan.narrowed(conditions)
        return rest


@dataclass(frozen=True, slots=True)
class PartMessage(WriterCommitMessage):
    """What a task reports to the driver: the part that it wrote, if it had rows."""

    name: str | None


class PartWriter(DataSourceArrowWriter):
    """Writes parts on executors and loads them as one commit on the driver."""

    def __init__(self, write: FrameWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        from omnigraph.input.parts import write_part

        return PartMessage(write_part(self._write, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        from omnigraph.input.parts import load_parts, remove_parts

        names = [m.name for m in messages if isinstance(m, PartMessage) and m.name is not None]
        load_parts(self._write, names)
        remove_parts(self._write)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        from omnigraph.input.parts import remove_parts

        remove_parts(self._write)


def _frame_write(
    options: Options, graph_type: GraphType, schema: StructType, *, overwrite: bool
) -> FrameWrite:
    from omnigraph.input.parts import SOURCE_NAME, FrameWrite
    from omnigraph.input.tables import rows_from_table

    if options.commit is not None:
        raise UsageError("a commit is never written to", hint="leave out the option 'commit'")
    if overwrite and options.mode not in (None, WriteMode.OVERWRITE):
        raise UsageError(
            f'mode("overwrite") contradicts option("mode", "{options.mode}")',
            hint='with option("mode", "merge") or "append", say .mode("append")',
        )
    given = arrow_of(schema)
    # Whatever is wrong with the columns themselves is reported before the first row is computed.
    rows_from_table(graph_type, given.empty_table(), SystemIds(), source_name=SOURCE_NAME)
    return FrameWrite(
        location=options.location,
        type_name=graph_type.name,
        mode=options.mode or (WriteMode.OVERWRITE if overwrite else WriteMode.APPEND),
        branch=options.branch or MAIN,
        actor=options.actor,
        message=options.message,
        write_id=SystemIds().ulid(),
        schema=given,
    )


def _check_schema(schema: StructType, graph_type: GraphType) -> None:
    """A schema that was given picks columns of ours; it cannot change what they are."""
    ours = {f.name: f.dataType for f in spark_schema(table_schema(graph_type))}
    for field in schema:
        if field.name not in ours:
            raise UsageError(
                f"{graph_type.name} has no column '{field.name}'",
                hint=did_you_mean(field.name, ours) or f"it has {', '.join(ours)}",
            )
        said, is_ = field.dataType.simpleString(), ours[field.name].simpleString()
        if said != is_:
            raise UsageError(
                f"{graph_type.name}.{field.name} is {is_} in Spark, not {said}",
                hint="read it as it is and cast the column",
            )


def _mode(text: str | None) -> WriteMode | None:
    try:
        return WriteMode(text.lower()) if text is not None else None
    except ValueError as e:
        raise UsageError(
            f"unknown load mode '{text}'", hint="use append, merge or overwrite"
        ) from e


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UsageError(f"the option '{name}' is '{text}'", hint="use true or false")
    return text.lower() == "true"


def read_options(pinned: PinnedGraph, type_name: str) -> dict[str, str]:
    """Options with which ``spark.read.format`` reads exactly what ``pinned`` shows of a type."""
    return {
        "graph": pinned.location.uri,
        "type": type_name,
        "branch": pinned.branch,
        "commit": pinned.commit_id,
    }
