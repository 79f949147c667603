"""Staging rows that take the place of others, when it is known where those lie.

Lance's own upsert reads the ids of the whole table again to find out. Here the places are known
from the check that the ids exist: the old rows are marked, the new ones written as files beside
them, with the identity of the rows they replace. Nothing of the table is read but that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import RowIdSequence

from omnigraph.arrow.compute import pc
from omnigraph.storage.changes import StagedFiles
from omnigraph.storage.layout import Layout, Positions
from omnigraph.storage.removal import marked

RowIds = npt.NDArray[np.uint64]
PICKED_FRACTION = 16
"""From one row in so many on a scan is faster than picking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Rows of a change beside the rows of a version that have their ids."""

    replacing: pa.Table
    """In the order of ``places``."""
    places: Positions
    """Of the rows that are replaced, ascending."""
    new: pa.Table


def match(rows: pa.Table, places: Positions, ids: pa.Array | pa.ChunkedArray) -> Matched:
    """Pair rows with the places, ascending, and the ids that a version has there."""
    own = pc.index_in(ids, value_set=rows.column("id").combine_chunks())
    known = pc.is_in(rows.column("id"), value_set=_one(ids))
    return Matched(replacing=rows.take(own), places=places, new=rows.filter(pc.invert(known)))


def row_ids(dataset: LanceDataset, places: Positions, row_count: int) -> RowIds:
    """The identity of the rows at these positions, ascending."""
    if len(places) * PICKED_FRACTION < row_count:
        return dataset.take(pa.array(places), columns=["_rowid"])["_rowid"].to_numpy()
    scanner = dataset.scanner(columns=[], with_row_id=True, scan_in_order=True)
    return scanner.to_table()["_rowid"].to_numpy()[places]


def identify(fragments: Sequence[Any], ids: RowIds) -> None:
    """Give the rows of new files the identity of rows that they replace."""
    start = 0
    for fragment in fragments:
        own = ids[start : start + fragment.physical_rows]
        fragment.row_id_meta = RowIdSequence(own.tolist()).to_inline_metadata()
        start += fragment.physical_rows


def replacement(
    dataset: LanceDataset, layout: Layout, gone: Positions, added: Sequence[StagedFiles]
) -> Any:
    """Mark the rows that go; the operation that also brings the files."""
    kept, empty = marked(dataset, layout.addresses_at(gone))
    return LanceOperation.Update(
        removed_fragment_ids=empty,
        updated_fragments=kept,
        new_fragments=[fragment for files in added for fragment in files.fragments],
    )


def _one(ids: pa.Array | pa.ChunkedArray) -> pa.Array:
    return ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
