"""Committed rows that a condition is true for.

    where -> access (ids, endpoints or everything) -> [find] -> rows

Only what is needed is read: the columns of the condition first, whole rows for matches alone.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values, holds
from omnigraph.query.mutate.access import access
from omnigraph.query.mutate.base import Base, MutationRows, Positions, where_columns
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType

NOTHING: Positions = np.empty(0, np.int64)


def find_ids(
    base: Base, graph_type: GraphType, where: typed.Expr, values: Values
) -> pa.StringArray:
    """Ids of the committed rows that match."""
    _, rows = _find(base, graph_type, where, values, by_id=())
    return one_array(rows.column("id"))


def find_rows(
    base: Base,
    graph_type: GraphType,
    where: typed.Expr,
    values: Values,
    skipped: pa.StringArray,
) -> pa.Table:
    """Whole committed rows that match, without those of the skipped ids."""
    schema = table_schema(graph_type)
    positions, rows = _find(base, graph_type, where, values, by_id=tuple(schema.names))
    if len(skipped) and len(positions):
        kept = pc.invert(pc.is_in(rows.column("id"), value_set=skipped))
        positions, rows = positions[kept.to_numpy(zero_copy_only=False)], rows.filter(kept)
    if len(rows.column_names) == len(schema):
        return rows.select(schema.names).cast(schema)
    return whole_rows(base, graph_type, positions)


def whole_rows(base: Base, graph_type: GraphType, positions: Positions) -> pa.Table:
    """Complete images of the rows at these positions."""
    schema = table_schema(graph_type)
    if not len(positions):
        return schema.empty_table()
    rows = base.rows_at(graph_type.table_key, positions, tuple(schema.names))
    return rows.cast(schema)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _find(
    base: Base,
    graph_type: GraphType,
    where: typed.Expr,
    values: Values,
    *,
    by_id: tuple[str, ...],
) -> tuple[Positions, pa.Table]:
    """Matches: where they stand, and the columns of the condition.

    A lookup of ids finds few rows that match nearly always: columns that are wanted next are read
    with the first request.
    """
    key = graph_type.table_key
    columns = tuple(dict.fromkeys(("id", *where_columns(where))))
    lookup = access(graph_type, where, values)
    if lookup is None:
        rows = base.scan(key, columns)
        mask = holds(where, MutationRows(rows), values)
        return np.flatnonzero(mask), rows.filter(pa.array(mask))
    if lookup.column == "id":
        columns = tuple(dict.fromkeys((*columns, *by_id)))
    # The table is part of the read set even where there is nothing to look up.
    wanted = pa.array(sorted(lookup.values), pa.string())
    positions = base.positions(key, lookup.column, wanted)
    rows = base.rows_at(key, positions, columns)
    mask = holds(where, MutationRows(rows), values)
    return positions[mask], rows.filter(pa.array(mask))
