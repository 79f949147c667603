"""The steps of a plan, as values: what changes, what that does to data, whether it can be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from omnigraph.lang.source import ExplainedCode
from omnigraph.schema.catalog import Backfill, GraphType, InterfaceType, Property
from omnigraph.schema.migrate.facts import ConstraintRule, Fact, Thing

if TYPE_CHECKING:
    from omnigraph.schema.migrate.plan import SchemaPlan


class StepKind(StrEnum):
    """What a step changes; the ``kind`` of its JSON."""

    ADD_TYPE = "add_type"
    RENAME_TYPE = "rename_type"
    DROP_TYPE = "drop_type"
    ADD_PROPERTY = "add_property"
    RENAME_PROPERTY = "rename_property"
    DROP_PROPERTY = "drop_property"
    CHANGE_PROPERTY_TYPE = "change_property_type"
    CHANGE_NULLABILITY = "change_nullability"
    EXTEND_ENUM = "extend_enum"
    NARROW_ENUM = "narrow_enum"
    ADD_CONSTRAINT = "add_constraint"
    DROP_CONSTRAINT = "drop_constraint"
    CHANGE_CARDINALITY = "change_cardinality"
    CHANGE_ENDPOINTS = "change_endpoints"
    CHANGE_INTERFACES = "change_interfaces"
    CHANGE_EMBED = "change_embed"
    UPDATE_TYPE_METADATA = "update_type_metadata"
    UPDATE_PROPERTY_METADATA = "update_property_metadata"
    UPDATE_SOURCE = "update_source"
    UNSUPPORTED_CHANGE = "unsupported_change"


class Effect(StrEnum):
    """What a step does to stored data."""

    NONE = "none"
    """Only the schema changes."""
    RESHAPE = "reshape"
    """A column is renamed, left out or added empty; no value is written."""
    WRITE = "write"
    """A column is written for every row."""
    HIDE = "hide"
    """Rows or values are no longer shown. They stay in the past until cleanup."""


class DropMode(StrEnum):
    """What becomes of dropped data."""

    SOFT = "soft"
    """It stays readable in the past until cleanup."""
    HARD = "hard"
    """It is deleted right after the publish. Other branches and tags keep theirs."""


class LintCode(ExplainedCode):
    """Stable codes of risky steps: DS destroys data, MF may fail on data."""

    DROP_NODE = "OG-DS-102", "a node type is dropped with its rows"
    DROP_EDGE = "OG-DS-103", "an edge type is dropped with its rows"
    DROP_PROPERTY = "OG-DS-104", "a property is dropped with its values"
    DROP_VECTOR = "OG-DS-105", "a vector is dropped, which is expensive to make again"
    REQUIRED_PROPERTY = "OG-MF-103", "a required property is new: rows need a value for it"
    REQUIRED_NOW = "OG-MF-104", "a property may not be null any more: rows need a value for it"
    NARROWED_ENUM = "OG-MF-105", "an enum loses values, or a text becomes an enum: rows are checked"
    TYPE_CHANGED = "OG-MF-106", "a property has another type"
    NEW_RULE = "OG-MF-107", "a rule is new or stricter: rows are checked"
    ENDPOINTS = "OG-MF-108", "an edge runs between other types: rows are checked"
    KEY_CHANGED = "OG-MF-109", "a key changes, and with it every id"
    EMBED_CHANGED = "OG-MF-110", "a vector is the embedding of something else than before"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSubject:
    """What a step is about: a type, or one of its properties."""

    entity_kind: str
    """``interface``, ``node``, ``edge``, or ``schema`` for the text as a whole."""
    type_name: str
    """Under the desired schema; of what is dropped, under the accepted one."""
    type_id: int
    property_name: str | None = None
    property_id: int | None = None

    @staticmethod
    def named(owner: GraphType | InterfaceType, prop: Property | None = None) -> StepSubject:
        """A type, or a property of it."""
        return StepSubject(
            entity_kind=owner.kind if isinstance(owner, GraphType) else "interface",
            type_name=owner.name,
            type_id=owner.id,
            property_name=prop.name if prop is not None else None,
            property_id=prop.id if prop is not None else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change from the accepted schema to the desired one."""

    kind: StepKind
    of: StepSubject
    before: str | None = None
    """What it was, as the language writes it."""
    after: str | None = None
    effect: Effect = Effect.NONE
    checked: bool = False
    """Rows are looked at first; if one breaks the new rule, nothing changes."""
    code: LintCode | None = None
    mode: DropMode | None = None
    backfill: str | None = None
    rows: int | None = None
    """Of a drop: how many rows have something to lose, as far as known."""
    change: StepKind | None = None
    """Of an unsupported change: what it would be."""
    reason: str | None = None

    @property
    def entity_kind(self) -> str:
        return self.of.entity_kind

    @property
    def type_name(self) -> str:
        return self.of.type_name

    @property
    def type_id(self) -> int:
        return self.of.type_id

    @property
    def property_name(self) -> str | None:
        return self.of.property_name

    @property
    def property_id(self) -> int | None:
        return self.of.property_id

    @property
    def supported(self) -> bool:
        return self.kind is not StepKind.UNSUPPORTED_CHANGE

    @property
    def destructive(self) -> bool:
        """Whether data is no longer shown afterwards."""
        return self.effect is Effect.HIDE

    @property
    def subject(self) -> str:
        """``Type`` or ``Type.property``."""
        return self.type_name + (f".{self.property_name}" if self.property_name else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without absent parts."""
        body: dict[str, Any] = {
            "kind": str(self.kind),
            "entity_kind": self.entity_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "from": self.before,
            "to": self.after,
            "mode": self.mode,
            "backfill": self.backfill,
            "rows": self.rows,
            "change": self.change,
            "effect": str(self.effect),
            "checked": self.checked,
            "destructive": self.destructive,
            "code": self.code,
            "reason": f"[{self.code}] {self.reason}" if self.reason and self.code else self.reason,
        }
        return {
            k: str(v) if isinstance(v, StrEnum) else v for k, v in body.items() if v is not None
        }


# -- text ------------------------------------------------------------------------------------------
# A plan as a person reads it: one line a step, then what it comes to.


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
