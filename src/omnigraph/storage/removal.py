"""Staging the deletion of rows whose places are known.

Deleted rows are marked in a small file beside the data of their fragment. Where the rows lie is
known already, from the check that they exist, so nothing of the table is read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from lance import LanceDataset, LanceOperation

from omnigraph.storage.layout import OFFSET_BITS, OFFSET_MASK, Addresses

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
    """Write what marks rows as deleted: the fragments that keep some, the ids of those that do not."""
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


def _by_fragment(addresses: Addresses) -> Iterator[tuple[int, list[int]]]:
    ordered = np.sort(addresses)
    fragments = ordered >> OFFSET_BITS
    cuts = np.flatnonzero(np.diff(fragments)) + 1
    for part in np.split(ordered, cuts):
        if len(part):
            yield int(part[0] >> OFFSET_BITS), (part & OFFSET_MASK).tolist()
