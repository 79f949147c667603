"""What changed between two versions of a table, entity by entity.

    two versions -> files and deletions that differ -> ids -> images -> [delta]

Files never change and are shared between versions and branches. So two versions differ in files
that only one of them has, and in rows of a common file that only one of them hides. The ids of
those rows are read and nothing else is touched: the cost follows the difference, not the table, and
it does not matter whether one version descends from the other. A row that is on both sides is
compared value by value, because a rewrite is not always a change.

A delta keeps ids and positions. Images are read when they are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import positions_in
from omnigraph.branch.pace import Pace, both
from omnigraph.branch.physical import DifferingRows, differing_rows, ids_of, joined
from omnigraph.branch.types import ColumnPair, ComparedTypes
from omnigraph.errors import InternalError
from omnigraph.manifest.snapshot import TableChange
from omnigraph.rules.table_delta import NO_IDS
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.migrate.column_changes import Made, column_changes
from omnigraph.schema.same_values import Mask, same_mask
from omnigraph.storage.layout import Fragment, Positions
from omnigraph.storage.tables import Table
from omnigraph.write.reshaping import TypePair
from omnigraph.write.schema_view import SchemaView

Side = Literal["before", "after"]
Ops = npt.NDArray[np.int8]
Chosen = slice | Positions | Sequence[int]
"""Rows of a delta."""


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

    types: ComparedTypes
    sides: tuple[TableSide, TableSide]
    """The versions before and after."""
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
        return replace(
            self,
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
        chosen = rows if isinstance(rows, slice) else np.asarray(rows, np.int64)
        positions = self._positions(side)[chosen]
        if len(positions) and positions.min() < 0:
            raise InternalError(f"an entity of {self.types.table_key} has no image {side}")
        if graph_type is None:
            raise InternalError(f"{self.types.table_key} does not exist {side}")
        schema = table_schema(graph_type)
        names = list(columns) if columns is not None else schema.names
        wanted = pa.schema([schema.field(n) for n in names])
        source = self.sides[side == "after"]
        if source.table is None or not len(positions):
            return wanted.empty_table()
        found = source.take(positions, names)
        # Stored fields say more than ours do: the mark of the key.
        return pa.table([found[name] for name in names], schema=wanted)

    def _positions(self, side: Side) -> Positions:
        return self.before if side == "before" else self.after


def table_delta(before: Table | None, after: Table | None, types: ComparedTypes) -> RowDelta:
    """What changed from one version of a table to another."""
    comparable = types.comparable and _same_columns(before, after, types)
    old, new = differing_rows(before, after, whole=not comparable)
    names = _plain_names(types)
    sides = both(
        lambda: TableSide(table=before, cached=cached_rows(before, old, names[0])),
        lambda: TableSide(table=after, cached=cached_rows(after, new, names[1])),
    )
    old_ids, new_ids = both(lambda: sides[0].ids(old), lambda: sides[1].ids(new))
    found = positions_in(new_ids, old_ids)
    stayed = np.flatnonzero(found >= 0)
    pairs = (old.positions[found[stayed]], new.positions[stayed])
    changed = ~_unchanged(types, sides, *pairs)
    inserted = np.flatnonzero(found < 0)
    gone = np.ones(len(old_ids), np.bool_)
    gone[found[stayed]] = False
    deleted = np.flatnonzero(gone)
    ids = joined(
        [
            new_ids.take(pa.array(inserted)),
            new_ids.take(pa.array(stayed[changed])),
            old_ids.take(pa.array(deleted)),
        ]
    )
    sizes = [len(inserted), int(changed.sum()), len(deleted)]
    absent = [np.full(n, -1, np.int64) for n in sizes]
    order = pc.sort_indices(ids).to_numpy()
    return RowDelta(
        types=types,
        sides=sides,
        ids=ids.take(pa.array(order)),
        ops=np.repeat(np.array(list(Op), np.int8), sizes)[order],
        before=np.concatenate([absent[0], pairs[0][changed], old.positions[deleted]])[order],
        after=np.concatenate([new.positions[inserted], pairs[1][changed], absent[2]])[order],
    )


def _same_columns(before: Table | None, after: Table | None, types: ComparedTypes) -> bool:
    """Whether properties are stored in the same columns in both versions.

    One that was dropped and came back, by a merge or a revert, has the number that it had and a
    column of its own, while the files of the rows are the same.
    """
    if before is None or after is None:
        return True
    return all(
        before.memory.column_id(c.before) == after.memory.column_id(c.after)
        for c in types.columns
        if c.before is not None and c.after is not None
    )


def differs(column: ColumnPair, before: pa.Table, after: pa.Table) -> Mask:
    """Where a column of two images of the same entities differs, row by row.

    A column that is new differs where it has a value; one that is gone is no change of a row.
    """
    if column.after is None:
        return np.zeros(max(before.num_rows, after.num_rows), np.bool_)
    if column.before is None:
        return after[column.after].is_valid().to_numpy()
    return ~same_mask(before[column.before], after[column.after])


@dataclass(frozen=True, kw_only=True)
class TableSide:
    """One version of a table, with the rows of it that are in memory."""

    table: Table | None
    """None while the type had no rows."""
    cached: CachedRows | None
    """The rows that differ, if they are few."""

    def ids(self, rows: DifferingRows) -> pa.StringArray:
        """The ids of the rows that differ."""
        return self.cached.ids_at(rows.positions) if self.cached else ids_of(self.table, rows)

    def take(self, positions: Positions, names: Sequence[str]) -> pa.Table:
        """Columns of rows: from memory where they are cached, else from the files."""
        if self.table is None:
            raise InternalError("rows of a table that does not exist")
        here = [n for n in names if self.cached and n in self.cached.rows.column_names]
        away = [n for n in names if n not in here]
        if self.cached is None or not here:
            return self.table.take(positions, away)
        found = self.cached.at(positions, here)
        if not away:
            return found
        read = self.table.take(positions, away)
        return pa.table({n: found[n] if n in here else read[n] for n in names})


def _plain_names(types: ComparedTypes) -> tuple[list[str], list[str]]:
    """The columns of each side that are read with the rows: the id and all but blobs."""
    plain = [c for c in types.columns if not c.is_blob]
    return (
        ["id", *(c.before for c in plain if c.before is not None)],
        ["id", *(c.after for c in plain if c.after is not None)],
    )


def _unchanged(
    types: ComparedTypes, sides: tuple[TableSide, TableSide], old: Positions, new: Positions
) -> Mask:
    """Which entities, each at a position before and one after, have the same values."""
    same = np.ones(len(old), np.bool_)
    stay = [c for c in types.columns if c.after is not None]
    _strike(same, [c for c in stay if not c.is_blob], sides, old, new)
    # Blobs lie apart from their rows and may be large: they are read only where they decide.
    _strike(same, [c for c in stay if c.is_blob], sides, old, new)
    return same


def _strike(
    same: Mask,
    columns: Sequence[ColumnPair],
    sides: tuple[TableSide, TableSide],
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
        was, now = (
            side.take(positions[rows], names)
            for side, positions, names in zip(
                sides, (old, new), (names_before, names_after), strict=True
            )
        )
        pace.weighed(was.nbytes + now.nbytes)
        for column in columns:
            same[rows] &= ~differs(column, was, now)


# -- refilled --------------------------------------------------------------------------------------
# Rows that get another value by a change of columns alone.
#
#     schema view, a type before and after -> [refilled] -> how many
#
# A commit counts what its difference has. Rows that a write names are counted by the validator;
# rows whose columns are filled or converted without being named are counted here.


def refilled(view: SchemaView, pair: TypePair, touched: pa.Array = NO_IDS) -> int:
    """How many rows change, but for those that are touched anyway."""
    made = column_changes(pair.before, pair.after, view.backfills).made
    if not made:
        return 0
    numbers = {p.name: p.id for p in pair.after.properties}
    stored = {p.id: p.name for p in pair.before.properties}
    columns = [(column, stored.get(numbers[column.field.name])) for column in made]
    if not len(touched) and any(was is None and not column.reads for column, was in columns):
        return view.row_count(pair.after.table_key)  # Every row gets it, so none is read.
    reads = dict.fromkeys(["id", *(n for c, was in columns for n in (*c.reads, was) if n)])
    count = 0
    for batch in view.stored_batches(pair.after, list(reads)):
        changed = np.zeros(batch.num_rows, np.bool_)
        for column, was in columns:
            changed |= _changed(column, was, batch)
        if len(touched):
            named = pc.is_in(batch.column("id"), value_set=touched)
            changed &= ~named.to_numpy(zero_copy_only=False)
        count += int(changed.sum())
    return count


def _changed(column: Made, was: str | None, batch: pa.RecordBatch) -> Mask:
    values = column.make(batch)
    if was is None:
        return values.is_valid().to_numpy(zero_copy_only=False)
    return ~same_mask(batch.column(was), values)


# -- cached rows -----------------------------------------------------------------------------------
# Images of a small difference, read once.
#
#     differing rows -> [cached rows] -> ids, comparison, images
#
# Most differences are a few rows. Their ids, their comparison and their images are then one read
# instead of three. A large difference is not cached: it is read piece by piece when it is needed.


ROWS_MAX = 65_536
BYTES_MAX = 16 << 20
WEIGHED_FROM = 512
SAMPLE_ROWS = 64
"""Of more rows than the former, so many are weighed before all are read."""


@dataclass(frozen=True, kw_only=True)
class CachedRows:
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


def cached_rows(
    table: Table | None, rows: DifferingRows, names: Sequence[str]
) -> CachedRows | None:
    """Some columns of the rows of one side, unless that is too much for memory."""
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
    return CachedRows(
        positions=rows.positions[order],
        places=order,
        rows=pa.table([_joined(parts, name) for name in names], names=list(names)),
    )


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
