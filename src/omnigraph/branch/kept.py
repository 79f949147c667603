"""Images of a small difference, read once.

    differing rows -> [kept] -> ids, comparison, images

Most differences are a few rows. Their ids, their comparison and their images are then one read
instead of three. A large difference is not kept: it is read piece by piece when it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.branch.physical import DifferingRows, joined
from omnigraph.storage.layout import Fragment, Positions
from omnigraph.storage.tables import Table

ROWS_MAX = 65_536
BYTES_MAX = 16 << 20
WEIGHED_FROM = 512
SAMPLE_ROWS = 64
"""Of more rows than the former, so many are weighed before all are read."""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Rows of one version of a table, without their blobs."""

    positions: Positions
    """Ascending."""
    places: Positions
    """Which of the rows stands at each of these positions."""
    rows: pa.Table

    def ids_at(self, positions: Positions) -> pa.StringArray:
        """The ids of the rows at these positions."""
        return joined(self.at(positions, ["id"])["id"].chunks)

    def at(self, positions: Positions, names: Sequence[str]) -> pa.Table:
        """The rows at these positions, in this order; all of them are here."""
        found = self.places[np.searchsorted(self.positions, positions)]
        return self.rows.select(list(names)).take(pa.array(found))


def keep(table: Table | None, rows: DifferingRows, names: Sequence[str]) -> Kept | None:
    """Some columns of the rows of one side, unless that is too much to keep."""
    total = len(rows.positions)
    if table is None or not 0 < total <= ROWS_MAX:
        return None
    if total > WEIGHED_FROM:
        sample = table.take(rows.positions[:SAMPLE_ROWS], names)
        if sample.nbytes * total > BYTES_MAX * SAMPLE_ROWS:
            return None
    single = rows.positions[sum(fragment.live_rows for fragment in rows.whole) :]
    parts = [_scanned(table, rows.whole, names)] if rows.whole else []
    if len(single):
        parts.append(table.take(single, names))
    order = np.argsort(rows.positions, kind="stable")
    return Kept(
        positions=rows.positions[order],
        places=order,
        rows=pa.table([_joined(parts, name) for name in names], names=list(names)),
    )


def take(table: Table, kept: Kept | None, positions: Positions, names: Sequence[str]) -> pa.Table:
    """Columns of rows: from memory where they are kept, else from the files."""
    here = [n for n in names if kept is not None and n in kept.rows.column_names]
    away = [n for n in names if n not in here]
    if kept is None or not here:
        return table.take(positions, away)
    found = kept.at(positions, here)
    if not away:
        return found
    read = table.take(positions, away)
    columns = {n: found[n] if n in here else read[n] for n in names}
    return pa.table(columns)


def _scanned(table: Table, fragments: Sequence[Fragment], names: Sequence[str]) -> pa.Table:
    """All rows of some files: reading them in a row costs less than picking them."""
    if table.takes_conditions:
        every = pc.field("id").is_valid()
        return table.where(every, names, fragments=[fragment.id for fragment in fragments])
    columns = table.fragment_columns(fragments, names)
    return pa.table(
        [
            pa.chunked_array([chunk for part in columns for chunk in part[i].chunks])
            for i in range(len(names))
        ],
        names=list(names),
    )


def _joined(parts: Sequence[pa.Table], name: str) -> pa.Array:
    return pa.concat_arrays([chunk for part in parts for chunk in part[name].chunks])
