"""Two frames side by side, and rows folded into one, against loops."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from exec_support import GUARD, frame, rows
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.clock import SystemClock
from omnigraph.errors import LimitError
from omnigraph.query.exec.join import compact, equal_rows, product
from omnigraph.query.exec.limits import Guard, Limits
from support.examples import examples

small = st.lists(st.integers(-1, 3), max_size=6)
values = st.lists(st.sampled_from(["a", "b", "", "é", None]), max_size=7)


@given(small, small)
def test_a_product_has_every_pair_once(left, right):
    made = product(frame(a=left), frame(b=right), GUARD)
    assert rows(made, "a", "b") == [(a, b) for a in left for b in right]


@settings(max_examples=examples(50))
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["x", "y", None])), max_size=7),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["x", "y", None])), max_size=7),
    st.integers(1, 2),
    st.booleans(),
)
def test_rows_meet_where_all_values_are_equal(left, right, width, coded):
    def columns(side):
        made = [
            pa.array([r[0] for r in side], pa.int64()),
            pa.array([r[1] for r in side], pa.string()),
        ]
        return [made[0], made[1].dictionary_encode() if coded else made[1]][2 - width :]

    on = list(zip(columns(left), columns(right), strict=True))
    made = equal_rows(frame(a=range(len(left))), frame(b=range(len(right))), on, GUARD)
    keys = [[r[2 - width :] for r in side] for side in (left, right)]
    expected = [
        (i, j)
        for i, one in enumerate(keys[0])
        for j, other in enumerate(keys[1])
        if one == other and None not in one
    ]
    assert sorted(rows(made, "a", "b")) == expected


def test_the_two_zeros_meet():
    on = [(pa.array([0.0, 1.0]), pa.array([-0.0]))]
    assert rows(equal_rows(frame(a=[7, 8]), frame(b=[9]), on, GUARD), "a", "b") == [(7, 9)]


def test_what_rows_stand_for_is_multiplied():
    made = product(frame(weights=[2, 3], a=[0, 1]), frame(weights=[5], b=[2]), GUARD)
    assert rows(made, "a", "b") == [(0, 2, 10), (1, 2, 15)]
    made = product(frame(a=[0, 1]), frame(weights=[5], b=[2]), GUARD)
    assert rows(made, "a", "b") == [(0, 2, 5), (1, 2, 5)]


def test_a_product_is_refused_before_it_is_made():
    narrow = Guard(Limits(memory_bytes=1 << 20), SystemClock())
    # Ten thousand million rows would not fit into any memory: an error must come first.
    large = frame(a=np.zeros(100_000, np.int64))
    with pytest.raises(LimitError) as caught:
        product(large, frame(b=np.zeros(100_000, np.int64)), narrow)
    assert caught.value.details["rows"] == 10**10
    ones = pa.array(np.ones(100_000, np.int64))
    with pytest.raises(LimitError):
        equal_rows(large, frame(b=np.zeros(100_000, np.int64)), [(ones, ones)], narrow)


@settings(max_examples=examples(50))
@given(
    st.lists(
        st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.integers(0, 1), st.integers(1, 3)),
        max_size=10,
    ),
    st.sampled_from([(), ("a",), ("a", "b")]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_folded_rows_keep_their_sums_and_tags(case, keep, counted, weighted, tagged):
    made = compact(
        frame(
            weights=[r[3] for r in case] if weighted else None,
            tags=[r[2] for r in case] if tagged else None,
            a=[r[0] for r in case],
            b=[r[1] for r in case],
        ),
        keep,
        counted=counted,
    )
    expected: Counter = Counter()
    for a, b, tag, weight in case:
        row = {"a": a, "b": b}
        key = (*(row[name] for name in keep), *([tag] if tagged else []))
        expected[key] += weight if weighted else 1
    tags = made.tags["#outer"].tolist() if tagged else None
    columns = [made.bindings[name].identity.tolist() for name in keep]
    found = list(zip(*columns, *([tags] if tagged else []), strict=True)) or [()] * made.length
    assert sorted(found) == sorted(expected)
    if counted:
        weights = [1] * made.length if made.weights is None else made.weights.tolist()
        assert dict(zip(found, weights, strict=True)) == dict(expected)
    else:
        assert made.weights is None or made.length == 0
