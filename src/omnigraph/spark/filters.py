"""Spark's filters as typed conditions, where both mean exactly the same.

    data source: filters -> [filters] -> condition of a scan, and what Spark must do itself

In SQL a filter on a null is unknown and keeps no row; the typed conditions agree, except that a
test of text on a null is false, which differs below a negation only. A filter that is not in this
list is left to Spark, which is always right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import datasource as spark

from omnigraph.query import typed
from omnigraph.query.typed import And, Compare, Const, Expr, InList, IsNull, Not, Or, Prop, TextTest
from omnigraph.schema.catalog import GraphType, PropertyType, Scalar
from omnigraph.schema.temporal import instant_ms

_COMPARISONS: dict[type[spark.Filter], typed.CompareOp] = {
    spark.EqualTo: "=",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}


class _NotSayable(Exception):
    """This filter stays with Spark."""


def to_conditions(
    filters: Iterable[spark.Filter], graph_type: GraphType
) -> tuple[list[Expr], list[spark.Filter]]:
    """The conditions that say the same, and the filters that have none."""
    conditions: list[Expr] = []
    rest: list[spark.Filter] = []
    for one in filters:
        try:
            conditions.append(_condition(one, graph_type))
        except _NotSayable:
            rest.append(one)
    return conditions, rest


def _condition(given: spark.Filter, graph_type: GraphType) -> Expr:
    match given:
        case spark.Not(child=child):
            return _negated(child, graph_type)
        case spark.IsNull(attribute=path):
            return IsNull(operand=_prop(path, graph_type))
        case spark.IsNotNull(attribute=path):
            return Not(operand=IsNull(operand=_prop(path, graph_type)))
        case spark.EqualNullSafe(attribute=path, value=None):
            return IsNull(operand=_prop(path, graph_type))
        case spark.EqualNullSafe(attribute=path, value=value):
            return _comparison("=", _prop(path, graph_type), value)
        case spark.In(attribute=path, value=listed):
            return _among(_prop(path, graph_type), listed)
        case spark.StringContains(attribute=path, value=part):
            return TextTest(kind="contains", text=_text(path, graph_type), part=_string(part))
        case spark.StringStartsWith(attribute=path, value=part):
            return TextTest(kind="starts_with", text=_text(path, graph_type), part=_string(part))
        case _:
            op = _COMPARISONS.get(type(given))
            if op is None:
                raise _NotSayable
            path, value = given.attribute, given.value  # pyright: ignore
            return _comparison(op, _prop(path, graph_type), value)


def _negated(child: spark.Filter, graph_type: GraphType) -> Expr:
    said = _condition(child, graph_type)
    match child:
        case spark.EqualNullSafe(attribute=path, value=value) if value is not None:
            return Or(operands=(IsNull(operand=_prop(path, graph_type)), Not(operand=said)))
        case spark.StringContains(attribute=path) | spark.StringStartsWith(attribute=path):
            there = Not(operand=IsNull(operand=_prop(path, graph_type)))
            return And(operands=(there, Not(operand=said)))
        case _:
            return Not(operand=said)


def _prop(path: tuple[str, ...], graph_type: GraphType) -> Prop:
    if len(path) != 1:
        raise _NotSayable
    name = path[0]
    if name in graph_type.by_name:
        kind = graph_type.by_name[name].type
    elif name in graph_type.system_columns:
        kind = typed.STRING
    else:
        raise _NotSayable
    return Prop(variable="", column=name, type=kind)


def _text(path: tuple[str, ...], graph_type: GraphType) -> Prop:
    prop = _prop(path, graph_type)
    if prop.type.scalar is not Scalar.STRING or prop.type.is_list:
        raise _NotSayable
    return prop


def _comparison(op: typed.CompareOp, prop: Prop, value: Any) -> Compare:
    if prop.type.is_list or (prop.type.scalar is Scalar.BOOL and op != "="):
        raise _NotSayable
    constant = Const(value=_value(value, prop.type), type=prop.type)
    return Compare(op=op, left=prop, right=constant)


def _among(prop: Prop, listed: Iterable[Any]) -> InList:
    if prop.type.is_list:
        raise _NotSayable
    values = tuple(None if v is None else _value(v, prop.type) for v in listed)
    kind = PropertyType(scalar=prop.type.scalar, is_list=True, nullable=True)
    return InList(item=prop, values=Const(value=values, type=kind))


def _string(value: Any) -> Const:
    if not isinstance(value, str):
        raise _NotSayable
    return Const(value=value, type=typed.STRING)


def _value(value: Any, kind: PropertyType) -> Any:
    """A constant of Spark's as one of ours, if it is exactly that."""
    scalar = kind.scalar
    if scalar.is_integer and isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    match scalar:
        case Scalar.STRING:
            good = type(value) is str
        case Scalar.BOOL:
            good = type(value) is bool
        case Scalar.DATE:
            good = type(value) is date
        case Scalar.DATETIME:
            good = isinstance(value, datetime) and _is_instant(value)
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64:
            good = type(value) is int
        case Scalar.F32 | Scalar.F64:
            good = type(value) is float and math.isfinite(value)
        case _:
            good = False
    if not good:
        raise _NotSayable
    return value


def _is_instant(value: datetime) -> bool:
    # Without a zone it would be a local time, and the zone is not known.
    return value.tzinfo is not None and instant_ms(value) is not None
