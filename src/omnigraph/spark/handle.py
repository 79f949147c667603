"""A snapshot in a Spark session: what ``graph.spark()`` and ``view.spark()`` give.

    graph.spark() -> [SparkGraph] -> DataFrames of types and queries, SQL views, an export

Everything here reads the one snapshot it was made from, whatever is published later.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.errors import UsageError
from omnigraph.input.phases import Phase, TellPhase
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.query.compile import condition_of
from omnigraph.query.engine import QueryEngine, read_of
from omnigraph.query.exec.evaluate import Values
from omnigraph.spark.errors import translated
from omnigraph.spark.export import Export, Format, export_snapshot
from omnigraph.spark.progress import Watch
from omnigraph.spark.query import plan_for_spark, query_frame
from omnigraph.spark.sessions import pipeline_session
from omnigraph.spark.tables import table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkGraph:
    """A snapshot of a graph in a Spark session.

    A context manager: leaving it stops the session if that was made for it. DataFrames that come
    from it are read then, at the latest.
    """

    def __init__(
        self,
        repository: Repository,
        snapshot: Snapshot,
        engine: QueryEngine,
        session: SparkSession | None = None,
    ) -> None:
        self._clock = repository.clock
        self._engine = engine
        self._snapshot = snapshot
        self._schema = repository.schema(snapshot.schema_hash)
        self._pinned = PinnedGraph.of(repository, snapshot)
        self._pipeline = pipeline_session(session)
        from omnigraph.spark.datasource import register

        register(self._pipeline.spark)

    @property
    def session(self) -> SparkSession:
        """The Spark session."""
        return self._pipeline.spark

    @property
    def commit_id(self) -> str:
        """The commit whose state is read."""
        return self._pinned.commit_id

    def table(
        self,
        type_name: str,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        with_address: bool = False,
    ) -> DataFrame:
        """The rows of a type: only these columns are read, only rows where the condition holds.

        ``where`` is a condition of the query language: ``age > 30 and city = "Oslo"``. Both are to
        be given here: Spark cannot take away what is selected and filtered later.
        ``with_address`` adds ``_rowid``, which stays with an entity for its life, and ``_rowaddr``,
        its place in this version.
        """
        graph_type = self._pinned.type(type_name)
        condition = values = None
        if where is not None:
            condition = condition_of(where, graph_type, self._pinned.catalog)
            now = datetime.fromtimestamp(self._clock.now_us() // 1_000_000, UTC)
            values = Values(params={}, now=now)
        with translated("reading a table"):
            return table_frame(
                self.session,
                self._pinned,
                graph_type.table_key,
                columns,
                condition,
                values=values,
                with_address=with_address,
            )

    def tables(
        self, types: Sequence[str] = (), *, columns: Columns | None = None
    ) -> dict[str, DataFrame]:
        """A DataFrame for each of these types, or for all, by name. ``columns`` as in ``views``."""
        with translated("reading tables"):
            return graph_tables(self.session, self._pinned, types, columns=columns)

    def views(
        self, prefix: str = "", types: Sequence[str] = (), *, columns: Columns | None = None
    ) -> list[str]:
        """Make a temporary view of each type for ``session.sql``, and return their names.

        ``columns`` says by type which columns a view has: what a view does not have is never read.
        """
        with translated("registering views"):
            return register_views(self.session, self._pinned, prefix, types, columns=columns)

    def query(
        self, text: str, params: Mapping[str, Any] | None = None, *, name: str | None = None
    ) -> DataFrame:
        """The result of a read of the query language as a DataFrame; nothing is collected.

        What the query searches and ranks is found at once, on the driver.
        """
        query = self._engine.prepare(text, name, self._schema).query
        plan = plan_for_spark(read_of(query), self._pinned)
        values = self._engine.values(query, params)
        limits = self._engine.limits(None, None)
        search = partial(
            self._engine.step_rows, snapshot=self._snapshot, values=values, limits=limits
        )
        with translated("running a query"):
            return query_frame(self._pipeline, self._pinned, plan, values, search)

    def export(
        self,
        out: str | os.PathLike[str],
        *,
        format: Format = "parquet",
        types: Sequence[str] = (),
        phases: TellPhase | None = None,
    ) -> Export:
        """Write all types, or these, to an empty folder or ``s3://`` prefix, in parts.

        A folder has to be one that all executors share.
        """
        with Watch(phases).phase(self.session, Phase.WRITING):
            return export_snapshot(self.session, self._pinned, out, format=format, types=types)

    def close(self) -> None:
        """Stop the session if it was made for this. Can be called again."""
        self._pipeline.close()

    def __enter__(self) -> SparkGraph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SparkGraph {self._pinned.location.uri} {self._pinned.branch}@{self.commit_id}>"


# -- views -----------------------------------------------------------------------------------------
# SQL over a snapshot: its types as temporary views of a session.
#
#     PinnedGraph -> [views] -> Person, Knows, …
#
# Every view reads the same snapshot. Spark cannot take columns away from a view: ``columns`` says
# which ones a type shall have, and a view without long texts and vectors is read much faster.


Columns = Mapping[str, Sequence[str]]
"""Columns by the name of a type; a type that is not named has all of its columns."""


def graph_tables(
    spark: SparkSession,
    pinned: PinnedGraph,
    types: Sequence[str] = (),
    *,
    columns: Columns | None = None,
) -> dict[str, DataFrame]:
    """A DataFrame for each of these types, or for all, by the name that its view would have."""
    if isinstance(types, str):
        raise UsageError("types is a list of names", hint=f'say types=["{types}"]')
    wanted = {pinned.type(name).table_key for name in types}
    chosen = {pinned.type(name).table_key: list(names) for name, names in (columns or {}).items()}
    return {
        name: table_frame(spark, pinned, table_key, chosen.get(table_key))
        for table_key, name in view_names(pinned).items()
        if not wanted or table_key in wanted
    }


def register_views(
    spark: SparkSession,
    pinned: PinnedGraph,
    prefix: str = "",
    types: Sequence[str] = (),
    *,
    columns: Columns | None = None,
) -> list[str]:
    """Make a temporary view of each type, named after it; replaces views of the same names.

    Nodes have ``id`` and their properties, edges ``id``, ``src``, ``dst`` and theirs.
    """
    names: list[str] = []
    for name, frame in graph_tables(spark, pinned, types, columns=columns).items():
        frame.createOrReplaceTempView(prefix + name)
        names.append(prefix + name)
    return names


def view_names(pinned: PinnedGraph) -> dict[str, str]:
    """The name of each type's view, by table key. Spark looks names up without regard to case.

    An edge type with the name of a node type is called ``Name_edge``.
    """
    names: dict[str, str] = {}
    taken: dict[str, str] = {}
    for graph_type in pinned.catalog.types():
        key, name = graph_type.table_key, graph_type.name
        if graph_type.kind == "edge" and name.lower() in taken:
            name = f"{name}_edge"
        other = taken.setdefault(name.lower(), key)
        if other != key:
            raise UsageError(
                f"the views of {other} and {key} would have the same name",
                hint="read these types one by one",
            )
        names[key] = name
    return names
