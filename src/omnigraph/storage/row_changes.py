"""Staging rows that replace others, or their deletion, when it is known where those lie.

Lance's own upsert reads the ids of the whole table again to find out. Here the places are known
from the check that the ids exist: the old rows are marked, the new ones written as files beside
them, with the identity of the rows they replace. Nothing of the table is read but that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import RowIdSequence

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import one_array
from omnigraph.storage.changes import StagedFiles
from omnigraph.storage.layout import (
    OFFSET_BITS,
    OFFSET_MASK,
    Addresses,
    Fragment,
    Layout,
    LiveRows,
    Offsets,
    Positions,
)
from omnigraph.storage.rows import RowIds

LARGE_ROWS = 100_000
"""Rows of a table from which on two small operations are cheaper than one that looks at all."""


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
    known = pc.is_in(rows.column("id"), value_set=one_array(ids))
    return Matched(replacing=rows.take(own), places=places, new=rows.filter(pc.invert(known)))


def identify(fragments: Sequence[Any], ids: RowIds) -> None:
    """Give the rows of new files the identity of rows that they replace."""
    start = 0
    for fragment in fragments:
        own = ids[start : start + fragment.physical_rows]
        fragment.row_id_meta = RowIdSequence(own.tolist()).to_inline_metadata()
        start += fragment.physical_rows


def replacement_steps(layout: Layout, *, in_two: bool) -> int:
    """How many operations the replacement of some rows takes."""
    return 2 if in_two and layout.row_count >= LARGE_ROWS else 1


def replacement(
    dataset: LanceDataset,
    layout: Layout,
    gone: Positions,
    added: Sequence[StagedFiles],
    *,
    in_two: bool,
) -> tuple[Any, ...]:
    """Mark the rows that go; the operations that bring this and the files.

    One operation is what Lance has for it, but it looks through all row ids of the table: 18 ms
    at a million. ``in_two`` costs another manifest instead, where that is cheaper.
    """
    kept, empty = marked(dataset, layout.addresses_at(gone))
    new = [fragment for files in added for fragment in files.fragments]
    if replacement_steps(layout, in_two=in_two) == 2:
        return _deleted(kept, empty), LanceOperation.Append(new)
    return (
        LanceOperation.Update(
            removed_fragment_ids=empty, updated_fragments=kept, new_fragments=new
        ),
    )


# -- removal ---------------------------------------------------------------------------------------
# Staging the deletion of rows whose places are known.
#
# Deleted rows are marked in a small file beside the data of their fragment. Where the rows lie is
# known already, from the check that they exist, so nothing of the table is read again.


WRITERS_MAX = 8
_PREDICATE = "rows by address"
"""Lance keeps the condition of a deletion for its own conflict rules, which are not used here."""


def deletion(dataset: LanceDataset, addresses: Addresses) -> Any:
    """Write what marks the rows at these addresses as deleted; the operation to commit."""
    return _deleted(*marked(dataset, addresses))


def without_files(fragments: Sequence[int]) -> Any:
    """The operation that takes whole fragments out of a table."""
    return _deleted([], list(fragments))


def _deleted(kept: list[Any], empty: list[int]) -> Any:
    return LanceOperation.Delete(
        updated_fragments=kept, deleted_fragment_ids=empty, predicate=_PREDICATE
    )


def marked(dataset: LanceDataset, addresses: Addresses) -> tuple[list[Any], list[int]]:
    """Write what marks rows as deleted: fragments that keep some, ids of those that keep none."""
    parts = list(by_fragment(addresses))

    def mark(part: tuple[int, Offsets]) -> Any:
        fragment_id, offsets = part
        fragment: Any = dataset.get_fragment(fragment_id)
        return fragment.delete_rows(offsets.tolist())

    if len(parts) > 1:
        with ThreadPoolExecutor(min(len(parts), WRITERS_MAX)) as pool:
            found = list(pool.map(mark, parts))
    else:
        found = [mark(part) for part in parts]
    kept = [fragment for fragment in found if fragment is not None]
    return kept, [p[0] for p, fragment in zip(parts, found, strict=True) if fragment is None]


def live_rows(
    opened: Callable[[], LanceDataset], fragment: Fragment, read: Callable[[str], bytes | None]
) -> LiveRows:
    """The rows of a fragment that are left: from the file that names the others.

    A file in the encoding for very many is left to Lance, which goes through the fragment.
    """
    name = fragment.deletion
    content = read(name) if name is not None and name.endswith(".arrow") else None
    if content is not None:
        rows = pa.ipc.open_file(pa.BufferReader(content)).read_all()
        gone = np.sort(rows.column(0).to_numpy().astype(np.int64))
        if fragment.physical_rows - len(gone) == fragment.live_rows:
            return LiveRows(fragment.physical_rows, gone=gone)
    dataset = opened()
    addresses = dataset.scanner(
        columns=[],
        with_row_address=True,
        fragments=[dataset.get_fragment(fragment.id)],
        scan_in_order=True,
    ).to_table()["_rowaddr"]
    offsets = addresses.to_numpy().astype(np.int64) & OFFSET_MASK
    return LiveRows(fragment.physical_rows, offsets=offsets)


def by_fragment(addresses: Addresses) -> Iterator[tuple[int, Offsets]]:
    """The fragments of some rows, each with the places of its rows, ascending."""
    ordered = np.sort(addresses)
    cuts = np.flatnonzero(np.diff(ordered >> OFFSET_BITS)) + 1
    for part in np.split(ordered, cuts):
        if len(part):
            yield int(part[0] >> OFFSET_BITS), part & OFFSET_MASK
