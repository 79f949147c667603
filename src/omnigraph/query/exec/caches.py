"""Derived state of one open graph, shared by its snapshots, and which arm carries traversals."""

from __future__ import annotations

import os
from enum import StrEnum
from threading import RLock

from omnigraph.errors import UsageError
from omnigraph.query.exec.columns import KeptColumn, TextIndexes, fetch_cost
from omnigraph.query.topology.edge_parts import EdgeParts
from omnigraph.query.topology.edges import EdgeTopology
from omnigraph.query.topology.saved import TopologyFiles
from omnigraph.query.topology.vertices import VertexSpace
from omnigraph.schema.catalog import EdgeType, NodeType

MODE_VARIABLE = "OMNIGRAPH_TRAVERSAL_MODE"


class TraversalMode(StrEnum):
    """Which arm carries traversals."""

    AUTO = "auto"
    INDEXED = "indexed"
    CSR = "csr"

    @staticmethod
    def chosen() -> TraversalMode:
        """From the environment."""
        text = os.environ.get(MODE_VARIABLE)
        if not text:
            return TraversalMode.AUTO
        try:
            return TraversalMode(text)
        except ValueError:
            raise UsageError(
                f"{MODE_VARIABLE} is {text!r}", hint="use auto, indexed or csr"
            ) from None


class Caches:
    """Derived state of one graph, shared by all its snapshots."""

    def __init__(self, bytes_max: int | None = None, files: TopologyFiles | None = None) -> None:
        self.kept = KeptColumn(bytes_max)
        self._files = files
        self.texts = TextIndexes()
        self._spaces: dict[str, VertexSpace] = {}
        self._edges: dict[str, EdgeTopology] = {}
        self._lookup_costs: dict[tuple[str, str], float] = {}
        """What finding rows by an index has cost so far, in rows that a scan would have read."""
        self._lock = RLock()

    def asks_index(self, table_path: str, column: str, row_count: int, *, more: int = 0) -> bool:
        """Whether an index is asked: until it has cost as much as reading the column once.

        ``more`` is what the question itself will cost beyond a single row.
        """
        cost = self._lookup_costs.get((table_path, column), 0.0)
        return cost < row_count and cost + more < max(row_count, fetch_cost(1) + 1)

    def add_lookup(self, table_path: str, column: str, rows: int) -> None:
        """An index was asked, and found so many rows."""
        with self._lock:
            cost = self._lookup_costs.get((table_path, column), 0.0)
            self._lookup_costs[table_path, column] = cost + fetch_cost(rows)

    def space(self, node: NodeType) -> VertexSpace:
        """The numbers of a node type's ids."""
        with self._lock:
            found = self._spaces.get(node.table_path)
            if found is None:
                found = VertexSpace(node.table_path, self._files)
                self._spaces[node.table_path] = found
            return found

    def edges(self, edge: EdgeType, source: NodeType, target: NodeType) -> EdgeTopology:
        """What is known of an edge type's edges."""
        with self._lock:
            found = self._edges.get(edge.table_path)
            if found is None:
                ends = self.space(source), self.space(target)
                found = EdgeTopology(EdgeParts(*ends, edge.table_path, self._files))
                self._edges[edge.table_path] = found
            return found
