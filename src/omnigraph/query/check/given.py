"""Values that are known before a query looks at the graph: constants, parameters, ``now()``.

inline matches, assignments -> [given] -> typed values
"""

from __future__ import annotations

from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check.constants import list_literal, single
from omnigraph.query.check.context import Context
from omnigraph.query.check.expressions import arguments
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import PropertyType, Scalar

Given = typed.Const | typed.Param | typed.Now
_EXPECTED = "a literal, a parameter or `now()`"


def given_value(expr: ast.Expr, ctx: Context) -> Given | None:
    """The value of an inline match; null is none."""
    if isinstance(expr, ast.NullLiteral):
        ctx.report(
            QueryCode.NULL_VALUE,
            expr.span,
            "nothing equals null",
            hint="test for it beside the binding: `$v.name is null`",
        )
        return None
    return assigned_value(expr, ctx)


def assigned_value(expr: ast.Expr, ctx: Context, element: Scalar | None = None) -> Given | None:
    """The value of an assignment, except ``null``; lists take the element type if they can."""
    match expr:
        case ast.Variable():
            of = declared(expr, ctx)
            return None if of is None else typed.Param(name=expr.name, type=of)
        case (
            ast.BoolLiteral()
            | ast.IntLiteral()
            | ast.FloatLiteral()
            | ast.StringLiteral()
            | ast.DateLiteral()
            | ast.DateTimeLiteral()
        ):
            return single(expr, ctx)
        case ast.ListLiteral():
            return list_literal(expr, ctx, element)
        case ast.Call() if expr.function.text == "now":
            return typed.Now() if arguments(expr, 0, 0, ctx) else None
        case _:
            hint = None
            if isinstance(expr, ast.NameRef):
                hint = f'a text is written "{expr.name}"'
            elif isinstance(expr, ast.PropertyRef):
                hint = "compare two properties in a line of its own: `$a.p = $b.q`"
            message = f"{ctx.quote(expr.span)} is not known before the query runs"
            ctx.report(QueryCode.NOT_CONSTANT, expr.span, message, expected=_EXPECTED, hint=hint)
            return None


def declared(expr: ast.Variable, ctx: Context) -> PropertyType | None:
    """The type of a variable that must be a parameter."""
    if expr.name in ctx.params:
        return ctx.param(expr.name)
    ctx.report(
        QueryCode.NOT_A_PARAMETER,
        expr.span,
        f"`${expr.name}` is not a parameter of this query",
        expected=_EXPECTED,
        hint=did_you_mean(f"${expr.name}", [f"${n}" for n in ctx.params]),
    )
    return None
