"""The steps of a plan, as values: what changes, what that does to data, whether it can be done."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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


class LintCode(StrEnum):
    """Stable codes of risky steps: DS destroys data, MF may fail on data."""

    DROP_NODE = "OG-DS-102"
    DROP_EDGE = "OG-DS-103"
    DROP_PROPERTY = "OG-DS-104"
    DROP_VECTOR = "OG-DS-105"
    REQUIRED_PROPERTY = "OG-MF-103"
    REQUIRED_NOW = "OG-MF-104"
    NARROWED_ENUM = "OG-MF-105"
    TYPE_CHANGED = "OG-MF-106"
    NEW_RULE = "OG-MF-107"
    ENDPOINTS = "OG-MF-108"
    KEY_CHANGED = "OG-MF-109"
    EMBED_CHANGED = "OG-MF-110"


LINT_EXPLANATIONS: dict[LintCode, str] = {
    LintCode.DROP_NODE: "a node type is dropped with its rows",
    LintCode.DROP_EDGE: "an edge type is dropped with its rows",
    LintCode.DROP_PROPERTY: "a property is dropped with its values",
    LintCode.DROP_VECTOR: "a vector is dropped, which is expensive to make again",
    LintCode.REQUIRED_PROPERTY: "a required property is new: rows need a value for it",
    LintCode.REQUIRED_NOW: "a property may not be null any more: rows need a value for it",
    LintCode.NARROWED_ENUM: "an enum loses values, or a text becomes an enum: rows are checked",
    LintCode.TYPE_CHANGED: "a property has another type",
    LintCode.NEW_RULE: "a rule is new or stricter: rows are checked",
    LintCode.ENDPOINTS: "an edge runs between other types: rows are checked",
    LintCode.KEY_CHANGED: "a key changes, and with it every id",
    LintCode.EMBED_CHANGED: "a vector is the embedding of something else than before",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change from the accepted schema to the desired one."""

    kind: StepKind
    entity_kind: str
    """``interface``, ``node``, ``edge``, or ``schema`` for the text as a whole."""
    type_name: str
    """Under the desired schema; of what is dropped, under the accepted one."""
    type_id: int
    property_name: str | None = None
    property_id: int | None = None
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
