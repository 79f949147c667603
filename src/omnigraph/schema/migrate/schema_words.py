"""Facts of schemas in words, for what two sides say differently."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from omnigraph.schema.catalog import Backfill
from omnigraph.schema.migrate.constraints import ConstraintRule
from omnigraph.schema.migrate.facts import Fact, Thing

MISSING = object()
"""In the place of a fact that is not there."""


class Unknown:
    """In the place of a fact that several common ancestors contradict each other about: it equals
    nothing, not even itself, so that both sides count as changed."""

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True


UNKNOWN = Unknown()

FACT_WORDS = {
    "name": "the name",
    "type": "the type",
    "values": "the values",
    "nullable": "the nullability",
    "key": "the key",
    "source": "the source",
    "target": "the target",
    "cardinality": "the cardinality",
    "embed": "the embedding",
    "backfill": "the backfill",
    "description": "the description",
    "instruction": "the instruction",
    "annotations": "the annotations",
}


def fact_text(fact: Fact, value: Any, find: Callable[[int], Thing]) -> str:
    """A fact as the language writes it, as far as it writes it."""
    what, which = fact
    if value is MISSING:
        return "nothing"
    if value is UNKNOWN:
        return "not known"
    if isinstance(which, ConstraintRule):
        return f"@{which.word}"
    if what in ("source", "target") and isinstance(value, int):
        return find(value).name
    if what == "key":
        return ", ".join(find(m).name if isinstance(m, int) else m for m in value)
    if what == "cardinality":
        return f"@card({value.low}..{'' if value.high is None else value.high})"
    if isinstance(value, Backfill):
        return value.text
    if isinstance(value, frozenset):
        names: Iterable[str] = sorted(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
        return f"enum({', '.join(names)})"
    return f"'{value}'" if isinstance(value, str) else str(value)
