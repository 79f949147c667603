"""Numbers for node ids.

    id text -> [vertex number] -> adjacency, frames

A space belongs to one node table in all its versions and branches: an id gets its number when it is
first seen and keeps it, so adjacency in numbers survives commits that change nodes. Numbers say
nothing about existence; ``PinnedVertices`` maps them to the rows of one version.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.storage.layout import Fragment, Offsets, Positions
from omnigraph.storage.tables import Table

Vertices = npt.NDArray[np.int64]
NOTHING = -1
FEW = 2_000
"""Up to so many ids are looked up one by one; more go through one vectorised pass."""
ASKED_MAX = 100_000
SCANS_PER_INDEX = 8
"""An index by hash costs about as much as so many scans of all ids."""


class VertexSpace:
    """An append-only dictionary of the ids of one node table."""

    def __init__(self) -> None:
        self._chunks: list[pa.StringArray] = []
        self._count = 0
        self._joined: pa.StringArray | None = None
        self._hashes = _HashIndex()
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
            if self._joined is None or len(self._joined) != self._count:
                self._joined = pa.concat_arrays(self._chunks) if self._chunks else _NO_IDS
                self._chunks = [self._joined]
            return self._joined

    def text(self, numbers: Vertices) -> pa.StringArray:
        """Ids of numbers; null for ``NOTHING``."""
        if len(numbers) and numbers.min() < 0:
            return self.ids.take(pa.array(numbers, mask=numbers < 0))
        return self.ids.take(pa.array(numbers))

    def number_of(self, text: str) -> int:
        """The number of one id; ``NOTHING`` if it was never seen."""
        known = self._asked.get(text)
        if known is not None:
            return known
        number = int(self.find(pa.array([text], pa.string()))[0])
        if number >= 0:
            if len(self._asked) >= ASKED_MAX:
                self._asked.clear()
            self._asked[text] = number
        return number

    def find(self, ids: pa.StringArray) -> Vertices:
        """Numbers of ids; ``NOTHING`` for those never seen."""
        if len(ids) > FEW:
            # Outside the lock: the two ends of an edge table are looked up side by side.
            return _numbers(pc.index_in(ids, value_set=self.ids))
        with self._lock:
            if self._count == 0:
                return np.full(len(ids), NOTHING, np.int64)
            if self._hashes.covered < self._count and self._scans < SCANS_PER_INDEX:
                self._scans += 1
                return self._scan(ids)
            if self._hashes.covered < self._count:
                self._hashes.extend(self.ids)
                self._scans = 0
            return self._hashes.find(ids.to_pylist(), self.ids)

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
        if self._hashes.covered == start and start > 0:
            self._hashes.extend_small(ids, start)
        return np.arange(start, self._count, dtype=np.int64)

    def rows(self, table: Table) -> PinnedVertices:
        """Which row of this version each number has."""
        with self._lock:
            layout = table.layout
            missing = [f for f in layout.fragments if not self._covers(f, table)]
            if missing:
                self._read(table, missing)
            parts = [self._parts[f.files].narrowed(layout.offsets(f)) for f in layout.fragments]
            numbers = np.concatenate(parts) if parts else np.empty(0, np.int64)
            return PinnedVertices.of(numbers, self._count)

    def _read(self, table: Table, fragments: list[Fragment]) -> None:
        columns = [ids for (ids,) in table.fragment_columns(fragments, ["id"])]
        joined = _joined(pa.chunked_array([c for ids in columns for c in ids.chunks], pa.string()))
        # Ids of one version are unique, so the first version needs no search for repeats.
        numbers = self.intern(joined) if self._count else self._append(joined)
        start = 0
        for fragment, ids in zip(fragments, columns, strict=True):
            own = numbers[start : start + len(ids)]
            start += len(ids)
            offsets = table.layout.offsets(fragment)
            self._parts[fragment.files] = _VertexPart(numbers=own, offsets=offsets)

    def _covers(self, fragment: Fragment, table: Table) -> bool:
        part = self._parts.get(fragment.files)
        return part is not None and part.has(table.layout.offsets(fragment))


@dataclass(frozen=True, slots=True, kw_only=True)
class _VertexPart:
    """Numbers of the rows of one fragment, as far as they were live when it was read."""

    numbers: Vertices
    offsets: Offsets | None

    def has(self, live: Offsets | None) -> bool:
        if self.offsets is None:
            return True
        return live is not None and bool(np.isin(live, self.offsets, assume_unique=True).all())

    def narrowed(self, live: Offsets | None) -> Vertices:
        if live is None:
            return self.numbers
        return self.numbers[live if self.offsets is None else np.searchsorted(self.offsets, live)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedVertices:
    """Rows and numbers of one version of a node table."""

    vertex_of_row: Vertices | None
    """None when every row has its own position as number."""
    row_of_vertex: Positions | None
    row_count: int

    @staticmethod
    def of(numbers: Vertices, space: int) -> PinnedVertices:
        count = len(numbers)
        if count == 0 or (numbers[0] == 0 and numbers[-1] == count - 1 and _is_range(numbers)):
            return PinnedVertices(vertex_of_row=None, row_of_vertex=None, row_count=count)
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


class _HashIndex:
    """Numbers by the hash of an id: sorted arrays, because a dict of a million texts is heavy."""

    def __init__(self) -> None:
        self._hashes = np.empty(0, np.int64)
        self._numbers = np.empty(0, np.int64)
        self._recent: dict[str, int] = {}
        self._sorted = 0

    @property
    def covered(self) -> int:
        """How many numbers it knows."""
        return self._sorted + len(self._recent)

    def extend(self, ids: pa.StringArray) -> None:
        """Know all these ids; their places are their numbers."""
        hashes = np.fromiter(map(hash, ids.to_pylist()), np.int64, len(ids))
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._numbers = hashes[order], order
        self._sorted, self._recent = len(ids), {}

    def extend_small(self, ids: pa.StringArray, start: int) -> None:
        """Know a few more ids without sorting; many are left to the next ``extend``."""
        if len(ids) + len(self._recent) <= FEW * 8:
            self._recent.update(zip(ids.to_pylist(), range(start, start + len(ids)), strict=True))

    def find(self, wanted: list[str], ids: pa.StringArray) -> Vertices:
        found = np.full(len(wanted), NOTHING, np.int64)
        for i, text in enumerate(wanted):
            recent = self._recent.get(text)
            if recent is not None:
                found[i] = recent
                continue
            value = hash(text)
            at = int(np.searchsorted(self._hashes, value))
            while at < self._sorted and self._hashes[at] == value:
                number = int(self._numbers[at])
                if ids[number].as_py() == text:
                    found[i] = number
                    break
                at += 1
        return found


_NO_IDS: pa.StringArray = pa.array([], pa.string())


def _numbers(places: pa.Int32Array) -> Vertices:
    filled = places.fill_null(NOTHING) if places.null_count else places
    return filled.to_numpy(zero_copy_only=False).astype(np.int64)


def _joined(column: pa.ChunkedArray) -> pa.StringArray:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _is_range(numbers: Vertices) -> bool:
    return bool((np.diff(numbers) == 1).all())
