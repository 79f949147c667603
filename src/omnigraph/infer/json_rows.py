"""JSONL as tables: plain rows, or records of a graph, which name their types.

    {"name": "Ada"} -> one table
    {"type": "Person", "data": {...}}, {"edge": "Knows", "from": ..., "to": ...} -> a table a type

Days and instants are texts in JSON; a column that consists of them gets their type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import one_array
from omnigraph.errors import InputError
from omnigraph.infer.graphs.entities import column_of_values
from omnigraph.lang.source import one_line

_DAY = r"^\d{4}-\d{2}-\d{2}$"
_INSTANT = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})$"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsOfType:
    """What a file has of one type."""

    name: str
    is_edge: bool
    """With its ends in the columns ``src`` and ``dst``."""
    rows: pa.Table


def json_tables(name: str, text: bytes) -> pa.Table | list[RecordsOfType]:
    """One table of plain rows; or, of records, those of each type that they name."""
    lines = list(_objects(name, text))
    records = [("type" in row or "edge" in row) and _is_record(row) for _, row in lines]
    if not any(records):
        return _table([row for _, row in lines])
    if not all(records):
        line, _ = lines[records.index(False)]
        raise InputError(
            f"{one_line(name)}:{line}: not a record of a graph",
            hint='write {"type": …, "data": {…}} or {"edge": …, "from": …, "to": …} everywhere',
        )
    found: dict[tuple[str, bool], list[Mapping[str, Any]]] = {}
    for _, row in lines:
        data = row.get("data") or {}
        if "type" in row:
            found.setdefault((str(row["type"]), False), []).append(data)
        else:
            ends = {"src": row.get("from"), "dst": row.get("to")}
            found.setdefault((str(row["edge"]), True), []).append({**ends, **data})
    return [
        RecordsOfType(name=title, is_edge=is_edge, rows=_table(rows))
        for (title, is_edge), rows in found.items()
    ]


def _is_record(row: Mapping[str, Any]) -> bool:
    return set(row) <= {"type", "edge", "from", "to", "data"} and isinstance(
        row.get("data") or {}, dict
    )


def _objects(name: str, text: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    whole = text.lstrip()[:1] == b"["
    pieces = [(1, text)] if whole else list(enumerate(text.splitlines(), 1))
    for line, piece in pieces:
        if not piece.strip():
            continue
        try:
            value = orjson.loads(piece)
        except orjson.JSONDecodeError as error:
            raise InputError(f"{one_line(name)}:{line}: not JSON: {error}") from None
        for row in value if whole else [value]:
            if not isinstance(row, dict):
                raise InputError(f"{one_line(name)}:{line}: not an object")
            yield line, row


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({n: _dated(column_of_values([row.get(n) for row in rows])) for n in names})


def _dated(column: pa.Array) -> pa.Array:
    """Texts that all are days, or all instants, as such."""
    if not pa.types.is_string(column.type) or column.null_count == len(column):
        return column
    kinds = ((_DAY, pa.date32()), (_INSTANT, pa.timestamp("us", "UTC")))
    for pattern, kind in kinds:
        if pc.all(pc.match_substring_regex(column, pattern)).as_py():
            try:
                return one_array(column.cast(kind))
            except pa.ArrowException:  # The 31st of February.
                return column
    return column
