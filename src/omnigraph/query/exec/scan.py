"""The leaves: nodes of a type, by filter or by key.

Without an index a filter has to read its whole columns, so they are read once and kept, and the
filter runs over them in memory. Where a column is too large for that, or an index can answer, the
typed condition goes down to Lance instead; an index is asked until that has cost as much as reading
the column once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.exec.columns import take
from omnigraph.query.exec.evaluate import Values, holds, is_constant
from omnigraph.query.exec.frame import Binding, Frame, NodeBinding
from omnigraph.query.exec.pushdown import to_lance_filter
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
    if table.asks_index(columns) or _is_part_found(condition, table, values):
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
    table.add_lookup({c for condition in conditions for c in _columns(condition)}, found.num_rows)
    return source.layout.positions(found["_rowaddr"].to_numpy().astype(np.int64))


NOT_FOUND = np.empty((2, 0), np.int64)


def seek(step: Seek, run: Run) -> Frame:
    """Nodes by id or key."""
    table = run.world.node(step.type_name)
    ids = seek_ids(step, run)
    if len(ids) == 1 and (found := table.find_one(ids[0])) is not None:
        row, vertex = np.array(found)[:, None] if found[0] >= 0 else NOT_FOUND
        frame = Frame(len(row), {step.variable: NodeBinding(table, rows=row, vertices=vertex)})
        return run.keep(frame, step.filters)
    rows = table.find(ids)
    frame = Frame(len(rows), {step.variable: NodeBinding(table, rows=rows)})
    return run.keep(frame, step.filters)


def seek_ids(step: Seek, run: Run) -> list[str]:
    """The ids that are sought."""
    table = run.world.node(step.type_name)
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


# -- rows ------------------------------------------------------------------------------------------
# Property columns of a frame, looked up late.
#
#     frame, world -> [rows] -> evaluate
#
# The two implementations of the evaluator's ``Columns``: the rows of a frame, and all rows of one
# table while it is scanned.


class FrameRows:
    """The rows of a frame."""

    def __init__(self, frame: Frame, run: Run) -> None:
        self._frame = frame
        self._run = run
        self._fetched: dict[tuple[str, str], pa.Array] = {}

    @property
    def length(self) -> int:
        return self._frame.length

    def prefetch(self, expressions: Iterable[typed.Expr]) -> None:
        """Fetch what these expressions need, all columns of a variable together."""
        wanted: dict[str, dict[str, None]] = {}
        for expr in expressions:
            for part in typed.walk(expr):
                if isinstance(part, typed.Prop):
                    wanted.setdefault(part.variable, {})[part.column] = None
        for variable, names in wanted.items():
            binding = self._frame.bindings[variable]
            stored = [n for n in names if not _by_number(binding, n)]
            if len(stored) > 1:
                columns = binding.table.columns.take_many(stored, binding.rows)
                for name, values in zip(stored, columns, strict=True):
                    self._fetched[variable, name] = values

    def column(self, prop: typed.Prop) -> pa.Array:
        fetched = self._fetched.get((prop.variable, prop.column))
        if fetched is not None:
            return fetched
        return self.values(prop.variable, prop.column)

    def values(self, variable: str, column: str) -> pa.Array:
        """One column of one variable."""
        binding = self._frame.bindings[variable]
        if isinstance(binding, NodeBinding):
            table = binding.table
            if _by_number(binding, column):
                return table.space.text(binding.vertices)
            rows = binding.rows
            if rows is table.all_rows_made and table.columns.fits(column):
                return table.columns.whole(column).encoded
            return table.columns.take(column, rows)
        return binding.table.columns.take(column, binding.rows)

    def present(self, variable: str) -> pa.BooleanArray:
        return pa.array(self._frame.bindings[variable].present())

    def block(self, expr: typed.Exists | typed.CountOf) -> pa.Array:
        return self._run.block(expr, self._frame)

    def text(self, expr: typed.TextMatch) -> pa.Array:
        binding = self._frame.node(expr.variable)
        found = take(self._run.text_matches(expr, binding.table), binding.rows)
        # A text test is never unknown: a node that is not there does not match.
        return found.fill_null(False)

    def score(self, expr: typed.Score) -> pa.Array:
        if self._frame.scores is None:
            raise InternalError(f"rows were not ranked by {expr}")
        return pa.array(self._frame.scores)


def _by_number(binding: Binding, column: str) -> bool:
    """Whether the ids in memory answer, so that nothing is read."""
    if not isinstance(binding, NodeBinding) or not binding.table.is_id(column):
        return False
    return binding.table.ids_known or not binding.has_rows


class TableRows:
    """All rows of a node table."""

    def __init__(self, table: NodeTable, run: Run) -> None:
        self._table = table
        self._run = run

    @property
    def length(self) -> int:
        return self._table.row_count

    def column(self, prop: typed.Prop) -> pa.Array:
        return self._table.columns.whole(prop.column).encoded

    def present(self, variable: str) -> pa.BooleanArray:
        return pa.array(np.ones(self.length, np.bool_))

    def block(self, expr: typed.Exists | typed.CountOf) -> pa.Array:
        raise InternalError(f"a block is not a filter of a scan: {expr}")

    def text(self, expr: typed.TextMatch) -> pa.Array:
        return self._run.text_matches(expr, self._table)

    def score(self, expr: typed.Score) -> pa.Array:
        raise InternalError(f"a score is not a filter of a scan: {expr}")
