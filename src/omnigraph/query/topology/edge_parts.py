"""The ends of edges in numbers, by data file.

    edge table -> [edge parts] -> adjacency of one version

Files never change, so their edges are turned into numbers once: by this process, or by another one
that saved them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.deadline import look
from omnigraph.query.topology.adjacency import Pairs
from omnigraph.query.topology.array_files import NewFile
from omnigraph.query.topology.saved import (
    ENDS,
    Dictionary,
    Ends,
    SavedEnds,
    TopologyFiles,
    layout_of,
    names_of,
    surely,
    understood,
)
from omnigraph.query.topology.vertices import VertexSpace, Vertices, in_groups
from omnigraph.storage.layout import OFFSET_BITS, Fragment, Layout, LiveRows, Offsets
from omnigraph.storage.tables import Table

SAVED_EDGES_MIN = 100_000
"""Fewer edges are numbered again by each process sooner than they are looked for on disk."""
FEW_VERTICES = 8
FilesKey = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    sources: SavedEnds
    targets: SavedEnds
    live: LiveRows | None
    """The rows that are here; None for all of the file."""

    def has(self, live: LiveRows | None) -> bool:
        return self.live is None or self.live.has(live)

    def at(self, fragment: Fragment, live: Offsets | None) -> Pairs:
        """The edges of some rows of the file, all if None is given."""
        places: Offsets | slice = slice(None)
        if live is not None:
            places = live if self.live is None else self.live.numbers(live)
        if live is None:
            live = np.arange(len(self.sources)) if self.live is None else self.live.offsets
        return Pairs(
            sources=self.sources[places].astype(np.int64),
            targets=self.targets[places].astype(np.int64),
            addresses=(np.int64(fragment.id) << OFFSET_BITS) | live,
        )


class EdgeParts:
    """What is known in numbers of one edge table, in all its versions."""

    def __init__(
        self,
        sources: VertexSpace,
        targets: VertexSpace,
        table_path: str = "",
        files: TopologyFiles | None = None,
    ) -> None:
        self.sources = sources
        self.targets = targets
        self.path = table_path
        self.files = files
        self._parts: dict[FilesKey, _Part] = {}
        self._loaded_for: tuple[Dictionary | None, Dictionary | None] = (None, None)

    def saves(self, edges: int) -> bool:
        """Whether so many edges are worth files."""
        return self.files is not None and edges >= SAVED_EDGES_MIN

    @property
    def dictionaries(self) -> tuple[Dictionary | None, Dictionary | None]:
        """Where the numbers of the ends were taken from or saved to."""
        return self.sources.dictionary, self.targets.dictionary

    def saved_ends(self) -> Ends | None:
        """Dictionaries on disk that have the numbers of all ends; written if there are none."""
        sources, targets = self.sources.saved(), self.targets.saved()
        return None if sources is None or targets is None else (sources, targets)

    def has(self, layout: Layout, fragment: Fragment) -> bool:
        """Whether every live edge of a file is known in numbers."""
        part = self._parts.get(fragment.files)
        return part is not None and part.has(layout.live(fragment))

    def read_known(self, layout: Layout, fragments: Sequence[Fragment]) -> None:
        """Know the edges of these files if another process has saved them; nothing is numbered."""
        if not all(self.has(layout, f) for f in fragments):
            self._load()

    def live(self, layout: Layout, fragment: Fragment) -> Pairs:
        """The edges of a file that a version shows."""
        return self._parts[fragment.files].at(fragment, layout.offsets(fragment))

    def at(self, fragment: Fragment, rows: Offsets) -> Pairs:
        """The edges of a file at these of its places, as far as they are known."""
        part = self._parts[fragment.files]
        if part.live is not None:
            rows = np.setdiff1d(rows, part.live.gone, assume_unique=True)
        return part.at(fragment, rows)

    def knows(self, layout: Layout) -> bool:
        """Whether all edges of a version are known in numbers, here or on disk."""
        self.read_known(layout, layout.fragments)
        return all(self.has(layout, f) for f in layout.fragments)

    def with_end(self, layout: Layout, end: Literal["src", "dst"], vertices: Vertices) -> Pairs:
        """The edges of a known version that have one of some vertices at an end."""
        found: list[Pairs] = []
        for fragment in layout.fragments:
            part = self._parts[fragment.files]
            rows = _places_of(part.sources if end == "src" else part.targets, vertices)
            if part.live is not None:
                rows = part.live.offsets_at(rows)
            live = layout.live(fragment)
            if live is not None:
                rows = np.setdiff1d(rows, live.gone, assume_unique=True)
            if len(rows):
                found.append(part.at(fragment, rows))
        return Pairs.join(found)

    def keep(self, files: Collection[FilesKey]) -> None:
        """Forget what is known of all other files."""
        for other in [f for f in self._parts if f not in files]:
            del self._parts[other]

    def read(self, table: Table, fragments: Sequence[Fragment]) -> None:
        """Know the edges of these files in numbers."""
        layout = table.layout
        if not all(self.has(layout, f) for f in fragments):
            self._load()
        missing = [f for f in fragments if not self.has(layout, f)]
        count = sum(f.live_rows for f in missing)
        if self.files is None or not self.saves(count):
            self._number(table, missing, np.empty(count, np.uint32), np.empty(count, np.uint32))
            return
        # A file has all edges of the version, so that one is enough for the next process.
        total = sum(f.live_rows for f in fragments)
        own = Layout(fragments, lambda f: surely(layout.live(f)))
        shapes = {"sources": (np.uint32, total), "targets": (np.uint32, total)}
        new = self.files.create(self.path, ENDS, shapes, own)
        if new is None:
            self._number(table, missing, np.empty(count, np.uint32), np.empty(count, np.uint32))
            return
        try:
            self._number_all(table, own, missing, new)
        except BaseException:
            new.discard()
            raise

    def _number_all(
        self, table: Table, own: Layout, missing: Sequence[Fragment], new: NewFile
    ) -> None:
        sources, targets = new.arrays["sources"], new.arrays["targets"]
        wanted = {f.files for f in missing}
        for fragment, start in zip(own.fragments, own.starts.tolist(), strict=False):
            span = slice(start, start + fragment.live_rows)
            if fragment.files in wanted:
                self._number(table, [fragment], sources[span], targets[span])
                continue
            known = self.live(own, fragment)
            sources[span], targets[span] = known.sources, known.targets
        ends = self.saved_ends()
        if ends is None or self.files is None:
            new.discard()
        else:
            self.files.publish(new, self.path, own, {"ends": names_of(ends)})

    def _number(
        self, table: Table, fragments: Sequence[Fragment], sources: SavedEnds, targets: SavedEnds
    ) -> None:
        """Turn the edges of files into numbers, into these arrays."""
        layout, start = table.layout, 0
        for group in in_groups(fragments):
            look("reading edges")
            columns = table.fragment_columns(group, ["src", "dst"])
            texts = [_joined([part[i] for part in columns]) for i in (0, 1)]
            span = slice(start, start + len(texts[0]))
            sources[span], targets[span] = _in_parallel(
                lambda t=texts: self.sources.intern(t[0]), lambda t=texts: self.targets.intern(t[1])
            )
            for fragment in group:
                end = start + fragment.live_rows
                self._parts[fragment.files] = _Part(
                    sources=sources[start:end],
                    targets=targets[start:end],
                    live=layout.live(fragment),
                )
                start = end

    def _load(self) -> None:
        """Take what other processes have saved in the numbers of this one."""
        ends = self.dictionaries
        if self.files is None or None in ends or ends == self._loaded_for:
            return
        self._loaded_for = ends
        for file in self.files.saved(self.path, ENDS):
            if not understood(file, ends):
                continue
            layout = layout_of(file)
            for fragment, start in zip(layout.fragments, layout.starts.tolist(), strict=False):
                span = slice(start, start + fragment.live_rows)
                part = _Part(
                    sources=file.arrays["sources"][span],
                    targets=file.arrays["targets"][span],
                    live=layout.live(fragment),
                )
                self._parts.setdefault(fragment.files, part)


def _places_of(ends: SavedEnds, vertices: Vertices) -> Offsets:
    """Where one of some vertices stands."""
    if len(vertices) > FEW_VERTICES:
        return np.flatnonzero(np.isin(ends, vertices.astype(np.uint32)))
    mask = np.zeros(len(ends), np.bool_)
    for vertex in vertices.tolist():
        mask |= ends == np.uint32(vertex)
    return np.flatnonzero(mask)


def _joined(columns: Sequence[pa.ChunkedArray]) -> pa.StringArray:
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def _in_parallel(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Vertices, Vertices]:
    with ThreadPoolExecutor(1, thread_name_prefix="omnigraph-topology") as pool:
        ahead = pool.submit(first)
        later = second()
        return ahead.result(), later
