"""Changes on top of an adjacency: the same as one made anew, at the price of what they touch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_adjacency import VERTICES, array, check, edge_lists, pairs
from topology_support import Topology, Versions, edge_rows, everything
from topology_support import check as check_version

from omnigraph.query.topology import edges as edges_module
from omnigraph.query.topology import overlay as module
from omnigraph.query.topology.adjacency import Adjacency, Pairs
from omnigraph.query.topology.overlay import Overlay, changed
from support.examples import examples

Edges = dict[int, tuple[int, int]]


def pairs_of(edges: Edges) -> Pairs:
    return Pairs(
        sources=array(a for a, _ in edges.values()),
        targets=array(b for _, b in edges.values()),
        addresses=array(edges),
    )


@settings(max_examples=examples(80))
@given(
    edge_lists,
    st.lists(st.tuples(st.data(), edge_lists, st.integers(0, 2)), max_size=4),
    st.booleans(),
    st.sampled_from([1, 3, 1000]),
)
def test_any_changes_one_on_top_of_another(edges, steps, per_edge, part):
    make = Adjacency.of_edges if per_edge else Adjacency.of_pairs
    now: Edges = dict(enumerate(edges))
    vertices, first = VERTICES, len(edges)
    adjacency = make(pairs(edges), vertices=vertices)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LAID_OVER_MIN", 0)
        # From folded at once to never folded.
        patch.setattr(module, "OVERLAY_PART", 0 if part == 1000 else 1000 // part)
        for data, added, grown in steps:
            gone = sorted(data.draw(st.sets(st.sampled_from(sorted(now))))) if now else []
            vertices += grown
            come = {first + i: (a, min(b + grown, vertices - 1)) for i, (a, b) in enumerate(added)}
            first += len(come)
            removed = pairs_of({i: now[i] for i in gone})
            now = {i: e for i, e in now.items() if i not in gone} | come

            def edges_of(some: np.ndarray, now: Edges = now) -> Pairs:
                return pairs_of({i: e for i, e in now.items() if e[0] in some})

            adjacency = changed(
                adjacency, removed, pairs_of(come), vertices=vertices, edges_of=edges_of
            )
            assert adjacency is not None
            if part == 1000:
                assert isinstance(adjacency, Overlay)
            assert adjacency.vertex_count == vertices
            assert adjacency.size >= len(now if per_edge else set(now.values()))
            check(adjacency, now, range(-1, VERTICES + 3))
            origins, places = everything(adjacency)
            assert len(origins) == len(places) == len(now if per_edge else set(now.values()))


def test_without_the_edges_of_a_node_a_pair_that_stands_for_two_is_not_guessed(monkeypatch):
    monkeypatch.setattr(module, "LAID_OVER_MIN", 0)
    base = Adjacency.of_pairs(pairs([(0, 1), (0, 1), (1, 2)]), vertices=3)
    gone = pairs([(0, 1)])
    assert changed(base, gone, Pairs.none(), vertices=3) is None
    left = {1: (0, 1), 2: (1, 2)}
    after = changed(base, gone, Pairs.none(), vertices=3, edges_of=lambda _: pairs_of({1: (0, 1)}))
    assert after is not None
    check(after, left, range(-1, 4))


def test_a_small_adjacency_is_copied():
    base = Adjacency.of_pairs(pairs([(0, 1)]), vertices=2)
    after = changed(base, Pairs.none(), pairs([(1, 0)], 1), vertices=2)
    assert isinstance(after, Adjacency)
    assert after.keys.tolist() == [1, 1 << 32]


def test_a_version_costs_what_it_changed(tmp_path, monkeypatch):
    """Bytes are counted: twenty versions share the arrays of the first."""
    monkeypatch.setattr(module, "LAID_OVER_MIN", 0)
    count = 2_000
    made = Versions(tmp_path)
    table = made.append(None, edge_rows((f"e{i}", f"p{i % 500}", f"q{i}") for i in range(count)))
    topology = Topology()
    check_version(topology, table)
    root = topology.edges.nbytes
    assert root > 6 * count * 8
    for step in range(20):
        table = made.append(table, edge_rows([(f"n{step}", f"p{step}", f"q{step}")]))
        check_version(topology, table)
    # Six adjacencies of twenty versions, each with up to twenty nodes of a few edges.
    assert topology.edges.nbytes - root < 20 * 6 * 20 * 10 * 16
    assert topology.edges.nbytes < 2.5 * root
    assert topology.edges.builds == 6
    assert all(
        isinstance(adjacency, Overlay)
        for known in list(topology.edges._versions.values())[1:]
        for adjacency in known.made.values()
    )


def test_an_edge_that_goes_beside_another_reads_and_sorts_no_edges(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LAID_OVER_MIN", 0)
    made = Versions(tmp_path)
    rows = [(f"e{i}", f"p{i % 10}", f"q{i % 20}") for i in range(200)]
    table = made.append(None, edge_rows(rows))
    topology = Topology()
    check_version(topology, table)
    builds = topology.edges.builds
    after = made.remove(table, ["e3", "e5"])
    check_version(topology, after)
    assert topology.edges.builds == builds


def test_many_changes_are_folded_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LAID_OVER_MIN", 0)
    monkeypatch.setattr(edges_module, "SMALL_CHANGE_MIN", 10_000)
    made = Versions(tmp_path)
    table = made.append(None, edge_rows((f"e{i}", f"p{i % 20}", f"q{i}") for i in range(200)))
    topology = Topology()
    check_version(topology, table)
    kinds = []
    for step in range(4):
        new = ((f"n{step}-{i}", f"p{step}", f"q{i}") for i in range(6))
        table = made.append(table, edge_rows(new))
        check_version(topology, table)
        kinds.append(type(topology.edges.adjacency(table, "out", per_edge=True)))
    assert Adjacency in kinds
    assert topology.edges.builds == 6
