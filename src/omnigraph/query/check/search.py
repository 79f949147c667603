"""Text tests (``search``, ``match_text``, ``fuzzy``), rankings (``bm25``, ``nearest``, ``rrf``).

    expressions, outputs -> [search] -> typed text tests and scores

Where a ranking may stand is decided by ``outputs``; here it is only read.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from omnigraph.query import ast, typed
from omnigraph.query.check.constants import (
    SINGLE,
    exactly,
    list_literal,
    single,
)
from omnigraph.query.check.context import Bound, Context
from omnigraph.query.check.expressions import TEXT_TESTS, arguments
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import NodeType, PropertyType, Scalar
from omnigraph.schema.property_values import nearest_f32

if TYPE_CHECKING:
    from omnigraph.query.check.places import MatchPlace

EDITS_DEFAULT = 2
RRF_K_DEFAULT = 60


def report_misplaced(expr: ast.Call, ctx: Context) -> None:
    """A ranking in the middle of something."""
    ctx.report(
        QueryCode.SCORE_MISPLACED,
        expr.span,
        f"`{expr.function.text}(…)` ranks rows and is no value here",
        hint=f"write it first in `order {{ {expr.function.text}(…) }}`",
    )


def text_test(expr: ast.Call, place: MatchPlace) -> typed.TextMatch | None:
    """``search(f, q)``, ``match_text(f, q)`` or ``fuzzy(f, q, edits)``."""
    kind = TEXT_TESTS[expr.function.text]
    if not arguments(expr, 2, 3 if kind == "fuzzy" else 2, place.ctx):
        return None
    field = _text_field(expr.args[0], place)
    query = _text_query(expr.args[1], place)
    edits = None
    if kind == "fuzzy":
        edits = (
            _count(expr.args[2], 0, QueryCode.FUZZY_EDITS, place)
            if len(expr.args) == 3
            else typed.Const(value=EDITS_DEFAULT, type=SINGLE[Scalar.I64])
        )
    if field is None or query is None or (kind == "fuzzy" and edits is None):
        return None
    return typed.TextMatch(
        kind=kind, variable=field.variable, column=field.column, query=query, edits=edits
    )


def score(expr: ast.Call, place: MatchPlace) -> typed.Score | None:
    """``bm25(f, q)``, ``nearest(v, q)`` or ``rrf(a, b, k)``."""
    name = expr.function.text
    if name == "rrf":
        return _rrf(expr, place)
    if not arguments(expr, 2, 2, place.ctx):
        return None
    return _bm25(expr, place) if name == "bm25" else _nearest(expr, place)


def _bm25(expr: ast.Call, place: MatchPlace) -> typed.Bm25 | None:
    field = _text_field(expr.args[0], place)
    query = _text_query(expr.args[1], place)
    if field is None or query is None or not _always_bound(expr, place):
        return None
    return typed.Bm25(variable=field.variable, column=field.column, query=query)


def _nearest(expr: ast.Call, place: MatchPlace) -> typed.Nearest | None:
    field = _field(
        expr.args[0], place, QueryCode.NEAREST_FIELD, "a Vector property of a node: `$v.p`"
    )
    if field is not None and field.type.vector_size is None:
        message = f"{place.ctx.quote(expr.args[0].span)} is {field.type}, not a Vector"
        place.ctx.report(QueryCode.NEAREST_FIELD, expr.args[0].span, message)
        field = None
    size = None if field is None else field.type.vector_size
    query = _vector_query(expr.args[1], size, place)
    if field is None or query is None or size is None or not _always_bound(expr, place):
        return None
    return typed.Nearest(variable=field.variable, column=field.column, query=query, size=size)


def _rrf(expr: ast.Call, place: MatchPlace) -> typed.Rrf | None:
    ctx = place.ctx
    if not arguments(expr, 2, 3, ctx):
        return None
    k = typed.Const(value=RRF_K_DEFAULT, type=SINGLE[Scalar.I64])
    given = _count(expr.args[2], 1, QueryCode.RRF_CONSTANT, place) if len(expr.args) == 3 else k
    one, other = (_arm(arm, place) for arm in expr.args[:2])
    if one is None or other is None or given is None:
        return None
    if one.variable != other.variable:
        message = "the two rankings of `rrf` rank different variables"
        return ctx.report(
            QueryCode.RRF_ARMS, expr.span, message, expected="both to rank the same variable"
        )
    return typed.Rrf(arms=(one, other), k=given)


def _arm(expr: ast.Expr, place: MatchPlace) -> typed.Bm25 | typed.Nearest | None:
    if isinstance(expr, ast.Call) and expr.function.text in ("bm25", "nearest"):
        found = score(expr, place)
        return None if isinstance(found, typed.Rrf) else found
    return place.ctx.report(
        QueryCode.RRF_ARMS,
        expr.span,
        f"{place.ctx.quote(expr.span)} is no ranking",
        expected="`bm25(…)` or `nearest(…)`",
    )


# ---------------------------------------------------------------- arguments


def _field(expr: ast.Expr, place: MatchPlace, code: QueryCode, expected: str) -> typed.Prop | None:
    """The first argument: a property of a node variable."""
    if not isinstance(expr, ast.PropertyRef):
        message = f"{place.ctx.quote(expr.span)} cannot be searched"
        return place.ctx.report(code, expr.span, message, expected=expected)
    found = place.property(expr)
    bound = _owner(expr, place)
    if found is not None and bound is not None and bound.kind == "edge":
        message = f"`${expr.variable.text}` is an edge; only nodes are searched"
        return place.ctx.report(code, expr.span, message, expected=expected)
    return found


def _owner(expr: ast.PropertyRef, place: MatchPlace) -> Bound | None:
    return place.scope.find(expr.variable.text)


def _text_field(expr: ast.Expr, place: MatchPlace) -> typed.Prop | None:
    field = _field(expr, place, QueryCode.TEXT_FIELD, "a String property of a node: `$v.p`")
    if field is None or not isinstance(expr, ast.PropertyRef):
        return None
    of, ctx = field.type, place.ctx
    if of.scalar is not Scalar.STRING or of.is_list or of.is_enum:
        message = f"{ctx.quote(expr.span)} is {of}; text is searched in a String"
        return ctx.report(QueryCode.TEXT_FIELD, expr.span, message)
    bound = _owner(expr, place)
    owner = None if bound is None else bound.type
    if isinstance(owner, NodeType) and (field.column,) not in owner.indexes:
        return ctx.report(
            QueryCode.NOT_INDEXED,
            expr.span,
            f"{owner.name}.{field.column} has no index to search in",
            hint=f"declare it in the schema: `{field.column}: String @index`",
        )
    return field


def _always_bound(expr: ast.Call, place: MatchPlace) -> bool:
    field = expr.args[0]
    bound = _owner(field, place) if isinstance(field, ast.PropertyRef) else None
    if bound is None or not bound.optional:
        return True
    place.ctx.report(
        QueryCode.SCORE_OPTIONAL,
        field.span,
        f"{place.ctx.quote(field.span)} belongs to an optional variable, which a row may lack",
    )
    return False


def _text_query(expr: ast.Expr, place: MatchPlace) -> typed.Const | typed.Param | None:
    found = _constant(expr, place, QueryCode.TEXT_QUERY, 'a text: `"…"` or a String parameter')
    if found is None or _is_text(found.type):
        return found
    message = f"{place.ctx.quote(expr.span)} is {found.type}, not a String"
    return place.ctx.report(QueryCode.TEXT_QUERY, expr.span, message)


def _vector_query(
    expr: ast.Expr, size: int | None, place: MatchPlace
) -> typed.Const | typed.Param | None:
    ctx = place.ctx
    expected = "a vector, or a String that is embedded"
    if isinstance(expr, ast.ListLiteral):
        return vector_literal(expr, size, ctx, QueryCode.NEAREST_QUERY)
    found = _constant(expr, place, QueryCode.NEAREST_QUERY, expected)
    if found is None or _is_text(found.type):
        return found
    if found.type.vector_size is None:
        message = f"{ctx.quote(expr.span)} is {found.type}, not a vector"
        return ctx.report(QueryCode.NEAREST_QUERY, expr.span, message, expected=expected)
    if size is not None and found.type.vector_size != size:
        return report_length(found.type.vector_size, size, expr, ctx)
    return found


def _is_text(of: PropertyType) -> bool:
    return of.scalar is Scalar.STRING and not of.is_list


def vector_literal(
    expr: ast.ListLiteral, size: int | None, ctx: Context, code: QueryCode
) -> typed.Const | None:
    """A list of numbers as a vector of 32-bit floats; any length when ``size`` is None."""
    found = list_literal(expr, ctx)
    if found is None:
        return None
    if expr.items and not found.type.scalar.is_numeric:
        message = f"{ctx.quote(expr.span)} is a list of {found.type.scalar}, not of numbers"
        return ctx.report(code, expr.span, message)
    if size is not None and len(expr.items) != size:
        return report_length(len(expr.items), size, expr, ctx)
    rounded = tuple(nearest_f32(float(x)) for x in found.value)
    if not all(map(math.isfinite, rounded)):
        message = f"{ctx.quote(expr.span)} holds a number that is out of range"
        return ctx.report(code, expr.span, message, expected="32-bit floats")
    of = PropertyType(scalar=Scalar.VECTOR, vector_size=max(1, len(rounded)))
    return typed.Const(value=rounded, type=of)


def report_length(given: int, size: int, expr: ast.Expr, ctx: Context) -> None:
    """A vector of another length than the property has."""
    message = f"a vector of {given} elements does not fit a Vector({size})"
    ctx.report(QueryCode.VECTOR_LENGTH, expr.span, message, expected=f"{size} elements")


def _constant(
    expr: ast.Expr, place: MatchPlace, code: QueryCode, expected: str
) -> typed.Const | typed.Param | None:
    if isinstance(expr, ast.NullLiteral | ast.Variable | ast.SingleLiteral):
        found = place.value(expr)
        if found is None or isinstance(found, typed.Const | typed.Param):
            return found
    message = f"{place.ctx.quote(expr.span)} is no constant and no parameter"
    return place.ctx.report(code, expr.span, message, expected=expected)


def _count(
    expr: ast.Expr, low: int, code: QueryCode, place: MatchPlace
) -> typed.Const | typed.Param | None:
    """A small integer: a literal, or an integer parameter."""
    ctx = place.ctx
    if isinstance(expr, ast.IntLiteral):
        found = single(expr, ctx)
        if found is None:
            return None
        if expr.value >= low and exactly(expr.value, Scalar.I64) is not None:
            return found
    elif isinstance(expr, ast.Variable) and expr.name in ctx.params:
        of = ctx.param(expr.name)
        if of is None:
            return None
        if of.scalar.is_integer and not of.is_list and not of.nullable:
            return typed.Param(name=expr.name, type=of)
    return ctx.report(
        code,
        expr.span,
        f"{ctx.quote(expr.span)} is not possible here",
        expected=f"an integer from {low} on, or a parameter such as `$n: I64`",
    )
