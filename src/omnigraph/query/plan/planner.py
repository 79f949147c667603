"""From a typed read to the plan that is run: build, improve, and plan the blocks of expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from omnigraph.errors import LimitError
from omnigraph.query.plan.build import build, build_pattern
from omnigraph.query.plan.conditions import part_left
from omnigraph.query.plan.nodes import Join, Plan, Scan, inputs
from omnigraph.query.plan.rules import RULES, improve
from omnigraph.query.plan.rules.keys import sought
from omnigraph.query.plan.rules.planning import Planning, Rule
from omnigraph.query.typed import CountOf, Exists, Expr, NodeVar, Pattern, Read, walk
from omnigraph.schema.catalog import Catalog

RowCount = Callable[[str], int]
"""Rows of a node type, from the snapshot's metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPlan:
    """A plan, and plans for the blocks that stand inside expressions."""

    root: Plan
    blocks: Mapping[Pattern, Plan]


def plan_read(
    read: Read, catalog: Catalog, rows: RowCount, rules: tuple[Rule, ...] = RULES
) -> QueryPlan:
    """The plan of a read. Row counts choose where a pattern starts; any choice is correct.

    ``rules`` are those that the executor has steps for.
    """

    def cost(node: NodeVar, filters: tuple[Expr, ...]) -> float:
        scan = Scan(variable=node.name, type_name=node.type_name, filters=filters)
        if filters and sought(scan, catalog.nodes[node.type_name]) is not None:
            return 1.0
        expected = float(rows(node.type_name))
        for condition in filters:
            expected *= part_left(condition)
        return 1.0 + expected

    planning = Planning(catalog=catalog, cost=cost)
    blocks: dict[Pattern, Plan] = {}
    try:
        root = improve(build(read, cost), planning, rules)
        _plan_blocks(root, planning, rules, blocks)
    except RecursionError:
        raise too_deep() from None
    return QueryPlan(root=root, blocks=blocks)


def too_deep() -> LimitError:
    """Every step stands on the ones below it, and so does Python's stack."""
    return LimitError(
        "the query has too many traversals or blocks for one plan",
        hint="split it into several queries",
        details={"limit": "depth"},
    )


def _plan_blocks(
    plan: Plan, planning: Planning, rules: tuple[Rule, ...], blocks: dict[Pattern, Plan]
) -> None:
    for expr in expressions(plan):
        for part in walk(expr):
            if isinstance(part, (Exists, CountOf)) and part.block not in blocks:
                purpose = "exist" if isinstance(part, Exists) else "count"
                inner = replace(planning, purpose=purpose)
                made = improve(build_pattern(part.block, planning.cost), inner, rules)
                blocks[part.block] = made
                _plan_blocks(made, planning, rules, blocks)
    for source in inputs(plan):
        _plan_blocks(source, planning, rules, blocks)


def expressions(plan: Plan) -> tuple[Expr, ...]:
    """The expressions that a step itself evaluates."""
    found: list[Expr] = [*getattr(plan, "filters", ()), *getattr(plan, "conditions", ())]
    found += [output.value for output in getattr(plan, "outputs", ())]
    found += [key.value for key in getattr(plan, "keys", ())]
    if isinstance(plan, Join):
        for pair in plan.on:
            found += pair
    return tuple(found)
