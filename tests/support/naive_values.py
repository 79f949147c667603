"""Values of the reference evaluator: null, comparison, order, aggregates.

    typed query + rows -> naive_match -> [naive_values] -> naive

Plain Python on single values. ``None`` is null, and as a truth value it is unknown. Python compares
an int with a float by their mathematical values, strings by code point, dates and aware instants by
time, which are the rules of the language; nothing is converted anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from omnigraph.query import typed

Truth = bool | None

# ---------------------------------------------------------------- three-valued logic


def negated(operand: Truth) -> Truth:
    """Unknown stays unknown."""
    return None if operand is None else not operand


def conjunction(operands: Iterable[Truth]) -> Truth:
    """False if one is false, else unknown if one is unknown."""
    seen = list(operands)
    if any(o is False for o in seen):
        return False
    return None if any(o is None for o in seen) else True


def disjunction(operands: Iterable[Truth]) -> Truth:
    """True if one is true, else unknown if one is unknown."""
    seen = list(operands)
    if any(o is True for o in seen):
        return True
    return None if any(o is None for o in seen) else False


# ---------------------------------------------------------------- tests on values


def compared(op: typed.CompareOp, left: Any, right: Any) -> Truth:
    """A comparison; unknown if a side is null."""
    if left is None or right is None:
        return None
    match op:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)


def list_contains(values: Sequence[Any] | None, item: Any) -> bool:
    """Whether an element equals the item; a null never does, on either side."""
    if values is None or item is None:
        return False
    return any(v is not None and v == item for v in values)


def in_list(item: Any, values: Sequence[Any] | None) -> Truth:
    """``item in values``: unknown if the answer depends on what a null stands for."""
    if item is None or values is None:
        return None
    if list_contains(values, item):
        return True
    return None if any(v is None for v in values) else False


def text_test(kind: str, text: str | None, part: str | None) -> bool:
    """``contains`` or ``starts_with`` on strings; false if a side is null."""
    if text is None or part is None:
        return False
    return part in text if kind == "contains" else text.startswith(part)


# ---------------------------------------------------------------- order and equality


class SortKey:
    """A value in the total order: null before everything, lists element by element.

    Objects compare by their ``@id``; two objects in one column with the same id are the same.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: SortKey) -> bool:
        return _before(self.value, other.value)


def _before(left: Any, right: Any) -> bool:
    if left is None or right is None:
        return left is None and right is not None
    if isinstance(left, Mapping):
        return left["@id"] < right["@id"]
    if isinstance(left, (list, tuple)):
        for mine, its in zip(left, right, strict=False):
            if _before(mine, its):
                return True
            if _before(its, mine):
                return False
        return len(left) < len(right)
    return bool(left < right)


def frozen(value: Any) -> Any:
    """The value as something hashable that differs where the type differs: 1, 1.0 and True."""
    if isinstance(value, Mapping):
        return ("object", tuple((k, frozen(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return ("list", tuple(frozen(v) for v in value))
    return (type(value).__name__, value)


# ---------------------------------------------------------------- aggregates


def aggregated(function: typed.AggregateFunction, values: Iterable[Any], distinct: bool) -> Any:
    """One aggregate over a group; nulls do not take part."""
    present = [v for v in values if v is not None]
    if distinct:
        present = list({frozen(v): v for v in present}.values())
    if function == "count":
        return len(present)
    if not present:
        return None
    match function:
        case "sum":
            return float(_exact_sum(present))
        case "avg":
            return float(_exact_sum(present) / len(present))
        case "min":
            return min(present)
        case "max":
            return max(present)


def _exact_sum(numbers: Iterable[int | float]) -> Fraction:
    return sum((Fraction(n) for n in numbers), Fraction(0))
