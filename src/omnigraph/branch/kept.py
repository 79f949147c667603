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

from omnigraph.branch.pace import Pace
from omnigraph.storage.layout import Positions
from omnigraph.storage.tables import Table

ROWS_MAX = 4096
BYTES_MAX = 8 << 20


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Rows of one version of a table, without their blobs."""

    positions: Positions
    """Ascending."""
    rows: pa.Table

    def ids_at(self, positions: Positions) -> pa.StringArray:
        """The ids of the rows at these positions."""
        return _whole(self.at(positions, ["id"])["id"])

    def at(self, positions: Positions, names: Sequence[str]) -> pa.Table:
        """The rows at these positions, in this order; all of them are here."""
        places = np.searchsorted(self.positions, positions)
        return self.rows.select(list(names)).take(pa.array(places))


def keep(table: Table | None, positions: Positions, names: Sequence[str]) -> Kept | None:
    """Some columns of the rows at these positions, unless that is too much to keep."""
    if table is None or not 0 < len(positions) <= ROWS_MAX:
        return None
    ordered = np.sort(positions)
    pace = Pace(len(ordered))
    parts: list[pa.Table] = []
    weight = 0
    for piece in pace:
        parts.append(table.take(ordered[piece], names))
        weight += parts[-1].nbytes
        # What is still to come is judged by what is here.
        if weight * len(ordered) > BYTES_MAX * piece.stop:
            return None
        pace.weighed(parts[-1].nbytes)
    return Kept(positions=ordered, rows=pa.concat_tables(parts).combine_chunks())


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


def _whole(column: pa.ChunkedArray) -> pa.StringArray:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
