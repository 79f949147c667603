"""The states of one merge as they are compared: under the numbers of the schema to come.

    snapshots -> [history] -> their types, versions of tables, deltas, common ancestors

Two branches may know one thing by two numbers, and a merge may keep what a side dropped. Of a type
the common ancestors are then taken to have had nothing: as if the side that has it had added it. Of
a property the side without it is taken to have left it as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from omnigraph.branch.delta import RowDelta, TableSide, table_delta
from omnigraph.branch.types import ComparedTypes
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot, TablePin
from omnigraph.rules.table_delta import NO_IDS
from omnigraph.schema.catalog import Backfill, Catalog, GraphType
from omnigraph.schema.migrate.facts import ConstraintRule, Things, catalog_of, things_of
from omnigraph.schema.migrate.reconcile import Prefer
from omnigraph.schema.migrate.renumbering import renumber
from omnigraph.storage.names import TableVersion
from omnigraph.storage.tables import Table

TypeId = tuple[int, int]
"""Stable number and incarnation of a type: what it is, whatever it is called."""


class History:
    """Snapshots of one merge with the deltas between them, each made once."""

    def __init__(
        self,
        repository: Repository,
        ours: Snapshot,
        theirs: Snapshot,
        *,
        numbers: Mapping[int, int] | None = None,
        revived: Mapping[int, Prefer] | None = None,
        backfills: Mapping[int, Backfill] | None = None,
        new: frozenset[int] = frozenset(),
    ) -> None:
        self._repository = repository
        self.numbers = numbers or {}
        self.revived = revived or {}
        """What goes on although a side dropped it, by number, with the side that has it."""
        self._sides = {ours.head.id, theirs.head.id}
        self.theirs = theirs
        self.backfills = backfills or {}
        self._left_out = new
        """What the bases, made one, do not have although one of them may: a type or property that
        is new again, and types that a side dropped and that go on."""
        self._catalogs: dict[tuple[str, bool], Catalog] = {}
        self._types: dict[tuple[str, bool], Mapping[TypeId, GraphType]] = {}
        self._pins: dict[str, Mapping[TypeId, TablePin]] = {}
        self._deltas: dict[tuple[TypeId, str, str], RowDelta] = {}
        if self.revived:
            types = {t.id for side in (ours, theirs) for t in self.catalog(side).types()}
            self._left_out |= types & self.revived.keys()

    def type(self, snapshot: Snapshot, type_id: TypeId) -> GraphType | None:
        """A type as a snapshot declares it."""
        key = (snapshot.schema_hash, self._is_whole(snapshot))
        if key not in self._types:
            types = self.catalog(snapshot).types()
            self._types[key] = {t.stable_id: t for t in types}
        return self._types[key].get(type_id)

    def _is_whole(self, snapshot: Snapshot) -> bool:
        """Whether nothing of its schema is left out."""
        return not self._left_out or snapshot.head.id in self._sides

    def catalog(self, snapshot: Snapshot) -> Catalog:
        """The schema of a snapshot under the numbers of this merge."""
        whole = self._is_whole(snapshot)
        key = (snapshot.schema_hash, whole)
        if key not in self._catalogs:
            catalog = self._repository.schema(snapshot.schema_hash).catalog
            if self.numbers or not whole:
                things = renumber(things_of(catalog), self.numbers)
                things = things if whole else _without(things, self._left_out)
                catalog = catalog_of(things, catalog.next_id)
            self._catalogs[key] = catalog
        return self._catalogs[key]

    def pin(self, snapshot: Snapshot, type_id: TypeId) -> TablePin | None:
        """The version of a table, by what the type is and not by its name."""
        if self.type(snapshot, type_id) is None:
            return None
        if snapshot.head.id not in self._pins:
            numbers = self.numbers
            self._pins[snapshot.head.id] = {
                (numbers.get(p.type_id, p.type_id), numbers.get(p.incarnation, p.incarnation)): p
                for p in snapshot.pins.values()
            }
        return self._pins[snapshot.head.id].get(type_id)

    def version(self, snapshot: Snapshot, type_id: TypeId) -> TableVersion | None:
        """The same as its name alone; None while the table has no rows."""
        pin = self.pin(snapshot, type_id)
        return pin.name if pin is not None else None

    def restored(self, graph_type: GraphType) -> dict[str, Prefer]:
        """Properties of a type that go on although a side dropped them, with the side that has
        them."""
        return {p.name: self.revived[p.id] for p in graph_type.properties if p.id in self.revived}

    def table(self, snapshot: Snapshot, type_id: TypeId) -> Table | None:
        """A table, opened."""
        return self._repository.table_if(self.pin(snapshot, type_id))

    def delta(self, type_id: TypeId, before: Snapshot, after: Snapshot) -> RowDelta:
        """What changed in one table between two snapshots."""
        key = (type_id, before.head.id, after.head.id)
        if key not in self._deltas:
            self._deltas[key] = self._made(type_id, before, after)
        return self._deltas[key]

    def _made(self, type_id: TypeId, before: Snapshot, after: Snapshot) -> RowDelta:
        types = ComparedTypes(before=self.type(before, type_id), after=self.type(after, type_id))
        same_rows = self.version(before, type_id) == self.version(after, type_id)
        if same_rows and types.before == types.after:
            return _nothing(types)
        return table_delta(self.table(before, type_id), self.table(after, type_id), types)

    def bases(self, some: Sequence[Snapshot], one: Snapshot) -> list[Snapshot]:
        """The best common ancestors of a snapshot and each of some others."""
        return shared_ancestors(self._repository, some, one)


def best_ancestors(repository: Repository, one: Snapshot, other: Snapshot) -> tuple[Snapshot, ...]:
    """The common ancestors of two snapshots that are behind no other one."""
    lineage, known = repository.lineage, {s.head.id: s for s in (one, other)}
    found = lineage.merge_bases(one, other)
    return tuple(known.get(c.id) or lineage.snapshot(c.place) for c in found)


def shared_ancestors(
    repository: Repository, some: Sequence[Snapshot], one: Snapshot
) -> list[Snapshot]:
    """The best common ancestors of a snapshot and each of some others, every one once."""
    found = (base for other in some for base in best_ancestors(repository, other, one))
    return list({base.head.id: base for base in found}.values())


def _nothing(types: ComparedTypes) -> RowDelta:
    """Two versions that are one."""
    places, ops = np.empty(0, np.int64), np.empty(0, np.int8)
    side = TableSide(table=None, cached=None)
    return RowDelta(
        types=types, sides=(side, side), ids=NO_IDS, ops=ops, before=places, after=places
    )


def _without(things: Things, gone: frozenset[int]) -> Things:
    """Everything but some things, what they own, and what is said with them."""
    left = {n: t for n, t in things.items() if n not in gone and t.owner not in gone}
    return _consistent(left)


def _consistent(things: Things) -> Things:
    """Edges whose ends are left, and rules about what is left."""
    kept = {
        n: t
        for n, t in things.items()
        if all(t.facts.get((end, None), n) in things for end in ("source", "target"))
    }
    kept = {n: t for n, t in kept.items() if t.owner is None or t.owner in kept}

    def means_something(what: str, which: object, value: object) -> bool:
        members: Sequence[object] = ()
        if isinstance(which, ConstraintRule):
            members = which.members
        elif what == "key" and isinstance(value, tuple):
            members = value
        elif what == "implements":
            members = (which,)
        elif what == "embed" and isinstance(value, tuple):
            members = value[:1]
        return all(m in kept for m in members if isinstance(m, int))

    return {
        n: replace(
            t,
            facts={(w, k): v for (w, k), v in t.facts.items() if means_something(w, k, v)},
        )
        for n, t in kept.items()
    }
