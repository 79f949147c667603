"""Three states of a table side by side: the common ancestor, ours and theirs.

    snapshots -> deltas -> [bases] -> images of what both sides touched -> three-way

No table is searched. An entity that theirs did not change keeps what ours says, so only the
changes of theirs count: their images before and after are in the delta from the base. The image of
ours is in the delta from the base to ours, and where it is not, ours is the base.

Lines that have been merged into each other have several best common ancestors. They are made one
(``threeway.virtual``), over the ancestors that *they* have in common, and so on back. All images
of older states are derived from theirs by a delta: what is not in it is the same.

Every image is read in the columns of the schema to come (``Frame``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import positions_in
from omnigraph.branch.delta import RowDelta, Side
from omnigraph.branch.merge.compared_columns import MergeFrame
from omnigraph.branch.merge.compared_states import History
from omnigraph.branch.merge.images import (
    Mask,
    MergeImages,
    MergeProperty,
    Rows,
    absent,
    chosen,
    patched,
    same,
    spread,
)
from omnigraph.branch.merge.threeway import virtual
from omnigraph.branch.pace import both
from omnigraph.manifest.snapshot import Snapshot, TablePin
from omnigraph.rules.table_delta import NO_IDS
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.migrate.column_changes import column_changes


class SideChanges(Protocol):
    """What one side changed in a table since the base, whatever the other side did."""

    @property
    def ids(self) -> pa.StringArray:
        """The entities that it changed."""
        ...

    def read(self, side: Side, rows: Rows) -> MergeImages:
        """Some of them as they were, or as they are there."""
        ...


@dataclass(frozen=True, kw_only=True)
class _InDelta:
    """The changes of a side that has the columns to come, since a single base."""

    delta: RowDelta
    frame: MergeFrame

    @property
    def ids(self) -> pa.StringArray:
        return self.delta.ids

    def read(self, side: Side, rows: Rows) -> MergeImages:
        return read(self.delta, side, rows, self.frame)


@dataclass(frozen=True, kw_only=True)
class _ByValue:
    """The same with several bases or schemas: by what the bases say together. Made on demand."""

    history: History
    bases: Sequence[Snapshot]
    side: Snapshot
    frame: MergeFrame

    @cached_property
    def _changed(self) -> tuple[pa.StringArray, MergeImages, MergeImages]:
        ids, before, after = _since(self.history, self.bases, self.side, self.frame, ())
        rows = np.flatnonzero(differing(self.frame.properties, before, after))
        return ids.take(pa.array(rows)), before.take(rows), after.take(rows)

    @property
    def ids(self) -> pa.StringArray:
        return self._changed[0]

    def read(self, side: Side, rows: Rows) -> MergeImages:
        return self._changed[1 if side == "before" else 2].take(rows)


def changes_since(
    history: History, bases: Sequence[Snapshot], side: Snapshot, graph_type: GraphType
) -> SideChanges:
    """What a side changed in a table, in its own columns, since bases that are made one."""
    states = [history.type(snapshot, graph_type.stable_id) for snapshot in bases]
    frame = MergeFrame.of(graph_type, states, history.backfills, {})
    return _ByValue(history=history, bases=bases, side=side, frame=frame)


@dataclass(frozen=True, kw_only=True)
class TableSides:
    """One table of a merge: what each side did to it since they were one."""

    frame: MergeFrame
    declared: GraphType | None
    """As ours declares it; None for a type that is new to ours."""
    alone: RowDelta
    """What theirs changed and ours did not, from the base to theirs."""
    ids: pa.StringArray
    """What both sides may have changed; the images are in this order."""
    base: MergeImages
    ours: MergeImages
    theirs: MergeImages
    shown: MergeImages
    """As the table of ours shows them without a change of rows: of what ours dropped and the merge
    brings back it has no values."""
    by_ours: SideChanges
    """Everything that ours changed."""
    foreign: bool
    """Whether a state has rows that were written under another declaration of the type."""
    adoptable: TablePin | None
    """The version of theirs, if ours is exactly the base and the columns are those to come."""

    @property
    def type(self) -> GraphType:
        """As the schema to come declares it."""
        return self.frame.type

    @property
    def properties(self) -> tuple[MergeProperty, ...]:
        """What is compared."""
        return self.frame.properties

    def place(self, entity_id: str) -> int:
        """Where an entity stands in ``ids``; -1 if it is not contested."""
        return int(self.ids.index(entity_id).as_py())


def is_changed(
    history: History, bases: Sequence[Snapshot], ours: Snapshot, graph_type: GraphType
) -> bool:
    """Whether theirs may have changed a table in a way that ours has not; by versions alone."""
    type_id = graph_type.stable_id
    theirs, mine, *before = (
        history.version(snapshot, type_id) for snapshot in (history.theirs, ours, *bases)
    )
    if "theirs" in history.restored(graph_type).values():
        return True  # Ours has no values for it.
    return theirs != mine and any(version != theirs for version in before)


def frame_of(
    history: History, bases: Sequence[Snapshot], ours: Snapshot, graph_type: GraphType
) -> MergeFrame:
    """The columns in which a type is compared."""
    states = [history.type(s, graph_type.stable_id) for s in (ours, history.theirs, *bases)]
    return MergeFrame.of(graph_type, states, history.backfills, history.restored(graph_type))


def table_sides(
    history: History, bases: Sequence[Snapshot], ours: Snapshot, graph_type: GraphType
) -> TableSides:
    """One table of a merge."""
    type_id, theirs = graph_type.stable_id, history.theirs
    frame = frame_of(history, bases, ours, graph_type)
    history.table(bases[0], type_id)  # Opened once, before two threads read it.
    ours_delta, first = both(
        lambda: history.delta(type_id, bases[0], ours),
        lambda: history.delta(type_id, bases[0], theirs),
    )
    states = [history.type(s, type_id) for s in (ours, theirs, bases[0])]
    adoptable = _adoptable(history, bases, ours, graph_type)
    if len(bases) > 1 or any(state != graph_type for state in states if state is not None):
        by_ours = _ByValue(history=history, bases=bases, side=ours, frame=frame)
        return _compared(by_ours, states[0], adoptable)
    # One base in the columns to come: what theirs alone changed is taken without a comparison.
    found = positions_in(first.ids, ours_delta.ids)
    rows = np.flatnonzero(found >= 0)
    ours_images = read(ours_delta, "after", found[rows], frame)
    return TableSides(
        frame=frame,
        declared=states[0],
        alone=first.select(found < 0),
        ids=first.ids.take(pa.array(rows)),
        base=read(first, "before", rows, frame),
        ours=ours_images,
        shown=ours_images,
        theirs=read(first, "after", rows, frame),
        by_ours=_InDelta(delta=ours_delta, frame=frame),
        foreign=False,
        adoptable=adoptable,
    )


def _adoptable(
    history: History, bases: Sequence[Snapshot], ours: Snapshot, graph_type: GraphType
) -> TablePin | None:
    """The version of theirs, if it is the result whatever rows it has."""
    type_id = graph_type.stable_id
    is_base = len(bases) == 1 and history.version(ours, type_id) == history.version(
        bases[0], type_id
    )
    declared = history.type(history.theirs, type_id)
    if not is_base or declared is None or column_changes(declared, graph_type, history.backfills):
        return None
    pin = history.pin(history.theirs, type_id)
    # A type that both sides added has a folder of its own on each.
    return pin if pin is not None and pin.name.path == graph_type.table_path else None


def _compared(
    by_ours: _ByValue, declared: GraphType | None, adoptable: TablePin | None
) -> TableSides:
    """The same with several bases or schemas: everything that theirs changed, value by value."""
    history, bases, frame = by_ours.history, by_ours.bases, by_ours.frame
    restored = [name for name, keeper in frame.restored.items() if keeper == "theirs"]
    ids, base, theirs = _since(history, bases, history.theirs, frame, restored)
    # The first base as theirs and their delta show it, and ours from there by its own delta.
    to_theirs = history.delta(frame.type.stable_id, bases[0], history.theirs)
    to_ours = history.delta(frame.type.stable_id, bases[0], by_ours.side)
    first = _shifted(theirs, ids, to_theirs, "before", frame)
    ours = shown = _shifted(first, ids, to_ours, "after", frame)
    for name, keeper in frame.restored.items():
        columns = next(p.columns for p in frame.properties if p.name == name)
        if keeper == "theirs":
            ours = _left_alone(ours, columns, base, theirs)
        else:
            theirs = _left_alone(theirs, columns, base, ours)
    return TableSides(
        frame=frame,
        declared=declared,
        alone=to_theirs.select(np.empty(0, np.int64)),
        ids=ids,
        base=base,
        ours=ours,
        theirs=theirs,
        shown=shown,
        by_ours=by_ours,
        foreign=True,
        adoptable=adoptable,
    )


def _since(
    history: History,
    bases: Sequence[Snapshot],
    side: Snapshot,
    frame: MergeFrame,
    restored: Sequence[str],
) -> tuple[pa.StringArray, MergeImages, MergeImages]:
    """The entities that a side may have changed, as the bases, made one, have them, and as it has
    them."""
    deltas = [history.delta(frame.type.stable_id, base, side) for base in bases]
    hidden_ids, hidden = _hidden_changes(history, bases, side, frame, restored)
    ids = _distinct([*(delta.ids for delta in deltas), hidden_ids])
    after = patched(absent(len(ids), frame.columns), positions_in(hidden_ids, ids), hidden)
    for delta in deltas:
        after = _shifted(after, ids, delta, "after", frame)
    return ids, _ancestor(history, bases, frame, ids, side, after), after


def _hidden_changes(
    history: History,
    bases: Sequence[Snapshot],
    side: Snapshot,
    frame: MergeFrame,
    restored: Sequence[str],
) -> tuple[pa.StringArray, MergeImages]:
    """Entities of a side that count although no delta has them.

    Those with a value in a property that the other side dropped and that goes on; and those with a
    null where the property came with a backfill: to a delta a null is no change of a row that had
    no such property.
    """
    type_id = frame.type.stable_id
    table, declared = history.table(side, type_id), history.type(side, type_id)
    if table is None or declared is None:
        return NO_IDS, absent(0, frame.columns)
    filled = _filled_since(history, bases, declared, frame)
    if not restored and not filled:
        return NO_IDS, absent(0, frame.columns)
    ids: list[pa.Array] = [NO_IDS]
    rows = [frame.columns.empty_table()]
    for batch in table.batches():
        images = frame.read(pa.Table.from_batches([batch]), declared)
        some = np.zeros(batch.num_rows, np.bool_)
        for prop in frame.properties:
            for column in prop.columns:
                if prop.name in restored:
                    some |= images.column(column).is_valid().to_numpy()
            if prop.name in filled:
                some |= images.column(prop.name).is_null().to_numpy()
        chosen = pa.array(np.flatnonzero(some))
        ids.append(batch.column("id").take(chosen))
        rows.append(images.take(chosen))
    found = pa.concat_arrays(ids)
    return found, MergeImages(present=np.ones(len(found), np.bool_), rows=pa.concat_tables(rows))


def _filled_since(
    history: History, bases: Sequence[Snapshot], declared: GraphType, frame: MergeFrame
) -> set[str]:
    """Properties of a side that filled the rows which a base has without them."""
    states = [history.type(base, frame.type.stable_id) for base in bases]
    known = [{p.id for p in state.properties} for state in states if state is not None]
    return {
        frame_property.name
        for p in declared.properties
        for frame_property in frame.type.properties
        if frame_property.id == p.id and p.backfill is not None and p.type.nullable
        if any(p.id not in ids for ids in known)
    }


def _left_alone(
    images: MergeImages, columns: Sequence[str], base: MergeImages, other: MergeImages
) -> MergeImages:
    """A side that dropped a property, as if it had left the values as they were.

    An entity without a base is as the side has it that kept the property; one that only this side
    has gets what a backfill gives it.
    """
    choices = np.where(base.present, np.int8(0), np.where(other.present, np.int8(1), np.int8(2)))
    rows = images.rows
    for column in columns:
        made = chosen(column, choices, (base, other, images))
        rows = rows.set_column(rows.column_names.index(column), rows.schema.field(column), made)
    return replace(images, rows=rows)


def _ancestor(
    history: History,
    snapshots: Sequence[Snapshot],
    frame: MergeFrame,
    ids: pa.StringArray,
    side: Snapshot,
    images: MergeImages,
) -> MergeImages:
    """The entities in several common ancestors, made one; ``images`` are those of a side."""

    def at(snapshot: Snapshot) -> MergeImages:
        delta = history.delta(frame.type.stable_id, snapshot, side)
        return _shifted(images, ids, delta, "before", frame)

    made = at(snapshots[0])
    for number in range(1, len(snapshots)):
        other = at(snapshots[number])
        rows = np.flatnonzero(differing(frame.properties, made, other))
        if not len(rows):
            continue
        older = history.bases(snapshots[:number], snapshots[number])
        some = ids.take(pa.array(rows))
        base = _ancestor(history, older, frame, some, side, images.take(rows))
        part = virtual(frame.properties, base, made.take(rows), other.take(rows))
        made = patched(made, rows, part)
    return made


def _distinct(parts: Sequence[pa.StringArray]) -> pa.StringArray:
    """Every id once, sorted."""
    found = pc.unique(pa.chunked_array(parts, pa.string()))
    return found.take(pc.sort_indices(found))


def differing(properties: Sequence[MergeProperty], one: MergeImages, other: MergeImages) -> Mask:
    """Entities that two states do not have alike, or not for sure."""
    result = (one.present != other.present) | one.doubtful | other.doubtful
    both = one.present & other.present
    for prop in properties:
        unlike = ~same(prop, one, other) | one.unknown_in(prop.name) | other.unknown_in(prop.name)
        result |= both & unlike
    return result


def _shifted(
    images: MergeImages, ids: pa.StringArray, delta: RowDelta, side: Side, frame: MergeFrame
) -> MergeImages:
    """The images on the other side of a delta: what is not in it is the same, as far as that side
    has the properties."""
    types = delta.types
    if types.before is not None and types.after is not None:
        pair = (types.before, types.after) if side == "after" else (types.after, types.before)
        images = frame.carried(images, *pair)
    found = positions_in(ids, delta.ids)
    rows = np.flatnonzero(found >= 0)
    if not len(rows):
        return images
    return patched(images, rows, read(delta, side, found[rows], frame))


def read(delta: RowDelta, side: Side, rows: Rows, frame: MergeFrame) -> MergeImages:
    """Some entities of a delta on one side, in the columns of a frame."""
    positions = delta.before if side == "before" else delta.after
    present = positions[rows] >= 0
    if not present.any():
        return absent(len(rows), frame.columns)
    declared = delta.types.before if side == "before" else delta.types.after
    images = delta.images(side, rows[present])
    return spread(present, frame.read(images, declared or frame.type))
