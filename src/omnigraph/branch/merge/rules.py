"""BrokenRule rules of the schema as conflicts: which entities take part, and what to undo.

    delta -> the one validator -> violations -> [rules] -> conflicts, or changes to undo

Two sides can be right each for itself and wrong together: one deletes a node, the other draws an
edge to it. The validator finds that; this module says which entities take part and which side
changed them. A decision for one side undoes what the other side did to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.branch.merge.conflicts import ConflictKind, EntityName, MergeConflict
from omnigraph.branch.merge.images import MergeImages
from omnigraph.branch.merge.merged_table import NOTHING, MergePlan, TablePlan, Undo
from omnigraph.branch.merge.resolve import Decisions, SchemaName, Take
from omnigraph.branch.merge.schemas import OneSchema
from omnigraph.errors import Violation
from omnigraph.rules.findings import out_of_bounds
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.migrate.facts import ConstraintRule, Fact, Thing, Things
from omnigraph.schema.migrate.reconcile import Prefer, SchemaChoices
from omnigraph.schema.migrate.steps import MISSING
from omnigraph.write.txn import GraphDelta


@dataclass(frozen=True, kw_only=True)
class CheckedMerge:
    """A delta that broke rules, with all that is needed to say how."""

    plan: MergePlan
    delta: GraphDelta

    def having(
        self, table_key: str, column: str, values: Sequence[Any], columns: tuple[str, ...] = ()
    ) -> list[Any]:
        """Entities with one of these values, as they will be: as committed, unless the delta
        touches them, and from the delta."""
        names = tuple(dict.fromkeys(("id", column, *columns)))
        found: dict[str, Any] = {}
        ours = self.plan.one.view
        if ours.row_count(table_key):
            kind = table_schema(self.plan.catalog.table(table_key)).field(column).type
            table = ours.lookup(table_key, column, pa.array(values, kind), names)
            found = {row["id"]: row for row in table.to_pylist()}
        own = self.delta.tables.get(table_key)
        if own is not None:
            touched = {*own.removed.to_pylist(), *own.rows.column("id").to_pylist()}
            found = {i: row for i, row in found.items() if i not in touched}
            rows = own.rows.select(list(names)).to_pylist()
            found |= {r["id"]: r for r in rows if r[column] in values}
        return list(found.values())


@dataclass(frozen=True, kw_only=True)
class BrokenRule:
    """A broken rule as a conflict, with the facts of the schema behind it that a side changed."""

    conflict: MergeConflict
    facts: Mapping[FactOf, frozenset[Prefer]]

    @property
    def subjects(self) -> tuple[SchemaName, SchemaName]:
        """What a resolution may name instead of an entity: the property, and the type."""
        c = self.conflict
        whole = SchemaName(kind=c.entity_kind, type_name=c.type_name)
        return replace(whole, property_name=c.schema_property), whole


def rule_conflicts(violations: Sequence[Violation], checked: CheckedMerge) -> list[BrokenRule]:
    """Every violation as a conflict, each once."""
    found: dict[tuple[ConflictKind, tuple[EntityName, ...], str], BrokenRule] = {}
    bounded: set[str] = set()
    for violation in violations:
        facts = changed_facts(violation, checked.plan.one)
        match violation.rule:
            case "endpoint":
                conflicts = [_orphan(violation, checked)]
            case "unique":
                conflicts = [_unique(violation, checked)]
            case "cardinality":
                key = f"edge:{violation.type_name}"
                conflicts = [] if key in bounded else _cardinality(violation, checked)
                bounded.add(key)
            case _:
                conflicts = [_value(violation, checked)]
        for made in conflicts:
            conflict = made
            if facts:  # What is broken is new since the base.
                conflict = replace(
                    made,
                    kind=ConflictKind.SCHEMA_CONFLICT,
                    schema_property=violation.property_name,
                )
            key = (conflict.kind, conflict.entities, conflict.message)
            found.setdefault(key, BrokenRule(conflict=conflict, facts=facts))
    return list(found.values())


@dataclass(frozen=True, kw_only=True)
class RuleDecisions:
    """What the user's decisions do about broken rules."""

    undo: Mapping[str, Undo]
    """Everything that is undone now, by table key."""
    choices: SchemaChoices
    left: Sequence[MergeConflict]
    """What no decision covers."""
    used: frozenset[EntityName]
    """Entities whose resolution was used."""
    named: frozenset[SchemaName]
    """Types and properties whose resolution was used."""


