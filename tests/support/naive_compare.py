"""Whether a result agrees with the reference, and where not.

engine's rows + NaiveResult -> [naive_compare] -> None, or the first difference in words
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support.naive_values import frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveResult:
    """The rows of a read."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    ordered: bool
    """False: the rows are a multiset, their order means nothing."""
    tolerances: tuple[float, ...]
    """Per column, by how much (relatively) a float may differ; 0 is exactly."""
    fragile: bool = False
    """Rounding of scores decides the order of some rows: no other result is to be judged by it."""


def same(
    result_rows: Sequence[Mapping[str, Any] | Sequence[Any]], expected: NaiveResult
) -> str | None:
    """The first difference, or None.

    Rows are dicts by column name, or tuples. Values must agree in type too (1, 1.0, True differ);
    floats of sums, averages and scores may differ by the column's tolerance. A fragile reference
    agrees with everything.
    """
    if expected.fragile:
        return None
    rows: list[tuple[Any, ...]] = []
    for row in result_rows:
        if isinstance(row, Mapping):
            if tuple(row) != expected.columns:
                return f"columns are {tuple(row)}, expected {expected.columns}"
            rows.append(tuple(row.values()))
        else:
            rows.append(tuple(row))
    if expected.ordered:
        return _same_sequence(rows, expected)
    return _same_multiset(rows, expected)


def _same_sequence(rows: Sequence[tuple[Any, ...]], expected: NaiveResult) -> str | None:
    for number, (got, wanted) in enumerate(zip(rows, expected.rows, strict=False), start=1):
        if not _same_row(got, wanted, expected.tolerances):
            return f"row {number} is {got}, expected {wanted}"
    if len(rows) != len(expected.rows):
        number = min(len(rows), len(expected.rows))
        more, what = (rows, "unexpected") if len(rows) > number else (expected.rows, "missing")
        return (
            f"{len(rows)} rows, expected {len(expected.rows)}; "
            f"row {number + 1} is {what}: {more[number]}"
        )
    return None


def _same_multiset(rows: Sequence[tuple[Any, ...]], expected: NaiveResult) -> str | None:
    exact = [i for i, t in enumerate(expected.tolerances) if t == 0.0]
    left: dict[Any, list[tuple[Any, ...]]] = {}
    for wanted in expected.rows:
        left.setdefault(_key(wanted, exact), []).append(wanted)
    for number, got in enumerate(rows, start=1):
        if len(got) != len(expected.columns):
            return f"row {number} has {len(got)} values, expected {len(expected.columns)}"
        alike = left.get(_key(got, exact), [])
        found = next((w for w in alike if _same_row(got, w, expected.tolerances)), None)
        if found is None:
            return f"row {number} is unexpected, or there too often: {got}"
        alike.remove(found)
    missing = [w for alike in left.values() for w in alike]
    if missing:
        return f"{len(rows)} rows, expected {len(expected.rows)}; missing: {missing[0]}"
    return None


def _key(row: Sequence[Any], positions: Sequence[int]) -> Any:
    return tuple(frozen(row[i]) for i in positions)


def _same_row(got: Sequence[Any], wanted: Sequence[Any], tolerances: Sequence[float]) -> bool:
    return len(got) == len(wanted) and all(
        _same_value(g, w, t) for g, w, t in zip(got, wanted, tolerances, strict=True)
    )


def _same_value(got: Any, wanted: Any, tolerance: float) -> bool:
    if tolerance and isinstance(got, float) and isinstance(wanted, float):
        return math.isclose(got, wanted, rel_tol=tolerance, abs_tol=tolerance)
    return bool(frozen(got) == frozen(wanted))
