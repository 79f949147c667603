"""The exact path: one line at a time, every rule in plain sight. The truth that others must match.

    block -> fast, and what it declines -> [exact] -> parts and problems

It is some twenty times slower than the fast path and handles whatever looks unusual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.ids import IdSource
from omnigraph.input.loaded_rows import LoadedRows, Part, finish, settle_ids
from omnigraph.input.problems import PROBLEMS_MAX, Problem, input_error
from omnigraph.input.record_shape import RecordShape, ShapedRow
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.strict_json import LineRefused, parse_line


class RowCollector:
    """Collects converted rows and turns them into one part per type."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[int, ShapedRow]]] = {}
        self.count = 0

    def add(self, row: ShapedRow, line: int) -> None:
        """Take one row."""
        self._rows.setdefault(row.type.table_key, []).append((line, row))
        self.count += 1

    def parts(self, problems_max: int = PROBLEMS_MAX) -> tuple[list[Part], list[Problem]]:
        """Everything collected so far as Arrow, and the ids that contradict their key."""
        parts: list[Part] = []
        problems: list[Problem] = []
        for numbered in self._rows.values():
            graph_type = numbered[0][1].type
            lines = np.array([line for line, _ in numbered], dtype=np.int64)
            given = _table(graph_type, [row.values for _, row in numbered])
            rows, mismatches = settle_ids(graph_type, given, mismatches_max=problems_max)
            problems += [Problem(line=int(lines[i]), message=m) for i, m in mismatches]
            parts.append(Part(type=graph_type, rows=rows, lines=lines))
        return parts, problems


def _table(graph_type: GraphType, rows: Sequence[dict[str, Any]]) -> pa.Table:
    schema = table_schema(graph_type)
    columns = [pa.array([r.get(f.name) for r in rows], f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def read_lines(
    lines: Iterable[tuple[int, bytes]], shape: RecordShape, *, problems_max: int = PROBLEMS_MAX
) -> tuple[list[Part], list[Problem]]:
    """Numbered lines -> parts and problems. Stops early when there are enough problems."""
    collector = RowCollector()
    problems: list[Problem] = []
    for number, raw in lines:
        if len(problems) >= problems_max:
            break
        try:
            record = parse_line(raw)
        except LineRefused as refused:
            problems.append(Problem(line=number, column=refused.column, message=refused.message))
            continue
        found: list[str] = []
        row = shape.read(record, found.append)
        problems += [Problem(line=number, message=m) for m in found]
        if row is not None:
            collector.add(row, number)
    parts, mismatches = collector.parts(problems_max)
    return parts, sorted([*problems, *mismatches], key=lambda p: p.line or 0)


# -- dict records ----------------------------------------------------------------------------------
# Python dicts as records: the shapes of JSONL lines, with Python values where they are clearer.
#
#     dicts -> shape and values (the exact path's) -> [records] -> LoadedRows per type
#
# Beside what JSON can carry, values may be `date`, `datetime`, `Decimal`, `bytes`, and numpy
# scalars or arrays; `pandas.NA` and `NaT` are null.


_ROWS_PER_PART = 1 << 16
"""Converted rows are packed into Arrow this often, so that few Python objects live at a time."""


def rows_from_records(
    records: Iterable[Mapping[str, Any]],
    catalog: Catalog,
    ids: IdSource,
    *,
    source_name: str = "rows",
) -> dict[str, LoadedRows]:
    """The rows of all records by table key, in order of first mention. Raises InputError."""
    shape = RecordShape(catalog)
    parts: list[Part] = []
    problems: list[Problem] = []
    collector = RowCollector()

    def pack() -> None:
        new_parts, mismatches = collector.parts()
        parts.extend(new_parts)
        problems.extend(p.at(source_name, 0) for p in mismatches)

    for number, record in enumerate(records, start=1):
        found: list[str] = []
        row = shape.read(record, found.append)
        problems += [Problem(source=source_name, line=number, message=m) for m in found]
        if row is not None:
            collector.add(row, number)
        if collector.count >= _ROWS_PER_PART:
            pack()
            collector = RowCollector()
        if len(problems) >= PROBLEMS_MAX:
            break
    pack()
    if problems:
        ordered = sorted(problems, key=lambda p: p.line or 0)
        raise input_error(ordered[:PROBLEMS_MAX], stopped=len(ordered) >= PROBLEMS_MAX)
    return finish(parts, [source_name], ids)
