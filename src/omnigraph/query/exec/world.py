"""One snapshot as queries see it: node and edge tables with their derived state.

    snapshot, caches -> [world] -> operators

It decides between the two arms of a traversal. *Lookup* asks Lance for the edges of a few nodes;
*adjacency* holds all edges of the type in memory. Both give the same keys, so only cost differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from threading import RLock
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.errors import CorruptionError, OmnigraphError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.query import typed
from omnigraph.query.exec.caches import Caches, TraversalMode
from omnigraph.query.exec.columns import TableColumns, fetch_cost
from omnigraph.query.exec.lookups import find_edges_of, find_ids, lookups_for, texts_of
from omnigraph.query.exec.outputs import ResultColumns
from omnigraph.query.exec.pushdown import lance_filters
from omnigraph.query.plan.planner import QueryPlan
from omnigraph.query.topology.adjacency import Adjacency, Pairs
from omnigraph.query.topology.edges import Side
from omnigraph.query.topology.overlay import AnyAdjacency
from omnigraph.query.topology.vertices import NOTHING, PinnedVertices, VertexSpace, Vertices
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType, Scalar
from omnigraph.storage.indexing import PARTS_ROWS_MIN, IndexKind, IndexSpec, table_indexes
from omnigraph.storage.layout import Addresses, Positions
from omnigraph.storage.tables import Table

T = TypeVar("T", NodeType, EdgeType)
PROJECTIONS_MAX = 512
LOOKUP_COST = 40
"""Edges that an adjacency takes in while a lookup fetches one."""
KNOWN_SCAN_COST = 0.01
"""The same for a look through the ends of all edges, where they are known in numbers."""
SCANNED_EDGES_MIN = 200_000
"""Fewer edges without an index are taken in at once."""
SCAN_COST = 0.5
"""The same for a scan that looks at one edge, where there is no index. It takes a twentieth of the
time (0.15 s at ten million edges), but a second question is the sign of more: what several scans
would have cost is better spent on what this process and, from its file, all later ones go by."""
LOOKUP_START_COST = 6_000
"""The same for the lookup itself, however little it finds: 1.4 ms against 0.24 µs an edge
(docs/dev/benchmarks.md, "The same question again")."""


class World:
    """A snapshot with its tables, opened as they are asked for."""

    def __init__(
        self, repository: Repository, snapshot: Snapshot, caches: Caches, mode: TraversalMode
    ) -> None:
        self.snapshot = snapshot
        self.catalog: Catalog = repository.schema(snapshot.schema_hash).catalog
        self.mode = mode
        self.caches = caches
        self._repository = repository
        self._nodes: dict[str, NodeTable] = {}
        self._edges: dict[str, EdgeTable] = {}
        self.plans: dict[int, tuple[object, QueryPlan]] = {}
        """The plan of each query that was asked, by its identity and beside it."""
        self._projections: dict[int, ResultColumns] = {}
        self._lock = RLock()
        self.opened: list[Table] = []
        """Tables opened so far, for counting requests."""

    def node(self, name: str) -> NodeTable:
        """A node type's table."""
        if name not in self._nodes:
            with self._lock:
                self._nodes.setdefault(name, NodeTable(self, self.catalog.nodes[name]))
        return self._nodes[name]

    def edge(self, name: str) -> EdgeTable:
        """An edge type's table."""
        if name not in self._edges:
            with self._lock:
                self._edges.setdefault(name, EdgeTable(self, self.catalog.edges[name]))
        return self._edges[name]

    def table(self, graph_type: GraphType) -> Table | None:
        """The pinned version of a type's table; None while it has none."""
        pin = self.snapshot.pins.get(graph_type.table_key)
        if pin is None:
            return None
        table = self._repository.table(pin)
        self.opened.append(table)
        return table

    def projection(self, outputs: tuple[typed.Output, ...]) -> ResultColumns:
        """The columns of a result; found out once for the outputs of a plan."""
        found = self._projections.get(id(outputs))
        if found is None or found.outputs is not outputs:
            if len(self._projections) >= PROJECTIONS_MAX:
                self._projections.clear()
            found = ResultColumns.of(outputs, self.catalog)
            self._projections[id(outputs)] = found
        return found

    def begin(self, graph_type: GraphType) -> None:
        """Begin to open a table that will be read."""
        pin = self.snapshot.pins.get(graph_type.table_key)
        if pin is not None:
            self._repository.open_tables.begin(pin)

    def beside(self, work: Callable[[], None]) -> None:
        """Do something while something else waits for the store; not when the handle is closed."""
        with suppress(RuntimeError):
            self._repository.background.pool.submit(work)

    def requests(self) -> int:
        """Requests that reading tables has taken so far."""
        return sum(table.reads for table in self.opened)


