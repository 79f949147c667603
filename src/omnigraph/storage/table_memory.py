"""What one version of a table keeps in memory: where its rows lie, and columns that were read.

    table -> [memory] -> cache of columns by file

All of it is derived: it changes what a read costs, never what it answers. Columns come from three
places. A version knows whole columns while they are small; a version that was just staged takes
them over from its base; and the cache has the columns of single files, which other versions share.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Lock

import numpy as np
import pyarrow as pa

from omnigraph.storage.changes import StagedFiles
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import Fragment, Layout, LiveRows, Positions, hidden, path_of
from omnigraph.storage.objects import Objects
from omnigraph.storage.opened import OpenedVersion
from omnigraph.storage.row_changes import live_rows
from omnigraph.storage.searches import AskedIndex

SEED_ROWS_MAX = 10_000
"""Rows of a write up to which its key columns are put into the column cache right away."""
REMOVED_KNOWN_MAX = 16
"""Up to so many removed rows are cut out of known columns; else columns are narrowed on demand."""


class TableMemory:
    """The layout and the columns of one version, as far as they were asked for."""

    def __init__(
        self, path: str, opened: OpenedVersion, cache: ColumnCache, objects: Objects | None
    ) -> None:
        self._path = path
        self._opened = opened
        self._cache = cache
        self._objects = objects
        self._known: dict[str, pa.ChunkedArray] = {}
        """Whole columns of this version, while they are small enough to keep."""
        self.asked: AskedIndex | None = None
        """What indexes are asked through: this version, or one that it came from."""
        self._live: dict[int, LiveRows] = {}
        """Live rows of fragments that have deletions."""
        self._older: tuple[Fragment, ...] = ()
        """The fragments that this version has from its base, if it only gained some."""
        self._names: Mapping[str, str] | None = None
        """What columns are, by their names; the same after any change of rows."""
        self._deleted: dict[str, bytes] = {}

    # -- where rows lie --------------------------------------------------------------------------

    @cached_property
    def layout(self) -> Layout:
        """Where the rows lie; from metadata alone, but for files that say what was deleted."""
        newer = self._opened.facts.get_fragments()[len(self._older) :]
        fragments = (*self._older, *(Fragment.of(f.metadata) for f in newer))
        return Layout(fragments, self._live_rows)

    def _live_rows(self, fragment: Fragment) -> LiveRows:
        if fragment.id not in self._live:
            with translated(f"reading deletions of {self._path}", referenced=True):
                self._live[fragment.id] = live_rows(
                    lambda: self._opened.dataset, fragment, self.deletions
                )
        return self._live[fragment.id]

    def deletions(self, name: str) -> bytes | None:
        """A file that says what was deleted."""
        if name not in self._deleted and self._objects is not None:
            content = self._objects.get(f"{self._path}/{name}", referenced=True)
            self._deleted[name] = content or b""
        return self._deleted.get(name)

    def know_deletions(self, files: Mapping[str, bytes]) -> None:
        """Files that say what was deleted, which were made here."""
        self._deleted.update(files)

    # -- columns ---------------------------------------------------------------------------------

    def fits(self, row_count: int, column_count: int) -> bool:
        """Whether whole columns are kept, and not streamed."""
        # 64 bytes a value is generous for keys; a table beyond half the cache is streamed instead.
        return row_count * column_count * 64 <= self._cache.bytes_max // 2

    def knows(self, name: str) -> bool:
        """Whether a whole column is in memory."""
        return name in self._known

    def rents(self, column: str, price: int, reading: int) -> bool:
        """Whether one more lookup, at this price, still costs less than reading the column."""
        return self._cache.rents(f"{self._path} {column}", price, reading)

    def columns(self, names: Sequence[str], row_count: int) -> pa.Table:
        """Whole columns: those this version knows already, others through the cache of files."""
        missing = [name for name in names if name not in self._known]
        known = self._known | (self._read_columns(missing) if missing else {})
        if missing and self.fits(row_count, len(missing)):
            self._known = known
        schema = pa.schema([self._opened.facts.schema.field(n) for n in names])
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
        if self._names is None:
            facts = self._opened.facts
            schema, fields = facts.schema, facts.lance_schema.fields()
            self._names = {f.name(): f"{f.id()} {schema.field(f.name()).type}" for f in fields}
        return self._names.get(name, name)

    def _cached(self, fragment: Fragment, name: str) -> pa.ChunkedArray | None:
        part = self._cache.get(fragment.files, self.column_id(name))
        return part.narrowed(self.layout.live(fragment)) if part is not None else None

    def _read_columns(self, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        parts = self.fragment_columns(self.layout.fragments, names)
        return {
            name: pa.chunked_array(
                [chunk for part in parts for chunk in part[i].chunks],
                self._opened.facts.schema.field(name).type,
            )
            for i, name in enumerate(names)
        }

    def _read_fragments(
        self, fragments: Sequence[Fragment], names: Sequence[str]
    ) -> dict[int, list[pa.ChunkedArray]]:
        if not fragments:
            return {}
        dataset = self._opened.dataset
        table = dataset.scanner(
            columns=list(names),
            fragments=[dataset.get_fragment(f.id) for f in fragments],
            scan_in_order=True,
        ).to_table()
        columns: dict[int, list[pa.ChunkedArray]] = {}
        row = 0
        for fragment in fragments:
            part = table.slice(row, fragment.live_rows)
            row += part.num_rows
            columns[fragment.id] = list(part.columns)
            live = self.layout.live(fragment)
            for name, column in zip(names, part.columns, strict=True):
                kept = ColumnPart(values=column, live=live)
                self._cache.put(fragment.files, self.column_id(name), kept)
        return columns

    # -- staging ---------------------------------------------------------------------------------

    def follow(self, base: TableMemory, gone: Positions, added: Sequence[StagedFiles]) -> None:
        """Know what ``base`` knew without the rows that went and with those that came.

        So a warm writer reads nothing of its own back: its next check costs the same whatever the
        number of fragments.
        """
        self.asked, self._names = base.asked, base._names
        if len(gone):
            self._live = base._live | base.layout.live_without(gone)
        elif "layout" in vars(base):
            self._older = base.layout.fragments
            self._live = dict(base._live)
        tables = [files.rows for files in added]
        if len(gone) > REMOVED_KNOWN_MAX or any(rows is None for rows in tables):
            return
        for name, column in base._known.items():
            chunks = without_rows(column, gone).chunks
            for rows in tables:
                chunks += rows[name].chunks if rows is not None else []
            self._known[name] = few_chunks([c for c in chunks if len(c)], column.type)

    def follow_files(self, base: TableMemory) -> None:
        """Know what ``base`` knew of the same rows in the same order, which lie in other files."""
        self._known, self._names = dict(base._known), base._names
        self.asked = base.asked

    def share(self, same: TableMemory) -> None:
        """Know what another handle of the same version knows."""
        self._known, self._live = dict(same._known), dict(same._live)
        self._names, self._older = same._names, same._older
        self.asked = same.asked

    def seed(self, files: StagedFiles, names: Sequence[str]) -> None:
        """Remember key columns of rows this process wrote itself, so they are not read back."""
        if files.rows is None or files.rows.num_rows > SEED_ROWS_MAX:
            return
        row = 0
        for fragment in files.fragments:
            part = files.rows.slice(row, fragment.physical_rows)
            row += fragment.physical_rows
            key = tuple(path_of(file) for file in fragment.files)
            for name in names:
                column = self.column_id(name)
                self._cache.put(key, column, ColumnPart(values=part[name], live=None))


# -- columns ---------------------------------------------------------------------------------------
# A bounded cache of table columns, kept per immutable file.
#
# Checks and queries ask the same columns again and again. Files never change once written, so a
# column of a fragment can be kept under the names of its files: after a commit only new files are
# read. A deletion changes no file either, it only hides rows: what was read before it still serves,
# narrowed to the rows that are left. The cache changes cost, never an answer.


PART_BYTES = 512
"""What keeping a part takes beside its values: there may be very many of one row."""

KNOWN_CHUNKS_MAX = 64
LOOKED_AT_MAX = 10_000
SYSTEM_COLUMNS = ("id", "src", "dst")
WHOLE_ROWS_MAX = 16
"""All columns of so small a file are kept when it is written: it will be joined with others."""

FilesKey = tuple[str, ...]
"""The data files of a fragment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPart:
    """A column of one fragment as it was read."""

    values: pa.ChunkedArray
    live: LiveRows | None
    """The rows it has; None for all rows of the files."""

    @property
    def nbytes(self) -> int:
        own = PART_BYTES + self.values.nbytes
        return own if self.live is None else own + self.live.gone.nbytes

    def narrowed(self, live: LiveRows | None) -> pa.ChunkedArray | None:
        """The values of the live rows; None if some of them were never read."""
        if self.live is not None and not self.live.has(live):
            return None
        gone = hidden(self.live, live)
        if not len(gone):
            return self.values
        return without_rows(self.values, gone if self.live is None else self.live.numbers(gone))


