"""Literals as values, and the one rule for changing their type: only when nothing is lost.

    AST literals -> [constants] -> expressions, comparisons, mutations

Numbers compare mathematically, so a constant may take the type of what it is compared with whenever
it is exactly the same number there; else it stays as it is. The exception is F32: a decimal number
is rounded to what a column of that type would have stored for it, or ``0.1`` would find no 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from omnigraph.lang.source import Span
from omnigraph.query import ast, typed
from omnigraph.query.check.context import Context
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import INTEGER_RANGES, PropertyType, Scalar
from omnigraph.schema.property_values import nearest_f32
from omnigraph.schema.temporal import day_of, instant_of, parse_day, parse_instant

SINGLE = {s: PropertyType(scalar=s) for s in Scalar if s is not Scalar.VECTOR}
"""The plain type of each scalar."""
LISTS = {s: PropertyType(scalar=s, is_list=True) for s in SINGLE}


def single(expr: ast.SingleLiteral, ctx: Context) -> typed.Const | None:
    """A literal in its own type: integers are I64, or U64 beyond it."""
    match expr:
        case ast.BoolLiteral(value=truth):
            return typed.Const(value=truth, type=SINGLE[Scalar.BOOL])
        case ast.IntLiteral():
            return _integer(expr, ctx)
        case ast.FloatLiteral(value=number):
            if math.isfinite(number):
                return typed.Const(value=number, type=SINGLE[Scalar.F64])
            return _out_of_range(expr.span, "a 64-bit float", ctx)
        case ast.StringLiteral(value=text):
            return typed.Const(value=text, type=SINGLE[Scalar.STRING])
        case ast.DateLiteral():
            return _date(expr, ctx)
        case ast.DateTimeLiteral():
            return _datetime(expr, ctx)


def _integer(expr: ast.IntLiteral, ctx: Context) -> typed.Const | None:
    for scalar in (Scalar.I64, Scalar.U64):
        low, high = INTEGER_RANGES[scalar]
        if low <= expr.value <= high:
            return typed.Const(value=expr.value, type=SINGLE[scalar])
    low, high = INTEGER_RANGES[Scalar.I64][0], INTEGER_RANGES[Scalar.U64][1]
    return _out_of_range(expr.span, f"an integer from {low} to {high}", ctx)


def _out_of_range(span: Span, expected: str, ctx: Context) -> None:
    message = f"{ctx.quote(span)} is out of range"
    ctx.report(QueryCode.NUMBER_RANGE, span, message, expected=expected)


def _date(expr: ast.DateLiteral, ctx: Context) -> typed.Const | None:
    days = parse_day(expr.text)
    if days is None:
        return ctx.report(
            QueryCode.DATE_TEXT,
            expr.span,
            f"{ctx.quote(expr.span)} is not a day of the calendar",
            expected='date("YYYY-MM-DD"), years 0001 to 9999',
            hint=None if parse_instant(expr.text) is None else 'an instant is datetime("…")',
        )
    return typed.Const(value=day_of(days), type=SINGLE[Scalar.DATE])


def _datetime(expr: ast.DateTimeLiteral, ctx: Context) -> typed.Const | None:
    ms = parse_instant(expr.text)
    if ms is None:
        return ctx.report(
            QueryCode.DATETIME_TEXT,
            expr.span,
            f"{ctx.quote(expr.span)} is not an instant",
            expected='datetime("YYYY-MM-DDTHH:MM:SS.mmmZ"), whole milliseconds',
        )
    return typed.Const(value=instant_of(ms), type=SINGLE[Scalar.DATETIME])


def fit(const: typed.Const, scalar: Scalar) -> typed.Const:
    """The constant in this scalar type when that is the same value, else unchanged."""
    own = const.type.scalar
    if own is scalar or const.type.is_list or not (own.is_numeric and scalar.is_numeric):
        return const
    if scalar is Scalar.F32 and own.is_float:
        single = nearest_f32(const.value)
        value = single if math.isfinite(single) else None
    else:
        value = exactly(const.value, scalar)
    return const if value is None else typed.Const(value=value, type=SINGLE[scalar])


def fitted(value: typed.Expr, other: PropertyType) -> typed.Expr:
    """A constant in the type of what it is compared with, a parameter rounded as that would be."""
    match value:
        case typed.Const():
            return fit(value, other.scalar)
        case typed.Param() if other.scalar is Scalar.F32 and value.type.scalar is Scalar.F64:
            return replace(value, type=replace(value.type, scalar=Scalar.F32))
        case _:
            return value


def exactly(value: float, scalar: Scalar) -> int | float | None:
    """The same number as a value of a numeric type, or None when there is none."""
    if scalar.is_integer:
        low, high = INTEGER_RANGES[scalar]
        whole = int(value)
        return whole if whole == value and low <= whole <= high else None
    try:
        number = float(value)
    except OverflowError:
        return None
    if number != value:
        return None
    return number if scalar is Scalar.F64 or nearest_f32(number) == number else None


def compatible(one: Scalar, other: Scalar) -> bool:
    """Whether single values of these types can be compared."""
    return one is other or (one.is_numeric and other.is_numeric)


def in_one_type(
    constants: Sequence[typed.Const | None], preferred: Scalar | None = None
) -> tuple[Scalar, tuple[Any, ...]] | None:
    """The values of compatible constants (None is null) in one type that holds all exactly."""
    known = [c for c in constants if c is not None]
    if not known:
        return preferred or Scalar.STRING, (None,) * len(constants)
    for scalar in _candidates(known, preferred):
        fitted = [fit(c, scalar) for c in known]
        if all(c.type.scalar is scalar for c in fitted):
            values = iter(fitted)
            return scalar, tuple(None if c is None else next(values).value for c in constants)
    return None


def _candidates(known: Sequence[typed.Const], preferred: Scalar | None) -> list[Scalar]:
    first = known[0].type.scalar
    if not first.is_numeric:
        return [first]
    wide = [Scalar.I64, Scalar.U64, Scalar.F64]
    # A list that begins with a decimal number is one of decimal numbers.
    own = [first, *wide] if first.is_integer else [Scalar.F64]
    return ([preferred] if preferred is not None else []) + own


def list_literal(
    expr: ast.ListLiteral, ctx: Context, preferred: Scalar | None = None
) -> typed.Const | None:
    """A list of constants; an empty one is a list of what is preferred, else of strings."""
    items = [list_item(item, ctx) for item in expr.items]
    known = [c for c in items if c is not None]
    if len(known) != len(items):
        return None
    clash = next((i for i, c in enumerate(known) if not _goes_with(known[0], c)), None)
    if clash is not None:
        return ctx.report(
            QueryCode.LIST_ITEMS,
            expr.items[clash].span,
            f"a list of {known[0].type} cannot hold {known[clash].type}",
        )
    found = in_one_type(known, preferred)
    if found is None:
        return ctx.report(
            QueryCode.LIST_ITEMS, expr.span, "no type holds all of these numbers exactly"
        )
    scalar, values = found
    return typed.Const(value=values, type=LISTS[scalar])


def _goes_with(one: typed.Const, other: typed.Const) -> bool:
    return compatible(one.type.scalar, other.type.scalar)


def list_item(item: ast.Expr, ctx: Context) -> typed.Const | None:
    """One constant of a list."""
    if isinstance(item, ast.SingleLiteral):
        return single(item, ctx)
    match item:
        case ast.NullLiteral():
            message = "null is not an element of a list"
            ctx.report(QueryCode.LIST_ITEMS, item.span, message)
        case ast.ListLiteral():
            ctx.report(QueryCode.LIST_ITEMS, item.span, "a list does not hold lists")
        case _:
            message = f"{ctx.quote(item.span)} is not a constant"
            ctx.report(QueryCode.NOT_CONSTANT, item.span, message, expected="a literal")
    return None
