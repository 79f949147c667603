"""Two sides and a test between them: may they be compared, and in which type.

    expressions -> [comparisons] -> typed expressions

The evaluator compares numbers mathematically, whatever their types. So the only thing to do about
types here is to refuse what makes no sense and to bring constants into the other side's type where
that changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from omnigraph.lang.source import Span
from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check.constants import (
    LISTS,
    compatible,
    fitted,
    in_one_type,
)
from omnigraph.query.check.context import ID_TYPE, Context, as_nullable
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.temporal import parse_day, parse_instant

if TYPE_CHECKING:
    from omnigraph.query.check.expressions import Place


def compare(expr: ast.CompareExpr, place: Place) -> typed.Expr | None:
    """``a = b``, ``a contains b`` and the like."""
    expr = replace(expr, left=place.left_of(expr.left))
    if isinstance(expr.left, ast.NullLiteral) or isinstance(expr.right, ast.NullLiteral):
        return _with_null(expr, place)
    left, right = place.value(expr.left), place.value(expr.right)
    if left is None or right is None:
        return None
    if expr.op == "contains":
        return _contains(expr, left, right, place.ctx)
    if expr.op == "starts_with":
        return _starts_with(expr, left, right, place.ctx)
    if isinstance(left, typed.Entity) and isinstance(right, typed.Entity):
        return _entities(expr, expr.op, left, right, place.ctx)
    one = single_type(left, expr.left, place.ctx)
    other = single_type(right, expr.right, place.ctx)
    if one is None or other is None or not _fits(expr, one, other, place.ctx):
        return None
    if expr.op in ("=", "!="):
        ok = check_enum(left, other, expr.left, place.ctx)
        if not check_enum(right, one, expr.right, place.ctx) or not ok:
            return None
    return typed.Compare(op=expr.op, left=fitted(left, other), right=fitted(right, one))


def _with_null(expr: ast.CompareExpr, place: Place) -> None:
    sides = [s for s in (expr.left, expr.right) if not isinstance(s, ast.NullLiteral)]
    for side in sides:
        place.value(side)
    what = place.ctx.quote(sides[0].span).strip("`") if sides else "…"
    test = "is not null" if expr.op == "!=" else "is null"
    place.ctx.report(
        QueryCode.NULL_VALUE,
        expr.span,
        "a comparison with null is never true",
        hint=f"write `{what} {test}`",
    )


def _entities(
    expr: ast.CompareExpr,
    op: typed.CompareOp,
    left: typed.Entity,
    right: typed.Entity,
    ctx: Context,
) -> typed.Expr | None:
    if op not in ("=", "!="):
        message = f"nodes have no order; `{op}` compares single values"
        return ctx.report(
            QueryCode.NODE_VALUE, expr.span, message, hint="compare properties: `$v.name`"
        )
    if left.type.type_name != right.type.type_name:
        message = f"a {left.type.type_name} and a {right.type.type_name} are never the same node"
        return ctx.report(QueryCode.NODE_VALUE, expr.span, message)
    return typed.Compare(op=op, left=_id_of(left), right=_id_of(right))


def _id_of(node: typed.Entity) -> typed.Prop:
    of = as_nullable(ID_TYPE) if node.type.nullable else ID_TYPE
    return typed.Prop(variable=node.variable, column="id", type=of)


def single_type(value: typed.Expr, at: ast.Expr, ctx: Context) -> PropertyType | None:
    """The type of an operand that must be one plain value."""
    of = value.type
    if isinstance(of, typed.ObjectType):
        message = f"{ctx.quote(at.span)} is a whole node, not a single value"
        hint = f"take a property, or its id: {ctx.quote(at.span)[:-1]}.id`"
        return ctx.report(QueryCode.NODE_VALUE, at.span, message, hint=hint)
    if of.scalar is Scalar.VECTOR:
        message = f"{ctx.quote(at.span)} is a vector and cannot be compared"
        hint = "vectors are ranked: `order { nearest($v.vector, $q) } limit 10`"
        return ctx.report(QueryCode.VECTOR_COMPARED, at.span, message, hint=hint)
    if of.is_list:
        message = f"{ctx.quote(at.span)} is a list and cannot be compared as a whole"
        hint = "test for an element: `list contains value` or `value in list`"
        return ctx.report(QueryCode.LIST_COMPARED, at.span, message, hint=hint)
    return of


def _fits(expr: ast.CompareExpr, one: PropertyType, other: PropertyType, ctx: Context) -> bool:
    if compatible(one.scalar, other.scalar):
        return True
    hint = conversion_hint(expr.right, one.scalar) or conversion_hint(expr.left, other.scalar)
    incomparable(expr.span, expr.left.span, one, other, ctx, hint=hint)
    return False


def incomparable(
    span: Span,
    left: Span,
    one: PropertyType,
    other: PropertyType,
    ctx: Context,
    *,
    hint: str | None,
) -> None:
    """Report that ``left``, of type ``one``, does not go with a value of type ``other``."""
    message = f"{ctx.quote(left)} is {_kind(one)} and cannot be compared with {_kind(other)}"
    ctx.report(QueryCode.INCOMPARABLE, span, message, hint=hint)


def _kind(of: PropertyType) -> str:
    return str(of).removesuffix("?")


def conversion_hint(written: ast.Expr, wanted: Scalar) -> str | None:
    """How to write a literal so that it has the wanted type, if it is that simple."""
    match written:
        case ast.StringLiteral(value=text):
            if wanted is Scalar.DATE and parse_day(text) is not None:
                return f'write `date("{text}")`'
            if wanted is Scalar.DATETIME and parse_instant(text) is not None:
                return f'write `datetime("{text}")`'
            if wanted.is_numeric and text.removeprefix("-").isdecimal():
                return f"leave the quotes out: `{text}`"
            if wanted is Scalar.BOOL and text in ("true", "false"):
                return f"leave the quotes out: `{text}`"
        case ast.IntLiteral(value=number) if wanted is Scalar.STRING:
            return f'write it as a text: `"{number}"`'
        case ast.DateLiteral(text=text) if wanted is Scalar.DATETIME:
            return f'write `datetime("{text}")` for its first moment'
        case ast.DateTimeLiteral() if wanted is Scalar.DATE:
            return 'compare with a day: `date("YYYY-MM-DD")`'
        case _:
            pass
    return None


def check_enum(value: typed.Expr, other: PropertyType, at: ast.Expr, ctx: Context) -> bool:
    """Whether a constant that is compared with an enum is one of its values."""
    allowed = other.enum_values
    if allowed is None or not isinstance(value, typed.Const) or value.value in allowed:
        return True
    unknown_enum_value(str(value.value), allowed, at.span, ctx)
    return False


def unknown_enum_value(text: str, allowed: tuple[str, ...], span: Span, ctx: Context) -> None:
    """Report a constant that the enum does not have."""
    ctx.report(
        QueryCode.ENUM_VALUE,
        span,
        f'"{text}" is not a value of the enum',
        expected=", ".join(allowed),
        hint=did_you_mean(text, allowed),
    )


# ---------------------------------------------------------------- contains, starts_with


def _is_text(value: typed.Expr) -> bool:
    of = value.type
    return not isinstance(of, typed.ObjectType) and of.scalar is Scalar.STRING and not of.is_list


def _contains(
    expr: ast.CompareExpr, left: typed.Expr, right: typed.Expr, ctx: Context
) -> typed.Expr | None:
    if _is_text(left) and _is_text(right):
        return typed.TextTest(kind="contains", text=left, part=right)
    values = left.type
    if isinstance(values, typed.ObjectType) or not values.is_list:
        return ctx.report(
            QueryCode.CONTAINS_TYPE,
            expr.span,
            f"{ctx.quote(expr.left.span)} cannot contain {ctx.quote(expr.right.span)}",
            expected="a list and an element, or two strings",
        )
    return element_test(values, left, right, expr.right, ctx)


def element_test(
    values: PropertyType, left: typed.Expr, right: typed.Expr, at: ast.Expr, ctx: Context
) -> typed.Expr | None:
    """``list contains element``; also what an inline match on a list means."""
    item = right.type
    if (
        isinstance(item, typed.ObjectType)
        or item.is_list
        or not compatible(values.scalar, item.scalar)
    ):
        what = "a node" if isinstance(item, typed.ObjectType) else _kind(item)
        return ctx.report(
            QueryCode.CONTAINS_TYPE,
            at.span,
            f"a list of {values.scalar} cannot contain {what}",
            expected=f"one {values.scalar}",
            hint=conversion_hint(at, values.scalar),
        )
    return typed.Contains(values=left, item=fitted(right, values))


def _starts_with(
    expr: ast.CompareExpr, left: typed.Expr, right: typed.Expr, ctx: Context
) -> typed.Expr | None:
    ok = True
    for value, at in ((left, expr.left), (right, expr.right)):
        if not _is_text(value):
            of = value.type
            what = "a node" if isinstance(of, typed.ObjectType) else _kind(of)
            message = f"{ctx.quote(at.span)} is {what}, not a single String"
            ctx.report(QueryCode.STARTS_WITH_TYPE, at.span, message)
            ok = False
    return typed.TextTest(kind="starts_with", text=left, part=right) if ok else None


# ---------------------------------------------------------------- in


def in_list(expr: ast.In, place: Place) -> typed.Expr | None:
    """``x in [1, 2]``, ``x not in $list``, ``x in $v.tags``."""
    expr = replace(expr, operand=place.left_of(expr.operand))
    if isinstance(expr.operand, ast.NullLiteral):
        place.value(expr.operand)
        return None
    if isinstance(expr.values, ast.ListLiteral):
        found = _in_literal(expr, expr.values, place)
    else:
        found = _in_values(expr, place)
    return typed.Not(operand=found) if found is not None and expr.negated else found


def _in_values(expr: ast.In, place: Place) -> typed.Expr | None:
    ctx = place.ctx
    item, values = place.value(expr.operand), place.value(expr.values)
    if item is None or values is None:
        return None
    of = values.type
    if isinstance(of, typed.ObjectType) or not of.is_list:
        message = f"{ctx.quote(expr.values.span)} is not a list"
        return ctx.report(
            QueryCode.IN_VALUES, expr.values.span, message, expected="a list: `[1, 2]`"
        )
    one = single_type(item, expr.operand, ctx)
    if one is None:
        return None
    if not compatible(one.scalar, of.scalar):
        hint = conversion_hint(expr.operand, of.scalar)
        return incomparable(expr.span, expr.operand.span, one, of, ctx, hint=hint)
    return typed.InList(item=fitted(item, of), values=fitted(values, one))


def _in_literal(expr: ast.In, listed: ast.ListLiteral, place: Place) -> typed.Expr | None:
    item = place.value(expr.operand)
    one = None if item is None else single_type(item, expr.operand, place.ctx)
    constants: list[typed.Const | None] = []
    others: list[typed.Expr] = []
    ok = True
    for written in listed.items:
        if isinstance(written, ast.NullLiteral):
            constants.append(None)
            continue
        if isinstance(written, ast.ListLiteral):
            place.ctx.report(QueryCode.LIST_ITEMS, written.span, "a list does not hold lists")
            ok = False
            continue
        value = place.value(written)
        if value is None or one is None or not _goes_in(expr, one, value, written, place.ctx):
            ok = False
        elif isinstance(value, typed.Const):
            constants.append(value)
        else:
            others.append(value)
            ok = _may_be_repeated(item, expr, written, place.ctx) and ok
    if not ok or item is None or one is None:
        return None
    tests: list[typed.Expr] = []
    if constants or not others:
        found = in_one_type(constants, one.scalar)
        if found is None:
            message = "no type holds all of these numbers exactly"
            return place.ctx.report(QueryCode.LIST_ITEMS, listed.span, message)
        scalar, values = found
        tests.append(typed.InList(item=item, values=typed.Const(value=values, type=LISTS[scalar])))
    for value in others:
        # The same as an equality, also where something is null.
        test = typed.Compare(op="=", left=fitted(item, of_value(value)), right=fitted(value, one))
        tests.append(test)
    return tests[0] if len(tests) == 1 else typed.Or(operands=tuple(tests))


def _may_be_repeated(
    item: typed.Expr | None, expr: ast.In, written: ast.Expr, ctx: Context
) -> bool:
    """Each value that is no constant is an equality of its own, so the item stands there again."""
    if item is None or isinstance(item, typed.Prop | typed.Const | typed.Param | typed.Now):
        return True
    ctx.report(
        QueryCode.NOT_CONSTANT,
        written.span,
        f"{ctx.quote(expr.operand.span)} can be looked up among constants only",
        expected="a literal",
        hint="compare with `=` and `or`",
    )
    return False


def of_value(value: typed.Expr) -> PropertyType:
    """The type of a value that is known not to be a node."""
    of = value.type
    return ID_TYPE if isinstance(of, typed.ObjectType) else of


def _goes_in(
    expr: ast.In, one: PropertyType, value: typed.Expr, written: ast.Expr, ctx: Context
) -> bool:
    other = single_type(value, written, ctx)
    if other is None:
        return False
    if not compatible(one.scalar, other.scalar):
        hint = conversion_hint(written, one.scalar)
        incomparable(written.span, expr.operand.span, one, other, ctx, hint=hint)
        return False
    return check_enum(value, one, written, ctx)
