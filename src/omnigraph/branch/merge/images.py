"""The rows of some entities in one state of a table, side by side with other states of them.

    deltas -> [images] -> three-way -> rows of the merge

Everything is aligned: row ``i`` of every ``Images`` of one merge is the same entity. A state that
does not have the entity has no row for it, and what its columns hold there means nothing. A virtual
base may moreover not know a value, or whether an entity existed: such a value equals nothing.
"""

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.sets import Mask
from omnigraph.schema.same_values import same_mask

Choices = npt.NDArray[np.int8]
Rows = npt.NDArray[np.int64]

ENDPOINTS = "endpoints"
"""The property that ``src`` and ``dst`` of an edge are together: an edge moves as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeProperty:
    """What is compared and taken as a whole: one column, or the two ends of an edge."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeImages:
    """One state of some entities."""

    present: Mask
    rows: pa.Table
    """As many rows as ``present`` has; the values of absent entities mean nothing."""
    unknown: Mapping[str, Mask] = field(default_factory=dict[str, Mask])
    """By property: where a virtual base cannot say what the value was."""
    presence_unknown: Mask | None = None
    """Where a virtual base cannot say whether the entity existed."""

    def __len__(self) -> int:
        return len(self.present)

    def unknown_in(self, name: str) -> Mask:
        """Where the value of a property is not known."""
        found = self.unknown.get(name)
        mask = np.zeros(len(self), np.bool_) if found is None else found
        return mask if self.presence_unknown is None else mask | self.presence_unknown

    @property
    def doubtful(self) -> Mask:
        """Where it is not known whether the entity existed."""
        found = self.presence_unknown
        return np.zeros(len(self), np.bool_) if found is None else found

    def take(self, rows: Rows) -> MergeImages:
        """Some of the entities."""
        found = self.presence_unknown
        return MergeImages(
            present=self.present[rows],
            rows=_taken(self.rows, rows),
            unknown={name: mask[rows] for name, mask in self.unknown.items()},
            presence_unknown=None if found is None else found[rows],
        )


def patched(images: MergeImages, rows: Rows, by: MergeImages) -> MergeImages:
    """The images with other states of some rows: ``by`` holds one image for each of ``rows``."""
    if not len(rows):
        return images
    places = np.arange(len(images), dtype=np.int64)
    places[rows] = len(images) + np.arange(len(rows), dtype=np.int64)
    both = pa.concat_tables([images.rows, by.rows])
    doubtful = _overlaid(images.doubtful, rows, by.doubtful)
    return MergeImages(
        present=_overlaid(images.present, rows, by.present),
        rows=_taken(both, places),
        unknown={
            name: _overlaid(images.unknown_in(name), rows, by.unknown_in(name))
            for name in {**images.unknown, **by.unknown}
        },
        presence_unknown=doubtful if doubtful.any() else None,
    )


def _taken(rows: pa.Table, places: Rows) -> pa.Table:
    # A type may have no column but its id: then there is nothing to take, and Arrow would refuse.
    return rows.take(pa.array(places)) if rows.num_columns else rows


def _overlaid(mask: Mask, rows: Rows, by: Mask) -> Mask:
    result = mask.copy()
    result[rows] = by
    return result


def absent(count: int, schema: pa.Schema) -> MergeImages:
    """A state without any of the entities."""
    return spread(np.zeros(count, np.bool_), schema.empty_table())


def spread(present: Mask, rows: pa.Table) -> MergeImages:
    """Rows of the entities that are there, put in their places among those that are not."""
    schema = pa.schema([f.with_nullable(True) for f in rows.schema])
    columns = rows.columns
    if not present.all():
        places = pa.array(np.cumsum(present) - 1, mask=~present)
        columns = [
            c.take(places) if len(c) else pa.chunked_array([pa.nulls(len(present), c.type)])
            for c in columns
        ]
    return MergeImages(present=present, rows=pa.table(columns, schema=schema))


def same(prop: MergeProperty, one: MergeImages, other: MergeImages) -> Mask:
    """Where two states agree in a property, as far as their columns tell."""
    result = np.ones(len(one), np.bool_)
    for name in prop.columns:
        result &= same_mask(one.rows.column(name), other.rows.column(name))
    return result


def chosen(column: str, choices: Choices, states: Sequence[MergeImages]) -> pa.ChunkedArray:
    """A column that takes each value from the state that is chosen for its row."""
    for number, state in enumerate(states):
        if (choices == number).all():
            return state.rows.column(column)
    count = len(choices)
    used = sorted({int(c) for c in np.unique(choices)})
    start = np.zeros(len(states), np.int64)
    start[used] = np.arange(len(used)) * count
    parts = [states[number].rows.column(column) for number in used]
    pool = pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)
    return pool.take(pa.array(start[choices] + np.arange(count, dtype=np.int64)))
