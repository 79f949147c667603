"""What the Python API returns: values that turn into Arrow, pandas or plain dicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from omnigraph.manifest.snapshot import GraphCommit, TableChange, changes_text, moment_text
from omnigraph.show.shown import Shown
from omnigraph.tabular import Tabular

if TYPE_CHECKING:
    from omnigraph.storage.indexing import IndexKind


class Rows(Tabular):
    """Rows in Arrow, with the conversions people ask for."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        """As an Arrow table, without a copy."""
        return self._table

    def __len__(self) -> int:
        return self._table.num_rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._table.to_batches():
            yield from batch.to_pylist()

    def __repr__(self) -> str:
        return f"<{len(self)} rows: {', '.join(self._table.column_names)}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexNotice:
    """A search over rows that no built index covers. Its answer is the same as with one."""

    type_key: str
    property_name: str
    kind: IndexKind
    """Which index the schema asks for."""
    rows: int
    rows_uncovered: int
    next_step: str | None
    """The command that builds it; None while it cannot be built."""

    def __str__(self) -> str:
        what = f"{self.rows_uncovered:,} of {self.rows:,} rows of {self.type_key}"
        where = f"{what} are in no {self.kind} index on {self.property_name}"
        step = f"'{self.next_step}' builds it" if self.next_step else "it cannot be built yet"
        return f"{where}: the answer is the same; {step}"

    def to_dict(self) -> dict[str, Any]:
        """As ``query --json`` and ``explain --json`` show it."""
        return {
            "code": "rows_not_indexed",
            "type_key": self.type_key,
            "property": self.property_name,
            "kind": str(self.kind),
            "rows": self.rows,
            "rows_uncovered": self.rows_uncovered,
            "next_step": self.next_step,
            "message": str(self),
        }


class QueryResult(Rows):
    """The rows of a query, and which state of the graph they are from."""

    def __init__(
        self,
        table: pa.Table,
        *,
        query_name: str | None,
        branch: str,
        commit_id: str,
        manifest_version: int,
        notices: tuple[IndexNotice, ...] = (),
    ) -> None:
        super().__init__(table)
        self.notices = notices
        """Large searches that no index covers; nothing for most queries."""
        self.query_name = query_name
        self.branch = branch
        self.commit_id = commit_id
        """The commit whose state was read."""
        self.manifest_version = manifest_version

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return self._table.column_names


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationResult(Shown):
    """What a mutation did."""

    branch: str
    query_name: str | None
    affected_nodes: int
    """Distinct nodes that statements inserted, matched or removed."""
    affected_edges: int
    actor: str | None
    commit: GraphCommit | None
    """None when nothing changed: then nothing was published."""
    changes: Mapping[str, TableChange]
    """Exact counts by table key, e.g. ``node:Person``."""

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``mutate --json``."""
        return {
            "branch": self.branch,
            "query_name": self.query_name,
            "affected_nodes": self.affected_nodes,
            "affected_edges": self.affected_edges,
            "actor_id": self.actor,
            "commit": self.commit.to_dict() if self.commit else None,
        }

    def _facts(self) -> tuple[str, dict[str, Any]]:
        return "Mutation", {
            "branch": self.branch,
            "query": self.query_name,
            "nodes": self.affected_nodes,
            "edges": self.affected_edges,
            "changes": changes_text(self.changes),
            "commit": self.commit.id if self.commit else "none: nothing changed",
            "actor": self.actor,
        }


