"""Whether the rows of a graph keep the rules that a new schema adds.

    two schemas, pinned snapshot -> [conformity] -> violations that name rows

The rules themselves are those of the one validator: a table is given to them as if all its rows
were written anew, with a type that has only the rules in question. Values are looked at batch by
batch; groups, endpoints and cardinality need their columns as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, NodeType, Property
from omnigraph.schema.migrate.columns import Made, column_of
from omnigraph.schema.migrate.constraints import Rule, member, rules_of
from omnigraph.schema.migrate.desired import Backfill
from omnigraph.schema.migrate.plan import needs_check, stricter
from omnigraph.schema.migrate.types import TypeChange, type_change
from omnigraph.write.delta import NO_IDS, TableDelta, WriteMode
from omnigraph.write.reshaping import TypePair
from omnigraph.write.rules.arrays import pc
from omnigraph.write.rules.cardinality import check_cardinality
from omnigraph.write.rules.endpoints import check_endpoints
from omnigraph.write.rules.findings import Finding, count, first
from omnigraph.write.rules.image import TableImage
from omnigraph.write.rules.unique import check_repeats
from omnigraph.write.rules.values import check_values
from omnigraph.write.txn import WriteTxn

VIOLATIONS_MAX = 20


class _Report:
    """Violations, counted in full and kept as far as they are shown."""

    def __init__(self) -> None:
        self.total = 0
        self.shown: list[Violation] = []

    def add(self, findings: Sequence[Finding]) -> None:
        self.total += count(findings)
        self.shown += first(findings, VIOLATIONS_MAX - len(self.shown))


def broken_rules(
    txn: WriteTxn,
    accepted: Catalog,
    desired: Catalog,
    pairs: Sequence[TypePair],
    backfills: Mapping[int, Backfill],
    *,
    leave_out: Mapping[str, pa.Array] = MappingProxyType({}),
) -> tuple[list[Violation], int]:
    """The first rows that break a rule of the new schema, and how many there are.

    ``accepted`` is the schema whose rules the rows keep. The tables may have the columns of either
    schema. ``leave_out`` names rows that are not asked, by table key of the new schema and id.
    """
    report = _Report()
    for pair in pairs:
        pin = txn.pin_of(pair.after)
        if pin is None or not pin.row_count:
            continue
        txn.consulted.add(pin.table_key)
        stored = _Stored(txn, pair, backfills, leave_out.get(pair.after.table_key))
        for findings in _values(stored, pair):
            report.add(findings)
        for findings in _groups(stored, pair):
            report.add(findings)
        if isinstance(pair.before, EdgeType) and isinstance(pair.after, EdgeType):
            schemas = (accepted, desired)
            report.add(_edges(txn, stored, schemas, pair.before, pair.after))
    return report.shown, report.total


class _Stored:
    """The rows of a table in the columns of the type to come."""

    def __init__(
        self,
        txn: WriteTxn,
        pair: TypePair,
        backfills: Mapping[int, Backfill],
        leave_out: pa.Array | None,
    ) -> None:
        self._table = txn.table_of(pair.after)
        self._pair = pair
        self._backfills = backfills
        self._leave_out = leave_out
        self._is_shaped = any(t == pair.after for t in txn.schema.catalog.types())
        """Whether the stored columns are those of the type to come already."""

    def batches(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns, batch by batch."""
        columns = {name: self._column(name) for name in names}
        reads = list(dict.fromkeys(["id", *(r for c in columns.values() for r in c.reads)]))
        schema = pa.schema([column.field.with_nullable(True) for column in columns.values()])
        for batch in self._table.batches(reads) if self._table is not None else ():
            if self._leave_out is not None:
                left_out = pc.is_in(batch.column("id"), value_set=self._leave_out)
                batch = batch.filter(pc.invert(left_out))
            made = [column.make(batch) for column in columns.values()]
            yield pa.table(made, schema=schema)

    def whole(self, names: Sequence[str]) -> pa.Table:
        """Some columns of all rows."""
        return pa.concat_tables(list(self.batches(names)))

    def _column(self, name: str) -> Made:
        after = self._pair.after
        if self._is_shaped or name in after.system_columns:
            field = table_schema(after).field(name)
            return Made(field=field, reads=(name,), make=lambda batch: batch.column(name))
        return column_of(self._pair.before, after.by_name[name], self._backfills)


