"""Total order, against Python's sort: nulls, extremes, texts, ties, limits."""

from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.query.exec import order
from omnigraph.query.exec.order import order_rows, sortable
from support.examples import examples

VALUES = {
    pa.int64(): [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    pa.int32(): [-(2**31), -1, 0, 2**31 - 1],
    pa.uint64(): [0, 1, 2**63, 2**64 - 1],
    pa.uint32(): [0, 2**32 - 1],
    pa.float64(): [-1.5, -0.0, 0.0, 5e-324, 1e308, float("inf"), float("-inf")],
    pa.float32(): [-1.5, -0.0, 0.0, 0.5],
    pa.string(): ["", "a", "B", "b", "é", "z", "\uffff", "\U0001f600", "a\u0000b"],
    pa.bool_(): [False, True],
    pa.date32(): [date(1969, 12, 31), date(2026, 1, 1)],
    pa.timestamp("ms", "UTC"): [
        datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
    ],
    pa.list_(pa.int64()): [[], [1], [1, 2], [2], [None], [1, None], [-(2**63)]],
    pa.list_(pa.string()): [[], ["a"], ["a", "b"], ["B"], [None]],
}
KINDS = sorted(VALUES, key=str)


def python_key(value):
    """Null before everything; texts by code points; lists by elements."""
    if isinstance(value, list):
        return (1, [python_key(v) for v in value])
    return (0, 0) if value is None else (1, value)


def sorted_rows(values, descending):
    return sorted(range(len(values)), key=lambda i: python_key(values[i]), reverse=descending)


def same_order(values, index, expected):
    """Equal values may stand in either order here: only the values must agree."""
    keys = [python_key(v) for v in values]
    return [keys[i] for i in index] == [keys[i] for i in expected]


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(KINDS))
    values = draw(st.lists(st.sampled_from(VALUES[kind]) | st.none(), max_size=12))
    if draw(st.booleans()):
        values = [v for v in values if v is not None]
    column = pa.array(values, kind)
    if pa.types.is_string(kind) and draw(st.booleans()):
        column = column.dictionary_encode()
    return values, column


@settings(max_examples=examples(80))
@given(columns(), st.booleans())
def test_keys_sort_as_values_do(case, descending):
    values, column = case
    key = sortable(column, descending=descending)
    index = np.argsort(key, kind="stable")
    assert same_order(values, index, sorted_rows(values, descending))
    # Equal values must have equal keys, or the next key never decides.
    for i, one in enumerate(values):
        for j, other in enumerate(values):
            assert (key[i] == key[j]) == (python_key(one) == python_key(other))


def test_null_is_smallest_in_both_directions():
    column = pa.array([2, None, 1], pa.int64())
    assert np.argsort(sortable(column, descending=False)).tolist() == [1, 2, 0]
    assert np.argsort(sortable(column, descending=True)).tolist() == [0, 2, 1]


def test_the_least_integer_has_no_positive_twin():
    column = pa.array([-(2**63), 2**63 - 1, 0], pa.int64())
    assert np.argsort(sortable(column, descending=True)).tolist() == [1, 2, 0]


def test_the_two_zeros_are_one_number():
    for nulls in ([], [None]):
        column = pa.array([0.0, -0.0, *nulls], pa.float64())
        for descending in (False, True):
            key = sortable(column, descending=descending)
            assert key[0] == key[1]


def test_texts_by_code_point_not_by_utf16():
    """U+FFFF is less than U+1F600, though its UTF-16 code units are greater."""
    column = pa.array(["\U0001f600", "\uffff", "Z", "a"], pa.string())
    assert np.argsort(sortable(column, descending=False)).tolist() == [2, 3, 1, 0]


def test_objects_by_their_id():
    rows = pa.array([{"@id": "b", "n": 1}, None, {"@id": "a", "n": 2}])
    assert np.argsort(sortable(rows, descending=False)).tolist() == [1, 2, 0]


# ---------------------------------------------------------------- several keys, ties, limits

rows_strategy = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), max_size=14
)


@settings(max_examples=examples(80))
@given(
    rows_strategy,
    st.integers(0, 2),
    st.none() | st.integers(0, 16) | st.just(2**64),
    st.sampled_from([1, 4]),
)
def test_order_is_total_and_cut_after_it(rows, user_keys, limit, cut):
    columns = [np.array([r[i] for r in rows], np.int64) for i in range(3)]
    # Ids as ties: unique, so that the order is one.
    ids = np.array([(i * 7) % 17 for i in range(len(rows))], np.int64)
    ties = [lambda index: columns[2][index], lambda index: ids[index]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "CUT", cut)
        found = order_rows(columns[:user_keys], ties, len(rows), limit)
    expected = sorted(range(len(rows)), key=lambda i: (*rows[i][:user_keys], rows[i][2], ids[i]))
    assert found.tolist() == expected[: len(rows) if limit is None else limit]


def test_ties_are_looked_up_only_where_rows_tie():
    asked: list[list[int]] = []

    def tie(index):
        asked.append(index.tolist())
        return -index

    key = np.array([5, 1, 3, 1])
    assert order_rows([np.array([5, 1, 3, 2])], [tie], 4, None).tolist() == [1, 3, 2, 0]
    assert asked == []
    assert order_rows([key], [tie], 4, 1).tolist() == [3]
    assert asked == [[1, 3]], "ids of the rows that may be first, and no others"
