"""What one version of a table keeps in memory: where its rows lie, and columns that were read.

    table -> [memory] -> cache of columns by file

All of it is derived: it changes what a read costs, never what it answers. Columns come from three
places. A version knows whole columns while they are small; a version that was just staged takes
them over from its base; and the cache has the columns of single files, which other versions share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import pyarrow as pa
from lance import LanceDataset

from omnigraph.storage.changes import StagedFiles
from omnigraph.storage.columns import ColumnCache, ColumnPart, few_chunks
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import Fragment, Layout, Offsets, Positions
from omnigraph.storage.objects import Objects
from omnigraph.storage.removal import live_offsets

SEED_ROWS_MAX = 10_000
"""Rows of a write up to which its key columns are put into the column cache right away."""
REMOVED_KNOWN_MAX = 16
"""Up to so many removed rows are cut out of known columns; else columns are narrowed on demand."""


class TableMemory:
    """The layout and the columns of one version, as far as they were asked for."""

    def __init__(
        self, path: str, dataset: LanceDataset, cache: ColumnCache, objects: Objects | None
    ) -> None:
        self._path = path
        self._dataset = dataset
        self._cache = cache
        self._objects = objects
        self._known: dict[str, pa.ChunkedArray] = {}
        """Whole columns of this version, while they are small enough to keep."""
        self._live: dict[int, Offsets] = {}
        """Live rows of fragments that have deletions."""

    # -- where rows lie --------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        """Where the rows lie; from metadata alone, but for files that say what was deleted."""
        fragments = [Fragment.of(f.metadata) for f in self._dataset.get_fragments()]
        return Layout(fragments, self._live_offsets)

    def _live_offsets(self, fragment: Fragment) -> Offsets:
        if fragment.id not in self._live:
            with translated(f"reading deletions of {self._path}", referenced=True):
                self._live[fragment.id] = live_offsets(self._dataset, fragment, self._deletions)
        return self._live[fragment.id]

    def _deletions(self, name: str) -> bytes | None:
        if self._objects is None:
            return None
        return self._objects.get(f"{self._path}/{name}", referenced=True)

    # -- columns ---------------------------------------------------------------------------------

    def fits(self, row_count: int, column_count: int) -> bool:
        """Whether whole columns are kept, and not streamed."""
        # 64 bytes a value is generous for keys; a table beyond half the cache is streamed instead.
        return row_count * column_count * 64 <= self._cache.bytes_max // 2

    def columns(self, names: Sequence[str], row_count: int) -> pa.Table:
        """Whole columns: those this version knows already, others through the cache of files."""
        missing = [name for name in names if name not in self._known]
        known = self._known | (self._read_columns(missing) if missing else {})
        if missing and self.fits(row_count, len(missing)):
            self._known = known
        schema = pa.schema([self._dataset.schema.field(n) for n in names])
        return pa.table([known[name] for name in names], schema=schema)

    def fragment_columns(
        self, fragments: Sequence[Fragment], names: Sequence[str]
    ) -> list[list[pa.ChunkedArray]]:
        """Columns of the live rows of some fragments; only files not seen before are read."""
        with translated(f"reading columns of {self._path}", referenced=True):
            found = {f.id: [self._cached(f, name) for name in names] for f in fragments}
            missing = [f for f in fragments if any(c is None for c in found[f.id])]
            found |= self._read_fragments(missing, names)
        return [found[f.id] for f in fragments]

    def column_id(self, name: str) -> str:
        """What a column is, whatever it is called: another may have its name in other versions."""
        return self._column_ids.get(name, name)

    @cached_property
    def _column_ids(self) -> Mapping[str, str]:
        fields = self._dataset.lance_schema.fields()
        return {f.name(): f"{f.id()} {self._dataset.schema.field(f.name()).type}" for f in fields}

    def _cached(self, fragment: Fragment, name: str) -> pa.ChunkedArray | None:
        part = self._cache.get(fragment.files, self.column_id(name))
        return part.narrowed(self.layout.offsets(fragment)) if part is not None else None

    def _read_columns(self, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        parts = self.fragment_columns(self.layout.fragments, names)
        return {
            name: pa.chunked_array(
                [chunk for part in parts for chunk in part[i].chunks],
                self._dataset.schema.field(name).type,
            )
            for i, name in enumerate(names)
        }

    def _read_fragments(
        self, fragments: Sequence[Fragment], names: Sequence[str]
    ) -> dict[int, list[pa.ChunkedArray]]:
        if not fragments:
            return {}
        table = self._dataset.scanner(
            columns=list(names),
            fragments=[self._dataset.get_fragment(f.id) for f in fragments],
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

    # -- staging ---------------------------------------------------------------------------------

    def follow(
        self, base: TableMemory, row_count: int, gone: Positions, added: Sequence[StagedFiles]
    ) -> None:
        """Know what ``base`` knew without the rows that went and with those that came.

        So a warm writer reads nothing of its own back: its next check costs the same whatever the
        number of fragments. ``row_count`` is that of the base.
        """
        if len(gone):
            self._live = base._live | base.layout.live_without(gone)
        tables = [files.rows for files in added]
        if len(gone) > REMOVED_KNOWN_MAX or any(rows is None for rows in tables):
            return
        edges = [-1, *gone.tolist(), row_count]
        for name, column in base._known.items():
            chunks: list[pa.Array] = []
            for before, after in pairwise(edges):
                chunks += column.slice(before + 1, after - before - 1).chunks
            for rows in tables:
                chunks += rows[name].chunks if rows is not None else []
            self._known[name] = few_chunks([c for c in chunks if len(c)], column.type)

    def share(self, same: TableMemory) -> None:
        """Know what another handle of the same version knows."""
        self._known, self._live = dict(same._known), dict(same._live)

    def seed(self, files: StagedFiles, names: Sequence[str]) -> None:
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
