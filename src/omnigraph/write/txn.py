"""The write transaction: one snapshot, pinned once.

Every later phase takes the transaction and nothing re-resolves a branch, a schema or a table
(INV-2). Reads through it are remembered: they are the read set that is checked after a lost race.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.manifest.snapshot import ManifestPlace, Snapshot, TableChange, TablePin
from omnigraph.manifest.store import Head
from omnigraph.rules.table_delta import TableDelta
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.layout import Positions
from omnigraph.storage.tables import Table

if TYPE_CHECKING:
    from omnigraph.manifest.schemas import AcceptedSchema


LOOKUPS_AT_ONCE = 4
"""On a remote store, where they wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRead:
    """Something that a write looked for in a table."""

    table_key: str
    ids: pa.Array | None
    """The rows of these ids alone; None: any row may matter."""


@dataclass(frozen=True, kw_only=True)
class WriteTxn:
    """A pinned snapshot and what was read of it. Implements ``CommittedState``."""

    repository: Repository
    branch: Branch
    head: Head
    schema: AcceptedSchema
    consulted: set[str] = field(default_factory=set[str])
    """Table keys whose content the write's decisions rest on."""
    reads: list[TableRead] = field(default_factory=lambda: list[TableRead]())
    """The same, with the ids that were looked for."""

    @staticmethod
    def begin(repository: Repository, branch: Branch, head: Head) -> WriteTxn:
        """Pin a head. It is passed in, never looked up: the branch's own moves under readers."""
        return WriteTxn(
            repository=repository,
            branch=branch,
            head=head,
            schema=repository.schema(head.snapshot.schema_hash),
        )

    @property
    def snapshot(self) -> Snapshot:
        return self.head.snapshot

    def pin(self, table_key: str) -> TablePin | None:
        """The pinned version of a table; None while it has no dataset."""
        return self.snapshot.pins.get(table_key)

    def pin_of(self, graph_type: GraphType) -> TablePin | None:
        """The pinned version of a type's table, whatever the pinned schema calls it."""
        pin = self.pin(graph_type.table_key)
        if pin is not None and _is_of(pin, graph_type):
            return pin
        return next((p for p in self.snapshot.pins.values() if _is_of(p, graph_type)), None)

    def table_of(self, graph_type: GraphType) -> Table | None:
        """The pinned table of a type, opened."""
        return self.repository.table_if(self.pin_of(graph_type))

    def table(self, table_key: str) -> Table | None:
        """The pinned table, opened; None while it has no dataset."""
        return self.repository.table_if(self.pin(table_key))

    def row_count(self, table_key: str) -> int:
        """Committed rows."""
        self._note(table_key, None)
        return self.snapshot.row_count(table_key)

    def lookup(
        self, table_key: str, column: str, values: pa.Array, columns: tuple[str, ...]
    ) -> pa.Table:
        """Committed rows whose ``column`` is among ``values``."""
        table = self._consulted(table_key, values if column == "id" else None)
        return table.lookup(column, values, columns) if table else self._empty(table_key, columns)

    def rows_of(self, table_key: str, ids: pa.Array, columns: tuple[str, ...]) -> pa.Table:
        """Committed rows by their ids; whole rows are read and not kept."""
        positions = self.positions(table_key, "id", ids, then=columns)
        return self.rows_at(table_key, positions, columns)

    def scan(self, table_key: str, columns: tuple[str, ...]) -> pa.Table:
        """All committed rows, projected."""
        table = self._consulted(table_key, None)
        return table.columns(columns) if table else self._empty(table_key, columns)

    def positions(
        self, table_key: str, column: str, values: pa.Array, *, then: tuple[str, ...] = ()
    ) -> Positions:
        """Where in a ``scan`` the committed rows stand whose ``column`` is among ``values``.

        The columns ``then`` will be asked for next, probably to be changed.
        """
        self._note(table_key, values if column == "id" else None)
        pin, tables = self.pin(table_key), self.repository.open_tables
        if pin is None:
            return np.empty(0, np.int64)
        was_open = tables.has(pin)
        table = tables.get(pin)
        if then and not was_open:
            table.expect_change()
        # What was looked for is known when it is found.
        return table.positions(column, values, then=[name for name in then if name != column])

    def ids_with(self, asks: Sequence[tuple[str, str, pa.StringArray]]) -> list[pa.Table]:
        """The ids of committed rows with some values, for several tables, columns and values."""

        def ask(one: tuple[str, str, pa.StringArray]) -> pa.Table:
            key, column, values = one
            return self.lookup(key, column, values, ("id",))

        if len(asks) < 2 or self.repository.location.is_local:
            return [ask(one) for one in asks]
        with ThreadPoolExecutor(min(len(asks), LOOKUPS_AT_ONCE)) as pool:
            return list(pool.map(ask, asks))

    def rows_at(self, table_key: str, positions: Positions, columns: tuple[str, ...]) -> pa.Table:
        """Committed rows by their positions in a ``scan``; blobs as plain bytes.

        What gave the positions was a read of the table, and was noted.
        """
        self.consulted.add(table_key)
        table = self.table(table_key)
        return table.take(positions, columns) if table else self._empty(table_key, columns)

    def same_world(self, other: Snapshot, table_keys: set[str]) -> bool:
        """Whether ``other`` shows the same schema and the same versions of these tables."""
        return self.snapshot.schema_hash == other.schema_hash and all(
            self.snapshot.pins.get(key) == other.pins.get(key) for key in table_keys
        )

    def _consulted(self, table_key: str, ids: pa.Array | None) -> Table | None:
        """A table whose content is read, and so belongs to the read set."""
        self._note(table_key, ids)
        return self.table(table_key)

    def _note(self, table_key: str, ids: pa.Array | None) -> None:
        self.consulted.add(table_key)
        self.reads.append(TableRead(table_key=table_key, ids=ids))

    def _empty(self, table_key: str, columns: tuple[str, ...]) -> pa.Table:
        schema = table_schema(self.schema.catalog.table(table_key))
        return pa.schema([schema.field(c) for c in columns]).empty_table()


def _is_of(pin: TablePin, graph_type: GraphType) -> bool:
    return pin.stable_id == graph_type.stable_id


# -- delta -----------------------------------------------------------------------------------------
# What a write wants to change, before it is checked.
#
# load | mutate | merge -> [delta] -> validate -> stage -> publish


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDelta:
    """The change of one write over all tables it touches, by table key."""

    tables: Mapping[str, TableDelta]
    adopts_from: ManifestPlace | None = None
    """The state whose versions of tables are adopted, if any are."""
    schema: AcceptedSchema | None = None
    """The schema from now on, if it changes: what the rows and the keys of the tables say. Tables
    follow their types by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A state of the whole graph that exists already, on whatever branch, to be shown as it is.

    Every rule was checked when it was made, so nothing is checked or written again.
    """

    snapshot: Snapshot
    changes: Mapping[str, TableChange]
    """How it differs from the branch's present state; by table key."""
    rewinds: bool = False
    """The branch goes back: its history continues from that state, not from its present head."""
