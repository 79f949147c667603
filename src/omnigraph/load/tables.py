"""Arrow tables and pandas data frames as rows of one type.

    table | batches | data frame -> column by column (`columns`) -> [tables] -> LoadedRows

Columns are matched by name. A column that has the right type already is passed on without a copy;
others are converted exactly or refused, with the first row that cannot be. The types of the source
are respected: an integer column is not text, however easily it could be printed.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import UsageError
from omnigraph.ids import IdSource
from omnigraph.load.columns import ColumnRefused, to_column
from omnigraph.load.problems import PROBLEMS_MAX, Problem, did_you_mean, input_error
from omnigraph.load.rows import LoadedRows, Part, finish, settle_ids
from omnigraph.load.values import ValueRefused, converter, shown
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, GraphType, PropertyType, Scalar

_ENDPOINTS = (("src", "dst"), ("from", "to"))
_TEXT = PropertyType(scalar=Scalar.STRING)
_CHUNK_BYTES_MAX = 1 << 30
"""Chunks are cut to this size: our string columns address at most 2 GiB each."""


def rows_from_table(
    graph_type: GraphType, table: Any, ids: IdSource, *, source_name: str = "table"
) -> LoadedRows:
    """All rows of a table of one type.

    ``table`` is an Arrow table, record batch or batch reader, a pandas DataFrame, or anything that
    offers the Arrow stream interface. Raises InputError naming columns and first bad rows.
    """
    given, problems = _columns_of(table, source_name)
    problems += _name_problems(graph_type, given, source_name)
    if problems:
        raise input_error(problems)
    arrays: list[pa.ChunkedArray] = []
    schema = table_schema(graph_type)
    source_of = _column_sources(graph_type, given)
    row_count = len(next(iter(given.values()))) if given else 0
    for field in schema:
        column = source_of.get(field.name)
        if column is None:
            arrays.append(pa.chunked_array([pa.nulls(row_count, field.type)]))
            continue
        prop = graph_type.by_name.get(field.name)
        converted = _convert(given[column], prop.type if prop else _TEXT)
        if field.name in ("src", "dst") and not isinstance(converted, Problem):
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


def _columns_of(table: Any, source: str) -> tuple[dict[str, pa.ChunkedArray], list[Problem]]:
    """Columns by name, whatever the table is."""
    problems: list[Problem] = []
    columns: dict[str, pa.ChunkedArray] = {}
    for name, values in _named_columns(table):
        if not isinstance(name, str) or name in columns:
            reason = "occurs twice" if isinstance(name, str) else "is not named by a string"
            problems.append(Problem(source=source, message=f"column {name!r} {reason}"))
            continue
        if not isinstance(values, pa.ChunkedArray):
            try:
                array = pa.Array.from_pandas(values)
            except (pa.ArrowException, TypeError, ValueError) as error:
                message = f"column '{name}': {str(error).splitlines()[0]}"
                problems.append(Problem(source=source, message=message))
                continue
            values = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
        columns[name] = values
    return columns, problems


def _named_columns(table: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    elif isinstance(table, pa.RecordBatchReader):
        table = table.read_all()
    elif _is_pandas(table):
        # Series by position, because names of a frame need not be unique. The index is not data.
        return ((name, table.iloc[:, i]) for i, name in enumerate(table.columns))
    elif not isinstance(table, pa.Table):
        if not hasattr(table, "__arrow_c_stream__"):
            raise UsageError(f"expected an Arrow table or a DataFrame, got {type(table).__name__}")
        table = pa.table(table)
    return zip(table.column_names, table.columns, strict=True)


def _is_pandas(table: Any) -> bool:
    # Asked by name: pandas is optional, and who has a DataFrame has imported it.
    return type(table).__module__.partition(".")[0] == "pandas" and hasattr(table, "iloc")


def _endpoint_names(graph_type: GraphType) -> tuple[tuple[str, str], ...]:
    """Which pairs of columns may name the endpoints; a property of that name takes precedence."""
    return tuple(p for p in _ENDPOINTS if not any(n in graph_type.by_name for n in p))


def _name_problems(
    graph_type: GraphType, given: Mapping[str, pa.ChunkedArray], source: str
) -> list[Problem]:
    messages: list[str] = []
    known = {"id", *graph_type.by_name}
    if isinstance(graph_type, EdgeType):
        pairs = _endpoint_names(graph_type)
        known.update(n for pair in pairs for n in pair)
        spelled = " or ".join(f"'{a}' and '{b}'" for a, b in pairs)
        present = [tuple(n for n in pair if n in given) for pair in pairs]
        if sum(len(names) for names in present) != 2 or not any(len(n) == 2 for n in present):
            found = ", ".join(f"'{n}'" for names in present for n in names) or "neither"
            messages.append(f"an edge table has the columns {spelled}; found {found}")
    messages += [
        f"{graph_type.name} has no property {shown(name)}{did_you_mean(name, known)}"
        for name in given
        if name not in known
    ]
    return [Problem(source=source, message=m) for m in messages]


def _column_sources(graph_type: GraphType, given: Mapping[str, pa.ChunkedArray]) -> dict[str, str]:
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
        key=lambda n: _refusal(chunk.slice(0, n), property_type) != "",
    )
    value = chunk.slice(shortest, 1)
    message = _refusal(value, property_type)
    try:
        converter(property_type)(value[0].as_py())
    except ValueRefused as refused:
        message = str(refused)
    except (ValueError, OverflowError):
        pass  # Python cannot even express it; Arrow's words must do
    return Problem(line=before + shortest + 1, message=message)


def _refusal(chunk: pa.Array, property_type: PropertyType) -> str:
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
