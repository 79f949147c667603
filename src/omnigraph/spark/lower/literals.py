"""Values of the query language as Spark literals.

    constants, parameters -> [literals] -> expressions

Days and instants are made from the integers that they are stored as. Spark's own way from Python
goes through the calendar and the time zone of the process, which old days do not survive.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from omnigraph.query.exec.evaluate import number_of
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.spark.arrow import spark_type


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
