"""A snapshot as people use it: what it holds, its rows, its export.

    graph.snapshot() -> [view] -> Arrow, pandas, dicts, JSONL

It reads one pinned snapshot and nothing else, so two reads of it always agree.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import pyarrow as pa

from omnigraph.api.pictures import NODES_MAX, DrawnSchema, Neighbourhood
from omnigraph.choices import EngineWord, ExportFormatWord
from omnigraph.errors import UsageError
from omnigraph.manifest.kept import ReportingReclaimed
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot
from omnigraph.output_file import cannot_open, cannot_write
from omnigraph.results import Dataset, QueryResult, Rows
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, GraphType, type_named
from omnigraph.show.drawing import Drawing
from omnigraph.storage.location import locate
from omnigraph.storage.mirror import mirror_path
from omnigraph.tabular import Tabular

if TYPE_CHECKING:
    from omnigraph.query.engine import Explanation, QueryEngine
    from omnigraph.query.exec.limits import Limits
    from omnigraph.query.typed import Query
    from omnigraph.spark.handle import SparkGraph


class SnapshotView(Tabular):
    """A graph at one moment: what it holds, and its rows."""

    def __init__(
        self,
        repository: Repository,
        snapshot: Snapshot,
        queries: Callable[[], QueryEngine] | None = None,
    ) -> None:
        self._repository = repository
        self._snapshot = snapshot
        self._queries = queries
        with ReportingReclaimed(repository, snapshot):
            self._schema = repository.schema(snapshot.schema_hash)

    @cached_property
    def _engine(self) -> QueryEngine:
        # Half of all modules run queries, and many views are not asked any.
        from omnigraph.query.engine import QueryEngine

        return self._queries() if self._queries else QueryEngine(self._repository)

    def shows(self, snapshot: Snapshot) -> bool:
        """Whether it is this very state."""
        return self._snapshot is snapshot

    @property
    def branch(self) -> str:
        """The branch it was taken from."""
        return self._snapshot.branch

    @property
    def version(self) -> int:
        """The manifest version."""
        return self._snapshot.version

    @property
    def commit(self) -> GraphCommit:
        """The commit that made it."""
        return self._snapshot.head

    @property
    def catalog(self) -> Catalog:
        """The schema it is read with."""
        return self._schema.catalog

    @property
    def schema(self) -> DrawnSchema:
        """The schema it is read with, as `.pg` text; notebooks draw it."""
        return DrawnSchema.of(self._schema.source, self._schema.catalog)

    @property
    def schema_hash(self) -> str:
        """Which schema that is."""
        return self._schema.hash

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """Every type of the schema with its table and row count."""
        return tuple(self._dataset(t) for t in self.catalog.types())

    def count(self, type_name: str) -> int:
        """Entities of one type."""
        return self._snapshot.row_count(type_named(self.catalog, type_name).table_key)

    def rows(self, type_name: str, columns: Sequence[str] | None = None) -> Rows:
        """All entities of one type, whole or some columns; blobs as bytes."""
        graph_type = type_named(self.catalog, type_name)
        schema = table_schema(graph_type)
        if isinstance(columns, str):
            raise UsageError("columns is a list of names", hint=f'say columns=["{columns}"]')
        names = list(columns) if columns is not None else schema.names
        if not names:
            raise UsageError(f"no column of {graph_type.name} is named")
        if len(set(names)) < len(names):
            raise UsageError(f"a column is named twice: {', '.join(names)}")
        for name in names:
            if name not in schema.names:
                raise UsageError(
                    f"{graph_type.name} has no column '{name}'",
                    hint=f"it has {', '.join(schema.names)}",
                )
        wanted = pa.schema([schema.field(n) for n in names])
        batches = [b.cast(wanted) for b in self._batches(graph_type, names)]
        return Rows(pa.Table.from_batches(batches, schema=wanted))

    def query(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        engine: EngineWord = "local",
        spark: Any = None,
        timeout_s: float | None = None,
        memory_bytes: int | None = None,
    ) -> QueryResult:
        """Run a read on this snapshot; see ``Graph.query``."""
        snapshot = self._snapshot
        prepared = self._engine.prepare(text, name, self._schema)
        limits = self._engine.limits(timeout_s, memory_bytes)
        on_spark = _is_spark(engine, spark)
        if on_spark and memory_bytes is not None:
            raise UsageError(
                "memory_bytes is a limit of the local engine",
                hint="Spark's memory is a setting of its session",
            )
        with ReportingReclaimed(self._repository, snapshot):
            if on_spark:
                rows = self._read_on_spark(prepared.query, params, limits, spark)
            else:
                rows = self._engine.read(prepared, snapshot, params, limits)
            notices = self._engine.notices(prepared, snapshot)
        return QueryResult(
            rows,
            query_name=prepared.query.name,
            branch=snapshot.branch,
            commit_id=snapshot.head.id,
            manifest_version=snapshot.version,
            notices=notices,
        )

    def _read_on_spark(
        self, query: Query, params: Mapping[str, Any] | None, limits: Limits, spark: Any
    ) -> pa.Table:
        # Spark is an option, and slow to import.
        from omnigraph.query.engine import read_of
        from omnigraph.spark.query import query_snapshot

        read, values = read_of(query), self._engine.values(query, params)
        snapshot = self._snapshot
        search = partial(self._engine.step_rows, snapshot=snapshot, values=values, limits=limits)
        return query_snapshot(
            self._repository, snapshot, read, values, search, spark, timeout_s=limits.timeout_s
        )

    def explain(
        self,
        text: str,
        params: Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        analyze: bool = False,
        timeout_s: float | None = None,
        memory_bytes: int | None = None,
    ) -> Explanation:
        """How a read would run on this snapshot; see ``Graph.explain``."""
        prepared = self._engine.prepare(text, name, self._schema)
        limits = self._engine.limits(timeout_s, memory_bytes)
        with ReportingReclaimed(self._repository, self._snapshot):
            return self._engine.explain(prepared, self._snapshot, params, limits, analyze=analyze)

    def spark(self, session: Any = None) -> SparkGraph:
        """This snapshot in a Spark session; see ``Graph.spark``."""
        from omnigraph.spark.handle import SparkGraph

        return SparkGraph(self._repository, self._snapshot, self._engine, session)

    def export(
        self,
        out: BinaryIO | str | os.PathLike[str],
        *,
        types: Sequence[str] = (),
        format: ExportFormatWord = "jsonl",
        engine: EngineWord = "local",
        spark: Any = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Write the snapshot; see ``Graph.export``."""
        if isinstance(types, str):
            raise UsageError("types is a list of names", hint=f'say types=["{types}"]')
        if _is_spark(engine, spark):
            if not isinstance(out, (str, os.PathLike)):
                raise UsageError("an export on Spark is a folder", hint="give its path")
            form = self.checked_export(out, format, types)
            with self.spark(spark) as on_spark:
                return on_spark.export(out, format=form, types=types).rows
        if export_format(format) != "jsonl":
            if not isinstance(out, (str, os.PathLike)):
                raise UsageError(f"an export to {format} is a folder", hint="give its path")
            return self.export_folder(out, format, types, progress)["rows"]
        with binary_out(out) as file:
            return self._export(file, types, progress)

    def checked_export(
        self, out: str | os.PathLike[str], format: str, types: Sequence[str]
    ) -> ExportFormatWord:
        """Refuse an export on Spark that is bound to fail, before a session is started."""
        from omnigraph.spark.export import empty_place

        form = export_format(format)
        for name in types:
            type_named(self.catalog, name)
        empty_place(locate(out))
        return form

    def _export(
        self, out: BinaryIO, types: Sequence[str], progress: Callable[[int], None] | None
    ) -> int:
        from omnigraph.schema.json_text import write_jsonl

        lines = 0
        for graph_type in self._chosen(types):
            for batch in self._batches(graph_type, table_schema(graph_type).names):
                lines += write_jsonl(graph_type, [batch], out)
                if progress is not None:
                    progress(lines)
        return lines

    def export_folder(
        self,
        out: str | os.PathLike[str],
        format: str,
        types: Sequence[str] = (),
        progress: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """Write a folder of CSV or Parquet files; what was written, as ``_export.json`` has it."""
        from omnigraph.api.exports import export_folder

        return export_folder(
            self._chosen(types),
            lambda graph_type: self._batches(graph_type, table_schema(graph_type).names),
            out,
            format=format,
            commit_id=self.commit.id,
            progress=progress,
        )

    def _chosen(self, types: Sequence[str]) -> list[GraphType]:
        # An edge type answers to several spellings: each type is written once, however often named.
        named = {t.table_key: t for t in (type_named(self.catalog, name) for name in types)}
        chosen = list(named.values()) or list(self.catalog.types())
        return sorted(chosen, key=lambda t: t.kind == "edge")

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``snapshot --json``."""
        return {
            "graph_branch": None if self.branch == MAIN else self.branch,
            "graph_manifest_version": self.version,
            "graph_commit_id": self.commit.id,
            "internal_schema_version": self._snapshot.format,
            "datasets": [d.to_dict() for d in self.datasets],
        }

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict a type."""
        return [d.to_dict() for d in self.datasets]

    def to_arrow(self) -> pa.Table:
        """One row a type."""
        return pa.Table.from_pylist(self.to_dicts())

    def to_networkx(self, types: Sequence[str] = ()) -> Any:
        """As a ``networkx.MultiDiGraph`` with all properties; nodes are ``("Person", "Ada")``.

        ``types`` names the node and edge types that are taken. Needs networkx.
        """
        from omnigraph.api.networks import to_networkx

        return to_networkx(self.catalog, lambda name: self.rows(name).to_arrow(), types)

    def to_igraph(self, types: Sequence[str] = ()) -> Any:
        """As a directed ``igraph.Graph`` with all properties; ``types`` as in ``to_networkx``.

        Needs igraph.
        """
        from omnigraph.api.networks import to_igraph

        return to_igraph(self.catalog, lambda name: self.rows(name).to_arrow(), types)

    def plot(self, *around: tuple[str, str], hops: int = 1, nodes_max: int = NODES_MAX) -> Drawing:
        """Draw a few entities: ``view.plot(("Person", "Ada"), hops=2)``.

        From the nodes that are named to what so many hops lead to, in both directions; without
        any, the first nodes and the edges among them. The result is an SVG; notebooks show it.
        """
        with ReportingReclaimed(self._repository, self._snapshot):
            tables = {k: self._repository.table(p) for k, p in self._snapshot.pins.items()}
            near = Neighbourhood(self.catalog, tables)
            return near.draw(around, hops=hops, nodes_max=nodes_max)

    def _head(self, rows_max: int) -> tuple[pa.Table, int]:
        shown = [
            {"kind": d.entity_kind, "type": d.type_name, "entities": d.entity_count}
            for d in self.datasets
        ]
        schema = pa.schema([("kind", pa.string()), ("type", pa.string()), ("entities", pa.int64())])
        return pa.Table.from_pylist(shown[:rows_max], schema=schema), len(shown)

    def _title(self) -> str:
        commit = self.commit
        return f"{self.branch} at version {self.version}, commit {commit.id} ({commit.kind})"

    def __repr__(self) -> str:
        return f"<Snapshot {self.branch}@{self.version} {self.commit.id}>"

    def _batches(self, graph_type: GraphType, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        pin = self._snapshot.pins.get(graph_type.table_key)
        if pin is not None:
            with ReportingReclaimed(self._repository, self._snapshot):
                yield from self._repository.table(pin).batches(columns)

    def _dataset(self, graph_type: GraphType) -> Dataset:
        pin = self._snapshot.pins.get(graph_type.table_key)
        return Dataset(
            entity_kind=graph_type.kind,
            type_name=graph_type.name,
            dataset_path=mirror_path(graph_type.name) if pin and self.branch == MAIN else None,
            published_dataset_version=pin.name.version if pin else None,
            entity_count=pin.row_count if pin else 0,
        )


@contextmanager
def binary_out(out: BinaryIO | str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A stream as it is given, or the file at a path."""
    if isinstance(out, (str, os.PathLike)):
        try:
            file = Path(out).open("wb")  # noqa: SIM115
        except OSError as e:
            raise cannot_open(str(out), e) from e
        try:
            with file:
                yield file
        except OSError as e:
            raise cannot_write(str(out), e) from e
    elif isinstance(out, io.TextIOBase) or not hasattr(out, "write"):
        raise UsageError("export writes bytes", hint='open the file in mode "wb"')
    else:
        yield out


def _is_spark(engine: str, spark: Any) -> bool:
    """Whether the work is for Spark; a session that would be ignored is refused."""
    if engine not in ("local", "spark"):
        raise UsageError(f"unknown engine '{engine}'", hint="use local or spark")
    if engine == "local" and spark is not None:
        raise UsageError("a Spark session is given, and the engine is local", hint='engine="spark"')
    return engine == "spark"


def export_format(name: str) -> Literal["jsonl", "parquet", "csv"]:
    """A format of an export by its name."""
    if name == "jsonl" or name == "parquet" or name == "csv":
        return name
    raise UsageError(f"unknown format '{name}'", hint="use jsonl, parquet or csv")
