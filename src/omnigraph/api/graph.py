"""The graph: the Python API over one open graph.

    import omnigraph

    graph = omnigraph.init("./fleet", schema="node Vessel { imo: I64 @key }")
    graph.load([{"type": "Vessel", "data": {"imo": 100}}], mode="append")

Everything here delegates: reading to a pinned snapshot, writing to the one write machine. A method
imports what it delegates to, so that a program pays for what it does: most of a short one is
imports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from omnigraph.api.pictures import DrawnSchema
from omnigraph.api.versions import Versions
from omnigraph.choices import AutoEngineWord, EngineWord, ExportFormatWord, LoadModeWord
from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.manifest.snapshot import MAIN
from omnigraph.query.exec.limits import Limits, cache_bytes
from omnigraph.results import LoadResult, MutationResult, QueryResult, TypeCount
from omnigraph.schema.catalog import Catalog
from omnigraph.show import html
from omnigraph.text_file import schema_text

if TYPE_CHECKING:
    from omnigraph.input.phases import TellPhase
    from omnigraph.query.engine import Explanation, QueryEngine
    from omnigraph.query.exec.evaluate import Values
    from omnigraph.query.search.embedding import Embedder
    from omnigraph.query.typed import Query
    from omnigraph.rules.table_delta import WriteMode
    from omnigraph.schema.migrate import SchemaPlan
    from omnigraph.spark.handle import SparkGraph
    from omnigraph.upkeep.indexes import IndexStatus
    from omnigraph.upkeep.optimize import OptimizeResult
    from omnigraph.upkeep.schema_apply import SchemaApplyResult


class Graph(Versions):
    """An open graph. Safe to share between threads; writes of one handle take turns.

    Use it as a context manager, or call ``close`` to finish housekeeping early; at interpreter exit
    that happens by itself.
    """

    def __init__(self, repository: Repository, embedder: Embedder | None = None) -> None:
        self._open: Repository | None = repository
        self._known = repository
        # What the environment says when the graph is opened holds, whenever the first query comes.
        limits, kept_bytes = Limits.of(None, None), cache_bytes()

        @cache
        def engine() -> QueryEngine:
            from omnigraph.query.engine import QueryEngine

            return QueryEngine(repository, embedder, limits, kept_bytes)

        self._queries = engine
        self._uri = repository.location.uri

    @property
    def _engine(self) -> QueryEngine:
        return self._queries()

    @property
    def _repository(self) -> Repository:
        if self._open is None:
            raise UsageError(
                f"the graph {self._uri} is closed", hint="open it again: omnigraph.open(…)"
            )
        return self._open

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph {self.uri}>"

    def _repr_html_(self) -> str:
        try:
            view = self.snapshot()
        except OmnigraphError as e:  # A notebook shows what it can: this is no place to fail.
            return html.facts(f"Graph {self.uri}", {"state": e.message})
        return view.to_html(f"Graph {self.uri}, {view.branch} at commit {view.commit.id}")

    @property
    def uri(self) -> str:
        """The root as it was given."""
        return self._uri

    @property
    def published_commit_id(self) -> str | None:
        """The newest commit that this handle has published, if any; known after it is closed."""
        return self._known.branches.published

    @property
    def schema(self) -> DrawnSchema:
        """The accepted schema of main as `.pg` text; notebooks draw it."""
        accepted = self._schema(MAIN)
        return DrawnSchema.of(accepted.source, accepted.catalog)

    @property
    def catalog(self) -> Catalog:
        """The accepted schema of main as values."""
        return self._schema(MAIN).catalog

    def schema_plan(
        self,
        schema: str | os.PathLike[str],
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
    ) -> SchemaPlan:
        """What ``schema_apply`` would do to a branch, step by step; reads no rows.

        ``schema`` is `.pg` text, or the path of a `.pg` file. The plan prints as text.
        """
        from omnigraph.upkeep.schema_apply import plan_schema

        text, name = schema_text(schema)
        return plan_schema(
            self._repository,
            text,
            source_name=name,
            branch=branch,
            allow_data_loss=allow_data_loss,
        )

    def schema_apply(
        self,
        schema: str | os.PathLike[str],
        *,
        branch: str = MAIN,
        confirm: bool = False,
        allow_data_loss: bool = False,
        dry_run: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
    ) -> SchemaApplyResult:
        """Give a branch another schema, as one commit; other branches keep theirs.

        Steps that hide data need ``confirm``; ``allow_data_loss`` gives the data up for good.
        Raises ``MigrationError`` if a step is not possible or rows are in the way: then nothing is
        changed.
        """
        from omnigraph.upkeep.schema_apply import schema_apply

        text, name = schema_text(schema)
        return schema_apply(
            self._repository,
            text,
            source_name=name,
            branch=branch,
            confirm=confirm,
            allow_data_loss=allow_data_loss,
            dry_run=dry_run,
            actor=actor,
            message=message,
            expected_commit=if_commit,
        )

    def load(
        self,
        source: Any,
        *,
        mode: LoadModeWord = "append",
        type: str | None = None,
        branch: str = MAIN,
        actor: str | None = None,
        message: str | None = None,
        progress: Callable[[int], None] | None = None,
        phases: TellPhase | None = None,
        engine: AutoEngineWord = "auto",
        mapping: Mapping[str, Any] | None = None,
        spark: Any = None,
        rejects: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
    ) -> LoadResult:
        """Load entities as one atomic commit; either everything is published or nothing.

        ``source`` is one of: a path or a list of paths, of files, folders, patterns, local or
        ``s3://``: JSONL, or with ``type="Person"`` CSV, TSV, Parquet and Arrow files of one type,
        texts also packed with gzip or zstd; an open binary stream of one of these; an iterable of
        dict records shaped like JSONL lines; with a type an Arrow table, a DataFrame of pandas,
        polars or anything that speaks Arrow, plain dict rows, a Spark DataFrame; or a mapping of
        type names to those. ``mapping`` names the column of each property where they differ.

        ``mode``: ``append`` inserts and refuses ids that exist; ``merge`` replaces entities of the
        same id; ``overwrite`` makes the rows the whole content of every type they mention.

        ``engine``: ``local`` is this process; ``spark`` is for more than it can hold, on the
        session ``spark``, else the active one, else one of its own; ``auto`` decides by the size.
        The outcome is the same. ``rejects`` names a file for everything that is wrong with the
        input, as JSON lines. With ``dry_run`` everything is checked and nothing is published.

        Raises ``InputError`` (cannot be read as this graph's data), ``ConstraintError`` (breaks a
        rule of the schema; carries each violation with file and line), ``ConflictError``.
        ``progress`` is called with the number of input bytes or rows read so far; ``phases`` on
        Spark with what is being done and how many tasks of it are.
        """
        from omnigraph.api.engines import run_load
        from omnigraph.input.publishing import LoadRequest
        from omnigraph.input.sources import sort_out

        load = LoadRequest(
            given=sort_out(source, type_name=type, columns=mapping),
            mode=_mode(mode),
            branch=branch,
            actor=actor,
            message=message,
            progress=progress,
            phases=phases,
            dry_run=dry_run,
        )
        done = run_load(self._repository, load, engine=engine, spark=spark, rejects=rejects)
        return LoadResult(
            uri=self.uri,
            branch=branch,
            mode=str(load.mode),
            nodes=_counts(done.rows, "node"),
            edges=_counts(done.rows, "edge"),
            commit=done.commit,
            changes=done.changes,
            unchanged=done.unchanged,
            dry_run=dry_run,
        )

    def query(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        engine: EngineWord = "local",
        spark: Any = None,
        timeout_s: float | None = None,
        memory_bytes: int | None = None,
    ) -> QueryResult:
        """Run a read of the query language on the newest state of a branch, or at a commit.

        ``text`` is `.gq` text: one query, or several with ``name`` saying which, or a bare body
        such as ``match { … } return { … }``. ``params`` gives a value to every parameter.

        ``engine="spark"`` runs it on Spark, with the same answer: on the session ``spark``, else on
        the active one, else on one that is made for this query. Searches and rankings are found in
        this process and joined there.

        Raises ``QueryError`` (the text has findings), ``ParameterError`` (missing, unknown or wrong
        parameters) and ``LimitError`` (more time or memory than allowed: ``timeout_s``,
        ``memory_bytes``, or the environment's OMNIGRAPH_QUERY_TIMEOUT and _MEMORY).
        """
        if commit is None and engine == "local":
            self._queries().begin(text, name, branch or MAIN)
        return self.snapshot(branch, commit=commit).query(
            text,
            params,
            name=name,
            engine=engine,
            spark=spark,
            timeout_s=timeout_s,
            memory_bytes=memory_bytes,
        )

    def explain(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        branch: str | None = None,
        commit: str | None = None,
        analyze: bool = False,
        timeout_s: float | None = None,
        memory_bytes: int | None = None,
    ) -> Explanation:
        """How a read is run, step by step; with ``analyze`` it is run and every step says how many
        rows, milliseconds and requests it took."""
        return self.snapshot(branch, commit=commit).explain(
            text,
            params,
            name=name,
            analyze=analyze,
            timeout_s=timeout_s,
            memory_bytes=memory_bytes,
        )

    def mutate(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        branch: str = MAIN,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
    ) -> MutationResult:
        """Run a mutation of the query language as one atomic commit.

        With ``if_commit`` it is published only if that commit is still the newest of the branch;
        else ``ConflictError`` with kind ``precondition_failed``. A mutation that changes nothing
        publishes nothing: ``commit`` is then None.
        """
        from omnigraph.query.mutate import run_mutation

        now = self._engine.now()

        def check(schema: AcceptedSchema) -> tuple[Query, Values]:
            query = self._engine.prepare(text, name, schema).query
            return query, self._engine.values(query, params, now=now)

        outcome = run_mutation(
            self._repository,
            check,
            branch=branch,
            actor=actor,
            message=message,
            expected_commit=if_commit,
        )
        return MutationResult(
            branch=branch,
            query_name=outcome.query.name,
            affected_nodes=outcome.affected_nodes,
            affected_edges=outcome.affected_edges,
            actor=actor,
            commit=outcome.receipt.commit,
            changes=outcome.receipt.changes,
        )

    def spark(
        self, session: Any = None, *, branch: str | None = None, commit: str | None = None
    ) -> SparkGraph:
        """The newest state of a branch, or a commit, in a Spark session.

        ``session`` is used as it is; else the active one; else one is made, and stopped by
        ``close``. The result reads types and queries as DataFrames, registers SQL views, exports,
        and has made ``session.read.format("omnigraph")`` known.
        """
        return self.snapshot(branch, commit=commit).spark(session)

    def export(
        self,
        out: BinaryIO | str | os.PathLike[str],
        *,
        branch: str | None = None,
        commit: str | None = None,
        types: Sequence[str] = (),
        format: ExportFormatWord = "jsonl",
        engine: EngineWord = "local",
        spark: Any = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Write the newest state of a branch, or a commit; returns how many entities were written.

        ``out`` is a binary stream or the path of a file: JSONL that loads back exactly, nodes
        first. ``types`` restricts it to these node or edge types.

        With ``format`` ``csv`` or ``parquet`` it is an empty folder or ``s3://`` prefix instead,
        with a file for each type. With ``engine="spark"`` it always is, and executors write files
        in parts per type. See ``SparkGraph.export``.
        """
        return self.snapshot(branch, commit=commit).export(
            out, types=types, format=format, engine=engine, spark=spark, progress=progress
        )

    def optimize(
        self,
        *,
        branch: str = MAIN,
        types: Sequence[str] = (),
        actor: str | None = None,
        message: str | None = None,
    ) -> OptimizeResult:
        """Join small files, leave deleted rows out, build and extend indexes; as one commit.

        No answer changes. A second call finds nothing to do, and then publishes nothing.
        """
        from omnigraph.upkeep.optimize import optimize

        return optimize(self._repository, branch=branch, types=types, actor=actor, message=message)

    def indexes(self, *, branch: str = MAIN, types: Sequence[str] = ()) -> tuple[IndexStatus, ...]:
        """Every index that the schema asks for: whether it is built, and how far it reaches."""
        from omnigraph.upkeep.indexes import index_status

        return index_status(self._repository, self._repository.head(branch).snapshot, types)

    def build_indexes(
        self,
        *,
        branch: str = MAIN,
        types: Sequence[str] = (),
        actor: str | None = None,
        message: str | None = None,
    ) -> OptimizeResult:
        """Make every index cover every row, as one commit; files stay as they are."""
        from omnigraph.upkeep.optimize import build_indexes

        return build_indexes(
            self._repository, branch=branch, types=types, actor=actor, message=message
        )

    def settle(self) -> None:
        """Wait until the housekeeping of earlier writes is done. Never needed for correctness."""
        self._repository.background.wait()

    def close(self) -> None:
        """Finish housekeeping and release threads. The handle cannot be used afterwards."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _schema(self, branch: str) -> AcceptedSchema:
        snapshot = self._repository.branch(branch).head.snapshot
        return self._repository.schema(snapshot.schema_hash)


def _counts(rows: Mapping[str, int], kind: str) -> tuple[TypeCount, ...]:
    return tuple(
        TypeCount(name=key.partition(":")[2], entities_loaded=count)
        for key, count in rows.items()
        if key.startswith(f"{kind}:")
    )


def _mode(mode: str) -> WriteMode:
    from omnigraph.rules.table_delta import WriteMode

    try:
        return WriteMode(mode)
    except ValueError as e:
        raise UsageError(
            f"unknown load mode '{mode}'", hint="use append, merge or overwrite"
        ) from e