class _TypeTable(Generic[T]):
    """One type in one snapshot."""

    def __init__(self, world: World, graph_type: T) -> None:
        self.type = graph_type
        self.row_count = world.snapshot.row_count(graph_type.table_key)
        self._world = world

    @cached_property
    def columns(self) -> TableColumns:
        return TableColumns(
            self._world.table(self.type), table_schema(self.type), self._world.caches.kept
        )


class NodeTable(_TypeTable[NodeType]):
    """One node type in one snapshot."""

    def __init__(self, world: World, node: NodeType) -> None:
        super().__init__(world, node)
        self._found: dict[int, int] = {}
        """Rows of single vertices, as far as they were looked up."""
        self._numbers: dict[int, int] = {}
        """Vertices of single rows, the other way round."""
        self._outside: dict[IndexSpec, int] = {}

    @cached_property
    def space(self) -> VertexSpace:
        """The numbers of ids; those that another process has saved, if there are some."""
        space = self._world.caches.space(self.type)
        if self.columns.table is not None:
            space.load(self.columns.table)
        return space

    @cached_property
    def all_rows(self) -> Positions:
        """Every position; operators recognise this very array."""
        return np.arange(self.row_count, dtype=np.int64)

    @property
    def all_rows_made(self) -> Positions | None:
        """The array of every position, if it was asked for."""
        return self.__dict__.get("all_rows")

    @cached_property
    def pinned(self) -> PinnedVertices:
        """Rows and numbers of all nodes: reads the whole id column."""
        table = self.columns.table
        if table is None:
            return PinnedVertices.of(np.empty(0, np.int64), 0)
        return self._world.caches.kept.make(
            (table.name, "#vertices"), lambda: self.space.rows(table), lambda p: p.row_count * 16
        )

    def expect(self, columns: Sequence[str]) -> None:
        """Columns of few nodes will be asked for, when it is known where they lie."""
        stored = [c for c in columns if not self.is_id(c)]
        if not stored or self.ids_known:
            return

        def begin() -> None:
            with suppress(OmnigraphError):  # Is said by what reads the columns.
                table = self.columns.table
                if table is not None and not self.whole(1):
                    table.expect([c for c in stored if self.columns.known(c) is None])

        self._world.beside(begin)

    def is_id(self, column: str) -> bool:
        """Whether a column is the id, or a key whose text is the id."""
        return column == "id" or (self.type.key == (column,) and self._key_is_text)

    @cached_property
    def _key_is_text(self) -> bool:
        return self.type.by_name[self.type.key[0]].type.scalar is Scalar.STRING

    @property
    def ids_known(self) -> bool:
        """Whether the ids of all nodes are in memory."""
        return "pinned" in self.__dict__

    def whole(self, count: int) -> bool:
        """Whether so many ids are resolved by the numbers of all, and not by lookups."""
        if "pinned" in self.__dict__ or self._world.mode is TraversalMode.CSR:
            return True
        table = self.columns.table
        if table is None or not lance_filters(self.type):
            return True
        if self._world.mode is TraversalMode.INDEXED:
            return False
        if self.space.covers(table):
            return True
        lookups = lookups_for(count)
        cost = fetch_cost(count, lookups)
        if "id" not in table.indexed_columns:
            if self.columns.fits("id"):
                return True
            cost += int(lookups * self.row_count * SCAN_COST)
        return not self._world.caches.asks_index(
            self.type.table_path, "id", self.row_count, more=cost
        )

    def rows_outside(self, column: str, kind: IndexKind) -> int:
        """Rows that no built index of this kind covers; looked up once."""
        spec = IndexSpec(column=column, kind=kind)
        if spec not in self._outside:
            table = self.columns.table
            built = [i for i in table_indexes(table) if i.serves(spec)] if table is not None else []
            covered = frozenset[int]().union(*(index.fragments for index in built))
            fragments = table.layout.fragments if table is not None else ()
            self._outside[spec] = sum(f.live_rows for f in fragments if f.id not in covered)
        return self._outside[spec]

    def asks_index(self, columns: set[str]) -> bool:
        """Whether rows are found by indexes of these columns."""
        table, caches = self.columns.table, self._world.caches
        if table is None or not columns <= table.indexed_columns:
            return False
        return all(caches.asks_index(self.type.table_path, c, self.row_count) for c in columns)

    def finds_parts(self, column: str) -> bool:
        """Whether an index is asked which texts of a column contain something."""
        count, caches = self.row_count, self._world.caches
        if count < PARTS_ROWS_MIN or not caches.asks_index(self.type.table_path, column, count):
            return False
        return self.rows_outside(column, IndexKind.NGRAM) <= count // 2

    def add_lookup(self, columns: set[str], rows: int) -> None:
        """Indexes of these columns found so many rows."""
        for column in columns:
            self._world.caches.add_lookup(self.type.table_path, column, rows)

    def rows_of(self, vertices: Vertices) -> Positions:
        """Positions of nodes. That each exists is what every write checks."""
        rows = (
            self.pinned.rows(vertices)
            if self.whole(len(vertices))
            else self._look_up_rows(vertices)
        )
        if len(rows) and rows.min() < 0:
            lost = vertices[(rows < 0) & (vertices >= 0)]
            if len(lost):
                name = self.space.text(lost[:1])[0].as_py()
                raise CorruptionError(
                    f"an edge refers to '{name}', which is not in {self.type.name}",
                    hint="restore the graph from a copy, or load the missing node",
                )
        return rows

    def vertices_of(self, rows: Positions) -> Vertices:
        """Numbers of positions."""
        found = len(rows) <= len(self._numbers) and all(r in self._numbers for r in rows.tolist())
        if not found and self.whole(len(rows)):
            return self.pinned.vertices(rows)
        missing = np.array(
            [r for r in np.unique(rows).tolist() if r >= 0 and r not in self._numbers]
        )
        if len(missing):
            self._remembered(missing, texts_of(self.columns.take("id", missing)))
        known = (self._numbers.get(r, NOTHING) for r in rows.tolist())
        return np.fromiter(known, np.int64, len(rows))

    def find_one(self, id_: str) -> tuple[int, int] | None:
        """Position and number of one id, ``NOTHING`` for an absent one.

        None where it has to be looked up. Nothing but integers: a lookup by key is mostly this.
        """
        if not self.whole(1):
            return None
        pinned = self.pinned  # First: it makes the numbers known.
        vertex = self.space.number_of(id_)
        return pinned.row(vertex), vertex

    def find(self, ids: Sequence[str]) -> Positions:
        """Positions of ids, each once, in storage order; absent ones are left out."""
        wanted: pa.StringArray = pa.array(list(dict.fromkeys(ids)), pa.string())
        if self.columns.table is None or not len(wanted):
            return np.empty(0, np.int64)
        if self.whole(len(wanted)):
            pinned = self.pinned
            vertices = self.space.find(wanted)
            rows = pinned.rows(vertices[vertices >= 0])
            rows = rows[rows >= 0]
        else:
            rows = self._remembered(*self._search(wanted))
        return rows if len(rows) < 2 else np.sort(rows)

    def _search(self, ids: pa.StringArray) -> tuple[Positions, pa.StringArray]:
        """Positions and ids that Lance finds."""
        table = self.columns.table
        if table is None:
            return np.empty(0, np.int64), pa.array([], pa.string())
        self.add_lookup({"id"}, len(ids))
        return find_ids(table, ids)

    def _remembered(self, rows: Positions, ids: pa.StringArray) -> Positions:
        """The rows of these ids, which are known in both directions from now on."""
        if len(rows):
            vertices = self.space.intern(texts_of(ids)).tolist()
            self._found.update(zip(vertices, rows.tolist(), strict=True))
            self._numbers.update(zip(rows.tolist(), vertices, strict=True))
        return rows

    def _look_up_rows(self, vertices: Vertices) -> Positions:
        unique = np.unique(vertices)
        missing = np.array([v for v in unique.tolist() if v >= 0 and v not in self._found])
        if len(missing):
            self._remembered(*self._search(self.space.text(missing)))
        lookup = np.array([self._found.get(v, NOTHING) for v in unique.tolist()], np.int64)
        return lookup[np.searchsorted(unique, vertices)]


