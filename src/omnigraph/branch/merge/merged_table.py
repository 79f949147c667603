"""One table of a merge: from its sides and the decisions to the delta that ours will take.

    sides -> three-way -> decisions -> [table plan] -> TableDelta

Rules are checked later, over all tables together. What has to be undone to keep them comes back
here as sets of ids: a change of theirs that is undone is left out, one of ours is reversed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import positions_in, union
from omnigraph.branch.delta import Op, refilled
from omnigraph.branch.merge.bases import TableSides, differing, is_changed, read, table_sides
from omnigraph.branch.merge.conflicts import (
    ConflictKind,
    EntityName,
    MergeConflict,
    PropertyConflict,
    Record,
    SideNames,
    delete_text,
    insert_text,
    records,
    update_text,
    value_of,
)
from omnigraph.branch.merge.images import Mask, MergeImages, absent, patched
from omnigraph.branch.merge.resolve import Decisions, ResolvedRows, resolve_rows
from omnigraph.branch.merge.schemas import OneSchema
from omnigraph.branch.merge.threeway import (
    BASE,
    OURS,
    THEIRS,
    Contested,
    Granularity,
    RowDecision,
    assemble,
    three_way,
)
from omnigraph.errors import Violation
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.rules.findings import no_place
from omnigraph.rules.table_delta import NO_IDS, TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.write.reshaping import TypePair, reshape_of
from omnigraph.write.schema_view import SchemaView
from omnigraph.write.txn import GraphDelta

_KINDS = {
    Contested.DIVERGENT_INSERT: ConflictKind.DIVERGENT_INSERT,
    Contested.DIVERGENT_UPDATE: ConflictKind.DIVERGENT_UPDATE,
    Contested.DELETE_VS_UPDATE: ConflictKind.DELETE_VS_UPDATE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """Changes of one table that a decision undoes, by id."""

    of_theirs: frozenset[str] = frozenset()
    of_ours: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.of_theirs or self.of_ours)


NOTHING = Undo()
_Part = tuple[pa.StringArray, MergeImages, pa.StringArray]
"""Entities that are written, as they will be, and entities that go."""


@dataclass(frozen=True, kw_only=True)
class TablePlan:
    """What a merge makes of one table."""

    sides: TableSides
    resolved: ResolvedRows
    merged: MergeImages
    """The result for the contested entities."""

    @property
    def type(self) -> GraphType:
        return self.sides.type

    @cached_property
    def _touched(self) -> Mask:
        """Contested entities whose result is not simply what ours has, nor looks like it."""
        decided = self.resolved.decided
        result = decided.presence != OURS
        for choice in decided.choices.values():
            result = result | (choice != OURS)
        return result & differing(self.sides.properties, self.merged, self.sides.shown)

    @cached_property
    def _only_inserts(self) -> bool:
        """Whether ours has none of the rows that will be written: then a look is not needed."""
        kept = self._touched & self.merged.present
        return (
            not len(self.sides.alone.rows(Op.UPDATE)) and not (kept & self.sides.ours.present).any()
        )

    def changed_by_theirs(self, entity_id: str) -> bool:
        """Whether the delta holds a change of theirs to this entity."""
        row = self.sides.place(entity_id)
        return bool(self._touched[row]) if row >= 0 else _has(self.sides.alone.ids, entity_id)

    def changed_by_ours(self, entity_id: str) -> bool:
        """Whether ours changed this entity since the base."""
        return _has(self.sides.by_ours.ids, entity_id)

    def delta(self, undo: Undo = NOTHING) -> TableDelta | None:
        """The change of ours; None when there is none."""
        parts = self._parts(undo)
        rows = [self._whole(ids, images) for ids, images, _ in parts if len(ids)]
        removed = [ids for _, _, ids in parts if len(ids)]
        if not rows and not removed:
            return None
        pin = self.sides.adoptable
        return TableDelta(
            type=self.type,
            mode=WriteMode.MERGE,
            rows=pa.concat_tables(rows) if rows else table_schema(self.type).empty_table(),
            removed=pa.concat_arrays(removed) if removed else NO_IDS,
            ids_fresh=not undo and self._only_inserts,
            ids_foreign=self.sides.foreign,
            adopt=replace(pin, table_key=self.type.table_key) if pin and not undo else None,
        )

    def misfits(self, undo: Undo = NOTHING) -> list[Violation]:
        """Values of the change that the types to come have no place for."""
        return [
            Violation(
                rule="type",
                message=no_place(self.type, self.type.by_name[name], text),
                entity_kind=self.type.kind,
                type_name=self.type.name,
                entity_id=entity_id,
                property_name=name,
            )
            for ids, images, _ in self._parts(undo)
            for entity_id, name, text in self.sides.frame.misfits(ids, images)
        ]

    def _parts(self, undo: Undo) -> list[_Part]:
        return [self._alone(undo), self._contested(undo), self._taken_back(undo)]

    def _alone(self, undo: Undo) -> _Part:
        """What theirs changed alone: as it is there."""
        delta = self.sides.alone
        if undo.of_theirs:
            delta = delta.select(~_among(delta.ids, undo.of_theirs))
        kept, gone = delta.rows(Op.INSERT, Op.UPDATE), delta.rows(Op.DELETE)
        images = read(delta, "after", kept, self.sides.frame)
        return delta.ids.take(pa.array(kept)), images, delta.ids.take(pa.array(gone))

    def _contested(self, undo: Undo) -> _Part:
        """What both touched: as it was decided."""
        ids, touched = self.sides.ids, self._touched
        if undo:
            touched = touched & ~_among(ids, undo.of_theirs | undo.of_ours)
        kept = pa.array(np.flatnonzero(touched & self.merged.present))
        gone = pa.array(np.flatnonzero(touched & ~self.merged.present & self.sides.ours.present))
        return ids.take(kept), self.merged.take(kept.to_numpy()), ids.take(gone)

    def _taken_back(self, undo: Undo) -> _Part:
        """What ours changed and must not: as theirs has it, or as it was."""
        if not undo.of_ours:
            return NO_IDS, absent(0, self.sides.frame.columns), NO_IDS
        changes = self.sides.by_ours
        rows = np.flatnonzero(_among(changes.ids, undo.of_ours))
        ids = changes.ids.take(pa.array(rows))
        images = changes.read("before", rows)
        here = changes.read("after", rows)
        contested = positions_in(ids, self.sides.ids)
        theirs = np.flatnonzero((contested >= 0) & ~_among(ids, undo.of_theirs))
        images = patched(images, theirs, self.sides.theirs.take(contested[theirs]))
        changed = differing(self.sides.properties, images, here)
        kept = np.flatnonzero(images.present & changed)
        gone = np.flatnonzero(~images.present & here.present)
        return ids.take(pa.array(kept)), images.take(kept), ids.take(pa.array(gone))

    def _whole(self, ids: pa.StringArray, images: MergeImages) -> pa.Table:
        """Images with their ids, in the columns of the table."""
        schema = table_schema(self.type)
        columns = [ids if f.name == "id" else images.rows.column(f.name) for f in schema]
        return pa.table(columns, schema=schema)


def reshaped(
    delta: TableDelta | None, graph_type: GraphType, view: SchemaView
) -> TableDelta | None:
    """The change of a table together with that of its columns; None when there is neither."""
    declared = view.declared(graph_type)
    if declared is None:
        return delta
    pair = TypePair(before=declared, after=graph_type)
    rework = reshape_of(pair, view.backfills, lenient=True)
    if rework is None:
        return delta
    if delta is None:
        rows = table_schema(graph_type).empty_table()
        delta = TableDelta(type=graph_type, mode=WriteMode.MERGE, rows=rows)
    return replace(
        delta,
        reshape=rework if delta.adopt is None else None,
        refilled=refilled(view, pair, union([delta.rows.column("id"), delta.removed])),
    )


def plan_table(sides: TableSides, granularity: Granularity, decisions: Decisions) -> TablePlan:
    """Decide everything that can be decided about a table."""
    decided = three_way(sides.properties, sides.base, sides.ours, sides.theirs, granularity)
    decided = _restoring(sides, decided)
    resolved = resolve_rows(sides, decided, decisions)
    states = [sides.ours, sides.theirs, sides.base]
    if resolved.given is not None:
        states.append(resolved.given)
    return TablePlan(
        sides=sides,
        resolved=resolved,
        merged=assemble(sides.properties, resolved.decided, states),
    )


def _restoring(sides: TableSides, decided: RowDecision) -> RowDecision:
    """Take what ours dropped from the side that has it: its table has no column for it any more."""
    choices = dict(decided.choices)
    for name, keeper in sides.frame.restored.items():
        if keeper == "theirs":
            # Where there is no value, there is nothing to take.
            theirs, base = (_valued(images, name) for images in (sides.theirs, sides.base))
            gone = sides.ours.present & ~sides.theirs.present & base
            found = np.where(theirs, np.int8(THEIRS), choices[name])
            choices[name] = np.where(gone, np.int8(BASE), found)
    return replace(decided, choices=choices)


def _valued(images: MergeImages, column: str) -> Mask:
    return images.present & images.rows.column(column).is_valid().to_numpy()


def open_conflicts(plan: TablePlan, names: SideNames) -> list[MergeConflict]:
    """What is not decided, in the order of the ids."""
    decided, sides = plan.resolved.decided, plan.sides
    rows = decided.conflicts
    if not len(rows):
        return []
    base, ours, theirs = (_records(s.take(rows)) for s in (sides.base, sides.ours, sides.theirs))
    return [
        _conflict(sides, decided, int(row), (base[i], ours[i], theirs[i]), names)
        for i, row in enumerate(rows)
    ]


def _conflict(
    sides: TableSides,
    decided: RowDecision,
    row: int,
    states: tuple[Record | None, Record | None, Record | None],
    names: SideNames,
) -> MergeConflict:
    base, ours, theirs = states
    graph_type, contested = sides.type, Contested(int(decided.contested[row]))
    entity = EntityName(kind=graph_type.kind, type_name=graph_type.name, id=sides.ids[row].as_py())
    properties = tuple(
        PropertyConflict(
            name=p.name,
            base=value_of(base, p.name),
            ours=value_of(ours, p.name),
            theirs=value_of(theirs, p.name),
            base_known=bool(base is not None and not sides.base.unknown_in(p.name)[row]),
        )
        for p in sides.properties
        if decided.disputed[p.name][row]
    )
    match contested:
        case Contested.DIVERGENT_INSERT:
            message = insert_text(entity, properties, names)
        case Contested.DIVERGENT_UPDATE:
            message = update_text(entity, properties, names)
        case _:
            message = delete_text(entity, base, ours, theirs, names)
    return MergeConflict(
        kind=_KINDS[contested],
        entity_kind=entity.kind,
        type_name=entity.type_name,
        entity_id=entity.id,
        message=message,
        properties=properties,
        base=base,
        ours=ours,
        theirs=theirs,
        entities=(entity,),
    )


def _records(images: MergeImages) -> list[Record | None]:
    """Images as plain data; None where there is no entity, or it is not known."""
    if not images.rows.num_columns:
        return [{"properties": {}} if p else None for p in images.present]
    known = images.present & ~images.doubtful
    found = records(images.rows)
    return [r if k else None for r, k in zip(found, known, strict=True)]


def _among(ids: pa.StringArray, wanted: frozenset[str]) -> Mask:
    if not wanted or not len(ids):
        return np.zeros(len(ids), np.bool_)
    found = pc.is_in(ids, value_set=pa.array(sorted(wanted), pa.string()))
    return found.to_numpy(zero_copy_only=False)


def _has(ids: pa.StringArray, entity_id: str) -> bool:
    return bool(ids.index(entity_id).as_py() >= 0)


# -- plan ------------------------------------------------------------------------------------------
# All tables of a merge together: what theirs changed, decided as far as it can be.
#
#     bases, ours, theirs -> [plan] -> conflicts, or a delta for the one door
#
# Only tables that theirs changed are planned. The others are looked at when a broken rule leads to
# them: an edge that ours drew to a node that theirs deleted.


class MergePlan:
    """A merge on one state of ours. Tables are planned when they are asked for, each once."""

    def __init__(
        self,
        one: OneSchema,
        bases: Sequence[Snapshot],
        *,
        granularity: Granularity,
        decisions: Decisions,
        names: SideNames,
    ) -> None:
        self.one = one
        self._history = one.history
        self._bases = bases
        self._ours = one.txn.snapshot
        self._granularity = granularity
        self._decisions = decisions
        self.names = names
        self.catalog: Catalog = one.schema.catalog
        self._plans: dict[str, TablePlan] = {}
        self.changed: tuple[str, ...] = tuple(
            t.table_key
            for t in self.catalog.types()
            if is_changed(self._history, bases, self._ours, t)
        )
        """Table keys that theirs changed, in the order of the schema."""

    def at(self, table_key: str) -> TablePlan | None:
        """The plan of a table; None for a type that there is not."""
        if table_key not in self._plans:
            graph_type = next((t for t in self.catalog.types() if t.table_key == table_key), None)
            if graph_type is None:
                return None
            sides = table_sides(self._history, self._bases, self._ours, graph_type)
            self._plans[table_key] = plan_table(sides, self._granularity, self._decisions)
        return self._plans[table_key]

    def conflicts(self) -> list[MergeConflict]:
        """What both sides changed and is not decided."""
        return [
            c
            for key in self.changed
            if (plan := self.at(key)) is not None
            for c in open_conflicts(plan, self.names)
        ]

    def used(self) -> set[EntityName]:
        """Entities whose resolutions were needed."""
        return {e for plan in self._plans.values() for e in plan.resolved.used}

    def delta(self, undo: Mapping[str, Undo] | None = None) -> GraphDelta:
        """The change of ours, without what is undone."""
        taken_back = undo or {}
        tables: dict[str, TableDelta] = {}
        for graph_type in self.catalog.types():
            key = graph_type.table_key
            delta: TableDelta | None = None
            if (key in self.changed or key in taken_back) and (plan := self.at(key)) is not None:
                delta = plan.delta(taken_back.get(key, NOTHING))
            if self.one.txn.pin_of(graph_type) is not None:  # Even if it has no rows.
                delta = reshaped(delta, graph_type, self.one.view)
            if delta is not None:
                tables[key] = delta
        return GraphDelta(
            tables=tables,
            adopts_from=self._history.theirs.place,
            schema=self.one.schema if self.one.changes else None,
        )

    def misfits(self, undo: Mapping[str, Undo]) -> list[Violation]:
        """Values of the change that the types to come have no place for."""
        keys = dict.fromkeys([*self.changed, *undo])
        plans = {key: plan for key in keys if (plan := self.at(key)) is not None}
        return [v for key, plan in plans.items() for v in plan.misfits(undo.get(key, NOTHING))]
