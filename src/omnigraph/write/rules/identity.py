"""What makes an entity's identity, in columns."""

from __future__ import annotations

from omnigraph.schema.catalog import EdgeType, GraphType


def is_keyed(graph_type: GraphType) -> bool:
    """Whether ids are derived from a declared key."""
    return bool(graph_type.key) or (isinstance(graph_type, EdgeType) and graph_type.keyed)


def identity_members(graph_type: GraphType) -> tuple[str, ...]:
    """The columns an id is derived from; ``id`` itself where it is supplied or generated."""
    if isinstance(graph_type, EdgeType) and graph_type.keyed:
        return ("src", "dst", *graph_type.key)
    return graph_type.key or ("id",)
