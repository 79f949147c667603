"""Random small graphs that obey their schema (Hypothesis strategies; needs the dev dependencies).

random_worlds -> [random_graphs] -> graph.load(...) and NaiveGraph.of(...)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from omnigraph.schema.catalog import EdgeType, GraphType, NodeType, Property
from support.naive_graph import NaiveGraph
from support.random_worlds import IDS, RandomWorld

NODES_MAX = 8
EDGES_MAX = 14


@dataclass(frozen=True, kw_only=True)
class RandomGraph:
    """Rows by table key, with ids, as the store gives them back."""

    world: RandomWorld
    rows: Mapping[str, Sequence[Mapping[str, Any]]]

    @property
    def naive(self) -> NaiveGraph:
        """For the reference evaluator."""
        return NaiveGraph.of(self.rows)

    @property
    def source(self) -> dict[str, list[dict[str, Any]]]:
        """For ``graph.load``: rows by type name, ids left out where the key makes them."""
        loadable: dict[str, list[dict[str, Any]]] = {}
        for graph_type in self.world.catalog.types():
            keyed = bool(graph_type.key) or (isinstance(graph_type, EdgeType) and graph_type.keyed)
            rows = self.rows[graph_type.table_key]
            if rows:
                loadable[graph_type.name] = [
                    {k: v for k, v in row.items() if not (keyed and k == "id")} for row in rows
                ]
        return loadable


@st.composite
def graphs(draw: st.DrawFn, world: RandomWorld) -> RandomGraph:
    """A graph of a world: up to 8 nodes and 14 edges of each type."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for node_type in world.catalog.nodes.values():
        rows[node_type.table_key] = draw(_nodes(world, node_type))
    for edge_type in world.catalog.edges.values():
        sources = [row["id"] for row in rows[f"node:{edge_type.source}"]]
        targets = [row["id"] for row in rows[f"node:{edge_type.target}"]]
        rows[edge_type.table_key] = draw(_edges(world, edge_type, sources, targets))
    return RandomGraph(world=world, rows=rows)


@st.composite
def _nodes(draw: st.DrawFn, world: RandomWorld, node_type: NodeType) -> list[dict[str, Any]]:
    key = node_type.key[0] if node_type.key else None
    pool = world.pool(node_type.name, key, node_type.by_name[key].type) if key else list(IDS)
    count = draw(_count(NODES_MAX))
    ids = draw(st.permutations(pool))[:count]
    rest = [p for p in node_type.properties if p.name != key]
    rows: list[dict[str, Any]] = []
    for one in ids:
        own = {key: one} if key else {}
        values = {p.name: draw(_values(world, node_type, p)) for p in rest}
        # In the order of declaration, as the store gives them back.
        ordered = {p.name: (own | values)[p.name] for p in node_type.properties}
        rows.append({"id": str(one), **ordered})
    return rows


@st.composite
def _edges(
    draw: st.DrawFn,
    world: RandomWorld,
    edge_type: EdgeType,
    sources: Sequence[str],
    targets: Sequence[str],
) -> list[dict[str, Any]]:
    if not sources or not targets:
        return []
    # From few ends, so that parallel edges, loops and cycles are usual.
    end = st.tuples(st.sampled_from(sources), st.sampled_from(targets))
    count = draw(_count(EDGES_MAX))
    pairs = draw(st.lists(end, min_size=count, max_size=count))
    if edge_type.keyed or ("src", "dst") in edge_type.unique:
        pairs = list(dict.fromkeys(pairs))
    rows: list[dict[str, Any]] = []
    used: Counter[str] = Counter()
    for number, (source, target) in enumerate(pairs):
        highest = edge_type.cardinality.high
        if highest is not None and used[source] >= highest:
            continue
        used[source] += 1
        # The order of ids is not the order of insertion.
        made = f"e{number * 5 % 16:02}"
        key = json.dumps([source, target], ensure_ascii=False, separators=(",", ":"))
        values = {p.name: draw(_values(world, edge_type, p)) for p in edge_type.properties}
        ends = {"src": source, "dst": target}
        rows.append({"id": key if edge_type.keyed else made, **ends, **values})
    return rows


def _count(most: int) -> st.SearchStrategy[int]:
    """Rather many: most queries on a small graph find nothing, and nothing agrees with nothing."""
    # The first is where a failure ends when it is made smaller, and what Hypothesis likes best.
    return st.sampled_from([3, 2, 1, 0, *range(4, most + 1), *range(most // 2, most + 1)])


def _values(world: RandomWorld, graph_type: GraphType, prop: Property) -> st.SearchStrategy[Any]:
    pool = [_as_stored(v) for v in world.pool(graph_type.name, prop.name, prop.type)]
    some = st.sampled_from(pool)
    return some | st.none() if prop.type.nullable else some


def _as_stored(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
