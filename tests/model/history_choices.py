"""Random schema steps, rows and values for histories: whatever fits what a branch shows.

Nothing here is always legal: what the product must refuse is chosen now and then, too.
"""

from __future__ import annotations

from random import Random
from typing import Any

from schema_model import (
    BACKFILL,
    CARD,
    DESCRIPTION,
    KEY,
    MISSING,
    NAME,
    NULLABLE,
    SOURCE,
    TARGET,
    TYPE,
    VALUES,
    Schema,
    Thing,
    holds_on,
    in_range,
    members,
    new_edge,
    new_node,
    new_property,
    unique,
)
from schema_states import ENDS, Row, State, id_of

POOL: dict[str, list[Any]] = {
    "I32": [0, 1, 2, 3, 40],
    "I64": [0, 1, 2, 3, 2**40],
    "F64": [0.5, 1.0, 2.0, -3.25],
    "String": ["x", "y", "z", ""],
    "[I32]": [[], [1], [1, 2]],
    "[I64]": [[], [1], [2**40]],
}
KEYS = [f"r{i}" for i in range(6)]
NODES = ("A", "B", "C", "D")
EDGES = ("L", "K", "M")
OWN = ("n", "s", "e", "p", "q")


def start_schema() -> Schema:
    a, a_key = new_node("A")
    b, b_key = new_node("B")
    edge = new_edge("L", a.id, b.id)
    things = [
        a, a_key,
        new_property(a.id, "n", "I32?"),
        new_property(a.id, "s", "String?"),
        new_property(a.id, "e", "String?", values="xyz"),
        b, b_key,
        new_property(b.id, "n", "I32?"),
        edge,
        new_property(edge.id, "n", "I32?"),
    ]  # fmt: skip
    return Schema({t.id: t for t in things})


# -- rows ------------------------------------------------------------------------------------------


def value(random: Random, schema: Schema, prop: Thing) -> Any:
    """A value that the property may have; now and then none, or one that a rule forbids."""
    if not prop.required and random.random() < 0.25:
        return None
    if random.random() < 0.01:
        return None
    if VALUES in prop.facts:
        return random.choice(sorted(prop.facts[VALUES]))
    pool = POOL[prop.facts[TYPE]]
    assert prop.owner is not None
    for fact in schema.things[prop.owner].facts:
        if fact[0] == "range" and members(fact) == (prop.id,) and random.random() < 0.9:
            pool = [v for v in pool if fact[2] <= v <= fact[3]] or pool
    return random.choice(pool)


def row(random: Random, state: State, thing: Thing) -> tuple[int, str, Row] | None:
    """A new row of a type with its id; None if an edge has no ends to choose."""
    made: Row = {}
    key = thing.facts.get(KEY, ())
    for prop in state.schema.properties(thing.id):
        if prop.id in key and prop.facts[TYPE] == "String" and VALUES not in prop.facts:
            made[prop.id] = random.choice(KEYS)
        else:
            made[prop.id] = value(random, state.schema, prop)
            if prop.id in key and made[prop.id] is None:
                return None
    if thing.kind == "edge":
        ends: list[str] = []
        for end in (SOURCE, TARGET):
            there = sorted(state.of(thing.facts[end]))
            if random.random() < 0.03:
                there = [*KEYS]
            if not there:
                return None
            ends.append(random.choice(there))
        made[ENDS] = tuple(ends)
        return thing.id, f"{thing.name.lower()}{random.randrange(6)}", made
    entity = id_of(state.schema, thing, made)
    return thing.id, entity if entity is not None else random.choice(KEYS), made


def rows(random: Random, state: State, count: int) -> list[tuple[int, str, Row]]:
    """Some rows, each entity once; nodes first, so that edges may lead to them."""
    found: dict[tuple[int, str], tuple[int, str, Row]] = {}
    seen = state
    for kind in ("node", "edge"):
        types = [t for t in state.schema.types() if t.kind == kind]
        for _ in range(count if types else 0):
            made = row(random, seen, random.choice(types))
            if made is not None:
                found[made[:2]] = made
                if kind == "node":
                    seen = seen.putting(*made)
    return list(found.values())


# -- schema steps ----------------------------------------------------------------------------------


def schema_step(random: Random, schema: Schema) -> tuple[str, Schema]:
    """What is done, and the schema it leads to."""
    step = random.choice(STEPS)
    return step.__name__, step(random, schema) or schema


def _types(schema: Schema, kind: str | None = None) -> list[Thing]:
    return [t for t in schema.types() if kind in (None, t.kind)]


def _own(random: Random, schema: Schema) -> Thing | None:
    """A property that is no member of a key."""
    keys = {n for t in schema.types() for n in t.facts.get(KEY, ())}
    found = [p for t in schema.types() for p in schema.properties(t.id) if p.id not in keys]
    return random.choice(found) if found else None


def add_node(random: Random, schema: Schema) -> Schema | None:
    name = random.choice(NODES)
    if schema.find(name) is not None:
        return None
    node, key = new_node(name)
    return schema.having(node, key, new_property(node.id, "n", random.choice(["I32?", "String?"])))


def add_edge(random: Random, schema: Schema) -> Schema | None:
    name, nodes = random.choice(EDGES), _types(schema, "node")
    if schema.find(name) is not None or not nodes:
        return None
    edge = new_edge(name, random.choice(nodes).id, random.choice(nodes).id)
    return schema.having(edge, new_property(edge.id, "n", "I32?"))


