"""Arrow tables and pandas data frames as rows of one type.

    table | batches | data frame -> column by column (`table_shape`) -> [tables] -> LoadedRows

A column that has the right type already is passed on without a copy; of others the first row that
cannot be converted is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import InputError, UsageError
from omnigraph.ids import IdSource
from omnigraph.input.loaded_rows import LoadedRows, Part, finish, settle_ids
from omnigraph.input.problems import PROBLEMS_MAX, Problem, input_error
from omnigraph.input.table_shape import (
    NULL_ENDPOINT,
    bad_rows,
    end_texts,
    property_type_of,
    table_of,
    table_shape,
)
from omnigraph.schema.catalog import GraphType, PropertyType
from omnigraph.schema.property_columns import ColumnRefused, to_column, type_label
from omnigraph.schema.property_values import ValueRefused, converter, is_missing

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
    given = dict(opened.columns)
    shape = table_shape(
        graph_type,
        [name for name, _ in opened.columns],
        mapping=columns,
        source=source_name,
        index_names=opened.index_names,
    )
    problems: list[Problem] = []
    arrays: dict[str, pa.ChunkedArray] = {}
    for name, column in shape.columns:
        found = _column(
            given[column], property_type_of(graph_type, name), name in graph_type.end_columns
        )
        if isinstance(found, Problem):
            message = f"column '{column}'{found.message}"
            problems.append(replace(found, source=source_name, message=message))
        else:
            arrays[name] = found
    if problems:
        raise input_error(problems)
    rows = table_of(graph_type, arrays, opened.row_count)
    rows, mismatches = settle_ids(graph_type, rows)
    if mismatches:
        raise input_error(
            [Problem(source=source_name, line=i + 1, message=m) for i, m in mismatches],
            stopped=len(mismatches) == PROBLEMS_MAX,
        )
    part = Part(type=graph_type, rows=rows, lines=range(1, rows.num_rows + 1))
    return finish([part], [source_name], ids)[graph_type.table_key]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A table of any kind as named columns."""

    columns: Sequence[tuple[Any, Any]]
    """Names, which should be strings, with Arrow columns or pandas Series."""
    row_count: int
    index_names: Sequence[Any] = ()
    """How pandas names the levels of the index, which is not data to us."""


def _opened(table: Any) -> _Opened:
    if is_frame(table):
        # Series by position, because names of a frame need not be unique.
        return _Opened(
            columns=[(name, table.iloc[:, i]) for i, name in enumerate(table.columns)],
            row_count=len(table.index),
            index_names=list(table.index.names),
        )
    arrow = _arrow_table(table)
    try:
        columns = list(zip(arrow.column_names, arrow.columns, strict=True))
    except UnicodeDecodeError:
        raise InputError("the name of a column is not valid UTF-8") from None
    return _Opened(columns=columns, row_count=arrow.num_rows)


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


def _column(
    values: Any, property_type: PropertyType, is_endpoint: bool
) -> pa.ChunkedArray | Problem:
    """A column of Arrow or of pandas as one of the type; or the first thing wrong with it."""
    column = _arrow_column(values, property_type)
    if isinstance(column, Problem):
        return column
    converted: list[pa.Array] = []
    before = 0
    for given in _small_chunks(column):
        chunk = end_texts(given) if is_endpoint else given
        try:
            converted.append(to_column(chunk, property_type))
        except (ColumnRefused, pa.ArrowException) as refused:
            if isinstance(refused, ColumnRefused) and refused.whole:
                return Problem(message=f": {refused}")
            for row, message in bad_rows(chunk, property_type, before + 1):
                return Problem(line=row, message=f": {message}")
        before += len(chunk)
    found = pa.chunked_array(converted or [to_column(pa.nulls(0), property_type)])
    if is_endpoint and found.null_count:
        row = int(np.argmax(found.is_null().to_numpy()))
        return Problem(line=row + 1, message=f": {NULL_ENDPOINT}")
    return found


def _arrow_column(values: Any, property_type: PropertyType) -> pa.ChunkedArray | Problem:
    """A column of Arrow or of pandas as one of Arrow, of whatever type it has."""
    if isinstance(values, pa.ChunkedArray):
        return values
    try:
        array = pa.Array.from_pandas(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        if values.dtype != object:
            wanted = f"which cannot be read as {type_label(property_type)}"
            return Problem(message=f" has the pandas type {values.dtype}, {wanted}")
        first = _first_object(values, property_type)
        return first or Problem(message=f": {str(error).splitlines()[0]}")
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _first_object(values: Any, property_type: PropertyType) -> Problem | None:
    """The first Python object in a column that is not a value of the property."""
    convert = converter(property_type)
    for row, value in enumerate(values, start=1):
        try:
            convert(value)
        except ValueRefused as refused:
            # In a column of objects pandas writes a missing value in one of these ways.
            if not (is_missing(value) or (isinstance(value, float) and value != value)):
                return Problem(line=row, message=f": {refused}")
    return None


def _small_chunks(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in column.chunks:
        size = _bytes_of(chunk)
        if size <= _CHUNK_BYTES_MAX or len(chunk) < 2:
            yield chunk
            continue
        rows = max(1, len(chunk) * _CHUNK_BYTES_MAX // size)
        for start in range(0, len(chunk), rows):
            yield chunk.slice(start, rows)


def _bytes_of(chunk: pa.Array) -> int:
    # Not every pyarrow of the range we take knows which bytes belong to the views of a slice; the
    # buffers that they point into are at least as large.
    if pa.types.is_string_view(chunk.type) or pa.types.is_binary_view(chunk.type):
        return int(chunk.get_total_buffer_size())
    return int(chunk.nbytes)
