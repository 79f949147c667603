"""Names in the ``where`` of a mutation: the bare properties of its target, and nothing else.

mutations -> [target place] -> expressions
"""

from __future__ import annotations

from omnigraph.query import ast, typed
from omnigraph.query.check.context import Context
from omnigraph.query.check.expressions import Place
from omnigraph.query.check.given import declared
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import GraphType, Scalar


class TargetPlace(Place):
    """A condition on one entity of the target type."""

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

    def bare_name(self, expr: ast.NameRef) -> typed.Prop | None:
        found = self.ctx.column(self._target, expr.name, expr.span)
        if found is None:
            return None
        column, of = found
        if of.scalar is Scalar.BLOB:
            message = f"{self._target.name}.{expr.name} is a Blob and cannot be compared"
            self.ctx.report(QueryCode.BLOB_READ, expr.span, message)
            return None
        return typed.Prop(variable="", column=column, type=of)

    def block(self, expr: ast.Exists | ast.CountOf) -> None:
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
