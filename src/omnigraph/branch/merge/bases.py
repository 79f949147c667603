"""Three states of a table side by side: the common ancestor, ours and theirs.

    snapshots -> deltas -> [bases] -> images of what both sides touched -> three-way

No table is searched. An entity that theirs did not change keeps what ours says, so only the
changes of theirs count: their images before and after are in the delta from the base. The image of
ours is in the delta from the base to ours, and where it is not, ours is the base.

Lines that have been merged into each other have several best common ancestors. They are made one
(``threeway.virtual``), over the ancestors that *they* have in common, and so on back. All images
of older states are derived from theirs by a delta: what is not in it is the same.
"""

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.delta import RowDelta, Side, table_delta
from omnigraph.branch.merge.images import (
    Images,
    Mask,
    MergeProperty,
    Rows,
    absent,
    patched,
    properties_of,
    same,
    spread,
)
from omnigraph.branch.merge.threeway import virtual
from omnigraph.branch.parallel import both
from omnigraph.branch.types import TypePair
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot, TablePin
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.migrate.columns import column_changes
from omnigraph.storage.names import TableVersion
from omnigraph.write.delta import NO_IDS

TypeId = tuple[int, int]
"""Stable number and incarnation of a type: what it is, whatever it is called."""


@dataclass(frozen=True, kw_only=True)
class TableSides:
    """One table of a merge: what each side did to it since they were one."""

    type: GraphType
    """As ours declares it."""
    alone: RowDelta
    """What theirs changed and ours did not, from the base to theirs."""
    ids: pa.StringArray
    """What both sides may have changed; the images are in this order."""
    base: Images
    ours: Images
    theirs: Images
    ours_delta: RowDelta
    """Everything that ours changed, from (the first) base to ours."""
    adoptable: TablePin | None
    """The version of theirs, if ours is exactly the base."""

    @cached_property
    def properties(self) -> tuple[MergeProperty, ...]:
        """What is compared."""
        return properties_of(self.type)

    def place(self, entity_id: str) -> int:
        """Where an entity stands in ``ids``; -1 if it is not contested."""
        return int(self.ids.index(entity_id).as_py())


class History:
    """Snapshots of one merge with the deltas between them, each made once."""

    def __init__(self, repository: Repository, theirs: Snapshot) -> None:
        self._repository = repository
        self.theirs = theirs
        self._deltas: dict[tuple[TypeId, TableVersion | None, TableVersion | None], RowDelta] = {}

    def type(self, snapshot: Snapshot, type_id: TypeId) -> GraphType | None:
        """A type as a snapshot declares it."""
        catalog = self._repository.schema(snapshot.schema_hash).catalog
        return next((t for t in catalog.types() if (t.id, t.incarnation) == type_id), None)

    def open(self, type_id: TypeId, snapshot: Snapshot) -> None:
        """Open a table ahead of those who are going to read it at the same time."""
        pin = pin_of(snapshot, type_id)
        if pin is not None:
            self._repository.table(pin)

    def delta(self, type_id: TypeId, before: Snapshot, after: Snapshot) -> RowDelta:
        """What changed in one table between two snapshots."""
        pins = pin_of(before, type_id), pin_of(after, type_id)
        key = (type_id, version_of(before, type_id), version_of(after, type_id))
        if key not in self._deltas:
            types = TypePair(before=self.type(before, type_id), after=self.type(after, type_id))
            if key[1] == key[2] and before.schema_hash == after.schema_hash:
                self._deltas[key] = _nothing(types)
            else:
                tables = [self._repository.table(pin) if pin is not None else None for pin in pins]
                self._deltas[key] = table_delta(tables[0], tables[1], types)
        return self._deltas[key]

    def bases(self, one: Snapshot, other: Snapshot) -> tuple[Snapshot, ...]:
        """The best common ancestors of two snapshots."""
        lineage, known = self._repository.lineage, {s.head.id: s for s in (one, other)}
        found = lineage.merge_bases(one, other)
        return tuple(known.get(c.id) or lineage.snapshot(c.place) for c in found)


def _nothing(types: TypePair) -> RowDelta:
    """Two versions that are one."""
    places, ops = np.empty(0, np.int64), np.empty(0, np.int8)
    return RowDelta(
        types=types, tables=(None, None), ids=NO_IDS, ops=ops, before=places, after=places
    )


def pin_of(snapshot: Snapshot, type_id: TypeId) -> TablePin | None:
    """The version of a table, by what the type is and not by its name."""
    pins = snapshot.pins.values()
    return next((p for p in pins if (p.type_id, p.incarnation) == type_id), None)


def version_of(snapshot: Snapshot, type_id: TypeId) -> TableVersion | None:
    """The same as its name alone; None while the table has no rows."""
    pin = pin_of(snapshot, type_id)
    return pin.name if pin is not None else None


def is_changed(
    history: History, bases: Sequence[Snapshot], ours: Snapshot, graph_type: GraphType
) -> bool:
    """Whether theirs may have changed a table in a way that ours has not; by versions alone."""
    type_id = (graph_type.id, graph_type.incarnation)
    theirs, mine, *before = (
        version_of(snapshot, type_id) for snapshot in (history.theirs, ours, *bases)
    )
    return theirs != mine and any(version != theirs for version in before)


