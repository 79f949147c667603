"""Reciprocal rank fusion: one ranking out of several.

    rows of BM25, rows of nearest, each best first ─▶ [rrf] ─▶ rows and fused scores

Only ranks count, never scores, so a ranking must be a total order before it comes here: the caller
has sorted each arm by its score and broken ties by id.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


def rrf(arms: Sequence[npt.NDArray[np.integer]], k: int) -> tuple[Rows, Scores]:
    """All rows of the arms, ascending, and their scores; more is better.

    An arm holds distinct rows, best first. A row gets `1 / (k + rank)` from each arm, where ranks
    start at 1, and nothing from an arm that does not have it; arms are added up in their order.
    """
    rows = np.unique(np.concatenate([np.empty(0, np.int64), *arms])).astype(np.int64)
    scores = np.zeros(len(rows), np.float64)
    for arm in arms:
        scores[np.searchsorted(rows, arm)] += 1.0 / (k + np.arange(1.0, len(arm) + 1))
    return rows, scores
