"""Tables: reading one pinned version.

    pin -> [table] -> rows, columns, positions

A ``Table`` is one version of one Lance dataset, opened by the exact path of its manifest
(``storage/staging.py``). It is immutable; what it keeps in memory is derived.
"""

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.arrow.sets import among
from omnigraph.errors import InternalError
from omnigraph.storage.changes import (
    StagedFiles,
)
from omnigraph.storage.columns import ColumnCache, ColumnPart, few_chunks
from omnigraph.storage.faults import translated
from omnigraph.storage.files import data_files, index_folders
from omnigraph.storage.layout import Fragment, Layout, Offsets, Positions
from omnigraph.storage.names import TableVersion
from omnigraph.storage.objects import Objects
from omnigraph.storage.removal import live_offsets
from omnigraph.storage.rows import is_blob, read_rows
from omnigraph.storage.sessions import Succession

if TYPE_CHECKING:
    from omnigraph.storage.namespace import StagingNamespace

FOUND_VALUES_MAX = 10_000
"""Up to so many values are looked up in an index; for more the whole column is read."""
SEED_ROWS_MAX = 10_000
"""Rows of a write up to which its key columns are put into the column cache right away."""
REMOVED_KNOWN_MAX = 16
"""Up to so many removed rows are cut out of known columns; else columns are narrowed on demand."""


