"""Whether rows that stay as they are keep the rules that another schema adds.

    schema view of the pinned state, types that change -> [conformity] -> violations that name rows

The rules themselves are those of the one validator: a table is given to them as if all its rows
were written anew, with a type that has only the rules in question. Values are looked at batch by
batch; groups, endpoints and cardinality need their columns as a whole. Rows that a delta touches
are the validator's; here they only count where a rule is about many rows at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import true_at, union
from omnigraph.errors import Violation
from omnigraph.rules.cardinality import check_cardinality
from omnigraph.rules.endpoints import check_endpoints
from omnigraph.rules.findings import RuleFinding, count, first, no_place, row_finding
from omnigraph.rules.identity import check_derived, identity_members
from omnigraph.rules.image import TableImage, bounded, image_of
from omnigraph.rules.table_delta import NO_IDS, TableDelta, WriteMode
from omnigraph.rules.unique import check_repeats
from omnigraph.rules.values import check_values
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import EdgeType, GraphType, NodeType, Property
from omnigraph.schema.identity import is_keyed
from omnigraph.schema.migrate.facts import ConstraintRule, key_of, member, rules_of
from omnigraph.schema.migrate.plan import needs_check, stricter
from omnigraph.schema.migrate.type_changes import TypeChange, keeps_text, misfits, type_change
from omnigraph.write.reshaping import TypePair
from omnigraph.write.schema_view import SchemaView
from omnigraph.write.txn import GraphDelta

VIOLATIONS_MAX = 20
NOTHING = GraphDelta(tables={})


class _Report:
    """Violations, counted in full and kept as far as they are shown."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.total = 0
        self.shown: list[Violation] = []

    def add(self, findings: Sequence[RuleFinding]) -> None:
        self.total += count(findings)
        self.shown += first(findings, self._limit - len(self.shown))


def broken_rules(
    view: SchemaView,
    pairs: Sequence[TypePair],
    delta: GraphDelta = NOTHING,
    *,
    violations_max: int = VIOLATIONS_MAX,
) -> tuple[list[Violation], int]:
    """The first rows that break a rule of the schema to come, and how many there are.

    Rows keep the rules of the pinned schema. Those that ``delta`` writes or removes are not asked.
    """
    report = _Report(violations_max)
    for pair in pairs:
        if not view.row_count(pair.after.table_key):
            continue
        stored = _Stored(view, pair, delta.tables.get(pair.after.table_key))
        for findings in (*_places(stored), *_values(stored), *_ids(stored), *_groups(stored)):
            report.add(findings)
        if isinstance(pair.before, EdgeType) and isinstance(pair.after, EdgeType):
            report.add(_edges(stored, pair.before, pair.after, delta))
    return report.shown, report.total


def all_rules(view: SchemaView, graph_type: GraphType) -> tuple[list[Violation], int]:
    """The first rows of a table that a load would be refused for, and how many there are.

    Whether both ends of an edge exist is asked elsewhere: that is about two tables.
    """
    report = _Report(VIOLATIONS_MAX)
    stored = _Stored(view, TypePair(before=graph_type, after=graph_type), None)
    names = list(dict.fromkeys([*graph_type.system_columns, *graph_type.by_name]))
    for rows in stored.batches(names):
        delta = TableDelta(type=graph_type, mode=WriteMode.OVERWRITE, rows=rows)
        report.add([*check_values(delta), *check_derived(delta)])
    for group in graph_type.unique:
        report.add(_repeats(stored, group))
    if isinstance(graph_type, EdgeType) and bounded(graph_type):
        image = _image(graph_type, stored.whole(("id", "src", "dst")))
        report.add(check_cardinality({}, image, view))
    return report.shown, report.total


