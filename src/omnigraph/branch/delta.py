"""What changed between two versions of a table, entity by entity.

    two versions -> files and deletions that differ -> ids -> images -> [delta]

Files never change and are shared between versions and branches. So two versions differ in files
that only one of them has, and in rows of a common file that only one of them hides. The ids of
those rows are read and nothing else is touched: the cost follows the difference, not the table, and
it does not matter whether one version descends from the other. A row that is on both sides is
compared value by value, because a rewrite is not always a change.

A delta keeps ids and positions. Images are read when somebody asks for them.
"""

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.branch.pace import Pace
from omnigraph.branch.types import ColumnPair, TypePair
from omnigraph.branch.values import Mask, same_mask
from omnigraph.errors import InternalError
from omnigraph.manifest.snapshot import TableChange
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.layout import Fragment, Layout, Offsets, Positions
from omnigraph.storage.tables import Table

Side = Literal["before", "after"]
Ops = npt.NDArray[np.int8]
Chosen = slice | Positions | Sequence[int]
"""Rows of a delta."""

SPARSE = 16
"""Fewer than one row in so many of a file are picked one by one."""
SMALL_FILE_ROWS = 4096
"""The ids of so few rows are read whole, and kept for the next reader."""
STRING_BYTES_MAX = (1 << 31) - 1


class Op(IntEnum):
    """What happened to an entity."""

    INSERT = 1
    UPDATE = 2
    DELETE = 3

    @property
    def word(self) -> str:
        return self.name.lower()


INSERT, UPDATE, DELETE = Op.INSERT, Op.UPDATE, Op.DELETE


