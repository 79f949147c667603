"""Numbers for node ids.

    id text -> [vertex number] -> adjacency, frames

A space belongs to one node table in all its versions and branches: an id gets its number when it is
first seen and keeps it, so adjacency in numbers survives commits that change nodes. Numbers say
nothing about existence; ``PinnedVertices`` maps them to the rows of one version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import RLock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.query.topology.id_table import IdTable
from omnigraph.query.topology.saved import Dictionary, SavedVertices, TopologyFiles
from omnigraph.storage.layout import Fragment, Layout, LiveRows, Positions
from omnigraph.storage.tables import Table

Vertices = npt.NDArray[np.int64]
NOTHING = -1
FEW = 16
"""Up to so many ids are looked up one by one; more go through one vectorised pass."""
SCANNED_MAX = 2_000
"""More ids than this are worth a hash table at once."""
RECENT_MAX = 16_000
"""So many new ids are kept in a dict before the table of all is made anew."""
ASKED_MAX = 100_000
GROUP_ROWS = 1 << 20
"""Rows whose ids are in memory as texts at once, while they get their numbers."""
SCANS_PER_TABLE = 8
"""A hash table of all ids costs about as much as so many scans of them."""


class VertexSpace:
    """An append-only dictionary of the ids of one node table."""

    def __init__(self, table_path: str = "", files: TopologyFiles | None = None) -> None:
        self._path = table_path
        self._files = files
        self._dictionary: Dictionary | None = None
        """What of it is on disk."""
        self._joined: pa.StringArray = _NO_IDS
        self._chunks: list[pa.StringArray] = []
        """Ids that came after the joined ones."""
        self._count = 0
        self._table = IdTable.build(_NO_IDS)
        """The first ids by hash; those that came later are in ``_recent``, or in neither."""
        self._recent: dict[str, int] = {}
        self._scans = 0
        self._parts: dict[tuple[str, ...], _VertexPart] = {}
        self._asked: dict[str, int] = {}
        """Single ids that were asked for lately; a number never changes."""
        self._lock = RLock()

    def __len__(self) -> int:
        return self._count

    @property
    def ids(self) -> pa.StringArray:
        """All ids in the order of their numbers."""
        with self._lock:
            if self._chunks:
                whole = len(self._chunks) == 1 and not len(self._joined)
                self._joined = (
                    self._chunks[0] if whole else pa.concat_arrays([self._joined, *self._chunks])
                )
                self._chunks = []
            return self._joined

    def text(self, numbers: Vertices) -> pa.StringArray:
        """Ids of numbers; null for ``NOTHING``."""
        if len(numbers) and numbers.min() < 0:
            return self.ids.take(pa.array(numbers, mask=numbers < 0))
        return self.ids.take(pa.array(numbers))

    def copied(self, numbers: Sequence[int]) -> pa.StringArray:
        """The same for a few that are not ``NOTHING``: new ids need not be joined to the others."""
        if max(numbers) < len(self._joined):
            joined = self._joined
            return pa.concat_arrays([joined.slice(number, 1) for number in numbers])
        with self._lock:
            chunks = [self._joined, *self._chunks]
        parts: list[pa.StringArray] = []
        for number in numbers:
            place = number
            for chunk in chunks:
                if place < len(chunk):
                    parts.append(chunk.slice(place, 1))
                    break
                place -= len(chunk)
        return pa.concat_arrays(parts)

    def number_of(self, text: str) -> int:
        """The number of one id; ``NOTHING`` if it was never seen."""
        known = self._asked.get(text)
        if known is not None:
            return known
        with self._lock:
            table, recent = self._table, self._recent
            covered = len(table) + len(recent) >= self._count
        if covered:
            number = table.find_one(text)
            number = recent.get(text, NOTHING) if number < 0 else number
        else:
            number = int(self.find(pa.array([text], pa.string()))[0])
        if number >= 0:
            if len(self._asked) >= ASKED_MAX:
                self._asked.clear()
            self._asked[text] = number
        return number

    def find(self, ids: pa.StringArray) -> Vertices:
        """Numbers of ids; ``NOTHING`` for those never seen."""
        with self._lock:
            if len(self._table) + len(self._recent) < self._count:
                if len(ids) <= SCANNED_MAX and self._scans < SCANS_PER_TABLE:
                    self._scans += 1
                    return self._scan(ids)
                self._table, self._recent, self._scans = IdTable.build(self.ids), {}, 0
            table, recent = self._table, self._recent
        # Outside the lock: the two ends of an edge table are looked up side by side.
        if len(ids) <= FEW:
            texts = ids.to_pylist()
            return np.array(
                [recent.get(x, NOTHING) if (n := table.find_one(x)) < 0 else n for x in texts],
                np.int64,
            )
        found = table.find(ids)
        if recent:
            for row in np.flatnonzero(found < 0).tolist():
                found[row] = recent.get(ids[row].as_py(), NOTHING)
        return found

    def _scan(self, ids: pa.StringArray) -> Vertices:
        if len(ids) == 1:
            first = pc.index(self.ids, ids[0]).as_py()
            return np.array([first], np.int64)
        places = _numbers(pc.index_in(self.ids, value_set=ids))
        found = np.full(len(ids), NOTHING, np.int64)
        hits = np.flatnonzero(places >= 0)
        found[places[hits]] = hits
        # The same id asked twice is found at its first place only.
        first = _numbers(pc.index_in(ids, value_set=ids))
        return found[first]

    def intern(self, ids: pa.StringArray) -> Vertices:
        """Numbers of ids, new ones for those never seen."""
        numbers = self.find(ids)
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            names = pc.unique(ids.take(pa.array(unknown)))
            with self._lock:
                # Another thread may have seen them meanwhile.
                seen = self.find(names)
                self._append(names.filter(pa.array(seen < 0)))
            numbers[unknown] = self.find(ids.take(pa.array(unknown)))
        return numbers

    def _append(self, ids: pa.StringArray) -> Vertices:
        start = self._count
        self._chunks.append(ids)
        self._count += len(ids)
        known = len(self._table) + len(self._recent) == start and start > 0
        if known and len(ids) + len(self._recent) <= RECENT_MAX:
            self._recent.update(zip(ids.to_pylist(), range(start, self._count), strict=True))
        return np.arange(start, self._count, dtype=np.int64)

    # -- rows of a version -----------------------------------------------------------------------

    def rows(self, table: Table) -> PinnedVertices:
        """Which row of this version each number has."""
        with self._lock:
            self.load(table)
            layout = table.layout
            missing = [f for f in layout.fragments if not self._covers(f, layout)]
            # Ids of one version are unique, so the first version needs no search for repeats.
            fresh = self._count == 0
            for group in in_groups(missing):
                self._read(table, group, fresh=fresh)
            return self._pinned(layout)

    def covers(self, table: Table) -> bool:
        """Whether the numbers of all rows are known, so that nothing has to be read for them."""
        with self._lock:
            self.load(table)
            return all(self._covers(f, table.layout) for f in table.layout.fragments)

    def _pinned(self, layout: Layout) -> PinnedVertices:
        parts = [self._parts[f.files] for f in layout.fragments]
        starts = layout.starts
        if all(
            part.start == starts[i] and layout.fragments[i].live_rows == part.count
            for i, part in enumerate(parts)
        ):
            return PinnedVertices.same(layout.row_count)
        numbers = [p.narrowed(layout.live(f)) for p, f in zip(parts, layout.fragments, strict=True)]
        return PinnedVertices.of(np.concatenate(numbers), self._count)

    def _read(self, table: Table, fragments: Sequence[Fragment], *, fresh: bool) -> None:
        columns = [ids for (ids,) in table.fragment_columns(fragments, ["id"])]
        joined = _joined(pa.chunked_array([c for ids in columns for c in ids.chunks], pa.string()))
        numbers = self._append(joined) if fresh else self.intern(joined)
        start = 0
        for fragment, ids in zip(fragments, columns, strict=True):
            own = numbers[start : start + len(ids)]
            start += len(ids)
            live = table.layout.live(fragment)
            self._parts[fragment.files] = _VertexPart.of(fragment, own, live)

    def _covers(self, fragment: Fragment, layout: Layout) -> bool:
        part = self._parts.get(fragment.files)
        return part is not None and part.has(layout.live(fragment))

    # -- on disk ---------------------------------------------------------------------------------

    def load(self, table: Table) -> None:
        """Take the numbers that another process has saved, as long as there are none here."""
        with self._lock:
            if self._files is None or self._count or self._path != table.name.path:
                return
            found = self._files.load_vertices(self._path, table.layout)
            if found is None:
                return
            self._adopt(found)
            for fragment, start in zip(found.layout.fragments, found.starts, strict=True):
                live = found.layout.live(fragment)
                self._parts[fragment.files] = _VertexPart(
                    fragment=fragment, count=fragment.live_rows, start=start, live=live
                )

    def saved(self) -> Dictionary | None:
        """The dictionary on disk that has all these numbers; it is written if there is none."""
        with self._lock:
            complete = self._dictionary is not None and self._dictionary.count == self._count
            if self._files is None or complete:
                return self._dictionary
            if len(self._table) < self._count:
                self._table, self._recent, self._scans = IdTable.build(self.ids), {}, 0
            numbered = {
                part.fragment: (part.start, part.live)
                for part in self._parts.values()
                if part.start is not None
            }
            found = self._files.save_vertices(self._path, self._table, numbered, self._dictionary)
            if found is None:
                return None
            self._adopt(found)
            return self._dictionary

    @property
    def dictionary(self) -> Dictionary | None:
        """Where the first numbers were taken from or saved to."""
        return self._dictionary

    def _adopt(self, found: SavedVertices) -> None:
        """Have the same ids as before, or the first ones, from a file."""
        self._dictionary = found.dictionary
        self._table, self._recent = found.table, {}
        self._joined, self._chunks, self._count = found.table.ids, [], len(found.table)


def in_groups(fragments: Sequence[Fragment]) -> Iterator[list[Fragment]]:
    """Fragments of so many rows that a group of them may be in memory."""
    group: list[Fragment] = []
    rows = 0
    for fragment in fragments:
        if group and rows + fragment.live_rows > GROUP_ROWS:
            yield group
            group, rows = [], 0
        group.append(fragment)
        rows += fragment.live_rows
    if group:
        yield group


@dataclass(frozen=True, slots=True, kw_only=True)
class _VertexPart:
    """Numbers of the rows of one fragment, as far as they were live when it was read."""

    fragment: Fragment
    count: int
    live: LiveRows | None
    start: int | None = None
    """The first number, if the others follow it one by one."""
    numbers: Vertices | None = None
    """The numbers, if they do not."""

    @staticmethod
    def of(fragment: Fragment, numbers: Vertices, live: LiveRows | None) -> _VertexPart:
        count = len(numbers)
        if count and _is_range(numbers):
            start = int(numbers[0])
            return _VertexPart(fragment=fragment, count=count, live=live, start=start)
        return _VertexPart(fragment=fragment, count=count, live=live, numbers=numbers)

    def has(self, live: LiveRows | None) -> bool:
        return self.live is None or self.live.has(live)

    def narrowed(self, live: LiveRows | None) -> Vertices:
        places = live.offsets if live is not None else None
        if places is not None and self.live is not None:
            places = self.live.numbers(places)
        if self.numbers is not None:
            return self.numbers if places is None else self.numbers[places]
        start = self.start or 0
        return np.arange(start, start + self.count) if places is None else places + start


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedVertices:
    """Rows and numbers of one version of a node table."""

    vertex_of_row: Vertices | None
    """None when every row has its own position as number."""
    row_of_vertex: Positions | None
    row_count: int

    @staticmethod
    def same(count: int) -> PinnedVertices:
        """Every row has its position as number."""
        return PinnedVertices(vertex_of_row=None, row_of_vertex=None, row_count=count)

    @staticmethod
    def of(numbers: Vertices, space: int) -> PinnedVertices:
        count = len(numbers)
        if count == 0 or (numbers[0] == 0 and _is_range(numbers)):
            return PinnedVertices.same(count)
        rows = np.full(space, NOTHING, np.int64)
        rows[numbers] = np.arange(count, dtype=np.int64)
        return PinnedVertices(vertex_of_row=numbers, row_of_vertex=rows, row_count=count)

    def row(self, vertex: int) -> int:
        """The row of one number; ``NOTHING`` where this version has none."""
        if self.row_of_vertex is None:
            return vertex if vertex < self.row_count else NOTHING
        known = 0 <= vertex < len(self.row_of_vertex)
        return int(self.row_of_vertex[vertex]) if known else NOTHING

    def rows(self, vertices: Vertices) -> Positions:
        """Rows of numbers; ``NOTHING`` where this version has none."""
        if self.row_of_vertex is None:
            if len(vertices) and vertices.max() >= self.row_count:
                return np.where(vertices < self.row_count, vertices, NOTHING)
            return vertices
        known = len(self.row_of_vertex)
        if len(vertices) and (vertices.min() < 0 or vertices.max() >= known):
            inside = (vertices >= 0) & (vertices < known)
            return np.where(inside, self.row_of_vertex[np.where(inside, vertices, 0)], NOTHING)
        return self.row_of_vertex[vertices]

    def vertices(self, rows: Positions) -> Vertices:
        """Numbers of rows; ``NOTHING`` stays itself."""
        if self.vertex_of_row is None:
            return rows
        if len(rows) and rows.min() < 0:
            return np.where(rows < 0, NOTHING, self.vertex_of_row[rows])
        return self.vertex_of_row[rows]


_NO_IDS: pa.StringArray = pa.array([], pa.string())


def _numbers(places: pa.Int32Array) -> Vertices:
    filled = places.fill_null(NOTHING) if places.null_count else places
    return filled.to_numpy(zero_copy_only=False).astype(np.int64)


def _joined(column: pa.ChunkedArray) -> pa.StringArray:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _is_range(numbers: Vertices) -> bool:
    return int(numbers[-1] - numbers[0]) == len(numbers) - 1 and bool((np.diff(numbers) == 1).all())
