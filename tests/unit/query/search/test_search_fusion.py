"""Reciprocal rank fusion against its formula."""

from __future__ import annotations

import numpy as np
import search_reference as reference
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query.exec.rank import rrf

arm = st.lists(st.integers(0, 15), unique=True)


@given(st.lists(arm, max_size=3), st.integers(1, 100))
def test_scores(arms: list[list[int]], k: int) -> None:
    rows, scores = rrf([np.array(a, np.int64) for a in arms], k)
    expected = reference.rrf(arms, k)
    assert rows.tolist() == sorted(expected)
    assert scores.tolist() == [expected[row] for row in sorted(expected)]
    assert (rows.dtype, scores.dtype) == (np.int64, np.float64)


def test_a_row_of_both_arms_beats_the_best_of_one() -> None:
    rows, scores = rrf([np.array([7, 3]), np.array([9, 3])], 60)
    assert rows.tolist() == [3, 7, 9]
    assert scores.tolist() == [2 / 62, 1 / 61, 1 / 61]
    assert scores.argmax() == 0


def test_a_very_large_k_only_flattens() -> None:
    _, scores = rrf([np.array([1, 2])], 2**63 - 1)
    assert (scores > 0).all()
