"""What a merge cannot decide, as values: for people a sentence, for programs all of the facts.

    decisions, violations -> [conflicts] -> MergeConflictError, dry runs, resolution files

*Ours* is the branch that is merged into, *theirs* the branch that is merged, in every word here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.branch.merge.images import ENDPOINTS
from omnigraph.errors import MergeConflictError
from omnigraph.manifest.snapshot import GraphCommit, TableChange, changes_text
from omnigraph.rules.findings import text_of
from omnigraph.schema.json_text import json_objects
from omnigraph.show.shown import Shown

Record = Mapping[str, Any]
"""An image as plain data: ``properties`` as an export writes them, ``endpoints`` of an edge."""

VALUE_LENGTH_MAX = 60
PROPERTIES_SHOWN_MAX = 3


class ConflictKind(StrEnum):
    """All that can be in the way of a merge."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    SCHEMA_CONFLICT = "schema_conflict"


@dataclass(frozen=True, slots=True, kw_only=True)
class SideNames:
    """What messages call the two sides."""

    ours: str
    theirs: str


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class EntityName:
    """An entity by its name."""

    kind: str
    """``node`` or ``edge``."""
    type_name: str
    id: str

    @property
    def table_key(self) -> str:
        return f"{self.kind}:{self.type_name}"

    def __str__(self) -> str:
        return f"{self.type_name} '{text_of(self.id)}'"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"entity_kind": self.kind, "type_name": self.type_name, "entity_id": self.id}


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyConflict:
    """A property that both sides changed, to different values. Values are as an export has them."""

    name: str
    base: Any
    ours: Any
    theirs: Any
    base_known: bool = True
    """False after criss-cross merges whose common ancestors disagree, and for new entities."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; without ``base`` where there is none."""
        body = {"name": self.name, "ours": self.ours, "theirs": self.theirs}
        return {**body, "base": self.base} if self.base_known else body


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict:
    """One thing that the user has to decide."""

    kind: ConflictKind
    entity_kind: str
    type_name: str
    entity_id: str | None
    message: str
    properties: tuple[PropertyConflict, ...] = ()
    """Those in dispute; empty where the entity as a whole is."""
    base: Record | None = None
    """The entity at the common ancestor; None where it did not exist or is not known."""
    ours: Record | None = None
    theirs: Record | None = None
    entities: tuple[EntityName, ...] = ()
    """Broken rules: every entity that takes part and that a side changed."""
    schema_property: str | None = None
    """Of a schema conflict: the property that it is about, if it is about one."""
    schema_values: tuple[str | None, str | None, str | None] = (None, None, None)
    """Of a schema conflict: what base, ours and theirs say, as the language writes it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without absent parts."""
        body: dict[str, Any] = {
            "kind": str(self.kind),
            "entity_kind": self.entity_kind,
            "type_name": self.type_name,
            "entity_id": self.entity_id,
            "message": self.message,
        }
        if self.properties:
            body["properties"] = [p.to_dict() for p in self.properties]
        for name in ("base", "ours", "theirs"):
            if (record := getattr(self, name)) is not None:
                body[name] = record
        if self.schema_property is not None:
            body["property_name"] = self.schema_property
        said = zip(("base", "ours", "theirs"), self.schema_values, strict=True)
        body |= {side: text for side, text in said if text is not None}
        if self.entities:
            body["entities"] = [e.to_dict() for e in self.entities]
        return body


def refusal(conflicts: Sequence[MergeConflict], names: SideNames) -> MergeConflictError:
    """The error of a merge that is not decided yet."""
    count = len(conflicts)
    return MergeConflictError(
        f"{count:,} conflict{'s' if count > 1 else ''} between '{names.ours}' and "
        f"'{names.theirs}'; nothing was published",
        conflicts,
        hint=f"keep the values of '{names.ours}' with --ours or those of '{names.theirs}' with "
        "--theirs, or decide one by one with --resolutions FILE",
        details={"ours": names.ours, "theirs": names.theirs},
    )


def records(rows: pa.Table) -> list[Record]:
    """Rows as plain data."""
    ends = [n for n in ("src", "dst") if n in rows.column_names]
    found: list[Record] = []
    for batch in rows.combine_chunks().to_batches():
        for text in json_objects(batch).to_pylist():
            properties: dict[str, Any] = orjson.loads(text)
            record: dict[str, Any] = {"properties": properties}
            if ends:
                source, target = (properties.pop(end) for end in ends)
                record[ENDPOINTS] = {"from": source, "to": target}
            found.append(record)
    return found


