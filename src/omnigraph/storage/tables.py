"""Tables: reading one pinned version.

    pin -> [table] -> rows, columns, positions

A ``Table`` is one version of one Lance dataset, opened by the exact path of its manifest
(``storage/staging.py``). It is immutable; what it keeps in memory is derived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.arrow.sets import among
from omnigraph.errors import InternalError
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import Fragment, Layout, Positions, data_files, index_folders
from omnigraph.storage.names import TableVersion
from omnigraph.storage.namespace import StagingNamespace, Succession
from omnigraph.storage.objects import Objects
from omnigraph.storage.rows import is_blob, read_rows
from omnigraph.storage.table_memory import ColumnCache, TableMemory

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false


FOUND_VALUES_MAX = 10_000
"""Up to so many values are looked up in an index; for more the whole column is read."""


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
        self.memory = TableMemory(name.path, dataset, cache, objects)
        self.succession = Succession()

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

    @property
    def layout(self) -> Layout:
        """Where the rows lie."""
        return self.memory.layout

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Whole columns, as far as possible from memory."""
        return self.memory.columns(names, self.row_count)

    def fragment_columns(
        self, fragments: Sequence[Fragment], names: Sequence[str]
    ) -> list[list[pa.ChunkedArray]]:
        """Columns of the live rows of some fragments, as far as possible from memory."""
        return self.memory.fragment_columns(fragments, names)

    def take(self, positions: Sequence[int] | Positions, columns: Sequence[str]) -> pa.Table:
        """Some rows by their positions, read from the files; blobs as plain bytes."""
        with translated(f"reading rows of {self.name.path}", referenced=True):
            return read_rows(self.dataset, self.layout, np.asarray(positions, np.int64), columns)

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

    def _fits_cache(self, column_count: int) -> bool:
        return self.memory.fits(self.row_count, column_count)

    def _empty(self, names: Sequence[str]) -> pa.Table:
        return pa.schema([self.dataset.schema.field(n) for n in names]).empty_table()
