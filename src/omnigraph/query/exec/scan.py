"""The leaves: nodes of a type, by filter or by key.

Without an index a filter has to read its whole columns, so they are read once and kept, and the
filter runs over them in memory. Where a column is too large for that, or an index can answer, the
typed condition goes down to Lance instead; an index is asked until that has cost as much as reading
the column once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values, holds, is_constant
from omnigraph.query.exec.frame import Frame, NodeBinding
from omnigraph.query.exec.pushdown import to_lance_filter
from omnigraph.query.exec.rows import TableRows
from omnigraph.query.exec.world import NodeTable
from omnigraph.query.plan.nodes import Scan, Seek
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.identity import canonical_ids
from omnigraph.storage.layout import Positions

if TYPE_CHECKING:
    from omnigraph.query.exec.run import Run

_LOOKED_UP = re.compile(r"[^\W_]{3}")
"""What an index of parts knows texts by: three letters or digits in a row."""


def scan(step: Scan, run: Run) -> Frame:
    """All nodes that satisfy the filters."""
    table = run.world.node(step.type_name)
    filters = list(step.filters)
    run.guard.check_bytes(table.row_count * 8, table.row_count, f"the scan of {step.type_name}")
    if not filters or table.row_count == 0:
        rows = table.all_rows
        return Frame(len(rows), {step.variable: NodeBinding(table, rows=rows)})
    pushed = [f for f in filters if _goes_down(f, table, run.values)]
    narrowed: Positions | None = None
    if pushed:
        narrowed = _pushed(pushed, table, run)
    rest = filters if narrowed is None else [f for f in filters if f not in pushed]
    if narrowed is not None:
        frame = Frame(len(narrowed), {step.variable: NodeBinding(table, rows=narrowed)})
        return run.keep(frame, tuple(rest))
    whole = TableRows(table, run)
    mask = None
    for condition in rest:
        one = holds(condition, whole, run.values)
        mask = one if mask is None else mask & one
        if not mask.any():
            break
    found = table.all_rows if mask is None or mask.all() else np.flatnonzero(mask)
    return Frame(len(found), {step.variable: NodeBinding(table, rows=found)})


def _columns(condition: typed.Expr) -> set[str]:
    return {p.column for p in typed.walk(condition) if isinstance(p, typed.Prop)}


def _goes_down(condition: typed.Expr, table: NodeTable, values: Values) -> bool:
    """Whether Lance should answer: an index does, or the column is too large to keep."""
    columns = _columns(condition)
    source = table.columns.table
    if source is None or not columns:
        return False
    if all(table.columns.known(c) is not None for c in columns):
        return False
    if table.rents(columns) or _is_part_found(condition, table, values):
        return True
    return not all(table.columns.fits(c) for c in columns)


def _is_part_found(condition: typed.Expr, table: NodeTable, values: Values) -> bool:
    """Whether this is a ``contains`` that an index answers from a little of the column."""
    if not isinstance(condition, typed.TextTest) or condition.kind != "contains":
        return False
    text, part = condition.text, condition.part
    if not isinstance(text, typed.Prop) or not is_constant(part):
        return False
    wanted: str | None = values.of(part)
    return wanted is not None and bool(_LOOKED_UP.search(wanted)) and table.finds_parts(text.column)


def _pushed(conditions: Sequence[typed.Expr], table: NodeTable, run: Run) -> Positions | None:
    """Rows that Lance finds; None if it cannot be asked."""
    source = table.columns.table
    down = [to_lance_filter(c, run.values, table.type) for c in conditions]
    if source is None or any(d is None for d in down):
        return None
    joined: Any = down[0]
    for condition in down[1:]:
        joined = joined & condition
    found = source.where(joined, [])
    table.pay({c for condition in conditions for c in _columns(condition)}, found.num_rows)
    return source.layout.positions(found["_rowaddr"].to_numpy().astype(np.int64))


def seek(step: Seek, run: Run) -> Frame:
    """Nodes by id or key."""
    table = run.world.node(step.type_name)
    rows = table.find(_ids(step, table, run))
    frame = Frame(len(rows), {step.variable: NodeBinding(table, rows=rows)})
    return run.keep(frame, step.filters)


def _ids(step: Seek, table: NodeTable, run: Run) -> list[str]:
    if step.ids is not None:
        wanted = run.values.of(step.ids)
        if wanted is None:
            return []
        values: list[Any] = [wanted] if isinstance(wanted, str) else list(wanted)
        return [v for v in values if v is not None]
    members = [run.values.of(e) for e in step.key]
    if any(m is None for m in members):
        return []
    if len(members) == 1 and isinstance(members[0], str):
        return members
    key = {
        name: pa.array([member], arrow_type(table.type.by_name[name].type))
        for name, member in zip(table.type.key, members, strict=True)
    }
    return canonical_ids(table.type, pa.table(key)).to_pylist()
