"""The steps of a plan, one function each: those that bind variables, and those that end a query.

    plan -> [steps] -> DataFrame

The local engine (``query/exec``) says what each step means; nothing here may say otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from omnigraph.errors import InternalError, LimitError, ParameterError
from omnigraph.query import typed
from omnigraph.query.exec.aggregate import HEADROOM
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.exec.order import downwards
from omnigraph.query.exec.outputs import ID as OBJECT_ID
from omnigraph.query.plan import nodes as steps
from omnigraph.query.plan.nodes import Aggregate, Order, Plan
from omnigraph.schema.catalog import PropertyType
from omnigraph.spark.lower.blocks import attach, filtered, outer_rows, semi, with_answers
from omnigraph.spark.lower.expressions import LoweredExpressions
from omnigraph.spark.lower.frame import LoweredFrame, searches, times, total
from omnigraph.spark.lower.lowering import LoweredScope, Lowering, MakeFrame
from omnigraph.spark.lower.traverse import close, degrees, expand

# ---------------------------------------------------------------- rows that bind variables


def scan(low: Lowering, step: steps.Scan, scope: LoweredScope) -> LoweredFrame:
    """All nodes that satisfy the filters."""
    plain = [f for f in step.filters if not searches(f)]
    frame = low.sources.nodes(step.variable, step.type_name, plain)
    return filtered(low, frame, [f for f in step.filters if searches(f)])


def rank(low: Lowering, step: steps.Rank, scope: LoweredScope) -> LoweredFrame:
    """The nodes that a ranking has, with their scores."""
    slots, variable = low.slots, step.variable
    ranked = low.searches.ranked(step)
    node, score = low.sources.fresh("ranked"), low.sources.fresh("score")
    df = ranked.df.toDF(node, score)
    if slots.has_only_id(variable):
        df = df.withColumnRenamed(node, slots.name(variable))
        return LoweredFrame(df=df, variables=frozenset((variable,)), score=score)
    among = () if ranked.among is None else (ranked.among,)
    nodes = low.sources.nodes(variable, slots.types[variable].name, among)
    df = nodes.df.join(df, slots.column(variable) == F.col(node)).drop(node)
    return replace(nodes.with_rows(df), score=score)


def unit(low: Lowering, step: steps.Unit, scope: LoweredScope) -> LoweredFrame:
    """One row that binds nothing."""
    return LoweredFrame(
        df=low.spark.range(1).toDF(low.sources.fresh("unit")), variables=frozenset()
    )


def join(low: Lowering, step: steps.Join, scope: LoweredScope) -> LoweredFrame:
    """Every row with every row, or those with equal values; null equals nothing."""
    left, right = low.frame(step.left, scope), low.frame(step.right, scope)
    make = low.expressions()
    if step.on:
        equal = [make.column(a) == make.column(b) for a, b in step.on]
        df = left.df.join(right.df, reduce(lambda a, b: a & b, equal))
    else:
        df = left.df.crossJoin(right.df)
    weight = left.weight or right.weight
    if left.weight is not None and right.weight is not None:
        weight = low.sources.fresh("weight")
        both = times(F.col(left.weight), F.col(right.weight))
        df = df.withColumn(weight, both).drop(left.weight, right.weight)
    return LoweredFrame(
        df=df,
        variables=left.variables | right.variables,
        tags=left.tags + right.tags,
        weight=weight,
        score=left.score or right.score,
        reads=left.reads + right.reads,
    )


def keep(low: Lowering, step: steps.Filter, scope: LoweredScope) -> LoweredFrame:
    """Rows for which every condition is true."""
    return filtered(low, low.frame(step.input, scope), step.conditions)


def compact(low: Lowering, step: steps.Compact, scope: LoweredScope) -> LoweredFrame:
    """Equal rows in some variables as one; weights add up if rows are counted."""
    frame = low.frame(step.input, scope).only(step.keep, low.slots)
    ids = [low.slots.name(v) for v in sorted(frame.variables)]
    rest = [n for v in frame.variables for n in low.slots.names(v) if n not in ids]
    weight = low.sources.fresh("weight")
    # Of a variable's columns the id says all; a float as a group key would lose its sign of zero.
    made = [F.first(F.col(name)).alias(name) for name in rest]
    if step.counted:
        rows = F.count(F.lit(1)) if frame.weight is None else total(F.col(frame.weight))
        made.append(rows.alias(weight))
    keys = [*ids, *frame.tags]
    if not keys:
        # Of no rows no row: a total would be one.
        df = frame.df.agg(*made).where(F.col(weight) > 0) if made else frame.df.limit(1)
    elif made:
        df = frame.df.groupBy(*keys).agg(*made)
    else:
        df = frame.df.select(*keys).distinct()
    return LoweredFrame(
        df=df,
        variables=frame.variables,
        tags=frame.tags,
        weight=weight if step.counted else None,
        reads=frame.reads,
    )


def _ordered(low: Lowering, step: steps.Order, scope: LoweredScope) -> LoweredFrame:
    if step.on != "bindings":
        raise InternalError("result rows are ordered when they are there")
    return order_bindings(low, step, scope)


FRAMES: Mapping[type, MakeFrame] = {
    steps.Scan: scan,
    steps.Rank: rank,
    steps.Outer: outer_rows,
    steps.Unit: unit,
    steps.Expand: expand,
    steps.Close: close,
    steps.Degrees: degrees,
    steps.Compact: compact,
    steps.Join: join,
    steps.Filter: keep,
    steps.Semi: semi,
    steps.Attach: attach,
    steps.Order: _ordered,
}


# ---------------------------------------------------------------- result rows


def result(low: Lowering, plan: Plan) -> DataFrame:
    """The rows of a whole query; columns are named ``c0``, ``c1``, … in the order of outputs."""
    names = [f"c{i}" for i in range(len(outputs_of(plan)))]
    return _result(low, plan, names)


def outputs_of(plan: Plan) -> tuple[typed.Output, ...]:
    """The result columns of a whole query."""
    match plan:
        case steps.Project(outputs=outputs) | steps.Aggregate(outputs=outputs):
            return outputs
        case steps.Distinct() | steps.Order():
            return outputs_of(plan.input)
        case _:
            raise InternalError(f"a plan ends in {type(plan).__name__}")


def _result(low: Lowering, plan: Plan, names: list[str]) -> DataFrame:
    match plan:
        case steps.Project():
            return project(low, plan, names, LoweredScope())
        case steps.Aggregate():
            return aggregate(low, plan, names)
        case steps.Distinct(input=steps.Project() as inner):
            return project(low, inner, names, LoweredScope(counted=False)).distinct()
        case steps.Distinct():
            return _result(low, plan.input, names).distinct()
        case steps.Order(on="outputs"):
            rows = _result(low, plan.input, names)
            return order_outputs(rows, names, outputs_of(plan.input), plan, low.values)
        case _:
            raise InternalError(f"a plan ends in {type(plan).__name__}")


def project(low: Lowering, step: steps.Project, names: list[str], scope: LoweredScope) -> DataFrame:
    """The output columns of each row."""
    rows = low.frame(step.input, scope)
    frame, answers = with_answers(low, rows, [o.value for o in step.outputs])
    df = frame.df
    if frame is not rows and frame.order:
        # Matching answers to rows has mixed the rows.
        df = df.orderBy(*frame.order)
    make = low.expressions(answers)
    columns = [make.output(o.value).alias(n) for o, n in zip(step.outputs, names, strict=True)]
    return df.select(*columns)


# -- aggregate -------------------------------------------------------------------------------------
# Groups of rows to one row each.
#
#     frame -> [aggregate] -> outputs
#
# A row that stands for many (paths counted, not walked) counts as many. Sums are made of 64-bit
# floats, as the language says; what is distinct is decided before anything becomes a float.


def counts_rows(step: Aggregate) -> bool:
    """Whether an output changes when a row comes twice."""
    return any(
        isinstance(o.value, typed.AggregateCall)
        and not o.value.distinct
        and o.value.function in ("count", "sum", "avg")
        for o in step.outputs
    )


def aggregate(low: Lowering, step: Aggregate, names: list[str]) -> DataFrame:
    """One row per group; its columns have these names."""
    frame = low.frame(step.input, LoweredScope(counted=counts_rows(step)))
    frame, answers = with_answers(low, frame, [o.value for o in step.outputs])
    expressions = low.expressions(answers)
    given: list[Column] = [] if frame.weight is None else [F.col(frame.weight)]
    keys: list[str] = []
    made: list[Column] = []
    for output, name in zip(step.outputs, names, strict=True):
        expr, operand = output.value, low.sources.fresh("operand")
        if isinstance(expr, typed.AggregateCall):
            given.append(_operand(low, expressions, expr.operand).alias(operand))
            made.append(_Call(expr, operand, frame.weight).column().alias(name))
            continue
        key = low.sources.fresh("group")
        keys.append(key)
        if isinstance(expr, typed.Entity):
            given.append(low.slots.column(expr.variable).alias(key))
            given.append(expressions.entity(expr).alias(operand))
            made.append(F.first(F.col(operand)).alias(name))
        else:
            given.append(expressions.column(expr).alias(key))
            made.append(F.col(key).alias(name))
    rows = frame.df.select(*given)
    return _grouped(rows, keys, made, names)


def _operand(low: Lowering, expressions: LoweredExpressions, expr: typed.Expr) -> Column:
    if isinstance(expr, typed.Entity):
        return low.slots.column(expr.variable)
    return expressions.column(expr)


def _grouped(rows: DataFrame, keys: list[str], made: list[Column], names: list[str]) -> DataFrame:
    found = rows.groupBy(*keys).agg(*made) if keys else rows.agg(*made)
    return found.select(*names)


@dataclass(frozen=True, slots=True)
class _Call:
    """One aggregate over a column of operands, in rows that may stand for many."""

    call: typed.AggregateCall
    operand: str
    weight: str | None

    def column(self) -> Column:
        values = F.col(self.operand)
        match self.call.function:
            case "min":
                return F.min(values)
            case "max":
                return F.max(values)
            case "count":
                return self._count(values)
            case "sum":
                return self._in_range(lambda scale: self._sum(values, scale))
            case "avg":
                count = self._count(values).cast("double")
                made = self._in_range(lambda scale: self._sum(values, scale) / count)
                return F.when(count > F.lit(0.0), made)

    def _in_range(self, made: Callable[[float], Column]) -> Column:
        """A sum can be out of range on the way although its end, or the average, is not."""
        if not self._kind.scalar.is_float:
            return made(1.0)
        plain, small = made(1.0), made(2.0**-HEADROOM) * F.lit(2.0**HEADROOM)
        beyond = F.isnan(plain) | (F.abs(plain) == F.lit(float("inf")))
        return F.when(beyond, small).otherwise(plain)

    @property
    def _kind(self) -> PropertyType:
        kind = self.call.operand.type
        if not isinstance(kind, PropertyType):
            raise InternalError(f"a node has no sum: {self.call}")
        return kind

    def _count(self, values: Column) -> Column:
        if self.call.distinct:
            return F.count_distinct(values)
        if self.weight is None:
            return F.count(values)
        return total(F.when(values.isNotNull(), F.col(self.weight)))

    def _sum(self, values: Column, scale: float) -> Column:
        if self.call.distinct:
            # As doubles, integers that differ could become one.
            floats = self._kind.scalar.is_float
            exact = values * F.lit(scale) if floats else values.cast("decimal(20,0)")
            return F.sum_distinct(exact).cast("double")
        numbers = values.cast("double") * F.lit(scale)
        if self.weight is None:
            return F.sum(numbers)
        return F.sum(numbers * F.col(self.weight).cast("double"))


# -- order -----------------------------------------------------------------------------------------
# Total order of rows: user keys, then ids or columns, null before everything; then the page.
#
#     frame or outputs -> [order] -> the same, sorted
#
# Spark sorts text by its UTF-8 bytes, which is the order of code points, and lists element by
# element with null first, as we do. The two zeros are one number, so zero is added to floats.


ROWS_MAX = 2**31 - 1
"""Spark counts the rows of a page in 32 bits."""


def order_bindings(low: Lowering, step: Order, scope: LoweredScope) -> LoweredFrame:
    """Rows by expressions over them, ties by the ids of their variables."""
    frame = low.frame(step.input, scope)
    frame, answers = with_answers(low, frame, [key.value for key in step.keys])
    expressions = low.expressions(answers)
    columns: list[Column] = []
    order: list[Column] = []
    for key in step.keys:
        name = low.sources.fresh("key")
        columns.append(expressions.column(key.value).alias(name))
        order.append(_sorted(F.col(name), key.value.type, descending=downwards(key)))
    order += [low.slots.column(tie).asc_nulls_first() for tie in step.ties]
    df = frame.df.select("*", *columns)
    return replace(frame, df=page(df, order, step, low.values), order=tuple(order))


def order_outputs(
    df: DataFrame,
    names: Sequence[str],
    outputs: Sequence[typed.Output],
    step: Order,
    values: Values,
) -> DataFrame:
    """Result rows by their columns: those asked for, then all from left to right."""
    places = {
        output.name: (F.col(name), output.type) for name, output in zip(names, outputs, strict=True)
    }
    order: list[Column] = []
    for key in step.keys:
        if not isinstance(key.value, typed.OutputRef):
            raise InternalError(f"not an output column: {key.value}")
        column, kind = places[key.value.name]
        order.append(_sorted(column, kind, descending=key.descending))
    order += [_sorted(column, kind, descending=False) for column, kind in places.values()]
    return page(df, order, step, values)


def page(df: DataFrame, order: Sequence[Column], step: Order, values: Values) -> DataFrame:
    """The rows in order, without those before the offset and behind the limit."""
    limit, offset = row_count(step.limit, "limit", values), row_count(step.offset, "offset", values)
    if order:
        df = df.orderBy(*order)
    if step.keeps_skipped:
        limit, offset = None if limit is None else limit + (offset or 0), None
    if offset:
        if offset > ROWS_MAX:
            raise LimitError(
                f"Spark skips at most {ROWS_MAX:,} rows, and the offset is {offset:,}",
                hint='run it with engine="local", or filter on the order key instead',
                details={"limit": "offset", "offset_max": ROWS_MAX},
            )
        df = df.offset(offset)
    # A greater limit is none: so many rows are no result that fits anywhere.
    return df if limit is None or limit > ROWS_MAX else df.limit(limit)


def row_count(expr: typed.Expr | None, what: str, values: Values) -> int | None:
    """The value of a limit or an offset."""
    if expr is None:
        return None
    count = values.of(expr)
    if count is None or count < 0:
        raise ParameterError(
            f"{what} is {'null' if count is None else count}",
            hint=f"a {what} counts rows: 0 or more",
        )
    return int(count)


def _sorted(column: Column, kind: typed.ValueType, *, descending: bool) -> Column:
    """A sort key; null is smallest, whatever the direction."""
    if isinstance(kind, typed.ObjectType):
        # Objects of one type are told apart by their ids.
        column = column.getField(OBJECT_ID)
    elif kind.scalar.is_float and not kind.is_list:
        column = column + F.lit(0.0)
    return column.desc_nulls_last() if descending else column.asc_nulls_first()
