"""The small graph that the matrix of merges begins with, and everything that is done to it.

A step changes a schema; a deed changes rows, under whatever schema a side has by then. Each side
has values of its own where the two should differ, and the same where they should agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    Fact,
    Schema,
    Thing,
    in_range,
    members,
    new_edge,
    new_node,
    new_property,
    unique,
)
from schema_states import ENDS, Row, State, fits, id_of

Step = Callable[[Schema], Schema]


def first_schema() -> Schema:
    """Types with rows (A, B, L), without rows (Z, K), and a rule of every kind."""
    a, a_key = new_node("A")
    b, b_key = new_node("B")
    z, z_key = new_node("Z")
    own = [
        new_property(a.id, "n", "I32?"),
        new_property(a.id, "e", "String?", values="wxy"),
        new_property(a.id, "s", "String?"),
        new_property(a.id, "m", "I32?"),
        new_property(a.id, "q", "I32?"),
        new_property(a.id, "u", "I32"),
        new_property(a.id, "g", "[I32]?"),
    ]
    u = own[5].id
    a = a.said(unique(u), True).said(in_range(u, 0, 90), True)
    target = [new_property(b.id, "v", "I32?")]
    other = [new_property(z.id, "t", "String"), new_property(z.id, "o", "I32?")]
    edge = new_edge("L", a.id, b.id)
    weight = new_property(edge.id, "w", "I32?")
    spare = new_edge("K", a.id, b.id)
    things = [a, a_key, *own, b, b_key, *target, z, z_key, *other, edge, weight, spare]
    return Schema({t.id: t for t in things})


def first_rows(schema: Schema) -> State:
    """Three of A and B, two edges, nothing else."""
    state = State(schema)
    a, b, edge = schema.at("A"), schema.at("B"), schema.at("L")
    numbers = {p.name: p.id for p in schema.properties(a.id)}
    for i in (1, 2, 3):
        row = {"k": f"a{i}", "n": i, "e": "xyx"[i - 1], "s": f"s{i}", "q": i, "u": i, "g": [i]}
        row["m"] = 4 if i == 3 else None
        state = state.putting(a.id, f"a{i}", {numbers[n]: v for n, v in row.items()})
        own = {p.name: p.id for p in schema.properties(b.id)}
        state = state.putting(b.id, f"b{i}", {own["k"]: f"b{i}", own["v"]: i})
    weight = schema.at("L.w").id
    state = state.putting(edge.id, "l1", {weight: 1, ENDS: ("a1", "b1")})
    return state.putting(edge.id, "l2", {weight: None, ENDS: ("a2", "b2")})


# -- schema steps ----------------------------------------------------------------------------------


def _add(owner: str, name: str, text: str, **facts: Any) -> Step:
    def step(schema: Schema) -> Schema:
        return schema.having(new_property(schema.at(owner).id, name, text, **facts))

    return step


def _say(what: str, *said: tuple[Fact, Any]) -> Step:
    def step(schema: Schema) -> Schema:
        thing = schema.at(what)
        for fact, value in said:
            thing = thing.said(fact, value)
        return schema.having(thing)

    return step


def _rule(what: str, fact: Callable[[int], Fact], value: Any = True) -> Step:
    def step(schema: Schema) -> Schema:
        owner, number = schema.at(what.partition(".")[0]), schema.at(what).id
        return schema.having(owner.said(fact(number), value))

    return step


def _drop(*names: str) -> Step:
    return lambda schema: schema.without(*(schema.at(name) for name in names))


def _add_node(name: str, *own: tuple[str, str]) -> Step:
    def step(schema: Schema) -> Schema:
        node, key = new_node(name)
        return schema.having(node, key, *(new_property(node.id, n, text) for n, text in own))

    return step


def _add_edge(name: str, source: str, target: str) -> Step:
    def step(schema: Schema) -> Schema:
        edge = new_edge(name, schema.at(source).id, schema.at(target).id)
        return schema.having(edge, new_property(edge.id, "x", "I32?"))

    return step


def _ends_of_k(schema: Schema) -> Schema:
    return _say("K", (TARGET, schema.at("A").id))(schema)


def _other_ends_of_k(schema: Schema) -> Schema:
    return _say("K", (SOURCE, schema.at("B").id))(schema)


def _key_of_z(schema: Schema) -> Schema:
    return _say("Z", (KEY, (schema.at("Z.t").id,)))(schema)


def _widen_list(schema: Schema) -> Schema:
    return _say("A.g", (TYPE, "[I64]"))(schema)


STEPS: dict[str, Step | tuple[Step, ...]] = {
    "none": (),
    "add-null": _add("A", "p", "I32?"),
    "add-null-other": _add("A", "p", "String?"),
    "add-null-fill": _add("A", "f", "String?", backfill="f0"),
    "add-req-fill": _add("A", "r", "I32", backfill=7),
    "add-req-fill-other": _add("A", "r", "I32", backfill=8),
    "add-req-empty": _add("Z", "h", "I32"),
    "rename": _say("A.n", (NAME, "nn")),
    "rename-other": _say("A.n", (NAME, "nx")),
    "rename-into": _say("A.m", (NAME, "p")),
    "rename-type": _say("A", (NAME, "AA")),
    "drop-prop": _drop("A.n"),
    "drop-edge": _drop("L"),
    "drop-node": _drop("B", "L", "K"),
    "drop-empty": _drop("Z"),
    "drop-again": (_drop("A.n"), _add("A", "n", "I32?")),
    "widen": _say("A.n", (TYPE, "I64")),
    "widen-float": _say("A.n", (TYPE, "F64")),
    "widen-list": _widen_list,
    "enum-more": _say("A.e", (VALUES, frozenset("wxyz"))),
    "enum-less": _say("A.e", (VALUES, frozenset("xy"))),
    "enum-text": _say("A.e", (VALUES, MISSING)),
    "text-enum": _say("A.s", (VALUES, frozenset(("s1", "s2", "s3")))),
    "unique": _rule("A.n", unique),
    "unique-drop": _rule("A.u", unique, MISSING),
    "range": _rule("A.n", lambda n: in_range(n, 0, 50)),
    "range-drop": _rule("A.u", lambda n: in_range(n, 0, 90), MISSING),
    "required-fill": _say("A.m", (NULLABLE, MISSING), (BACKFILL, 5)),
    "required": _say("A.q", (NULLABLE, MISSING)),
    "nullable": _say("A.u", (NULLABLE, True)),
    "note": _say("A.n", (DESCRIPTION, "how many")),
    "retype": _say("Z.t", (TYPE, "I64")),
    "retype-other": _say("Z.o", (TYPE, "String")),
    "key": _key_of_z,
    "card": _say("L", (CARD, (0, 1))),
    "edge": _add_edge("N", "A", "B"),
    "edge-other": _add_edge("N", "B", "A"),
    "ends": _ends_of_k,
    "ends-other": _other_ends_of_k,
    "node": _add_node("W", ("x", "I32?")),
    "node-other": _add_node("W", ("x", "String?"), ("y", "I32?")),
}


def steps_of(name: str) -> tuple[Step, ...]:
    """The changes of a step, each of them a commit."""
    found = STEPS[name]
    return found if isinstance(found, tuple) else (found,)


# -- deeds -----------------------------------------------------------------------------------------

Put = tuple[str, Any]
"""``put``, ``delete`` or ``cut``, and what."""
Deed = Callable[[State, str], Sequence[Put]]
"""From a state and a side, ``s`` or ``t``."""

WISHES: dict[str, dict[str, list[Any]]] = {
    "s": {"n": [30], "e": ["w", "x"], "s": ["sn", "s1"], "q": [5], "u": [11], "m": [2],
          "t": ["t1", 5], "o": [1, "o"], "v": [9], "w": [3], "g": [[2**20]]},
    "t": {"n": [30], "e": ["z", "y"], "s": ["tn", "s2"], "q": [6], "u": [12], "m": [2],
          "t": ["t2", 6], "o": [2, "p"], "v": [9], "w": [4], "g": [[2**40], [3]]},
}  # fmt: skip
"""Values by the names that properties began with; the first that is allowed counts."""
NEW: dict[str, list[Any]] = {"s": [21, "x1"], "t": [22, "x2"]}


def allowed(schema: Schema, thing: Thing, value: Any) -> bool:
    """Whether rules about a single value let it pass."""
    if not fits(value, thing.facts[TYPE]) or value not in thing.facts.get(VALUES, (value,)):
        return False
    assert thing.owner is not None
    ranges = [f for f in schema.things[thing.owner].facts if f[0] == "range"]
    return all(
        (f[2] is None or value >= f[2]) and (f[3] is None or value <= f[3])
        for f in ranges
        if members(f) == (thing.id,)
    )


def row_of(state: State, thing: Thing, side: str, first: Schema, **own: Any) -> tuple[str, Row]:
    """A new row of a type, with its id."""
    row: Row = {}
    for prop in state.schema.properties(thing.id):
        known = first.things.get(prop.id)
        name = known.name if known is not None else None
        if name in own:
            row[prop.id] = own[name]
            continue
        wishes = NEW[side] if name is None else WISHES[side].get(name, ["?"])
        if prop.name == "k":
            wishes = [own["id"]]
        fitting = [v for v in wishes if allowed(state.schema, prop, v)]
        row[prop.id] = fitting[0] if fitting else None
        if row[prop.id] is None and prop.required:
            row[prop.id] = {"String": "?"}.get(prop.facts[TYPE], 0)
    if ENDS in own:
        row[ENDS] = own[ENDS]
        return own["id"], row
    return id_of(state.schema, thing, row) or own["id"], row


class Deeds:
    """What is done to rows; knows what the properties were called at first."""

    def __init__(self, first: Schema) -> None:
        self._first = first

    def _type(self, state: State, name: str) -> Thing | None:
        """A type by the name that it began with, or has."""
        known = self._first.find(name)
        if known is not None and known.id in state.schema.things:
            return state.schema.things[known.id]
        return state.schema.find(name)

    def _number(self, state: State, name: str) -> int | None:
        known = self._first.at(name).id
        return known if known in state.schema.things else None

    def nothing(self, state: State, side: str) -> Sequence[Put]:
        return ()

    def insert(self, state: State, side: str) -> Sequence[Put]:
        """A row of each node type: one of its own, and of A one that both sides make alike."""
        found: list[Put] = []
        for name in ("A", "B", "Z", "W"):
            thing = self._type(state, name)
            if thing is not None:
                entity, row = row_of(state, thing, side, self._first, id=f"{name.lower()}-{side}")
                found.append(("put", (thing.id, entity, row)))
        thing = self._type(state, "B")
        if thing is not None:
            entity, row = row_of(state, thing, "s", self._first, id="both")
            found.append(("put", (thing.id, entity, row)))
        return found

    def _update(self, state: State, entity: str, **values: Any) -> Sequence[Put]:
        thing = self._type(state, "A")
        if thing is None or entity not in state.of(thing.id):
            return ()
        row = dict(state.of(thing.id)[entity])
        for name, value in values.items():
            number = self._number(state, f"A.{name}")
            if number is not None and allowed(state.schema, state.schema.things[number], value):
                row[number] = value
        return [("put", (thing.id, entity, row))]

    def update(self, state: State, side: str) -> Sequence[Put]:
        """Both change a1, in different properties, and a2 alike."""
        own = {"n": 41} if side == "s" else {"s": "s3", "g": [7, 8]}
        return [*self._update(state, "a1", **own), *self._update(state, "a2", m=3)]

    def clash(self, state: State, side: str) -> Sequence[Put]:
        """Both change the same property of a1; the target to what a rule of the other may forbid."""
        return self._update(state, "a1", n=42 if side == "s" else 61, q=8)

    def delete(self, state: State, side: str) -> Sequence[Put]:
        """Of A a1, which has an edge, and a3; of B b3."""
        found: list[Put] = []
        for name, entity in (("A", "a1"), ("A", "a3"), ("B", "b3")):
            thing = self._type(state, name)
            if thing is not None and entity in state.of(thing.id):
                found.append(("delete", (thing.id, entity)))
        return found

    def again(self, state: State, side: str) -> Sequence[Put]:
        """Of A a2 is deleted, with its edge, and made again with other values."""
        thing = self._type(state, "A")
        if thing is None or "a2" not in state.of(thing.id):
            return ()
        _, row = row_of(state, thing, side, self._first, id="a2", u=2)
        return [("delete", (thing.id, "a2")), ("put", (thing.id, "a2", row))]

    def draw(self, state: State, side: str) -> Sequence[Put]:
        """An edge of each type, to nodes that others delete."""
        found: list[Put] = []
        places = {"A": ("a3", "a1"), "B": ("b3", "b1")}
        for name in ("L", "K", "N"):
            thing = self._type(state, name)
            if thing is None:
                continue
            ends: list[str] = []
            for end, place in ((SOURCE, 0), (TARGET, 1)):
                known = self._first.things.get(thing.facts[end])
                own = places.get(known.name if known is not None else "", ())
                ends += [own[place]] if own else []
            if len(ends) == 2:
                entity, row = row_of(
                    state, thing, side, self._first, id=f"{name.lower()}-{side}", ends=tuple(ends)
                )
                found.append(("put", (thing.id, entity, row)))
        return found

    def cut(self, state: State, side: str) -> Sequence[Put]:
        """The edge of a1 goes, and that of a2 leads elsewhere."""
        thing = self._type(state, "L")
        if thing is None or "l1" not in state.of(thing.id):
            return ()
        found: list[Put] = [("cut", (thing.id, "l1"))]
        if "l2" in state.of(thing.id) and side == "t":
            row = {**state.of(thing.id)["l2"], ENDS: ("a2", "b3")}
            found.append(("put", (thing.id, "l2", row)))
        return found

    def later(self, state: State, side: str) -> Sequence[Put]:
        """After a merge: a row more of every node type, and another value in an old one."""
        found: list[Put] = []
        for thing in state.schema.types():
            if thing.kind != "node":
                continue
            own = {"u": 71 if side == "s" else 72, "n": 47 if side == "s" else 48}
            own["t"] = f"later-{side}" if self._text(state, thing) else (81 if side == "s" else 82)
            entity, row = row_of(
                state, thing, side, self._first, id=f"later-{side}",
                **{n: v for n, v in own.items() if self._fits(state, thing, n, v)},
            )  # fmt: skip
            found.append(("put", (thing.id, entity, row)))
        return [*found, *self._update(state, "a2", **({"q": 77} if side == "s" else {"s": "s1"}))]

    def _text(self, state: State, thing: Thing) -> bool:
        known = self._first.at("Z.t").id
        return known in state.schema.things and state.schema.things[known].facts[TYPE] == "String"

    def _fits(self, state: State, thing: Thing, name: str, value: Any) -> bool:
        owner = next((t for t in self._first.types() if t.id == thing.id), None)
        known = self._first.find(f"{owner.name}.{name}") if owner is not None else None
        if known is None or known.id not in state.schema.things:
            return False
        return allowed(state.schema, state.schema.things[known.id], value)


DEEDS = ("nothing", "insert", "update", "clash", "delete", "again", "draw", "cut")