def _values(stored: _Stored, pair: TypePair) -> Iterator[list[Finding]]:
    """Rules about single values: those that are new, and all of columns that are made anew."""
    judged = _judged(pair)
    if not judged.properties:
        return
    names = [*judged.system_columns, *(p.name for p in judged.properties)]
    for rows in stored.batches(list(dict.fromkeys(names))):
        yield check_values(TableDelta(type=judged, mode=WriteMode.OVERWRITE, rows=rows))


def _judged(pair: TypePair) -> GraphType:
    """The type to come with the rules in question and the properties that they are about."""
    before, after = pair.before, pair.after
    old = {p.id: p for p in before.properties}
    old_rules = rules_of(before)
    new = {
        rule.members[0]
        for rule in rules_of(after)
        if rule.word in ("range", "check") and _is_new(rule, old_rules)
    }
    remade = {p.id for p in after.properties if _is_remade(old.get(p.id), p)}
    asked = new | remade
    own = tuple(
        p if p.id in remade else replace(p, type=replace(p.type, nullable=True, enum_values=None))
        for p in after.properties
        if p.id in asked and (p.id in remade or not p.type.is_list)
    )
    judged = replace(after, properties=own, key=(), unique=(), indexes=())
    if not isinstance(judged, NodeType):
        return judged
    return replace(
        judged,
        ranges=tuple(r for r in judged.ranges if member(after, r.property_name) in asked),
        checks=tuple(c for c in judged.checks if member(after, c.property_name) in asked),
    )


def _is_new(rule: Rule, old: Sequence[Rule]) -> bool:
    return rule not in old and needs_check(rule, old)


def _is_remade(before: Property | None, after: Property) -> bool:
    """Whether its values are new, or were never held to what its type now says."""
    if before is None:
        return True
    narrowed = type_change(before.type, after.type) is TypeChange.NARROWED
    return narrowed or (before.type.nullable and not after.type.nullable)


def _groups(stored: _Stored, pair: TypePair) -> Iterator[list[Finding]]:
    old = rules_of(pair.before)
    for rule in rules_of(pair.after):
        if rule.word != "unique" or not _is_new(rule, old):
            continue
        names = {p.id: p.name for p in pair.after.properties}
        group = tuple(names[m] if isinstance(m, int) else m for m in rule.members)
        rows = stored.whole(list(dict.fromkeys(("id", *group))))
        delta = TableDelta(type=pair.after, mode=WriteMode.OVERWRITE, rows=rows)
        yield check_repeats(delta, group)


def _edges(
    txn: WriteTxn,
    stored: _Stored,
    schemas: tuple[Catalog, Catalog],
    before: EdgeType,
    after: EdgeType,
) -> list[Finding]:
    accepted, desired = schemas
    ends = [
        (accepted.nodes[old].id, desired.nodes[new].id)
        for old, new in ((before.source, after.source), (before.target, after.target))
    ]
    moved = any(old != new for old, new in ends)
    bounded = stricter(before, after)
    if not moved and not bounded:
        return []
    rows = stored.whole(("id", "src", "dst"))
    image = _image(after, rows)
    found: list[Finding] = []
    if moved:
        names = _NewNames(txn, desired)
        found += check_endpoints({after.table_key: image}, names).get(after.table_key, [])
    if bounded:
        found += check_cardinality({}, image, txn)
    return found


def _image(edge: EdgeType, rows: pa.Table) -> TableImage:
    """All edges as if they were written now."""
    return TableImage(
        delta=TableDelta(type=edge, mode=WriteMode.OVERWRITE, rows=rows),
        rows=rows,
        positions=None,
        matched=NO_IDS,
        removed=NO_IDS,
        sources_before=NO_IDS,
        inserted_count=0,
        updated_count=0,
        deleted_count=0,
    )


class _NewNames:
    """The committed state under the table keys of another schema."""

    def __init__(self, txn: WriteTxn, desired: Catalog) -> None:
        self._txn = txn
        old = {(t.id, t.incarnation): t.table_key for t in txn.schema.catalog.types()}
        self._keys = {
            t.table_key: key
            for t in desired.types()
            if (key := old.get((t.id, t.incarnation))) is not None
        }

    def row_count(self, table_key: str) -> int:
        key = self._keys.get(table_key)
        return self._txn.row_count(key) if key is not None else 0

    def lookup(
        self, table_key: str, column: str, values: pa.Array, columns: tuple[str, ...]
    ) -> pa.Table:
        return self._txn.lookup(self._keys[table_key], column, values, columns)

    def scan(self, table_key: str, columns: tuple[str, ...]) -> pa.Table:
        return self._txn.scan(self._keys[table_key], columns)