def value_of(record: Record | None, name: str) -> Any:
    """The value of a property in a record; None where there is no record."""
    if record is None:
        return None
    return record[ENDPOINTS] if name == ENDPOINTS else record["properties"].get(name)


def shown(value: Any) -> str:
    """A value in a message: JSON on one line, cut when it is long."""
    if isinstance(value, dict) and value.keys() == {"from", "to"}:
        return f"{shown(value['from'])} → {shown(value['to'])}"
    text = orjson.dumps(value).decode()
    return text if len(text) <= VALUE_LENGTH_MAX else text[: VALUE_LENGTH_MAX - 1] + "…"


def update_text(entity: EntityName, changes: Sequence[PropertyConflict], names: SideNames) -> str:
    """Both sides changed it, to different values."""
    return f"{entity}: {_listed([_values(c, names) for c in changes])}"


def insert_text(entity: EntityName, changes: Sequence[PropertyConflict], names: SideNames) -> str:
    """Both sides inserted it, with different values."""
    return f"{entity} was inserted on both sides: {_listed([_values(c, names) for c in changes])}"


def delete_text(
    entity: EntityName, base: Record | None, ours: Record | None, theirs: Record | None,
    names: SideNames,
) -> str:  # fmt: skip
    """One side deleted what the other changed."""
    deleter, changer = names.ours, names.theirs
    if ours is not None:
        deleter, changer = changer, deleter
    left = theirs if ours is None else ours
    if base is None or left is None:
        return f"{entity} was deleted on '{deleter}' and changed on '{changer}'"
    names_left = [*([ENDPOINTS] if ENDPOINTS in left else []), *left["properties"]]
    changed = [
        f"{name} {shown(value_of(base, name))} to {shown(value_of(left, name))}"
        for name in names_left
        if value_of(base, name) != value_of(left, name)
    ]
    what = f" ({_listed(changed)})" if changed else ""
    return f"{entity} was deleted on '{deleter}' and changed on '{changer}'{what}"


def _values(change: PropertyConflict, names: SideNames) -> str:
    was = f"was {shown(change.base)}, " if change.base_known else ""
    return (
        f"{change.name} {was}is {shown(change.ours)} on '{names.ours}' "
        f"and {shown(change.theirs)} on '{names.theirs}'"
    )


def _listed(parts: Sequence[str]) -> str:
    more = len(parts) - PROPERTIES_SHOWN_MAX
    rest = f"; and {more} more" if more > 0 else ""
    return "; ".join(parts[:PROPERTIES_SHOWN_MAX]) + rest


# -- result ----------------------------------------------------------------------------------------
# What a merge did, or would do.


class MergeOutcome(StrEnum):
    """How a merge ended."""

    UP_TO_DATE = "already_up_to_date"
    """There was nothing to merge: no commit."""
    FAST_FORWARD = "fast_forward"
    """The target had nothing of its own: it shows the state of the source."""
    MERGED = "merged"
    CONFLICTS = "conflicts"
    """Only of dry runs: a merge would be refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult(Shown):
    """What a merge did."""

    outcome: MergeOutcome
    source: str
    """What was merged: a branch, a tag or a commit, as it was named."""
    target: str
    source_commit: str
    base_commits: tuple[str, ...]
    """The common ancestors that were compared with; several after criss-cross merges."""
    commit: GraphCommit | None
    """None when nothing was published."""
    changes: Mapping[str, TableChange]
    """What it did to the target, by table key."""
    conflicts: tuple[MergeConflict, ...] = ()
    """Only of dry runs."""
    dry_run: bool = False
    branch_deleted: bool | None = None
    """Whether the source was deleted; None when it was not asked for."""
    branch_delete_error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``branch merge --json``."""
        body: dict[str, Any] = {
            "outcome": str(self.outcome),
            "source": self.source,
            "target": self.target,
            "source_commit_id": self.source_commit,
            "base_commit_ids": list(self.base_commits),
            "commit": self.commit.to_dict() if self.commit is not None else None,
            "changes": {key: asdict(change) for key, change in self.changes.items()},
            "merge_conflicts": [c.to_dict() for c in self.conflicts],
        }
        if self.dry_run:
            body["dry_run"] = True
        if self.branch_deleted is not None:
            body["branch_deleted"] = self.branch_deleted
        if self.branch_delete_error is not None:
            body["branch_delete_error"] = self.branch_delete_error
        return body

    def _facts(self) -> tuple[str, dict[str, Any]]:
        return f"Merge of {self.source} into {self.target}", {
            "outcome": str(self.outcome),
            "changes": changes_text(self.changes),
            "conflicts": "\n".join(map(str, self.conflicts)) or None,
            "commit": self.commit.id if self.commit is not None else "none",
        }
