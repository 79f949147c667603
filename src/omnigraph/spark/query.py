"""Reads of the query language on Spark: the same text, the same answers.

    typed query -> plan (SPARK_RULES) -> lower -> DataFrame -> [query] -> Arrow table

For what outgrows one process: a plan becomes joins and aggregates that Spark spreads over its
executors. Text tests and rankings are found by the local engine on the driver, which has the
indexes, and joined (``lower.search``).
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import LimitError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.exec.outputs import result_schema
from omnigraph.query.plan.planner import QueryPlan, plan_read
from omnigraph.query.plan.rules import RULES
from omnigraph.query.plan.rules.keys import seek_by_key
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.arrow import from_spark
from omnigraph.spark.errors import translated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.manifest.pinned import PinnedGraph
    from omnigraph.spark.lower.search import Search
    from omnigraph.spark.lower.sources import Tables
    from omnigraph.spark.sessions import Pipeline

SPARK_RULES = tuple(rule for rule in RULES if rule is not seek_by_key)
"""A lookup by key is a filter here: the reader of the table hands it to Lance, index included."""

CANCEL_EVERY_S = 0.5

_numbers = count(1)


def plan_for_spark(read: typed.Read, pinned: PinnedGraph) -> QueryPlan:
    """The plan of a read on a snapshot, of steps that can be lowered."""

    def rows(type_name: str) -> int:
        pin = pinned.pins.get(f"node:{type_name}")
        return pin.row_count if pin is not None else 0

    return plan_read(read, pinned.catalog, rows, SPARK_RULES)


def query_snapshot(
    repository: Repository,
    snapshot: Snapshot,
    read: typed.Read,
    values: Values,
    search: Search,
    spark: SparkSession | None = None,
    *,
    timeout_s: float | None = None,
) -> pa.Table:
    """The rows of a read on a snapshot of an open graph; see ``Graph.query``.

    ``search`` is the local engine on the same snapshot.
    """
    from omnigraph.manifest.pinned import PinnedGraph
    from omnigraph.spark.sessions import pipeline_session

    pinned = PinnedGraph.of(repository, snapshot)
    plan, catalog = plan_for_spark(read, pinned), pinned.catalog
    with pipeline_session(spark) as pipeline:
        tables = PinnedTables(pipeline.spark, pinned, values)
        return run_on_tables(
            pipeline.spark, tables, plan, values, catalog, search, timeout_s=timeout_s
        )


def query_frame(
    pipeline: Pipeline,
    pinned: PinnedGraph,
    query_plan: QueryPlan,
    values: Values,
    search: Search,
) -> DataFrame:
    """The result of a read as a DataFrame, for more work in Spark; nothing is collected.

    A traversal of more than three hops runs its first rounds already, and searches are made.
    Columns have the names that the query gives them; numbers and instants are held as
    ``spark.arrow`` says.
    """
    tables = PinnedTables(pipeline.spark, pinned, values)
    df, outputs = _lowered(pipeline.spark, tables, query_plan, values, pinned.catalog, search)
    return df.toDF(*(output.name for output in outputs))


def run_on_tables(
    spark: SparkSession,
    tables: Tables,
    query_plan: QueryPlan,
    values: Values,
    catalog: Catalog,
    search: Search,
    *,
    timeout_s: float | None = None,
) -> pa.Table:
    """The rows of a read, in the columns that the local engine gives.

    They come to the driver, so they have to fit there. ``timeout_s`` is for the jobs of this query:
    when it is over they are cancelled, and ``LimitError`` is raised.
    """
    with translated("running a query"), _limited(spark, timeout_s):
        df, outputs = _lowered(spark, tables, query_plan, values, catalog, search)
        found = df.toArrow()
    schema = result_schema(outputs, catalog)
    plain = pa.schema([pa.field(n, f.type) for n, f in zip(df.columns, schema, strict=True)])
    batches = [from_spark(batch, plain) for batch in found.to_batches()]
    return pa.Table.from_batches(batches, plain).rename_columns(schema.names)


def _lowered(
    spark: SparkSession,
    tables: Tables,
    plan: QueryPlan,
    values: Values,
    catalog: Catalog,
    search: Search,
) -> tuple[DataFrame, Sequence[typed.Output]]:
    # Here, because everything there needs Spark and this module is asked before it is known to be
    # installed.
    from omnigraph.spark.lower.lowering import Lowering
    from omnigraph.spark.lower.steps import FRAMES, outputs_of, result

    low = Lowering(spark, tables, plan, values, catalog, FRAMES, search)
    return result(low, plan.root), outputs_of(plan.root)


class PinnedTables:
    """The tables of a snapshot; each question about one is a scan of its own on the executors."""

    takes_conditions = True

    def __init__(self, spark: SparkSession, pinned: PinnedGraph, values: Values) -> None:
        self._spark = spark
        self._pinned = pinned
        self._values = values
        self._read: dict[Any, DataFrame] = {}

    def read(
        self, table_key: str, columns: Sequence[str], conditions: Sequence[typed.Expr]
    ) -> DataFrame:
        """These columns of the rows that pass; equal questions share one DataFrame."""
        from omnigraph.spark.tables import table_frame

        asked = (table_key, tuple(columns), tuple(conditions))
        if asked not in self._read:
            condition = typed.And(operands=tuple(conditions)) if conditions else None
            self._read[asked] = table_frame(
                self._spark, self._pinned, table_key, columns, condition, values=self._values
            )
        return self._read[asked]


@contextmanager
def _limited(spark: SparkSession, timeout_s: float | None) -> Generator[None]:
    """Say in our own words that a query takes too long, or that it counts too much."""
    from omnigraph.spark.lower.frame import OVERFLOW

    watch = None if timeout_s is None else _Watch(spark, timeout_s)
    try:
        yield
    except Exception as e:
        if watch is not None and watch.late:
            raise watch.error() from e
        if OVERFLOW in str(e):
            raise LimitError(
                "the query counts more rows than a 64-bit number holds",
                hint="bound the pattern: fewer traversals, a filter or a key",
                details={"limit": "count"},
            ) from e
        raise
    finally:
        if watch is not None:
            watch.end()
    if watch is not None and watch.late:
        raise watch.error()


class _Watch:
    """Cancels the jobs of the thread that made it once time is up."""

    def __init__(self, spark: SparkSession, timeout_s: float) -> None:
        self._spark = spark
        self._timeout_s = timeout_s
        self._tag = f"omnigraph-query-{os.getpid()}-{next(_numbers)}"
        self._done = Event()
        self.late = False
        spark.addTag(self._tag)
        Thread(target=self._cancel, name=self._tag, daemon=True).start()

    def end(self) -> None:
        """Stop watching; later jobs of the thread are not the query's."""
        self._done.set()
        self._spark.removeTag(self._tag)

    def error(self) -> LimitError:
        return LimitError(
            f"the query took longer than {self._timeout_s:g} s",
            hint="narrow it with a filter or a key, or allow more time",
            details={"limit": "time", "timeout_s": self._timeout_s},
        )

    def _cancel(self) -> None:
        if self._done.wait(self._timeout_s):
            return
        self.late = True
        # Again and again: a query is several jobs, and there may be none at this moment.
        while True:
            self._spark.interruptTag(self._tag)
            if self._done.wait(CANCEL_EVERY_S):
                return
