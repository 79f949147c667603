"""Arrow tables and pandas data frames as rows of one type.

    table | batches | data frame -> column by column (`columns`) -> [tables] -> LoadedRows

Columns are matched by name. A column that has the right type already is passed on without a copy;
others are converted exactly or refused, with the first row that cannot be. The types of the source
are respected: an integer column is not text, however easily it could be printed.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import InputError, UsageError
from omnigraph.ids import IdSource
from omnigraph.input.loaded_rows import LoadedRows, Part, finish, settle_ids
from omnigraph.input.problems import PROBLEMS_MAX, Problem, input_error
from omnigraph.lang.suggest import suggestion
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, GraphType, PropertyType, Scalar
from omnigraph.schema.property_columns import ColumnRefused, to_column, type_label
from omnigraph.schema.property_values import ValueRefused, converter, is_missing, shown

_ENDPOINTS = (("src", "dst"), ("from", "to"))
_TEXT = PropertyType(scalar=Scalar.STRING)
_CHUNK_BYTES_MAX = 1 << 30
"""Chunks are cut to this size: our string columns address at most 2 GiB each."""


def rows_from_table(
    graph_type: GraphType,
    table: Any,
    ids: IdSource,
    *,
    source_name: str = "table",
    columns: Mapping[str, str] | None = None,
) -> LoadedRows:
    """All rows of a table of one type.

    ``table`` is an Arrow table, record batch or batch reader, a pandas DataFrame, or anything that
    offers the Arrow stream interface. ``columns`` names the column of each property; without it
    they are called like the properties. Raises InputError naming columns and first bad rows.
    """
    opened = _opened(table)
    if columns is not None:
        opened = _renamed(opened, columns, source_name)
    given, problems = _columns_of(graph_type, opened, source_name)
    if problems:
        raise input_error(problems)
    arrays: list[pa.ChunkedArray] = []
    schema = table_schema(graph_type)
    source_of = column_sources(graph_type, given)
    for field in schema:
        column = source_of.get(field.name)
        if column is None:
            arrays.append(pa.chunked_array([pa.nulls(opened.row_count, field.type)]))
            continue
        prop = graph_type.by_name.get(field.name)
        converted = _convert(given[column], prop.type if prop else _TEXT)
        if field.name in graph_type.end_columns and not isinstance(converted, Problem):
            converted = _without_nulls(converted)
        if isinstance(converted, Problem):
            place = f"column '{column}': {converted.message}"
            problems.append(Problem(source=source_name, line=converted.line, message=place))
        else:
            arrays.append(converted)
    if problems:
        raise input_error(problems)
    return _finish(graph_type, pa.Table.from_arrays(arrays, schema=schema), ids, source_name)


def _finish(graph_type: GraphType, given: pa.Table, ids: IdSource, source: str) -> LoadedRows:
    rows, mismatches = settle_ids(graph_type, given)
    if mismatches:
        raise input_error(
            [Problem(source=source, line=i + 1, message=m) for i, m in mismatches],
            stopped=len(mismatches) == PROBLEMS_MAX,
        )
    lines = np.arange(1, rows.num_rows + 1, dtype=np.int64)
    part = Part(type=graph_type, rows=rows, lines=lines)
    return finish([part], [source], ids)[graph_type.table_key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A table of any kind as named columns."""

    columns: Iterable[tuple[Any, Any]]
    """Names, which should be strings, with Arrow columns or pandas Series."""
    row_count: int
    index_names: Sequence[Any] = ()
    """How pandas names the levels of the index, which is not data to us."""


def _opened(table: Any) -> _Opened:
    if is_frame(table):
        # Series by position, because names of a frame need not be unique.
        return _Opened(
            columns=((name, table.iloc[:, i]) for i, name in enumerate(table.columns)),
            row_count=len(table.index),
            index_names=list(table.index.names),
        )
    arrow = _arrow_table(table)
    try:
        columns = list(zip(arrow.column_names, arrow.columns, strict=True))
    except UnicodeDecodeError:
        raise InputError("the name of a column is not valid UTF-8") from None
    return _Opened(columns=columns, row_count=arrow.num_rows)


