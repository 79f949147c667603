"""States in plain Python: rows under a schema, what they may be, and how one differs from another.

    State -> [rules, one row at a time] -> what a load of the same rows would be refused for

A row is a dict of values by the numbers of properties; the ends of an edge are one value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from schema_model import (
    BACKFILL,
    CARD,
    KEY,
    NULLABLE,
    SOURCE,
    TARGET,
    TYPE,
    VALUES,
    Fact,
    Schema,
    Thing,
)

ENDS = "ends"
Row = dict[Any, Any]
"""Values by number; ``ENDS`` of an edge."""
Rows = Mapping[int, Mapping[str, Row]]
"""By type and id."""
Entity = tuple[int, str]


@dataclass(frozen=True)
class State:
    """What a branch shows."""

    schema: Schema
    rows: Rows = field(default_factory=dict)

    def of(self, type_id: int) -> Mapping[str, Row]:
        return self.rows.get(type_id, {})

    def putting(self, type_id: int, entity_id: str, row: Row | None) -> State:
        """With another row, or without one."""
        own = {i: r for i, r in self.of(type_id).items() if i != entity_id}
        if row is not None:
            own[entity_id] = row
        return State(self.schema, {**self.rows, type_id: own})


@dataclass(frozen=True)
class Misfit:
    """A value that its property cannot hold."""

    value: Any


# -- values ----------------------------------------------------------------------------------------

_BOUNDS = {"I32": 2**31, "I64": 2**63}


def fits(value: Any, kind: str) -> bool:
    """Whether a value is one of a type."""
    if kind.startswith("["):
        return isinstance(value, list) and all(fits(v, kind[1:-1]) for v in value)
    if kind == "String":
        return isinstance(value, str)
    if isinstance(value, (bool, str, list, Misfit)):
        return False
    if kind == "F64":
        return float(value) == value
    return value == int(value) and -_BOUNDS[kind] <= value < _BOUNDS[kind]


def converted(value: Any, kind: str) -> Any:
    """The value in a type, if that holds it exactly; else a misfit."""
    if value is None or isinstance(value, Misfit):
        return value
    if not fits(value, kind):
        return Misfit(json.dumps(value))
    if kind.startswith("["):
        return [converted(v, kind[1:-1]) for v in value]
    return float(value) if kind == "F64" else value if kind == "String" else int(value)


def read(
    row: Row,
    own: Schema,
    into: Schema,
    type_id: int,
    base: Row | None = None,
    since: Schema | None = None,
) -> Row:
    """A row of one schema in the columns of another.

    ``base`` is the row at the common ancestor: what a side dropped and a decision kept is as there.
    ``since`` is the schema there: a backfill that a side never knew is for its nulls, too.
    """
    found: Row = {ENDS: row[ENDS]} if ENDS in row else {}
    for prop in into.properties(type_id):
        fill = prop.facts.get(BACKFILL)
        if prop.id in own.things:
            value = row.get(prop.id)
            new = since is not None and prop.id not in since.things
            if value is None and (
                prop.required or (new and BACKFILL not in own.things[prop.id].facts)
            ):
                value = fill
        elif base is not None and prop.id in base:
            value = base[prop.id]
            if value is None and prop.required:
                value = fill
        else:
            value = fill
        found[prop.id] = converted(value, prop.facts[TYPE])
    return found


# -- rules -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken:
    """A rule that a state breaks."""

    kind: str
    """As a merge tells it where both sides always had the rule."""
    type_id: int
    ids: frozenset[str]
    """Entities of the type that take part."""
    thing: int
    fact: Fact
    """The rule: what is said about which thing."""
    nodes: frozenset[Entity] = frozenset()
    """The ends that are missing."""


def broken(state: State) -> list[Broken]:
    """Everything that a load of all rows into an empty graph would be refused for."""
    found: list[Broken] = []
    for thing in state.schema.types():
        found += _values(state, thing)
        found += _ids(state, thing)
        found += _uniques(state, thing)
        if thing.kind == "edge":
            found += _ends(state, thing)
            found += _cards(state, thing)
    return found


VALUE = "value_constraint_violation"


def _values(state: State, thing: Thing) -> Iterator[Broken]:
    ranges = [f for f in thing.facts if f[0] == "range"]
    for entity_id, row in state.of(thing.id).items():
        one = frozenset({entity_id})
        for prop in state.schema.properties(thing.id):
            value = row.get(prop.id)
            if value is None:
                if prop.required:
                    yield Broken(VALUE, thing.id, one, prop.id, NULLABLE)
                continue
            if not fits(value, prop.facts[TYPE]):
                yield Broken(VALUE, thing.id, one, prop.id, TYPE)
                continue
            if value not in prop.facts.get(VALUES, (value,)):
                yield Broken(VALUE, thing.id, one, prop.id, VALUES)
            for fact in ranges:
                if fact[1] == prop.id and not _within(value, fact):
                    yield Broken(VALUE, thing.id, one, thing.id, fact)


def _within(value: Any, fact: Fact) -> bool:
    return (fact[2] is None or value >= fact[2]) and (fact[3] is None or value <= fact[3])


def spelled(value: Any) -> str:
    """A value in an id."""
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else repr(value)
    return str(value)


def id_of(schema: Schema, thing: Thing, row: Row) -> str | None:
    """The id that follows from the key; None where there is no key."""
    key = thing.facts.get(KEY)
    if not key:
        return None
    texts = [spelled(row.get(number)) for number in sorted(key)]
    return texts[0] if len(texts) == 1 else json.dumps(texts, separators=(",", ":"))


def _ids(state: State, thing: Thing) -> Iterator[Broken]:
    if not thing.facts.get(KEY):
        return
    for entity_id, row in state.of(thing.id).items():
        values = [row.get(n) for n in thing.facts[KEY]]
        if any(v is None or isinstance(v, Misfit) for v in values):
            continue  # Told by its value.
        if id_of(state.schema, thing, row) != entity_id:
            yield Broken(VALUE, thing.id, frozenset({entity_id}), thing.id, KEY)


def _uniques(state: State, thing: Thing) -> Iterator[Broken]:
    for fact in thing.facts:
        if fact[0] != "unique":
            continue
        holders: dict[tuple[Any, ...], set[str]] = {}
        for entity_id, row in state.of(thing.id).items():
            values = tuple(row.get(n) for n in fact[1])
            if not any(v is None or isinstance(v, Misfit) for v in values):
                holders.setdefault(values, set()).add(entity_id)
        for ids in holders.values():
            if len(ids) > 1:
                yield Broken("unique_violation", thing.id, frozenset(ids), thing.id, fact)


def _ends(state: State, thing: Thing) -> Iterator[Broken]:
    for entity_id, row in state.of(thing.id).items():
        for end, place in zip((SOURCE, TARGET), row[ENDS], strict=True):
            node = thing.facts[end]
            if place not in state.of(node):
                lost = frozenset({(node, place)})
                one = frozenset({entity_id})
                yield Broken("orphan_edge", thing.id, one, thing.id, end, lost)


def _cards(state: State, thing: Thing) -> Iterator[Broken]:
    low, high = thing.get(CARD)
    edges: dict[str, set[str]] = {}
    for entity_id, row in state.of(thing.id).items():
        edges.setdefault(row[ENDS][0], set()).add(entity_id)
    for ids in edges.values():
        if len(ids) < low or (high is not None and len(ids) > high):
            yield Broken("cardinality_violation", thing.id, frozenset(ids), thing.id, CARD)


# -- schema changes --------------------------------------------------------------------------------

_WIDER = {("I32", "I64"), ("I32", "F64"), ("[I32]", "[I64]"), ("[I32]", "[F64]")}


def changed(state: State, schema: Schema) -> State | None:
    """The state under another schema of the same branch; None where that is refused."""
    for thing in schema.types():
        before = state.schema.things.get(thing.id)
        if before is None or not state.of(thing.id):
            continue
        if before.get(KEY) != thing.get(KEY):
            return None
        key = thing.facts.get(KEY, ())
        for prop in schema.properties(thing.id):
            old = state.schema.things.get(prop.id)
            if old is None:
                if prop.required and BACKFILL not in prop.facts:
                    return None
                continue
            was, now = old.facts[TYPE], prop.facts[TYPE]
            if was != now and ((was, now) not in _WIDER or (prop.id in key and now == "F64")):
                return None
    rows = {
        t.id: {i: read(row, state.schema, schema, t.id) for i, row in state.of(t.id).items()}
        for t in schema.types()
    }
    made = State(schema, rows)
    return None if broken(made) else made


# -- differences -----------------------------------------------------------------------------------

Counts = dict[str, tuple[int, int, int]]


def difference(before: State, after: State) -> Counts:
    """Rows that are inserted, updated and deleted from one state to the next, by table.

    A property that is gone is no change of rows; one that is new is a change of those that have a
    value in it. A type that is gone is told by the schema.
    """
    found: Counts = {}
    for thing in after.schema.types():
        old, new = before.of(thing.id), after.of(thing.id)
        updated = sum(i in old and _differs(before, after, thing, i) for i in new)
        inserted, deleted = len(new.keys() - old.keys()), len(old.keys() - new.keys())
        if inserted or updated or deleted:
            found[f"{thing.kind}:{thing.name}"] = (inserted, updated, deleted)
    return found


def hidden(before: State, after: State) -> Counts:
    """Rows of types that are gone. Nothing says whether a commit counts them as deleted."""
    return {
        f"{thing.kind}:{thing.name}": (0, 0, len(before.of(thing.id)))
        for thing in before.schema.types()
        if thing.id not in after.schema.things and before.of(thing.id)
    }


def added(one: Counts, other: Counts) -> Counts:
    """Both together."""
    return {
        key: tuple(map(sum, zip(one.get(key, (0, 0, 0)), other.get(key, (0, 0, 0)), strict=True)))
        for key in {*one, *other}
    }  # pyright: ignore


def _differs(before: State, after: State, thing: Thing, entity_id: str) -> bool:
    old, new = before.of(thing.id)[entity_id], after.of(thing.id)[entity_id]
    if old.get(ENDS) != new.get(ENDS):
        return True
    return any(
        new.get(p.id) != old.get(p.id)
        if p.id in before.schema.things
        else new.get(p.id) is not None
        for p in after.schema.properties(thing.id)
    )


def exported(state: State) -> dict[str, dict[str, Any]]:
    """What an export writes, by table and id."""
    found: dict[str, dict[str, Any]] = {}
    for thing in state.schema.types():
        names = {p.id: p.name for p in state.schema.properties(thing.id)}
        for entity_id, row in state.of(thing.id).items():
            data = {names[n]: row[n] for n in names if row.get(n) is not None}
            if ENDS in row:
                data[ENDS] = tuple(row[ENDS])
            found.setdefault(f"{thing.kind}:{thing.name}", {})[entity_id] = data
    return found
