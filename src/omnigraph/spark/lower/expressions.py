"""Typed expressions as Spark columns.

    typed expression, slots, values -> [expressions] -> Column

Spark's logic is three-valued as ours: null is unknown, and a filter keeps what is true. Constants
are fitted into the type of what they are compared with, as the local engine does it, so that one
place decides what ``x < 2.5`` means for an integer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.exec import lists, numbers
from omnigraph.query.exec.evaluate import Values, is_constant, number_of
from omnigraph.query.exec.numbers import COMPARE, MIRRORED
from omnigraph.query.exec.outputs import ID as OBJECT_ID
from omnigraph.query.exec.outputs import visible
from omnigraph.query.typed import CompareOp
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, PropertyType, Scalar
from omnigraph.spark.arrow import spark_type
from omnigraph.spark.lower.frame import Slots


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


# -- compare ---------------------------------------------------------------------------------------
# Comparison of two columns by what their values mean, whatever Spark types hold them.
#
#     expressions -> [compare] -> Spark columns
#
# Spark would bring a 64-bit integer and a float to a common type and lose digits on the way. Here
# no operand is rounded: the float is split into its floor, which an integer can hold, and the
# question whether anything is left.


_WIDE = (Scalar.I64, Scalar.U64)
"""Integers that a 64-bit float does not hold."""
_HALF = 2.0**63


def compare(op: CompareOp, left: Column, one: Scalar, right: Column, other: Scalar) -> Column:
    """``left op right`` for columns of these types; unknown where a side is null."""
    if one is other or not one.is_numeric:
        return COMPARE[op](left, right)
    if one in _WIDE and other.is_float:
        return COMPARE[op](_order(left, one, right.cast("double")), F.lit(0))
    if one.is_float and other in _WIDE:
        return COMPARE[MIRRORED[op]](_order(right, other, left.cast("double")), F.lit(0))
    common = _common(one, other)
    return COMPARE[op](left.cast(common), right.cast(common))


def _common(one: Scalar, other: Scalar) -> str:
    """A Spark type that holds every value of both; one of them is narrow, or both are integers."""
    if one.is_float or other.is_float:
        return "double"
    return "decimal(20,0)" if Scalar.U64 in (one, other) else "bigint"


def _order(whole: Column, kind: Scalar, double: Column) -> Column:
    """-1, 0 or 1 as 64-bit integers stand to doubles; null where one is."""
    low, high = (-_HALF, _HALF) if kind is Scalar.I64 else (0.0, 2 * _HALF)
    inside = (double >= F.lit(low)) & (double < F.lit(high))
    # Nothing outside the range is ever cast: that is an error or a wrong number, as Spark is set.
    near = F.when(inside, double).otherwise(F.lit(0.0))
    floor = _floor(near, kind)
    order = (
        F.when(whole > floor, F.lit(1))
        .when(whole < floor, F.lit(-1))
        # A whole number that was made from a double is that double again.
        .when(near > floor.cast("double"), F.lit(-1))
        .otherwise(F.lit(0))
    )
    outside = F.when(double < F.lit(low), F.lit(1)).otherwise(F.lit(-1))
    known = whole.isNotNull() & double.isNotNull()
    return F.when(known, F.when(inside, order).otherwise(outside))


def _floor(near: Column, kind: Scalar) -> Column:
    """The whole number below, as an integer of the kind; exact for every double in its range."""
    if kind is Scalar.I64:
        return F.floor(near)
    # Half of the range is beyond Spark's integers; above it doubles are multiples of 2048.
    upper = near >= F.lit(_HALF)
    rest = F.floor(F.when(upper, near - F.lit(_HALF)).otherwise(near)).cast("decimal(20,0)")
    offset = F.when(upper, number_literal(2**63, Scalar.U64)).otherwise(
        number_literal(0, Scalar.U64)
    )
    return (rest + offset).cast("decimal(20,0)")


# -- literals --------------------------------------------------------------------------------------
# Values of the query language as Spark literals.
#
#     constants, parameters -> [literals] -> expressions
#
# Days and instants are made from the integers that they are stored as. Spark's own way from Python
# goes through the calendar and the time zone of the process, which old days do not survive.


def literal(value: Any, kind: PropertyType) -> Column:
    """A constant in a Spark column's type; ``kind`` is the type that the language gives it."""
    if value is None:
        return F.lit(None).cast(spark_type(arrow_type(kind)))
    if kind.is_list or kind.scalar is Scalar.VECTOR:
        scalar = Scalar.F32 if kind.scalar is Scalar.VECTOR else kind.scalar
        one = PropertyType(scalar=scalar, nullable=True)
        return F.array(*(literal(v, one) for v in value)).cast(spark_type(arrow_type(kind)))
    if kind.scalar in (Scalar.STRING, Scalar.BLOB):
        return F.lit(value)
    return number_literal(number_of(value), kind.scalar)


def number_literal(value: float, scalar: Scalar) -> Column:
    """A number, truth value, day or instant from the number that its column holds."""
    return _NUMBERS[scalar](value)


def truth(value: bool | None) -> Column:
    """True, false or unknown."""
    return F.lit(value).cast("boolean")


_NUMBERS: dict[Scalar, Callable[[Any], Column]] = {
    Scalar.BOOL: lambda value: F.lit(bool(value)),
    Scalar.I32: lambda value: F.lit(int(value)).cast("int"),
    Scalar.I64: lambda value: F.lit(int(value)).cast("bigint"),
    Scalar.U32: lambda value: F.lit(int(value)).cast("bigint"),
    Scalar.U64: lambda value: F.lit(Decimal(int(value))).cast("decimal(20,0)"),
    Scalar.F32: lambda value: F.lit(float(value)).cast("float"),
    Scalar.F64: lambda value: F.lit(float(value)).cast("double"),
    Scalar.DATE: lambda value: F.date_from_unix_date(F.lit(int(value)).cast("int")),
    Scalar.DATETIME: lambda value: F.timestamp_millis(F.lit(int(value)).cast("bigint")),
}
