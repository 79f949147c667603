"""A last hop whose end is not looked at is a matter of degrees, not of rows."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.nodes import Aggregate, Degrees, Expand, Plan, Semi
from omnigraph.query.plan.rules.planning import Planning, bottom_up
from omnigraph.query.typed import AggregateCall, variables


def count_by_degrees(plan: Plan, planning: Planning) -> Plan:
    """Replace such hops under counts and at the top of blocks."""
    if planning.purpose != "result" and isinstance(plan, Expand):
        plan = _by_degree(plan, frozenset()) or plan

    def change(step: Plan) -> Plan:
        if isinstance(step, Semi) and isinstance(step.block, Expand):
            made = _by_degree(step.block, frozenset())
            return step if made is None else replace(step, block=made)
        if isinstance(step, Aggregate) and isinstance(step.input, Expand):
            needed: frozenset[str] = frozenset()
            for output in step.outputs:
                needed |= variables(output.value)
            made = _by_degree(step.input, needed) if _weighs(step) else None
            return step if made is None else replace(step, input=made)
        return step

    return bottom_up(plan, change)


def _weighs(step: Aggregate) -> bool:
    """Every function is one that weights do not confuse: all are, grouping included."""
    return any(isinstance(o.value, AggregateCall) for o in step.outputs)


def _by_degree(step: Expand, needed: frozenset[str]) -> Degrees | None:
    if step.filters or step.low != 1 or step.target in needed:
        return None
    if step.edge_variable in needed or step.high != 1:
        return None
    return Degrees(
        input=step.input,
        origin=step.origin,
        edge=step.edge,
        direction=step.direction,
        per_edge=step.edge_variable is not None,
    )