def _renamed(opened: _Opened, columns: Mapping[str, str], source: str) -> _Opened:
    """Exactly the columns that are named, called like the properties that they fill."""
    given = list(opened.columns)
    names = [name for name, _ in given]
    missing = [
        f"there is no column {shown(column)} for {shown(name)}{suggestion(column, map(str, names))}"
        for name, column in columns.items()
        if column not in names
    ]
    if missing:
        raise input_error([Problem(source=source, message=m) for m in missing])
    values = dict(given)
    return _Opened(
        columns=[(name, values[column]) for name, column in columns.items()],
        row_count=opened.row_count,
    )


def _arrow_table(table: Any) -> pa.Table:
    if isinstance(table, pa.Table):
        return table
    try:
        if isinstance(table, pa.RecordBatch):
            return pa.table(table)
        if isinstance(table, pa.RecordBatchReader):
            return table.read_all()
        if hasattr(table, "__arrow_c_stream__"):
            return pa.table(table)
        if hasattr(table, "__arrow_c_array__"):
            return pa.table(pa.record_batch(table))
    except pa.ArrowException as error:
        raise UsageError(
            f"{type(table).__name__} is not a table: {str(error).splitlines()[0]}"
        ) from None
    raise UsageError(f"expected an Arrow table or a DataFrame, got {type(table).__name__}")


def is_frame(table: Any) -> bool:
    """Whether this is a pandas DataFrame, or of a subclass."""
    return _is_of_pandas(table, "DataFrame")


def is_series(value: Any) -> bool:
    """Whether this is one column of pandas, without a table around it."""
    return _is_of_pandas(value, "Series") or _is_of_pandas(value, "Index")


def _is_of_pandas(value: Any, name: str) -> bool:
    # Asked by name: pandas is optional, and where there is a DataFrame it is imported.
    return any(
        c.__name__ == name and c.__module__.partition(".")[0] == "pandas"
        for c in type(value).__mro__
    )


def _columns_of(
    graph_type: GraphType, opened: _Opened, source: str
) -> tuple[dict[str, pa.ChunkedArray], list[Problem]]:
    """Columns by name, as far as they can be read and have a place in the type."""
    problems: list[Problem] = []
    given: dict[str, Any] = {}
    for name, values in opened.columns:
        if not isinstance(name, str) or name in given:
            reason = "occurs twice" if isinstance(name, str) else "is not named by a string"
            problems.append(Problem(source=source, message=f"column {name!r} {reason}"))
        else:
            given[name] = values
    problems += name_problems(graph_type, given, opened.index_names, source)
    known = known_names(graph_type)
    columns: dict[str, pa.ChunkedArray] = {}
    for name in (n for n in given if n in known):
        prop = graph_type.by_name.get(name)
        column = _arrow_column(name, given[name], prop.type if prop else _TEXT)
        if isinstance(column, Problem):
            problems.append(replace(column, source=source))
        else:
            columns[name] = column
    return columns, problems


