"""Pictures of a schema and of a few entities.

catalog -> [pictures] -> drawing;   snapshot, entities -> neighbours -> [pictures] -> drawing
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.arrow.sets import one_array
from omnigraph.errors import NotFoundError, UsageError
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType, Property, type_named
from omnigraph.schema.json_text import plain_text
from omnigraph.show import html
from omnigraph.show.drawing import Arrow, Box, Drawing, draw

if TYPE_CHECKING:
    from omnigraph.storage.tables import Table

NODES_MAX = 60
"""So many nodes are drawn: a picture of more shows nothing."""
ARROWS_MAX = 400
Node = tuple[str, str]
"""The name of its type, and its id."""


class DrawnSchema(str):
    """A schema as `.pg` text, which a notebook shows as a drawing."""

    __slots__ = ("catalog",)
    catalog: Catalog

    @staticmethod
    def of(text: str, catalog: Catalog) -> DrawnSchema:
        """The text with what it declares."""
        made = DrawnSchema(text)
        made.catalog = catalog
        return made

    def draw(self) -> Drawing:
        """Node types as boxes with their properties, edge types as arrows."""
        return draw_schema(self.catalog)

    def _repr_html_(self) -> str:
        return self.draw().svg + html.folded("schema", html.words(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return DrawnSchema.of, (str(self), self.catalog)


def draw_schema(catalog: Catalog) -> Drawing:
    """Node types as boxes with their properties, edge types as arrows."""
    places = {name: place for place, name in enumerate(catalog.nodes)}
    boxes = [
        Box(title=node.name, lines=tuple(_property(node, p) for p in node.properties), group=place)
        for place, node in enumerate(catalog.nodes.values())
    ]
    arrows = [
        Arrow(start=places[edge.source], end=places[edge.target], label=_edge_label(edge))
        for edge in catalog.edges.values()
    ]
    return draw(boxes, arrows)


def _property(node: NodeType, prop: Property) -> str:
    key = " (key)" if prop.name in node.key else ""
    return f"{prop.name}: {prop.type}{key}"


def _edge_label(edge: EdgeType) -> str:
    names = ", ".join(p.name for p in edge.properties)
    return f"{edge.name} ({names})" if names else edge.name


class Neighbourhood:
    """A few nodes of a snapshot and the edges among them."""

    def __init__(self, catalog: Catalog, tables: dict[str, Table]) -> None:
        self._catalog = catalog
        self._tables = tables
        """By table key; types without rows have none."""

    def draw(self, around: Sequence[Node], *, hops: int, nodes_max: int) -> Drawing:
        """Draw what is found in so many hops from some nodes; without any, the first nodes."""
        if nodes_max < 1 or hops < 0:
            raise UsageError("a picture has at least one node, and hops are not negative")
        given = [self._node(name, key) for name, key in around]
        found = dict.fromkeys(given or self._first(nodes_max))
        frontier = list(found)
        more = False
        for _ in range(hops if around else 0):
            reached = dict.fromkeys(n for n in self._neighbours(frontier) if n not in found)
            frontier = list(reached)[: max(0, nodes_max - len(found))]
            more |= len(frontier) < len(reached)
            found.update(dict.fromkeys(frontier))
        return self._drawn(list(found), more=more)

    def _node(self, name: str, key: str) -> Node:
        graph_type = type_named(self._catalog, name)
        if not isinstance(graph_type, NodeType):
            raise UsageError(f"{graph_type.name} is an edge type", hint="name nodes")
        table = self._tables.get(graph_type.table_key)
        if table is None or not table.lookup("id", pa.array([key]), ("id",)).num_rows:
            raise NotFoundError(f"no {graph_type.name} with the id '{key}'")
        return graph_type.name, key

    def _first(self, count: int) -> Iterable[Node]:
        for node in self._catalog.nodes.values():
            if count <= 0:
                return
            table = self._tables.get(node.table_key)
            ids = next(iter(table.batches(["id"])), None) if table is not None else None
            for key in ids.column("id").slice(0, count).to_pylist() if ids is not None else ():
                count -= 1
                yield node.name, key

    def _neighbours(self, nodes: Sequence[Node]) -> Iterable[Node]:
        for edge, rows in self._edges(nodes):
            for source, target in zip(*(rows[c].to_pylist() for c in ("src", "dst")), strict=True):
                yield edge.source, source
                yield edge.target, target

    def _edges(self, nodes: Sequence[Node]) -> Iterable[tuple[EdgeType, pa.Table]]:
        """Edges that begin or end at these nodes; one that does both comes twice."""
        for edge in self._catalog.edges.values():
            table = self._tables.get(edge.table_key)
            for column, name in (("src", edge.source), ("dst", edge.target)):
                ids = pa.array([key for kind, key in nodes if kind == name], pa.string())
                if table is not None and len(ids):
                    yield edge, table.lookup(column, ids, ("id", "src", "dst"))

    def _drawn(self, nodes: Sequence[Node], *, more: bool) -> Drawing:
        places = {node: place for place, node in enumerate(nodes)}
        groups = {name: number for number, name in enumerate(self._catalog.nodes)}
        shown = {node: self._lines(*node) for node in nodes}
        boxes = [Box(title=n[1], lines=shown[n], group=groups[n[0]]) for n in nodes]
        arrows: dict[tuple[str, str], Arrow] = {}
        for edge, rows in self._edges(nodes):
            for row in rows.to_pylist():
                start = places.get((edge.source, row["src"]))
                end = places.get((edge.target, row["dst"]))
                if start is not None and end is not None:
                    arrow = Arrow(start=start, end=end, label=edge.name)
                    arrows.setdefault((edge.name, row["id"]), arrow)
        left = len(arrows) - ARROWS_MAX
        note = "more nodes are near and are not drawn" if more else ""
        note = f"{left:,} more edges are not drawn" if left > 0 else note
        return draw(boxes, list(arrows.values())[:ARROWS_MAX], note=note)

    def _lines(self, name: str, key: str) -> tuple[str, ...]:
        """The type of a node and the first of its texts, which mostly name it."""
        graph_type = self._catalog.nodes[name]
        text = next((p.name for p in graph_type.properties if _names(graph_type, p)), None)
        table = self._tables.get(graph_type.table_key)
        if text is None or table is None:
            return (name,)
        found = table.lookup("id", pa.array([key]), (text,))
        words = plain_text(one_array(found.column(text))).to_pylist()
        return (name, *(w for w in words if w))


def _names(graph_type: GraphType, prop: Property) -> bool:
    plain = str(prop.type).removesuffix("?") == "String"
    return plain and prop.name not in graph_type.key
