"""A snapshot in a Spark session: what ``graph.spark()`` and ``view.spark()`` give.

    graph.spark() -> [SparkGraph] -> DataFrames of types and queries, SQL views, an export

Everything here reads the one snapshot it was made from, whatever is published later.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from omnigraph.input.phases import Phase, TellPhase
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.query.conditions import condition_of
from omnigraph.query.engine import QueryEngine, read_of
from omnigraph.query.exec.evaluate import Values
from omnigraph.spark.errors import translated
from omnigraph.spark.export import Export, Format, export_snapshot
from omnigraph.spark.progress import Watch
from omnigraph.spark.query import plan_for_spark, query_frame
from omnigraph.spark.sessions import pipeline_session
from omnigraph.spark.tables import table_frame
from omnigraph.spark.views import Columns, graph_tables, register_views

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SparkGraph {self._pinned.location.uri} {self._pinned.branch}@{self.commit_id}>"
