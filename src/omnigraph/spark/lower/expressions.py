"""Typed expressions as Spark columns.

    typed expression, slots, values -> [expressions] -> Column

Spark's logic is three-valued as ours: null is unknown, and a filter keeps what is true. Constants
are fitted into the type of what they are compared with, as the local engine does it, so that one
place decides what ``x < 2.5`` means for an integer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.exec import lists, numbers
from omnigraph.query.exec.evaluate import Values, is_constant, number_of
from omnigraph.query.exec.outputs import ID as OBJECT_ID
from omnigraph.query.exec.outputs import visible
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, PropertyType, Scalar
from omnigraph.spark.lower.compare import compare
from omnigraph.spark.lower.frame import Slots
from omnigraph.spark.lower.literals import literal, number_literal, truth


class LoweredExpressions:
    """Expressions over the rows of a frame."""

    def __init__(
        self,
        slots: Slots,
        values: Values,
        catalog: Catalog,
        answers: Mapping[typed.Expr, str] | None = None,
    ) -> None:
        self._slots = slots
        self._values = values
        self._catalog = catalog
        self._answers = answers or {}
        """Columns of blocks, text tests and scores."""

    def condition(self, conditions: Sequence[typed.Expr]) -> Column:
        """All conditions together."""
        return _folded(operator.and_, [self.column(c) for c in conditions], empty=True)

    def output(self, expr: typed.Expr) -> Column:
        """A result column: a whole node is an object."""
        return self.entity(expr) if isinstance(expr, typed.Entity) else self.column(expr)

    def entity(self, expr: typed.Entity) -> Column:
        """A whole node; null where the variable is."""
        slots, node = self._slots, self._catalog.nodes[expr.type.type_name]
        fields = [slots.column(expr.variable).alias(OBJECT_ID)]
        fields += [slots.column(expr.variable, p.name).alias(p.name) for p in visible(node)]
        return F.when(slots.column(expr.variable).isNotNull(), F.struct(*fields))

    def column(self, expr: typed.Expr) -> Column:
        """The value of an expression; of a whole node, that it is there."""
        if is_constant(expr):
            return literal(self._values.of(expr), _scalar_type(expr))
        match expr:
            case typed.Prop(variable=variable, column=column):
                return self._slots.column(variable, column)
            case typed.Entity(variable=variable):
                return F.when(self._slots.column(variable).isNotNull(), F.lit(True))
            case typed.Exists() | typed.CountOf() | typed.TextMatch():
                return F.col(self._answers[expr])
            case typed.Bm25() | typed.Nearest() | typed.Rrf():
                return F.col(self._answers[expr])
            case _:
                return self._test(expr)

    def _test(self, expr: typed.Expr) -> Column:
        match expr:
            case typed.Compare():
                return self._comparison(expr)
            case typed.Contains(values=values, item=item):
                return F.coalesce(self._membership(item, values), F.lit(False))
            case typed.InList(item=item, values=values):
                return self._membership(item, values)
            case typed.TextTest():
                return self._text_test(expr)
            case typed.IsNull(operand=operand):
                return self._is_null(operand)
            case typed.Not(operand=operand):
                return ~self.column(operand)
            case typed.And(operands=operands):
                return _folded(operator.and_, [self.column(o) for o in operands], empty=True)
            case typed.Or(operands=operands):
                return _folded(operator.or_, [self.column(o) for o in operands], empty=False)
            case _:
                raise InternalError(f"this has no value in a row: {expr}")

    def _is_null(self, operand: typed.Expr) -> Column:
        if is_constant(operand):
            return truth(self._values.of(operand) is None)
        return self.column(operand).isNull()

    def _comparison(self, expr: typed.Compare) -> Column:
        op, left, right = expr.op, expr.left, expr.right
        if is_constant(left):
            if is_constant(right):
                return truth(_constants(op, self._values.of(left), self._values.of(right)))
            op, left, right = numbers.MIRRORED[op], right, left
        one = _scalar_type(left).scalar
        if is_constant(right):
            return with_constant(op, self.column(left), one, self._values.of(right))
        return compare(op, self.column(left), one, self.column(right), _scalar_type(right).scalar)

    def _membership(self, item: typed.Expr, values: typed.Expr) -> Column:
        if not is_constant(values):
            return self._in_column(item, self.column(values), _scalar_type(values).scalar)
        listed = self._values.of(values)
        if listed is None:
            return truth(None)
        known, has_null = lists.distinct(listed)
        if is_constant(item):
            return truth(_in_tuple(self._values.of(item), known, has_null=has_null))
        found = among(self.column(item), _scalar_type(item).scalar, known)
        return found | truth(None) if has_null else found

    def _in_column(self, item: typed.Expr, values: Column, kind: Scalar) -> Column:
        """Whether each list has the item: unknown when it is null, or the list is."""
        if is_constant(item):
            wanted = self._values.of(item)
            if wanted is None:
                return truth(None)
            return F.exists(values, lambda element: with_constant("=", element, kind, wanted))
        own, own_kind = self.column(item), _scalar_type(item).scalar
        found = F.exists(values, lambda element: compare("=", element, kind, own, own_kind))
        return F.when(own.isNotNull(), found)

    def _text_test(self, expr: typed.TextTest) -> Column:
        text, part = self.column(expr.text), self.column(expr.part)
        found = text.contains(part) if expr.kind == "contains" else text.startswith(part)
        # Never unknown: what is not there contains nothing.
        return F.coalesce(found, F.lit(False))


def with_constant(op: typed.CompareOp, column: Column, kind: Scalar, value: Any) -> Column:
    """``column op value``, in the column's own type."""
    if value is None:
        return truth(None)
    if kind is Scalar.STRING:
        return numbers.COMPARE[op](column, F.lit(value))
    moved = numbers.move(op, _dtype(kind), number_of(value))
    if isinstance(moved, bool):
        return _always(column, moved)
    return numbers.COMPARE[moved.op](column, number_literal(moved.value, kind))


def among(column: Column, kind: Scalar, known: Sequence[Any]) -> Column:
    """Whether a value is one of those known; unknown for null."""
    if kind is Scalar.STRING:
        found = [F.lit(v) for v in known]
    else:
        fitted = [numbers.fitted(_dtype(kind), number_of(v)) for v in known]
        found = [number_literal(v, kind) for v in fitted if v is not None]
    return column.isin(*found) if found else _always(column, False)


def _always(column: Column, answer: bool) -> Column:
    """The same answer wherever there is a value; unknown where there is none."""
    return F.when(column.isNotNull(), F.lit(answer))


def _constants(op: typed.CompareOp, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    return bool(numbers.COMPARE[op](left, right))


def _in_tuple(item: Any, known: Sequence[Any], *, has_null: bool) -> bool | None:
    if item is None:
        return None
    return True if item in known else None if has_null else False


def _scalar_type(expr: typed.Expr) -> PropertyType:
    if isinstance(expr.type, PropertyType):
        return expr.type
    raise InternalError(f"not a single value: {expr}")


def _dtype(kind: Scalar) -> np.dtype[Any]:
    return numbers.dtype_of(arrow_type(PropertyType(scalar=kind)))


def _folded(
    join: Callable[[Column, Column], Column], parts: list[Column], *, empty: bool
) -> Column:
    return reduce(join, parts) if parts else truth(empty)
