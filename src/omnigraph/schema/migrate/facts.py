"""A catalog as single facts by stable number, each of which can change by itself.

    catalog -> [facts] -> three-way -> facts -> catalog

Names appear only as values of facts; whatever refers to a type or a property does so by its number.
A fact that is not there says what an absent one says: no description, no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    Embed,
    GraphType,
    InterfaceType,
    NodeType,
    Property,
    PropertyType,
    Range,
)

Fact = tuple[str, Any]
"""What is said, and for facts that stand side by side which one."""
Facts = dict[Fact, Any]


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A type, an interface or a property with everything that is said about it."""

    id: int
    kind: str
    """``interface``, ``node``, ``edge`` or ``property``."""
    owner: int | None
    """Of a property: the number of its type."""
    facts: Facts

    @property
    def name(self) -> str:
        return self.facts["name", None]


Things = dict[int, Thing]
"""By number, in the order of declaration."""


def things_of(catalog: Catalog) -> Things:
    """Everything a catalog says."""
    found: Things = {}
    nodes = {n.name: n.id for n in catalog.nodes.values()}
    interfaces = {i.name: i.id for i in catalog.interfaces.values()}
    for interface in catalog.interfaces.values():
        facts: Facts = {("name", None): interface.name}
        found[interface.id] = Thing(id=interface.id, kind="interface", owner=None, facts=facts)
        _add_properties(found, interface)
    for graph_type in catalog.types():
        facts = _said_of(graph_type)
        if isinstance(graph_type, EdgeType):
            facts["source", None] = nodes[graph_type.source]
            facts["target", None] = nodes[graph_type.target]
            facts["cardinality", None] = graph_type.cardinality
        elif isinstance(graph_type, NodeType):
            facts |= {("implements", interfaces[name]): True for name in graph_type.implements}
        found[graph_type.id] = Thing(
            id=graph_type.id, kind=graph_type.kind, owner=None, facts=facts
        )
        _add_properties(found, graph_type)
    return found


def _said_of(graph_type: GraphType) -> Facts:
    facts: Facts = {
        ("name", None): graph_type.name,
        ("incarnation", None): graph_type.incarnation,
        ("description", None): graph_type.description,
        ("instruction", None): graph_type.instruction,
        ("annotations", None): graph_type.annotations,
        ("key", None): _key(graph_type),
    }
    facts |= {("rule", rule): True for rule in rules_of(graph_type)}
    return {fact: value for fact, value in facts.items() if value not in (None, ())}


def _key(graph_type: GraphType) -> tuple[Member, ...] | None:
    ends: tuple[Member, ...] = ("src", "dst") if getattr(graph_type, "keyed", False) else ()
    # Members of a key are ordered by their numbers in every catalog.
    return (*ends, *(member(graph_type, name) for name in graph_type.key)) or None


def _add_properties(found: Things, owner: GraphType | InterfaceType) -> None:
    numbers = {p.name: p.id for p in owner.properties}
    for prop in owner.properties:
        enum = prop.type.enum_values
        facts: Facts = {
            ("name", None): prop.name,
            ("type", None): replace(prop.type, nullable=False, enum_values=None),
            ("values", None): frozenset(enum) if enum is not None else None,
            ("nullable", None): prop.type.nullable or None,
            ("description", None): prop.description,
            ("annotations", None): prop.annotations,
        }
        facts["backfill", None] = prop.backfill
        if prop.embed is not None:
            facts["embed", None] = (numbers[prop.embed.source], prop.embed.model)
        said = {fact: value for fact, value in facts.items() if value not in (None, ())}
        found[prop.id] = Thing(id=prop.id, kind="property", owner=owner.id, facts=said)


# -- back ----------------------------------------------------------------------------------------


def catalog_of(
    things: Things, next_id: int, aliases: Mapping[int, int] = MappingProxyType({})
) -> Catalog:
    """The catalog that says these things. They must not contradict each other."""
    names = {n: t.name for n, t in things.items()}
    owned: dict[int, list[Thing]] = {}
    for thing in things.values():
        if thing.owner is not None:
            owned.setdefault(thing.owner, []).append(thing)
    interfaces: dict[str, InterfaceType] = {}
    nodes: dict[str, NodeType] = {}
    edges: dict[str, EdgeType] = {}
    for thing in things.values():
        properties = _properties(owned.get(thing.id, ()), names)
        if thing.kind == "interface":
            interfaces[thing.name] = InterfaceType(
                id=thing.id, name=thing.name, properties=properties
            )
        elif thing.kind == "node":
            nodes[thing.name] = _node(thing, properties, names)
        elif thing.kind == "edge":
            edges[thing.name] = _edge(thing, properties, names)
    return Catalog(
        interfaces=interfaces, nodes=nodes, edges=edges, next_id=next_id, aliases=aliases
    )


def _properties(things: Iterable[Thing], names: Mapping[int, str]) -> tuple[Property, ...]:
    found: list[Property] = []
    for thing in things:
        facts = thing.facts
        kind: PropertyType = facts["type", None]
        values: frozenset[str] | None = facts.get(("values", None))
        embed: tuple[int, str | None] | None = facts.get(("embed", None))
        found.append(
            Property(
                id=thing.id,
                name=thing.name,
                type=replace(
                    kind,
                    nullable=bool(facts.get(("nullable", None))),
                    enum_values=tuple(sorted(values)) if values is not None else None,
                ),
                description=facts.get(("description", None)),
                embed=Embed(source=names[embed[0]], model=embed[1]) if embed else None,
                annotations=_annotations(facts),
                backfill=facts.get(("backfill", None)),
            )
        )
    return tuple(found)


def _annotations(facts: Facts) -> tuple[Annotation, ...]:
    return facts.get(("annotations", None), ())


