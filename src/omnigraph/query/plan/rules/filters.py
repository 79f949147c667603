"""A condition is tested as soon as its variables are bound."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.conditions import has_block
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
    outer_variables,
)
from omnigraph.query.plan.rules.planning import Planning, bottom_up
from omnigraph.query.typed import Expr, variables


def push_filters_down(plan: Plan, _: Planning) -> Plan:
    """Move every condition of every filter as far down as it goes."""

    def change(step: Plan) -> Plan:
        if isinstance(step, Semi):
            return _sink_semi(step)
        if not isinstance(step, Filter):
            return step
        made = step.input
        for condition in step.conditions:
            made = _sink(made, condition)
        return made

    return bottom_up(plan, change)


def _sink_semi(semi: Semi) -> Plan:
    """A block with a solution, or none, is asked for before components meet, where it can be."""
    needed = outer_variables(semi.block)
    match semi.input:
        case Join(left=left, right=right) as join if needed:
            on_the_right = bound(right)
            if needed <= on_the_right:
                return replace(join, right=_sink_semi(replace(semi, input=right)))
            if needed.isdisjoint(on_the_right):
                return replace(join, left=_sink_semi(replace(semi, input=left)))
        case Filter(input=source) | Semi(input=source) as above:
            below = _sink_semi(replace(semi, input=source))
            if not isinstance(below, Semi) or below.block is not semi.block:
                return replace(above, input=below)
        case _:
            pass
    return semi


def _sink(plan: Plan, condition: Expr) -> Plan:
    """The plan with a condition in it, all of whose variables the plan binds.

    So a step that brings none of them can have it below. Asking only what a step itself brings,
    and not what everything below it binds, is what keeps long patterns cheap to plan.
    """
    needed = variables(condition)
    plain = not has_block(condition)
    match plan:
        case Scan() | Seek() if plain and needed == frozenset((plan.variable,)):
            return replace(plan, filters=(*plan.filters, condition))
        case Expand():
            arrives = {plan.target, plan.edge_variable}
            if not needed & arrives:
                return replace(plan, input=_sink(plan.input, condition))
            if plain and needed <= arrives:
                return replace(plan, filters=(*plan.filters, condition))
        case Close(edge_variable=brought) if brought not in needed:
            return replace(plan, input=_sink(plan.input, condition))
        case Semi():
            return replace(plan, input=_sink(plan.input, condition))
        case Attach(variables=brought) if needed.isdisjoint(brought):
            return replace(plan, input=_sink(plan.input, condition))
        case Rank() if plain and needed == frozenset((plan.variable,)):
            # Conditions on the ranked node were there first: the ranking is among what passes.
            return plan
        case Join() if needed:
            # A component stands on the right of all that came before it.
            on_the_right = bound(plan.right)
            if needed <= on_the_right:
                return replace(plan, right=_sink(plan.right, condition))
            if needed.isdisjoint(on_the_right):
                return replace(plan, left=_sink(plan.left, condition))
        case Filter():
            below = _sink(plan.input, condition)
            if isinstance(below, Filter) and below.input is plan.input:
                return replace(plan, conditions=(*plan.conditions, condition))
            return replace(plan, input=below)
        case _:
            pass
    return Filter(input=plan, conditions=(condition,))
