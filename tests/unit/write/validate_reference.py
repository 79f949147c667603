"""The rules once more, row by row and without any cleverness, written from the specification.

Slow and obvious on purpose: the validator is compared with this. Shares no code with it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field

from omnigraph.rules.table_delta import WriteMode
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Scalar
from omnigraph.write.txn import GraphDelta


@dataclass
class Table:
    type: NodeType | EdgeType
    mode: WriteMode
    rows: list[dict]
    removed: set[str]
    before: dict[str, dict]
    final: dict[str, dict] = field(default_factory=dict)

    @property
    def kept(self) -> dict[str, dict]:
        """Committed rows that the write leaves as they are."""
        if self.mode is WriteMode.OVERWRITE:
            return {}
        return {
            i: r for i, r in self.before.items() if i not in self.final and i not in self.removed
        }

    @property
    def gone(self) -> set[str]:
        """Committed ids that disappear."""
        if self.mode is WriteMode.OVERWRITE:
            return set(self.before) - set(self.final)
        return set(self.before) & self.removed

    @property
    def counts(self):
        updated = set(self.before) & set(self.final)
        return len(self.final) - len(updated), len(updated), len(self.gone)


class Reference:
    """Runs on construction: ``found`` holds (rule, type, id, message), ``counts`` by table key."""

    def __init__(self, catalog: Catalog, delta: GraphDelta, committed: dict[str, list[dict]]):
        self.catalog = catalog
        self.found: Counter = Counter()
        self.tables: dict[str, Table] = {}
        for graph_type in catalog.types():
            key = graph_type.table_key
            before = {r["id"]: r for r in committed.get(key, [])}
            table = Table(graph_type, WriteMode.MERGE, [], set(), before)
            if (own := delta.tables.get(key)) is not None:
                table.mode, table.rows = own.mode, own.rows.to_pylist()
                table.removed = set(own.removed.to_pylist())
                for row in table.rows:
                    if row["id"] is not None:
                        table.final[row["id"]] = row
            self.tables[key] = table
        for key in delta.tables:
            self.values(self.tables[key])
            self.identity(self.tables[key])
            self.unique(self.tables[key])
        for table in self.tables.values():
            if table.type.kind == "edge":
                self.endpoints(table)
                self.cardinality(table)
        self.counts = {key: self.tables[key].counts for key in delta.tables}

    def tell(self, table, rule, entity_id, message):
        self.found[rule, table.type.name, entity_id, message] += 1

    def key_of(self, graph_type):
        if isinstance(graph_type, EdgeType):
            return ("src", "dst", *graph_type.key) if graph_type.keyed else ()
        return graph_type.key

    def values(self, table):
        name = table.type.name
        for row in table.rows:
            own = [p.name for p in table.type.properties if not p.type.nullable]
            for column in {*table.type.system_columns, *own}:
                excused = column == "id" and any(
                    row[m] is None for m in self.key_of(table.type) if m != "id"
                )
                if row[column] is None and not excused:
                    message = f"missing required value for {name}.{column}"
                    self.tell(table, "required", row["id"], message)
            for prop in table.type.properties:
                if row[prop.name] is not None:
                    self.value(table, row, prop, row[prop.name])

    def value(self, table, row, prop, value):
        where = f"{table.type.name}.{prop.name}"
        for bounds in getattr(table.type, "ranges", ()):
            if bounds.property_name != prop.name:
                continue
            low = -math.inf if bounds.low is None else bounds.low
            high = math.inf if bounds.high is None else bounds.high
            if not low <= value <= high:
                texts = ["" if b is None else str(b) for b in (bounds.low, bounds.high)]
                message = (
                    f"@range violation on {where}: value {value} not in {texts[0]}..{texts[1]}"
                )
                self.tell(table, "range", row["id"], message)
        for check in getattr(table.type, "checks", ()):
            if check.property_name == prop.name and not re.search(check.pattern, value):
                message = (
                    f"@check violation on {where}: value '{value}' "
                    f'does not match "{check.pattern}"'
                )
                self.tell(table, "check", row["id"], message)
        if prop.type.enum_values and value not in prop.type.enum_values:
            expected = ", ".join(prop.type.enum_values)
            message = f"invalid enum value '{value}' for {where} (expected: {expected})"
            self.tell(table, "enum", row["id"], message)
        elements = value if isinstance(value, list) else [value]
        if None in elements:
            self.tell(table, "value", row["id"], f"null element in {where}")
        if prop.type.scalar in (Scalar.F32, Scalar.F64, Scalar.VECTOR) and any(
            e is not None and not math.isfinite(e) for e in elements
        ):
            self.tell(table, "value", row["id"], f"non-finite value for {where}")

    def identity(self, table):
        key = self.key_of(table.type)
        seen = set()
        for row in table.rows:
            entity_id = row["id"]
            if entity_id in seen and (key or table.mode is not WriteMode.MERGE):
                members = key or ("id",)
                message = (
                    f"@key violation on {table.type.name}.{self.named(members)}: "
                    f"value {self.shown(row, members)} repeated in the input"
                )
                self.tell(table, "key", entity_id, message)
            if entity_id is not None:
                seen.add(entity_id)
        if table.mode is WriteMode.APPEND:
            for entity_id in set(table.final) & set(table.before):
                message = f"key conflict on {table.type.name}: '{entity_id}' exists already"
                self.tell(table, "key", entity_id, message)

    def unique(self, table):
        for group in table.type.unique:
            if set(group) == set(self.key_of(table.type)):
                continue
            first = {}
            for row in table.rows:
                values = tuple(row[m] for m in group)
                if None not in values and values in first:
                    self.tell_unique(table, group, row, first[values])
                first.setdefault(values, row["id"])
            for row in table.rows:
                values = tuple(row[m] for m in group)
                if None in values or not self.is_last(table, row):
                    continue
                for other in table.kept.values():
                    if tuple(other[m] for m in group) == values:
                        self.tell_unique(table, group, row, other["id"])

    def tell_unique(self, table, group, row, holder):
        message = (
            f"@unique violation on {table.type.name}.{self.named(group)}: "
            f"value {self.shown(row, group)} held by '{holder}' and '{row['id']}'"
        )
        self.tell(table, "unique", row["id"], message)

    def is_last(self, table, row):
        return row["id"] is None or table.final[row["id"]] is row

    def endpoints(self, table):
        for column, node_name in (("src", table.type.source), ("dst", table.type.target)):
            node = self.tables[f"node:{node_name}"]
            for row in table.rows:
                known = row[column] in node.final or row[column] in node.kept
                if row[column] is not None and self.is_last(table, row) and not known:
                    message = f"{column} '{row[column]}' not found in {node_name}"
                    self.tell(table, "endpoint", row["id"], message)
            for row in table.kept.values():
                if row[column] in node.gone:
                    message = (
                        f"edge {table.type.name} '{row['id']}': "
                        f"{column} '{row[column]}' not found in {node_name}"
                    )
                    self.tell(table, "endpoint", row["id"], message)

    def cardinality(self, table):
        low, high = table.type.cardinality.low, table.type.cardinality.high
        last = [r for r in table.rows if self.is_last(table, r)]
        replaced = [r for i, r in table.before.items() if i not in table.kept]
        touched = {r["src"] for r in [*last, *replaced]} - {None}
        for source in touched - self.tables[f"node:{table.type.source}"].gone:
            mine = [r for r in last if r["src"] == source]
            number = len(mine) + sum(r["src"] == source for r in table.kept.values())
            bound = f"min {low}" if number < low else f"max {high}"
            if number < low or (high is not None and number > high):
                message = (
                    f"@card violation on edge {table.type.name}: "
                    f"source '{source}' has {number} edges ({bound})"
                )
                self.tell(table, "cardinality", mine[-1]["id"] if mine else None, message)

    def named(self, members):
        return members[0] if len(members) == 1 else f"({', '.join(members)})"

    def shown(self, row, members):
        texts = [str(row[m]) for m in members]
        return f"'{texts[0]}'" if len(texts) == 1 else f"({', '.join(texts)})"
