"""Both engines on one graph, for tests that compare their answers.

Most queries run on tables that Spark keeps in memory, so that every condition becomes a Spark
expression; some run as users run them, where the readers of the tables answer conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import omnigraph
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.params import bind
from omnigraph.query.plan.build import leading_score
from omnigraph.spark.query import plan_for_spark, run_on_tables
from omnigraph.spark.tables import table_frame
from support.naive import NaiveGraph, evaluate, same
from support.random_queries import RandomQuery
from support.random_worlds import NOW


class KeptTables:
    """All tables of a graph, read once and kept by Spark; conditions are Spark's to evaluate."""

    takes_conditions = False

    def __init__(self, spark: SparkSession, pinned: PinnedGraph) -> None:
        self._spark = spark
        self._pinned = pinned
        self._frames: dict[str, DataFrame] = {}

    def read(
        self, table_key: str, columns: Sequence[str], conditions: Sequence[typed.Expr]
    ) -> DataFrame:
        assert not conditions
        if table_key not in self._frames:
            frame = table_frame(self._spark, self._pinned, table_key)
            self._frames[table_key] = frame.coalesce(1).persist()
        return self._frames[table_key].select(*columns)

    def forget(self) -> None:
        for frame in self._frames.values():
            frame.unpersist()


class Asked:
    """A graph with both engines."""

    def __init__(self, graph: omnigraph.Graph, spark: SparkSession) -> None:
        self.graph = graph
        self.session = spark
        self.view = view = graph.snapshot()
        self.pinned = PinnedGraph.of(view._repository, view._snapshot)
        self.tables = KeptTables(spark, self.pinned)

    def prepared(self, text: str, params: dict[str, Any] | None) -> tuple[Any, Values]:
        (query,) = compile_queries(text, self.pinned.catalog)
        assert isinstance(query.body, typed.Read)
        values = Values(params=bind(query.params, params), now=NOW)
        return plan_for_spark(query.body, self.pinned), values

    def search(self, values: Values) -> Any:
        """The local engine, for what only it finds."""
        engine = self.view._engine
        return partial(
            engine.step_rows,
            snapshot=self.view._snapshot,
            values=values,
            limits=engine.limits(None, None),
        )

    def kept(self, text: str, params: dict[str, Any] | None = None) -> pa.Table:
        """On kept tables."""
        plan, values = self.prepared(text, params)
        search = self.search(values)
        return run_on_tables(self.session, self.tables, plan, values, self.pinned.catalog, search)

    def spark(self, text: str, params: dict[str, Any] | None = None, **more: Any) -> pa.Table:
        """As users do."""
        found = self.graph.query(text, params, engine="spark", spark=self.session, **more)
        return found.to_arrow()

    def local(self, text: str, params: dict[str, Any] | None = None) -> pa.Table:
        return self.graph.query(text, params).to_arrow()

    def rows(self, text: str, params: dict[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows from Spark, which the local engine has as well; sorted if the query does not."""
        found, local = self.kept(text, params), self.local(text, params)
        assert found.schema == local.schema
        rows, expected = (
            [tuple(row.values()) for row in table.to_pylist()] for table in (found, local)
        )
        if "order {" not in text and "limit" not in text:
            rows, expected = sorted(rows, key=repr), sorted(expected, key=repr)
        assert rows == expected
        return rows


def compare(asked: Asked, reference: NaiveGraph, query: RandomQuery, *, as_users_do: bool) -> None:
    """Spark gives what the reference gives; a ranking has the local engine's very rows."""
    catalog = asked.pinned.catalog
    (compiled,) = compile_queries(query.text, catalog)
    assert isinstance(compiled.body, typed.Read)
    params = bind(compiled.params, query.params)
    expected = evaluate(compiled.body, reference, catalog, params, NOW)
    found, local = asked.kept(query.text, query.params), asked.local(query.text, query.params)
    assert found.schema == local.schema
    assert same(found.to_pylist(), expected) is None, same(found.to_pylist(), expected)
    if leading_score(compiled.body) is not None:
        assert found.to_pylist() == local.to_pylist()
    if as_users_do:
        again = asked.spark(query.text, query.params)
        assert same(again.to_pylist(), expected) is None, same(again.to_pylist(), expected)
