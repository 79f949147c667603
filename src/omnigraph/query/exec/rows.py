"""Property columns of a frame, looked up late.

    frame, world -> [rows] -> evaluate

The two implementations of the evaluator's ``Columns``: the rows of a frame, and all rows of one
table while it is scanned.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.exec.columns import take
from omnigraph.query.exec.frame import Binding, Frame, NodeBinding
from omnigraph.query.exec.world import NodeTable

if TYPE_CHECKING:
    from omnigraph.query.exec.run import Run


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
    return binding.table.ids_known or (column == "id" and not binding.has_rows)


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
