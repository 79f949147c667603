"""Two components with an equality between them meet in a join, not in a product."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.conditions import has_block
from omnigraph.query.plan.nodes import Filter, Join, Plan, bound
from omnigraph.query.plan.rules.planning import Planning, bottom_up
from omnigraph.query.typed import Compare, Expr, Prop, variables
from omnigraph.schema.catalog import PropertyType, Scalar


def join_on_equality(plan: Plan, _: Planning) -> Plan:
    """Move equalities between both sides of a product into it."""

    def change(step: Plan) -> Plan:
        if not isinstance(step, Filter) or not isinstance(step.input, Join):
            return step
        join = step.input
        pairs = [(c, pair) for c in step.conditions if (pair := _sides(c, join)) is not None]
        if not pairs:
            return step
        used = [c for c, _ in pairs]
        rest = tuple(c for c in step.conditions if c not in used)
        joined = replace(join, on=(*join.on, *(pair for _, pair in pairs)))
        return Filter(input=joined, conditions=rest) if rest else joined

    return bottom_up(plan, change)


def _sides(condition: Expr, join: Join) -> tuple[Expr, Expr] | None:
    """The two sides, left first, if they are columns of one type on either side of the join."""
    match condition:
        case Compare(op="=", left=Prop() as one, right=Prop() as other):
            pass
        case _:
            return None
    if not _joinable(one.type, other.type) or has_block(condition):
        return None
    left, right = bound(join.left), bound(join.right)
    if variables(one) <= left and variables(other) <= right:
        return one, other
    if variables(other) <= left and variables(one) <= right:
        return other, one
    return None


def _joinable(one: PropertyType, other: PropertyType) -> bool:
    """Whether one type holds the values of both exactly."""
    if one.is_list or other.is_list:
        return one.scalar is other.scalar and one.is_list is other.is_list
    kinds = {one.scalar, other.scalar}
    return len(kinds) == 1 or any(
        kinds <= group
        for group in (
            {Scalar.I32, Scalar.I64, Scalar.U32},
            {Scalar.U32, Scalar.U64},
            {Scalar.F32, Scalar.F64},
        )
    )
