"""Schemas in plain Python: types and properties as single facts under numbers of the model's own.

    Schema -> facts by number -> text of the language, or what two schemas say differently

Nothing here knows how the product does it. A thing is a type or a property; whatever refers to one
does so by its number, so that a name is a fact like any other. A fact that is not there says
nothing: no key, no rule, not nullable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

Fact = tuple[Any, ...]
"""What is said; rules carry their members, because several stand side by side."""

NAME: Fact = ("name",)
TYPE: Fact = ("type",)
VALUES: Fact = ("values",)
NULLABLE: Fact = ("nullable",)
BACKFILL: Fact = ("backfill",)
DESCRIPTION: Fact = ("description",)
KEY: Fact = ("key",)
SOURCE: Fact = ("source",)
TARGET: Fact = ("target",)
CARD: Fact = ("card",)
ANY_CARD = (0, None)
"""What an edge says that says nothing."""

NUMBERS = ("I32", "I64", "F64")
_numbers = count(1)


class _Said:
    """A value that stands for itself."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


MISSING = _Said("MISSING")
"""The value of a fact that is not stated."""


class Unknown:
    """A value that equals nothing, not even itself."""

    __hash__ = None  # pyright: ignore

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
"""What several common ancestors contradict each other about."""


@dataclass(frozen=True)
class Thing:
    """A type or a property with everything that is said about it."""

    id: int
    kind: str
    """``node``, ``edge`` or ``property``."""
    owner: int | None
    facts: Mapping[Fact, Any]
    doubtful: bool = False
    """Common ancestors do not agree whether it is there."""

    @property
    def name(self) -> str:
        return self.facts[NAME]

    def get(self, fact: Fact) -> Any:
        return self.facts.get(fact, ANY_CARD if fact == CARD else MISSING)

    def said(self, fact: Fact, value: Any) -> Thing:
        """The same with another fact, or without it."""
        rest = {f: v for f, v in self.facts.items() if f != fact}
        nothing = value is MISSING or (fact, value) == (CARD, ANY_CARD)
        return replace(self, facts=rest if nothing else {**rest, fact: value})

    @property
    def required(self) -> bool:
        return NULLABLE not in self.facts

    @property
    def type_text(self) -> str:
        """As the language writes it."""
        values = self.facts.get(VALUES)
        core = self.facts[TYPE] if values is None else f"enum({', '.join(sorted(values))})"
        return core + ("" if self.required else "?")


@dataclass(frozen=True)
class Schema:
    """Everything that a state says about its types."""

    things: Mapping[int, Thing]
    aliases: Mapping[int, int] = field(default_factory=dict)
    """Numbers that once were a thing of their own, each with the number it goes on as."""

    def types(self) -> list[Thing]:
        return [t for t in self.things.values() if t.owner is None]

    def properties(self, owner: int) -> list[Thing]:
        return [t for t in self.things.values() if t.owner == owner]

    def find(self, name: str) -> Thing | None:
        """A type by its name, or a property by ``Type.name``."""
        owner_name, _, own = name.partition(".")
        owner = next((t for t in self.types() if t.name == owner_name), None)
        if owner is None or not own:
            return owner
        return next((p for p in self.properties(owner.id) if p.name == own), None)

    def at(self, name: str) -> Thing:
        found = self.find(name)
        assert found is not None, name
        return found

    def having(self, *things: Thing) -> Schema:
        """With these things, new or changed."""
        return replace(self, things={**self.things, **{t.id: t for t in things}})

    def without(self, *gone: Thing) -> Schema:
        """Without these things, what they own and rules about them; edges stay."""
        numbers = {t.id for t in gone}
        numbers |= {t.id for t in self.things.values() if t.owner in numbers}
        left = {n: t for n, t in self.things.items() if n not in numbers}
        for number, thing in left.items():
            for fact in list(thing.facts):
                if fact[0] in ("unique", "range") and set(members(fact)) & numbers:
                    left[number] = left[number].said(fact, MISSING)
        return replace(self, things=left)


def members(fact: Fact) -> tuple[int, ...]:
    """The properties that a rule is about."""
    if fact[0] == "unique":
        return tuple(fact[1])
    return (fact[1],) if fact[0] == "range" else ()


