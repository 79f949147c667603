"""Schemas of a merge: two that grew apart are made one before rows are looked at.

    bases, ours, theirs, choices -> reconcile -> [one schema] -> rows are read in its columns

Nothing is written here. What does not fit together becomes conflicts, and what was decided about
them makes another schema: a fact of the other side, or something that goes on although it was
dropped (ADR 0019).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from omnigraph.branch.merge.bases import SideChanges, changes_since
from omnigraph.branch.merge.compared_states import History, shared_ancestors
from omnigraph.branch.merge.conflicts import ConflictKind, MergeConflict, SideNames
from omnigraph.branch.merge.images import MergeProperty, same
from omnigraph.errors import SchemaError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema, NumberClaim
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.schema.catalog import Backfill, Catalog, GraphType, Property
from omnigraph.schema.migrate.column_changes import LateBackfill
from omnigraph.schema.migrate.desired import resolve
from omnigraph.schema.migrate.facts import Things, things_of
from omnigraph.schema.migrate.reconcile import (
    Prefer,
    SchemaChoices,
    SchemaConflict,
    SchemaText,
    reconcile,
    virtual_base,
)
from omnigraph.schema.migrate.renumbering import one_numbering, renumber
from omnigraph.write.schema_view import SchemaView, backfills_of
from omnigraph.write.txn import WriteTxn


@dataclass(frozen=True, kw_only=True)
class OneSchema:
    """Both sides of a merge under one schema, or why that cannot be."""

    txn: WriteTxn
    schema: AcceptedSchema
    """The schema to come."""
    history: History
    base: Things
    theirs: Things
    """Under the numbers of the schema to come."""
    conflicts: tuple[MergeConflict, ...] = ()
    is_schema: bool = True
    """Whether what both sides say is one at all."""

    @property
    def changes(self) -> bool:
        """Whether ours gets another schema, also if it only knows more numbers of its own."""
        before, after = self.txn.schema, self.schema
        return before.catalog != after.catalog or before.catalog.aliases != after.catalog.aliases

    @cached_property
    def view(self) -> SchemaView:
        """Ours as the schema to come shows it."""
        return SchemaView.over(self.txn, self.schema.catalog, self.history.backfills)

    @cached_property
    def ours(self) -> Things:
        """What ours says."""
        return things_of(self.txn.schema.catalog)

    @cached_property
    def merged(self) -> Things:
        """What the schema to come says."""
        return things_of(self.schema.catalog)


class MergeSchemas:
    """The schemas of one merge: compared once, made one again after every decision."""

    def __init__(
        self,
        repository: Repository,
        txn: WriteTxn,
        bases: Sequence[Snapshot],
        theirs: Snapshot,
        names: SideNames,
    ) -> None:
        self._repository = repository
        self._txn = txn
        self._bases = bases
        self._theirs = theirs
        self._names = names
        self._ours = SchemaText(catalog=txn.schema.catalog, source=txn.schema.source)
        other = repository.schema(theirs.schema_hash)
        self._other = SchemaText(catalog=other.catalog, source=other.source)
        self._numbers = NumberClaim(repository.objects)

    @cached_property
    def _known(self) -> Mapping[int, int]:
        return one_numbering([self._ours.catalog, self._other.catalog])

    @cached_property
    def _base(self) -> SchemaText | Things:
        if len(self._bases) == 1:
            accepted = self._repository.schema(self._bases[0].schema_hash)
            return SchemaText(catalog=accepted.catalog, source=accepted.source)
        return self._ancestor(self._bases)

    def _ancestor(self, snapshots: Sequence[Snapshot]) -> Things:
        """What several common ancestors say, made one."""
        made = self._things(snapshots[0])
        for number in range(1, len(snapshots)):
            bases = shared_ancestors(self._repository, snapshots[:number], snapshots[number])
            made = virtual_base(
                lambda bases=bases: self._ancestor(bases), made, self._things(snapshots[number])
            )
        return made

    def _things(self, snapshot: Snapshot) -> Things:
        catalog = self._repository.schema(snapshot.schema_hash).catalog
        return renumber(things_of(catalog), self._known)

    def numbered(self, kind: str, type_name: str, property_name: str | None) -> int | None:
        """The number of a type or property by its name on either side."""
        for catalog in (self._ours.catalog, self._other.catalog):
            groups = {"node": catalog.nodes, "edge": catalog.edges}
            found = groups.get(kind, catalog.interfaces).get(type_name)
            if found is None:
                continue
            numbers = {p.name: p.id for p in found.properties}
            number = found.id if property_name is None else numbers.get(property_name)
            if number is not None:
                return self._known.get(number, number)
        return None

    def under(self, choices: SchemaChoices) -> OneSchema:
        """The schema to come, by what was decided."""
        found = reconcile(self._base, self._ours, self._other, choices=choices)
        if found.numbers_used:
            first = self._numbers.first(found.schema.catalog.next_id, found.numbers_used)
            found = reconcile(
                self._base, self._ours, self._other, choices=choices, numbers_from=first
            )
        catalog = found.schema.catalog
        base = self._base
        before = renumber(
            base if isinstance(base, dict) else things_of(base.catalog), found.numbers
        )
        history = History(
            self._repository,
            self._txn.snapshot,
            self._theirs,
            numbers=found.numbers,
            revived=found.revived,
            backfills=self._backfills(catalog, before),
            new=frozenset(things_of(catalog).keys() - before.keys())
            if len(self._bases) > 1
            else frozenset(),
        )
        return OneSchema(
            txn=self._txn,
            schema=(
                self._txn.schema
                if catalog is self._ours.catalog
                else AcceptedSchema.of(catalog, found.schema.source)
            ),
            history=history,
            base=before,
            theirs=renumber(things_of(self._other.catalog), found.numbers),
            conflicts=tuple(_conflict(c, self._names) for c in found.conflicts),
            is_schema=found.is_schema,
        )

    def _backfills(self, merged: Catalog, base: Things) -> dict[int, Backfill]:
        """What rows of a time before a property get."""
        fills = {
            **_hinted(self._ours.catalog, self._other, merged),
            **backfills_of(merged),
        }
        return {n: fill if n in base else LateBackfill.of(fill) for n, fill in fills.items()}

    def dropped_changes(
        self, one: OneSchema, choices: SchemaChoices
    ) -> list[tuple[DroppedChange, Prefer | None]]:
        """What one side changed and the other dropped, each with the side that was decided for."""
        found: list[tuple[DroppedChange, Prefer | None]] = []
        if self._txn.snapshot.schema_hash == self._theirs.schema_hash:
            return found
        plain = History(
            self._repository, self._txn.snapshot, self._theirs, numbers=one.history.numbers
        )
        sides: list[tuple[Snapshot, Prefer]] = [
            (self._theirs, "theirs"),
            (self._txn.snapshot, "ours"),
        ]
        for snapshot, side in sides:
            for item in dropped_changes(plain, self._bases, snapshot, side, one.merged):
                thing = next(t[item.number] for t in (one.ours, one.theirs) if item.number in t)
                found.append((item, choices.side(thing)))
        return found


def _conflict(conflict: SchemaConflict, names: SideNames) -> MergeConflict:
    words = {"{ours}": f"'{names.ours}'", "{theirs}": f"'{names.theirs}'"}
    message = conflict.message
    for word, name in words.items():
        message = message.replace(word, name)
    return MergeConflict(
        kind=ConflictKind.SCHEMA_CONFLICT,
        entity_kind=conflict.entity_kind,
        type_name=conflict.type_name,
        entity_id=None,
        message=message,
        schema_property=conflict.property_name,
        schema_values=(conflict.base, conflict.ours, conflict.theirs),
    )


def _hinted(ours: Catalog, theirs: SchemaText, merged: Catalog) -> dict[int, Backfill]:
    """Backfills that only the text of theirs has: of schemas that did not remember them yet."""
    try:
        desired = resolve(ours, theirs.source)
    except SchemaError:
        return {}  # Hints that have served; values then come with the rows of theirs.
    made, known = _by_name(merged), _by_name(theirs.catalog)
    return {
        made[name].id: fill
        for name, prop in _by_name(desired.catalog).items()
        if (fill := desired.backfills.get(prop.id)) is not None
        and name in made
        and known[name].backfill is None
        # A value of one type is none of another.
        and replace(made[name].type, nullable=False) == replace(prop.type, nullable=False)
    }


def _by_name(catalog: Catalog) -> dict[tuple[str, str], Property]:
    return {(t.table_key, p.name): p for t in catalog.types() for p in t.properties}


# -- dropped changes -------------------------------------------------------------------------------
# What one side of a merge changed and the other dropped: rows of a type, values of a property.
#
# bases, a side, the schema to come -> [dropped changes] -> conflicts, or what goes on all the same


# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false


@dataclass(frozen=True, kw_only=True)
class DroppedChange:
    """Entities that a side changed in what the other dropped."""

    number: int
    """Of the type or the property."""
    side: Prefer
    """The side that changed them."""
    graph_type: GraphType
    property_name: str | None
    count: int

    def conflict(self, names: SideNames) -> MergeConflict:
        """As a conflict."""
        changer, dropper = names.ours, names.theirs
        if self.side == "theirs":
            changer, dropper = dropper, changer
        what = ".".join(filter(None, (self.graph_type.name, self.property_name)))
        return MergeConflict(
            kind=ConflictKind.SCHEMA_CONFLICT,
            entity_kind=self.graph_type.kind,
            type_name=self.graph_type.name,
            entity_id=None,
            message=f"'{changer}' changed {self.count:,} of {what}, which '{dropper}' dropped",
            schema_property=self.property_name,
        )


def dropped_changes(
    history: History,
    bases: Sequence[Snapshot],
    snapshot: Snapshot,
    side: Prefer,
    merged: Things,
) -> Iterator[DroppedChange]:
    """What a side changed since the bases, made one, and the schema to come does not have."""
    for graph_type in history.catalog(snapshot).types():
        type_id = graph_type.stable_id
        before = [declared for base in bases if (declared := history.type(base, type_id))]
        now = history.version(snapshot, type_id)
        if not before or all(history.version(base, type_id) == now for base in bases):
            continue
        changes = changes_since(history, bases, snapshot, graph_type)
        made = partial(DroppedChange, side=side, graph_type=graph_type)
        if graph_type.id not in merged:
            if count := len(changes.ids):
                yield made(number=graph_type.id, property_name=None, count=count)
            continue
        known = {p.id for declared in before for p in declared.properties}
        for prop in graph_type.properties:
            if prop.id in merged or prop.id not in known:
                continue
            if count := _changed_values(changes, graph_type, prop.name):
                yield made(number=prop.id, property_name=prop.name, count=count)


def _changed_values(changes: SideChanges, graph_type: GraphType, name: str) -> int:
    """How many entities have another value of a property than they had."""
    if name in graph_type.system_columns:
        return len(changes.ids)
    rows = np.arange(len(changes.ids))
    before, after = changes.read("before", rows), changes.read("after", rows)
    value = MergeProperty(name=name, columns=(name,))
    given = after.rows.column(name).is_valid().to_numpy()
    other = ~same(value, before, after) | before.unknown_in(name)
    # Of an entity that may not have been there no value is known: any that it has may be new.
    known = before.present & ~before.doubtful
    return int((after.present & np.where(known, other, given)).sum())
