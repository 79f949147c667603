"""Things under other numbers, and things that two sides added under one name.

things of two sides -> [numbers] -> the same things, under the numbers that count here
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from omnigraph.schema.catalog import Backfill, Catalog
from omnigraph.schema.migrate.facts import ConstraintRule, Thing, Things, member_order


def same_additions(base: Things, ours: Things, theirs: Things) -> dict[int, int]:
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
        if isinstance(value, ConstraintRule):
            members = tuple(moved(m) for m in value.members)
            return replace(value, members=tuple(sorted(members, key=member_order)))
        if isinstance(value, Backfill):
            return replace(value, copy_of=moved(value.copy_of))
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


_NUMBERED = ("incarnation", "key", "source", "target", "embed", "backfill")


# -- aliases ---------------------------------------------------------------------------------------
# Numbers of one thing: what two branches added under one name has two, and a merge made it one.
#
#     catalogs that know aliases -> [aliases] -> every number as the one that counts here
#
# A merge keeps the number of ours and remembers that of theirs (``Catalog.aliases``). A
# comparison of two catalogs asks here first, or takes one thing for two.


def numbers_in_use(catalog: Catalog) -> set[int]:
    """The numbers of all that a catalog declares."""
    found = {n for t in catalog.types() for n in (t.id, t.incarnation)}
    owners = [*catalog.interfaces.values(), *catalog.types()]
    found |= {i.id for i in catalog.interfaces.values()}
    return found | {p.id for owner in owners for p in owner.properties}


def one_numbering(
    catalogs: Sequence[Catalog], more: Iterable[tuple[int, int]] = ()
) -> dict[int, int]:
    """Numbers that are to be read as others; what is not in it stays as it is.

    Of several numbers for one thing that of the first catalog counts which declares it. ``more``
    are pairs of numbers that are one beside those that the catalogs know.
    """
    classes = _classes([*(pair for c in catalogs for pair in c.aliases.items()), *more])
    if not classes:
        return {}
    used = [numbers_in_use(catalog) for catalog in catalogs]
    found: dict[int, int] = {}
    for members in classes:
        declared = [n for numbers in used for n in sorted(members & numbers)]
        chosen = declared[0] if declared else min(members)
        found |= {n: chosen for n in members if n != chosen}
    return found


def _classes(pairs: Iterable[tuple[int, int]]) -> list[set[int]]:
    """Numbers that belong together, directly or by way of others."""
    found: list[set[int]] = []
    for pair in pairs:
        joined = set(pair)
        apart = [c for c in found if not c & joined]
        for members in found:
            if members & joined:
                joined |= members
        found = [*apart, joined]
    return found


def aliases_of(numbers: Mapping[int, int]) -> dict[int, int]:
    """A numbering as what a catalog remembers of it."""
    return dict(sorted(numbers.items()))
