"""Whose rule it is that rows break: a side may have brought it since the base.

violation -> [rulings] -> the facts of the schema behind it, and the sides that changed them
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from omnigraph.branch.merge.schemas import OneSchema
from omnigraph.errors import Violation
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.migrate.constraints import ConstraintRule
from omnigraph.schema.migrate.facts import Fact, Thing, Things
from omnigraph.schema.migrate.reconcile import Prefer, SchemaChoices
from omnigraph.schema.migrate.schema_words import MISSING

FactOf = tuple[int, Fact]
"""A fact with the number of the thing that it is about."""


def rulers(violation: Violation, one: OneSchema) -> dict[FactOf, frozenset[Prefer]]:
    """The facts behind a broken rule that a side changed since the base, and which side."""
    graph_type = one.schema.catalog.table(f"{violation.entity_kind}:{violation.type_name}")
    found: dict[FactOf, frozenset[Prefer]] = {}
    for number, fact in _facts(violation, graph_type, one.merged):
        sides = _changed_by(number, fact, one)
        if sides:
            found[number, fact] = sides
    return found


def overruled(
    choices: SchemaChoices, facts: Mapping[FactOf, frozenset[Prefer]], side: Prefer
) -> SchemaChoices:
    """The same choices, and these facts as a side has them."""
    return replace(choices, facts={**choices.facts, **dict.fromkeys(facts, side)})


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
        return frozenset()  # All rows of a new type were written under its rules.
    if number in one.base and _said(one.base[number], fact) == value:
        return frozenset()
    sides: tuple[tuple[Prefer, Things], ...] = (("ours", one.ours), ("theirs", one.theirs))
    return frozenset(
        side for side, things in sides if number in things and _said(things[number], fact) == value
    )


def _said(thing: Thing | None, fact: Fact) -> object:
    return thing.facts.get(fact, MISSING) if thing is not None else MISSING
