"""Versions of one edge or node table, staged as a write does, in several lineages; and a topology of
them that can be compared with what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.query.topology.edge_parts import EdgeParts
from omnigraph.query.topology.edges import EdgeTopology
from omnigraph.query.topology.overlay import AnyAdjacency, places_in
from omnigraph.query.topology.vertices import VertexSpace
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
SIDES = ("out", "in", "both")
BASE = [(f"e{i}", f"p{i % 7}", f"q{i}") for i in range(40)]
"""No two edges connect the same nodes: then any change can be folded in."""


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


class Topology:
    """An ``EdgeTopology`` that says what it holds, and notes what it reads."""

    def __init__(self, space: VertexSpace | None = None, *saved: Any) -> None:
        self.space = VertexSpace() if space is None else space
        self.edges = EdgeTopology(EdgeParts(self.space, self.space, *saved))

    def pairs(self, table: Table, side: str = "out") -> list[tuple[str, str]]:
        adjacency = self.edges.adjacency(table, side, per_edge=False)
        origins, places = everything(adjacency)
        return sorted(zip(*self._texts(origins, adjacency.reached(places)), strict=True))

    def rows(self, table: Table, side: str = "out") -> list[tuple[str, str, str]]:
        """Per edge: its ends, and the id of the row at its address."""
        adjacency = self.edges.adjacency(table, side, per_edge=True)
        ids = table.columns(["id"])["id"].to_numpy()
        origins, places = everything(adjacency)
        found = ids[table.layout.positions(adjacency.addresses_at(places))]
        texts = self._texts(origins, adjacency.reached(places))
        return sorted(zip(found.tolist(), *texts, strict=True))

    def _texts(self, *numbers: np.ndarray) -> list[list[str]]:
        return [self.space.text(some).to_pylist() for some in numbers]

    @property
    def made(self) -> tuple[int, int]:
        return self.edges.builds, self.edges.refreshes


def everything(adjacency: AnyAdjacency) -> tuple[np.ndarray, np.ndarray]:
    """All places of an adjacency, and the origin of each."""
    origins = np.arange(adjacency.vertex_count)
    starts, counts = adjacency.ranges(origins)
    return np.repeat(origins, counts), places_in(starts, counts)


def expected_rows(table: Table, side: str) -> list[tuple[str, str, str]]:
    found = table.dataset.to_table(columns=["id", "src", "dst"]).to_pylist()
    rows = []
    for row in found:
        one, ends = row["id"], (row["src"], row["dst"])
        if side in ("out", "both"):
            rows.append((one, *ends))
        if side in ("in", "both") and not (side == "both" and ends[0] == ends[1]):
            rows.append((one, *reversed(ends)))
    return sorted(rows)


def check(topology: Topology, table: Table) -> None:
    for side in SIDES:
        expected = expected_rows(table, side)
        assert topology.rows(table, side) == expected, side
        assert topology.pairs(table, side) == sorted({(a, b) for _, a, b in expected}), side


def reads(table: Table) -> list[int]:
    """Notes how many rows are read from files."""
    asked: list[int] = []
    read = table.memory._read_fragments

    def noted(fragments, names):
        asked.extend(f.live_rows for f in fragments)
        return read(fragments, names)

    table.memory._read_fragments = noted
    return asked
