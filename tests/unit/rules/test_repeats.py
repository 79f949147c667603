"""Repeats are found exactly, whatever the hash does."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.rules import repeats
from omnigraph.rules.repeats import find_repeats
from support.examples import examples

TEXTS = st.one_of(
    st.none(),
    st.text("ab", max_size=3),
    st.text("aé\x00", max_size=40),
    st.builds(lambda n, tail: "x" * n + tail, st.integers(0, 70), st.sampled_from(["", "a", "b"])),
)


@pytest.fixture(params=["by value", "by hash"])
def exact_rows_max(request, monkeypatch):
    """Both ways through the search, on inputs of any size."""
    monkeypatch.setattr(repeats, "_EXACT_ROWS_MAX", 10_000 if request.param == "by value" else 0)
    monkeypatch.setattr(repeats, "BLOCK_ROWS", 3)


def expected(*columns):
    groups = defaultdict(list)
    for row, values in enumerate(zip(*columns, strict=True)):
        if None not in values:
            groups[values].append(row)
    later = sorted((r, g[0]) for g in groups.values() for r in g[1:])
    return later, sorted(r for g in groups.values() for r in g[:-1])


def found(*columns):
    result = find_repeats(columns)
    later, firsts = result.later()
    pairs = list(zip(later.tolist(), firsts.tolist(), strict=True))
    return pairs, result.superseded().tolist()


def chunked(values, kind, cuts):
    """The values in several chunks, each a slice of a longer array."""
    padded = pa.array([*values[:2], *values, *values[:1]], kind)
    body = padded.slice(len(values[:2]), len(values))
    edges = sorted({0, len(values), *(c % (len(values) + 1) for c in cuts)})
    chunks = [body.slice(a, b - a) for a, b in pairwise(edges)]
    return pa.chunked_array(chunks, kind)


@pytest.mark.usefixtures("exact_rows_max")
class TestBothWays:
    @settings(deadline=None, max_examples=examples(100))
    @given(
        st.lists(TEXTS, max_size=25),
        st.lists(st.integers(0, 30), max_size=3),
        st.sampled_from([pa.string(), pa.large_string()]),
    )
    def test_strings(self, values, cuts, kind):
        assert found(chunked(values, kind, cuts)) == expected(values)

    @settings(deadline=None, max_examples=examples(50))
    @given(
        st.lists(
            st.tuples(
                st.none() | st.sampled_from(["a", "b", "c"]),
                st.none() | st.sampled_from([0.0, -0.0, 1.5]),
                st.none() | st.booleans(),
            ),
            max_size=25,
        ),
        st.lists(st.integers(0, 30), max_size=3),
    )
    def test_tuples(self, rows, cuts):
        columns = [[r[i] for r in rows] for i in range(3)]
        kinds = (pa.string(), pa.float64(), pa.bool_())
        arrays = [chunked(c, k, cuts) for c, k in zip(columns, kinds, strict=True)]
        assert found(*arrays) == expected(*columns)

    @pytest.mark.parametrize(
        "kind", [pa.int32(), pa.uint64(), pa.float32(), pa.date32(), pa.timestamp("ms", tz="UTC")]
    )
    def test_numbers(self, kind):
        column = pa.chunked_array([pa.array([1, None, 2, 1, 2, 1], kind)])
        assert found(column) == ([(3, 0), (4, 2), (5, 0)], [0, 2, 3])


@pytest.mark.parametrize("form", ["{}", "{:08d}", "{:040d}", "{}-" + "z" * 60, "a" * 20 + "{}"])
def test_many_distinct_strings_and_a_few_repeats(form):
    numbers = np.random.default_rng(3).permutation(20_000)
    values = [form.format(n) for n in numbers]
    assert found(pa.chunked_array([values])) == ([], [])
    values[17_000], values[4], values[19_999] = values[5], values[900], values[5]
    assert found(pa.chunked_array([values[:9_000], values[9_000:]])) == expected(values)


def test_a_hash_that_knows_nothing_changes_only_the_speed(monkeypatch):
    monkeypatch.setattr(repeats, "_hash_rows", lambda columns: np.zeros(len(columns[0]), np.uint64))
    values = [f"v{n % 9_999}" for n in range(10_000)]
    assert found(pa.chunked_array([values])) == ([(9_999, 0)], [0])


def test_one_value_everywhere():
    count = 10_000
    later, superseded = found(pa.chunked_array([["same"] * count]))
    assert later == [(row, 0) for row in range(1, count)]
    assert superseded == list(range(count - 1))


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12), st.integers(0, 5))
def test_what_is_certainly_not_more_often_is_not(values, times):
    column = pa.chunked_array(
        [pa.array(values[:4], pa.string()), pa.array(values[4:], pa.string())]
    )
    expected = max(Counter(values).values(), default=0) <= times
    assert repeats.none_more_often(column, times) == expected


def test_by_a_hash_that_knows_nothing_nothing_is_certain(monkeypatch):
    monkeypatch.setattr(repeats, "_hash_rows", lambda columns: np.zeros(len(columns[0]), np.uint64))
    assert not repeats.none_more_often(pa.chunked_array([["a", "b", "c"]]), 1)
    assert not repeats.none_more_often(pa.chunked_array([["a", "b", "c"]]), 2)
    assert repeats.none_more_often(pa.chunked_array([["a", "b", "c"]]), 3)
