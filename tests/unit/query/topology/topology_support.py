"""Versions of one edge or node table, staged as a write does, in several lineages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path

import pyarrow as pa

from omnigraph.storage.changes import Append, Change, Remove, Replace, Upsert
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects
from omnigraph.storage.staging import TableStore
from omnigraph.storage.tables import Table

NODES = pa.schema([pa.field("id", pa.string(), nullable=False), ("n", pa.int64())])
EDGES = pa.schema(
    [pa.field(name, pa.string(), nullable=False) for name in ("id", "src", "dst")]
    + [pa.field("n", pa.int64())]
)
Edge = tuple[str, str, str]


def edge_rows(edges: Iterable[Edge]) -> pa.Table:
    """Edges as (id, src, dst)."""
    rows = [{"id": i, "src": s, "dst": d, "n": 0} for i, s, d in edges]
    return pa.Table.from_pylist(rows, schema=EDGES)


def node_rows(ids: Iterable[str]) -> pa.Table:
    return pa.Table.from_pylist([{"id": i, "n": 0} for i in ids], schema=NODES)


class Versions:
    """Makes versions. Every one is opened anew, as a reader would who never saw the others."""

    def __init__(self, root: Path, path: str = "edges/t") -> None:
        location = locate(str(root))
        self._objects = Objects(location, create=True)
        self._location = location
        self._names = count(1)
        self.path = path
        self.store = TableStore(location, self._objects)

    def reopened(self, table: Table) -> Table:
        """The same version in a process that has read nothing yet."""
        return TableStore(self._location, self._objects).open(table.name)

    def append(self, base: Table | None, rows: pa.Table) -> Table:
        return self._stage(base, [Append(files=self._files(rows, base))], rows.schema)

    def replace(self, base: Table, rows: pa.Table) -> Table:
        return self._stage(base, [Replace(files=self._files(rows, base))], rows.schema)

    def upsert(self, base: Table, rows: pa.Table) -> Table:
        return self._stage(base, [Upsert(rows=rows)], rows.schema)

    def remove(self, base: Table, ids: Sequence[str]) -> Table:
        gone = Remove(ids=pa.array(list(ids), pa.string()))
        return self._stage(base, [gone], base.dataset.schema)

    def _files(self, rows: pa.Table, base: Table | None):
        return self.store.write_files(self.path, rows, base)

    def _stage(self, base: Table | None, changes: list[Change], schema: pa.Schema) -> Table:
        staged = self.store.stage(self.path, base, changes, schema, f"v{next(self._names)}")
        self.store.pin(staged)
        return self.store.open(staged.table.name)