def _common(
    thing: Thing, properties: tuple[Property, ...], names: Mapping[int, str]
) -> dict[str, Any]:
    def spelled(members: Iterable[Member]) -> tuple[str, ...]:
        return tuple(names[m] if isinstance(m, int) else m for m in members)

    key: Sequence[Member] = thing.facts.get(("key", None), ())
    own = [m for m in key if isinstance(m, int)]
    rules = _rules(thing)
    indexes = [spelled(r.members) for r in rules if r.word == "index"]
    return {
        "id": thing.id,
        "incarnation": thing.facts["incarnation", None],
        "name": thing.name,
        "properties": properties,
        "key": spelled(sorted(own)),
        "unique": tuple(spelled(r.members) for r in rules if r.word == "unique"),
        "indexes": (*indexes, *((names[m],) for m in own)),
        "description": thing.facts.get(("description", None)),
        "instruction": thing.facts.get(("instruction", None)),
        "annotations": _annotations(thing.facts),
    }


def _rules(thing: Thing) -> list[ConstraintRule]:
    return [which for (what, which), _ in thing.facts.items() if what == "rule"]


def _node(thing: Thing, properties: tuple[Property, ...], names: Mapping[int, str]) -> NodeType:
    rules = _rules(thing)
    return NodeType(
        **_common(thing, properties, names),
        implements=tuple(names[which] for (what, which) in thing.facts if what == "implements"),
        ranges=tuple(
            Range(property_name=names[r.first], low=r.low, high=r.high)
            for r in rules
            if r.word == "range"
        ),
        checks=tuple(
            Check(property_name=names[r.first], pattern=r.pattern or "")
            for r in rules
            if r.word == "check"
        ),
    )


def _edge(thing: Thing, properties: tuple[Property, ...], names: Mapping[int, str]) -> EdgeType:
    facts = thing.facts
    return EdgeType(
        **_common(thing, properties, names),
        source=names[facts["source", None]],
        target=names[facts["target", None]],
        cardinality=facts.get(("cardinality", None), Cardinality()),
        keyed="src" in facts.get(("key", None), ()),
    )


# -- constraints -----------------------------------------------------------------------------------
# Rules of a type as values that renaming does not change.
#
# Members are stable numbers, so a rule over a renamed property is the same rule.


Member = int | str
"""A property by its number; ``src`` and ``dst`` by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintRule:
    """One ``@unique``, ``@index``, ``@range`` or ``@check``."""

    word: str
    members: tuple[Member, ...]
    low: int | float | None = None
    high: int | float | None = None
    pattern: str | None = None

    @property
    def first(self) -> int:
        """The property of a rule about one."""
        return int(self.members[0])

    def text(self, graph_type: GraphType) -> str:
        """As the language writes it, with the names of a declaration of the type."""
        names = {p.id: p.name for p in graph_type.properties}
        shown = [names[m] if isinstance(m, int) else m for m in self.members]
        if self.word == "range":
            low, high = ("" if b is None else str(b) for b in (self.low, self.high))
            shown.append(f"{low}..{high}")
        elif self.pattern is not None:
            shown.append('"' + self.pattern.replace("\\", "\\\\").replace('"', '\\"') + '"')
        return f"@{self.word}({', '.join(shown)})"


def rules_of(graph_type: GraphType) -> list[ConstraintRule]:
    """The rules of a type but its key, each once, in the order of declaration."""

    def group(word: str, names: tuple[str, ...]) -> ConstraintRule:
        members = tuple(sorted((member(graph_type, n) for n in names), key=member_order))
        return ConstraintRule(word=word, members=members)

    found = [group("unique", names) for names in graph_type.unique]
    # A key is an index on each of its members; that is said by the key.
    keys = {(name,) for name in graph_type.key}
    found += [group("index", names) for names in graph_type.indexes if names not in keys]
    if isinstance(graph_type, NodeType):
        found += [range_rule(graph_type, r) for r in graph_type.ranges]
        found += [
            ConstraintRule(
                word="check", members=(member(graph_type, c.property_name),), pattern=c.pattern
            )
            for c in graph_type.checks
        ]
    return list(dict.fromkeys(found))


def member_order(place: Member) -> tuple[bool, int]:
    """The order of members says nothing, so there is one: endpoints, then by number."""
    return (False, place == "dst") if isinstance(place, str) else (True, place)


def range_rule(graph_type: GraphType, bounds: Range) -> ConstraintRule:
    """A range as a rule."""
    place = member(graph_type, bounds.property_name)
    return ConstraintRule(word="range", members=(place,), low=bounds.low, high=bounds.high)


def member(graph_type: GraphType, name: str) -> Member:
    """What a name in a rule means."""
    prop = graph_type.by_name.get(name)
    return prop.id if prop is not None else name


def key_of(graph_type: GraphType) -> tuple[bool, tuple[Member, ...]]:
    """Whether a type has a key, and its members."""
    keyed = bool(graph_type.key) or getattr(graph_type, "keyed", False)
    return keyed, tuple(member(graph_type, n) for n in graph_type.key)


def key_text(graph_type: GraphType) -> str:
    """A key as the language writes it."""
    ends = ["@src", "@dst"] if getattr(graph_type, "keyed", False) else []
    members = [*ends, *graph_type.key]
    return f"@key({', '.join(members)})" if members else "no key"


def covers(wider: ConstraintRule, narrower: ConstraintRule) -> bool:
    """Whether whatever keeps the one range keeps the other."""
    low = wider.low is None or (narrower.low is not None and narrower.low >= wider.low)
    high = wider.high is None or (narrower.high is not None and narrower.high <= wider.high)
    return wider.members == narrower.members and low and high
