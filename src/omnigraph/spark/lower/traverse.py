"""Traversal: joins with edges, one for each hop.

    frame, edges -> [traverse] -> frame

Without an edge variable a row meets every node once, at its shortest distance (breadth first; the
start counts as visited, and a loop on the start itself is distance one). With one, a row per edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from omnigraph.query import typed
from omnigraph.query.plan.nodes import Close, Degrees, Expand
from omnigraph.spark.lower.blocks import filtered
from omnigraph.spark.lower.frame import LoweredFrame, searches, times
from omnigraph.spark.lower.lowering import LoweredScope, Lowering
from omnigraph.spark.lower.sources import Hops

HOPS_AHEAD = 3
"""So many hops are planned before one looks whether there is anything left to find."""


def expand(low: Lowering, step: Expand, scope: LoweredScope) -> LoweredFrame:
    """Rows extended by what they reach."""
    frame, slots = _twice(low, step, scope), low.slots
    target, bound = step.target, step.edge_variable
    on_edge = _about(step.filters, bound)
    hops = _hops(low, step, frame, scope, on_edge)
    arrived = {target} if bound is None else {target, bound}
    if step.keep is not None:
        frame = frame.only({*step.keep, step.origin}, slots)
    df = frame.df.join(hops.df, slots.column(step.origin) == F.col(hops.start)).drop(hops.start)
    on_target = _about(step.filters, target)
    if slots.has_only_id(target) and all(slots.carries(f) for f in on_target):
        # The ends of edges say all that is asked of the node.
        df = df.withColumnRenamed(hops.end, slots.name(target))
        grown = frame.with_rows(df, *arrived, reads=hops.reads)
        grown = filtered(low, grown, on_target)
    else:
        on_target = tuple(f for f in on_target if not searches(f))
        nodes = low.sources.nodes(target, step.target_type, on_target)
        df = df.join(nodes.df, F.col(hops.end) == slots.column(target)).drop(hops.end)
        grown = frame.with_rows(df, *arrived, reads=hops.reads + 1)
    done = (*on_edge, *on_target)
    grown = filtered(low, grown, [f for f in step.filters if f not in done])
    if step.keep is not None and step.origin not in step.keep:
        grown = grown.only(arrived.union(step.keep), slots)
    return grown


def close(low: Lowering, step: Close, scope: LoweredScope) -> LoweredFrame:
    """Rows whose two ends are connected."""
    frame, slots = _twice(low, step, scope), low.slots
    hops = _hops(low, step, frame, scope.uncounted(), ())
    start, end = F.col(hops.start), F.col(hops.end)
    both = (slots.column(step.origin) == start) & (slots.column(step.target) == end)
    if step.edge_variable is None:
        df = frame.df.join(hops.df, both, "left_semi")
        return frame.with_rows(df, reads=hops.reads)
    df = frame.df.join(hops.df, both).drop(hops.start, hops.end)
    return frame.with_rows(df, step.edge_variable, reads=hops.reads)


def degrees(low: Lowering, step: Degrees, scope: LoweredScope) -> LoweredFrame:
    """Rows weighted by how many they would become."""
    frame, sources = low.frame(step.input, scope), low.sources
    edge = low.catalog.edges[step.edge]
    hops = sources.pairs(edge, step.direction, distinct=scope.counted and not step.per_edge)
    origin = low.slots.column(step.origin)
    if not scope.counted:
        df = frame.df.join(hops.df, origin == F.col(hops.start), "left_semi")
        return frame.with_rows(df, reads=1)
    count, weight = sources.fresh("degree"), sources.fresh("weight")
    counts = hops.df.groupBy(hops.start).agg(F.count(F.lit(1)).alias(count))
    df = frame.df.join(counts, origin == F.col(hops.start)).drop(hops.start)
    before = F.lit(1).cast("bigint") if frame.weight is None else F.col(frame.weight)
    df = df.withColumn(weight, times(before, F.col(count))).drop(count, frame.weight or count)
    return replace(frame.with_rows(df, reads=1), weight=weight)


def _twice(low: Lowering, step: Expand | Close, scope: LoweredScope) -> LoweredFrame:
    """The rows that a traversal starts from; for many hops, in a form that can be read twice."""
    frame = low.frame(step.input, scope)
    return low.light(frame) if _chains(low, step) else frame


def _chains(low: Lowering, step: Expand | Close) -> bool:
    """Whether the traversal can take more than one hop: edges of different types never chain."""
    edge = low.catalog.edges[step.edge]
    return step.edge_variable is None and edge.source == edge.target and step.high > 1


def _about(filters: Sequence[typed.Expr], name: str | None) -> tuple[typed.Expr, ...]:
    """Those on one variable alone."""
    return tuple(f for f in filters if typed.variables(f) == frozenset((name,)))


def _hops(
    low: Lowering,
    step: Expand | Close,
    frame: LoweredFrame,
    scope: LoweredScope,
    filters: Sequence[typed.Expr],
) -> Hops:
    """Everything that the step can take from an origin to a target."""
    edge = low.catalog.edges[step.edge]
    if step.edge_variable is not None:
        return low.sources.edges(step.edge_variable, edge, step.direction, filters)
    if _chains(low, step):
        return _reach(low, step, frame)
    pairs = low.sources.pairs(edge, step.direction, distinct=scope.counted)
    if step.low > 1:
        return Hops(df=pairs.df.filter(F.lit(False)), start=pairs.start, end=pairs.end)
    return pairs


# ---------------------------------------------------------------- many hops


def _reach(low: Lowering, step: Expand | Close, frame: LoweredFrame) -> Hops:
    """Breadth first from each distinct origin. A state is (start, vertex) with its distance.

    Every round looks at the states of the one before once, so that the plan grows with the number
    of rounds and not with its power: each state comes out again, and those that were new bring
    their neighbours along; of equal states the shortest stays.
    """
    sources = low.sources
    start, end = sources.fresh("start"), sources.fresh("end")
    origin = low.slots.column(step.origin)
    simple = frame.simplest((step.origin,))
    states = simple.df.filter(origin.isNotNull()).select(origin.alias(start)).distinct()
    states = states.select(
        start,
        F.col(start).alias(end),
        F.lit(False).alias("_loop"),
        F.lit(0).alias("_distance"),
    )
    edge = low.catalog.edges[step.edge]
    pairs = sources.pairs(edge, step.direction, distinct=False)
    reads = simple.reads
    for distance in range(1, step.high + 1):
        reads += 1
        states = _further(states, pairs, Hops(df=states, start=start, end=end), distance)
        if distance % HOPS_AHEAD == 0 and distance < step.high:
            states, reads = low.settled(states), 1
            if states.filter(F.col("_distance") == F.lit(distance)).isEmpty():
                break
            if distance == HOPS_AHEAD:
                # It is a long way: edges are not read again at every part of it.
                pairs = replace(pairs, df=low.settled(pairs.df))
    found = states.filter(F.col("_distance") >= F.lit(step.low))
    return Hops(df=found.select(start, end), start=start, end=end, reads=reads)


def _further(states: DataFrame, pairs: Hops, names: Hops, distance: int) -> DataFrame:
    """The states after one more hop."""
    start, end = F.col(names.start), F.col(names.end)
    newest = (F.col("_distance") == F.lit(distance - 1)) & ~F.col("_loop")
    joined = states.join(pairs.df, (end == F.col(pairs.start)) & newest, "left")
    reached = F.col(pairs.end)
    # The start comes back only by its own loop, at distance one; never by a longer way round.
    loop = (reached == start) if distance == 1 else F.lit(False)
    old = F.struct(end.alias("to"), F.col("_loop").alias("loop"), F.col("_distance").alias("at"))
    new = F.struct(reached.alias("to"), loop.alias("loop"), F.lit(distance).alias("at"))
    both = joined.select(start, F.inline(F.array(old, new))).filter(F.col("to").isNotNull())
    shortest = both.groupBy(names.start, "to", "loop").agg(F.min("at").alias("_distance"))
    return shortest.toDF(names.start, names.end, "_loop", "_distance")
