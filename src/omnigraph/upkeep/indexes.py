"""Which indexes a graph wants, which it has, and how far they reach.

    schema -> [wanted] + table version -> [state of each] -> status, optimize

The schema decides: ids and endpoints always, keys, single unique properties and whatever is
declared with ``@index``. An index is derived: it may be missing or lag, and no answer depends on
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.errors import UsageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.schema.catalog import Catalog, GraphType, PropertyType, Scalar, type_not_found
from omnigraph.storage.indexing import (
    PARTS_ROWS_MIN,
    VECTORS_MIN,
    BuiltIndex,
    IndexKind,
    IndexSpec,
    table_indexes,
    vector_count,
)
from omnigraph.storage.tables import Table


class IndexState(StrEnum):
    """How an index stands to its table."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    """Rows came since it was built: they are found by looking through them."""
    MISSING = "missing"
    """Not built yet: ``optimize`` does."""
    PENDING = "pending"
    """Cannot be built yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingIndex:
    """A declared index that cannot be built yet."""

    type_key: str
    property_name: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """As ``optimize --json`` shows it."""
        return {"type_key": self.type_key, "property": self.property_name, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """One index of one type."""

    type_key: str
    property_name: str
    kind: IndexKind
    state: IndexState
    rows_indexed: int
    rows: int
    segments: int
    byte_count: int
    reason: str | None = None
    """Why it is pending."""

    @property
    def coverage(self) -> float:
        """The part of the rows that it covers; all of none."""
        return self.rows_indexed / self.rows if self.rows else 1.0

    def to_dict(self) -> dict[str, Any]:
        """As ``index status --json`` shows it."""
        return {
            "type_key": self.type_key,
            "property": self.property_name,
            "kind": str(self.kind),
            "state": str(self.state),
            "rows_indexed": self.rows_indexed,
            "rows": self.rows,
            "coverage": round(self.coverage, 4),
            "segments": self.segments,
            "bytes": self.byte_count,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TableIndexes:
    """The indexes of one table beside those that its type wants."""

    wanted: tuple[IndexSpec, ...]
    """Those that can be built."""
    pending: Mapping[IndexSpec, str]
    built: tuple[BuiltIndex, ...]
    live: Mapping[int, int]
    """Rows of each fragment."""
    row_count: int

    def found(self, spec: IndexSpec) -> BuiltIndex | None:
        """The index that serves a specification."""
        return next((index for index in self.built if index.serves(spec)), None)

    def rows_indexed(self, index: BuiltIndex | None) -> int:
        """Rows that an index covers."""
        if index is None:
            return 0
        return sum(self.live.get(fragment, 0) for fragment in index.fragments)


def wanted_indexes(graph_type: GraphType) -> tuple[IndexSpec, ...]:
    """The indexes that a schema asks for, in a stable order."""
    return tuple(dict.fromkeys(_wanted(graph_type)))


def _wanted(graph_type: GraphType) -> Iterator[IndexSpec]:
    for column in graph_type.system_columns:
        yield IndexSpec(column=column, kind=IndexKind.BTREE)
    # Found by equality at every write that checks them, also texts.
    single = [group[0] for group in graph_type.unique if len(group) == 1]
    for name in dict.fromkeys([*graph_type.key, *single]):
        if name in graph_type.by_name and name not in graph_type.system_columns:
            yield IndexSpec(column=name, kind=IndexKind.BTREE)
    for name in dict.fromkeys(name for group in graph_type.indexes for name in group):
        if name in graph_type.key or name in graph_type.system_columns:
            continue
        for kind in _kinds(graph_type.by_name[name].type):
            yield IndexSpec(column=name, kind=kind)


def _kinds(declared: PropertyType) -> tuple[IndexKind, ...]:
    if declared.scalar is Scalar.VECTOR:
        return (IndexKind.VECTOR,)
    if declared.is_list or declared.scalar is Scalar.BLOB:
        return ()
    if declared.is_enum or declared.scalar is Scalar.BOOL:
        return (IndexKind.BITMAP,)
    if declared.scalar is Scalar.STRING:
        return (IndexKind.TEXT, IndexKind.NGRAM)
    return (IndexKind.BTREE,)


def due_indexes(graph_type: GraphType, row_count: int) -> tuple[IndexSpec, ...]:
    """Those of them that a table of this size gets by itself."""
    return tuple(s for s in wanted_indexes(graph_type) if not _does_without(s, row_count))


def _does_without(spec: IndexSpec, row_count: int) -> bool:
    return spec.kind is IndexKind.NGRAM and row_count < PARTS_ROWS_MIN


def table_state(graph_type: GraphType, table: Table, *, whole: bool = False) -> TableIndexes:
    """The indexes of one table; from its manifest, but for vectors, which are counted.

    With ``whole`` every index is wanted that can be built, also one that the table does without.
    """
    pending: dict[IndexSpec, str] = {}
    wanted: list[IndexSpec] = []
    built = table_indexes(table)
    for spec in wanted_indexes(graph_type):
        reason = None
        if not any(index.serves(spec) for index in built):
            reason = _not_trainable(spec, table) or (None if whole else _not_due(spec, table))
        if reason is None:
            wanted.append(spec)
        else:
            pending[spec] = reason
    return TableIndexes(
        wanted=tuple(wanted),
        pending=pending,
        built=built,
        live={f.id: f.live_rows for f in table.layout.fragments},
        row_count=table.row_count,
    )


def buildable(spec: IndexSpec, table: Table) -> bool:
    """Whether an index can be built over what a table holds."""
    return _not_trainable(spec, table) is None


def _not_trainable(spec: IndexSpec, table: Table) -> str | None:
    if spec.kind is not IndexKind.VECTOR:
        return None
    rows = table.row_count
    count = rows if rows < VECTORS_MIN else vector_count(table, spec.column)
    if count >= VECTORS_MIN:
        return None
    return f"fewer than {VECTORS_MIN} vectors cannot train an index; they are compared one by one"


def _not_due(spec: IndexSpec, table: Table) -> str | None:
    if not _does_without(spec, table.row_count):
        return None
    return f"fewer than {PARTS_ROWS_MIN:,} texts are looked through; 'index build' builds it"


def named_types(catalog: Catalog, names: Sequence[str]) -> tuple[GraphType, ...]:
    """The types with these names, or all. Raises ``NotFoundError`` for one that is not there."""
    if isinstance(names, str):
        raise UsageError("types is a list of names", hint=f"types=['{names}']")
    for name in names:
        if _type_named(catalog, name) is None:
            raise type_not_found(catalog, name)
    return known_types(catalog, names)


def known_types(catalog: Catalog, names: Sequence[str]) -> tuple[GraphType, ...]:
    """As ``named_types``, without those that are not there: another branch may have them."""
    if not names:
        return tuple(catalog.types())
    found = (_type_named(catalog, name) for name in dict.fromkeys(names))
    return tuple(graph_type for graph_type in found if graph_type is not None)


def _type_named(catalog: Catalog, name: str) -> GraphType | None:
    bare = name.partition(":")[2] or name
    return catalog.nodes.get(bare) or catalog.edge(bare)


def index_status(
    repository: Repository, snapshot: Snapshot, types: Sequence[str] = (), *, workers: int = 8
) -> tuple[IndexStatus, ...]:
    """Every index that the schema of a snapshot asks for, with its coverage."""
    catalog = repository.schema(snapshot.schema_hash).catalog
    asked = named_types(catalog, types)

    def one(graph_type: GraphType) -> list[IndexStatus]:
        pin = snapshot.pins.get(graph_type.table_key)
        if pin is None:
            return [_unbuilt(graph_type, spec) for spec in wanted_indexes(graph_type)]
        state = table_state(graph_type, repository.table(pin))
        return list(_statuses(graph_type, state))

    with ThreadPoolExecutor(workers, thread_name_prefix="omnigraph-status") as pool:
        return tuple(status for found in pool.map(one, asked) for status in found)


def _unbuilt(graph_type: GraphType, spec: IndexSpec) -> IndexStatus:
    return IndexStatus(
        type_key=graph_type.table_key,
        property_name=spec.column,
        kind=spec.kind,
        state=IndexState.COMPLETE,
        rows_indexed=0,
        rows=0,
        segments=0,
        byte_count=0,
    )


def _statuses(graph_type: GraphType, state: TableIndexes) -> Iterable[IndexStatus]:
    for spec in wanted_indexes(graph_type):
        index = state.found(spec)
        rows_indexed = state.rows_indexed(index)
        reason = state.pending.get(spec)
        yield IndexStatus(
            type_key=graph_type.table_key,
            property_name=spec.column,
            kind=spec.kind,
            state=_state(state, index, rows_indexed, reason),
            rows_indexed=rows_indexed,
            rows=state.row_count,
            segments=len(index.segments) if index is not None else 0,
            byte_count=index.byte_count if index is not None else 0,
            reason=reason,
        )


def _state(
    state: TableIndexes, index: BuiltIndex | None, rows_indexed: int, reason: str | None
) -> IndexState:
    if rows_indexed == state.row_count:
        return IndexState.COMPLETE
    if reason is not None:
        return IndexState.PENDING
    return IndexState.MISSING if index is None else IndexState.PARTIAL
