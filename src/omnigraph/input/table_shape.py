"""Columns of a source as columns of a type: names on the driver, values in tasks.

    names, types, mapping -> [columns] -> TableShape        (driver; raises InputError)
    batches of any source -> [columns] -> parts, problems   (tasks)

The rules are those of `load.tables`: columns are matched by name, a value converts exactly or is
refused, the types of the source are respected. There the first bad row of a column is told, because
all rows are at hand; here a batch is, and every bad row of it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.input.loaded_rows import InputPiece, Part, settle_ids
from omnigraph.input.problems import Problem, input_error
from omnigraph.input.tables import (
    column_sources,
    known_names,
    name_problems,
    refusal,
    value_problem,
)
from omnigraph.input.units import TableShape
from omnigraph.lang.suggest import suggestion
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType, PropertyType, Scalar
from omnigraph.schema.property_columns import ColumnRefused, to_column
from omnigraph.schema.property_values import shown

TEXT = PropertyType(scalar=Scalar.STRING)
NULL_ENDPOINT = "an endpoint of an edge cannot be null"


# -- names, on the driver ------------------------------------------------------------------------


def table_shape(
    graph_type: GraphType,
    names: Sequence[str],
    *,
    mapping: Mapping[str, str] | None,
    source: str,
    line: int | None = None,
) -> TableShape:
    """Which column fills which; without a ``mapping`` (property to column) by equal names.

    With a mapping exactly the columns that it names are read. Raises InputError.
    """
    messages = [
        f"column {name!r} occurs twice"
        for place, name in enumerate(names)
        if name in names[:place] and (mapping is None or name in mapping.values())
    ]
    given = {name: name for name in names} if mapping is None else dict(mapping)
    if mapping is not None:
        messages += [
            f"there is no column {shown(column)} for {shown(name)}{suggestion(column, names)}"
            for name, column in mapping.items()
            if column not in names
        ]
    messages += [p.message for p in name_problems(graph_type, given, (), source)]
    if messages:
        raise input_error([Problem(source=source, line=line, message=m) for m in messages])
    sources = column_sources(graph_type, [n for n in given if n in known_names(graph_type)])
    columns = [
        (field.name, given[sources[field.name]])
        for field in table_schema(graph_type)
        if field.name in sources
    ]
    return TableShape(table_key=graph_type.table_key, columns=tuple(columns))


def check_types(
    graph_type: GraphType, shape: TableShape, types: Mapping[str, pa.DataType], source: str
) -> None:
    """Raise InputError for columns of which no value can be read."""
    problems: list[Problem] = []
    for name, column in shape.columns:
        try:
            to_column(pa.array([], types[column]), property_type_of(graph_type, name))
        except ColumnRefused as refused:
            if refused.whole:
                message = f"column '{column}': {refused}"
                problems.append(Problem(source=source, message=message))
        except pa.ArrowException:
            pass  # a value is refused, if there is one
    if problems:
        raise input_error(problems)


def property_type_of(graph_type: GraphType, column: str) -> PropertyType:
    """The type of a column of the table: a property's, or text for the columns every row has."""
    prop = graph_type.by_name.get(column)
    return TEXT if prop is None else prop.type


# -- values, in tasks ----------------------------------------------------------------------------


def piece_of(
    graph_type: GraphType, shape: TableShape, given: Mapping[str, pa.Array], row_count: int
) -> InputPiece:
    """Columns of a source as a piece; rows count from 1. No rows if there is a problem."""
    problems: list[Problem] = []
    arrays: dict[str, pa.Array] = {}
    for name, column in shape.columns:
        is_end = name in graph_type.end_columns
        found = _convert(given[column], property_type_of(graph_type, name), is_end=is_end)
        if isinstance(found, pa.Array):
            arrays[name] = found
        else:
            problems += [
                Problem(line=row, message=f"column '{column}': {message}") for row, message in found
            ]
    if problems:
        ordered = sorted(problems, key=lambda p: p.line or 0)
        return InputPiece(parts=(), problems=ordered, line_count=row_count)
    return typed_piece(graph_type, arrays, np.arange(1, row_count + 1), row_count)


def typed_piece(
    graph_type: GraphType, arrays: Mapping[str, pa.Array], lines: np.ndarray, line_count: int
) -> InputPiece:
    """Converted columns as a piece; columns that are not given are null."""
    schema = table_schema(graph_type)
    columns = [arrays[f.name] if f.name in arrays else pa.nulls(len(lines), f.type) for f in schema]
    given = pa.Table.from_arrays(columns, schema=schema)
    rows, mismatches = settle_ids(graph_type, given, mismatches_max=len(lines))
    part = Part(type=graph_type, rows=rows, lines=lines)
    return InputPiece(
        parts=[part] if len(lines) else (),
        problems=[Problem(line=int(lines[i]), message=m) for i, m in mismatches],
        line_count=line_count,
    )


def _convert(
    values: pa.Array, property_type: PropertyType, *, is_end: bool
) -> pa.Array | list[tuple[int, str]]:
    """The converted column, or the rows that cannot be, each with the reason."""
    try:
        converted = to_column(values, property_type)
    except (ColumnRefused, pa.ArrowException):
        return list(_bad_rows(values, property_type, 1))
    if is_end and converted.null_count:
        missing = np.flatnonzero(converted.is_null().to_numpy(zero_copy_only=False))
        return [(int(row) + 1, NULL_ENDPOINT) for row in missing]
    return converted


def _bad_rows(
    values: pa.Array, property_type: PropertyType, first: int
) -> Iterator[tuple[int, str]]:
    """Halves of a bad array, down to single values: good stretches are passed in one step."""
    if len(values) == 1:
        yield first, value_problem(values, property_type)
        return
    middle = len(values) // 2
    any_bad = False
    for start, half in ((0, values.slice(0, middle)), (middle, values.slice(middle))):
        if refusal(half, property_type):
            any_bad = True
            yield from _bad_rows(half, property_type, first + start)
    if not any_bad:
        # Only together they cannot be read: too much text, or times with and without a zone.
        yield first, refusal(values, property_type)
