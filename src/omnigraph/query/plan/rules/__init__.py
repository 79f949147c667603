"""Rules: each turns a plan into a better one with the same answer. Their order is here."""

from __future__ import annotations

from omnigraph.query.plan.nodes import Plan
from omnigraph.query.plan.rules.best import rank_only_the_best
from omnigraph.query.plan.rules.compact import compact_dead_variables
from omnigraph.query.plan.rules.count_rows import count_rows_not_entities
from omnigraph.query.plan.rules.degrees import count_by_degrees
from omnigraph.query.plan.rules.equal_joins import join_on_equality
from omnigraph.query.plan.rules.filters import push_filters_down
from omnigraph.query.plan.rules.keys import seek_by_key
from omnigraph.query.plan.rules.limit_products import limit_products
from omnigraph.query.plan.rules.planning import Planning, Rule
from omnigraph.query.plan.rules.prune import prune_variables
from omnigraph.query.plan.rules.semi_joins import exists_as_semi_join

RULES: tuple[Rule, ...] = (
    exists_as_semi_join,
    push_filters_down,
    join_on_equality,
    seek_by_key,
    limit_products,
    count_rows_not_entities,
    compact_dead_variables,
    count_by_degrees,
    rank_only_the_best,
    prune_variables,
)


def improve(plan: Plan, planning: Planning, rules: tuple[Rule, ...] = RULES) -> Plan:
    """The plan after all rules."""
    for rule in rules:
        plan = rule(plan, planning)
    return plan