class Table:
    """One immutable version of one table."""

    def __init__(
        self,
        name: TableVersion,
        dataset: LanceDataset,
        space: StagingNamespace,
        cache: ColumnCache,
        objects: Objects | None = None,
        *,
        since: int | None = None,
    ) -> None:
        self.name = name
        self.since = name.version if since is None else since
        """The version that staging began with; what came after it no reader has seen."""
        self.dataset = dataset
        self.space = space
        self._cache = cache
        self._objects = objects
        self.succession = Succession()
        self._known: dict[str, pa.ChunkedArray] = {}
        """Whole columns of this version, while they are small enough to keep."""
        self._live: dict[int, Offsets] = {}
        """Live rows of fragments that have deletions."""

    def files_since(self, base: Table | None) -> list[str]:
        """Data and deletion files and folders of indexes that this version has and ``base`` has
        not, from the root."""
        known = base.files_since(None) if base is not None else []
        path, dataset = self.name.path, self.dataset
        files = {*data_files(path, dataset), *index_folders(path, dataset)}
        return sorted(files - set(known))

    @property
    def row_count(self) -> int:
        """Live rows; from metadata alone."""
        with translated(f"counting rows of {self.name.path}", referenced=True):
            return self.dataset.count_rows()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Rows in storage order, blobs as plain bytes."""
        with translated(f"scanning {self.name.path}", referenced=True):
            yield from self.dataset.scanner(
                columns=list(columns) if columns is not None else None,
                blob_handling="all_binary",
                scan_in_order=True,
            ).to_batches()

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Whole columns: those this version knows already, others through the cache of files."""
        missing = [name for name in names if name not in self._known]
        known = self._known | (self._read_columns(missing) if missing else {})
        if missing and self._fits_cache(len(missing)):
            self._known = known
        schema = pa.schema([self.dataset.schema.field(n) for n in names])
        return pa.table([known[name] for name in names], schema=schema)

    def follow(self, base: Table | None, gone: Positions, added: Sequence[StagedFiles]) -> None:
        """Know what ``base`` knew without the rows that went and with those that came.

        So a warm writer reads nothing of its own back: its next check costs the same whatever the
        number of fragments.
        """
        if base is None:
            return
        if len(gone):
            self._live = base._live | base.layout.live_without(gone)
        tables = [files.rows for files in added]
        if len(gone) > REMOVED_KNOWN_MAX or any(rows is None for rows in tables):
            return
        edges = [-1, *gone.tolist(), base.row_count]
        for name, column in base._known.items():
            chunks: list[pa.Array] = []
            for before, after in pairwise(edges):
                chunks += column.slice(before + 1, after - before - 1).chunks
            for rows in tables:
                chunks += rows[name].chunks if rows is not None else []
            self._known[name] = few_chunks([c for c in chunks if len(c)], column.type)

    def knowing(self, same: Table) -> Table:
        """Know what another handle of the same version knows."""
        self._known, self._live = dict(same._known), dict(same._live)
        return self

    def column_id(self, name: str) -> str:
        """What a column is, whatever it is called: another may have its name in other versions."""
        return self._column_ids.get(name, name)

    @cached_property
    def _column_ids(self) -> Mapping[str, str]:
        fields = self.dataset.lance_schema.fields()
        return {f.name(): f"{f.id()} {self.dataset.schema.field(f.name()).type}" for f in fields}

    @cached_property
    def layout(self) -> Layout:
        """Where the rows lie; from metadata alone, but for files that say what was deleted."""
        fragments = [Fragment.of(f.metadata) for f in self.dataset.get_fragments()]
        return Layout(fragments, self._live_offsets)

    def _live_offsets(self, fragment: Fragment) -> Offsets:
        if fragment.id not in self._live:
            with translated(f"reading deletions of {self.name.path}", referenced=True):
                self._live[fragment.id] = live_offsets(self.dataset, fragment, self._deletions)
        return self._live[fragment.id]

    def _deletions(self, name: str) -> bytes | None:
        if self._objects is None:
            return None
        return self._objects.get(f"{self.name.path}/{name}", referenced=True)

    def take(self, positions: Sequence[int] | Positions, columns: Sequence[str]) -> pa.Table:
        """Some rows by their positions, read from the files; blobs as plain bytes."""
        with translated(f"reading rows of {self.name.path}", referenced=True):
            places = np.asarray(positions, np.int64)
            return read_rows(self.dataset, places, columns, self.row_count)

    def positions(self, column: str, values: pa.Array) -> Positions:
        """Where ``column`` is one of ``values``, ascending."""
        if not self._fits_cache(1) and self._finds(column, values):
            rows = self.where(pc.field(column).isin(values), (column,))
            addresses = rows["_rowaddr"].to_numpy().astype(np.int64)
            return np.sort(self.layout.positions(addresses))
        found, start = [np.empty(0, np.int64)], 0
        for part in self._column_parts(column):
            mask = among(part, values)
            found.append(np.flatnonzero(mask.to_numpy(zero_copy_only=False)) + start)
            start += len(part)
        return np.concatenate(found)

    def positions_of(self, ids: pa.StringArray) -> Positions:
        """Where the rows stand that have these ids; every one must exist."""
        positions = self.positions("id", ids)
        if len(positions) != len(ids):
            raise InternalError(f"rows of {self.name.path} that are to be removed are not there")
        return positions

    def ids_at(self, positions: Positions) -> pa.Array | pa.ChunkedArray:
        """The ids of some rows."""
        if self._fits_cache(1):
            return self.columns(("id",)).column(0).take(pa.array(positions))
        return self.take(positions, ("id",)).column(0)

    def _finds(self, column: str, values: pa.Array) -> bool:
        """Whether an index finds these values, and sooner than a look through the column."""
        few = len(values) <= FOUND_VALUES_MAX and not values.null_count
        kind = self.dataset.schema.field(column).type
        exact = pa.types.is_string(kind) or pa.types.is_signed_integer(kind)
        return few and exact and self.takes_conditions and column in self.indexed_columns

    def _column_parts(self, column: str) -> Iterable[pa.Array]:
        """A column piece by piece: what is kept already, or streamed when it is too large."""
        if self._fits_cache(1):
            return self.columns((column,)).column(0).chunks
        return (batch.column(0) for batch in self.batches((column,)))

    def where(
        self, condition: pc.Expression, columns: Sequence[str], *, fragments: Sequence[int] = ()
    ) -> pa.Table:
        """Rows that Lance finds for a typed condition, with their addresses in ``_rowaddr``."""
        with translated(f"searching {self.name.path}", referenced=True):
            some = [self.dataset.get_fragment(f) for f in fragments]
            return self.dataset.scanner(
                columns=list(columns),
                filter=condition,
                fragments=some or None,
                with_row_address=True,
                scan_in_order=True,
            ).to_table()

    def among(self, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Rows whose ``column`` is one of ``values``, with their addresses in ``_rowaddr``."""
        if self.takes_conditions:
            return self.where(pc.field(column).isin(values), columns)
        positions = self.positions(column, values)
        addresses = pa.array(self.layout.addresses_at(positions))
        return self.take(positions, columns).append_column("_rowaddr", addresses)

    @cached_property
    def takes_conditions(self) -> bool:
        """Whether Lance accepts conditions: it refuses all on a table with lists of unsigned."""
        return not any(
            pa.types.is_list(field.type) and pa.types.is_unsigned_integer(field.type.value_type)
            for field in self.dataset.schema
        )

    @cached_property
    def indexed_columns(self) -> frozenset[str]:
        """Columns with an index that finds single values."""
        with translated(f"reading indexes of {self.name.path}", referenced=True):
            return frozenset(
                name
                for index in self.dataset.describe_indices()
                if index.index_type.upper() == "BTREE"
                for name in index.field_names
            )

    @property
    def reads(self) -> int:
        """Requests that reading this version has taken so far."""
        return int(self.dataset.io_stats_snapshot().read_iops)

    def fragment_columns(
        self, fragments: Sequence[Fragment], names: Sequence[str]
    ) -> list[list[pa.ChunkedArray]]:
        """Columns of the live rows of some fragments; only files not seen before are read."""
        with translated(f"reading columns of {self.name.path}", referenced=True):
            found = {f.id: [self._cached(f, name) for name in names] for f in fragments}
            missing = [f for f in fragments if any(c is None for c in found[f.id])]
            found |= self._read_fragments(missing, names)
        return [found[f.id] for f in fragments]

    def _cached(self, fragment: Fragment, name: str) -> pa.ChunkedArray | None:
        part = self._cache.get(fragment.files, self.column_id(name))
        return part.narrowed(self.layout.offsets(fragment)) if part is not None else None

    def _read_columns(self, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        parts = self.fragment_columns(self.layout.fragments, names)
        return {
            name: pa.chunked_array(
                [chunk for part in parts for chunk in part[i].chunks],
                self.dataset.schema.field(name).type,
            )
            for i, name in enumerate(names)
        }

    def lookup(self, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Rows whose ``column`` is one of ``values``, projected on ``columns``; blobs as bytes."""
        wanted = list(dict.fromkeys([column, *columns]))
        if any(is_blob(self.dataset.schema.field(name)) for name in columns):
            return self.take(self.positions(column, values), columns)
        if self._fits_cache(len(wanted)):
            table = self.columns(wanted)
            return table.filter(among(table[column], values)).select(list(columns))
        if self._finds(column, values):
            return self.where(pc.field(column).isin(values), columns).select(list(columns))
        found = [
            batch.filter(among(batch[column], values)).select(list(columns))
            for batch in self.batches(wanted)
        ]
        return pa.Table.from_batches(found) if found else self._empty(columns)

    def seed_cache(self, files: StagedFiles, names: Sequence[str]) -> None:
        """Remember key columns of rows this process wrote itself, so they are not read back."""
        if files.rows is None or files.rows.num_rows > SEED_ROWS_MAX:
            return
        row = 0
        for fragment in files.fragments:
            part = files.rows.slice(row, fragment.physical_rows)
            row += fragment.physical_rows
            key = tuple(file.path for file in fragment.files)
            for name in names:
                column = self.column_id(name)
                self._cache.put(key, column, ColumnPart(values=part[name], offsets=None))

    def _read_fragments(
        self, fragments: Sequence[Fragment], names: Sequence[str]
    ) -> dict[int, list[pa.ChunkedArray]]:
        if not fragments:
            return {}
        table = self.dataset.scanner(
            columns=list(names),
            fragments=[self.dataset.get_fragment(f.id) for f in fragments],
            scan_in_order=True,
        ).to_table()
        columns: dict[int, list[pa.ChunkedArray]] = {}
        row = 0
        for fragment in fragments:
            part = table.slice(row, fragment.live_rows)
            row += part.num_rows
            columns[fragment.id] = list(part.columns)
            offsets = self.layout.offsets(fragment)
            for name, column in zip(names, part.columns, strict=True):
                kept = ColumnPart(values=column, offsets=offsets)
                self._cache.put(fragment.files, self.column_id(name), kept)
        return columns

    def _fits_cache(self, column_count: int) -> bool:
        # 64 bytes a value is generous for keys; a table beyond half the cache is streamed instead.
        return self.row_count * column_count * 64 <= self._cache.bytes_max // 2

    def _empty(self, names: Sequence[str]) -> pa.Table:
        return pa.schema([self.dataset.schema.field(n) for n in names]).empty_table()
