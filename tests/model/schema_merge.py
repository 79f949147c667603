"""Merging schemas in plain Python: three ways, fact by fact, with identity by number.

base, ours, theirs -> [one schema], or what the user has to decide
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from schema_model import (
    ANY_CARD,
    BACKFILL,
    CARD,
    KEY,
    MISSING,
    SOURCE,
    TARGET,
    TYPE,
    UNKNOWN,
    Fact,
    Schema,
    Thing,
    contradictions,
    holds_on,
    literal,
    references,
)
from schema_states import State


class Ambiguous(Exception):
    """A case that the ADR leaves open: one schema has both numbers of one thing."""


@dataclass(frozen=True)
class Clash:
    """Something that the user has to decide, as far as it is certain how it is told."""

    kinds: frozenset[str]
    types: frozenset[str] | None
    """The names that the type may be told by; None for any."""
    ids: frozenset[str | None] | None
    """Any of these; None for any."""
    why: str

    def matches(self, kind: str, type_name: str, entity_id: str | None) -> bool:
        return (
            kind in self.kinds
            and (self.types is None or type_name in self.types)
            and (self.ids is None or entity_id in self.ids)
        )


SCHEMA = frozenset({"schema_conflict"})
Touched = Callable[[str, Thing], bool]
"""Whether a side changed rows of a type, or values of a property."""
OTHER = {"ours": "theirs", "theirs": "ours"}


# -- identity --------------------------------------------------------------------------------------


def canonical(*schemas: Schema) -> dict[int, int]:
    """Other numbers to those that things go on as, where the first schemas have the last word."""
    groups: dict[int, set[int]] = {}
    for schema in schemas:
        for other, kept in schema.aliases.items():
            whole = groups.get(other, {other}) | groups.get(kept, {kept})
            for number in whole:
                groups[number] = whole
    found: dict[int, int] = {}
    for whole in {frozenset(g) for g in groups.values()}:
        for schema in schemas:
            if len(whole & schema.things.keys()) > 1:
                raise Ambiguous
        ranked = [n for schema in schemas for n in sorted(whole & schema.things.keys())]
        first = ranked[0] if ranked else min(whole)
        found |= {n: first for n in whole if n != first}
    return found


def renumbered(schema: Schema, numbers: Mapping[int, int]) -> Schema:
    """The same schema under other numbers."""
    if not numbers:
        return schema

    def moved(fact: Fact) -> Fact:
        if fact[0] == "unique":
            return ("unique", tuple(sorted(numbers.get(n, n) for n in fact[1])))
        return ("range", numbers.get(fact[1], fact[1]), *fact[2:]) if fact[0] == "range" else fact

    def value_of(fact: Fact, value: Any) -> Any:
        if fact in (SOURCE, TARGET):
            return numbers.get(value, value)
        return tuple(numbers.get(n, n) for n in value) if fact == KEY else value

    things = {
        numbers.get(n, n): replace(
            t,
            id=numbers.get(n, n),
            owner=numbers.get(t.owner, t.owner) if t.owner is not None else None,
            facts={moved(f): value_of(f, v) for f, v in t.facts.items()},
        )
        for n, t in schema.things.items()
    }
    return replace(schema, things=things)


def renumbered_state(state: State, numbers: Mapping[int, int]) -> State:
    if not numbers:
        return state
    rows = {
        numbers.get(t, t): {
            i: {numbers.get(n, n): v for n, v in row.items()} for i, row in own.items()
        }
        for t, own in state.rows.items()
    }
    return State(renumbered(state.schema, numbers), rows)


def same_additions(base: Schema, ours: Schema, theirs: Schema) -> dict[int, int]:
    """What both sides added under one name: numbers of theirs to numbers of ours."""
    found: dict[int, int] = {}
    mine = {(t.kind, t.owner, t.name): n for n, t in ours.things.items() if n not in base.things}
    for number, thing in sorted(theirs.things.items(), key=lambda item: item[1].owner is not None):
        if number in base.things or number in ours.things:
            continue
        owner = found.get(thing.owner, thing.owner) if thing.owner is not None else None
        same = mine.get((thing.kind, owner, thing.name))
        if same is not None and same not in theirs.things:
            found[number] = same
    return found


# -- facts -----------------------------------------------------------------------------------------


def merged_fact(was: Any, mine: Any, other: Any) -> Any:
    """One fact; UNKNOWN where both changed it, to different values."""
    if mine == other or other == was:
        return mine
    if mine == was:
        return other
    if all(isinstance(v, frozenset) for v in (was, mine, other)):
        return (mine & other) | (mine - was) | (other - was)
    return UNKNOWN


@dataclass
class SchemaMerge:
    """Two schemas that grew out of one. All three have the same numbers for the same things."""

    base: Schema
    ours: Schema
    theirs: Schema
    prefer: str | None
    touched: Touched
    overrides: Mapping[tuple[int, Fact], Any] = field(default_factory=dict)
    """Facts that are decided already."""
    clashes: list[Clash] = field(default_factory=list)
    revived: dict[int, str] = field(default_factory=dict)
    """Things that go on although a side dropped them, with that side."""
    virtual: bool = False
    """What cannot be decided is unknown, and no conflict."""

    def run(self) -> Schema:
        """The merged schema; ``clashes`` says whether it counts."""
        things: dict[int, Thing] = {}
        numbers = list(dict.fromkeys([*self.ours.things, *self.theirs.things]))
        of_types = [n for n in numbers if self._any(n).owner is None]
        for number in of_types:
            self._put(things, number)
        for number in numbers:
            owner = self._any(number).owner
            if owner is not None and owner in things:
                self._put(things, number)
        self._bring_rules_back(things)
        aliases = {**self.base.aliases, **self.theirs.aliases, **self.ours.aliases}
        made = Schema(things, aliases)
        if self.virtual:
            return made
        made = self._referring(made)
        for why, type_id in contradictions(made) if not self.clashes else ():
            self._clash(type_id, why)
        return made

    def _bring_rules_back(self, things: dict[int, Thing]) -> None:
        """A property that goes on has the rules that the side which kept it has for it."""
        for number, dropper in self.revived.items():
            side = self.theirs if dropper == "ours" else self.ours
            owner = side.things[number].owner
            if owner is None or owner not in things:
                continue
            for fact, member in references(side.things[owner]):
                is_rule = fact[0] in ("unique", "range") and (owner, fact) not in self.overrides
                if is_rule and member == number:
                    value = side.things[owner].get(fact)
                    things[owner] = things[owner].said(fact, value)

    def _any(self, number: int) -> Thing:
        return self.ours.things.get(number) or self.theirs.things[number]

    def _put(self, things: dict[int, Thing], number: int) -> None:
        found = self._thing(number)
        if found is None:
            return
        for (thing, fact), value in self.overrides.items():
            if thing == number:
                found = found.said(fact, value)
        things[number] = found

    def _clash(self, type_id: int | None, why: str) -> None:
        self.clashes.append(Clash(SCHEMA, None, frozenset({None}), f"{why} ({type_id})"))

    def _thing(self, number: int) -> Thing | None:
        base, ours, theirs = (s.things.get(number) for s in (self.base, self.ours, self.theirs))
        if ours is not None and theirs is not None:
            return self._facts(base, ours, theirs)
        kept = ours or theirs
        assert kept is not None
        keeper = "theirs" if ours is None else "ours"
        if base is None or kept.owner in self.revived:
            return kept
        if not base.doubtful and not self._changed(base, kept, keeper):
            return None
        if self.virtual:
            return replace(kept, doubtful=True)
        if self.prefer is None:
            self._clash(kept.owner or number, f"{kept.name} was dropped and changed")
            return None
        if self.prefer != keeper:
            return None
        self.revived[number] = OTHER[keeper]
        return kept

    def _changed(self, base: Thing, kept: Thing, keeper: str) -> bool:
        """Whether a side changed what the other dropped: its declaration or its rows."""
        side = self.ours if keeper == "ours" else self.theirs
        own = side.properties(kept.id)
        return (
            not _same(base, kept)
            or any(
                p.id not in self.base.things or not _same(self.base.things[p.id], p) for p in own
            )
            or self.touched(keeper, kept)
        )

    def _facts(self, base: Thing | None, ours: Thing, theirs: Thing) -> Thing:
        facts: dict[Fact, Any] = {}
        for fact in dict.fromkeys([*ours.facts, *theirs.facts]):
            if (ours.id, fact) in self.overrides:
                value = self.overrides[ours.id, fact]
                if value is not MISSING:
                    facts[fact] = value
                continue
            was = base.get(fact) if base is not None else MISSING
            value = merged_fact(was, ours.get(fact), theirs.get(fact))
            if value is UNKNOWN and not self.virtual:
                if self.prefer is None:
                    self._clash(ours.owner or ours.id, f"both changed {fact} of {ours.name}")
                value = theirs.get(fact) if self.prefer == "theirs" else ours.get(fact)
            if value is not MISSING and (fact, value) != (CARD, ANY_CARD):
                facts[fact] = value
        made = replace(ours, facts=facts, doubtful=False)
        fill = facts.get(BACKFILL)
        if self.virtual or fill is None:
            return made
        said_of = [s.facts[TYPE] for s in (ours, theirs) if s.facts.get(BACKFILL) == fill]
        if not any(holds_on(was, facts[TYPE]) for was in said_of) or not literal(made, fill):
            return made.said(BACKFILL, MISSING)
        return made

    def _referring(self, made: Schema) -> Schema:
        """Without references to what is gone."""
        while True:
            lost = [
                (thing, fact, number)
                for thing in made.things.values()
                for fact, number in references(thing)
                if number not in made.things
            ]
            if not lost:
                return made
            thing, fact, number = lost[0]
            if self.prefer is None:
                self._clash(thing.id, f"{thing.name} refers to what the other side dropped")
                return made
            side = self.ours if self.prefer == "ours" else self.theirs
            if number in side.things:
                made = self._revive(made, side, number)
            elif fact in (SOURCE, TARGET):
                made = made.without(thing)
            else:
                made = made.having(thing.said(fact, MISSING))

    def _revive(self, made: Schema, side: Schema, number: int) -> Schema:
        assert self.prefer is not None
        thing = side.things[number]
        self.revived[number] = OTHER[self.prefer]
        if thing.owner is not None and thing.owner not in made.things:
            return self._revive(made, side, thing.owner)
        return made.having(thing, *side.properties(number))


def _same(base: Thing, kept: Thing) -> bool:
    return base.facts.keys() == kept.facts.keys() and all(
        base.facts[f] == kept.facts[f] for f in base.facts
    )


def made_one(
    parts: Iterable[Schema], older: Callable[[int], Schema], numbers: Mapping[int, int]
) -> Schema:
    """Several common ancestors as one; ``older`` gives the base of the part with that place."""
    made: Schema | None = None
    for place, part in enumerate(parts):
        one = renumbered(part, numbers)
        if made is None:
            made = one
            continue
        work = SchemaMerge(
            renumbered(older(place), numbers), made, one, None, lambda *_: False, virtual=True
        )
        made = work.run()
    assert made is not None
    return made
