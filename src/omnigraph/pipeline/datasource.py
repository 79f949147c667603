"""``spark.read.format("omnigraph")`` and ``df.write.format("omnigraph")``.

    options -> [datasource] -> a pinned scan -> executors;   executors -> parts -> one commit

Spark makes these objects in processes of its own beside the driver, pickles them, and reads with
the copies: so everything that says *which* rows are read is decided in the constructor, once, and
travels in every partition. Spark's interface for data sources written in Python takes no columns
away: ``.schema("name string, age int")`` before ``load`` does, and so does ``table_frame``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as spark_api
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)

from omnigraph.errors import UsageError
from omnigraph.ids import SystemIds
from omnigraph.lang.suggest import did_you_mean
from omnigraph.load.tables import rows_from_table
from omnigraph.manifest.snapshot import MAIN
from omnigraph.pipeline.arrow import arrow_of, spark_schema, to_spark
from omnigraph.pipeline.parts import (
    SOURCE_NAME,
    FrameWrite,
    load_parts,
    remove_parts,
    write_part,
)
from omnigraph.pipeline.pinning import pin_graph
from omnigraph.pipeline.scan import Scan
from omnigraph.pipeline.tables import PinnedGraph
from omnigraph.query import typed
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.location import Location, locate
from omnigraph.storage.names import TableVersion
from omnigraph.storage.pieces import Piece
from omnigraph.write.delta import WriteMode

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

FORMAT = "omnigraph"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_OPTIONS = ("graph", "type", "branch", "commit", "mode", "actor", "message")
_ENVIRONMENT = "aws_"
"""Options that begin so stand for the environment variables of the same name."""


def register(spark: SparkSession) -> None:
    """Make the format known to a session; call it again after changing the session's push-down.

    Filters are pushed down if the session allows it: Spark refuses a source that could push when
    its ``spark.sql.python.filterPushdown.enabled`` is off, and it is off unless somebody set it.
    """
    allowed = str(spark.conf.get(PUSHDOWN, "false")).lower() == "true"
    spark.dataSource.register(PushingSource if allowed else GraphSource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What somebody said by ``option``, checked."""

    location: Location
    type_name: str
    branch: str | None
    commit: str | None
    mode: WriteMode | None
    actor: str | None
    message: str | None

    @staticmethod
    def of(given: Mapping[str, str], environ: Mapping[str, str]) -> Options:
        """Read options, whose names Spark gives in lower case."""
        # `load(path)` arrives as the option "path".
        known = (*_OPTIONS, "path")
        for name in given:
            if name.lower() not in known and not name.lower().startswith(_ENVIRONMENT):
                raise UsageError(
                    f"the format '{FORMAT}' has no option '{name}'",
                    hint=did_you_mean(name, _OPTIONS) or f"it has {', '.join(_OPTIONS)}",
                )
        options = {name.lower(): value for name, value in given.items()}
        place = options.get("graph") or options.get("path")
        if not place:
            raise UsageError(
                "no graph named", hint=f'say .format("{FORMAT}").option("graph", "PLACE")'
            )
        if not options.get("type"):
            raise UsageError("no type named", hint='say .option("type", "Person")')
        settings = {n.upper(): v for n, v in options.items() if n.startswith(_ENVIRONMENT)}
        return Options(
            location=locate(place, {**environ, **settings}),
            type_name=options["type"],
            branch=options.get("branch"),
            commit=options.get("commit"),
            mode=_mode(options.get("mode")),
            actor=options.get("actor"),
            message=options.get("message"),
        )


class GraphSource(DataSource):
    """One type of a graph at one moment. The moment is when Spark makes this object."""

    _pushes = False

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = Options.of(options, os.environ)
        self._pinned = pin_graph(
            self._options.location, branch=self._options.branch, commit=self._options.commit
        )
        self._type = self._pinned.type(self._options.type_name)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return spark_schema(table_schema(self._type))

    def reader(self, schema: StructType) -> DataSourceReader:
        _check_schema(schema, self._type)
        scan = Scan(table=self._pinned.table(self._type), columns=tuple(schema.names))
        kind = PushingReader if self._pushes else PieceReader
        return kind(scan, arrow_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return PartWriter(_frame_write(self._options, self._pinned, schema, overwrite=overwrite))


class PushingSource(GraphSource):
    """The same for sessions that let a source take filters."""

    _pushes = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PiecePlace:
    """What a partition reads: an exact version, and which part of it."""

    name: TableVersion
    piece: Piece


class PieceReader(DataSourceReader):
    """Reads a scan, one partition for each of its pieces."""

    def __init__(self, scan: Scan, carried: pa.Schema) -> None:
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
    """The same, with the filters of the query as far as they are ours to answer."""

    def pushFilters(  # noqa: N802 - the name is Spark's
        self, filters: list[spark_api.Filter]
    ) -> Iterable[spark_api.Filter]:
        from omnigraph.pipeline.filters import to_conditions

        conditions, rest = to_conditions(filters, self._scan.table.type)
        if conditions:
            whole = typed.And(operands=tuple(conditions))
            self._scan = replace(self._scan, condition=whole)
        return rest


@dataclass(frozen=True, slots=True)
class PartMessage(WriterCommitMessage):
    """What a task tells the driver: the part that it wrote, if it had rows."""

    name: str | None


class PartWriter(DataSourceArrowWriter):
    """Writes parts on executors and loads them as one commit on the driver."""

    def __init__(self, write: FrameWrite) -> None:
        self._write = write

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return PartMessage(write_part(self._write, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        names = [m.name for m in messages if isinstance(m, PartMessage) and m.name is not None]
        load_parts(self._write, names)
        remove_parts(self._write)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        remove_parts(self._write)


def _frame_write(
    options: Options, pinned: PinnedGraph, schema: StructType, *, overwrite: bool
) -> FrameWrite:
    if options.commit is not None:
        raise UsageError("a commit is never written to", hint="leave out the option 'commit'")
    if overwrite and options.mode not in (None, WriteMode.OVERWRITE):
        raise UsageError(
            f'mode("overwrite") contradicts option("mode", "{options.mode}")',
            hint='with option("mode", "merge") or "append", say .mode("append")',
        )
    graph_type = pinned.type(options.type_name)
    given = arrow_of(schema)
    # Whatever is wrong with the columns themselves is told before the first row is computed.
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
    """A schema that somebody gave picks columns of ours; it cannot change what they are."""
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


def frame_options(pinned: PinnedGraph, **options: Any) -> dict[str, str]:
    """Options that make ``spark.read.format`` read exactly what ``pinned`` shows."""
    return {
        "graph": pinned.location.uri,
        "branch": pinned.branch,
        "commit": pinned.commit_id,
        **options,
    }
