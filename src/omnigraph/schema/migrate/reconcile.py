"""Two schemas that grew out of one, made one again: by stable number, fact by fact.

    base, ours, theirs -> facts -> [reconcile] -> a schema, or what somebody has to decide

A fact that only one side changed is as that side says. Both sides may say the same. What both added
under one name is one thing, with the number of ours. Everything else is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from omnigraph.errors import SchemaError
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.migrate.constraints import Rule, member_order
from omnigraph.schema.migrate.desired import resolve
from omnigraph.schema.migrate.facts import Fact, Facts, Thing, Things, catalog_of, things_of
from omnigraph.schema.render import render

Prefer = Literal["ours", "theirs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaText:
    """A schema and its text."""

    catalog: Catalog
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaConflict:
    """Something that both sides say differently."""

    entity_kind: str
    """``interface``, ``node``, ``edge``; ``schema`` where the whole does not fit together."""
    type_name: str
    property_name: str | None
    message: str
    """With {ours} and {theirs} for the names of the sides."""
    base: str | None = None
    ours: str | None = None
    theirs: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    """One schema, unless there are conflicts."""

    schema: SchemaText
    conflicts: tuple[SchemaConflict, ...] = ()
    renumbered: Mapping[int, int] = field(default_factory=dict[int, int])
    """Numbers of theirs that go on as numbers of ours: types, table lives and properties."""
    numbers_used: int = 0
    """How many numbers are new: properties that an interface of one side brings to a node of the
    other."""


def reconcile(
    base: SchemaText,
    ours: SchemaText,
    theirs: SchemaText,
    *,
    prefer: Prefer | None = None,
    numbers_from: int = 0,
) -> Reconciled:
    """Merge two schemas. ``prefer`` decides conflicts; those of the whole remain.

    New numbers, where any are needed, are handed out from ``numbers_from`` on.
    """
    if theirs.catalog == base.catalog or theirs.catalog == ours.catalog:
        return Reconciled(schema=ours)
    if ours.catalog == base.catalog:
        return Reconciled(schema=theirs)
    return _Merge(base.catalog, ours, theirs, prefer, numbers_from).run()


_MISSING = object()


class _Merge:
    def __init__(
        self,
        base: Catalog,
        ours: SchemaText,
        theirs: SchemaText,
        prefer: Prefer | None,
        numbers_from: int,
    ) -> None:
        self._numbers_from = numbers_from
        self._base = things_of(base)
        self._ours = things_of(ours.catalog)
        self._our_schema = ours
        self._next_id = max(ours.catalog.next_id, theirs.catalog.next_id)
        their_things = things_of(theirs.catalog)
        self._renumbered = _same_additions(self._base, self._ours, their_things)
        self._theirs = renumber(their_things, self._renumbered)
        self._prefer = prefer
        self._revived: set[int | None] = set()
        """Types that one side dropped and that go on all the same."""
        self._conflicts: list[SchemaConflict] = []

    def run(self) -> Reconciled:
        merged: Things = {}
        for number in [*self._ours, *(n for n in self._theirs if n not in self._ours)]:
            thing = self._thing(number)
            if thing is not None:
                merged[number] = thing
        merged = {n: t for n, t in merged.items() if t.owner is None or t.owner in merged}
        self._check_whole(merged)
        if self._conflicts:
            return Reconciled(schema=self._our_schema, conflicts=tuple(self._conflicts))
        return self._finished(merged)

    def _finished(self, merged: Things) -> Reconciled:
        catalog = catalog_of(merged, self._next_id)
        if things_of(catalog) == self._ours:
            return Reconciled(schema=self._our_schema, renumbered=self._renumbered)
        source = render(catalog)
        try:
            compile_schema(source)
        except SchemaError as e:
            conflict = SchemaConflict(
                entity_kind="schema",
                type_name="schema",
                property_name=None,
                message=f"the two schemas do not fit together: {e.diagnostics[0].message}",
            )
            return Reconciled(schema=self._our_schema, conflicts=(conflict,))
        # The order of the text, as every catalog has it.
        written = resolve(catalog, source, numbers_from=self._numbers_from)
        return Reconciled(
            schema=SchemaText(catalog=written.catalog, source=source),
            renumbered=self._renumbered,
            numbers_used=written.numbers_used,
        )

    # -- one thing -------------------------------------------------------------------------------

    def _thing(self, number: int) -> Thing | None:
        base, ours, theirs = (side.get(number) for side in (self._base, self._ours, self._theirs))
        if ours is None or theirs is None:
            kept = ours or theirs
            if base is None or kept is None or kept.owner in self._revived:
                return kept  # Only one side has ever had it, or it goes on with its owner.
            return self._dropped(base, kept, by_ours=ours is None)
        before = base.facts if base is not None else {}
        facts: Facts = {}
        for fact in [*ours.facts, *(f for f in theirs.facts if f not in ours.facts)]:
            value = self._fact(ours, fact, before, theirs)
            if value is not _MISSING:
                facts[fact] = value
        return replace(ours, facts=facts)

    def _dropped(self, base: Thing, kept: Thing, *, by_ours: bool) -> Thing | None:
        """One side has dropped it. What the other said about it since would be lost."""
        side = self._theirs if by_ours else self._ours
        new = [t for t in side.values() if t.owner == base.id and t.id not in self._base]
        if kept.facts == base.facts and not new:
            return None
        dropper, other = ("{ours}", "{theirs}") if by_ours else ("{theirs}", "{ours}")
        if self._prefer is not None:
            if (self._prefer == "ours") == by_ours:
                return None
            self._revived.add(kept.id)
            return kept
        message = f"{self._named(base)} was dropped on {dropper} and changed on {other}"
        self._conflict(base, message)
        return None

    def _fact(self, ours: Thing, fact: Fact, before: Facts, theirs: Thing) -> Any:
        was, mine, other = (
            facts.get(fact, _MISSING) for facts in (before, ours.facts, theirs.facts)
        )
        if mine == other or other == was:
            return mine
        if mine == was:
            return other
        if fact[0] == "values" and all(isinstance(v, frozenset) for v in (was, mine, other)):
            return (mine & other) | (mine - was) | (other - was)
        if self._prefer is not None:
            return mine if self._prefer == "ours" else other
        texts = [self._text(fact, value, ours) for value in (was, mine, other)]
        what = _WORDS.get(fact[0], fact[0])
        subject = f"{what} of {self._named(ours)}"
        message = f"{subject} is {texts[1]} on {{ours}} and {texts[2]} on {{theirs}}"
        if was is not _MISSING:
            message += f" (it was {texts[0]})"
        self._conflict(ours, message, *texts)
        return mine

    # -- the whole -------------------------------------------------------------------------------

    def _check_whole(self, merged: Things) -> None:
        """Names stand once, and everything that is referred to is there."""
        seen: dict[tuple[str, int | None, str], Thing] = {}
        for thing in merged.values():
            name = thing.name.lower() if thing.kind == "edge" else thing.name
            other = seen.setdefault((thing.kind, thing.owner, name), thing)
            if other is not thing:
                message = f"two sides call different things {self._named(thing)}"
                self._conflict(thing, message)
            for number in _references(thing):
                if number not in merged:
                    gone = self._ours.get(number) or self._theirs.get(number)
                    what = self._named(gone) if gone is not None else str(number)
                    message = f"{self._named(thing)} needs {what}, which the other side dropped"
                    self._conflict(thing, message)

    # -- words -----------------------------------------------------------------------------------

    def _conflict(self, thing: Thing, message: str, *texts: str) -> None:
        owner = self._find(thing.owner) if thing.owner is not None else thing
        was, mine, other = texts if len(texts) == 3 else (None, None, None)
        self._conflicts.append(
            SchemaConflict(
                entity_kind=owner.kind,
                type_name=owner.name,
                property_name=thing.name if thing.owner is not None else None,
                message=message,
                base=was,
                ours=mine,
                theirs=other,
            )
        )

    def _find(self, number: int) -> Thing:
        for side in (self._ours, self._theirs, self._base):
            if number in side:
                return side[number]
        raise KeyError(number)

    def _named(self, thing: Thing) -> str:
        if thing.owner is None:
            return f"{thing.kind} {thing.name}"
        return f"{self._find(thing.owner).name}.{thing.name}"

    def _text(self, fact: Fact, value: Any, thing: Thing) -> str:
        what, which = fact
        if value is _MISSING:
            return "nothing"
        if isinstance(which, Rule):
            return f"@{which.word}"
        if what in ("source", "target") and isinstance(value, int):
            return self._find(value).name
        if what == "key":
            return ", ".join(self._find(m).name if isinstance(m, int) else m for m in value)
        if what == "cardinality":
            return f"@card({value.low}..{'' if value.high is None else value.high})"
        if isinstance(value, frozenset):
            names: Iterable[str] = sorted(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
            return f"enum({', '.join(names)})"
        return f"'{value}'" if isinstance(value, str) else str(value)


_WORDS = {
    "name": "the name",
    "type": "the type",
    "values": "the values",
    "nullable": "the nullability",
    "key": "the key",
    "source": "the source",
    "target": "the target",
    "cardinality": "the cardinality",
    "embed": "the embedding",
    "description": "the description",
    "instruction": "the instruction",
    "annotations": "the annotations",
}


def _references(thing: Thing) -> Iterable[int]:
    """Numbers that must be there for this to mean something."""
    for (what, which), value in thing.facts.items():
        members: Sequence[Any] = ()
        if isinstance(which, Rule):
            members = which.members
        elif what == "implements":
            members = (which,)
        elif what in ("source", "target"):
            members = (value,)
        elif what == "key":
            members = value
        elif what == "embed":
            members = (value[0],)
        yield from (m for m in members if isinstance(m, int))


def _same_additions(base: Things, ours: Things, theirs: Things) -> dict[int, int]:
    """What both sides added under one name, as numbers of theirs to numbers of ours."""
    found: dict[int, int] = {}

    def key(thing: Thing, owners: Mapping[int, int]) -> tuple[str, int | None, str]:
        owner = thing.owner
        return thing.kind, owners.get(owner, owner) if owner is not None else None, thing.name

    mine = {key(t, {}): t for n, t in ours.items() if n not in base}
    # Owners come before what they own.
    for number, thing in theirs.items():
        if number in base or number in ours:
            continue
        same = mine.get(key(thing, found))
        if same is not None:
            found[number] = same.id
            if same.kind in ("node", "edge"):
                found[thing.facts["incarnation", None]] = same.facts["incarnation", None]
    return found


def renumber(things: Things, numbers: Mapping[int, int]) -> Things:
    """The same things under other numbers."""
    if not numbers:
        return things

    def moved(value: Any) -> Any:
        if isinstance(value, Rule):
            members = tuple(moved(m) for m in value.members)
            return replace(value, members=tuple(sorted(members, key=member_order)))
        if isinstance(value, tuple):
            return tuple(moved(v) for v in value)  # pyright: ignore[reportUnknownVariableType]
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return numbers.get(value, value) if is_number else value

    found: Things = {}
    for number, thing in things.items():
        facts = {
            (what, moved(which)): moved(value) if what in _NUMBERED else value
            for (what, which), value in thing.facts.items()
        }
        owner = thing.owner
        found[numbers.get(number, number)] = Thing(
            id=numbers.get(number, number),
            kind=thing.kind,
            owner=numbers.get(owner, owner) if owner is not None else None,
            facts=facts,
        )
    return found


_NUMBERED = ("incarnation", "key", "source", "target", "embed")