@dataclass(frozen=True, kw_only=True)
class RowDelta:
    """The entities of one type that differ, sorted by the UTF-8 bytes of their ids."""

    types: TypePair
    tables: tuple[Table | None, Table | None]
    """The versions before and after; None while the type had no rows."""
    ids: pa.StringArray
    ops: Ops
    before: Positions
    """Where the image lies in the version before; -1 where there is none."""
    after: Positions

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def counts(self) -> TableChange:
        """How many of each kind."""
        inserted, updated, deleted = (int((self.ops == op).sum()) for op in Op)
        return TableChange(inserted=inserted, updated=updated, deleted=deleted)

    def rows(self, *ops: Op) -> Positions:
        """The rows of this delta with these operations, ascending."""
        return np.flatnonzero(np.isin(self.ops, [int(op) for op in ops]))

    def having(self, side: Side) -> Positions:
        """The rows of this delta that have an image on this side, ascending."""
        return np.flatnonzero(self._positions(side) >= 0)

    def select(self, chosen: Positions | Mask) -> RowDelta:
        """Some rows of this delta; to keep it sorted they must ascend."""
        rows = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return RowDelta(
            types=self.types,
            tables=self.tables,
            ids=self.ids.take(pa.array(rows)),
            ops=self.ops[rows],
            before=self.before[rows],
            after=self.after[rows],
        )

    def images(
        self, side: Side, rows: Chosen = slice(None), columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The entities as they are on one side, in this order; each of them must exist there.

        Columns have the names and types of that side's schema, by default all of them; blobs are
        bytes. Everything asked for is in memory at once: ask for pieces (see ``Pace``).
        """
        graph_type = self.types.before if side == "before" else self.types.after
        table = self.tables[side == "after"]
        chosen = rows if isinstance(rows, slice) else np.asarray(rows, np.int64)
        positions = self._positions(side)[chosen]
        if len(positions) and positions.min() < 0:
            raise InternalError(f"an entity of {self.types.table_key} has no image {side}")
        if graph_type is None:
            raise InternalError(f"{self.types.table_key} does not exist {side}")
        schema = table_schema(graph_type)
        names = list(columns) if columns is not None else schema.names
        wanted = pa.schema([schema.field(n) for n in names])
        if table is None or not len(positions):
            return wanted.empty_table()
        # Stored fields say more than ours do: the mark of the key.
        return pa.table(table.take(positions, names).columns, schema=wanted)

    def _positions(self, side: Side) -> Positions:
        return self.before if side == "before" else self.after


def table_delta(before: Table | None, after: Table | None, types: TypePair) -> RowDelta:
    """What changed from one version of a table to another."""
    old, new = _differing(before, after, whole=not types.comparable)
    old_ids, new_ids = _ids(before, old), _ids(after, new)
    found = _places(new_ids, old_ids)
    kept = np.flatnonzero(found >= 0)
    pairs = (old.positions[found[kept]], new.positions[kept])
    changed = ~_unchanged(types, before, after, *pairs)
    inserted = np.flatnonzero(found < 0)
    gone = np.ones(len(old_ids), np.bool_)
    gone[found[kept]] = False
    deleted = np.flatnonzero(gone)
    ids = _joined(
        [
            new_ids.take(pa.array(inserted)),
            new_ids.take(pa.array(kept[changed])),
            old_ids.take(pa.array(deleted)),
        ]
    )
    sizes = [len(inserted), int(changed.sum()), len(deleted)]
    absent = [np.full(n, -1, np.int64) for n in sizes]
    order = pc.sort_indices(ids).to_numpy()
    return RowDelta(
        types=types,
        tables=(before, after),
        ids=ids.take(pa.array(order)),
        ops=np.repeat(np.array(list(Op), np.int8), sizes)[order],
        before=np.concatenate([absent[0], pairs[0][changed], old.positions[deleted]])[order],
        after=np.concatenate([new.positions[inserted], pairs[1][changed], absent[2]])[order],
    )


def differs(column: ColumnPair, before: pa.Table, after: pa.Table) -> Mask:
    """Where a column of two images of the same entities differs, row by row.

    A column that exists on one side only differs where it has a value.
    """
    if column.before is None or column.after is None:
        only = before[column.before] if column.before is not None else after[column.name]
        return only.is_valid().to_numpy()
    return ~same_mask(before[column.before], after[column.after])


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows of one version that the other does not have as they are."""

    whole: tuple[Fragment, ...]
    """Files of which all rows count."""
    dense: tuple[tuple[Fragment, Positions], ...]
    """Files of which many rows count: places among their live rows."""
    sparse: Positions
    """Single rows of large files, by position."""
    positions: Positions
    """All of them, in the order of the three fields above."""


def _differing(before: Table | None, after: Table | None, *, whole: bool) -> tuple[_Rows, _Rows]:
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
    nothing = np.empty(0, np.int64)
    if was.deletion == now.deletion:
        return nothing, nothing
    shown = np.zeros((2, was.physical_rows), np.bool_)
    for seen, live in zip(shown, (before.offsets(was), after.offsets(now)), strict=True):
        seen[slice(None) if live is None else live] = True
    return np.flatnonzero(shown[0] & ~shown[1]), np.flatnonzero(shown[1] & ~shown[0])


def _rows(
    table: Table | None, whole: Sequence[Fragment], cut: dict[tuple[str, ...], Offsets]
) -> _Rows:
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
            live = layout.offsets(fragment)
            offsets = cut[fragment.files]
            places = offsets if live is None else np.searchsorted(live, offsets)
            if fragment.live_rows < max(SMALL_FILE_ROWS, len(places) * SPARSE):
                dense.append((fragment, places))
                positions.append(starts[fragment.files] + places)
            else:
                sparse.append(starts[fragment.files] + places)
    single = np.concatenate(sparse)
    return _Rows(
        whole=tuple(whole),
        dense=tuple(dense),
        sparse=single,
        positions=np.concatenate([*positions, single]),
    )


def _ids(table: Table | None, rows: _Rows) -> pa.StringArray:
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
    return _joined(chunks)


def _joined(chunks: Sequence[pa.Array]) -> pa.StringArray:
    if not chunks:
        return pa.array([], pa.string())
    # 32-bit offsets end at two gigabytes; only then are they given up.
    if sum(chunk.nbytes for chunk in chunks) > STRING_BYTES_MAX:
        chunks = [chunk.cast(pa.large_string()) for chunk in chunks]
    return pa.concat_arrays(chunks)


def _places(wanted: pa.StringArray, among: pa.StringArray) -> Positions:
    """Where each id stands in the other array; -1 if it does not."""
    if not len(among):
        return np.full(len(wanted), -1, np.int64)
    if wanted.type != among.type:
        wanted, among = wanted.cast(pa.large_string()), among.cast(pa.large_string())
    found = pc.index_in(wanted, value_set=among)
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _unchanged(
    types: TypePair, before: Table | None, after: Table | None, old: Positions, new: Positions
) -> Mask:
    """Which entities, each at a position before and one after, have the same values."""
    same = np.ones(len(old), np.bool_)
    if before is None or after is None or not len(old):
        return same
    plain = [c for c in types.columns if not c.is_blob]
    blobs = [c for c in types.columns if c.is_blob]
    _strike(same, plain, before, after, old, new)
    # Blobs lie apart from their rows and may be large: they are read only where they decide.
    _strike(same, blobs, before, after, old, new)
    return same


def _strike(
    same: Mask,
    columns: Sequence[ColumnPair],
    before: Table,
    after: Table,
    old: Positions,
    new: Positions,
) -> None:
    """Clear ``same`` where one of the columns differs."""
    left = np.flatnonzero(same)
    if not columns or not len(left):
        return
    left = left[np.argsort(new[left], kind="stable")]
    names_before = [c.before for c in columns if c.before is not None]
    names_after = [c.after for c in columns if c.after is not None]
    pace = Pace(len(left), blobs=columns[0].is_blob)
    for piece in pace:
        rows = left[piece]
        was = before.take(old[rows], names_before)
        now = after.take(new[rows], names_after)
        pace.weighed(was.nbytes + now.nbytes)
        for column in columns:
            same[rows] &= ~differs(column, was, now)
