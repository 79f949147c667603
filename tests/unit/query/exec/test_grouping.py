"""Groups by integers, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.query.exec import aggregate
from omnigraph.query.exec.aggregate import distinct_count, group
from support.examples import examples

FAR = 2**61
codes = st.one_of(st.integers(-1, 3), st.sampled_from([-1, 0, 5000, 2**31, FAR, 2**62, 2**63 - 2]))
LIMITS = ((4, 1 << 20, 256), (4, 1 << 20, 0), (0, 0, 0), (1, 1, 2))


@st.composite
def keys_and_length(draw):
    length, width = draw(st.integers(0, 12)), draw(st.integers(0, 4))
    column = st.lists(codes, min_size=length, max_size=length)
    return [np.array(draw(column), np.int64) for _ in range(width)], length


@settings(max_examples=examples(70))
@given(keys_and_length(), st.sampled_from(LIMITS))
def test_rows_with_equal_keys_are_together(case, limits):
    keys, length = case
    # A least of -1 beside a greatest near 2^63 is more than 64 bits apart; codes never mix them.
    keys = [k if not len(k) or k.min() >= 0 else np.minimum(k, FAR) for k in keys]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregate, "DENSE", limits[0])
        patch.setattr(aggregate, "DENSE_MIN", limits[1])
        patch.setattr(aggregate, "FEW", limits[2])
        groups = group(keys, length)
        counted = distinct_count(keys, length)
    rows = list(zip(*(k.tolist() for k in keys), strict=True)) if keys else [()] * length
    firsts: dict[tuple, int] = {}
    for number, row in enumerate(rows):
        firsts.setdefault(row, number)
    assert groups.count == counted == len(firsts)
    assert sorted(groups.first.tolist()) == sorted(firsts.values())
    assert [rows[groups.first[g]] for g in groups.of_row.tolist()] == rows
    assert all(groups.of_row[f] == g for g, f in enumerate(groups.first.tolist()))


def test_many_keys_whose_product_does_not_fit():
    """Five columns of large numbers: combined codes would need more than 64 bits."""
    columns = [np.array([0, 2**40, 0, 2**40 + n], np.int64) for n in range(5)]
    groups = group(columns, 4)
    assert groups.of_row.tolist()[0] == groups.of_row.tolist()[2]
    assert groups.count == 3


def test_no_rows():
    none = np.empty(0, np.int64)
    assert group([none], 0).count == 0
    assert group([none, none], 0).count == 0
    assert group([], 0).count == 0
    assert group([], 3).count == 1
    assert distinct_count([none], 0) == 0
