"""Schemas of a merge: two that grew apart are made one before rows are looked at.

    base, ours, theirs -> reconcile -> tables of ours in the new shape -> [one schema] -> rows

The tables of ours are reshaped where nobody can see it, and the merge goes on as if ours had had
the new schema all along; the one commit at the end shows both. What both sides added under one name
is one thing: theirs is then read with the numbers of ours. What does not fit together is told as
conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.branch.delta import Op, RowDelta, differs
from omnigraph.branch.merge.bases import History, pin_of, version_of
from omnigraph.branch.merge.conflicts import ConflictKind, MergeConflict, SideNames
from omnigraph.branch.types import ColumnPair
from omnigraph.errors import SchemaError
from omnigraph.manifest.numbers import claim_numbers
from omnigraph.manifest.repository import AcceptedSchema, Repository
from omnigraph.manifest.snapshot import Snapshot, TablePin
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.migrate.desired import Backfill, resolve
from omnigraph.schema.migrate.facts import catalog_of, things_of
from omnigraph.schema.migrate.reconcile import (
    Prefer,
    SchemaConflict,
    SchemaText,
    reconcile,
    renumber,
)
from omnigraph.write.conformity import broken_rules
from omnigraph.write.delta import GraphDelta
from omnigraph.write.reshaping import TypePair, accept_schema, continued, reshape_of
from omnigraph.write.rules.arrays import union
from omnigraph.write.txn import WriteTxn


@dataclass(frozen=True, kw_only=True)
class OneSchema:
    """Both sides of a merge under one schema, or why that cannot be."""

    txn: WriteTxn
    """Ours, in the shape of the schema to come."""
    theirs: Snapshot
    """Theirs, with the numbers of ours."""
    before: Catalog
    """What ours was before."""
    conflicts: tuple[MergeConflict, ...] = ()

    def broken(self, delta: GraphDelta) -> list[MergeConflict]:
        """Rows of ours that the merge leaves as they are and that break what is new for them."""
        catalog = self.txn.schema.catalog
        if catalog == self.before:
            return []
        touched = {
            key: union([table.rows.column("id"), table.removed])
            for key, table in delta.tables.items()
        }
        pairs = continued(self.before, catalog)
        violations, _ = broken_rules(self.txn, self.before, catalog, pairs, {}, leave_out=touched)
        return [
            MergeConflict(
                kind=ConflictKind.SCHEMA_CONFLICT,
                entity_kind=v.entity_kind,
                type_name=v.type_name,
                entity_id=v.entity_id,
                message=f"the merged schema does not allow what is there: {v.message}",
            )
            for v in violations
        ]


def under_one_schema(
    repository: Repository,
    txn: WriteTxn,
    bases: Sequence[Snapshot],
    theirs: Snapshot,
    names: SideNames,
    prefer: Prefer | None,
) -> OneSchema:
    """Show ours and theirs under the schema that both agree on."""
    ours = txn.snapshot
    before = txn.schema.catalog
    if theirs.schema_hash == ours.schema_hash:
        return OneSchema(txn=txn, theirs=theirs, before=before)
    schemas = [repository.schema(s.schema_hash) for s in (bases[0], ours, theirs)]
    texts = [SchemaText(catalog=s.catalog, source=s.source) for s in schemas]
    found = reconcile(texts[0], texts[1], texts[2], prefer=prefer)
    if found.numbers_used:
        first = claim_numbers(repository.objects, found.schema.catalog.next_id, found.numbers_used)
        found = reconcile(texts[0], texts[1], texts[2], prefer=prefer, numbers_from=first)
    seen = _seen(repository, theirs, schemas[2], found.renumbered)
    if found.conflicts:
        told = tuple(_told(c, names) for c in found.conflicts)
        return OneSchema(txn=txn, theirs=seen, before=before, conflicts=told)
    catalog = found.schema.catalog
    lost = [
        *_lost(repository, bases, seen, catalog, (names.theirs, names.ours), prefer == "ours"),
        *_lost(repository, bases, ours, catalog, (names.ours, names.theirs), prefer == "theirs"),
    ]
    if lost or catalog == before:
        return OneSchema(txn=txn, theirs=seen, before=before, conflicts=tuple(lost))
    accepted = accept_schema(repository, catalog, found.schema.source)
    shown = _Reshaping(repository, txn, bases, seen, accepted, schemas[2]).snapshot()
    return OneSchema(txn=replace(txn, schema=accepted, shown=shown), theirs=seen, before=before)


def _told(conflict: SchemaConflict, names: SideNames) -> MergeConflict:
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


def _seen(
    repository: Repository,
    theirs: Snapshot,
    schema: AcceptedSchema,
    numbers: Mapping[int, int],
) -> Snapshot:
    """Theirs with other numbers. The schema of that exists in memory alone."""
    if not numbers:
        return theirs
    things = renumber(things_of(schema.catalog), numbers)
    spelled = ",".join(f"{a}:{b}" for a, b in sorted(numbers.items()))
    seen = AcceptedSchema(
        hash=f"{schema.hash}+{spelled}",
        source=schema.source,
        catalog=catalog_of(things, schema.catalog.next_id),
    )
    repository.keep_schema(seen)
    pins = {
        key: replace(
            pin,
            type_id=numbers.get(pin.type_id, pin.type_id),
            incarnation=numbers.get(pin.incarnation, pin.incarnation),
        )
        for key, pin in theirs.pins.items()
    }
    return replace(theirs, schema_hash=seen.hash, pins=pins)


class _Reshaping:
    """The tables of ours under another schema, staged."""

    def __init__(
        self,
        repository: Repository,
        txn: WriteTxn,
        bases: Sequence[Snapshot],
        theirs: Snapshot,
        accepted: AcceptedSchema,
        their_schema: AcceptedSchema,
    ) -> None:
        self._repository = repository
        self._txn = txn
        self._bases = bases
        self._theirs = theirs
        self._accepted = accepted
        self._their_types = {
            (t.id, t.incarnation): t for t in repository.schema(theirs.schema_hash).catalog.types()
        }
        self._backfills = _backfills(txn.schema.catalog, their_schema.source, accepted.catalog)
        self._name = repository.ids.ulid()

    def snapshot(self) -> Snapshot:
        """Ours as it would be if the schema had been applied to it."""
        pins: dict[str, TablePin] = {}
        for pair in continued(self._txn.schema.catalog, self._accepted.catalog):
            pin = self._txn.pin_of(pair.after)
            if pin is not None:
                pins[pair.after.table_key] = self._pin(pair, pin)
        return replace(self._txn.snapshot, schema_hash=self._accepted.hash, pins=pins)

    def _pin(self, pair: TypePair, pin: TablePin) -> TablePin:
        key = pair.after.table_key
        rework = reshape_of(pair, self._backfills, lenient=True)
        if rework is None:
            return replace(pin, table_key=key)
        type_id = (pair.after.id, pair.after.incarnation)
        is_base = all(version_of(base, type_id) == pin.name for base in self._bases)
        their_pin = pin_of(self._theirs, type_id)
        if is_base and their_pin is not None and self._their_types.get(type_id) == pair.after:
            return replace(their_pin, table_key=key)  # It has the shape already, and the rows.
        base = self._repository.table(pin)
        tables = self._repository.tables
        path = pair.after.table_path
        staged = tables.stage(path, base, [rework], base.dataset.schema, f"{self._name}-0")
        tables.pin(staged)
        table = staged.table
        self._repository.sync([*table.files_since(base), table.name.manifest])
        return replace(pin, table_key=key, name=table.name)


def _backfills(ours: Catalog, their_text: str, merged: Catalog) -> dict[int, Backfill]:
    """What rows of ours get, as far as the text of theirs still says it."""
    try:
        desired = resolve(ours, their_text)
    except SchemaError:
        return {}  # Hints that have served; values then come with the rows of theirs.
    numbers = {(t.table_key, p.name): p.id for t in merged.types() for p in t.properties}
    return {
        number: fill
        for t in desired.catalog.types()
        for p in t.properties
        if (fill := desired.backfills.get(p.id)) is not None
        and (number := numbers.get((t.table_key, p.name))) is not None
    }


# -- what one side changed and the other dropped ---------------------------------------------------


def _lost(
    repository: Repository,
    bases: Sequence[Snapshot],
    side: Snapshot,
    merged: Catalog,
    names: tuple[str, str],
    decided: bool,
) -> Iterator[MergeConflict]:
    """Entities that a side changed in what the other dropped."""
    if decided:
        return
    changer, dropper = names
    history = History(repository, side)
    kept = {(t.id, t.incarnation): {p.id for p in t.properties} for t in merged.types()}
    for graph_type in repository.schema(side.schema_hash).catalog.types():
        type_id = (graph_type.id, graph_type.incarnation)
        own = {p.id for p in graph_type.properties}
        base = bases[0]
        declared = history.type(base, type_id)
        if declared is None or version_of(base, type_id) == version_of(side, type_id):
            continue
        gone = own - kept.get(type_id, set())
        if type_id in kept and not gone:
            continue
        delta = history.delta(type_id, base, side)
        if type_id not in kept:
            count, what = len(delta), graph_type.name
        else:
            count = sum(_changed_values(delta, graph_type, declared, n) for n in gone)
            lost = [p.name for p in graph_type.properties if p.id in gone]
            what = f"{graph_type.name}.{', '.join(lost)}"
        if count:
            yield MergeConflict(
                kind=ConflictKind.SCHEMA_CONFLICT,
                entity_kind=graph_type.kind,
                type_name=graph_type.name,
                entity_id=None,
                message=f"'{changer}' changed {count:,} of {what}, which '{dropper}' dropped",
            )


def _changed_values(
    delta: RowDelta, graph_type: GraphType, declared: GraphType, number: int
) -> int:
    """How many entities have another value of a property than they had."""
    names = {p.id: p.name for p in graph_type.properties}
    old = {p.id: p.name for p in declared.properties}
    if names[number] in graph_type.system_columns:
        return len(delta)
    new_rows = delta.rows(Op.INSERT)
    values = delta.images("after", new_rows, [names[number]]).column(0)
    count = len(values) - values.null_count
    rows = delta.rows(Op.UPDATE)
    was = delta.images("before", rows, [old[number]]) if number in old else None
    now = delta.images("after", rows, [names[number]])
    if was is None:
        return count + len(rows)
    column = ColumnPair(before=old[number], after=names[number])
    return count + int(differs(column, was, now).sum())
