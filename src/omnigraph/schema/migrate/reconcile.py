"""Two schemas that grew out of one, made one again: by stable number, fact by fact.

    base, ours, theirs -> facts -> [reconcile] -> a schema, or what the user has to decide

A fact that only one side changed is as that side says. Both sides may say the same. What both added
under one name is one thing, with the number of ours. Everything else is a conflict, and a choice
decides it (ADR 0019).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from omnigraph.errors import SchemaError
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.format import render
from omnigraph.schema.migrate.desired import resolve
from omnigraph.schema.migrate.facts import (
    ConstraintRule,
    Fact,
    Facts,
    Thing,
    Things,
    catalog_of,
    things_of,
)
from omnigraph.schema.migrate.renumbering import aliases_of, one_numbering, renumber, same_additions
from omnigraph.schema.migrate.steps import FACT_WORDS, MISSING, UNKNOWN, fact_text
from omnigraph.schema.migrate.type_changes import TypeChange, type_change

Prefer = Literal["ours", "theirs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaText:
    """A schema and its text."""

    catalog: Catalog
    source: str


@dataclass(frozen=True, kw_only=True)
class SchemaChoices:
    """What was decided about a schema before two are made one."""

    prefer: Prefer | None = None
    """For every conflict that nothing else decides."""
    things: Mapping[int, Prefer] = field(default_factory=dict[int, Prefer])
    """For conflicts about a type, with its properties, or about one property; by number."""
    facts: Mapping[tuple[int, Fact], Prefer] = field(default_factory=dict[tuple[int, Fact], Prefer])
    """The side whose fact is taken although only one side changed it."""
    kept: frozenset[int] = frozenset()
    """What goes on although a side dropped it."""

    def side(self, thing: Thing) -> Prefer | None:
        """The side that decides conflicts about a thing."""
        own = self.things.get(thing.id)
        owner = self.things.get(thing.owner) if thing.owner is not None else None
        return own or owner or self.prefer


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
    numbers: Mapping[int, int] = field(default_factory=dict[int, int])
    """Numbers of other states that go on as numbers of this schema: types, table lives and
    properties."""
    revived: Mapping[int, Prefer] = field(default_factory=dict[int, Prefer])
    """What goes on although a side dropped it, with the side that has it."""
    is_schema: bool = True
    """Whether it compiles. If not, it shows what it would have, which is reported as a conflict."""
    numbers_used: int = 0
    """How many numbers are new: properties that an interface of one side brings to a node of the
    other."""


def reconcile(
    base: SchemaText | Things,
    ours: SchemaText,
    theirs: SchemaText,
    *,
    choices: SchemaChoices | None = None,
    numbers_from: int = 0,
) -> Reconciled:
    """Merge two schemas. ``choices`` decide conflicts; some of the whole remain.

    The base may be made of several (``virtual_base``). New numbers, where any are needed, are
    handed out from ``numbers_from`` on.
    """
    known = one_numbering([ours.catalog, theirs.catalog])
    before = things_of(base.catalog) if isinstance(base, SchemaText) else base
    decided = choices or SchemaChoices()
    if not known and isinstance(base, SchemaText) and not decided.facts and not decided.kept:
        if theirs.catalog in (base.catalog, ours.catalog):
            return Reconciled(schema=ours)
        if ours.catalog == base.catalog:
            return Reconciled(schema=theirs)
    before = renumber(before, known)
    mine, other = (renumber(things_of(s.catalog), known) for s in (ours, theirs))
    added = same_additions(before, mine, other)
    numbers = one_numbering([ours.catalog, theirs.catalog], added.items())
    return _Merge(before, ours, theirs, numbers, decided, numbers_from).run()


class _Merge:
    def __init__(
        self,
        base: Things,
        ours: SchemaText,
        theirs: SchemaText,
        numbers: Mapping[int, int],
        choices: SchemaChoices,
        numbers_from: int,
    ) -> None:
        self._numbers = numbers
        self._numbers_from = numbers_from
        self._base = renumber(base, numbers)
        self._ours = things_of(ours.catalog)
        self._theirs = renumber(things_of(theirs.catalog), numbers)
        self._our_schema, self._their_schema = ours, theirs
        self._next_id = max(ours.catalog.next_id, theirs.catalog.next_id)
        self._choices = choices
        self._revived: dict[int, Prefer] = {}
        """What one side dropped and goes on all the same, with the side that has it."""
        self._conflicts: list[SchemaConflict] = []

    def run(self) -> Reconciled:
        present = self._present()
        merged = {n: self._thing(n, t) for n, t in present.items()}
        merged = self._whole(merged)
        if self._conflicts:
            return Reconciled(
                schema=self._our_schema, conflicts=tuple(self._conflicts), numbers=self._numbers
            )
        return self._finished(merged)

    def _finished(self, merged: Things) -> Reconciled:
        aliases = aliases_of(self._numbers)
        parts: dict[str, Any] = {"numbers": self._numbers, "revived": self._revived}
        if merged == self._ours:
            ours = self._our_schema
            catalog = replace(ours.catalog, aliases=aliases)
            return Reconciled(schema=replace(ours, catalog=catalog), **parts)
        catalog = catalog_of(merged, self._next_id, aliases)
        if merged == self._theirs:
            # The text is theirs with everything that only a text has.
            return Reconciled(
                schema=SchemaText(catalog=catalog, source=self._their_schema.source), **parts
            )
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
            text = SchemaText(catalog=catalog, source=source)
            return Reconciled(schema=text, conflicts=(conflict,), is_schema=False, **parts)
        # The order of the text, as every catalog has it.
        written = resolve(catalog, source, numbers_from=self._numbers_from)
        return Reconciled(
            schema=SchemaText(catalog=written.catalog, source=source),
            numbers_used=written.numbers_used,
            **parts,
        )

    # -- what there is ---------------------------------------------------------------------------

    def _present(self) -> Things:
        """Everything that goes on: types before what they own."""
        found: Things = {}
        both = {**self._theirs, **self._ours}
        for number in [*self._ours, *(n for n in self._theirs if n not in self._ours)]:
            thing = both[number]
            if thing.owner is not None and thing.owner not in found:
                continue
            if self._goes_on(thing):
                found[number] = thing
        return found

    def _goes_on(self, thing: Thing) -> bool:
        here, there = thing.id in self._ours, thing.id in self._theirs
        base = self._base.get(thing.id)
        if (here and there) or base is None:
            return True
        if thing.owner in self._revived:
            return True  # It goes on with its type.
        keeper: Prefer = "ours" if here else "theirs"
        if thing.id in self._choices.kept:
            self._revived[thing.id] = keeper
            return True
        if not _changed(base, thing, self._base, self._ours if here else self._theirs):
            return False
        side = self._choices.side(thing)
        if side == keeper:
            self._revived[thing.id] = keeper
            return True
        if side is None:
            dropper, other = ("{theirs}", "{ours}") if here else ("{ours}", "{theirs}")
            message = f"{self._named(base)} was dropped on {dropper} and changed on {other}"
            self._conflict(base, message)
        return False

    # -- one thing -------------------------------------------------------------------------------

    def _thing(self, number: int, thing: Thing) -> Thing:
        base, ours, theirs = (side.get(number) for side in (self._base, self._ours, self._theirs))
        if ours is None or theirs is None:
            taken = self._choices.facts.get((number, ("nullable", None)))
            if taken is not None and taken != ("theirs" if ours is None else "ours"):
                # The other side has no values for it, and was decided for.
                return replace(thing, facts={**thing.facts, ("nullable", None): True})
            return thing
        before = base.facts if base is not None else {}
        facts: Facts = {}
        for fact in [*ours.facts, *(f for f in theirs.facts if f not in ours.facts)]:
            value = self._fact(ours, fact, before, theirs)
            if value is not MISSING:
                facts[fact] = value
        if not _backfill_fits(facts, ours, theirs):
            del facts["backfill", None]
        return replace(ours, facts=facts)

    def _fact(self, ours: Thing, fact: Fact, before: Facts, theirs: Thing) -> Any:
        was, mine, other = (
            facts.get(fact, MISSING) for facts in (before, ours.facts, theirs.facts)
        )
        if mine == other:
            return mine
        taken = self._choices.facts.get((ours.id, fact)) or self._with_members(fact)
        if taken is not None:
            return mine if taken == "ours" else other
        if other == was:
            return mine
        if mine == was:
            return other
        if fact[0] == "values" and all(isinstance(v, frozenset) for v in (was, mine, other)):
            return (mine & other) | (mine - was) | (other - was)
        side = self._choices.side(ours)
        if side is not None:
            return mine if side == "ours" else other
        texts = [fact_text(fact, value, self._find) for value in (was, mine, other)]
        what = FACT_WORDS.get(fact[0], fact[0])
        subject = f"{what} of {self._named(ours)}"
        message = f"{subject} is {texts[1]} on {{ours}} and {texts[2]} on {{theirs}}"
        if was is not MISSING and was is not UNKNOWN:
            message += f" (it was {texts[0]})"
        self._conflict(ours, message, *texts)
        return mine

    def _with_members(self, fact: Fact) -> Prefer | None:
        """The side that a rule about something revived comes from."""
        which = fact[1]
        members = which.members if isinstance(which, ConstraintRule) else (which,)
        return next((self._revived[m] for m in members if m in self._revived), None)

    # -- the whole -------------------------------------------------------------------------------

    def _whole(self, merged: Things) -> Things:
        """Names stand once, and everything that is referred to is there."""
        while (changed := self._referring(merged)) is not None:
            merged = changed
        seen: dict[tuple[str, int | None, str], Thing] = {}
        for thing in merged.values():
            name = thing.name.lower() if thing.kind == "edge" else thing.name
            other = seen.setdefault((thing.kind, thing.owner, name), thing)
            if other is not thing:
                message = f"two sides call different things {self._named(thing)}"
                self._conflict(thing, message)
        return merged

    def _referring(self, merged: Things) -> Things | None:
        """The same without something that refers to what is gone, or with that; None if all is
        there, or reported as conflicts."""
        missing: list[tuple[Thing, str]] = []
        for thing in merged.values():
            for fact, number in _references(thing):
                if number in merged:
                    continue
                has: Prefer = "ours" if number in self._ours else "theirs"
                side = self._choices.side(thing)
                if side is None:
                    gone = self._ours.get(number) or self._theirs.get(number)
                    what = self._named(gone) if gone is not None else str(number)
                    message = f"{self._named(thing)} needs {what}, which the other side dropped"
                    missing.append((thing, message))
                elif side == has:
                    return self._with(merged, number, has)
                else:
                    return _without(merged, thing, fact)
        for thing, message in missing:
            self._conflict(thing, message)
        return None

    def _with(self, merged: Things, number: int, side: Prefer) -> Things:
        """The same with something that a side dropped, and with what that owns."""
        things = self._ours if side == "ours" else self._theirs
        self._revived[number] = side
        owned = {n: t for n, t in things.items() if t.owner == number}
        return {**merged, number: things[number], **owned}

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


def _references(thing: Thing) -> Iterable[tuple[Fact, int]]:
    """Facts with numbers that must be there for them to mean something."""
    for fact, value in thing.facts.items():
        what, which = fact
        members: Sequence[Any] = ()
        if isinstance(which, ConstraintRule):
            members = which.members
        elif what == "implements":
            members = (which,)
        elif what in ("source", "target"):
            members = (value,)
        elif what == "key":
            members = value
        elif what == "embed":
            members = (value[0],)
        yield from ((fact, m) for m in members if isinstance(m, int))


def _without(merged: Things, thing: Thing, fact: Fact) -> Things:
    """The same without a fact; without the thing where it is nothing without the fact."""
    if fact[0] in ("source", "target"):
        return {n: t for n, t in merged.items() if thing.id not in (n, t.owner)}
    facts = {f: value for f, value in thing.facts.items() if f != fact}
    return {**merged, thing.id: replace(thing, facts=facts)}


# -- several bases ---------------------------------------------------------------------------------


def _backfill_fits(facts: Facts, *sides: Thing) -> bool:
    """Whether a backfill, if there is one, is a value of the type that its property gets.

    One side may have brought it, for another type than the one that was decided for.
    """
    fill = facts.get(("backfill", None))
    if fill is None:
        return True
    kind, values = facts["type", None], facts.get(("values", None))
    said_of = [s.facts["type", None] for s in sides if s.facts.get(("backfill", None)) == fill]
    if all(type_change(was, kind) is TypeChange.OTHER for was in said_of):
        return False
    return fill.copy_of is not None or values is None or fill.value in values


def _changed(was: Thing, kept: Thing, before: Things, side: Things) -> bool:
    """Whether a side that kept a thing said anything new about it or what it owns."""
    if kept.facts != was.facts:
        return True
    own, old = (
        {n: t.facts for n, t in things.items() if t.owner == was.id} for things in (side, before)
    )
    return own != old


def virtual_base(base: Callable[[], Things], one: Things, other: Things) -> Things:
    """Two common ancestors as one, over what *they* have in common.

    What they contradict each other about is unknown: then both sides of a merge count as changed.
    """
    if one == other:
        return one
    before = base()
    found: Things = {}
    for number in {**one, **other}:
        was, mine, theirs = (things.get(number) for things in (before, one, other))
        if mine is None or theirs is None:
            side = one if theirs is None else other
            kept = side[number]
            if was is None:
                found[number] = kept
            elif _changed(was, kept, before, side):
                # Changed here and dropped there: both sides of the merge count as changed.
                unknown: Facts = dict.fromkeys(kept.facts, UNKNOWN)
                found[number] = replace(kept, facts={**unknown, ("name", None): kept.name})
            continue
        facts: Facts = {}
        for fact in {**mine.facts, **theirs.facts}:
            values = [
                thing.facts.get(fact, MISSING) if thing is not None else MISSING
                for thing in (was, mine, theirs)
            ]
            value = _one_of(*values)
            if value is not MISSING:
                facts[fact] = value
        found[number] = replace(mine, facts=facts)
    return found


def _one_of(was: Any, mine: Any, other: Any) -> Any:
    if mine == other or other == was:
        return mine
    return other if mine == was else UNKNOWN