def table_sides(
    history: History, bases: Sequence[Snapshot], ours: Snapshot, graph_type: GraphType
) -> TableSides:
    """One table of a merge."""
    type_id, theirs = (graph_type.id, graph_type.incarnation), history.theirs
    history.open(type_id, bases[0])  # Once, for both.
    ours_delta, first = both(
        lambda: history.delta(type_id, bases[0], ours),
        lambda: history.delta(type_id, bases[0], theirs),
    )
    changed = [first, *(history.delta(type_id, base, theirs) for base in bases[1:])]
    if len(bases) > 1:
        return _several(history, bases, graph_type, changed, ours_delta)
    is_base = version_of(ours, type_id) == version_of(bases[0], type_id)
    found = places(first.ids, ours_delta.ids)
    rows = np.flatnonzero(found >= 0)
    return TableSides(
        type=graph_type,
        alone=first.select(found < 0),
        ids=first.ids.take(pa.array(rows)),
        base=read(first, "before", rows, graph_type),
        ours=read(ours_delta, "after", found[rows], graph_type),
        theirs=read(first, "after", rows, graph_type),
        ours_delta=ours_delta,
        adoptable=pin_of(theirs, type_id) if is_base and _fits(history, graph_type) else None,
    )


def _fits(history: History, graph_type: GraphType) -> bool:
    """Whether the table of theirs has the columns of this declaration."""
    declared = history.type(history.theirs, (graph_type.id, graph_type.incarnation))
    return declared is not None and not column_changes(declared, graph_type, {})


def _several(
    history: History,
    bases: Sequence[Snapshot],
    graph_type: GraphType,
    changed: Sequence[RowDelta],
    ours_delta: RowDelta,
) -> TableSides:
    """The same with several bases: everything that theirs changed against any of them."""
    distinct = pc.unique(pa.chunked_array([delta.ids for delta in changed], pa.string()))
    ids = distinct.take(pc.sort_indices(distinct))
    theirs = absent(len(ids), _columns(graph_type))
    for delta in changed:
        theirs = _shifted(theirs, ids, delta, "after", graph_type)
    base = _ancestor(history, bases, graph_type, ids, theirs)
    first = _shifted(theirs, ids, changed[0], "before", graph_type)
    return TableSides(
        type=graph_type,
        alone=changed[0].select(np.empty(0, np.int64)),
        ids=ids,
        base=base,
        ours=_shifted(first, ids, ours_delta, "after", graph_type),
        theirs=theirs,
        ours_delta=ours_delta,
        adoptable=None,
    )


def _ancestor(
    history: History,
    snapshots: Sequence[Snapshot],
    graph_type: GraphType,
    ids: pa.StringArray,
    theirs: Images,
) -> Images:
    """The entities in several common ancestors, made one."""
    properties, type_id = properties_of(graph_type), (graph_type.id, graph_type.incarnation)

    def at(snapshot: Snapshot) -> Images:
        delta = history.delta(type_id, snapshot, history.theirs)
        return _shifted(theirs, ids, delta, "before", graph_type)

    made = at(snapshots[0])
    for number in range(1, len(snapshots)):
        other = at(snapshots[number])
        rows = np.flatnonzero(_differing(properties, made, other))
        if not len(rows):
            continue
        older: dict[str, Snapshot] = {}
        for earlier in snapshots[:number]:
            found = history.bases(earlier, snapshots[number])
            older.update((snapshot.head.id, snapshot) for snapshot in found)
        base = _ancestor(
            history, list(older.values()), graph_type, ids.take(pa.array(rows)), theirs.take(rows)
        )
        part = virtual(properties, base, made.take(rows), other.take(rows))
        made = patched(made, rows, part)
    return made


def _differing(properties: Sequence[MergeProperty], one: Images, other: Images) -> Mask:
    result = (one.present != other.present) | one.doubtful | other.doubtful
    both = one.present & other.present
    for prop in properties:
        unlike = ~same(prop, one, other) | one.unknown_in(prop.name) | other.unknown_in(prop.name)
        result |= both & unlike
    return result


def _shifted(
    images: Images, ids: pa.StringArray, delta: RowDelta, side: Side, graph_type: GraphType
) -> Images:
    """The images on the other side of a delta: what is not in it is the same."""
    found = places(ids, delta.ids)
    rows = np.flatnonzero(found >= 0)
    if not len(rows):
        return images
    return patched(images, rows, read(delta, side, found[rows], graph_type))


def read(delta: RowDelta, side: Side, rows: Rows, graph_type: GraphType) -> Images:
    """Some entities of a delta on one side, in the columns of another declaration of the type."""
    positions = delta.before if side == "before" else delta.after
    present = positions[rows] >= 0
    if not present.any():
        return absent(len(rows), _columns(graph_type))
    declared = delta.types.before if side == "before" else delta.types.after
    images = delta.images(side, rows[present])
    return spread(present, conformed(images, declared or graph_type, graph_type))


def conformed(rows: pa.Table, declared: GraphType, wanted: GraphType) -> pa.Table:
    """Rows of one declaration of a type in the columns of another, without the id."""
    schema = _columns(wanted)
    if declared == wanted:
        return pa.table(rows.select(schema.names).columns, schema=schema)
    names = {p.id: p.name for p in declared.properties}
    columns: list[pa.ChunkedArray] = []
    for column in schema:
        own = wanted.by_name.get(column.name)
        name = names.get(own.id) if own is not None else column.name
        if name is None:
            columns.append(pa.chunked_array([pa.nulls(rows.num_rows, column.type)]))
        else:
            columns.append(rows.column(name).cast(column.type))
    return pa.table(columns, schema=schema)


def _columns(graph_type: GraphType) -> pa.Schema:
    """Every column but the id; any may be null where a state has no row."""
    fields = [f.with_nullable(True) for f in table_schema(graph_type) if f.name != "id"]
    return pa.schema(fields)


def places(wanted: pa.StringArray, among: pa.StringArray) -> Rows:
    """Where each id stands in the other array; -1 if it does not."""
    if not len(among):
        return np.full(len(wanted), -1, np.int64)
    found = pc.index_in(wanted, value_set=among)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
