"""Deletes: which entities go, and which edges go with them.

    delete statements -> [deletes] -> ids to remove, by table

A node takes every edge with it that starts or ends there, whatever its type. Each entity is counted
once, whichever statements and cascades reach it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from omnigraph.arrow.sets import union
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.mutate.base import Base
from omnigraph.query.mutate.find import find_ids
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, EntityKind, GraphType


def type_of(catalog: Catalog, kind: EntityKind, name: str) -> GraphType:
    """The type that a statement names."""
    return catalog.nodes[name] if kind == "node" else catalog.edges[name]


def delete(
    catalog: Catalog, statements: Sequence[typed.Delete], base: Base, values: Values
) -> dict[str, TableDelta]:
    """The removals of all statements. A statement sees no row that an earlier one removed, and a
    condition speaks of one row alone: so all may look at the committed rows."""
    found: dict[str, list[pa.Array]] = {}
    for statement in statements:
        graph_type = type_of(catalog, statement.kind, statement.type_name)
        ids = find_ids(base, graph_type, statement.where, values)
        found.setdefault(graph_type.table_key, []).append(ids)
    gone = {key: union(parts) for key, parts in found.items()}
    for key, ids in _incident(catalog, gone, base).items():
        gone[key] = union([gone[key], *ids]) if key in gone else union(ids)
    return {
        t.table_key: TableDelta(
            type=t,
            mode=WriteMode.MERGE,
            rows=table_schema(t).empty_table(),
            removed=gone[t.table_key],
        )
        for t in catalog.types()
        if len(gone.get(t.table_key, ()))
    }


def _incident(
    catalog: Catalog, gone: Mapping[str, pa.StringArray], base: Base
) -> dict[str, list[pa.ChunkedArray]]:
    """Edges that start or end at a node that goes. A lookup per edge column."""
    edges: dict[str, list[pa.ChunkedArray]] = {}
    for node in catalog.nodes.values():
        ids = gone.get(node.table_key)
        if ids is None or not len(ids):
            continue
        for edge in catalog.edges_at(node.name):
            for column, end in (("src", edge.source), ("dst", edge.target)):
                if end == node.name:
                    hit = base.lookup(edge.table_key, column, ids, ("id",))
                    edges.setdefault(edge.table_key, []).append(hit.column("id"))
    return edges
