"""The steps of a plan, one function each: those that bind variables, and those that end a query.

    plan -> [steps] -> DataFrame

The local engine (``query/exec``) says what each step means; nothing here may say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.plan import nodes as steps
from omnigraph.query.plan.nodes import Plan
from omnigraph.spark.lower.aggregate import aggregate
from omnigraph.spark.lower.blocks import attach, filtered, outer_rows, semi, with_answers
from omnigraph.spark.lower.frame import LoweredFrame, searches, times, total
from omnigraph.spark.lower.lowering import LoweredScope, Lowering, MakeFrame
from omnigraph.spark.lower.order import order_bindings, order_outputs
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
    df = frame.df.select(*keys).distinct() if not made else frame.df.groupBy(*keys).agg(*made)
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