def unique(*numbers: int) -> Fact:
    return ("unique", tuple(sorted(numbers)))


def in_range(number: int, low: int | None, high: int | None) -> Fact:
    return ("range", number, low, high)


def references(thing: Thing) -> Iterator[tuple[Fact, int]]:
    """What must be there for the facts of a thing to mean something."""
    for fact, value in thing.facts.items():
        if fact in (SOURCE, TARGET):
            yield fact, value
        elif fact == KEY:
            yield from ((fact, number) for number in value)
        else:
            yield from ((fact, number) for number in members(fact))


# -- making ----------------------------------------------------------------------------------------


def new_property(owner: int, name: str, text: str, **facts: Any) -> Thing:
    """A new property; ``text`` is its type as the language writes it, without enums' braces."""
    nullable = text.endswith("?")
    said: dict[Fact, Any] = {NAME: name, TYPE: text.removesuffix("?")}
    if "values" in facts:
        said[VALUES] = frozenset(facts["values"])
    if nullable:
        said[NULLABLE] = True
    if "backfill" in facts:
        said[BACKFILL] = facts["backfill"]
    return Thing(next(_numbers), "property", owner, said)


def new_node(name: str) -> tuple[Thing, Thing]:
    """A node type and its key ``k``."""
    number = next(_numbers)
    key = new_property(number, "k", "String")
    return Thing(number, "node", None, {NAME: name, KEY: (key.id,)}), key


def new_edge(name: str, source: int, target: int) -> Thing:
    return Thing(next(_numbers), "edge", None, {NAME: name, SOURCE: source, TARGET: target})


# -- the language ----------------------------------------------------------------------------------


def text_of(schema: Schema, before: Schema | None = None) -> str:
    """The schema in the language, with hints that lead there from another one."""
    lines: list[str] = []
    for thing in sorted(schema.types(), key=lambda t: t.kind != "node"):
        names = {p.id: p.name for p in schema.properties(thing.id)}
        body = [_property(schema, p, before) for p in schema.properties(thing.id)]
        body += [_rule(fact, names) for fact in thing.facts if fact[0] in ("unique", "range")]
        if key := thing.facts.get(KEY):
            body.append(f"@key({', '.join(names[n] for n in key)})")
        head = f"{thing.kind} {thing.name}"
        if thing.kind == "edge":
            source, target = (schema.things[thing.facts[end]].name for end in (SOURCE, TARGET))
            head += f": {source} -> {target}"
            if card := thing.facts.get(CARD):
                head += f" @card({card[0]}..{'' if card[1] is None else card[1]})"
        lines.append(f"{head}{_hints(thing, before)} {{ {'  '.join(body)} }}")
    return "\n".join(lines) + "\n"


def _hints(thing: Thing, before: Schema | None) -> str:
    said = ""
    if before is not None and (old := before.things.get(thing.id)) and old.name != thing.name:
        said += f' @rename_from("{old.name}")'
    if (note := thing.facts.get(DESCRIPTION)) is not None:
        said += f' @description("{note}")'
    return said


def _property(schema: Schema, prop: Thing, before: Schema | None) -> str:
    said = f"{prop.name}: {prop.type_text}{_hints(prop, before)}"
    if (fill := prop.facts.get(BACKFILL)) is not None:
        said += f' @backfill("{fill}")' if isinstance(fill, str) else f" @backfill({fill})"
    return said


def _rule(fact: Fact, names: Mapping[int, str]) -> str:
    if fact[0] == "unique":
        return f"@unique({', '.join(names[n] for n in fact[1])})"
    low, high = ("" if b is None else str(b) for b in fact[2:])
    return f"@range({names[fact[1]]}, {low}..{high})"


