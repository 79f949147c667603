"""Assigned values as cells of their column.

    assignment, parameters -> [cells] -> Python values that ``pa.array`` takes for the column

Literals were fitted when the query was checked; what a parameter brings is only known now. Numbers
change their kind without loss or not at all. A decimal may be rounded to the width of its column,
as in a load.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from omnigraph.errors import ParameterError
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.schema.catalog import GraphType, PropertyType, Scalar
from omnigraph.schema.property_values import ValueRefused, converter, shown

_ID = PropertyType(scalar=Scalar.STRING)


def cells(
    graph_type: GraphType, assignments: tuple[typed.Assignment, ...], values: Values
) -> dict[str, Any]:
    """The assigned columns with their values; None clears."""
    return {a.column: _cell(graph_type, a, values) for a in assignments}


def _cell(graph_type: GraphType, assignment: typed.Assignment, values: Values) -> Any:
    value = values.of(assignment.value)
    if value is None:
        return None
    prop = graph_type.by_name.get(assignment.column)
    # The endpoints of an edge, and the id where it is no declared property, are texts.
    kind = prop.type if prop is not None else _ID
    try:
        return converter(kind)(_fitted(kind, value))
    except ValueRefused as refused:
        raise ParameterError(
            f"{_source(assignment)}{graph_type.name}.{assignment.column}: {refused}",
            details={"type": graph_type.name, "property": assignment.column},
        ) from None


def _source(assignment: typed.Assignment) -> str:
    given = assignment.value
    return f"parameter ${given.name} for " if isinstance(given, typed.Param) else ""


def _fitted(kind: PropertyType, value: Any) -> Any:
    """Whole numbers for integer columns, floats for float columns, where that loses nothing."""
    if kind.vector_size is not None:
        return value
    if isinstance(value, tuple) and kind.is_list:
        return [_fitted_number(kind.scalar, v) for v in cast("tuple[Any, ...]", value)]
    return _fitted_number(kind.scalar, value)


def _fitted_number(scalar: Scalar, value: Any) -> Any:
    if scalar.is_integer and isinstance(value, float):
        if not value.is_integer():
            raise ValueRefused(f"{shown(value)} is not a whole number, as {scalar} needs it")
        return int(value)
    if scalar.is_float and isinstance(value, int) and not isinstance(value, bool):
        try:
            near = float(np.float32(value)) if scalar is Scalar.F32 else float(value)
        except OverflowError:
            near = None
        if near != value:
            raise ValueRefused(f"{shown(value)} has no exact {scalar}")
        return near
    return value
