"""Counts beyond 64 bits are refused, everything below is exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import LimitError
from omnigraph.query.exec.frame import COUNT_MAX, summed, times
from support.examples import examples

numbers = st.one_of(st.integers(0, 9), st.integers(0, COUNT_MAX), st.sampled_from([2**31, 2**32]))
NEARLY = COUNT_MAX - COUNT_MAX // 2**45
"""Up to here a float can be trusted to see that a number is small enough."""


@settings(max_examples=examples(70))
@given(st.lists(st.tuples(numbers, numbers), max_size=6))
def test_products(rows):
    left, right = (np.array([r[i] for r in rows], np.int64) for i in (0, 1))
    exact = [a * b for a, b in rows]
    if max(exact, default=0) <= NEARLY:
        assert times(left, right).tolist() == exact
    elif max(exact) > COUNT_MAX:
        with pytest.raises(LimitError):
            times(left, right)


@settings(max_examples=examples(70))
@given(st.lists(st.tuples(st.integers(0, 2), numbers), max_size=8), st.sampled_from([1, 3, 5]))
def test_sums(rows, count):
    groups = np.array([g % count for g, _ in rows], np.int64)
    weights = np.array([w for _, w in rows], np.int64)
    exact = [sum(w for g, w in rows if g % count == n) for n in range(count)]
    if max(exact) <= NEARLY:
        assert summed(groups, weights, count).tolist() == exact
    elif max(exact) > COUNT_MAX:
        with pytest.raises(LimitError) as caught:
            summed(groups, weights, count)
        assert caught.value.details["limit"] == "count"


def test_without_weights_rows_are_counted():
    assert summed(np.array([0, 2, 2]), None, 4).tolist() == [1, 0, 2, 0]
    assert summed(np.empty(0, np.int64), None, 1).tolist() == [0]
