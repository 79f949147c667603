"""Comparison of two columns by what their values mean, whatever Spark types hold them.

    expressions -> [compare] -> Spark columns

Spark would bring a 64-bit integer and a float to a common type and lose digits on the way. Here no
operand is rounded: the float is split into its floor, which an integer can hold, and the question
whether anything is left.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.query.exec.numbers import COMPARE, MIRRORED
from omnigraph.query.typed import CompareOp
from omnigraph.schema.catalog import Scalar
from omnigraph.spark.lower.literals import number_literal

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
