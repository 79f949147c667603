"""What names mean where they stand: in ``match``, ``return`` and ``order``, and in a mutation.

patterns, outputs -> [match place] -> expressions
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check import search
from omnigraph.query.check.constants import list_literal, single
from omnigraph.query.check.context import ID_TYPE, Bound, Context, Scope, as_nullable
from omnigraph.query.check.expressions import AGGREGATES, Place, arguments
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import GraphType, PropertyType, Scalar

BlockCheck = Callable[[ast.ExistsExpr | ast.CountExpr, Scope], typed.Pattern]


class MatchPlace(Place):
    """An expression over the variables of a scope."""

    def __init__(self, ctx: Context, scope: Scope, check_block: BlockCheck) -> None:
        super().__init__(ctx)
        self.scope = scope
        self._check_block = check_block

    def variable(self, expr: ast.Variable) -> typed.Expr | None:
        bound = self._bound(expr)
        if bound is None or bound.type is None:
            return None
        if bound.kind == "edge":
            return self.ctx.report(
                QueryCode.EDGE_VALUE,
                expr.span,
                f"`${expr.name}` is an edge and no value",
                hint=f"take a property: `${expr.name}.id`, `${expr.name}.from`, …",
            )
        of = typed.ObjectType(type_name=bound.type.name, nullable=bound.optional)
        return typed.Entity(variable=bound.name, type=of)

    def presence(self, expr: ast.Variable) -> typed.Expr | None:
        bound = self._bound(expr)
        if bound is None or bound.type is None:
            return None
        if bound.kind == "node":
            return self.variable(expr)
        of = as_nullable(ID_TYPE) if bound.optional else ID_TYPE
        return typed.Prop(variable=bound.name, column="id", type=of)

    def property(self, expr: ast.PropertyRef) -> typed.Prop | None:
        name = expr.variable.text
        if name in self.ctx.params:
            self.ctx.used.add(name)
            message = f"`${name}` is a parameter and has no properties"
            return self.ctx.report(QueryCode.PARAMETER_HAS_NO_PROPERTIES, expr.span, message)
        bound = self._bound(ast.Variable(name=name, span=expr.variable.span))
        if bound is None or bound.type is None:
            return None
        word = expr.property
        found = self.ctx.column(bound.type, word.text, word.span, nullable=bound.optional)
        if found is None:
            return None
        column, of = found
        if of.scalar is Scalar.BLOB:
            message = f"{bound.type.name}.{word.text} is a Blob and cannot be read in a query"
            return self.ctx.report(QueryCode.BLOB_READ, expr.span, message)
        return typed.Prop(variable=bound.name, column=column, type=of)

    def bare_name(self, expr: ast.NameRef) -> None:
        owner = self._owner_of(expr.name)
        self.ctx.report(
            QueryCode.BARE_NAME,
            expr.span,
            f"`{expr.name}` is no value",
            expected="a variable `$v`, a property `$v.name`, or a literal",
            hint=f"write `${owner}.{expr.name}`" if owner else f'a text is written "{expr.name}"',
        )

    def block(self, expr: ast.ExistsExpr | ast.CountExpr) -> typed.Expr:
        pattern = self._check_block(expr, self.scope)
        if isinstance(expr, ast.ExistsExpr):
            return typed.Exists(block=pattern)
        return typed.CountOf(block=pattern)

    def text_test(self, expr: ast.Call) -> typed.Expr | None:
        return search.text_test(expr, self)

    def misplaced(self, expr: ast.Call) -> None:
        name = expr.function.text
        if name in AGGREGATES:
            hint = "how many solutions a pattern has is asked by `count { … }`"
            message = f"`{name}(…)` cannot stand inside a match or another expression"
            self.ctx.report(QueryCode.AGGREGATE_MISPLACED, expr.span, message, hint=hint)
        else:
            search.report_misplaced(expr, self.ctx)

    def _bound(self, expr: ast.Variable) -> Bound | None:
        if expr.name == "_":
            message = "`$_` cannot be referred to; each one is another node"
            hint = "give the variable a name where it is bound"
            return self.ctx.report(QueryCode.ANONYMOUS_VALUE, expr.span, message, hint=hint)
        bound = self.scope.find(expr.name)
        if bound is None:
            known = {f"${n}" for n in (*self.scope.visible(), *self.ctx.params)}
            hint = did_you_mean(f"${expr.name}", known)
            if self.scope.comes_later(expr.name):
                hint = "an `optional` block further down brings it; move this behind the block"
            message = f"unknown variable `${expr.name}`"
            self.ctx.report(QueryCode.UNKNOWN_VARIABLE, expr.span, message, hint=hint)
        return bound

    def _owner_of(self, name: str) -> str | None:
        """A visible variable whose type has such a property."""
        for variable in sorted(self.scope.visible()):
            bound = self.scope.find(variable)
            if bound is not None and bound.type is not None and name in bound.type.by_name:
                return variable
        return None


# -- target place ----------------------------------------------------------------------------------
# Names in the ``where`` of a mutation: the bare properties of its target, and nothing else.
#
# mutations -> [target place] -> expressions


class TargetPlace(Place):
    """A condition on one entity of the target type."""

    example = 'name = "x"'

    def __init__(self, ctx: Context, target: GraphType) -> None:
        super().__init__(ctx)
        self._target = target

    def variable(self, expr: ast.Variable) -> None:
        declared(expr, self.ctx)

    def presence(self, expr: ast.Variable) -> None:
        self.variable(expr)

    def property(self, expr: ast.PropertyRef) -> None:
        name = expr.property.text
        hint = f"write `{name}` alone: it is a property of the {self._target.name}"
        self._refuse(expr, f"{self.ctx.quote(expr.span)} has no meaning in `where`", hint)

    def left_of(self, expr: ast.Expr) -> ast.Expr:
        """The property of this name, if there is one: no word is reserved."""
        word = literal_word(expr)
        if word is None or word not in self._target.by_name:
            return expr
        return ast.NameRef(name=word, span=expr.span)

    def bare_name(self, expr: ast.NameRef) -> typed.Prop | None:
        found = self.ctx.column(self._target, expr.name, expr.span)
        if found is None:
            return None
        column, of = found
        if of.scalar is Scalar.BLOB:
            message = f"{self._target.name}.{expr.name} is a Blob and cannot be compared"
            return self.ctx.report(QueryCode.BLOB_READ, expr.span, message)
        return typed.Prop(variable="", column=column, type=of)

    def block(self, expr: ast.ExistsExpr | ast.CountExpr) -> None:
        self._refuse(expr, "a block cannot stand in `where`")

    def text_test(self, expr: ast.Call) -> None:
        self.misplaced(expr)

    def misplaced(self, expr: ast.Call) -> None:
        self._refuse(expr, f"`{expr.function.text}(…)` cannot stand in `where`")

    def _refuse(self, expr: ast.Expr, message: str, hint: str | None = None) -> None:
        expected = "tests on properties of the entity that is changed"
        self.ctx.report(
            QueryCode.WHERE_EXPRESSION, expr.span, message, expected=expected, hint=hint
        )


def literal_word(expr: ast.Expr) -> str | None:
    """How a literal is spelled that could be a name as well."""
    match expr:
        case ast.NullLiteral():
            return "null"
        case ast.BoolLiteral():
            return "true" if expr.value else "false"
        case _:
            return None


# -- given -----------------------------------------------------------------------------------------
# Values that are known before a query looks at the graph: constants, parameters, ``now()``.
#
# inline matches, assignments -> [given] -> typed values


Given = typed.Const | typed.Param | typed.Now
_EXPECTED = "a literal, a parameter or `now()`"


def given_value(expr: ast.Expr, ctx: Context) -> Given | None:
    """The value of an inline match; null is none."""
    if isinstance(expr, ast.NullLiteral):
        return ctx.report(
            QueryCode.NULL_VALUE,
            expr.span,
            "nothing equals null",
            hint="test for it beside the binding: `$v.name is null`",
        )
    return assigned_value(expr, ctx)


def assigned_value(expr: ast.Expr, ctx: Context, element: Scalar | None = None) -> Given | None:
    """The value of an assignment, except ``null``; lists take the element type if they can."""
    if isinstance(expr, ast.SingleLiteral):
        return single(expr, ctx)
    match expr:
        case ast.Variable():
            of = declared(expr, ctx)
            return None if of is None else typed.Param(name=expr.name, type=of)
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
            return ctx.report(
                QueryCode.NOT_CONSTANT, expr.span, message, expected=_EXPECTED, hint=hint
            )


def declared(expr: ast.Variable, ctx: Context) -> PropertyType | None:
    """The type of a variable that must be a parameter."""
    if expr.name in ctx.params:
        return ctx.param(expr.name)
    return ctx.report(
        QueryCode.NOT_A_PARAMETER,
        expr.span,
        f"`${expr.name}` is not a parameter of this query",
        expected=_EXPECTED,
        hint=did_you_mean(f"${expr.name}", [f"${n}" for n in ctx.params]),
    )