class Commits(Tabular, Sequence[GraphCommit]):
    """Commits, newest first."""

    def __init__(self, commits: Sequence[GraphCommit]) -> None:
        self._commits = tuple(commits)

    @overload
    def __getitem__(self, index: int) -> GraphCommit: ...
    @overload
    def __getitem__(self, index: slice) -> Commits: ...
    def __getitem__(self, index: int | slice) -> GraphCommit | Commits:
        if isinstance(index, slice):
            return Commits(self._commits[index])
        return self._commits[index]

    def __len__(self) -> int:
        return len(self._commits)

    def __eq__(self, other: object) -> bool:
        return self._commits == other._commits if isinstance(other, Commits) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(c.id for c in self._commits))

    def __repr__(self) -> str:
        return f"<{len(self)} commits>"

    def to_dicts(self) -> list[dict[str, Any]]:
        """As plain dicts, the shape of ``commit list --json``."""
        return [c.to_dict() for c in self._commits]

    def to_arrow(self) -> pa.Table:
        """One row a commit; ``created_at`` is a timestamp, ``changes`` counts entities."""
        schema = pa.schema(
            [
                ("graph_commit_id", pa.string()),
                ("parent_commit_id", pa.string()),
                ("merged_parent_commit_id", pa.string()),
                ("graph_branch", pa.string()),
                ("graph_manifest_version", pa.int64()),
                ("actor_id", pa.string()),
                ("created_at", pa.timestamp("us", tz="UTC")),
                ("kind", pa.string()),
                ("message", pa.string()),
                ("changes", pa.int64()),
            ]
        )
        rows = [
            {**c.to_dict(), "changes": sum(t.total for t in c.changes.values())}
            for c in self._commits
        ]
        return pa.Table.from_pylist(rows, schema=schema)

    def _head(self, rows_max: int) -> tuple[pa.Table, int]:
        names = ("commit", "created", "kind", "actor", "changes", "message")
        rows = [
            (
                c.id,
                moment_text(c.created_at_us),
                c.kind,
                c.actor,
                changes_text(c.changes),
                c.message,
            )
            for c in self._commits[:rows_max]
        ]
        columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(names))]
        return pa.table(columns, names=names), len(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCount:
    """How many entities of a type a load brought."""

    name: str
    entities_loaded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadResult(Shown):
    """What a load did."""

    uri: str
    branch: str
    mode: str
    nodes: tuple[TypeCount, ...]
    edges: tuple[TypeCount, ...]
    commit: GraphCommit | None
    """None when the load changed nothing."""
    changes: Mapping[str, TableChange]
    """Exact counts by table key, e.g. ``node:Person``."""
    unchanged: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())
    """By table key: entities of a merge that the graph held already, exactly so."""
    dry_run: bool = False
    """Nothing was published: ``changes`` is what would have been."""
    base_branch: str | None = None
    """The branch that this one was made from, if that was done for the load."""

    @property
    def total_entities(self) -> int:
        """Entities in the input."""
        return sum(t.entities_loaded for t in (*self.nodes, *self.edges))

    @property
    def unchanged_entities(self) -> int:
        """Those that the graph held already, exactly so: they were not written again."""
        return sum(self.unchanged.values())

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``load --json``."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "mode": self.mode,
            "base_branch": self.base_branch,
            "branch_created": self.base_branch is not None,
            "nodes": [asdict(t) for t in self.nodes],
            "edges": [asdict(t) for t in self.edges],
            "total_entities": self.total_entities,
            "unchanged_entities": self.unchanged_entities,
            "commit": self.commit.to_dict() if self.commit else None,
            **(self._would_do() if self.dry_run else {}),
        }

    def _facts(self) -> tuple[str, dict[str, Any]]:
        types = (*self.nodes, *self.edges)
        none = "none: a dry run" if self.dry_run else "none: nothing changed"
        return "Load", {
            "graph": self.uri,
            "branch": self.branch,
            "mode": self.mode,
            "entities": f"{self.total_entities:,}",
            "of": ", ".join(f"{t.entities_loaded:,} {t.name}" for t in types) or None,
            "changes": changes_text(self.changes),
            "unchanged": f"{self.unchanged_entities:,}" if self.unchanged else None,
            "commit": self.commit.id if self.commit else none,
        }

    def _would_do(self) -> dict[str, Any]:
        """What a dry run would do; otherwise the commit says what was done."""
        changes = {key: asdict(change) for key, change in self.changes.items()}
        return {"dry_run": True, "changes": changes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One type in a snapshot."""

    entity_kind: str
    type_name: str
    dataset_path: str | None
    """Where every Lance program finds main's newest rows, from the root of the graph; None for
    another branch, and while the type has never had a row."""
    published_dataset_version: int | None
    """None while the type has never had a row."""
    entity_count: int

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
