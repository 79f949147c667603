"""``count``, ``sum``, ``avg``, ``min`` and ``max`` as a whole result column.

outputs -> [aggregates] -> typed aggregate
"""

from __future__ import annotations

from omnigraph.query import ast, typed
from omnigraph.query.check.context import Context, as_nullable
from omnigraph.query.check.expressions import AGGREGATES, arguments
from omnigraph.query.check.match_place import MatchPlace
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import PropertyType, Scalar


def aggregate(expr: ast.Call, place: MatchPlace) -> typed.Aggregate | None:
    """One aggregate over one operand."""
    function = AGGREGATES[expr.function.text]
    if not arguments(expr, 1, 1, place.ctx):
        return None
    written = expr.args[0]
    operand = place.present(written) if function == "count" else place.value(written)
    if operand is None:
        return None
    of = _result(function, operand.type, distinct=expr.distinct)
    if of is None:
        _refuse(function, operand.type, written, expr.distinct, place.ctx)
        return None
    return typed.Aggregate(function=function, operand=operand, distinct=expr.distinct, type=of)


def _result(
    function: typed.AggregateFunction, of: typed.ValueType, *, distinct: bool
) -> PropertyType | None:
    """The type of the aggregate, or None when it does not work on such values."""
    if isinstance(of, typed.ObjectType):
        return typed.COUNT if function == "count" else None
    plain = not of.is_list and of.scalar is not Scalar.VECTOR
    if function == "count":
        return typed.COUNT if plain or not distinct else None
    if not plain:
        return None
    if function in ("sum", "avg"):
        return typed.FLOAT if of.scalar.is_numeric else None
    return as_nullable(of)


def _refuse(
    function: typed.AggregateFunction,
    of: typed.ValueType,
    written: ast.Expr,
    distinct: bool,
    ctx: Context,
) -> None:
    what = "a whole node" if isinstance(of, typed.ObjectType) else str(of)
    wanted = {"sum": "a number", "avg": "a number", "count": "a single value"}
    ctx.report(
        QueryCode.AGGREGATE_TYPE,
        written.span,
        f"`{function}` does not work on {ctx.quote(written.span)}, which is {what}",
        expected=wanted.get(function, "a number, text, Bool, Date or DateTime"),
        hint="`count` without `distinct` takes everything" if distinct else None,
    )
