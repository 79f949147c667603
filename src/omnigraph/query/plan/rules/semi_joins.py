"""``exists { … }`` as a condition of its own is a semi-join, its negation an anti-join."""

from __future__ import annotations

from omnigraph.query.plan.build import build_pattern
from omnigraph.query.plan.nodes import Filter, Plan, Semi
from omnigraph.query.plan.rules.planning import Planning, bottom_up
from omnigraph.query.typed import Exists, Expr, Not, Pattern


def exists_as_semi_join(plan: Plan, planning: Planning) -> Plan:
    """Take such conditions out of filters."""

    def change(step: Plan) -> Plan:
        if not isinstance(step, Filter):
            return step
        blocks = [(c, b) for c in step.conditions if (b := _block(c)) is not None]
        if not blocks:
            return step
        taken = [c for c, _ in blocks]
        rest = tuple(c for c in step.conditions if c not in taken)
        made: Plan = Filter(input=step.input, conditions=rest) if rest else step.input
        for condition, block in blocks:
            inner = exists_as_semi_join(build_pattern(block, planning.cost), planning)
            made = Semi(input=made, block=inner, negated=isinstance(condition, Not))
        return made

    return bottom_up(plan, change)


def _block(condition: Expr) -> Pattern | None:
    if isinstance(condition, Not):
        condition = condition.operand
    return condition.block if isinstance(condition, Exists) else None
