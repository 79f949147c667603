"""Inner blocks: run once for all rows of the enclosing frame, then matched back to them.

    frame, block -> [blocks] -> frame

Text tests and scores, which are found elsewhere too, come to the rows that need them likewise.

What a block finds depends only on the nodes and edges that its outer variables are bound to. So it
starts from the distinct bindings of these, each *tagged* with its ids, and its solutions go back to
every row with the same ids. Nothing depends on the order of rows, which Spark does not promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import SCORES
from omnigraph.query.plan.nodes import Attach, Outer, Plan, Semi, outer_variables
from omnigraph.spark.lower.frame import LoweredFrame, total
from omnigraph.spark.lower.lowering import LoweredScope, Lowering

_ELSEWHERE = (typed.Exists, typed.CountOf, typed.TextMatch)
"""What Spark cannot say of a row by looking at its columns."""


def semi(low: Lowering, step: Semi, scope: LoweredScope) -> LoweredFrame:
    """Rows for which the block has a solution, or has none."""
    frame = low.light(low.frame(step.input, scope))
    outer = sorted(outer_variables(step.block))
    inside = _inside(low, step.block, frame, outer, counted=False)
    how = "left_anti" if step.negated else "left_semi"
    found = inside.df.select(*inside.tags)
    df = frame.df.join(found, _same(low, outer, inside.tags), how)
    return frame.with_rows(df, reads=inside.reads)


def attach(low: Lowering, step: Attach, scope: LoweredScope) -> LoweredFrame:
    """Left outer join: rows without a solution stay once, with nulls."""
    frame = low.light(low.frame(step.input, scope))
    outer = sorted(outer_variables(step.block))
    inside = _inside(low, step.block, frame, outer, counted=scope.counted)
    names = [name for v in step.variables for name in low.slots.names(v)]
    found = inside.df.select(*inside.tags, *names)
    df = frame.df.join(found, _same(low, outer, inside.tags), "left").drop(*inside.tags)
    grown = frame.with_rows(df, *step.variables, reads=inside.reads)
    # No row is gone and none has other bindings: what starts from these can start from before.
    return replace(grown, before=frame)


def filtered(low: Lowering, frame: LoweredFrame, conditions: Sequence[typed.Expr]) -> LoweredFrame:
    """Rows for which all conditions are true; those that Spark answers by itself come first."""
    heavy = [c for c in conditions if any(isinstance(e, _ELSEWHERE) for e in typed.walk(c))]
    plain = [c for c in conditions if c not in heavy]
    if plain:
        frame = frame.with_rows(frame.df.filter(low.expressions().condition(plain)))
    if not heavy:
        return frame
    frame, answers = with_answers(low, frame, heavy)
    kept = frame.df.filter(low.expressions(answers).condition(heavy))
    return frame.with_rows(kept.drop(*answers.values()))


def with_answers(
    low: Lowering, frame: LoweredFrame, expressions: Iterable[typed.Expr]
) -> tuple[LoweredFrame, dict[typed.Expr, str]]:
    """The frame with a column for each block, text test and score in the expressions, and the
    names of these columns.
    """
    names: dict[typed.Expr, str] = {}
    for expr in expressions:
        for part in typed.walk(expr):
            if isinstance(part, SCORES) and frame.score is not None:
                names[part] = frame.score
            elif not isinstance(part, _ELSEWHERE) or part in names:
                continue
            elif isinstance(part, typed.TextMatch):
                names[part] = low.sources.fresh("match")
                frame = _searched(low, frame, part, names[part])
            else:
                names[part] = low.sources.fresh("block")
                frame = _answered(low, low.light(frame), part, names[part])
    return frame, names


def _searched(low: Lowering, frame: LoweredFrame, test: typed.TextMatch, name: str) -> LoweredFrame:
    """The rows with whether the node of each passes a text test; one that is null does not."""
    found = low.searches.matching(test, low.slots.types[test.variable].name)
    node = low.sources.fresh("found")
    there = found.toDF(node).withColumn(name, F.lit(True))
    df = frame.df.join(there, low.slots.column(test.variable) == F.col(node), "left").drop(node)
    df = df.withColumn(name, F.coalesce(F.col(name), F.lit(False)))
    return replace(frame.with_rows(df), before=frame)


def _answered(
    low: Lowering, frame: LoweredFrame, expr: typed.Exists | typed.CountOf, name: str
) -> LoweredFrame:
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


def _inside(
    low: Lowering, block: Plan, frame: LoweredFrame, outer: list[str], *, counted: bool
) -> LoweredFrame:
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
    start = LoweredFrame(df=df, variables=frozenset(outer), tags=tuple(tags), reads=source.reads)
    return low.frame(block, LoweredScope(outer=start, counted=counted))


def _same(low: Lowering, outer: list[str], tags: tuple[str, ...]) -> Column:
    """The row is one that a solution belongs to; variables that are null are null in both."""
    pairs = [low.slots.column(v).eqNullSafe(F.col(t)) for v, t in zip(outer, tags, strict=True)]
    return reduce(lambda a, b: a & b, pairs)


def outer_rows(low: Lowering, step: Outer, scope: LoweredScope) -> LoweredFrame:
    """The rows that a block starts from."""
    if scope.outer is None:
        raise InternalError("a block outside of a block")
    return scope.outer.only(step.variables, low.slots)
