"""Runs a plan on a snapshot.

    plan, world, values -> [run] -> Arrow table

One method per kind of step; each takes a frame and gives a frame, the last ones give the result
table. With a profile every step notes its rows, time and requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from omnigraph.deadline import Asking
from omnigraph.errors import InternalError, ParameterError
from omnigraph.query import typed
from omnigraph.query.exec import expand as traversal
from omnigraph.query.exec.aggregate import Grouped, codes_of, distinct_count, group
from omnigraph.query.exec.columns import contiguous
from omnigraph.query.exec.evaluate import Values, evaluate, holds
from omnigraph.query.exec.few import few_rows
from omnigraph.query.exec.frame import Frame, Index, Mask, NodeBinding
from omnigraph.query.exec.join import attach, compact, equal_rows, outer_frame, product, solutions
from omnigraph.query.exec.limits import Guard
from omnigraph.query.exec.order import SortKey, downwards, order_rows, sortable
from omnigraph.query.exec.outputs import objects, plain, whole_number
from omnigraph.query.exec.rank import Searcher
from omnigraph.query.exec.scan import FrameRows, scan, seek
from omnigraph.query.exec.world import NodeTable, World
from omnigraph.query.plan import nodes as steps
from omnigraph.query.plan.explain import Profile
from omnigraph.query.plan.nodes import Plan
from omnigraph.query.plan.planner import too_deep
from omnigraph.query.plan.rules.count_rows import ROW

NO_FRAME = Frame(1, {})
VALUE_BYTES = 16
"""Guess of what one value of a result takes."""


class Run:
    """One execution of one plan."""

    def __init__(
        self,
        world: World,
        values: Values,
        guard: Guard,
        blocks: Mapping[typed.Pattern, Plan],
        searcher: Callable[[], Searcher],
        profile: Profile | None = None,
    ) -> None:
        self.world = world
        self.values = values
        self.guard = guard
        self._blocks = blocks
        self._make_searcher = searcher
        self._profile = profile
        self._outer = NO_FRAME
        self._depth = 0

    def result(self, plan: Plan) -> pa.Table:
        """The rows of a whole query."""
        try:
            if self.guard.is_timed:
                with Asking(self.guard.check_time):
                    made = self._step(plan)
            else:
                made = self._step(plan)
        except RecursionError:
            raise too_deep() from None
        if not isinstance(made, pa.Table):
            raise InternalError(f"a plan ends in {type(plan).__name__}")
        return made

    @cached_property
    def _searcher(self) -> Searcher:
        return self._make_searcher()

    # ------------------------------------------------------------ for expressions

    def text_matches(self, expr: typed.TextMatch, table: NodeTable) -> pa.BooleanArray:
        """Which rows of a table pass a text test."""
        return self._searcher.matches(expr, table)

    def block(self, expr: typed.Exists | typed.CountOf, frame: Frame) -> pa.Array:
        """Whether, or how often, a block has a solution for each row."""
        counts = self._solutions(self._blocks[expr.block], frame, expr.block.outer)
        if isinstance(expr, typed.Exists):
            return pa.array(counts > 0)
        return pa.array(counts, pa.int64())

    # ------------------------------------------------------------ steps

    def _step(self, plan: Plan) -> Any:
        make = self._steps[type(plan)]
        if self._profile is None:
            return make(self, plan)
        return self._noted(plan, lambda: make(self, plan))

    def _noted(self, plan: Plan, make: Callable[[], Any]) -> Any:
        if self._profile is None:
            return make()
        with self._profile.step(plan, self.world) as note:
            made = make()
            note(made.num_rows if isinstance(made, pa.Table) else made.length)
            return made

    def _frame(self, plan: Plan) -> Frame:
        made: Frame = self._step(plan)
        if self.guard.is_timed:
            self.guard.check_time(type(plan).__name__.lower())
        return made

    def _scan(self, plan: steps.Scan) -> Frame:
        return scan(plan, self)

    def _seek(self, plan: steps.Seek) -> Frame:
        return seek(plan, self)

    def _outer_rows(self, plan: steps.Outer) -> Frame:
        return self._outer.only(plan.variables)

    def _unit(self, plan: steps.Unit) -> Frame:
        return NO_FRAME

    def _expand(self, plan: steps.Expand) -> Frame:
        grown = traversal.expand(
            self._frame(plan.input), plan, self.world.edge(plan.edge), self.guard
        )
        return self.keep(grown, plan.filters)

    def _close(self, plan: steps.Close) -> Frame:
        frame = self._frame(plan.input)
        return traversal.close(frame, plan, self.world.edge(plan.edge), self.guard)

    def _degrees(self, plan: steps.Degrees) -> Frame:
        return traversal.degrees(self._frame(plan.input), plan, self.world.edge(plan.edge))

    def _compact(self, plan: steps.Compact) -> Frame:
        hop = plan.input
        if isinstance(hop, steps.Expand) and plan.counted and plan.keep == (hop.target,):
            frame, edges = self._frame(hop.input), self.world.edge(hop.edge)
            arrived = traversal.arrivals(frame, hop, edges)
            if arrived is not None:
                # The hop and the counting in one: a profile still tells that the hop ran.
                return self._noted(hop, lambda: arrived)
            grown: Frame = self._noted(
                hop,
                lambda: self.keep(traversal.expand(frame, hop, edges, self.guard), hop.filters),
            )
            return compact(grown, plan.keep, counted=True)
        return compact(self._frame(hop), plan.keep, counted=plan.counted)

    def _join(self, plan: steps.Join) -> Frame:
        left = self._frame(plan.left)
        if left.length == 0 and not plan.on:
            # Nothing meets nothing; but the other side still says what its variables are.
            return product(left, self._frame(plan.right), self.guard)
        right = self._frame(plan.right)
        if not plan.on:
            return product(left, right, self.guard)
        ours, theirs = FrameRows(left, self), FrameRows(right, self)
        on = [(self._array(a, ours), self._array(b, theirs)) for a, b in plan.on]
        return equal_rows(left, right, on, self.guard)

    def _filter(self, plan: steps.Filter) -> Frame:
        return self.keep(self._frame(plan.input), plan.conditions)

    def keep(self, frame: Frame, conditions: tuple[typed.Expr, ...]) -> Frame:
        """Rows for which every condition is true; the second sees what the first left."""
        for condition in conditions:
            if frame.length == 0:
                break
            frame = frame.where(holds(condition, FrameRows(frame, self), self.values))
        return frame

    def _semi(self, plan: steps.Semi) -> Frame:
        frame = self._frame(plan.input)
        if frame.length == 0:
            return frame
        found = (
            self._solutions(plan.block, frame, tuple(sorted(steps.outer_variables(plan.block)))) > 0
        )
        return frame.where(~found if plan.negated else found)

    def _solutions(self, block: Plan, frame: Frame, outer: tuple[str, ...]) -> Index:
        return solutions(frame, outer, lambda inside: self._inside(block, inside))

    def _inside(self, block: Plan, frame: Frame) -> Frame:
        """Run a block whose leaf is this frame."""
        before, self._outer = self._outer, frame
        try:
            return self._frame(block)
        finally:
            self._outer = before

    def _attach(self, plan: steps.Attach) -> Frame:
        frame = self._frame(plan.input)
        inside = self._inside(plan.block, outer_frame(frame, tuple(frame.bindings)))
        return attach(frame, inside, plan.variables)

    def _rank(self, plan: steps.Rank) -> Frame:
        frame = self._frame(plan.input)
        binding = frame.node(plan.variable)
        everything = binding.rows is binding.table.all_rows_made
        limit, offset = self._count(plan.limit, "limit"), self._count(plan.offset, "offset") or 0
        rows, scores = self._searcher.rank(
            plan.score,
            binding.table,
            None if everything else binding.rows,
            None if limit is None else limit + offset,
        )
        order = np.argsort(rows, kind="stable")
        rows, scores = rows[order], scores[order]
        ranked = NodeBinding(binding.table, rows=rows)
        return Frame(len(rows), {plan.variable: ranked}, scores=scores)

    # ------------------------------------------------------------ results

    def _project(self, plan: steps.Project) -> pa.Table:
        frame = self._frame(plan.input)
        size = frame.length * len(plan.outputs) * VALUE_BYTES
        self.guard.check_bytes(size, frame.length, "the result")
        if (copied := few_rows(plan.outputs, frame, self.world)) is not None:
            return copied
        rows = FrameRows(frame, self)
        rows.prefetch(o.value for o in plan.outputs)
        columns = [self._output(o.value, rows, frame) for o in plan.outputs]
        return self._table(plan.outputs, columns)

    def _output(self, expr: typed.Expr, rows: FrameRows, frame: Frame) -> pa.Array:
        if isinstance(expr, typed.Entity):
            return objects(frame.node(expr.variable))
        return plain(self._array(expr, rows))

    def _array(self, expr: typed.Expr, rows: FrameRows) -> pa.Array:
        made = evaluate(expr, rows, self.values)
        if isinstance(made, pa.Scalar):
            return pa.repeat(made, rows.length)
        return made

    def _table(self, outputs: tuple[typed.Output, ...], columns: list[pa.Array]) -> pa.Table:
        schema = self.world.projection(outputs).schema
        arrays = [
            c if c.type == f.type else c.cast(f.type) for c, f in zip(columns, schema, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _aggregate(self, plan: steps.Aggregate) -> pa.Table:
        if (count := self._known_count(plan)) is not None:
            return self._table(plan.outputs, [pa.array([count])] * len(plan.outputs))
        frame = self._frame(plan.input)
        if (counts := _plain_counts(plan.outputs, frame)) is not None:
            return self._table(plan.outputs, [whole_number(n) for n in counts])
        rows = FrameRows(frame, self)
        keys = [o.value for o in plan.outputs if not isinstance(o.value, typed.AggregateCall)]
        values: dict[int, pa.Array] = {}
        codes: list[Index] = []
        for key in keys:
            if isinstance(key, typed.Entity):
                codes.append(frame.node(key.variable).identity)
            else:
                values[id(key)] = self._array(key, rows)
                codes.append(codes_of(values[id(key)]))
        grouped = Grouped(frame, codes)
        columns: list[pa.Array] = []
        for output in plan.outputs:
            expr = output.value
            if isinstance(expr, typed.AggregateCall):
                columns.append(self._aggregated(expr, grouped, rows, frame))
            elif isinstance(expr, typed.Entity):
                binding = frame.node(expr.variable).take(grouped.groups.first)
                columns.append(objects(binding))
            else:
                firsts = pa.array(grouped.groups.first)
                columns.append(plain(values[id(expr)].take(firsts)))
        return self._table(plan.outputs, columns)

    def _known_count(self, plan: steps.Aggregate) -> int | None:
        """Rows of a type, when that is all that is asked: the snapshot knows them."""
        source = plan.input
        if not isinstance(source, steps.Scan) or source.filters:
            return None
        if not all(_counts_rows(o.value) for o in plan.outputs):
            return None
        return self.world.node(source.type_name).row_count

    def _aggregated(
        self, call: typed.AggregateCall, grouped: Grouped, rows: FrameRows, frame: Frame
    ) -> pa.Array:
        operand = call.operand
        if call.function == "count" and isinstance(operand, typed.Entity):
            binding = frame.bindings[operand.variable]
            present: Mask | None = binding.present() if operand.type.nullable else None
            if call.distinct:
                counts = grouped.distinct_codes(binding.identity, present)
            else:
                counts = grouped.row_counts(present)
            return pa.array(counts, pa.int64())
        if call.function == "count" and isinstance(operand, typed.Const) and not call.distinct:
            return pa.array(grouped.row_counts(), pa.int64())
        return grouped.evaluate(call, self._array(operand, rows))

    def _distinct(self, plan: steps.Distinct) -> pa.Table:
        table: pa.Table = self._step(plan.input)
        codes = [codes_of(contiguous(c)) for c in table.columns]
        groups = group(codes, table.num_rows)
        if groups.count == table.num_rows:
            return table
        return table.take(pa.array(np.sort(groups.first)))

    def _order(self, plan: steps.Order) -> Any:
        limit, offset = self._count(plan.limit, "limit"), self._count(plan.offset, "offset") or 0
        needed = None if limit is None else limit + offset
        if plan.on == "outputs":
            table: pa.Table = self._step(plan.input)
            index = self._table_order(plan, table, needed)
            return table.take(pa.array(index[offset:]))
        frame = self._frame(plan.input)
        rows = FrameRows(frame, self)
        keys = [sortable(self._array(k.value, rows), descending=downwards(k)) for k in plan.keys]
        ties = [self._id_key(frame, name) for name in plan.ties]
        index = order_rows(keys, ties, frame.length, needed)
        return frame.take(index if plan.keeps_skipped else index[offset:])

    def _table_order(self, plan: steps.Order, table: pa.Table, needed: int | None) -> Index:
        keys: list[SortKey] = []
        for key in plan.keys:
            if not isinstance(key.value, typed.OutputRef):
                raise InternalError(f"not an output column: {key.value}")
            values = contiguous(table.column(key.value.name))
            keys.append(sortable(values, descending=key.descending))
        ties = [_column_key(contiguous(c)) for c in table.columns]
        return order_rows(keys, ties, table.num_rows, needed)

    def _id_key(self, frame: Frame, variable: str) -> Callable[[Index], SortKey]:
        def key(index: Index) -> SortKey:
            ids = FrameRows(frame.only((variable,)).take(index), self).values(variable, "id")
            return sortable(ids, descending=False)

        return key

    def _count(self, expr: typed.Expr | None, what: str) -> int | None:
        if expr is None:
            return None
        count = self.values.of(expr)
        if count is None or count < 0:
            raise ParameterError(
                f"{what} is {'null' if count is None else count}",
                hint=f"a {what} counts rows: 0 or more",
            )
        return int(count)

    # Looked up by type: a chain of tests would cost more than most steps on few rows.
    _steps: ClassVar[dict[type, Callable[[Run, Any], Any]]] = {
        steps.Scan: _scan,
        steps.Seek: _seek,
        steps.Outer: _outer_rows,
        steps.Unit: _unit,
        steps.Expand: _expand,
        steps.Close: _close,
        steps.Degrees: _degrees,
        steps.Compact: _compact,
        steps.Join: _join,
        steps.Filter: _filter,
        steps.Semi: _semi,
        steps.Attach: _attach,
        steps.Rank: _rank,
        steps.Project: _project,
        steps.Aggregate: _aggregate,
        steps.Distinct: _distinct,
        steps.Order: _order,
    }


def _counts_rows(expr: typed.Expr) -> bool:
    """Whether an output is the number of rows."""
    if not isinstance(expr, typed.AggregateCall) or expr.function != "count" or expr.distinct:
        return False
    return expr.operand == ROW


def _plain_counts(outputs: tuple[typed.Output, ...], frame: Frame) -> list[int] | None:
    """The only row of a result that counts rows or distinct nodes; None if it is anything else."""
    counts: list[int] = []
    for output in outputs:
        call = output.value
        if not isinstance(call, typed.AggregateCall) or call.function != "count":
            return None
        if _counts_rows(call):
            counts.append(frame.weight_sum())
        elif isinstance(call.operand, typed.Entity) and not call.operand.type.nullable:
            if not call.distinct:
                return None
            binding = frame.bindings[call.operand.variable]
            counts.append(distinct_count([binding.identity], frame.length))
        else:
            return None
    return counts


def _column_key(values: pa.Array) -> Callable[[Index], SortKey]:
    return lambda index: sortable(values.take(pa.array(index)), descending=False)
