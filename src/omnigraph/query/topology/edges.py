"""The adjacency of an edge table, kept from version to version.

    edge table -> ends in numbers, per file -> [adjacency of one version]

A newer version differs from a known one by files and deletions: if it differs little, the change is
put on top of the adjacency that is known (``overlay``; a small one is copied), and nothing is read
but the new files. That of a large table is made in a file, where other processes find it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from threading import RLock
from typing import Any, Literal

import numpy as np

from omnigraph.query.topology.adjacency import Adjacency, Pairs
from omnigraph.query.topology.array_files import ArrayFile
from omnigraph.query.topology.edge_parts import EdgeParts
from omnigraph.query.topology.overlay import AnyAdjacency, changed
from omnigraph.query.topology.saved import layout_of, names_of, understood
from omnigraph.query.topology.sorting import fill_sorted, fold_repeats
from omnigraph.query.topology.vertices import Vertices
from omnigraph.storage.layout import Fragment, Layout, hidden
from omnigraph.storage.names import TableVersion
from omnigraph.storage.tables import Table

Side = Literal["out", "in", "both"]
BYTES_MAX = 1 << 30
"""Adjacencies of older versions, of branches and of history are kept up to this size."""
SMALL_CHANGE = 0.05
"""Up to this part of the edges a change is folded in; beyond, sorting anew is as good."""
SMALL_CHANGE_MIN = 1_000
NEAR_FILES_MAX = 1
"""So many new files of a remote store are read at once, where a lookup takes some requests, too."""
PIECEWISE_MIN = 1 << 20
"""So many edges are sorted piece by piece."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The adjacencies made so far for one version."""

    layout: Layout
    made: dict[tuple[Side, bool], AnyAdjacency]

    @property
    def pieces(self) -> Iterator[Adjacency]:
        """What is in memory of them; newer versions may share some of it."""
        for adjacency in self.made.values():
            yield from adjacency.pieces


