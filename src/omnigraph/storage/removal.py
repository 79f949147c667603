"""Staging the deletion of rows whose places are known.

Deleted rows are marked in a small file beside the data of their fragment. Where the rows lie is
known already, from the check that they exist, so nothing of the table is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceOperation

from omnigraph.storage.layout import OFFSET_BITS, OFFSET_MASK, Addresses, Fragment, Offsets

WRITERS_MAX = 8
_PREDICATE = "rows by address"
"""Lance keeps the condition of a deletion for its own conflict rules, which are not used here."""


def deletion(dataset: LanceDataset, addresses: Addresses) -> Any:
    """Write what marks the rows at these addresses as deleted; the operation to commit."""
    kept, empty = marked(dataset, addresses)
    return LanceOperation.Delete(
        updated_fragments=kept, deleted_fragment_ids=empty, predicate=_PREDICATE
    )


def marked(dataset: LanceDataset, addresses: Addresses) -> tuple[list[Any], list[int]]:
    """Write what marks rows as deleted: fragments that keep some, ids of those that keep none."""
    parts = list(_by_fragment(addresses))

    def mark(part: tuple[int, list[int]]) -> Any:
        fragment_id, offsets = part
        fragment: Any = dataset.get_fragment(fragment_id)
        return fragment.delete_rows(offsets)

    if len(parts) > 1:
        with ThreadPoolExecutor(min(len(parts), WRITERS_MAX)) as pool:
            found = list(pool.map(mark, parts))
    else:
        found = [mark(part) for part in parts]
    kept = [fragment for fragment in found if fragment is not None]
    return kept, [p[0] for p, fragment in zip(parts, found, strict=True) if fragment is None]


def live_offsets(
    dataset: LanceDataset, fragment: Fragment, read: Callable[[str], bytes | None]
) -> Offsets:
    """The rows of a fragment that are left: from the file that names the others.

    A file in the encoding for very many is left to Lance, which goes through the fragment.
    """
    name = fragment.deletion
    content = read(name) if name is not None and name.endswith(".arrow") else None
    if content is not None:
        rows = pa.ipc.open_file(pa.BufferReader(content)).read_all()
        gone = rows.column(0).to_numpy().astype(np.int64)
        if fragment.physical_rows - len(gone) == fragment.live_rows:
            return np.delete(np.arange(fragment.physical_rows, dtype=np.int64), gone)
    addresses = dataset.scanner(
        columns=[],
        with_row_address=True,
        fragments=[dataset.get_fragment(fragment.id)],
        scan_in_order=True,
    ).to_table()["_rowaddr"]
    return addresses.to_numpy().astype(np.int64) & OFFSET_MASK


def _by_fragment(addresses: Addresses) -> Iterator[tuple[int, list[int]]]:
    ordered = np.sort(addresses)
    fragments = ordered >> OFFSET_BITS
    cuts = np.flatnonzero(np.diff(fragments)) + 1
    for part in np.split(ordered, cuts):
        if len(part):
            yield int(part[0] >> OFFSET_BITS), (part & OFFSET_MASK).tolist()
