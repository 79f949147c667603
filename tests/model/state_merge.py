"""Commits and merges of whole states in plain Python, schemas and rows together.

    commits -> common ancestors -> one schema -> rows in its columns -> three ways -> rules

A merge comes to one state, or to a list of what the user has to decide. Where a decision takes back
what broke a rule, the entities that took part are *loose*: what becomes of them is not told to the
last value, only that the whole is valid and holds nothing that was never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from schema_merge import (
    OTHER,
    SCHEMA,
    Clash,
    SchemaMerge,
    canonical,
    made_one,
    renumbered_state,
    same_additions,
)
from schema_model import (
    BACKFILL,
    MISSING,
    NULLABLE,
    UNKNOWN,
    Fact,
    Schema,
    Thing,
    contradictions,
)
from schema_states import Broken, Entity, Misfit, Row, State, broken, read

_serials = count()


class Commit:
    """A node of the commit graph with what it shows."""

    def __init__(self, state: State, *parents: Commit) -> None:
        self.state = state
        self.parents = parents
        self.serial = next(_serials)
        self.generation: int = 1 + max((p.generation for p in parents), default=0)

    def ancestors(self) -> set[Commit]:
        """With the commit itself."""
        found: set[Commit] = set()
        waiting = [self]
        while waiting:
            commit = waiting.pop()
            if commit not in found:
                found.add(commit)
                waiting += commit.parents
        return found


def merge_bases(one: Commit, other: Commit) -> list[Commit]:
    """Common ancestors that are behind no other one; the newest first."""
    common = one.ancestors() & other.ancestors()
    behind = {p for c in common for p in c.parents}
    return sorted(common - behind, key=lambda c: (-c.generation, -c.serial))


@dataclass
class Outcome:
    """What a merge comes to."""

    outcome: str
    state: State
    clashes: list[Clash] = field(default_factory=list)
    """All that is certain to be told."""
    more: list[Clash] = field(default_factory=list)
    """What may be told as well."""
    complete: bool = True
    """Whether these are all. Where schemas do not fit, rows may be told about or not."""
    loose: frozenset[Entity] = frozenset()
    loose_schema: bool = False
    sources: tuple[State, ...] = ()
    """Where a value of a loose entity may come from."""


def merge(ours: Commit, theirs: Commit, prefer: str | None = None) -> Outcome:
    """Bring what theirs changed into ours."""
    bases = merge_bases(ours, theirs)
    if theirs in bases:
        return Outcome("already_up_to_date", ours.state)
    if ours in bases:
        return Outcome("fast_forward", theirs.state)
    return _ThreeWay(bases, ours.state, theirs.state, prefer).run()


def revert(ours: Commit, commit: Commit, prefer: str | None = None) -> Outcome:
    """Take a commit back: a merge of its first parent with the commit itself as the base."""
    return _ThreeWay([commit], ours.state, commit.parents[0].state, prefer).run()


class _ThreeWay:
    def __init__(self, bases: list[Commit], ours: State, theirs: State, prefer: str | None) -> None:
        self._bases = bases
        base_schemas = [b.state.schema for b in bases]
        numbers = canonical(ours.schema, theirs.schema, *base_schemas)
        ours, theirs = (renumbered_state(s, numbers) for s in (ours, theirs))
        self._canonical = numbers
        self._base_schema = self._virtual_schema(bases)
        more = same_additions(self._base_schema, ours.schema, theirs.schema)
        theirs = renumbered_state(theirs, more)
        self._aliases = {n: more.get(k, k) for n, k in numbers.items()} | more
        self._sides = {"ours": ours, "theirs": theirs}
        self._prefer = prefer
        self._seen: dict[tuple[int, int], dict[str, Any]] = {}

    # -- the base --------------------------------------------------------------------------------

    def _virtual_schema(self, commits: list[Commit]) -> Schema:
        def older(place: int) -> Schema:
            return self._virtual_schema(_older(commits, place))

        return made_one([c.state.schema for c in commits], older, self._canonical)

    def _base_rows(self, into: Schema, type_id: int, commits: list[Commit] | None = None) -> Any:
        """Rows of the common ancestors in the columns of a schema; UNKNOWN where they disagree."""
        if commits is None:
            if type_id not in self._base_schema.things:
                return {}  # What ancestors dropped is new again, with all of its rows.
            commits = self._bases
        made: dict[str, Any] | None = None
        for place, commit in enumerate(commits):
            state = renumbered_state(commit.state, self._canonical)
            known = {n: t for n, t in state.schema.things.items() if n in self._base_schema.things}
            own = {
                i: read(r, Schema(known), into, type_id, since=self._base_schema)
                for i, r in state.of(type_id).items()
            }
            if made is None:
                made = own
                continue
            older: dict[str, Any] | None = None
            for entity_id in {*made, *own}:
                mine, other = made.get(entity_id), own.get(entity_id)
                if mine is UNKNOWN or same_row(mine, other):
                    continue
                if older is None:
                    older = self._base_rows(into, type_id, _older(commits, place))
                row, kind, disputed = decide(older.get(entity_id), mine, other)
                if kind == "delete_vs_update":
                    made[entity_id] = UNKNOWN
                elif row is None:
                    made.pop(entity_id, None)
                else:
                    made[entity_id] = {**row, **dict.fromkeys(disputed, UNKNOWN)}
        return made or {}

    # -- what sides did to rows --------------------------------------------------------------------

    def _touched(self, name: str, thing: Thing) -> bool:
        """Whether a side changed rows of a type, or values of a property."""
        side = self._sides[name]
        if thing.owner is None:
            was = self._base_rows(side.schema, thing.id)
            now = side.of(thing.id)
            return was.keys() != now.keys() or any(not same_row(was[i], now[i]) for i in now)
        was = self._base_rows(side.schema, thing.owner)
        return any(
            was[i][thing.id] != row.get(thing.id)
            if was.get(i) not in (None, UNKNOWN)
            else row.get(thing.id) is not None
            for i, row in side.of(thing.owner).items()
        )

    # -- the whole -------------------------------------------------------------------------------

    def run(self) -> Outcome:
        overrides: dict[tuple[int, Fact], Any] = {}
        undone: set[Entity] = set()
        loose: set[Entity] = set()
        loose_schema = False
        ours, theirs = self._sides["ours"], self._sides["theirs"]
        while True:
            work = SchemaMerge(
                self._base_schema, ours.schema, theirs.schema, self._prefer, self._touched,
                overrides,
            )  # fmt: skip
            schema = work.run()
            schema = Schema(schema.things, {**schema.aliases, **self._aliases})
            if work.clashes:
                return Outcome("conflicts", ours, work.clashes, complete=False)
            state, clashes = self._rows(schema, work.revived, undone)
            wrong = broken(state)
            told = [self._told(b, schema) for b in wrong]
            if clashes:
                return Outcome("conflicts", ours, clashes, told)
            if not wrong:
                return Outcome(
                    "merged", state, loose=frozenset(loose), loose_schema=loose_schema,
                    sources=(ours, theirs, *self._read_bases(schema)),
                )  # fmt: skip
            if self._prefer is None:
                return Outcome("conflicts", ours, told)
            before = (len(overrides), len(undone))
            for one in wrong:
                loose |= {(one.type_id, i) for i in one.ids} | one.nodes
                decided = self._decided(one)
                if decided is not None and (one.thing, one.fact) not in overrides:
                    overrides[one.thing, one.fact] = decided
                    if one.thing not in self._sides[self._prefer].schema.things:
                        loose_schema = True
                elif decided is None or (one.thing, one.fact) in overrides:
                    undone |= self._undoable(one, schema)
            if (len(overrides), len(undone)) == before or contradictions(schema):
                return Outcome("conflicts", ours, told)

    def _read_bases(self, schema: Schema) -> list[State]:
        return [renumbered_state(b.state, self._canonical) for b in self._bases]

    def _rows(
        self, schema: Schema, revived: Mapping[int, str], undone: set[Entity]
    ) -> tuple[State, list[Clash]]:
        rows: dict[int, dict[str, Row]] = {}
        clashes: list[Clash] = []
        for thing in schema.types():
            base = self._base_rows(schema, thing.id)
            shown = {name: self._shown(name, schema, thing, base, revived, undone)
                     for name in ("ours", "theirs")}  # fmt: skip
            own: dict[str, Row] = {}
            for entity_id in {*shown["ours"], *shown["theirs"]}:
                mine, other = shown["ours"].get(entity_id), shown["theirs"].get(entity_id)
                row, kind, disputed = decide(base.get(entity_id), mine, other)
                if kind is not None and self._prefer is None:
                    names = self._names(thing.id)
                    one = frozenset({entity_id})
                    clashes.append(
                        Clash(frozenset({kind}), names, one, f"{sorted(map(str, disputed))}")
                    )
                elif kind == "delete_vs_update":
                    row = mine if self._prefer == "ours" else other
                elif kind is not None and self._prefer == "theirs":
                    assert other is not None
                    row = {**(row or {}), **{n: other[n] for n in disputed}}
                if row is not None:
                    own[entity_id] = row
            rows[thing.id] = own
        return State(schema, rows), clashes

    def _shown(
        self,
        name: str,
        schema: Schema,
        thing: Thing,
        base: Mapping[str, Any],
        revived: Mapping[int, str],
        undone: set[Entity],
    ) -> dict[str, Row]:
        """The rows of a side in the columns of the merged schema."""
        if revived.get(thing.id) == name:
            return {i: row for i, row in base.items() if row is not UNKNOWN}
        side = self._sides[name]
        kept = {p.id for p in schema.properties(thing.id) if revived.get(p.id) == name}
        found: dict[str, Row] = {}
        for entity_id, row in side.of(thing.id).items():
            was = base.get(entity_id)
            known = self._kept(name, schema, thing, entity_id, was, kept)
            found[entity_id] = read(row, side.schema, schema, thing.id, known, self._base_schema)
        if self._prefer is not None and name == OTHER[self._prefer]:
            for type_id, entity_id in undone:
                if type_id == thing.id:
                    found.pop(entity_id, None)
                    if base.get(entity_id) not in (None, UNKNOWN):
                        found[entity_id] = base[entity_id]
        return found

    def _kept(
        self, name: str, schema: Schema, thing: Thing, entity_id: str, was: Any, kept: set[int]
    ) -> Row | None:
        """What a side dropped and a decision kept: as it was, or as the other side has it."""
        if not kept or was in (None, UNKNOWN):
            return None
        side = self._sides[OTHER[name]]
        row = side.of(thing.id).get(entity_id)
        theirs = read(row, side.schema, schema, thing.id, since=self._base_schema) if row else {}
        return {n: theirs.get(n) if was[n] is UNKNOWN else was[n] for n in kept}

    # -- rules -----------------------------------------------------------------------------------

    def _said(self, schema: Schema, thing: int, fact: Fact) -> Any:
        found = schema.things.get(thing)
        return None if found is None else found.get(fact)

    def _changed_by(self, name: str, one: Broken) -> bool:
        """Whether a side changed a rule since the base."""
        own = self._said(self._sides[name].schema, one.thing, one.fact)
        if one.type_id not in self._base_schema.things:  # Of a new type: gave it the rule alone.
            other = self._said(self._sides[OTHER[name]].schema, one.thing, one.fact)
            is_rule = own is False if one.fact == NULLABLE else own not in (None, MISSING)
            return is_rule and other is not None and own != other
        return own is not None and own != self._said(self._base_schema, one.thing, one.fact)

    def _decided(self, one: Broken) -> Any:
        """What the preferred side says about a rule that only the other one changed."""
        assert self._prefer is not None
        other = OTHER[self._prefer]
        if self._changed_by(self._prefer, one) or not self._changed_by(other, one):
            return None
        said = self._said(self._sides[self._prefer].schema, one.thing, one.fact)
        if said is None:  # It does not know the thing; a rule of it is left away.
            return True if one.fact == NULLABLE else None
        return said

    def _undoable(self, one: Broken, schema: Schema) -> set[Entity]:
        """Entities that take part and that the other side changed."""
        assert self._prefer is not None
        side = self._sides[OTHER[self._prefer]]
        found: set[Entity] = set()
        for type_id, entity_id in {(one.type_id, i) for i in one.ids} | one.nodes:
            was = self._base_rows(schema, type_id).get(entity_id)
            row = side.of(type_id).get(entity_id)
            now = None if row is None else read(
                row, side.schema, schema, type_id, since=self._base_schema
            )  # fmt: skip
            if not same_row(was, now):
                found.add((type_id, entity_id))
        return found

    def _told(self, one: Broken, schema: Schema) -> Clash:
        changed = any(self._changed_by(name, one) for name in self._sides)
        kinds = SCHEMA if changed else frozenset({one.kind})
        if (
            one.kind == "orphan_edge"
        ):  # New ends are a rule, and an end that is missing is one, too.
            kinds |= {one.kind}
        ids: frozenset[str | None] = one.ids | ({None} if one.kind != "orphan_edge" else set())
        return Clash(kinds, self._names(one.type_id), ids, f"{one.kind} {one.fact}")

    def _names(self, type_id: int) -> frozenset[str]:
        schemas = (self._base_schema, *(s.schema for s in self._sides.values()))
        return frozenset(s.things[type_id].name for s in schemas if type_id in s.things)


def _older(commits: list[Commit], place: int) -> list[Commit]:
    """The common ancestors of a commit with those before it."""
    found = [b for c in commits[:place] for b in merge_bases(c, commits[place])]
    return list(dict.fromkeys(found))


def same_row(one: Any, other: Any) -> bool:
    if one is UNKNOWN or other is UNKNOWN:
        return False
    if one is None or other is None:
        return one is other
    return one.keys() == other.keys() and all(one[n] == other[n] for n in one)


def decide(base: Any, ours: Row | None, theirs: Row | None) -> tuple[Row | None, str | None, set]:
    """One entity: the row, the kind of conflict, the disputed properties."""
    if same_row(ours, theirs) or same_row(base, theirs):
        return ours, None, set()
    if same_row(base, ours):
        return theirs, None, set()
    if ours is None or theirs is None:
        return ours, "delete_vs_update", set()
    differing = {n for n in ours if ours[n] != theirs[n]}
    if base is None:
        return ours, "divergent_insert", differing
    if base is UNKNOWN:
        return ours, "divergent_update", differing
    result, disputed = dict(ours), set()
    for name in differing:
        if base[name] == ours[name]:
            result[name] = theirs[name]
        elif base[name] != theirs[name]:
            disputed.add(name)
    return result, "divergent_update" if disputed else None, disputed


def strangers(outcome: Outcome, found: State) -> list[tuple[Entity, Any]]:
    """Values of loose entities that no side, no base and no backfill had."""
    wrong: list[tuple[Entity, Any]] = []
    for type_id, entity_id in outcome.loose:
        row = found.of(type_id).get(entity_id)
        if row is None:
            continue
        rows = [s.of(type_id).get(entity_id) for s in outcome.sources]
        if not any(rows):
            wrong.append(((type_id, entity_id), row))
            continue
        for number, value in row.items():
            known = [r.get(number) for r in rows if r is not None]
            thing = found.schema.things.get(number)
            known.append(thing.facts.get(BACKFILL) if thing is not None else None)
            if value is not None and value not in known:
                wrong.append(((type_id, entity_id), value))
    return wrong


__all__ = ["Commit", "Misfit", "Outcome", "merge", "merge_bases", "revert", "strangers"]
