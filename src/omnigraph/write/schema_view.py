"""The committed state as another schema will show it, before anything is rewritten.

    pinned tables, schema to come -> [schema view] -> rows in the columns to come -> validator

Types and properties are matched by number. A column that stays is read as it is stored; one that is
converted or filled is made while it is read. So a merge or a change of the schema is checked whole
before a single file is written, and tables are reshaped only if that is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from omnigraph.arrow.sets import among
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot, TablePin
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Backfill, Catalog, GraphType
from omnigraph.schema.migrate.column_changes import Made, column_of, is_unchanged
from omnigraph.storage.tables import Table
from omnigraph.write.txn import GraphDelta, WriteTxn
from omnigraph.write.validate import Validated, validate


def backfills_of(catalog: Catalog) -> dict[int, Backfill]:
    """What rows of a time before a property get, by the number of the property."""
    return {p.id: p.backfill for t in catalog.types() for p in t.properties if p.backfill}


@dataclass(frozen=True, kw_only=True)
class SchemaView:
    """A pinned state under a schema to come. Implements ``CommittedState``."""

    repository: Repository
    snapshot: Snapshot
    stored: Catalog
    """The schema of the state."""
    catalog: Catalog
    """The schema to come."""
    backfills: Mapping[int, Backfill]
    """What rows without a value get, by the number of the property to come."""
    consulted: set[str] = field(default_factory=set[str])
    """Table keys, as the state has them, that were read."""

    @staticmethod
    def over(txn: WriteTxn, catalog: Catalog, backfills: Mapping[int, Backfill]) -> SchemaView:
        """What a transaction has pinned. What is read belongs to its read set."""
        return SchemaView(
            repository=txn.repository,
            snapshot=txn.snapshot,
            stored=txn.schema.catalog,
            catalog=catalog,
            backfills=backfills,
            consulted=txn.consulted,
        )

    @cached_property
    def _declared(self) -> Mapping[tuple[int, int], GraphType]:
        return {t.stable_id: t for t in self.stored.types()}

    @cached_property
    def _pins(self) -> Mapping[tuple[int, int], TablePin]:
        return {p.stable_id: p for p in self.snapshot.pins.values()}

    def declared(self, graph_type: GraphType) -> GraphType | None:
        """A type to come as the pinned schema has it."""
        return self._declared.get(graph_type.stable_id)

    def row_count(self, table_key: str) -> int:
        """Committed rows."""
        pin = self._pin(self.catalog.table(table_key))
        return pin.row_count if pin is not None else 0

    def lookup(
        self, table_key: str, column: str, values: pa.Array, columns: tuple[str, ...]
    ) -> pa.Table:
        """Committed rows whose ``column`` is among ``values``."""
        wanted = list(dict.fromkeys((column, *columns)))
        made = self._columns(self.catalog.table(table_key), wanted)
        table = self._table(self.catalog.table(table_key))
        if table is None:
            return self._empty(table_key, columns)
        stored = made[column].stored
        if stored is not None:
            reads = tuple(dict.fromkeys([stored, *(n for m in made.values() for n in m.reads)]))
            rows = _made(made, wanted, table.lookup(stored, values, reads))
        else:
            rows = self.scan(table_key, tuple(wanted))
            rows = rows.filter(among(rows.column(column), values))
        return rows.select(list(columns))

    def rows_of(self, table_key: str, ids: pa.Array, columns: tuple[str, ...]) -> pa.Table:
        """Committed rows by their ids."""
        return self.lookup(table_key, "id", ids, columns)

    def scan(self, table_key: str, columns: tuple[str, ...]) -> pa.Table:
        """All committed rows, projected."""
        graph_type = self.catalog.table(table_key)
        table = self._table(graph_type)
        if table is None:
            return self._empty(table_key, columns)
        made = self._columns(graph_type, columns)
        return _made(made, columns, table.columns(_reads(made)))

    def batches(self, graph_type: GraphType, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The same piece by piece, blobs as plain bytes."""
        table = self._table(graph_type)
        if table is None:
            return
        made = self._columns(graph_type, columns)
        for batch in table.batches(_reads(made)):
            yield _made(made, columns, pa.Table.from_batches([batch]))

    def stored_batches(
        self, graph_type: GraphType, columns: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        """Pieces in the names and types that are stored."""
        table = self._table(graph_type)
        if table is not None:
            yield from table.batches(columns)

    def _pin(self, graph_type: GraphType) -> TablePin | None:
        pin = self._pins.get(graph_type.stable_id)
        if pin is not None:
            self.consulted.add(pin.table_key)
        return pin

    def _table(self, graph_type: GraphType) -> Table | None:
        return self.repository.table_if(self._pin(graph_type))

    def _columns(self, graph_type: GraphType, names: Sequence[str]) -> dict[str, Made]:
        return {name: self._column(graph_type, name) for name in names}

    def _column(self, graph_type: GraphType, name: str) -> Made:
        before = self.declared(graph_type)
        if (
            name in graph_type.system_columns
            or before is None
            or is_unchanged(before, graph_type, self.backfills)
        ):
            field = table_schema(graph_type).field(name)
            return Made(
                field=field, reads=(name,), make=lambda rows: rows.column(name), stored=name
            )
        return column_of(before, graph_type.by_name[name], self.backfills)

    def _empty(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        schema = table_schema(self.catalog.table(table_key))
        return pa.schema([schema.field(c) for c in columns]).empty_table()


def _reads(made: Mapping[str, Made]) -> list[str]:
    # Constants need to know how many rows there are: any column says that.
    return list(dict.fromkeys(n for m in made.values() for n in m.reads)) or ["id"]


def _made(made: Mapping[str, Made], names: Sequence[str], rows: pa.Table) -> pa.Table:
    """Columns to come from stored ones. Values may still be missing where they must not be."""
    schema = pa.schema([made[name].field.with_nullable(True) for name in names])
    return pa.table([made[name].make(rows) for name in names], schema=schema)


def validated(txn: WriteTxn, delta: GraphDelta, *, violations_max: int = 20) -> Validated:
    """Check a delta against the pinned state, as the schema shows it that is to hold."""
    if delta.schema is None:
        return validate(txn.schema.catalog, delta, txn, violations_max=violations_max)
    catalog = delta.schema.catalog
    view = SchemaView.over(txn, catalog, backfills_of(catalog))
    return validate(catalog, delta, view, violations_max=violations_max)
