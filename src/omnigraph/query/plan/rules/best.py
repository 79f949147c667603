"""A ranking that nothing comes after needs only its best rows."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.nodes import Order, Plan, Rank
from omnigraph.query.plan.rules.planning import Planning, bottom_up


def rank_only_the_best(plan: Plan, _: Planning) -> Plan:
    """Tell a ranking directly below an order how many rows the order will keep.

    Not across a traversal or a filter: they may drop the best, and then others have to follow.
    """

    def change(step: Plan) -> Plan:
        if not isinstance(step, Order) or not isinstance(step.input, Rank):
            return step
        if not step.keys or step.keys[0].value != step.input.score:
            return step
        ranked = replace(step.input, limit=step.limit, offset=step.offset)
        return replace(step, input=ranked)

    return bottom_up(plan, change)
