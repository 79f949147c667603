"""Groups of rows to one row each.

    frame -> [aggregate] -> outputs

A row that stands for many (paths counted, not walked) counts as many. Sums are made of 64-bit
floats, as the language says; what is distinct is decided before anything becomes a float.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.plan.nodes import Aggregate
from omnigraph.schema.catalog import PropertyType
from omnigraph.spark.lower.blocks import with_answers
from omnigraph.spark.lower.expressions import LoweredExpressions
from omnigraph.spark.lower.frame import total
from omnigraph.spark.lower.lowering import LoweredScope, Lowering


def counts_rows(step: Aggregate) -> bool:
    """Whether an output changes when a row comes twice."""
    return any(
        isinstance(o.value, typed.Aggregate)
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
        if isinstance(expr, typed.Aggregate):
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

    call: typed.Aggregate
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
                return self._sum(values)
            case "avg":
                summed, count = self._sum(values), self._count(values).cast("double")
                return F.when(count > F.lit(0.0), summed / count)

    def _count(self, values: Column) -> Column:
        if self.call.distinct:
            return F.count_distinct(values)
        if self.weight is None:
            return F.count(values)
        return total(F.when(values.isNotNull(), F.col(self.weight)))

    def _sum(self, values: Column) -> Column:
        kind = self.call.operand.type
        if not isinstance(kind, PropertyType):
            raise InternalError(f"a node has no sum: {self.call}")
        if self.call.distinct:
            # As doubles, integers that differ could become one.
            exact = values if kind.scalar.is_float else values.cast("decimal(20,0)")
            return F.sum_distinct(exact).cast("double")
        numbers = values.cast("double")
        if self.weight is None:
            return F.sum(numbers)
        return F.sum(numbers * F.col(self.weight).cast("double"))
