"""Which rows two versions of a table do not share, by files and deletions alone.

    two versions -> [physical] -> rows of one version only -> ids -> delta

Only metadata is read here, and files that say what was deleted, where those differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.storage.layout import Fragment, Layout, Offsets, Positions, hidden
from omnigraph.storage.tables import Table

SPARSE = 16
"""Fewer than one row in so many of a file are picked one by one."""
SMALL_FILE_ROWS = 4096
"""The ids of so few rows are read whole, and kept for the next reader."""
STRING_BYTES_MAX = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True)
class DifferingRows:
    """Rows of one version that the other does not have as they are."""

    whole: tuple[Fragment, ...]
    """Files of which all rows count."""
    dense: tuple[tuple[Fragment, Positions], ...]
    """Files of which many rows count: places among their live rows."""
    sparse: Positions
    """Single rows of large files, by position."""
    positions: Positions
    """All of them, in the order of the three fields above."""


def differing_rows(
    before: Table | None, after: Table | None, *, whole: bool
) -> tuple[DifferingRows, DifferingRows]:
    """The rows that only the one, only the other version has; all of both if ``whole``."""
    old = {} if before is None else {f.files: f for f in before.layout.fragments}
    new = {} if after is None else {f.files: f for f in after.layout.fragments}
    shared = before is not None and after is not None and before.name.path == after.name.path
    if whole or not shared:
        common: set[tuple[str, ...]] = set()
    else:
        common = old.keys() & new.keys()
    sides: tuple[dict[tuple[str, ...], Offsets], ...] = ({}, {})
    if before is not None and after is not None:
        for files in common:
            hidden = _hidden(before.layout, old[files], after.layout, new[files])
            for side, offsets in zip(sides, hidden, strict=True):
                if len(offsets):
                    side[files] = offsets
    return (
        _rows(before, [f for f in old.values() if f.files not in common], sides[0]),
        _rows(after, [f for f in new.values() if f.files not in common], sides[1]),
    )


def _hidden(before: Layout, was: Fragment, after: Layout, now: Fragment) -> tuple[Offsets, Offsets]:
    """Rows of one file that only the one, only the other version shows."""
    if was.deletion == now.deletion:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first, second = before.live(was), after.live(now)
    return hidden(first, second), hidden(second, first)


def _rows(
    table: Table | None, whole: Sequence[Fragment], cut: dict[tuple[str, ...], Offsets]
) -> DifferingRows:
    positions: list[Positions] = [np.empty(0, np.int64)]
    dense: list[tuple[Fragment, Positions]] = []
    sparse: list[Positions] = [np.empty(0, np.int64)]
    if table is not None:
        layout = table.layout
        starts = {
            f.files: int(s) for f, s in zip(layout.fragments, layout.starts[:-1], strict=True)
        }
        positions += [starts[f.files] + np.arange(f.live_rows) for f in whole]
        for fragment in layout.fragments:
            if fragment.files not in cut:
                continue
            live = layout.live(fragment)
            offsets = cut[fragment.files]
            places = offsets if live is None else live.numbers(offsets)
            if fragment.live_rows < max(SMALL_FILE_ROWS, len(places) * SPARSE):
                dense.append((fragment, places))
                positions.append(starts[fragment.files] + places)
            else:
                sparse.append(starts[fragment.files] + places)
    single = np.concatenate(sparse)
    return DifferingRows(
        whole=tuple(whole),
        dense=tuple(dense),
        sparse=single,
        positions=np.concatenate([*positions, single]),
    )


def ids_of(table: Table | None, rows: DifferingRows) -> pa.StringArray:
    """The ids of the rows, in the order of their positions."""
    if table is None or not len(rows.positions):
        return pa.array([], pa.string())
    dense = [f for f, _ in rows.dense]
    columns = [part[0] for part in table.fragment_columns([*rows.whole, *dense], ["id"])]
    chunks = [chunk for column in columns[: len(rows.whole)] for chunk in column.chunks]
    for column, (_, places) in zip(columns[len(rows.whole) :], rows.dense, strict=True):
        chunks += column.take(pa.array(places)).chunks
    if len(rows.sparse):
        chunks += table.take(rows.sparse, ["id"])["id"].chunks
    return joined(chunks)


def joined(chunks: Sequence[pa.Array]) -> pa.StringArray:
    """All ids in one array."""
    if not chunks:
        return pa.array([], pa.string())
    # 32-bit offsets end at two gigabytes; only then are they given up.
    if sum(chunk.nbytes for chunk in chunks) > STRING_BYTES_MAX:
        chunks = [chunk.cast(pa.large_string()) for chunk in chunks]
    return pa.concat_arrays(chunks)
