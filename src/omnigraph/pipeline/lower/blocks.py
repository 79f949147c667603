"""Inner blocks: run once for all rows of the enclosing frame, then matched back to them.

    frame, block -> [blocks] -> frame

What a block finds depends only on the nodes and edges that its outer variables are bound to. So it
starts from the distinct bindings of these, each *tagged* with its ids, and its solutions go back to
every row with the same ids. Nothing depends on the order of rows, which Spark does not promise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.errors import InternalError
from omnigraph.pipeline.lower.frame import Frame
from omnigraph.pipeline.lower.lowering import Lowering, Scope
from omnigraph.pipeline.lower.weights import total
from omnigraph.query import typed
from omnigraph.query.plan.nodes import Attach, Outer, Plan, Semi, outer_variables


def semi(low: Lowering, step: Semi, scope: Scope) -> Frame:
    """Rows for which the block has a solution, or has none."""
    frame = low.light(low.frame(step.input, scope))
    outer = sorted(outer_variables(step.block))
    inside = _inside(low, step.block, frame, outer, counted=False)
    how = "left_anti" if step.negated else "left_semi"
    found = inside.df.select(*inside.tags)
    df = frame.df.join(found, _same(low, outer, inside.tags), how)
    return frame.with_rows(df, reads=inside.reads)


def attach(low: Lowering, step: Attach, scope: Scope) -> Frame:
    """Left outer join: rows without a solution stay once, with nulls."""
    frame = low.light(low.frame(step.input, scope))
    outer = sorted(outer_variables(step.block))
    inside = _inside(low, step.block, frame, outer, counted=scope.counted)
    names = [name for v in step.variables for name in low.slots.names(v)]
    found = inside.df.select(*inside.tags, *names)
    df = frame.df.join(found, _same(low, outer, inside.tags), "left").drop(*inside.tags)
    grown = frame.with_rows(df, *step.variables, reads=inside.reads)
    # No row is gone and none has other bindings: who starts from these can start from before.
    return replace(grown, before=frame)


def with_blocks(
    low: Lowering, frame: Frame, expressions: Iterable[typed.Expr]
) -> tuple[Frame, dict[typed.Expr, str]]:
    """The frame with a column for each block in the expressions, and the names of these."""
    names: dict[typed.Expr, str] = {}
    for expr in expressions:
        for part in typed.walk(expr):
            if isinstance(part, (typed.Exists, typed.CountOf)) and part not in names:
                names[part] = low.sources.fresh("block")
                frame = _answered(low, low.light(frame), part, names[part])
    return frame, names


def _answered(low: Lowering, frame: Frame, expr: typed.Exists | typed.CountOf, name: str) -> Frame:
    """The rows with whether, or how often, a block has a solution for each."""
    outer, block = list(expr.block.outer), low.plan.blocks[expr.block]
    counted = isinstance(expr, typed.CountOf)
    inside = _inside(low, block, frame, outer, counted=counted)
    if counted:
        solutions = F.count(F.lit(1)) if inside.weight is None else total(F.col(inside.weight))
        found = inside.df.groupBy(*inside.tags).agg(solutions.alias(name))
        none = F.lit(0).cast("bigint")
    else:
        found = inside.df.select(*inside.tags).distinct().withColumn(name, F.lit(True))
        none = F.lit(False)
    df = frame.df.join(found, _same(low, outer, inside.tags), "left").drop(*inside.tags)
    df = df.withColumn(name, F.coalesce(F.col(name), none))
    return replace(frame.with_rows(df, reads=inside.reads), before=frame)


def _inside(low: Lowering, block: Plan, frame: Frame, outer: list[str], *, counted: bool) -> Frame:
    """The solutions of a block, tagged with the ids of the rows that they belong to."""
    if not outer:
        raise InternalError("a block that mentions nothing outside of it")
    slots = low.slots
    ids = [slots.name(v) for v in outer]
    names = [name for v in outer for name in slots.names(v)]
    tags = [low.sources.fresh("tag") for _ in outer]
    source = frame.simplest(outer)
    df = source.df.select(*names).dropDuplicates(ids)
    df = df.select(*names, *(F.col(i).alias(t) for i, t in zip(ids, tags, strict=True)))
    start = Frame(df=df, variables=frozenset(outer), tags=tuple(tags), reads=source.reads)
    return low.frame(block, Scope(outer=start, counted=counted))


def _same(low: Lowering, outer: list[str], tags: tuple[str, ...]) -> Column:
    """The row is one that a solution belongs to; variables that are null are null in both."""
    pairs = [low.slots.column(v).eqNullSafe(F.col(t)) for v, t in zip(outer, tags, strict=True)]
    return reduce(lambda a, b: a & b, pairs)


def outer_rows(low: Lowering, step: Outer, scope: Scope) -> Frame:
    """The rows that a block starts from."""
    if scope.outer is None:
        raise InternalError("a block outside of a block")
    return scope.outer.only(step.variables, low.slots)
