"""Traversal against a plain breadth-first search, over whole adjacency and over lookups."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from exec_support import GUARD, Edges, array, frame, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.clock import SystemClock
from omnigraph.errors import LimitError
from omnigraph.query.exec import expand as module
from omnigraph.query.exec.expand import arrivals, close, degrees, expand
from omnigraph.query.exec.limits import Guard, Limits
from omnigraph.query.plan.nodes import Close, Degrees, Expand, Outer
from support.examples import examples

ends = st.integers(0, 7)
edge_lists = st.lists(st.tuples(ends, ends), max_size=16)
sides = st.sampled_from(["out", "in", "both"])
starts = st.lists(st.integers(-1, 7), max_size=6)
bounds = st.tuples(st.integers(1, 4), st.integers(0, 5)).map(lambda b: (b[0], b[0] + b[1]))
LEAF = Outer(variables=("a",))


def hop(low=1, high=1, *, side="out", edge_variable=None, keep=None) -> Expand:
    return Expand(
        input=LEAF, origin="a", target="b", target_type="T", edge="E", direction=side,
        low=low, high=high, edge_variable=edge_variable, keep=keep,
    )  # fmt: skip


def neighbours(edges, side) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {v: set() for v in range(8)}
    for a, b in edges:
        if side in ("out", "both"):
            found[a].add(b)
        if side in ("in", "both"):
            found[b].add(a)
    return found


def reach(edges, side, start, low, high) -> set[int]:
    """Everything whose shortest distance is between the bounds; a loop on the start is one."""
    if start < 0:
        return set()
    near = neighbours(edges, side)
    visited, frontier, found = {start}, {start}, set()
    if low == 1 and start in near[start]:
        found.add(start)
    for distance in range(1, high + 1):
        frontier = {n for v in frontier for n in near[v]} - visited
        visited |= frontier
        if distance >= low:
            found |= frontier
    return found


@settings(max_examples=examples(80))
@given(edge_lists, starts, sides, bounds, st.booleans())
def test_hops_reach_what_a_search_reaches(edges, origins, side, hops, whole):
    low, high = hops
    made = expand(frame(a=origins), hop(low, high, side=side), Edges(edges, whole=whole), GUARD)
    expected = [(a, b) for a in origins for b in reach(edges, side, a, low, high)]
    assert Counter(rows(made, "a", "b")) == Counter(expected)
    # Where only the end is needed there may be a shorter way.
    step = hop(low, high, side=side, keep=())
    for start in (frame(a=origins), frame(weights=[2] * len(origins), a=origins)):
        ends_only = Counter(rows(expand(start, step, Edges(edges, whole=whole), GUARD), "b"))
        weight = () if start.weights is None else (2,)
        assert ends_only == Counter((b, *weight) for _, b in expected)


@settings(max_examples=examples(50))
@given(edge_lists, starts, starts, sides, bounds, st.booleans())
def test_connected_rows_are_those_that_a_search_connects(edges, left, right, side, hops, whole):
    low, high = hops
    step = Close(
        input=LEAF, origin="a", target="b", edge="E", direction=side, low=low, high=high
    )  # fmt: skip
    pairs = list(zip(left, right, strict=False))
    start = frame(a=[p[0] for p in pairs], b=[p[1] for p in pairs])
    made = close(start, step, Edges(edges, whole=whole), GUARD)
    assert rows(made, "a", "b") == [
        (a, b) for a, b in pairs if b in reach(edges, side, a, low, high)
    ]


def incident(edges, side, start):
    """Address and other end of each edge; a loop once."""
    found = []
    for address, (a, b) in enumerate(edges):
        if side in ("out", "both") and a == start:
            found.append((address, b))
        if side in ("in", "both") and b == start and not (side == "both" and a == b):
            found.append((address, a))
    return found


@settings(max_examples=examples(40))
@given(edge_lists, starts, sides, st.booleans())
def test_a_row_per_edge(edges, origins, side, whole):
    table = Edges(edges, whole=whole)
    made = expand(frame(a=origins), hop(side=side, edge_variable="e"), table, GUARD)
    found = Counter(rows(made, "a", "e", "b"))
    assert found == Counter((a, e, b) for a in origins for e, b in incident(edges, side, a))
    counted = degrees(
        frame(a=origins),
        Degrees(input=LEAF, origin="a", edge="E", direction=side, per_edge=True),
        table,
    )
    per_row = [(a, len(incident(edges, side, a))) for a in origins]
    assert rows(counted, "a") == [row for row in per_row if row[1]]


@settings(max_examples=examples(40))
@given(
    edge_lists,
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 3)), max_size=9),
    sides,
    st.booleans(),
    st.sampled_from([0, 1, 4, 1000]),
    st.sampled_from([1 << 53, 0]),
)
def test_arrivals_are_the_rows_that_would_arrive(edges, origins, side, weighted, dense, exact):
    weights = [w for _, w in origins] if weighted else None
    start = frame(weights=weights, a=[a for a, _ in origins])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE_PART", dense)
        patch.setattr(module, "EXACT", exact)
        made = arrivals(start, hop(side=side), Edges(edges))
    expected: Counter = Counter()
    for a, weight in origins:
        for b in neighbours(edges, side)[a]:
            expected[b] += weight if weighted else 1
    if made is None:
        everyone = not weighted and sorted(a for a, _ in origins) == list(range(8))
        assert len(origins) * dense < 8 or (exact == 0 and not everyone)
    else:
        assert dict(rows(made, "b")) == dict(expected)


@given(edge_lists, starts)
def test_neighbours_are_counted(edges, origins):
    step = Degrees(input=LEAF, origin="a", edge="E", direction="out", per_edge=False)
    made = degrees(frame(weights=[3] * len(origins), a=origins), step, Edges(edges))
    near = neighbours(edges, "out") | {-1: set()}
    assert rows(made, "a") == [(a, 3 * len(near[a])) for a in origins if near[a]]


def test_edges_between_types_never_chain():
    edges = Edges([(0, 1), (1, 2)], same_type=False)
    assert rows(expand(frame(a=[0]), hop(1, 3), edges, GUARD), "b") == [(1,)]
    assert rows(expand(frame(a=[0]), hop(2, 3), edges, GUARD), "b") == []


def test_equal_origins_are_searched_once():
    edges = Edges([(0, 1), (1, 2)], whole=False)
    made = expand(frame(a=[0, 0, 0]), hop(1, 2), edges, GUARD)
    assert rows(made, "a", "b") == [(0, 1), (0, 2)] * 3
    assert edges.asked == [[0], [1]]


def test_a_search_stops_when_nothing_is_left():
    edges = Edges([(0, 1), (1, 0)])
    made = expand(frame(a=[0]), hop(1, 10**9), edges, GUARD)
    assert rows(made, "b") == [(1,)]
    assert len(edges.asked) == 2


def test_only_what_is_kept_is_carried_on():
    made = expand(frame(a=[0], z=[5]), hop(keep=()), Edges([(0, 1)]), GUARD)
    assert set(made.bindings) == {"b"}
    made = expand(frame(a=[0], z=[5]), hop(keep=("z",)), Edges([(0, 1)]), GUARD)
    assert rows(made, "z", "b") == [(5, 1)]


@pytest.mark.parametrize("high", [1, 4])
def test_a_runaway_is_refused_before_its_rows_are_made(high):
    star = Edges([(0, i) for i in range(1, 8)])
    narrow = Guard(Limits(memory_bytes=400), SystemClock())
    with pytest.raises(LimitError) as caught:
        expand(frame(a=[0, 0, 0]), hop(1, high), star, narrow)
    assert caught.value.details["step"] == "the traversal of E from $a"
    assert caught.value.details["rows"] >= 7


def test_visited_states_are_a_set():
    visited = module._Visited(array([5]))
    added = {5}
    for step in range(1, 200):
        some = array(sorted({(step * 7) % 101, (step * 3) % 101, step % 5}))
        fresh = visited.fresh(some)
        assert set(fresh.tolist()) == set(some.tolist()) - added
        visited.add(fresh)
        added |= set(fresh.tolist())
    lengths = [len(run) for run in visited._runs]
    assert sum(lengths) == len(added)
    assert all(a >= 2 * b for a, b in pairwise(lengths))
