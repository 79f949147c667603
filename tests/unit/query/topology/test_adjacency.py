"""Sorted pairs against sets of pairs: parallel edges, loops, removals, numbers beyond the table."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.query.topology import adjacency as module
from omnigraph.query.topology.adjacency import Adjacency, Pairs
from support.examples import examples

VERTICES = 6
ends = st.integers(0, VERTICES - 1)
edge_lists = st.lists(st.tuples(ends, ends), max_size=14)
origins = st.lists(st.integers(-1, VERTICES + 3), max_size=10)


def array(values) -> np.ndarray:
    return np.array(list(values), np.int64)


def pairs(edges, first_address: int = 0) -> Pairs:
    return Pairs(
        sources=array(a for a, _ in edges),
        targets=array(b for _, b in edges),
        addresses=array(range(first_address, first_address + len(edges))),
    )


def neighbours(adjacency: Adjacency, asked: np.ndarray) -> list[list[tuple[int, int | None]]]:
    """Per origin: targets, with addresses where there are any."""
    starts, counts = adjacency.ranges(asked)
    found = []
    for origin, start, n in zip(asked.tolist(), starts.tolist(), counts.tolist(), strict=True):
        places = range(start, start + n)
        addresses = adjacency.addresses_at(array(places))
        targets = adjacency.reached(array(places)).tolist()
        known = [None] * n if addresses is None else addresses.tolist()
        found.append(list(zip(targets, known, strict=True)))
        assert adjacency.span(start, start + n).tolist() == targets
        first, last = adjacency.range_of(origin)
        assert last - first == n
        assert n == 0 or first == start
    return found


def check(adjacency: Adjacency, edges: dict[int, tuple[int, int]], asked) -> None:
    """Agrees with the edges, by address."""
    asked = array(asked)
    per_edge = adjacency.addresses_at(array([])) is not None
    expected = []
    for origin in asked.tolist():
        own = sorted((b, address) for address, (a, b) in edges.items() if a == origin)
        expected.append(own if per_edge else sorted({(b, None) for b, _ in own}))
    found = neighbours(adjacency, asked)
    assert [sorted(f) for f in found] == expected
    assert [[t for t, _ in f] for f in found] == [[t for t, _ in e] for e in expected]
    there = set(edges.values())
    grid = [(a, b) for a in range(-1, VERTICES + 2) for b in range(-1, VERTICES + 2)]
    connected = adjacency.connected(array(a for a, _ in grid), array(b for _, b in grid))
    assert connected.tolist() == [pair in there for pair in grid]
    kept = list(edges.values() if per_edge else there)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PIECE_KEYS", 3)
        arriving = Counter(b for _, b in kept)
        counts = adjacency.arrivals.tolist()
        assert counts == [arriving[v] for v in range(len(counts))]
        assert all(b < len(counts) for _, b in kept)
        weights = np.arange(VERTICES + 1) * 3
        sums = adjacency.arrivals_from(weights).tolist()
        assert sums == [sum(3 * a for a, b in kept if b == v) for v in range(len(sums))]
        assert all(b < len(sums) for _, b in kept)


@settings(max_examples=examples(40))
@given(edge_lists, origins, st.booleans(), st.booleans())
def test_neighbours_are_those_of_the_edges(edges, asked, per_edge, with_pointers):
    make = Adjacency.of_edges if per_edge else Adjacency.of_pairs
    adjacency = make(pairs(edges), vertices=VERTICES if with_pointers else None)
    check(adjacency, dict(enumerate(edges)), asked)
    if not per_edge:
        assert adjacency.parallel == (len(set(edges)) < len(edges))


@settings(max_examples=examples(50))
@given(edge_lists, st.data(), edge_lists, st.integers(0, 3), st.booleans(), st.booleans())
def test_a_change_gives_what_making_it_anew_gives(
    edges, data, added, grown, per_edge, with_pointers
):
    """Or gives up, which it may only do for removals from pairs that hide parallel edges."""
    make = Adjacency.of_edges if per_edge else Adjacency.of_pairs
    base = make(pairs(edges), vertices=VERTICES if with_pointers else None)
    gone = sorted(data.draw(st.sets(st.sampled_from(range(len(edges)))))) if edges else []
    added = [(a, min(b + grown, VERTICES - 1 + grown)) for a, b in added]
    left = {i: e for i, e in enumerate(edges) if i not in gone}
    removed = Pairs(
        sources=array(edges[i][0] for i in gone),
        targets=array(edges[i][1] for i in gone),
        addresses=array(gone),
    )
    changed = base.changed(removed, pairs(added, len(edges)), vertices=VERTICES + grown)
    if changed is None:
        assert not per_edge
        assert gone
        assert len(set(edges)) < len(edges)
        return
    now = left | {len(edges) + i: e for i, e in enumerate(added)}
    check(changed, now, range(-1, VERTICES + 3))
    again = make(
        Pairs(
            sources=array(a for a, _ in now.values()),
            targets=array(b for _, b in now.values()),
            addresses=array(now),
        ),
        vertices=VERTICES + grown if with_pointers else None,
    )
    assert changed.keys.tolist() == again.keys.tolist()
    if with_pointers:
        assert changed.pointers.tolist() == again.pointers.tolist()
    # Once edges were folded the note of it may stay; it must never be missing.
    assert changed.parallel or not again.parallel


def test_a_chain_of_changes_never_loses_the_note_of_parallel_edges():
    """The second of two equal edges came by a change; then the first goes."""
    base = Adjacency.of_pairs(pairs([(0, 1)]), vertices=2)
    twice = base.changed(Pairs.none(), pairs([(0, 1)], 1), vertices=2)
    assert twice is not None
    assert twice.parallel
    assert twice.keys.tolist() == base.keys.tolist()
    assert twice.changed(pairs([(0, 1)]), Pairs.none(), vertices=2) is None


def test_the_largest_numbers_keep_origin_and_target_apart():
    low, high = (1 << 31) - 3, (1 << 31) - 2
    edges = [(high, 0), (low, high), (0, high), (high, high)]
    adjacency = Adjacency.of_pairs(pairs(edges))
    starts, counts = adjacency.ranges(array([0, low, high, 1]))
    assert counts.tolist() == [1, 1, 2, 0]
    assert adjacency.reached(starts[2] + array([0, 1])).tolist() == [0, high]
    assert adjacency.connected(array([high, 0]), array([high, 0])).tolist() == [True, False]