def _arrow_column(name: str, values: Any, property_type: PropertyType) -> pa.ChunkedArray | Problem:
    """A column of Arrow or of pandas as one of Arrow, of whatever type it has."""
    if isinstance(values, pa.ChunkedArray):
        return values
    try:
        array = pa.Array.from_pandas(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if values.dtype != object:
            wanted = f"which cannot be read as {type_label(property_type)}"
            return Problem(message=f"column '{name}' has the pandas type {values.dtype}, {wanted}")
        return _first_object(name, values, property_type) or Problem(
            message=f"column '{name}': {str(error).splitlines()[0]}"
        )
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _first_object(name: str, values: Any, property_type: PropertyType) -> Problem | None:
    """The first Python object in a column that is not a value of the property."""
    convert = converter(property_type)
    for row, value in enumerate(values, start=1):
        try:
            convert(value)
        except ValueRefused as refused:
            # In a column of objects pandas writes a missing value in one of these ways.
            if not (is_missing(value) or (isinstance(value, float) and value != value)):
                return Problem(line=row, message=f"column '{name}': {refused}")
    return None


def _endpoint_names(graph_type: GraphType) -> tuple[tuple[str, str], ...]:
    """Which pairs of columns may name the endpoints; a property of that name takes precedence."""
    return tuple(p for p in _ENDPOINTS if not any(n in graph_type.by_name for n in p))


def known_names(graph_type: GraphType) -> set[str]:
    """What a column of a table of this type may be called."""
    known = {"id", *graph_type.by_name}
    if isinstance(graph_type, EdgeType):
        known.update(n for pair in _endpoint_names(graph_type) for n in pair)
    return known


def name_problems(
    graph_type: GraphType, given: Collection[str], index_names: Iterable[Any], source: str
) -> list[Problem]:
    """What is wrong with the names of columns, before anything is read."""
    known = known_names(graph_type)
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
    return [Problem(source=source, message=m) for m in messages]


def column_sources(graph_type: GraphType, given: Collection[str]) -> dict[str, str]:
    """For each column of the table, the name of the given column that fills it."""
    sources = {name: name for name in given}
    if isinstance(graph_type, EdgeType):
        pair = next(p for p in _endpoint_names(graph_type) if p[0] in given)
        sources |= {"src": pair[0], "dst": pair[1]}
    return sources


def _convert(column: pa.ChunkedArray, property_type: PropertyType) -> pa.ChunkedArray | Problem:
    converted: list[pa.Array] = []
    before = 0
    for chunk in _small_chunks(column):
        try:
            converted.append(to_column(chunk, property_type))
        except ColumnRefused as refused:
            if refused.whole:
                return Problem(message=str(refused))
            return _first_problem(chunk, before, property_type)
        except pa.ArrowException:
            return _first_problem(chunk, before, property_type)
        before += len(chunk)
    if not converted:
        converted = [to_column(pa.nulls(0), property_type)]
    return pa.chunked_array(converted)


def _small_chunks(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in column.chunks:
        if chunk.nbytes <= _CHUNK_BYTES_MAX or len(chunk) < 2:
            yield chunk
            continue
        rows = max(1, len(chunk) * _CHUNK_BYTES_MAX // chunk.nbytes)
        for start in range(0, len(chunk), rows):
            yield chunk.slice(start, rows)


def _first_problem(chunk: pa.Array, before: int, property_type: PropertyType) -> Problem:
    """The first row that does not convert: the shortest beginning that fails ends with it."""
    shortest = bisect.bisect_left(
        range(1, len(chunk) + 1),
        True,
        key=lambda n: refusal(chunk.slice(0, n), property_type) != "",
    )
    message = value_problem(chunk.slice(shortest, 1), property_type)
    return Problem(line=before + shortest + 1, message=message)


def value_problem(value: pa.Array, property_type: PropertyType) -> str:
    """Why the one value of an array is not a value of the property."""
    try:
        converter(property_type)(value[0].as_py())
    except ValueRefused as refused:
        return str(refused)
    except (ValueError, OverflowError):
        pass  # Python cannot even express it; Arrow's words must do
    return refusal(value, property_type)


def refusal(chunk: pa.Array, property_type: PropertyType) -> str:
    """Why some value of an array is not a value of the property; empty if all are."""
    try:
        to_column(chunk, property_type)
    except (ColumnRefused, pa.ArrowException) as error:
        return str(error) or "refused"
    return ""


def _without_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray | Problem:
    if not column.null_count:
        return column
    row = int(np.argmax(column.is_null().to_numpy()))
    return Problem(line=row + 1, message="an endpoint of an edge cannot be null")
