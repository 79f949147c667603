"""Some rows of a table version, whole: images for a change that keeps what it does not touch.

Few rows are picked one by one, many come out of a scan. Blobs are stored apart from their rows and
are read apart: a scan that skips most rows must not read their blobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.storage.layout import Positions

SCAN_FRACTION = 16
"""From one row in so many on a scan is faster than picking."""


def read_rows(
    dataset: Any, positions: Positions, columns: Sequence[str], row_count: int
) -> pa.Table:
    """The rows at these positions, in this order, blobs as plain bytes."""
    blobs = {name for name in columns if is_blob(dataset.schema.field(name))}
    plain = [name for name in columns if name not in blobs]
    found = _read_plain(dataset, positions, plain, row_count) if plain else None
    arrays: list[pa.Array | pa.ChunkedArray] = []
    fields: list[pa.Field] = []
    for name in columns:
        field = dataset.schema.field(name)
        if found is not None and name not in blobs:
            arrays.append(found.column(name))
        else:
            arrays.append(_read_blobs(dataset, positions, name))
            field = pa.field(name, pa.large_binary(), nullable=field.nullable)
        fields.append(field)
    return pa.table(arrays, schema=pa.schema(fields))


def is_blob(field: pa.Field) -> bool:
    """Whether a stored column holds blobs."""
    return getattr(field.type, "extension_name", None) == "lance.blob.v2"


def _read_plain(
    dataset: Any, positions: Positions, columns: Sequence[str], row_count: int
) -> pa.Table:
    names = list(columns)
    if not len(positions):
        return pa.schema([dataset.schema.field(n) for n in names]).empty_table()
    if len(positions) * SCAN_FRACTION < row_count:
        return dataset.take(pa.array(positions), columns=names)
    ascending, places = np.unique(positions, return_inverse=True)
    wanted = np.zeros(row_count, np.bool_)
    wanted[ascending] = True
    batches: list[pa.RecordBatch] = []
    start = 0
    for batch in dataset.scanner(columns=names, scan_in_order=True).to_batches():
        batches.append(batch.filter(pa.array(wanted[start : start + batch.num_rows])))
        start += batch.num_rows
    rows = pa.Table.from_batches(batches)
    if len(ascending) == len(positions) and np.array_equal(ascending, positions):
        return rows
    return rows.take(pa.array(places))


def _read_blobs(dataset: Any, positions: Positions, column: str) -> pa.Array:
    if not len(positions):
        return pa.array([], pa.large_binary())
    found = dataset.read_blobs(column, indices=positions.tolist(), preserve_order=True)
    return pa.array([content for _, content in found], pa.large_binary())
