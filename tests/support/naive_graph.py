"""The graph of the reference evaluator: lists of dicts, and who reaches whom.

rows by table -> [naive_graph] -> naive_match
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.query import typed
from omnigraph.schema.catalog import Catalog

Entity = Mapping[str, Any]
"""A node (``id`` and properties) or an edge (``id``, ``src``, ``dst`` and properties)."""


@dataclass
class NaiveGraph:
    """All entities of a graph by type; values as Arrow's ``to_pylist`` gives them."""

    nodes: Mapping[str, Sequence[Entity]]
    edges: Mapping[str, Sequence[Entity]]
    _reached: dict[tuple[typed.Hop, str], frozenset[str]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @classmethod
    def of(cls, rows: Mapping[str, Sequence[Entity]]) -> NaiveGraph:
        """From rows by table key: ``{"node:Vessel": […], "edge:CallsAt": […]}``."""
        return cls(
            nodes={k.removeprefix("node:"): v for k, v in rows.items() if k.startswith("node:")},
            edges={k.removeprefix("edge:"): v for k, v in rows.items() if k.startswith("edge:")},
        )

    def nodes_of(self, type_name: str) -> Sequence[Entity]:
        """All nodes of a type."""
        return self.nodes.get(type_name, ())

    def edges_of(self, type_name: str) -> Sequence[Entity]:
        """All edges of a type."""
        return self.edges.get(type_name, ())

    def edges_between(self, hop: typed.Hop, left: str, right: str) -> list[Entity]:
        """Edges that lead from the node on the left to the node on the right of a hop.

        An undirected self-loop fits both ways and is still one edge.
        """
        return [
            e
            for e in self.edges_of(hop.edge)
            if (hop.direction in ("out", "both") and (e["src"], e["dst"]) == (left, right))
            or (hop.direction in ("in", "both") and (e["dst"], e["src"]) == (left, right))
        ]

    def reached(self, catalog: Catalog, hop: typed.Hop, left: str) -> frozenset[str]:
        """Ids on the right of a hop for one on its left: a set, however many edges lead there."""
        known = self._reached.get((hop, left))
        if known is None:
            known = self._reached[hop, left] = frozenset(self._reach(catalog, hop, left))
        return known

    def _reach(self, catalog: Catalog, hop: typed.Hop, start: str) -> set[str]:
        edge_type = catalog.edges[hop.edge]
        if edge_type.source != edge_type.target:
            # No second hop exists. Nor is the start one of the nodes over there, whatever its id.
            return self._neighbours(hop, start) if hop.low == 1 else set()
        found: set[str] = set()
        if hop.low == 1 and start in self._neighbours(hop, start):
            # The start comes back only by its own loop, at distance 1; never by a longer way round.
            found.add(start)
        visited = {start}
        frontier = {start}
        for distance in range(1, hop.high + 1):
            frontier = {n for f in frontier for n in self._neighbours(hop, f)} - visited
            visited |= frontier
            if distance >= hop.low:
                found |= frontier
            if not frontier:
                break
        return found

    def _neighbours(self, hop: typed.Hop, node: str) -> set[str]:
        found: set[str] = set()
        for edge in self.edges_of(hop.edge):
            if hop.direction in ("out", "both") and edge["src"] == node:
                found.add(edge["dst"])
            if hop.direction in ("in", "both") and edge["dst"] == node:
                found.add(edge["src"])
        return found
