"""How many rows a row stands for: counts are added and multiplied, and never wrong.

Paths are counted, not walked, and a small graph has more paths than 64 bits can count. Spark is set
to fail on such a number or to go on with a wrong one; here it always fails, in words that the
driver recognises.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

OVERFLOW = "OMNIGRAPH_COUNT_OVERFLOW"


def times(weight: Column, count: Column) -> Column:
    """Row by row."""
    return _known(F.try_multiply(weight, count), weight.isNotNull() & count.isNotNull())


def total(weight: Column) -> Column:
    """Of all rows of a group that have a weight; zero if none has."""
    some = F.count(weight) > F.lit(0)
    return F.when(some, _known(F.try_sum(weight), some)).otherwise(F.lit(0).cast("bigint"))


def _known(value: Column, expected: Column) -> Column:
    lost = value.isNull() & expected
    return F.when(lost, F.raise_error(F.lit(OVERFLOW)).cast("bigint")).otherwise(value)
