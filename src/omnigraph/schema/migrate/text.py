"""A plan as a person reads it: one line a step, then what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from omnigraph.schema.catalog import Backfill
from omnigraph.schema.migrate.constraints import ConstraintRule
from omnigraph.schema.migrate.facts import Fact, Thing
from omnigraph.schema.migrate.steps import DropMode, Effect, Step, StepKind

if TYPE_CHECKING:
    from omnigraph.schema.migrate.plan import SchemaPlan


_MARKS = {True: "-", False: "~"}


def plan_text(plan: SchemaPlan) -> str:
    """The whole plan."""
    return "\n".join(plan_lines(plan))


def plan_lines(plan: SchemaPlan) -> Iterator[str]:
    """The steps, a line each, and a last line with their number."""
    for step in plan.steps:
        yield f"{mark(step)} {headline(step)}"
        yield from (f"    {line}" for line in remarks(step))
    yield total(plan)


def total(plan: SchemaPlan) -> str:
    """How many steps there are, and how many need attention."""
    if not plan.steps:
        return "nothing to change"
    count = len(plan.steps)
    parts = [f"{count} step{'s' if count > 1 else ''}"]
    if plan.destructive:
        parts.append(f"{len(plan.destructive)} destructive")
    if plan.unsupported:
        parts.append(f"{len(plan.unsupported)} not possible")
    return ", ".join(parts)


def mark(step: Step) -> str:
    """``+`` for new, ``-`` for gone, ``~`` for changed, ``!`` for what cannot be done."""
    if not step.supported:
        return "!"
    if step.kind in (StepKind.ADD_TYPE, StepKind.ADD_PROPERTY, StepKind.ADD_CONSTRAINT):
        return "+"
    return _MARKS[step.kind in _REMOVALS]


_REMOVALS = (StepKind.DROP_TYPE, StepKind.DROP_PROPERTY, StepKind.DROP_CONSTRAINT)
_WORDS = {
    StepKind.ADD_TYPE: "add",
    StepKind.RENAME_TYPE: "rename",
    StepKind.DROP_TYPE: "drop",
    StepKind.ADD_PROPERTY: "add",
    StepKind.RENAME_PROPERTY: "rename",
    StepKind.DROP_PROPERTY: "drop",
    StepKind.CHANGE_PROPERTY_TYPE: "type of",
    StepKind.CHANGE_NULLABILITY: "nullability of",
    StepKind.EXTEND_ENUM: "extend",
    StepKind.NARROW_ENUM: "narrow",
    StepKind.ADD_CONSTRAINT: "rule of",
    StepKind.DROP_CONSTRAINT: "rule of",
    StepKind.CHANGE_CARDINALITY: "cardinality of",
    StepKind.CHANGE_ENDPOINTS: "endpoints of",
    StepKind.CHANGE_INTERFACES: "interfaces of",
    StepKind.CHANGE_EMBED: "embedding of",
    StepKind.UPDATE_TYPE_METADATA: "texts of",
    StepKind.UPDATE_PROPERTY_METADATA: "texts of",
}


def headline(step: Step) -> str:
    """The change in a few words."""
    if step.kind is StepKind.UPDATE_SOURCE:
        return "comments, order or layout of the schema text"
    kind = step.change or step.kind
    line = f"{_WORDS[kind]} {step.entity_kind} {step.subject}"
    match kind:
        case StepKind.RENAME_TYPE | StepKind.RENAME_PROPERTY:
            return f"{line} (was {step.before})"
        case StepKind.ADD_TYPE | StepKind.ADD_PROPERTY:
            return f"{line}: {step.after}" if step.after else line
        case StepKind.DROP_PROPERTY:
            return f"{line}: {step.before}"
        case StepKind.ADD_CONSTRAINT if step.before is None:
            return f"{line}: {step.after}"
        case StepKind.DROP_CONSTRAINT if step.after is None:
            return f"{line}: no more {step.before}"
        case _ if step.before or step.after:
            return f"{line}: {step.before or 'none'} → {step.after or 'none'}"
        case _:
            return line


def remarks(step: Step) -> Iterator[str]:
    """What a step does to data, and what is to be known about it."""
    code = f" [{step.code}]" if step.code else ""
    if step.reason is not None:
        yield f"NOT POSSIBLE{code}: {step.reason}"
        return
    if step.destructive:
        what = "the property's values"
        if step.kind is StepKind.DROP_TYPE:
            what = "all its rows" if step.rows is None else _rows(step.rows)
        yield f"DESTRUCTIVE{code}: hides {what}; {_AFTERWARDS[step.mode or DropMode.SOFT]}"
        return
    if step.backfill is not None:
        yield f"existing rows get {step.backfill}"
    elif step.effect is Effect.WRITE:
        yield "every value is rewritten"
    if step.checked:
        yield f"existing rows are checked first{code}"


_AFTERWARDS = {
    DropMode.SOFT: "the past keeps them until cleanup",
    DropMode.HARD: "deleted at once where nothing else needs them",
}


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


# -- schema words ----------------------------------------------------------------------------------
# Facts of schemas in words, for what two sides say differently.


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
