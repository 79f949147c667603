"""Of a product that is sorted and cut, each side needs only as many rows as are kept.

A row that follows N others of its own side follows N rows of the product, whatever it meets. That
holds where every sort key looks at one side alone.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.nodes import Join, Order, Plan, bound
from omnigraph.query.plan.rules.planning import Planning, bottom_up
from omnigraph.query.typed import Bm25, Nearest, Rrf, variables


def limit_products(plan: Plan, _: Planning) -> Plan:
    """Sort and cut both sides of a product directly below an order with a limit."""

    def change(step: Plan) -> Plan:
        if not isinstance(step, Order) or step.limit is None or step.on != "bindings":
            return step
        if any(isinstance(key.value, (Bm25, Nearest, Rrf)) for key in step.keys):
            return step  # Scores belong to the frame that was ranked.
        return replace(step, input=_cut(step.input, step))

    return bottom_up(plan, change)


def _cut(plan: Plan, order: Order) -> Plan:
    if not isinstance(plan, Join) or plan.on:
        return plan
    left, right = bound(plan.left), bound(plan.right)
    needed = [variables(key.value) for key in order.keys]
    if any(names & left and names & right for names in needed):
        return plan
    return replace(plan, left=_side(plan.left, order), right=_side(plan.right, order))


def _side(plan: Plan, order: Order) -> Plan:
    here = bound(plan)
    ties = tuple(name for name in order.ties if name in here)
    # Rows that only variables without a name tell apart are all alike to the order.
    if len(ties) < len(here):
        return plan
    own = replace(
        order,
        input=plan,
        keys=tuple(key for key in order.keys if variables(key.value) <= here),
        ties=ties,
        keeps_skipped=True,
    )
    return replace(own, input=_cut(plan, own))
