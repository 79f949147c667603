"""Total order of rows: user keys, then ids or columns, null before everything; then the page.

    frame or outputs -> [order] -> the same, sorted

Spark sorts text by its UTF-8 bytes, which is the order of code points, and lists element by element
with null first, as we do. The two zeros are one number, so zero is added to floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from omnigraph.errors import InternalError, LimitError, ParameterError
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.exec.order import downwards
from omnigraph.query.exec.outputs import ID as OBJECT_ID
from omnigraph.query.plan.nodes import Order
from omnigraph.spark.lower.blocks import with_answers
from omnigraph.spark.lower.frame import LoweredFrame
from omnigraph.spark.lower.lowering import LoweredScope, Lowering

ROWS_MAX = 2**31 - 1
"""Spark counts the rows of a page in 32 bits."""


def order_bindings(low: Lowering, step: Order, scope: LoweredScope) -> LoweredFrame:
    """Rows by expressions over them, ties by the ids of their variables."""
    frame = low.frame(step.input, scope)
    frame, answers = with_answers(low, frame, [key.value for key in step.keys])
    expressions = low.expressions(answers)
    columns: list[Column] = []
    order: list[Column] = []
    for key in step.keys:
        name = low.sources.fresh("key")
        columns.append(expressions.column(key.value).alias(name))
        order.append(_sorted(F.col(name), key.value.type, descending=downwards(key)))
    order += [low.slots.column(tie).asc_nulls_first() for tie in step.ties]
    df = frame.df.select("*", *columns)
    return replace(frame, df=page(df, order, step, low.values), order=tuple(order))


def order_outputs(
    df: DataFrame,
    names: Sequence[str],
    outputs: Sequence[typed.Output],
    step: Order,
    values: Values,
) -> DataFrame:
    """Result rows by their columns: those asked for, then all from left to right."""
    places = {
        output.name: (F.col(name), output.type) for name, output in zip(names, outputs, strict=True)
    }
    order: list[Column] = []
    for key in step.keys:
        if not isinstance(key.value, typed.OutputRef):
            raise InternalError(f"not an output column: {key.value}")
        column, kind = places[key.value.name]
        order.append(_sorted(column, kind, descending=key.descending))
    order += [_sorted(column, kind, descending=False) for column, kind in places.values()]
    return page(df, order, step, values)


def page(df: DataFrame, order: Sequence[Column], step: Order, values: Values) -> DataFrame:
    """The rows in order, without those before the offset and behind the limit."""
    limit, offset = row_count(step.limit, "limit", values), row_count(step.offset, "offset", values)
    if order:
        df = df.orderBy(*order)
    if offset:
        if offset > ROWS_MAX:
            raise LimitError(
                f"Spark skips at most {ROWS_MAX:,} rows, and the offset is {offset:,}",
                hint='run it with engine="local", or filter on the order key instead',
                details={"limit": "offset", "offset_max": ROWS_MAX},
            )
        df = df.offset(offset)
    # A greater limit is none: so many rows are no result that fits anywhere.
    return df if limit is None or limit > ROWS_MAX else df.limit(limit)


def row_count(expr: typed.Expr | None, what: str, values: Values) -> int | None:
    """The value of a limit or an offset."""
    if expr is None:
        return None
    count = values.of(expr)
    if count is None or count < 0:
        raise ParameterError(
            f"{what} is {'null' if count is None else count}",
            hint=f"a {what} counts rows: 0 or more",
        )
    return int(count)


def _sorted(column: Column, kind: typed.ValueType, *, descending: bool) -> Column:
    """A sort key; null is smallest, whatever the direction."""
    if isinstance(kind, typed.ObjectType):
        # Objects of one type are told apart by their ids.
        column = column.getField(OBJECT_ID)
    elif kind.scalar.is_float and not kind.is_list:
        column = column + F.lit(0.0)
    return column.desc_nulls_last() if descending else column.asc_nulls_first()
