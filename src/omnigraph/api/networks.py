"""A snapshot as a graph of networkx or igraph, with all properties.

types -> rows of nodes, rows of edges -> [networks] -> networkx.MultiDiGraph, igraph.Graph

Ids are unique within a type only, so a node is known by both: ``("Person", "Ada")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.errors import UsageError
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType, type_named
from omnigraph.tabular import optional

ReadRows = Callable[[str], pa.Table]
"""All rows of a type by its name."""
Record = dict[str, Any]


def to_networkx(catalog: Catalog, read: ReadRows, types: Sequence[str]) -> Any:
    """A ``MultiDiGraph``: nodes by type and id, edges by their ids, properties as attributes."""
    made = optional("networkx").MultiDiGraph()
    nodes, edges = _chosen(catalog, types)
    for node in nodes:
        for row in _records(read(node.name)):
            made.add_node((node.name, row["id"]), **_attributes(node, row))
    for edge in edges:
        for row in _records(read(edge.name)):
            ends = ((edge.source, row.pop("src")), (edge.target, row.pop("dst")))
            made.add_edge(*ends, key=row["id"], **_attributes(edge, row))
    return made


def to_igraph(catalog: Catalog, read: ReadRows, types: Sequence[str]) -> Any:
    """A directed ``igraph.Graph``; vertices and edges have ``type``, ``id`` and their properties.

    The attribute ``name`` of a vertex is its id, unless the type has a property of that name.
    """
    igraph = optional("igraph")
    nodes, edges = _chosen(catalog, types)
    places: dict[tuple[str, str], int] = {}
    vertices: list[Record] = []
    for node in nodes:
        for row in _records(read(node.name)):
            places[node.name, row["id"]] = len(vertices)
            vertices.append({"name": row["id"], **_attributes(node, row)})
    ends: list[tuple[int, int]] = []
    links: list[Record] = []
    for edge in edges:
        for row in _records(read(edge.name)):
            source, target = row.pop("src"), row.pop("dst")
            ends.append((places[edge.source, source], places[edge.target, target]))
            links.append(_attributes(edge, row))
    return igraph.Graph(
        n=len(vertices),
        edges=ends,
        directed=True,
        vertex_attrs=_by_name(vertices),
        edge_attrs=_by_name(links),
    )


def _chosen(catalog: Catalog, types: Sequence[str]) -> tuple[list[NodeType], list[EdgeType]]:
    """The types that are taken: all, or those named; edges need both of their ends."""
    if isinstance(types, str):
        raise UsageError("types is a list of names", hint=f'say types=["{types}"]')
    named: list[GraphType] = [type_named(catalog, name) for name in types]
    wanted = {t.table_key for t in named} or {t.table_key for t in catalog.types()}
    nodes = [t for t in catalog.nodes.values() if t.table_key in wanted]
    edges = [t for t in catalog.edges.values() if t.table_key in wanted]
    there = {t.name for t in nodes}
    for edge in edges:
        if missing := {edge.source, edge.target} - there:
            raise UsageError(
                f"{edge.name} needs the nodes of {', '.join(sorted(missing))}",
                hint="name these types, too",
            )
    return nodes, edges


def _attributes(graph_type: GraphType, row: Record) -> Record:
    return {**row, "type": graph_type.name} if "type" not in row else {**row}


def _records(table: pa.Table) -> Iterator[Record]:
    for batch in table.to_batches():
        yield from batch.to_pylist()


def _by_name(records: Sequence[Record]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}
