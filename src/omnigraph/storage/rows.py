"""Some rows of a table version by their positions: values, blobs, row ids.

    table, row changes -> [rows] -> fragments

Few rows are picked one by one, many come out of a scan. Lance's own ``Dataset.take`` is not used:
over a fragment with a single deletion it takes milliseconds for each row, where a fragment's
``take``, which counts its live rows as positions do, takes microseconds. Blobs are stored apart
from their rows and are read apart: a scan that skips most rows must not read their blobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset
from lance.fragment import RowIdSequence

from omnigraph.storage.layout import OFFSET_BITS, OFFSET_MASK, Addresses, Layout, Positions

RowIds = npt.NDArray[np.uint64]
PICKED_FRACTION = 16
"""From one row in so many on a scan is faster than picking."""
PICKED_IDS_FRACTION = 200
"""The same for row ids alone: a scan of them reads no file."""
READERS_MAX = 8


def read_rows(
    dataset: LanceDataset, layout: Layout, positions: Positions, columns: Sequence[str]
) -> pa.Table:
    """The rows at these positions, in this order, blobs as plain bytes."""
    blobs = {name for name in columns if is_blob(dataset.schema.field(name))}
    plain = [name for name in columns if name not in blobs]
    found = _read_plain(dataset, layout, positions, plain) if plain else None
    arrays: list[pa.Array | pa.ChunkedArray] = []
    fields: list[pa.Field] = []
    for name in columns:
        field = dataset.schema.field(name)
        if found is not None and name not in blobs:
            arrays.append(found.column(name))
        else:
            arrays.append(_read_blobs(dataset, layout, positions, name))
            field = pa.field(name, pa.large_binary(), nullable=field.nullable)
        fields.append(field)
    return pa.table(arrays, schema=pa.schema(fields))


def row_ids(dataset: LanceDataset, layout: Layout, positions: Positions) -> RowIds:
    """The identity of the rows at these positions, ascending."""
    few = len(positions) * PICKED_IDS_FRACTION < layout.row_count
    addresses = ", ".join(map(str, layout.addresses_at(positions).tolist())) if few else ""
    scanner = dataset.scanner(
        columns=[],
        with_row_id=True,
        filter=f"_rowaddr in ({addresses})" if few else None,
        scan_in_order=True,
    )
    ids = scanner.to_table()["_rowid"].to_numpy()
    return ids if few else ids[positions]


def listed_row_ids(dataset: LanceDataset, addresses: Addresses) -> RowIds:
    """The same of the rows at these addresses, by what the manifest lists: no file is read.

    A list is taken as a whole, which for a large fragment costs more than a look at its rows on a
    disk, and less than a request.
    """
    lists: dict[int, RowIds] = {}
    for number in np.unique(addresses >> OFFSET_BITS).tolist():
        fragment = dataset.get_fragment(number)
        listed = fragment.metadata.row_id_meta if fragment is not None else None
        if listed is None:  # Both come from one manifest, and every table has stable ids.
            raise LookupError(f"no list of row ids of fragment {number}")
        found = RowIdSequence.from_inline_metadata(listed)
        lists[number] = found.to_pyarrow().to_numpy()
    ids = [lists[a >> OFFSET_BITS][a & OFFSET_MASK] for a in addresses.tolist()]
    return np.array(ids, np.uint64)


def is_blob(field: pa.Field) -> bool:
    """Whether a stored column holds blobs."""
    return getattr(field.type, "extension_name", None) == "lance.blob.v2"


def _read_plain(
    dataset: LanceDataset, layout: Layout, positions: Positions, columns: list[str]
) -> pa.Table:
    if not len(positions):
        return pa.schema([dataset.schema.field(n) for n in columns]).empty_table()
    ascending, places = np.unique(positions, return_inverse=True)
    few = len(ascending) * PICKED_FRACTION < layout.row_count
    rows = (_picked if few else _scanned)(dataset, layout, ascending, columns)
    if len(ascending) == len(positions) and np.array_equal(ascending, positions):
        return rows
    return rows.take(pa.array(places))


def _picked(
    dataset: LanceDataset, layout: Layout, ascending: Positions, columns: list[str]
) -> pa.Table:
    which = np.searchsorted(layout.starts, ascending, side="right") - 1
    parts = np.split(np.arange(len(which)), np.flatnonzero(np.diff(which)) + 1)

    def read(part: Positions) -> pa.Table:
        number = which[part[0]]
        fragment = dataset.get_fragment(layout.fragments[number].id)
        if fragment is None:  # Both come from one manifest.
            raise LookupError(f"no fragment {layout.fragments[number].id}")
        return fragment.take((ascending[part] - layout.starts[number]).tolist(), columns=columns)

    if len(parts) == 1:
        return read(parts[0])
    with ThreadPoolExecutor(min(len(parts), READERS_MAX)) as pool:
        return pa.concat_tables(pool.map(read, parts))


def _scanned(
    dataset: LanceDataset, layout: Layout, ascending: Positions, columns: list[str]
) -> pa.Table:
    wanted = np.zeros(layout.row_count, np.bool_)
    wanted[ascending] = True
    batches: list[pa.RecordBatch] = []
    start = 0
    for batch in dataset.scanner(columns=columns, scan_in_order=True).to_batches():
        batches.append(batch.filter(pa.array(wanted[start : start + batch.num_rows])))
        start += batch.num_rows
    return pa.Table.from_batches(batches)


def _read_blobs(
    dataset: LanceDataset, layout: Layout, positions: Positions, column: str
) -> pa.Array:
    if not len(positions):
        return pa.array([], pa.large_binary())
    return read_blobs(dataset, column, layout.addresses_at(positions))


def read_blobs(dataset: LanceDataset, column: str, addresses: Addresses) -> pa.LargeBinaryArray:
    """The blobs of the rows at these addresses, of which there is one at least, in this order."""
    found = dataset.read_blobs(column, addresses=addresses.tolist(), preserve_order=True)
    return pa.array([content for _, content in found], pa.large_binary())