class EdgeTopology:
    """Everything known about the edges of one table."""

    def __init__(self, parts: EdgeParts) -> None:
        self._parts = parts
        self._versions: OrderedDict[TableVersion | str, _Known] = OrderedDict()
        """By the version, or by where it was found on disk."""
        self._sought: dict[tuple[Side, bool], TableVersion] = {}
        """For which version this was last looked for on disk."""
        self._lock = RLock()
        self.lookup_cost = 0.0
        """What lookups have cost so far, in edges that an adjacency would have taken in."""
        self.builds = 0
        """How often an adjacency was sorted from all edges."""
        self.refreshes = 0
        """How often one was derived from that of another version."""
        self.loads = 0
        """How often one was found on disk."""

    def has(self, table: Table, side: Side, *, per_edge: bool) -> bool:
        """Whether this adjacency is there already, in memory or on disk, or but for the few files
        of newer commits."""
        with self._lock:
            known = self._versions.get(table.name)
            if known is not None and (side, per_edge) in known.made:
                return True
            self._load(table, side, per_edge=per_edge)
            return any(
                self._is_near(table, other.layout)
                for other in self._versions.values()
                if (side, per_edge) in other.made
            )

    def _is_near(self, table: Table, before: Layout) -> bool:
        """Whether a version differs from another by so little that reading it costs no more than
        looking something up."""
        if self._size(table, before) is None:
            return False
        old = {f.files for f in before.fragments}
        fresh = [f for f in table.layout.fragments if f.files not in old]
        return not table.is_remote or len(fresh) <= NEAR_FILES_MAX

    def knows_ends(self, table: Table) -> bool:
        """Whether the ends of all edges are known in numbers, so that some are found at once."""
        with self._lock:
            return self._parts.saves(table.row_count) and self._parts.knows(table.layout)

    def edges_at(self, table: Table, side: Side, vertices: Vertices) -> Pairs:
        """The edges of some vertices of a version whose ends are known, as seen from a side."""
        with self._lock:
            layout, parts = table.layout, list[Pairs]()
            if side != "in":
                parts.append(self._parts.with_end(layout, "src", vertices))
            if side != "out":
                found = self._parts.with_end(layout, "dst", vertices).reversed()
                if side == "both":
                    # A loop was found from the other side already.
                    found = found.select(found.sources != found.targets)
                parts.append(found)
            return Pairs.join(parts)

    def adjacency(self, table: Table, side: Side, *, per_edge: bool) -> AnyAdjacency:
        """The adjacency of one version, seen from one side."""
        with self._lock:
            self._load(table, side, per_edge=per_edge)
            known = self._known(table)
            found = known.made.get((side, per_edge))
            if found is None:
                found = self._derive(table, known, side, per_edge=per_edge)
                if found is None:
                    found = self._build(table, side, per_edge=per_edge)
                known.made[side, per_edge] = found
                self._forget(known)
            return found

    def _known(self, table: Table) -> _Known:
        known = self._versions.get(table.name)
        if known is None:
            known = _Known(layout=table.layout, made={})
            self._versions[table.name] = known
        self._versions.move_to_end(table.name)
        return known

    def _forget(self, newest: _Known) -> None:
        """Keep of older versions what fits, and of files those that some kept version has."""
        while self.nbytes > BYTES_MAX and len(self._versions) > 1:
            self._versions.popitem(last=False)
        versions = (*self._versions.values(), newest)
        self._parts.keep({f.files for known in versions for f in known.layout.fragments})

    @property
    def nbytes(self) -> int:
        """Memory of all adjacencies; what several versions share counts once."""
        with self._lock:
            kept = {id(p): p.nbytes for known in self._versions.values() for p in known.pieces}
            return sum(kept.values())

    def _vertices(self, side: Side) -> int:
        sources, targets = len(self._parts.sources), len(self._parts.targets)
        if side == "both":
            return max(sources, targets)
        return sources if side == "out" else targets

    # -- making ----------------------------------------------------------------------------------

    def _build(self, table: Table, side: Side, *, per_edge: bool) -> Adjacency:
        self.builds += 1
        layout = table.layout
        self._parts.read(table, layout.fragments)
        if layout.row_count < PIECEWISE_MIN and not self._parts.saves(layout.row_count):
            pairs = Pairs.join([self._parts.live(layout, f) for f in layout.fragments])
            make: Callable[..., Adjacency] = Adjacency.of_edges if per_edge else Adjacency.of_pairs
            return make(_seen_from(pairs, side), vertices=self._vertices(side))
        return self._build_piecewise(layout, side, per_edge=per_edge)

    def _build_piecewise(self, layout: Layout, side: Side, *, per_edge: bool) -> Adjacency:
        def piece(fragment: Fragment) -> Pairs:
            return _seen_from(self._parts.live(layout, fragment), side)

        pieces = [partial(piece, f) for f in layout.fragments]
        count = sum(len(p()) for p in pieces) if side == "both" else layout.row_count
        counts = {"keys": count, "pointers": self._vertices(side) + 1}
        if per_edge:
            counts["addresses"] = count
        files, path = self._parts.files, self._parts.path
        ends = self._parts.saved_ends() if self._parts.saves(layout.row_count) else None
        new = None
        if files is not None and ends is not None:
            shapes = {name: (np.int64, n) for name, n in counts.items()}
            new = files.create(path, _kind(side, per_edge=per_edge), shapes, layout)
        arrays: Mapping[str, Any] = (
            new.arrays if new else {name: np.empty(n, np.int64) for name, n in counts.items()}
        )
        keys, pointers, addresses = arrays["keys"], arrays["pointers"], arrays.get("addresses")
        try:
            fill_sorted(pieces, keys, addresses, pointers)
            kept = len(keys) if per_edge else fold_repeats(keys, pointers)
            if new is not None and files is not None and ends is not None:
                meta = {"ends": names_of(ends), "kept": kept}
                files.publish(new, path, layout, meta)
        except BaseException:
            if new is not None:
                new.discard()
            raise
        return Adjacency(
            keys=keys[:kept],
            addresses=addresses,
            pointers=pointers,
            parallel=kept < len(keys),
            mapped=new is not None,
        )

    # -- on disk ---------------------------------------------------------------------------------

    def _load(self, table: Table, side: Side, *, per_edge: bool) -> None:
        """Take what another process has saved: of this state, else of one that is near it."""
        files = self._parts.files
        sought = self._sought.get((side, per_edge)) == table.name
        if files is None or sought or not self._parts.saves(table.row_count):
            return
        if any((side, per_edge) in known.made for known in self._versions.values()):
            return
        self._sought[side, per_edge] = table.name
        for file in files.saved(self._parts.path, _kind(side, per_edge=per_edge)):
            if not understood(file, self._parts.dictionaries):
                continue
            layout = layout_of(file)
            same = layout.fragments == table.layout.fragments
            if not same and self._size(table, layout) is None:
                continue
            self.loads += 1
            if same:
                known = self._known(table)
            else:
                known = _Known(layout=layout, made={})
                self._versions[f"on disk, {self.loads}"] = known
            known.made[side, per_edge] = _mapped(file)
            return

    # -- following -------------------------------------------------------------------------------

    def _derive(
        self, table: Table, known: _Known, side: Side, *, per_edge: bool
    ) -> AnyAdjacency | None:
        """From the adjacency of another version, if the two differ little."""
        for other in reversed(self._versions.values()):
            base = other.made.get((side, per_edge))
            if base is None or other is known:
                continue
            change = self._difference(table, other.layout)
            if change is None:
                continue
            removed, added = (_seen_from(p, side) for p in change)
            known_ends = self._parts.knows(table.layout)
            made = changed(
                base,
                removed,
                added,
                vertices=self._vertices(side),
                edges_of=partial(self.edges_at, table, side) if known_ends else None,
            )
            if made is not None:
                self.refreshes += 1
                return made
        return None

    def _size(self, table: Table, before: Layout) -> int | None:
        """How many edges have come and gone since that version; None if that is not little."""
        old = {f.files: f for f in before.fragments}
        new = {f.files: f for f in table.layout.fragments}
        size = sum(f.live_rows for files, f in new.items() if files not in old)
        for files, was in old.items():
            left = new[files].live_rows if files in new else 0
            if left > was.live_rows:
                return None
            size += was.live_rows - left
        small = max(SMALL_CHANGE_MIN, int(before.row_count * SMALL_CHANGE))
        return None if size > small else size

    def _difference(self, table: Table, before: Layout) -> tuple[Pairs, Pairs] | None:
        """Edges gone and come since that version; None if they are too many."""
        if self._size(table, before) is None:
            return None
        layout, parts = table.layout, self._parts
        old = {f.files: f for f in before.fragments}
        new = {f.files: f for f in layout.fragments}
        lost = [f for files, f in old.items() if files not in new]
        cut = [(old[files], f) for files, f in new.items() if files in old and f != old[files]]
        if any(was.id != now.id for was, now in cut):
            return None
        touched = [*lost, *(was for was, _ in cut)]
        parts.read_known(before, touched)
        if not all(parts.has(before, f) for f in touched):
            return None
        removed = [parts.live(before, f) for f in lost]
        for was, now in cut:
            hidden = self._cut(layout, before, was, now)
            if hidden is None:
                return None
            removed.append(hidden)
        fresh = [f for files, f in new.items() if files not in old]
        parts.read(table, fresh)
        return Pairs.join(removed), Pairs.join([parts.live(layout, f) for f in fresh])

    def _cut(self, layout: Layout, before: Layout, was: Fragment, now: Fragment) -> Pairs | None:
        """Edges of a file that a newer deletion hides; None if it also shows some again.

        Two branches delete on their own: neither deletion is then the newer one.
        """
        shown, left = before.live(was), layout.live(now)
        if len(hidden(left, shown)):
            return None
        return self._parts.at(now, hidden(shown, left))


def _kind(side: Side, *, per_edge: bool) -> str:
    return f"{side}-{'edges' if per_edge else 'pairs'}"


def _mapped(file: ArrayFile) -> Adjacency:
    keys, kept = file.arrays["keys"], file.meta["kept"]
    return Adjacency(
        keys=keys[:kept],
        addresses=file.arrays.get("addresses"),
        pointers=file.arrays["pointers"],
        parallel=kept < len(keys),
        mapped=True,
    )


def _seen_from(pairs: Pairs, side: Side) -> Pairs:
    if side == "out":
        return pairs
    if side == "in":
        return pairs.reversed()
    # A loop has one orientation only.
    other = pairs.reversed().select(pairs.sources != pairs.targets)
    return Pairs.join([pairs, other])
