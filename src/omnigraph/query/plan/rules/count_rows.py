"""``count($v)`` of a variable that is always bound counts rows: then the variable is not needed."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.query.plan.nodes import Aggregate, Plan
from omnigraph.query.plan.rules.planning import Planning, bottom_up
from omnigraph.query.typed import BOOL, AggregateCall, Const, Entity, Expr, Output, Prop

ROW = Const(value=True, type=BOOL)
"""Something that every row has."""


def count_rows_not_entities(plan: Plan, _: Planning) -> Plan:
    """Replace such operands by a constant."""

    def change(step: Plan) -> Plan:
        if not isinstance(step, Aggregate):
            return step
        outputs = tuple(_counted(o) for o in step.outputs)
        return step if outputs == step.outputs else replace(step, outputs=outputs)

    return bottom_up(plan, change)


def _counted(output: Output) -> Output:
    call = output.value
    if not isinstance(call, AggregateCall) or call.function != "count" or call.distinct:
        return output
    if not _always_there(call.operand):
        return output
    return replace(output, value=replace(call, operand=ROW))


def _always_there(operand: Expr) -> bool:
    return isinstance(operand, (Entity, Prop)) and not operand.type.nullable
