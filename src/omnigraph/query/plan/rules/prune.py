"""A traversal carries on only the variables that a later step needs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from omnigraph.query.plan.nodes import (
    Aggregate,
    Attach,
    Close,
    Compact,
    Degrees,
    Distinct,
    Expand,
    Filter,
    Join,
    Order,
    Plan,
    Project,
    Semi,
    bound,
    outer_variables,
)
from omnigraph.query.plan.rules.planning import Planning
from omnigraph.query.typed import Expr, variables


def prune_variables(plan: Plan, _: Planning) -> Plan:
    """Note at every traversal what it has to keep."""
    return _pruned(plan, frozenset())


def _pruned(plan: Plan, needed: frozenset[str]) -> Plan:
    match plan:
        case Project() | Aggregate():
            return replace(plan, input=_pruned(plan.input, _of(o.value for o in plan.outputs)))
        case Distinct():
            return replace(plan, input=_pruned(plan.input, needed))
        case Order():
            wanted = needed | _of(k.value for k in plan.keys) | set(plan.ties)
            return replace(plan, input=_pruned(plan.input, wanted))
        case Expand():
            below = needed - {plan.target, plan.edge_variable}
            filters = _of(plan.filters) - {plan.target, plan.edge_variable}
            source = _pruned(plan.input, below | filters | {plan.origin})
            keep = tuple(sorted(bound(source) & (below | filters)))
            return replace(plan, input=source, keep=keep)
        case Close():
            ends = {plan.origin, plan.target}
            return replace(plan, input=_pruned(plan.input, needed | ends))
        case Degrees():
            return replace(plan, input=_pruned(plan.input, needed | {plan.origin}))
        case Compact():
            return replace(plan, input=_pruned(plan.input, frozenset(plan.keep)))
        case Filter():
            return replace(plan, input=_pruned(plan.input, needed | _of(plan.conditions)))
        case Semi():
            source = _pruned(plan.input, needed | outer_variables(plan.block))
            return replace(plan, input=source, block=_pruned(plan.block, frozenset()))
        case Attach():
            source = _pruned(plan.input, needed | outer_variables(plan.block))
            block = _pruned(plan.block, frozenset(plan.variables))
            return replace(plan, input=source, block=block)
        case Join():
            wanted = needed | _of(e for pair in plan.on for e in pair)
            left, right = _pruned(plan.left, wanted), _pruned(plan.right, wanted)
            return replace(plan, left=left, right=right)
        case _:
            return plan


def _of(expressions: Iterable[Expr]) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for expr in expressions:
        found |= variables(expr)
    return found