def add_property(random: Random, schema: Schema) -> Schema | None:
    owner, name = random.choice(_types(schema)), random.choice(OWN)
    if schema.find(f"{owner.name}.{name}") is not None or len(schema.properties(owner.id)) > 6:
        return None
    kind = random.choice(sorted(POOL))
    facts: dict[str, Any] = {}
    if kind == "String" and random.random() < 0.4:
        facts["values"] = "xyz"
    if kind[0] != "[" and random.random() < 0.5:
        facts["backfill"] = random.choice([v for v in POOL[kind] if v != ""])
    nullable = random.random() < (0.4 if "backfill" in facts else 0.9)
    return schema.having(new_property(owner.id, name, kind + ("?" if nullable else ""), **facts))


def rename(random: Random, schema: Schema) -> Schema | None:
    if random.random() < 0.25:
        thing = random.choice(_types(schema))
        names = NODES if thing.kind == "node" else EDGES
        taken = {t.name for t in _types(schema, thing.kind)}
    else:
        found = _own(random, schema)
        if found is None:
            return None
        thing, names = found, OWN
        taken = {p.name for p in schema.properties(thing.owner or 0)}
    free = [n for n in names if n not in taken]
    return schema.having(thing.said(NAME, random.choice(free))) if free else None


def drop_property(random: Random, schema: Schema) -> Schema | None:
    thing = _own(random, schema)
    return schema.without(thing) if thing is not None else None


def drop_type(random: Random, schema: Schema) -> Schema | None:
    nodes = _types(schema, "node")
    thing = random.choice(_types(schema))
    if thing.kind == "node" and len(nodes) < 2:
        return None
    edges = [t for t in _types(schema, "edge") if thing.id in (t.facts[SOURCE], t.facts[TARGET])]
    return schema.without(thing, *edges)


def retype(random: Random, schema: Schema) -> Schema | None:
    thing = _own(random, schema)
    if thing is None:
        return None
    wider = {"I32": "I64", "I64": "F64", "[I32]": "[I64]"}.get(thing.facts[TYPE], "String")
    kind = wider if random.random() < 0.7 else random.choice(sorted(POOL))
    made = thing.said(TYPE, kind)
    if kind != thing.facts[TYPE]:
        made = made.said(VALUES, MISSING)
        if not holds_on(thing.facts[TYPE], kind):
            made = made.said(BACKFILL, MISSING)
        owner = schema.things[thing.owner or 0]
        if kind not in ("I32", "I64", "F64") or kind != wider:
            for fact in list(owner.facts):
                if fact[0] in ("range", "unique") and thing.id in members(fact):
                    owner = owner.said(fact, MISSING)
        schema = schema.having(owner)
    return schema.having(made)


def enum(random: Random, schema: Schema) -> Schema | None:
    thing = _own(random, schema)
    if thing is None or thing.facts[TYPE] != "String":
        return None
    values = thing.facts.get(VALUES)
    if values is None:
        made = frozenset(("x", "y", "z"))
    elif random.random() < 0.2:
        return schema.having(thing.said(VALUES, MISSING))
    else:
        made = values ^ {random.choice(("x", "y", "z", "w", "v"))}
    return schema.having(thing.said(VALUES, made)) if made else None


def nullability(random: Random, schema: Schema) -> Schema | None:
    thing = _own(random, schema)
    if thing is None:
        return None
    if thing.required:
        return schema.having(thing.said(NULLABLE, True))
    made = thing.said(NULLABLE, MISSING)
    if random.random() < 0.6 and thing.facts[TYPE][0] != "[" and BACKFILL not in thing.facts:
        pool = sorted(thing.facts[VALUES]) if VALUES in thing.facts else POOL[thing.facts[TYPE]]
        made = made.said(BACKFILL, random.choice([v for v in pool if v != ""]))
    return schema.having(made)


def uniqueness(random: Random, schema: Schema) -> Schema | None:
    thing = _own(random, schema)
    if thing is None or thing.facts[TYPE][0] == "[":
        return None
    owner, fact = schema.things[thing.owner or 0], unique(thing.id)
    return schema.having(owner.said(fact, MISSING if fact in owner.facts else True))


def ranges(random: Random, schema: Schema) -> Schema | None:
    thing = _own(random, schema)
    if thing is None or thing.facts[TYPE] not in ("I32", "I64"):
        return None
    owner = schema.things[thing.owner or 0]
    if owner.kind != "node":
        return None
    known = [f for f in owner.facts if f[0] == "range" and members(f) == (thing.id,)]
    for fact in known:
        owner = owner.said(fact, MISSING)
    if not known or random.random() < 0.5:
        owner = owner.said(in_range(thing.id, 0, random.choice([2, 3, 50])), True)
    return schema.having(owner)


def cardinality(random: Random, schema: Schema) -> Schema | None:
    edges = _types(schema, "edge")
    if not edges:
        return None
    edge = random.choice(edges)
    return schema.having(edge.said(CARD, random.choice([(0, 1), (0, 2), (0, 3), MISSING])))


def ends(random: Random, schema: Schema) -> Schema | None:
    edges = _types(schema, "edge")
    if not edges:
        return None
    node = random.choice(_types(schema, "node"))
    return schema.having(random.choice(edges).said(random.choice([SOURCE, TARGET]), node.id))


def key(random: Random, schema: Schema) -> Schema | None:
    node = random.choice(_types(schema, "node"))
    fit = [
        p for p in schema.properties(node.id) if p.required and p.facts[TYPE] in ("String", "I32")
    ]
    return schema.having(node.said(KEY, (random.choice(fit).id,))) if fit else None


def describe(random: Random, schema: Schema) -> Schema | None:
    thing = random.choice(list(schema.things.values()))
    return schema.having(thing.said(DESCRIPTION, random.choice(["one", "two", MISSING])))


STEPS = (
    add_node, add_edge, add_property, add_property, add_property, rename, rename, drop_property,
    drop_type, retype, enum, nullability, nullability, uniqueness, ranges, cardinality, ends, key,
    describe,
)  # fmt: skip
