"""Columns of a source as columns of a type: names first, then values.

    names, types, mapping -> [table_shape] -> TableShape        (before reading; raises InputError)
    columns of any source -> [table_shape] -> parts, problems   (in threads and tasks)

Columns are matched by name, a value converts exactly or is refused, and the types of the source are
respected: an integer column is not text, however easily it could be printed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.input.loaded_rows import InputPiece, Part, settle_ids
from omnigraph.input.problems import Problem, input_error
from omnigraph.input.units import TableShape
from omnigraph.lang.suggest import suggestion
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, GraphType, PropertyType, Scalar
from omnigraph.schema.property_columns import ColumnRefused, to_column
from omnigraph.schema.property_values import ValueRefused, converter, shown

TEXT = PropertyType(scalar=Scalar.STRING)
NULL_ENDPOINT = "an endpoint of an edge cannot be null"
_ENDPOINTS = (("src", "dst"), ("from", "to"))


# -- names ---------------------------------------------------------------------------------------


def table_shape(
    graph_type: GraphType,
    names: Sequence[Any],
    *,
    mapping: Mapping[str, str] | None,
    source: str,
    line: int | None = None,
    index_names: Iterable[Any] = (),
) -> TableShape:
    """Which column fills which; without a ``mapping`` (property to column) by equal names.

    With a mapping exactly the columns that it names are read. Names should be strings;
    ``index_names`` are those of columns that pandas does not count as data. Raises InputError.
    """
    messages = [
        f"column {name!r} occurs twice"
        for place, name in enumerate(names)
        if name in names[:place] and (mapping is None or name in mapping.values())
    ]
    texts = [name for name in names if isinstance(name, str)]
    if mapping is None:
        given = {name: name for name in texts}
        unnamed = [name for name in names if not isinstance(name, str)]
        messages += [f"column {name!r} is not named by a string" for name in unnamed]
    else:
        given = dict(mapping)
        messages += [
            f"there is no column {shown(column)} for {shown(name)}{suggestion(column, texts)}"
            for name, column in mapping.items()
            if column not in texts
        ]
    messages += _name_problems(graph_type, given, index_names)
    if messages:
        raise input_error([Problem(source=source, line=line, message=m) for m in messages])
    sources = _column_sources(graph_type, given)
    columns = [
        (field.name, given[sources[field.name]])
        for field in table_schema(graph_type)
        if field.name in sources
    ]
    return TableShape(table_key=graph_type.table_key, columns=tuple(columns))


def _endpoint_names(graph_type: GraphType) -> tuple[tuple[str, str], ...]:
    """Which pairs of columns may name the endpoints; a property of that name takes precedence."""
    return tuple(p for p in _ENDPOINTS if not any(n in graph_type.by_name for n in p))


def _known_names(graph_type: GraphType) -> set[str]:
    """What a column of a table of this type may be called."""
    known = {"id", *graph_type.by_name}
    if isinstance(graph_type, EdgeType):
        known.update(n for pair in _endpoint_names(graph_type) for n in pair)
    return known


def _name_problems(
    graph_type: GraphType, given: Collection[str], index_names: Iterable[Any]
) -> list[str]:
    """What is wrong with the names of columns, before anything is read."""
    known = _known_names(graph_type)
    messages = [
        f"'{name}' is the index of the DataFrame, and the index is not read: call reset_index()"
        for name in index_names
        if isinstance(name, str) and name in known and name not in given
    ]
    if isinstance(graph_type, EdgeType) and not messages:
        pairs = _endpoint_names(graph_type)
        spelled = " or ".join(f"'{a}' and '{b}'" for a, b in pairs)
        present = [tuple(n for n in pair if n in given) for pair in pairs]
        if sum(len(names) for names in present) != 2 or not any(len(n) == 2 for n in present):
            found = ", ".join(f"'{n}'" for names in present for n in names) or "neither"
            messages.append(f"an edge table has the columns {spelled}; found {found}")
    messages += [
        f"{graph_type.name} has no property {shown(name)}{suggestion(name, known)}"
        for name in given
        if name not in known
    ]
    return messages


def _column_sources(graph_type: GraphType, given: Collection[str]) -> dict[str, str]:
    """For each column of the table, the name of the given column that fills it."""
    sources = {name: name for name in given}
    if isinstance(graph_type, EdgeType):
        pair = next(p for p in _endpoint_names(graph_type) if p[0] in given)
        sources |= {"src": pair[0], "dst": pair[1]}
    return sources


def check_types(
    graph_type: GraphType, shape: TableShape, types: Mapping[str, pa.DataType], source: str
) -> None:
    """Raise InputError for columns of which no value can be read."""
    problems: list[Problem] = []
    for name, column in shape.columns:
        none = pa.array([], types[column])
        none = end_texts(none) if name in graph_type.end_columns else none
        try:
            to_column(none, property_type_of(graph_type, name))
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


# -- values --------------------------------------------------------------------------------------


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
    """Converted columns as a piece."""
    given = table_of(graph_type, arrays, len(lines))
    rows, mismatches = settle_ids(graph_type, given, mismatches_max=len(lines))
    part = Part(type=graph_type, rows=rows, lines=lines)
    return InputPiece(
        parts=[part] if len(lines) else (),
        problems=[Problem(line=int(lines[i]), message=m) for i, m in mismatches],
        line_count=line_count,
    )


def table_of(
    graph_type: GraphType, arrays: Mapping[str, pa.Array | pa.ChunkedArray], row_count: int
) -> pa.Table:
    """Converted columns as rows of a type; columns that are not given are null."""
    schema = table_schema(graph_type)
    columns = [arrays[f.name] if f.name in arrays else pa.nulls(row_count, f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _convert(
    values: pa.Array, property_type: PropertyType, *, is_end: bool
) -> pa.Array | list[tuple[int, str]]:
    """The converted column, or the rows that cannot be, each with the reason."""
    values = end_texts(values) if is_end else values
    try:
        converted = to_column(values, property_type)
    except (ColumnRefused, pa.ArrowException):
        return list(bad_rows(values, property_type, 1))
    if is_end and converted.null_count:
        missing = np.flatnonzero(converted.is_null().to_numpy(zero_copy_only=False))
        return [(int(row) + 1, NULL_ENDPOINT) for row in missing]
    return converted


def end_texts(values: pa.Array) -> pa.Array:
    """Ends of edges as texts: integers are the ids of nodes whose key is a number."""
    return values.cast(pa.string()) if pa.types.is_integer(values.type) else values


def bad_rows(
    values: pa.Array, property_type: PropertyType, first: int
) -> Iterator[tuple[int, str]]:
    """The rows of an array that cannot be converted, in order, each with the reason.

    It is halved down to single values: good stretches are passed in one step.
    """
    if len(values) < 2:
        if len(values):
            yield first, _value_problem(values, property_type)
        return
    middle = len(values) // 2
    any_bad = False
    for start, half in ((0, values.slice(0, middle)), (middle, values.slice(middle))):
        if _refusal(half, property_type):
            any_bad = True
            yield from bad_rows(half, property_type, first + start)
    if not any_bad:
        # Only together they cannot be read: too much text, or times with and without a zone.
        yield first, _refusal(values, property_type)


def _value_problem(value: pa.Array, property_type: PropertyType) -> str:
    """Why the one value of an array is not a value of the property."""
    try:
        converter(property_type)(value[0].as_py())
    except ValueRefused as refused:
        return str(refused)
    except (ValueError, OverflowError):
        pass  # Python cannot even express it; Arrow's words must do
    return _refusal(value, property_type)


def _refusal(chunk: pa.Array, property_type: PropertyType) -> str:
    """Why some value of an array is not a value of the property; empty if all are."""
    try:
        to_column(chunk, property_type)
    except (ColumnRefused, pa.ArrowException) as error:
        return str(error) or "refused"
    return ""
