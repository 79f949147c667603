"""What rules know beside the plan, and how they walk it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.query.plan.build import RootCost
from omnigraph.query.plan.nodes import Plan, inputs, with_inputs
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """The schema, and the expected cost of starting at a variable."""

    catalog: Catalog
    cost: RootCost
    purpose: str = "result"
    """What the rows are for: a ``result``, or a block that has to ``exist`` or to ``count``."""


Rule = Callable[[Plan, Planning], Plan]


def bottom_up(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    """The plan with every step changed, inputs before the steps that use them."""
    below = inputs(plan)
    changed = tuple(bottom_up(p, change) for p in below)
    # An unchanged step stays the same object: steps are recognised by identity when profiled.
    same = all(a is b for a, b in zip(below, changed, strict=True))
    return change(plan if same else with_inputs(plan, changed))
