"""Python dicts as records: the shapes of JSONL lines, with Python values where they are clearer.

    dicts -> shape and values (the exact path's) -> [records] -> LoadedRows per type

Beside what JSON can carry, values may be `date`, `datetime`, `Decimal`, `bytes`, and numpy scalars
or arrays; `pandas.NA` and `NaT` are null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.ids import IdSource
from omnigraph.input.jsonl_exact import RowCollector
from omnigraph.input.loaded_rows import LoadedRows, Part, finish
from omnigraph.input.problems import PROBLEMS_MAX, Problem, input_error
from omnigraph.input.record_shape import RecordShape
from omnigraph.schema.catalog import Catalog

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
