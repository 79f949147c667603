"""Expressions: one walk over what was written, with the names left to the place it stands in.

    AST -> [expressions] <-> comparisons, place -> typed expressions

A *place* knows which names mean something: a match has variables and blocks, the ``where`` of a
mutation has the target's properties. Everything else is the same wherever an expression stands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check import comparisons
from omnigraph.query.check.constants import list_literal, single
from omnigraph.query.check.context import Context
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import Scalar

AGGREGATES: dict[str, typed.AggregateFunction] = {
    "count": "count",
    "sum": "sum",
    "avg": "avg",
    "min": "min",
    "max": "max",
}
SCORES = ("bm25", "nearest", "rrf")
TEXT_TESTS: dict[str, typed.TextMatchKind] = {
    "search": "search",
    "match_text": "phrase",
    "fuzzy": "fuzzy",
}
FUNCTIONS = ("now", *AGGREGATES, *SCORES, *TEXT_TESTS)


class Place(ABC):
    """Where an expression stands: what names mean there."""

    example = '$v.name = "x"'
    """A condition as it is written there."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx

    @abstractmethod
    def variable(self, expr: ast.Variable) -> typed.Expr | None:
        """``$v`` that is no parameter, as a value."""

    @abstractmethod
    def presence(self, expr: ast.Variable) -> typed.Expr | None:
        """``$v`` that is no parameter, where only its being there counts."""

    @abstractmethod
    def property(self, expr: ast.PropertyRef) -> typed.Expr | None:
        """``$v.p``."""

    def left_of(self, expr: ast.Expr) -> ast.Expr:
        """What stands to the left of an operator, where a literal would say nothing."""
        return expr

    @abstractmethod
    def bare_name(self, expr: ast.NameRef) -> typed.Expr | None:
        """A word on its own."""

    @abstractmethod
    def block(self, expr: ast.ExistsExpr | ast.CountExpr) -> typed.Expr | None:
        """``exists { … }`` and ``count { … }``."""

    @abstractmethod
    def text_test(self, expr: ast.Call) -> typed.Expr | None:
        """``search(…)``, ``match_text(…)``, ``fuzzy(…)``."""

    @abstractmethod
    def misplaced(self, expr: ast.Call) -> None:
        """Report an aggregate or a ranking in the middle of an expression."""

    # -------------------------------------------------------- the walk

    def value(self, expr: ast.Expr) -> typed.Expr | None:
        """Any expression; None when something about it was reported."""
        if isinstance(expr, ast.SingleLiteral):
            return single(expr, self.ctx)
        match expr:
            case ast.PropertyRef():
                return self.property(expr)
            case ast.Variable():
                return self._variable(expr)
            case ast.CompareExpr():
                return comparisons.compare(expr, self)
            case ast.Call():
                return self._call(expr)
            case ast.NameRef():
                return self.bare_name(expr)
            case ast.ListLiteral():
                return list_literal(expr, self.ctx)
            case ast.NullLiteral():
                return self._null(expr)
            case ast.ExistsExpr() | ast.CountExpr():
                return self.block(expr)
            case _:
                return self._test(expr)

    def _test(
        self, expr: ast.In | ast.IsNullExpr | ast.NotExpr | ast.AndExpr | ast.OrExpr
    ) -> typed.Expr | None:
        match expr:
            case ast.In():
                return comparisons.in_list(expr, self)
            case ast.IsNullExpr():
                return self._is_null(expr)
            case ast.NotExpr():
                operand = self.condition(expr.operand)
                return None if operand is None else typed.Not(operand=operand)
            case ast.AndExpr() | ast.OrExpr():
                # Every operand is looked at, also after one that was refused.
                found = [self.condition(o) for o in expr.operands]
                known = tuple(o for o in found if o is not None)
                if len(known) != len(found):
                    return None
                return conjunction(known) if isinstance(expr, ast.AndExpr) else _disjunction(known)

    def condition(self, expr: ast.Expr) -> typed.Expr | None:
        """An expression that is true, false or unknown."""
        found = self.value(expr)
        if found is None:
            return None
        of = found.type
        if isinstance(of, typed.ObjectType) or of.scalar is not Scalar.BOOL or of.is_list:
            what = "a node" if isinstance(of, typed.ObjectType) else str(of)
            return self.ctx.report(
                QueryCode.CONDITION_TYPE,
                expr.span,
                f"{self.ctx.quote(expr.span)} is {what}, not true or false",
                expected=f"a test such as `{self.example}` or a Bool",
            )
        return found

    def _variable(self, expr: ast.Variable) -> typed.Expr | None:
        ctx = self.ctx
        if expr.name not in ctx.params:
            return self.variable(expr)
        found = ctx.param(expr.name)
        if found is None:
            return None
        if found.scalar is Scalar.BLOB:
            message = f"parameter `${expr.name}` is a Blob and can only be assigned"
            return ctx.report(QueryCode.BLOB_READ, expr.span, message)
        return typed.Param(name=expr.name, type=found)

    def _null(self, expr: ast.NullLiteral) -> None:
        self.ctx.report(
            QueryCode.NULL_VALUE,
            expr.span,
            "null is no value here",
            hint="a test for null is `… is null` or `… is not null`",
        )

    def _is_null(self, expr: ast.IsNullExpr) -> typed.Expr | None:
        operand = self.present(self.left_of(expr.operand))
        if operand is None:
            return None
        test = typed.IsNull(operand=operand)
        return typed.Not(operand=test) if expr.negated else test

    def present(self, expr: ast.Expr) -> typed.Expr | None:
        """An expression of which only matters whether it is null; a bare edge is one too."""
        if isinstance(expr, ast.Variable) and expr.name not in self.ctx.params:
            return self.presence(expr)
        return self.value(expr)

    def _call(self, expr: ast.Call) -> typed.Expr | None:
        name = expr.function.text
        if name in AGGREGATES or name in SCORES:
            return self.misplaced(expr)
        if name == "now":
            return typed.Now() if arguments(expr, 0, 0, self.ctx) else None
        if name in TEXT_TESTS:
            return self.text_test(expr)
        return self.ctx.report(
            QueryCode.UNKNOWN_FUNCTION,
            expr.function.span,
            f"unknown function `{name}`",
            hint=did_you_mean(name, FUNCTIONS) or f"there are {', '.join(FUNCTIONS)}",
        )


