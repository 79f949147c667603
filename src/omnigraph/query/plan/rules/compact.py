"""Before a traversal or a join, rows that differ only in variables without further use become one.

Counts keep their weight; where duplicates do not matter (``distinct``, ``min``, ``exists``) one row
is as good as many. So paths are counted without being walked one by one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from omnigraph.query.plan.nodes import (
    Aggregate,
    Close,
    Compact,
    Degrees,
    Distinct,
    Expand,
    Filter,
    Join,
    Plan,
    Project,
    Semi,
    bound,
    inputs,
    outer_variables,
    with_inputs,
)
from omnigraph.query.plan.rules.planning import Planning
from omnigraph.query.typed import AggregateCall, Expr, variables


def compact_dead_variables(plan: Plan, planning: Planning) -> Plan:
    """Insert such steps below results and inside blocks."""
    if planning.purpose != "result":
        return _below(plan, frozenset(), counted=planning.purpose == "count", traversed=False)
    return _walk(plan)


def _walk(plan: Plan) -> Plan:
    match plan:
        case Aggregate():
            needed = _needed(o.value for o in plan.outputs)
            counted = any(_counts(o.value) for o in plan.outputs)
            source = _below(plan.input, needed, counted=counted, traversed=False)
            return replace(plan, input=source)
        case Distinct(input=Project() as project):
            needed = _needed(o.value for o in project.outputs)
            source = _below(project.input, needed, counted=False, traversed=False)
            return replace(plan, input=replace(project, input=source))
        case Semi():
            block = _below(plan.block, frozenset(), counted=False, traversed=False)
            return replace(plan, input=_walk(plan.input), block=block)
        case _:
            return with_inputs(plan, tuple(_walk(p) for p in inputs(plan)))


def _counts(expr: Expr) -> bool:
    """Whether an output changes when a row comes twice."""
    return (
        isinstance(expr, AggregateCall)
        and not expr.distinct
        and expr.function in ("count", "sum", "avg")
    )


def _needed(expressions: Iterable[Expr]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for expr in expressions:
        found |= variables(expr)
    return found


def _side(side: Plan, needed: frozenset[str], *, counted: bool) -> Plan:
    """One side of a join. Rows that nothing tells apart are one: so products are counted."""
    made = _below(side, needed, counted=counted, traversed=True)
    here = bound(made)
    keep = tuple(sorted(here & needed))
    if len(keep) < len(here):
        return Compact(input=made, keep=keep, counted=counted)
    return made


def _below(plan: Plan, needed: frozenset[str], *, counted: bool, traversed: bool) -> Plan:
    """``traversed``: a traversal follows, so that fewer rows here are fewer steps there."""
    match plan:
        case Expand():
            wanted = needed | {plan.origin} | _needed(plan.filters)
            source = _below(plan.input, wanted, counted=counted, traversed=True)
            made: Plan = replace(plan, input=source)
            here = bound(made)
            keep = tuple(sorted(here & needed))
            # The nodes that one node reaches differ anyway; only a chain brings repeats.
            if traversed and len(keep) < len(here):
                made = Compact(input=made, keep=keep, counted=counted)
            return made
        case Close():
            wanted = needed | {plan.origin, plan.target}
            source = _below(plan.input, wanted, counted=counted, traversed=traversed)
            return replace(plan, input=source)
        case Degrees():
            wanted = needed | {plan.origin}
            return replace(plan, input=_below(plan.input, wanted, counted=counted, traversed=True))
        case Filter():
            wanted = needed | _needed(plan.conditions)
            source = _below(plan.input, wanted, counted=counted, traversed=traversed)
            return replace(plan, input=source)
        case Join():
            wanted = needed | _needed(e for pair in plan.on for e in pair)
            sides = (_side(side, wanted, counted=counted) for side in (plan.left, plan.right))
            left, right = sides
            return replace(plan, left=left, right=right)
        case Semi():
            wanted = needed | outer_variables(plan.block)
            source = _below(plan.input, wanted, counted=counted, traversed=traversed)
            block = _below(plan.block, frozenset(), counted=False, traversed=False)
            return replace(plan, input=source, block=block)
        case _:
            return with_inputs(plan, tuple(_walk(p) for p in inputs(plan)))