class _Stored:
    """The rows of a table that the write does not touch, in the columns of the type to come."""

    def __init__(self, view: SchemaView, pair: TypePair, delta: TableDelta | None) -> None:
        self.view = view
        self.pair = pair
        self.delta = delta
        self._touched = (
            union([delta.rows.column("id"), delta.removed]) if delta is not None else NO_IDS
        )

    def batches(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Some columns, batch by batch."""
        wanted = list(dict.fromkeys(("id", *names)))
        for rows in self.view.batches(self.pair.after, wanted):
            yield self._untouched(rows).select(list(names))

    def stored(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """The same in the names and types that are stored."""
        for batch in self.view.stored_batches(self.pair.after, names):
            yield self._untouched(pa.Table.from_batches([batch]))

    def whole(self, names: Sequence[str]) -> pa.Table:
        """Some columns of all rows."""
        found = list(self.batches(names))
        return pa.concat_tables(found)

    def coming(self, names: Sequence[str]) -> pa.Table:
        """Some columns of all rows that there will be."""
        rows = self.whole(names)
        if self.delta is None:
            return rows
        return pa.concat_tables([rows, self.delta.rows.select(list(names)).cast(rows.schema)])

    def _untouched(self, rows: pa.Table) -> pa.Table:
        if not len(self._touched):
            return rows
        return rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=self._touched)))


def _places(stored: _Stored) -> Iterator[list[RuleFinding]]:
    """Values that have no place in the type that their property gets."""
    before, after = stored.pair.before, stored.pair.after
    old = {p.id: p for p in before.properties}
    for prop in after.properties:
        was = old.get(prop.id)
        if was is None or type_change(was.type, prop.type) is not TypeChange.OTHER:
            continue
        for rows in stored.stored(("id", was.name)):
            lost = true_at(misfits(rows.column(was.name), arrow_type(prop.type)))
            values = rows.column(was.name)
            delta = TableDelta(type=after, mode=WriteMode.OVERWRITE, rows=rows)

            def message(
                index: int,
                lost: object = lost,
                values: pa.ChunkedArray = values,
                prop: Property = prop,
            ) -> str:
                return no_place(after, prop, values[int(lost[index])].as_py())  # pyright: ignore

            yield row_finding(delta, lost, rule="type", property_name=prop.name, message=message)


def _values(stored: _Stored) -> Iterator[list[RuleFinding]]:
    """Rules about single values: those that are new, and all of columns that are made anew."""
    asked = _asked_of(stored.pair)
    if not asked.properties:
        return
    names = [*asked.system_columns, *(p.name for p in asked.properties)]
    for rows in stored.batches(list(dict.fromkeys(names))):
        yield check_values(TableDelta(type=asked, mode=WriteMode.OVERWRITE, rows=rows))


def _asked_of(pair: TypePair) -> GraphType:
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
    bare = replace(after, properties=own, key=(), unique=(), indexes=())
    if not isinstance(bare, NodeType):
        return bare
    return replace(
        bare,
        ranges=tuple(r for r in bare.ranges if member(after, r.property_name) in asked),
        checks=tuple(c for c in bare.checks if member(after, c.property_name) in asked),
    )


def _is_new(rule: ConstraintRule, old: Sequence[ConstraintRule]) -> bool:
    return rule not in old and needs_check(rule, old)


def _is_remade(before: Property | None, after: Property) -> bool:
    """Whether its values are new, or were never held to what its type now says."""
    if before is None:
        return True
    changed = type_change(before.type, after.type) in (TypeChange.NARROWED, TypeChange.OTHER)
    return changed or (before.type.nullable and not after.type.nullable)


def _ids(stored: _Stored) -> Iterator[list[RuleFinding]]:
    """Ids that do not follow from the key to come."""
    before, after = stored.pair.before, stored.pair.after
    if not is_keyed(after) or _same_key(before, after):
        return
    names = list(dict.fromkeys(("id", *identity_members(after))))
    for rows in stored.batches(names):
        yield check_derived(TableDelta(type=after, mode=WriteMode.OVERWRITE, rows=rows))


def _same_key(before: GraphType, after: GraphType) -> bool:
    """Whether ids are written as before."""
    old = {p.id: p for p in before.properties}
    members = [after.by_name[name] for name in after.key]
    return key_of(before) == key_of(after) and all(
        p.id in old and keeps_text(old[p.id].type, p.type) for p in members
    )


def _groups(stored: _Stored) -> Iterator[list[RuleFinding]]:
    before, after = stored.pair.before, stored.pair.after
    old, was = rules_of(before), {p.id: p for p in before.properties}
    # Values that are filled in may repeat, also under a rule that always held.
    remade = {p.id for p in after.properties if _is_remade(was.get(p.id), p)}
    for rule in rules_of(after):
        if rule.word != "unique" or not (_is_new(rule, old) or remade & {*rule.members}):
            continue
        names = {p.id: p.name for p in after.properties}
        group = tuple(names[m] if isinstance(m, int) else m for m in rule.members)
        yield _repeats(stored, group)


def _repeats(stored: _Stored, group: tuple[str, ...]) -> list[RuleFinding]:
    rows = stored.whole(list(dict.fromkeys(("id", *group))))
    delta = TableDelta(type=stored.pair.after, mode=WriteMode.OVERWRITE, rows=rows)
    return check_repeats(delta, group)


def _edges(
    stored: _Stored, before: EdgeType, after: EdgeType, delta: GraphDelta
) -> list[RuleFinding]:
    view = stored.view
    accepted, desired = view.stored, view.catalog
    moved = any(
        accepted.nodes[old].id != desired.nodes[new].id
        for old, new in ((before.source, after.source), (before.target, after.target))
    )
    tightened = stricter(before, after)
    if not moved and not tightened:
        return []
    image = _image(after, stored.coming(("id", "src", "dst")))
    found: list[RuleFinding] = []
    if moved:
        nodes = {
            key: image_of(table) for key, table in delta.tables.items() if table.type.kind == "node"
        }
        images = {**nodes, after.table_key: image}
        found += check_endpoints(images, view).get(after.table_key, [])
    if tightened:
        found += check_cardinality({}, image, view)
    return found


def _image(graph_type: GraphType, rows: pa.Table) -> TableImage:
    """All rows as if they were written now."""
    return image_of(TableDelta(type=graph_type, mode=WriteMode.OVERWRITE, rows=rows))