def told(schema: Schema) -> dict[str, Any]:
    """Names, types and rules as plain data, to be compared with what the product says."""
    found: dict[str, Any] = {}
    for thing in schema.types():
        names = {p.id: p.name for p in schema.properties(thing.id)}
        body: dict[str, Any] = {
            "properties": {
                p.name: (p.type_text, p.facts.get(DESCRIPTION)) for p in schema.properties(thing.id)
            },
            "description": thing.facts.get(DESCRIPTION),
            "key": sorted(names[n] for n in thing.facts.get(KEY, ())),
            "unique": sorted(
                sorted(names[n] for n in f[1]) for f in thing.facts if f[0] == "unique"
            ),
            "ranges": sorted(
                (names[f[1]], _bound(f[2]), _bound(f[3])) for f in thing.facts if f[0] == "range"
            ),
        }
        if thing.kind == "edge":
            body["ends"] = [schema.things[thing.facts[end]].name for end in (SOURCE, TARGET)]
            body["card"] = thing.get(CARD)
        found[f"{thing.kind}:{thing.name}"] = body
    return found


def _bound(value: int | float | None) -> str:
    return "" if value is None else str(float(value))


def told_by(catalog: Any) -> dict[str, Any]:
    """The same of a catalog of the product."""
    found: dict[str, Any] = {}
    for kind in (*catalog.nodes.values(), *catalog.edges.values()):
        body: dict[str, Any] = {
            "properties": {p.name: (str(p.type), p.description) for p in kind.properties},
            "description": kind.description,
            "key": sorted(kind.key),
            "unique": sorted(sorted(group) for group in kind.unique),
            "ranges": sorted(
                (r.property_name, _bound(r.low), _bound(r.high))
                for r in getattr(kind, "ranges", ())
            ),
        }
        if kind.kind == "edge":
            body["ends"] = [kind.source, kind.target]
            body["card"] = (kind.cardinality.low, kind.cardinality.high)
        found[f"{kind.kind}:{kind.name}"] = body
    return found


# -- whether it holds together ---------------------------------------------------------------------


def contradictions(schema: Schema) -> list[tuple[str, int | None]]:
    """Why a schema is none, each with the type it is about; empty for a schema that compiles."""
    found: list[tuple[str, int | None]] = []
    if not schema.things:
        found.append(("a schema needs at least one type", None))
    names: dict[tuple[str, int | None, str], Thing] = {}
    for thing in schema.things.values():
        own = thing.name.lower() if thing.kind == "edge" else thing.name
        if names.setdefault((thing.kind, thing.owner, own), thing) is not thing:
            found.append((f"two things are called {thing.name}", thing.owner or thing.id))
        found += [
            (f"{thing.name} needs what is not there", thing.owner or thing.id)
            for _, number in references(thing)
            if number not in schema.things
        ]
    if found:
        return found
    if not schema.types():
        return [("no type is left", None)]
    for thing in schema.types():
        found += [(why, thing.id) for why in _contradictions(schema, thing)]
    return found


def _contradictions(schema: Schema, thing: Thing) -> Iterable[str]:
    for prop in schema.properties(thing.id):
        if VALUES in prop.facts and prop.facts[TYPE] != "String":
            yield f"{prop.name} is an enum of {prop.facts[TYPE]}"
        if VALUES in prop.facts and not prop.facts[VALUES]:
            yield f"{prop.name} has no values"
        fill = prop.facts.get(BACKFILL)
        if fill is not None and not literal(prop, fill):
            yield f"the backfill of {prop.name} is none of its values"
    for number in thing.facts.get(KEY, ()):
        if not schema.things[number].required or schema.things[number].facts[TYPE][0] == "[":
            yield "a member of the key is nullable, or a list"
    for fact in thing.facts:
        kinds = [schema.things[n].facts[TYPE] for n in members(fact)]
        if fact[0] == "range" and kinds[0] not in NUMBERS:
            yield "a range of what is no number"
        if fact[0] == "unique" and any(kind[0] == "[" for kind in kinds):
            yield "a list is unique"


def holds_on(was: str, kind: str) -> bool:
    """Whether a backfill that was written for one type is one for another."""
    return was == kind or (was == "I32" and kind in ("I64", "F64"))


def literal(prop: Thing, value: Any) -> bool:
    """Whether a value is one of a property."""
    kind = prop.facts[TYPE]
    if kind == "String":
        return isinstance(value, str) and value in prop.facts.get(VALUES, (value,))
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole or (kind == "F64" and isinstance(value, float)) if kind in NUMBERS else False
