"""The stored columns of a few rows, copied out of whole columns in memory.

    frame, columns -> [few rows] -> a result

What a lookup by key returns is one row of some columns. Taking it by the general way costs an
evaluation, an array of places and a call of Arrow's for each column; one slice of all of them that
is copied costs a tenth. A slice that is not copied would keep whole columns alive, and would be
sent whole to another process.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from omnigraph.query import typed
from omnigraph.query.exec.frame import Frame, NodeBinding
from omnigraph.query.exec.outputs import ResultColumns
from omnigraph.query.exec.world import World

FEW_RESULTS = 4
"""More rows are taken together sooner than copied one by one."""


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Source:
    """Where the outputs of a projection are, side by side."""

    variable: str
    columns: pa.RecordBatch
    """Those that are stored, in the order of rows."""
    ids: tuple[tuple[int, pa.Field], ...]
    """Which outputs are the id, which is known by its number."""


def few_rows(outputs: tuple[typed.Output, ...], frame: Frame, world: World) -> pa.Table | None:
    """The result of a frame, if it is short and all of it is stored and in memory."""
    if not 0 < frame.length <= FEW_RESULTS:
        return None
    projection = world.projection(outputs)
    if not projection.stored:
        return None
    source: _Source | None = world.caches.kept.view(projection)
    if source is None:
        source = _source(projection, projection.stored, frame, world)
        if source is None:
            return None
    binding = frame.bindings[source.variable]
    columns, places = source.columns, binding.rows.tolist()
    if min(places) < 0:
        return None
    found = pa.concat_batches([columns.slice(place, 1) for place in places])
    if source.ids and isinstance(binding, NodeBinding):
        names = binding.table.space.copied(binding.vertices.tolist())
        for at, field in source.ids:
            found = found.add_column(at, field, names)
    return pa.Table.from_batches([found])


def _source(
    projection: ResultColumns, stored: tuple[typed.Prop, ...], frame: Frame, world: World
) -> _Source | None:
    """Where they are; None as long as one is not in memory, or if they are of several variables."""
    variable = stored[0].variable
    binding = frame.bindings[variable]
    table = binding.table.columns.table
    ids: list[tuple[int, pa.Field]] = []
    columns: list[pa.Array] = []
    fields: list[pa.Field] = []
    for at, (prop, field) in enumerate(zip(stored, projection.schema, strict=True)):
        if prop.variable != variable or table is None:
            return None
        if isinstance(binding, NodeBinding) and binding.table.is_id(prop.column):
            if not binding.table.ids_known:
                return None
            if binding.table.pinned.vertex_of_row is not None:
                ids.append((at, field))
                continue
            # Rows are in the order of their numbers.
            values = binding.table.space.ids.slice(0, binding.table.row_count)
        else:
            column = binding.table.columns.known(prop.column)
            if column is None or column.values.type != field.type:
                return None
            values = column.values
        columns.append(values)
        fields.append(field)
    if not columns or table is None:
        return None
    batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
    source = _Source(variable=variable, columns=batch, ids=tuple(ids))
    world.caches.kept.add_view(projection, source, tuple((table.name, p.column) for p in stored))
    return source
