"""Rows that Lance finds for a condition, and indexes that were asked before.

    table -> [searches] -> rows with their addresses

The first question to an index of a version costs 1.5 ms more than the next ones: what Lance knows
of an index, and of deletions, it keeps by version, and each write makes a new one. But a version
that only added files and marked rows has the index of the one before it; so that one is asked, and
what has gone since is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.storage.faults import translated
from omnigraph.storage.layout import Addresses, Fragment, Positions

IndexParts = Mapping[str, frozenset[int]]
"""The parts of the indexes of a column by their names, and the fragments that each covers."""


def search(
    dataset: LanceDataset,
    condition: pc.Expression,
    columns: Sequence[str],
    fragments: Sequence[int] = (),
) -> pa.Table:
    """Rows for which a typed condition holds, with their addresses in ``_rowaddr``."""
    with translated(f"searching {dataset.uri}", referenced=True):
        some = [dataset.get_fragment(f) for f in fragments]
        return dataset.scanner(
            columns=list(columns),
            filter=condition,
            fragments=some or None,
            with_row_address=True,
            scan_in_order=True,
        ).to_table()


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AskedIndex:
    """The indexes of a version that was asked, for itself and those that come after it."""

    dataset: LanceDataset
    indexes: Mapping[str, IndexParts]
    """By column."""
    files: Mapping[int, tuple[str, ...]]
    """The data files of its fragments."""

    def answers(self, column: str, index: IndexParts, known: Sequence[Fragment]) -> bool:
        """Whether a later version has the same index over the same files.

        Rows of a file only ever go: what is there now was there then.
        """
        return self.indexes.get(column) == index and all(
            self.files.get(fragment.id) == fragment.files for fragment in known
        )

    def find(self, column: str, values: pa.Array, known: Sequence[Fragment]) -> Addresses:
        """Rows of these fragments that have one of some values, as this version shows them."""
        condition = pc.field(column).isin(values)
        rows = search(self.dataset, condition, (), [fragment.id for fragment in known])
        return rows["_rowaddr"].to_numpy().astype(np.int64)


REMEMBERED_MAX = 10_000
"""Ids whose positions are remembered once they were looked up."""


class FoundRows:
    """Positions of single ids that were looked up in one version, and the ids at these positions.

    Looked up one by one: another thread may be adding to them.
    """

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}
        self._ids: dict[int, str] = {}

    def add(self, ids: Iterable[str], positions: Positions) -> None:
        """Know the positions of some ids, so that neither is read again."""
        if len(self._positions) < REMEMBERED_MAX:
            found = dict(zip(ids, positions.tolist(), strict=True))
            self._positions.update(found)
            self._ids.update({position: name for name, position in found.items()})

    def positions(self, ids: pa.Array) -> Positions | None:
        """Where rows with these ids stand, if all of them were looked up."""
        if len(ids) > len(self._positions):
            return None
        known = [self._positions.get(name) for name in ids.to_pylist()]
        return None if None in known else np.unique(np.array(known, np.int64))

    def ids(self, positions: Positions) -> pa.Array | None:
        """The ids of rows that were all found before."""
        if not len(positions) or len(positions) > len(self._ids):
            return None
        names = [self._ids.get(position) for position in positions.tolist()]
        return None if None in names else pa.array(names, pa.string())