def decide_rules(
    broken: Sequence[BrokenRule],
    decisions: Decisions,
    undo: Mapping[str, Undo],
    choices: SchemaChoices,
    plan: MergePlan,
) -> RuleDecisions:
    """Apply decisions to broken rules. What they undo already may repair several at once."""
    result, left = dict(undo), list[MergeConflict]()
    used, named = set[EntityName](), set[SchemaName]()
    decided = choices.facts  # Before this call: several rows may break one rule.
    for item in broken:
        entities = [e for e in item.conflict.entities if e in decisions.resolutions]
        subjects = [s for s in item.subjects if s in decisions.schema]
        used |= set(entities)
        named |= set(subjects)
        takes = {decisions.resolutions[e].take for e in entities}
        if not takes:
            takes = {decisions.schema[s].take for s in subjects[:1]} or {decisions.prefer}
        take = takes.pop() if len(takes) == 1 else None
        side = SIDES.get(take) if take is not None else None
        if side is not None and item.facts and all(side not in by for by in item.facts.values()):
            # Only the other side changed the rule: this side's version of it holds.
            fresh = [fact for fact in item.facts if fact not in decided]
            if fresh:
                choices = replace(choices, facts={**choices.facts, **dict.fromkeys(fresh, side)})
                continue
        more = _more(item.conflict.entities, take, undo, plan)
        if not more:
            left.append(item.conflict)
        for key, own in more.items():
            known = result.get(key, NOTHING)
            result[key] = Undo(
                of_theirs=known.of_theirs | own.of_theirs, of_ours=known.of_ours | own.of_ours
            )
    return RuleDecisions(
        undo=result,
        choices=choices,
        left=left,
        used=frozenset(used),
        named=frozenset(named),
    )


SIDES: Mapping[Take, Prefer] = {Take.OURS: "ours", Take.THEIRS: "theirs"}


def _more(
    entities: Sequence[EntityName],
    take: Take | None,
    undo: Mapping[str, Undo],
    plan: MergePlan,
) -> dict[str, Undo]:
    """What a decision about some entities adds to what was undone before."""
    added: dict[str, Undo] = {}
    for entity in entities:
        key, table = entity.table_key, plan.at(entity.table_key)
        if table is None:
            continue
        known, own = undo.get(key, NOTHING), added.get(key, NOTHING)
        one = frozenset({entity.id})
        if take in (Take.OURS, Take.BASE) and table.changed_by_theirs(entity.id):
            own = replace(own, of_theirs=own.of_theirs | one)
        if take in (Take.THEIRS, Take.BASE) and table.changed_by_ours(entity.id):
            own = replace(own, of_ours=own.of_ours | one)
        own = Undo(of_theirs=own.of_theirs - known.of_theirs, of_ours=own.of_ours - known.of_ours)
        if own:
            added[key] = own
    return added


def _orphan(violation: Violation, checked: CheckedMerge) -> MergeConflict:
    edge_type = checked.plan.catalog.edges[violation.type_name]
    edge = _entity(violation)
    column = violation.property_name or "src"
    node_name = edge_type.source if column == "src" else edge_type.target
    rows = checked.having(edge.table_key, "id", [edge.id], (column,))
    ends = [EntityName(kind="node", type_name=node_name, id=row[column]) for row in rows]
    missing = str(ends[0]) if ends else f"a {node_name}"
    message = (
        f"{edge} would have no {'start' if column == 'src' else 'end'}: {missing} is not there"
    )
    return _made(ConflictKind.ORPHAN_EDGE, violation, (edge, *ends), message, checked)


def _unique(violation: Violation, checked: CheckedMerge) -> MergeConflict:
    entity = _entity(violation)
    graph_type = checked.plan.catalog.table(entity.table_key)
    holders: dict[str, None] = {}
    name = violation.property_name
    for group in graph_type.unique:
        if name is not None and group != (name,):
            continue
        for row in checked.having(entity.table_key, "id", [entity.id], group):
            if any(row[m] is None for m in group):
                continue
            others = checked.having(entity.table_key, group[0], [row[group[0]]], group)
            same = [o["id"] for o in others if all(o[m] == row[m] for m in group)]
            holders |= dict.fromkeys(i for i in same if i != entity.id)
    others = [replace(entity, id=i) for i in holders]
    return _made(
        ConflictKind.UNIQUE_VIOLATION, violation, (entity, *others), violation.message, checked
    )


def _cardinality(violation: Violation, checked: CheckedMerge) -> list[MergeConflict]:
    """All sources of an edge type whose number of edges is wrong, each with its edges."""
    edge_type = checked.plan.catalog.edges[violation.type_name]
    plan = checked.plan.at(edge_type.table_key)
    touched = _edges_touched(plan) if plan is not None else {}
    low, high = edge_type.cardinality.low, edge_type.cardinality.high
    found: list[MergeConflict] = []
    for source, ids in touched.items():
        edges = checked.having(edge_type.table_key, "src", [source])
        if low <= len(edges) and (high is None or len(edges) <= high):
            continue
        if not checked.having(f"node:{edge_type.source}", "id", [source]):
            continue
        entities = [EntityName(kind="edge", type_name=edge_type.name, id=i) for i in sorted(ids)]
        message = out_of_bounds(edge_type, source, len(edges))
        first = replace(violation, entity_id=entities[0].id)
        found.append(_made(ConflictKind.CARDINALITY_VIOLATION, first, entities, message, checked))
    return found


def _edges_touched(plan: TablePlan) -> dict[str, set[str]]:
    """The edges that either side changed, by their source before or after."""
    found: dict[str, set[str]] = {}
    sides = plan.sides
    alone, by_ours = sides.alone, sides.by_ours
    every = np.arange(len(by_ours.ids), dtype=np.int64)
    for side in ("before", "after"):
        rows = alone.having(side)
        if len(rows):
            for row in alone.images(side, rows, ("id", "src")).to_pylist():
                found.setdefault(row["src"], set()).add(row["id"])
        _collect(by_ours.ids, by_ours.read(side, every), found)
    for images in (sides.base, sides.theirs):
        _collect(sides.ids, images, found)
    return found