class ColumnCache:
    """Columns by fragment, least recently used out first."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._entries: OrderedDict[tuple[FilesKey, str], ColumnPart] = OrderedDict()
        """By files and what the column is: its name may change while its files stay."""
        self._bytes = 0
        self._looked_at: set[tuple[FilesKey, str]] = set()
        self._rents: dict[str, int] = {}
        """What lookups have cost so far, by column."""
        self._lock = Lock()

    def get(self, files: FilesKey, column: str) -> ColumnPart | None:
        """The column as it was read, if it is here."""
        with self._lock:
            entry = self._entries.get((files, column))
            if entry is not None:
                self._entries.move_to_end((files, column))
            return entry

    def rents(self, column: str, price: int, reading: int) -> bool:
        """Whether lookups, with one more at this price, have cost less than reading would."""
        with self._lock:
            cost = self._rents.get(column, 0) + price
            if cost < reading:
                self._rents[column] = cost
            return cost < reading

    def is_new(self, files: FilesKey, column: str) -> bool:
        """Whether the layout of a column in these files is asked for the first time."""
        with self._lock:
            if (files, column) in self._looked_at or len(self._looked_at) >= LOOKED_AT_MAX:
                return False
            self._looked_at.add((files, column))
            return True

    def put(self, files: FilesKey, column: str, part: ColumnPart) -> None:
        """Keep a column; makes room by forgetting what was not used for longest."""
        size = part.nbytes
        if size > self.bytes_max:
            return
        with self._lock:
            old = self._entries.pop((files, column), None)
            self._bytes -= old.nbytes if old is not None else 0
            self._entries[files, column] = part
            self._bytes += size
            while self._bytes > self.bytes_max:
                _, dropped = self._entries.popitem(last=False)
                self._bytes -= dropped.nbytes


def seeded_columns(rows: pa.Table | None, schema: pa.Schema) -> list[str]:
    """Columns of new files that are kept right away: those of checks, all of small files."""
    small = rows is not None and rows.num_rows <= WHOLE_ROWS_MAX
    return [
        field.name
        for field in schema
        if field.name in SYSTEM_COLUMNS or (small and field.type != pa.large_binary())
    ]


def without_rows(column: pa.ChunkedArray, gone: Positions) -> pa.ChunkedArray:
    """A column without some of its rows; nothing is copied where those are few."""
    if len(gone) > REMOVED_KNOWN_MAX:
        return column.take(pa.array(np.delete(np.arange(len(column)), gone)))
    chunks: list[pa.Array] = []
    for before, after in pairwise([-1, *gone.tolist(), len(column)]):
        chunks += column.slice(before + 1, after - before - 1).chunks
    return few_chunks(chunks, column.type)


def few_chunks(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.ChunkedArray:
    """The chunks as one column, joined when there are too many of them."""
    column = pa.chunked_array(chunks, kind)
    if column.num_chunks > KNOWN_CHUNKS_MAX:
        return pa.chunked_array([column.combine_chunks()], kind)
    return column
