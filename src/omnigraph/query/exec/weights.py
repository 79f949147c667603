"""How many rows a row stands for.

Paths are counted, not walked: degrees are multiplied, and a small graph has more paths than 64 bits
can count. Such a count is an error, never a wrong number.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from omnigraph.errors import LimitError

Weights = npt.NDArray[np.int64]
COUNT_MAX = (1 << 63) - 1
TOO_MANY = float(COUNT_MAX) * (1 - 2.0**-50)
"""What a float of a product or a sum must stay below, its rounding included."""
EXACT = 1 << 53
"""Below this a float holds every whole number."""


def times(weights: Weights, counts: Weights) -> Weights:
    """Row by row, one number times the other."""
    # The bound of all rows is cheap and nearly always enough.
    if len(weights) and int(weights.max()) * int(counts.max()) > COUNT_MAX:
        _check((weights.astype(np.float64) * counts).max())
    return weights * counts


def summed(groups: npt.NDArray[np.int64], weights: Weights | None, count: int) -> Weights:
    """What the rows of each group stand for together."""
    if weights is None:
        return np.bincount(groups, minlength=count)
    if not len(weights):
        return np.zeros(count, np.int64)
    if count == 1:
        return np.array([total(weights)], np.int64)
    if int(weights.max()) * len(weights) > COUNT_MAX:
        _check(np.bincount(groups, weights=weights).max())
    elif float(weights.sum()) < EXACT:
        return np.bincount(groups, weights=weights, minlength=count).astype(np.int64)
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, weights)
    return sums


def total(weights: Weights) -> int:
    """What all rows stand for."""
    if not len(weights) or int(weights.max()) * len(weights) <= COUNT_MAX:
        return int(weights.sum())
    exact = sum(weights.tolist())
    if exact > COUNT_MAX:
        raise _too_many()
    return exact


def _check(most: float) -> None:
    if most >= TOO_MANY:
        raise _too_many()


def _too_many() -> LimitError:
    return LimitError(
        f"the query counts more than {COUNT_MAX:,} rows",
        hint="bound the pattern: fewer traversals, a filter or a key",
        details={"limit": "count", "count_max": COUNT_MAX},
    )