def arguments(expr: ast.Call, low: int, high: int, ctx: Context) -> bool:
    """Whether the number of arguments is right and no ``distinct`` strays in."""
    name = expr.function.text
    if expr.distinct and name not in ("count", "sum", "avg"):
        same = name in AGGREGATES
        hint = f"`{name}` gives the same without it" if same else None
        message = f"`distinct` has no meaning in `{name}`"
        ctx.report(QueryCode.FUNCTION_ARGUMENTS, expr.span, message, hint=hint)
        return False
    given = len(expr.args)
    if low <= given <= high:
        return True
    wanted = str(low) if low == high else f"{low} to {high}"
    ctx.report(
        QueryCode.FUNCTION_ARGUMENTS,
        expr.span,
        f"`{name}` takes {wanted} argument{'' if wanted == '1' else 's'}, not {given}",
    )
    return False


def conjunction(operands: tuple[typed.Expr, ...]) -> typed.Expr:
    """All of them, flat."""
    flat = conjuncts(operands)
    return flat[0] if len(flat) == 1 else typed.And(operands=flat)


def conjuncts(operands: tuple[typed.Expr, ...]) -> tuple[typed.Expr, ...]:
    """The conditions with every ``and`` at the top taken apart."""
    return tuple(
        part for o in operands for part in (o.operands if isinstance(o, typed.And) else (o,))
    )


def _disjunction(operands: tuple[typed.Expr, ...]) -> typed.Expr:
    flat = tuple(
        part for o in operands for part in (o.operands if isinstance(o, typed.Or) else (o,))
    )
    return typed.Or(operands=flat)
