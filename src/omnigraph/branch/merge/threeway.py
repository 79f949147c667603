"""The three-way decision for many entities at once. Pure: arrays in, arrays out.

    base, ours, theirs -> [three-way] -> per value: whose it is; per entity: in conflict or not

*Ours* is the branch that is merged into, *theirs* the branch that is merged. Without conflict:

| base | theirs against base | ours against base | result |
|---|---|---|---|
| any | same | any | ours |
| any | changed | same | theirs |
| any | changed | changed, equal | that |
| absent | inserted | inserted differently | ``divergent_insert`` |
| present | deleted or updated | updated or deleted | ``delete_vs_update`` |
| present | updated | updated differently | ``divergent_update`` |

"Changed" is asked of every property for itself, or of the whole row. What the base does not know
counts as changed by both. A conflict is undecided here; until it is decided, ours is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
import pyarrow as pa

from omnigraph.branch.merge.images import (
    Choices,
    Mask,
    MergeImages,
    MergeProperty,
    Rows,
    chosen,
    same,
)
from omnigraph.errors import UsageError

OURS, THEIRS, BASE, GIVEN = range(4)
"""Where a value comes from: numbers of states in the order of ``assemble``."""


class Granularity(StrEnum):
    """What two sides may not both change."""

    PROPERTY = "property"
    """One property of one entity (default)."""
    ROW = "row"
    """Any two properties of one entity."""

    @staticmethod
    def of(text: str) -> Granularity:
        """From what a user said."""
        if text not in list(Granularity):
            raise UsageError(f"not a granularity: {text!r}", hint="say 'property' or 'row'")
        return Granularity(text)


class Contested(IntEnum):
    """How the two sides disagree about one entity."""

    NO = 0
    DIVERGENT_INSERT = 1
    DIVERGENT_UPDATE = 2
    DELETE_VS_UPDATE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDecision:
    """What becomes of every entity. Immutable: a decision makes a new one."""

    presence: Choices
    """Per entity the state that says whether it exists: ``OURS``, ``THEIRS`` or ``BASE``."""
    choices: Mapping[str, Choices]
    """Per property and entity the state that the value comes from."""
    contested: Choices
    """Per entity a ``Contested``."""
    disputed: Mapping[str, Mask]
    """Per property the entities for which two sides have different values and both changed it."""

    @property
    def conflicts(self) -> Rows:
        """The entities that are in conflict, ascending."""
        return np.flatnonzero(self.contested)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """How the states relate, per property."""

    same_sides: Mapping[str, Mask]
    """Ours and theirs have the same value."""
    ours_changed: Mapping[str, Mask]
    theirs_changed: Mapping[str, Mask]


def three_way(
    properties: Sequence[MergeProperty],
    base: MergeImages,
    ours: MergeImages,
    theirs: MergeImages,
    granularity: Granularity,
) -> RowDecision:
    """Decide what can be decided; say what cannot."""
    compared = _compare(properties, base, ours, theirs)
    both = ours.present & theirs.present
    choices, disputed = _values(properties, compared, both, granularity)
    any_disputed = _any(disputed.values(), len(base))
    ours_row, theirs_row = (
        _any(changed.values(), len(base))
        for changed in (compared.ours_changed, compared.theirs_changed)
    )
    contested = np.zeros(len(base), np.int8)
    # Where the base may have had the entity, two values are an update: neither side is known to
    # have inserted it.
    new = ~base.present & ~base.doubtful
    contested[any_disputed & new] = Contested.DIVERGENT_INSERT
    contested[any_disputed & ~new] = Contested.DIVERGENT_UPDATE
    # One side is gone. It went alone, or the other side changed what is left.
    gone_here, gone_there = ~ours.present & theirs.present, ours.present & ~theirs.present
    gone_and_changed = (gone_here & theirs_row) | (gone_there & ours_row)
    contested[~new & gone_and_changed] = Contested.DELETE_VS_UPDATE
    presence = np.full(len(base), OURS, np.int8)
    presence[(gone_there & ~new & ~ours_row) | (gone_here & new)] = THEIRS
    one_sided = presence == THEIRS
    choices = {name: np.where(one_sided, np.int8(THEIRS), own) for name, own in choices.items()}
    return RowDecision(presence=presence, choices=choices, contested=contested, disputed=disputed)


def assemble(
    properties: Sequence[MergeProperty], decided: RowDecision, states: Sequence[MergeImages]
) -> MergeImages:
    """The images that decisions make of ``ours, theirs, base`` and, fourth, given values."""
    present = np.zeros(len(decided.presence), np.bool_)
    for number, state in enumerate(states):
        present |= (decided.presence == number) & state.present
    columns = {
        column: chosen(column, decided.choices[p.name], states)
        for p in properties
        for column in p.columns
    }
    return MergeImages(present=present, rows=pa.table(columns))


def virtual(
    properties: Sequence[MergeProperty], base: MergeImages, one: MergeImages, other: MergeImages
) -> MergeImages:
    """Two common ancestors as one: what they disagree about without an answer is unknown."""
    decided = three_way(properties, base, one, other, Granularity.PROPERTY)
    images = assemble(properties, decided, (one, other, base))
    doubt = (decided.contested == Contested.DELETE_VS_UPDATE) | one.doubtful | other.doubtful
    unknown: dict[str, Mask] = {}
    for prop in properties:
        choice = decided.choices[prop.name]
        inherited = np.where(
            choice == THEIRS, other.unknown_in(prop.name), one.unknown_in(prop.name)
        )
        unknown[prop.name] = decided.disputed[prop.name] | inherited
    # Properties have their columns together; in the order of a state it can be put among others.
    rows = images.rows.select(one.rows.column_names)
    return MergeImages(present=images.present, rows=rows, unknown=unknown, presence_unknown=doubt)


def _compare(
    properties: Sequence[MergeProperty], base: MergeImages, ours: MergeImages, theirs: MergeImages
) -> _Compared:
    same_sides: dict[str, Mask] = {}
    changed: tuple[dict[str, Mask], dict[str, Mask]] = ({}, {})
    for prop in properties:
        guess = ours.unknown_in(prop.name) | theirs.unknown_in(prop.name)
        same_sides[prop.name] = same(prop, ours, theirs) & ~guess
        # A base that had no row, or does not know its value, is equal to nothing.
        nothing = ~base.present | base.unknown_in(prop.name)
        for side, into in zip((ours, theirs), changed, strict=True):
            into[prop.name] = nothing | ~same(prop, base, side) | side.unknown_in(prop.name)
    return _Compared(same_sides=same_sides, ours_changed=changed[0], theirs_changed=changed[1])


def _values(
    properties: Sequence[MergeProperty], compared: _Compared, both: Mask, granularity: Granularity
) -> tuple[dict[str, Choices], dict[str, Mask]]:
    """Whose value each property takes where both sides have the entity, and the disputed ones."""
    ours_changed, theirs_changed = compared.ours_changed, compared.theirs_changed
    if granularity is Granularity.ROW:
        # All properties of a row are decided together.
        rows = [_any(c.values(), len(both)) for c in (ours_changed, theirs_changed)]
        ours_changed, theirs_changed = ({p.name: c for p in properties} for c in rows)
    choices: dict[str, Choices] = {}
    disputed: dict[str, Mask] = {}
    for prop in properties:
        name = prop.name
        differ = both & ~compared.same_sides[name]
        theirs = differ & theirs_changed[name] & ~ours_changed[name]
        choices[name] = np.where(theirs, np.int8(THEIRS), np.int8(OURS))
        disputed[name] = differ & theirs_changed[name] & ours_changed[name]
    return choices, disputed


def _any(masks: Iterable[Mask], count: int) -> Mask:
    result = np.zeros(count, np.bool_)
    for mask in masks:
        result |= mask
    return result
