"""Reads of the query language on Spark: the same text, the same answers.

    typed query -> plan (SPARK_RULES) -> lower -> DataFrame -> [query] -> Arrow table

For what outgrows one process: a plan becomes joins and aggregates that Spark spreads over its
executors. Full-text search and rankings are the local engine's; asking for them here is an error.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import LimitError, UsageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.pipeline.arrow import from_spark
from omnigraph.pipeline.errors import translated
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.exec.outputs import result_schema
from omnigraph.query.plan.nodes import Plan, Rank, inputs
from omnigraph.query.plan.planner import QueryPlan, expressions, plan_read
from omnigraph.query.plan.rules import RULES
from omnigraph.query.plan.rules.best import rank_only_the_best
from omnigraph.query.plan.rules.keys import seek_by_key
from omnigraph.schema.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.pipeline.lower.sources import Tables
    from omnigraph.pipeline.session import Pipeline
    from omnigraph.pipeline.tables import PinnedGraph

SPARK_RULES = tuple(rule for rule in RULES if rule not in (seek_by_key, rank_only_the_best))
"""A lookup by key is a filter here: the reader of the table hands it to Lance, index included."""

CANCEL_EVERY_S = 0.5

_numbers = count(1)


def plan_for_spark(read: typed.Read, pinned: PinnedGraph) -> QueryPlan:
    """The plan of a read on a snapshot. Raises ``UsageError`` for what Spark does not run."""

    def rows(type_name: str) -> int:
        pin = pinned.pins.get(f"node:{type_name}")
        return pin.row_count if pin is not None else 0

    plan = plan_read(read, pinned.catalog, rows, SPARK_RULES)
    refuse_search(plan)
    return plan


def query_snapshot(
    repository: Repository,
    snapshot: Snapshot,
    read: typed.Read,
    values: Values,
    spark: SparkSession | None = None,
    *,
    timeout_s: float | None = None,
) -> pa.Table:
    """The rows of a read on a snapshot of an open graph; see ``Graph.query``."""
    from omnigraph.pipeline.session import pipeline_session
    from omnigraph.pipeline.tables import PinnedGraph

    pinned = PinnedGraph.of(repository, snapshot)
    # What Spark does not run is refused before a session is started for it.
    plan = plan_for_spark(read, pinned)
    with pipeline_session(spark) as pipeline:
        return run_query(pipeline, pinned, plan, values, pinned.catalog, timeout_s=timeout_s)


def run_query(
    pipeline: Pipeline,
    pinned: PinnedGraph,
    query_plan: QueryPlan,
    values: Values,
    catalog: Catalog,
    *,
    timeout_s: float | None = None,
) -> pa.Table:
    """The rows of a read, in the columns that the local engine gives.

    They come to the driver, so they have to fit there. ``timeout_s`` is for the jobs of this query:
    when it is over they are cancelled, and ``LimitError`` is raised.
    """
    return run_on_tables(
        pipeline.spark,
        PinnedTables(pipeline.spark, pinned, values),
        query_plan,
        values,
        catalog,
        timeout_s=timeout_s,
    )


def query_frame(
    pipeline: Pipeline,
    pinned: PinnedGraph,
    query_plan: QueryPlan,
    values: Values,
    catalog: Catalog,
) -> DataFrame:
    """The result of a read as a DataFrame, for more work in Spark; nothing is collected.

    A traversal of more than three hops runs its first rounds already. Columns have the names that
    the query gives them; numbers and instants are held as ``pipeline.arrow`` says.
    """
    tables = PinnedTables(pipeline.spark, pinned, values)
    df, outputs = _lowered(pipeline.spark, tables, query_plan, values, catalog)
    return df.toDF(*(output.name for output in outputs))


def run_on_tables(
    spark: SparkSession,
    tables: Tables,
    query_plan: QueryPlan,
    values: Values,
    catalog: Catalog,
    *,
    timeout_s: float | None = None,
) -> pa.Table:
    """As ``run_query``, wherever the tables come from."""
    refuse_search(query_plan)
    with translated("running a query"), _limited(spark, timeout_s):
        df, outputs = _lowered(spark, tables, query_plan, values, catalog)
        found = df.toArrow()
    schema = result_schema(outputs, catalog)
    plain = pa.schema([pa.field(n, f.type) for n, f in zip(df.columns, schema, strict=True)])
    batches = [from_spark(batch, plain) for batch in found.to_batches()]
    return pa.Table.from_batches(batches, plain).rename_columns(schema.names)


def _lowered(
    spark: SparkSession, tables: Tables, plan: QueryPlan, values: Values, catalog: Catalog
) -> tuple[DataFrame, Sequence[typed.Output]]:
    # Here, because everything there needs Spark and this module is asked before it is known to be
    # installed.
    from omnigraph.pipeline.lower.lowering import Lowering
    from omnigraph.pipeline.lower.steps import FRAMES, outputs_of, result

    low = Lowering(spark, tables, plan, values, catalog, FRAMES)
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
        from omnigraph.pipeline.tables import table_frame

        asked = (table_key, tuple(columns), tuple(conditions))
        if asked not in self._read:
            condition = typed.And(operands=tuple(conditions)) if conditions else None
            self._read[asked] = table_frame(
                self._spark, self._pinned, table_key, columns, condition, values=self._values
            )
        return self._read[asked]


# ---------------------------------------------------------------- what is refused, and when


def refuse_search(plan: QueryPlan) -> None:
    """Raise if a plan searches text or ranks: that needs indexes which the driver holds."""
    for root in (plan.root, *plan.blocks.values()):
        found = _search_in(root)
        if found is not None:
            raise UsageError(
                f"{found} does not run on Spark",
                hint='run the query with engine="local"',
                details={"engine": "spark", "function": found},
            )


_SEARCHES: Mapping[type, str] = {
    typed.TextMatch: "full-text search (search, match_text, fuzzy)",
    typed.Bm25: "the ranking bm25",
    typed.Nearest: "the ranking nearest",
    typed.Rrf: "the ranking rrf",
}


def _search_in(plan: Plan) -> str | None:
    if isinstance(plan, Rank):
        return _SEARCHES[type(plan.score)]
    for expr in expressions(plan):
        for part in typed.walk(expr):
            if type(part) in _SEARCHES:
                return _SEARCHES[type(part)]
    return next((found for p in inputs(plan) if (found := _search_in(p)) is not None), None)


@contextmanager
def _limited(spark: SparkSession, timeout_s: float | None) -> Generator[None]:
    """Say in our own words that a query takes too long, or that it counts too much."""
    from omnigraph.pipeline.lower.weights import OVERFLOW

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
