"""Things under other numbers, and things that two sides added under one name.

things of two sides -> [numbers] -> the same things, under the numbers that count here
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from omnigraph.schema.catalog import Backfill
from omnigraph.schema.migrate.constraints import ConstraintRule, member_order
from omnigraph.schema.migrate.facts import Thing, Things


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