class EdgeTable(_TypeTable[EdgeType]):
    """One edge type in one snapshot."""

    def __init__(self, world: World, edge: EdgeType) -> None:
        super().__init__(world, edge)
        self.source = world.node(edge.source)
        self.target = world.node(edge.target)
        self.topology = world.caches.edges(edge, self.source.type, self.target.type)
        self._whole: dict[tuple[Side, bool], AnyAdjacency] = {}
        """Adjacencies of all edges that this snapshot has used."""

    def rows_of(self, addresses: Addresses) -> Positions:
        """Positions of edges; ``NOTHING`` stays itself."""
        table = self.columns.table
        if table is None:
            return np.full(len(addresses), NOTHING, np.int64)
        if len(addresses) and addresses.min() < 0:
            rows = np.full(len(addresses), NOTHING, np.int64)
            present = addresses >= 0
            rows[present] = table.layout.positions(addresses[present])
            return rows
        return table.layout.positions(addresses)

    def ends(self, side: Side) -> tuple[NodeTable, NodeTable]:
        """Origin and target as seen from a side."""
        return (self.source, self.target) if side != "in" else (self.target, self.source)

    def adjacency(self, side: Side, origins: Vertices, *, per_edge: bool) -> AnyAdjacency:
        """At least the edges of these origins."""
        if (found := self._whole.get((side, per_edge))) is not None:
            return found
        table = self.columns.table
        if table is None or not self.row_count:
            return _small(Pairs.none(), per_edge=per_edge)
        ends = (self.source, self.target)
        empty = [end for end in ends if len(end.space) == 0]
        if self._by_adjacency(table, side, len(origins), per_edge=per_edge):
            for end in empty:
                # Numbers in the order of rows make later steps cheap.
                _ = end.pinned
            found = self.topology.adjacency(table, side, per_edge=per_edge)
            self._whole[side, per_edge] = found
            return found
        return _small(self._look_up(table, side, np.unique(origins)), per_edge=per_edge)

    def ask_ahead(self, side: Side, ids: Sequence[str], *, per_edge: bool) -> None:
        """The edges of nodes with these ids will be asked for: begin to look them up, if they will
        be looked up."""
        if (side, per_edge) in self._whole or side == "both" or not ids:
            return

        def begin() -> None:
            with suppress(OmnigraphError):  # Is said by the step that asks.
                table = self.columns.table
                if table is None or not table.prefers_each(len(ids)):
                    return
                if self._lookups_pay(table, side, len(ids), per_edge=per_edge)[0]:
                    column, other = ("src", "dst") if side == "out" else ("dst", "src")
                    table.ask_ahead(column, ids, [other])

        self._world.beside(begin)

    def _by_adjacency(self, table: Table, side: Side, origins: int, *, per_edge: bool) -> bool:
        lookup, price = self._lookups_pay(table, side, origins, per_edge=per_edge)
        self.topology.lookup_cost += price
        return not lookup

    def _lookups_pay(
        self, table: Table, side: Side, origins: int, *, per_edge: bool
    ) -> tuple[bool, float]:
        """Whether edges are looked up, and what that is counted as.

        Lookups are made until they have cost as much as the adjacency would have (ski rental): the
        sum is at most twice what the better of the two would have been.
        """
        mode, topology = self._world.mode, self.topology
        if not lance_filters(self.type):
            return False, 0.0
        if mode is not TraversalMode.AUTO:
            return mode is not TraversalMode.CSR, 0.0
        if topology.has(table, side, per_edge=per_edge):
            return False, 0.0
        needed = {"out": {"src"}, "in": {"dst"}, "both": {"src", "dst"}}[side]
        degree = self.row_count / max(1, self.ends(side)[0].row_count)
        start = LOOKUP_START_COST
        if topology.knows_ends(table):
            start = int(self.row_count * KNOWN_SCAN_COST)
        elif not needed <= table.indexed_columns:
            if self.row_count < SCANNED_EDGES_MIN:
                return False, 0.0
            start = max(start, int(self.row_count * SCAN_COST))
        price = len(needed) * start + origins * (1 + degree) * LOOKUP_COST
        return topology.lookup_cost + price < self.row_count, price

    def _look_up(self, table: Table, side: Side, origins: Vertices) -> Pairs:
        """The edges of some origins, from Lance."""
        origins = origins[origins >= 0]
        if not len(origins):
            return Pairs.none()
        if self.topology.knows_ends(table):
            return self.topology.edges_at(table, side, origins)
        return find_edges_of(table, side, origins, self.source.space, self.target.space)


def _small(pairs: Pairs, *, per_edge: bool) -> Adjacency:
    return Adjacency.of_edges(pairs) if per_edge else Adjacency.of_pairs(pairs)