def _collect(ids: pa.StringArray, images: MergeImages, found: dict[str, set[str]]) -> None:
    sources = images.rows.column("src").to_pylist()
    for i, entity_id in enumerate(ids.to_pylist()):
        if images.present[i] and sources[i] is not None:
            found.setdefault(sources[i], set()).add(entity_id)


def _value(violation: Violation, checked: CheckedMerge) -> MergeConflict:
    entities = (_entity(violation),) if violation.entity_id is not None else ()
    message = f"{entities[0]}: {violation.message}" if entities else violation.message
    kind = ConflictKind.VALUE_CONSTRAINT_VIOLATION
    return _made(kind, violation, entities, message, checked)


def _made(
    kind: ConflictKind,
    violation: Violation,
    entities: Sequence[EntityName],
    message: str,
    checked: CheckedMerge,
) -> MergeConflict:
    changes = [text for e in entities if (text := _changed_text(e, checked))]
    return MergeConflict(
        kind=kind,
        entity_kind=violation.entity_kind,
        type_name=violation.type_name,
        entity_id=violation.entity_id,
        message=f"{message} ({'; '.join(changes[:4])})" if changes else message,
        entities=tuple(entities),
    )


def _changed_text(entity: EntityName, checked: CheckedMerge) -> str | None:
    """Which sides changed an entity, in words."""
    plan = checked.plan.at(entity.table_key)
    if plan is None:
        return None
    by = [
        f"'{name}'"
        for name, changed in (
            (checked.plan.names.ours, plan.changed_by_ours(entity.id)),
            (checked.plan.names.theirs, plan.changed_by_theirs(entity.id)),
        )
        if changed
    ]
    return f"{' and '.join(by)} changed {entity}" if by else None


def _entity(violation: Violation) -> EntityName:
    return EntityName(
        kind=violation.entity_kind,
        type_name=violation.type_name,
        id=violation.entity_id or "",
    )


# -- changed facts ---------------------------------------------------------------------------------
# Which side changed the rule that rows break, if one did so since the base.
#
# violation -> [changed facts] -> the facts of the schema behind it, and the sides that changed them


FactOf = tuple[int, Fact]
"""A fact with the number of the thing that it is about."""


def changed_facts(violation: Violation, one: OneSchema) -> dict[FactOf, frozenset[Prefer]]:
    """The facts behind a broken rule that a side changed since the base, and which side."""
    graph_type = one.schema.catalog.table(f"{violation.entity_kind}:{violation.type_name}")
    found: dict[FactOf, frozenset[Prefer]] = {}
    for number, fact in _facts(violation, graph_type, one.merged):
        sides = _changed_by(number, fact, one)
        if sides:
            found[number, fact] = sides
    return found


def _facts(violation: Violation, graph_type: GraphType, merged: Things) -> Iterator[FactOf]:
    prop = graph_type.by_name.get(violation.property_name or "")
    match violation.rule:
        case "required" if prop is not None:
            yield prop.id, ("nullable", None)
        case "enum" if prop is not None:
            yield prop.id, ("values", None)
            yield prop.id, ("type", None)
        case "type" | "value" if prop is not None:
            yield prop.id, ("type", None)
        case "range" | "check" | "unique":
            for what, which in merged[graph_type.id].facts:
                if isinstance(which, ConstraintRule) and which.word == violation.rule:
                    about = prop is None or prop.id in which.members
                    if about or violation.property_name in which.members:
                        yield graph_type.id, (what, which)
        case "cardinality":
            yield graph_type.id, ("cardinality", None)
        case "endpoint":
            end = "source" if violation.property_name == "src" else "target"
            yield graph_type.id, (end, None)
        case "key":
            yield graph_type.id, ("key", None)
            for name in graph_type.key:
                yield graph_type.by_name[name].id, ("type", None)
        case _:
            return


def _changed_by(number: int, fact: Fact, one: OneSchema) -> frozenset[Prefer]:
    """The sides that the merged fact comes from, if it is not that of the base."""
    value = _said(one.merged.get(number), fact)
    thing = one.merged.get(number)
    if number not in one.base and (thing is None or thing.owner not in one.base):
        said = {_said(things.get(number), fact) for things in (one.ours, one.theirs)}
        if len(said) == 1 or not (number in one.ours and number in one.theirs):
            return frozenset()  # All rows of a new type were written under its rules.
    if number in one.base and _said(one.base[number], fact) == value:
        return frozenset()
    sides: tuple[tuple[Prefer, Things], ...] = (("ours", one.ours), ("theirs", one.theirs))
    return frozenset(
        side for side, things in sides if number in things and _said(things[number], fact) == value
    )


def _said(thing: Thing | None, fact: Fact) -> object:
    return thing.facts.get(fact, MISSING) if thing is not None else MISSING
