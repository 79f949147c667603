"""Conditions that Lance can evaluate while it reads.

    typed condition -> [pushdown] -> a pyarrow expression, or nothing

An expression is typed and never text, so no value can change what is asked. It means exactly what
``evaluate`` means, unknowns included; a condition that cannot be said so is not said at all, and
the caller evaluates it on the columns. Unsigned columns are outside: Lance's reader of expressions
does not know them, and refuses every condition on a table that has a list of them.
"""

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrow.texts import text_tests_travel
from omnigraph.query import typed
from omnigraph.query.exec import lists, numbers
from omnigraph.query.exec.evaluate import Values, is_constant, number_of
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import GraphType, Scalar

_NUMBERS: dict[Scalar, np.dtype[Any]] = {
    Scalar.I32: np.dtype(np.int32),
    Scalar.I64: np.dtype(np.int64),
    Scalar.F32: np.dtype(np.float32),
    Scalar.F64: np.dtype(np.float64),
    Scalar.DATE: np.dtype(np.int32),
    Scalar.DATETIME: np.dtype(np.int64),
}
_STORED: dict[Scalar, pa.DataType] = {Scalar.DATE: pa.int32(), Scalar.DATETIME: pa.int64()}
"""Days and instants are moved as the integers that they are stored as."""


class _NotPushed(Exception):
    """This condition is not among those that Lance understands as we do."""


def lance_filters(graph_type: GraphType) -> bool:
    """Whether Lance takes any condition at all on the table of this type."""
    unsigned = (Scalar.U32, Scalar.U64)
    return not any(p.type.is_list and p.type.scalar in unsigned for p in graph_type.properties)


def to_lance_filter(
    expr: typed.Expr, values: Values, graph_type: GraphType | None = None
) -> pc.Expression | None:
    """The condition over the columns of one variable; None if it has to be evaluated by us.

    ``graph_type`` is the type of the variable; leave it out only after asking ``lance_filters``.
    """
    if len(typed.variables(expr)) != 1 or (graph_type and not lance_filters(graph_type)):
        return None
    try:
        return _condition(expr, values)
    except _NotPushed:
        return None


def _condition(expr: typed.Expr, values: Values) -> pc.Expression:
    match expr:
        case typed.And(operands=operands):
            parts = [_condition(o, values) for o in operands]
            return _folded(parts, lambda a, b: a & b, empty=True)
        case typed.Or(operands=operands):
            parts = [_condition(o, values) for o in operands]
            return _folded(parts, lambda a, b: a | b, empty=False)
        case typed.Not(operand=operand):
            return ~_condition(operand, values)
        case typed.IsNull(operand=typed.Prop() as prop):
            return _field(prop).is_null()
        case typed.Compare():
            return _comparison(expr, values)
        case typed.InList(item=typed.Prop() as item, values=listed) if is_constant(listed):
            return _among(item, values.of(listed))
        case typed.TextTest(text=typed.Prop() as text, part=part) if is_constant(part):
            return _text(expr, text, values.of(part))
        case typed.Prop(type=kind) if kind.scalar is Scalar.BOOL and not kind.is_list:
            return _field(expr)
        case _:
            raise _NotPushed


def _folded(parts: list[pc.Expression], join: Any, *, empty: bool) -> pc.Expression:
    if not parts:
        return _truth(empty)
    joined = parts[0]
    for part in parts[1:]:
        joined = join(joined, part)
    return joined


def _truth(value: bool | None) -> pc.Expression:
    return pc.scalar(pa.scalar(value, pa.bool_()))


def _field(prop: typed.Prop) -> pc.Expression:
    kind = prop.type
    sayable = kind.scalar in _NUMBERS or kind.scalar in (Scalar.STRING, Scalar.BOOL)
    if kind.is_list or not sayable:
        raise _NotPushed
    return pc.field(prop.column)


def _always(prop: typed.Prop, answer: bool) -> pc.Expression:
    """The same answer wherever there is a value; unknown where there is none."""
    field = _field(prop)
    return field == field if answer else field != field


def _comparison(expr: typed.Compare, values: Values) -> pc.Expression:
    op, left, right = expr.op, expr.left, expr.right
    if is_constant(left):
        op, left, right = numbers.MIRRORED[op], right, left
    if not isinstance(left, typed.Prop) or not is_constant(right):
        raise _NotPushed
    field, value, scalar = _field(left), values.of(right), left.type.scalar
    if value is None:
        return _truth(None)
    if scalar in _NUMBERS:
        moved = numbers.move(op, _NUMBERS[scalar], number_of(value))
        if isinstance(moved, bool):
            return _always(left, moved)
        op, value = moved.op, moved.value
    elif scalar is Scalar.BOOL and op not in ("=", "!="):
        raise _NotPushed
    return numbers.COMPARE[op](field, pc.scalar(_literal(value, left)))


def _literal(value: Any, prop: typed.Prop) -> pa.Scalar:
    scalar, kind = prop.type.scalar, arrow_type(prop.type)
    if scalar in _STORED:
        return pa.scalar(value, _STORED[scalar]).cast(kind)
    return pa.scalar(value, kind)


def _among(item: typed.Prop, listed: tuple[Any, ...] | None) -> pc.Expression:
    field, scalar = _field(item), item.type.scalar
    if listed is None:
        return _truth(None)
    known, has_null = lists.distinct(listed)
    if scalar in _NUMBERS:
        dtype = _NUMBERS[scalar]
        fitting = [numbers.fitted(dtype, number_of(v)) for v in known]
        known = cast("list[Any]", [v for v in fitting if v is not None])
    if known:
        plain = pa.array(known, _STORED.get(scalar, arrow_type(item.type)))
        found = field.isin(plain.cast(arrow_type(item.type)))
    else:
        found = _always(item, False)
    return found | _truth(None) if has_null else found


def _text(expr: typed.TextTest, text: typed.Prop, part: str | None) -> pc.Expression:
    if part is None:
        return _truth(False)
    if not text_tests_travel():
        raise _NotPushed
    field = _field(text)
    match = pc.match_substring if expr.kind == "contains" else pc.starts_with
    # Never unknown: a text that is not there contains nothing.
    return field.is_valid() & match(field, pattern=part)
