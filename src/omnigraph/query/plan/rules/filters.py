"""A condition is tested as soon as its variables are bound."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.build import has_block
from omnigraph.query.plan.nodes import (
    Attach,
    Close,
    Expand,
    Filter,
    Join,
    Plan,
    Rank,
    Scan,
    Seek,
    Semi,
    bound,
)
from omnigraph.query.plan.rules.planning import Planning, bottom_up
from omnigraph.query.typed import Expr, variables


def push_filters_down(plan: Plan, _: Planning) -> Plan:
    """Move every condition of every filter as far down as it goes."""

    def change(step: Plan) -> Plan:
        if not isinstance(step, Filter):
            return step
        made = step.input
        for condition in step.conditions:
            made = _sink(made, condition)
        return made

    return bottom_up(plan, change)


def _sink(plan: Plan, condition: Expr) -> Plan:
    needed = variables(condition)
    plain = not has_block(condition)
    match plan:
        case Scan(variable=variable) if needed == frozenset((variable,)) and not has_block(
            condition
        ):
            return replace(plan, filters=(*plan.filters, condition))
        case Seek(variable=variable) if needed == frozenset((variable,)) and not has_block(
            condition
        ):
            return replace(plan, filters=(*plan.filters, condition))
        case Expand():
            if needed <= bound(plan.input):
                return replace(plan, input=_sink(plan.input, condition))
            arrives = {plan.target, plan.edge_variable}
            if plain and needed <= arrives:
                return replace(plan, filters=(*plan.filters, condition))
        case Close() | Semi() | Attach() if needed <= bound(plan.input):
            return replace(plan, input=_sink(plan.input, condition))
        case Rank(input=Scan() as scan) if condition in scan.filters:
            # Scalar filters on the ranked node were there first: the ranking is among what passes.
            return plan
        case Join():
            if needed and needed <= bound(plan.left):
                return replace(plan, left=_sink(plan.left, condition))
            if needed and needed <= bound(plan.right):
                return replace(plan, right=_sink(plan.right, condition))
        case Filter():
            if needed <= bound(plan.input):
                return replace(plan, conditions=(*plan.conditions, condition))
        case _:
            pass
    return Filter(input=plan, conditions=(condition,))
