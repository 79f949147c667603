"""As much of a DataFrame as a check of a bulk load asks for, without Spark.

Partitions are lists of batches and everything happens at once. ``exchanges`` counts what Spark
would move between tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rules.table_delta import FILE, LINE


@dataclass
class Session:
    exchanges: int = 0
    rows_sent: list[int] = field(default_factory=list)

    def range(self, start: int, end: int, step: int, partitions: int) -> Frame:
        parts = [[pa.record_batch({"id": pa.array([i])})] for i in range(start, end, step)]
        return Frame(self, parts)


@dataclass
class Frame:
    session: Session
    parts: list[list[pa.RecordBatch]]

    @property
    def table(self) -> pa.Table | None:
        batches = [batch for part in self.parts for batch in part]
        return pa.Table.from_batches(batches) if batches else None

    def mapInArrow(self, function, ddl: str) -> Frame:
        return Frame(self.session, [list(function(iter(part))) for part in self.parts])

    def unionByName(self, other: Frame) -> Frame:
        return Frame(self.session, self.parts + other.parts)

    def repartition(self, partitions: int, column: str) -> Frame:
        self.session.exchanges += 1
        self.session.rows_sent.append(0 if self.table is None else self.table.num_rows)
        return self

    def groupBy(self, column: str) -> SimpleNamespace:
        def apply(function, ddl: str) -> Frame:
            table, parts = self.table, []
            for key in [] if table is None else pc.unique(table.column(column)).to_pylist():
                group = table.filter(pc.equal(table.column(column), key))
                parts.append(function(group).to_batches())
            return Frame(self.session, parts)

        return SimpleNamespace(applyInArrow=apply)

    def persist(self, level: object) -> Frame:
        return self

    def unpersist(self) -> None: ...

    def where(self, condition: str) -> Frame:
        table = self.table
        if table is None:
            return self
        test = {"n > 0": pc.greater, "n = 0": pc.equal}[condition]
        return Frame(self.session, [table.filter(test(table.column("n"), 0)).to_batches()])

    def select(self, *names: str) -> Frame:
        return self

    def orderBy(self, *names: str) -> Frame:
        self.session.exchanges += 1
        order = [(name, "ascending") for name in names]
        return Frame(self.session, [self.table.sort_by(order).to_batches()])

    def limit(self, count: int) -> Frame:
        return Frame(self.session, [self.table.slice(0, count).to_batches()])

    def collect(self) -> list[dict]:
        return [] if self.table is None else self.table.to_pylist()

    toLocalIterator = collect


class State:
    """Committed tables, a piece for every three rows."""

    def __init__(self, types, tables) -> None:
        self._types = types
        self._tables = tables

    def row_count(self, table_key: str) -> int:
        return self._tables[table_key].num_rows if table_key in self._tables else 0

    def scan(self, table_key: str, columns) -> SimpleNamespace:
        rows = self._tables[table_key].select(list(columns))
        return SimpleNamespace(
            table=SimpleNamespace(type=self._types.table(table_key)),
            pieces=lambda: list(range(0, rows.num_rows, 3)),
            batches=lambda at: iter(rows.slice(at, 3).combine_chunks().to_batches()),
        )


def input_frame(session: Session, tables, *, task_rows: int = 2) -> tuple[Frame, object]:
    """Rows of an input, a task for each few; and what reads them there."""
    parts = [
        (k, t.slice(i, task_rows)) for k, t in tables.items() for i in range(0, len(t), task_rows)
    ]
    frame = session.range(0, len(parts), 1, max(1, len(parts)))

    def read(batches):
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield parts[number]

    return frame, read


def with_places(rows: pa.Table) -> pa.Table:
    """Rows of one file, a line each."""
    count = rows.num_rows
    files, lines = pa.array([0] * count, pa.int32()), pa.array(range(1, count + 1), pa.int64())
    return rows.append_column(FILE, files).append_column(LINE, lines)
