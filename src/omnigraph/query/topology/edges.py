"""The adjacency of an edge table, kept from version to version.

    edge table -> pairs of numbers, per file -> [adjacency of one version]

Files never change, so their edges are turned into numbers once. A newer version differs from a
known one by files and deletions: if it differs little, the adjacency is changed in place of being
made anew (a copy of arrays; nothing is read but the new files).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import RLock
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.query.topology.adjacency import Adjacency, Pairs
from omnigraph.query.topology.vertices import VertexSpace, Vertices
from omnigraph.storage.layout import Fragment, Layout, Offsets
from omnigraph.storage.names import TableVersion
from omnigraph.storage.tables import Table

Side = Literal["out", "in", "both"]
VERSIONS_MAX = 4
"""Versions of one table whose adjacency is kept: branches, a little history."""
SMALL_CHANGE = 0.05
"""Up to this part of the edges a change is folded in; beyond, sorting anew is as good."""
SMALL_CHANGE_MIN = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    pairs: Pairs
    offsets: Offsets | None

    def has(self, live: Offsets | None) -> bool:
        if self.offsets is None:
            return True
        return live is not None and bool(np.isin(live, self.offsets, assume_unique=True).all())

    def live(self, live: Offsets | None) -> Pairs:
        if live is None or (self.offsets is not None and len(self.offsets) == len(live)):
            return self.pairs
        places = live if self.offsets is None else np.searchsorted(self.offsets, live)
        keep = np.zeros(len(self.pairs), np.bool_)
        keep[places] = True
        return self.pairs.select(keep)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The adjacencies made so far for one version."""

    layout: Layout
    made: dict[tuple[Side, bool], Adjacency]


class EdgeTopology:
    """Everything known about the edges of one table."""

    def __init__(self, sources: VertexSpace, targets: VertexSpace) -> None:
        self._sources = sources
        self._targets = targets
        self._parts: dict[tuple[str, ...], _Part] = {}
        self._versions: OrderedDict[TableVersion, _Known] = OrderedDict()
        self._lock = RLock()
        self.lookup_cost = 0.0
        """What lookups have cost so far, in edges that an adjacency would have taken in."""
        self.builds = 0
        """How often an adjacency was sorted from all edges."""
        self.refreshes = 0
        """How often one was derived from that of another version."""

    def has(self, name: TableVersion, side: Side, *, per_edge: bool) -> bool:
        """Whether this adjacency is there already."""
        with self._lock:
            known = self._versions.get(name)
            return known is not None and (side, per_edge) in known.made

    def adjacency(self, table: Table, side: Side, *, per_edge: bool) -> Adjacency:
        """The adjacency of one version, seen from one side."""
        with self._lock:
            known = self._versions.get(table.name)
            if known is None:
                known = _Known(layout=table.layout, made={})
                self._versions[table.name] = known
                while len(self._versions) > VERSIONS_MAX:
                    self._versions.popitem(last=False)
                self._forget_parts(known)
            self._versions.move_to_end(table.name)
            found = known.made.get((side, per_edge))
            if found is None:
                found = self._derive(table, known, side, per_edge=per_edge)
                if found is None:
                    found = self._build(table, side, per_edge=per_edge)
                known.made[side, per_edge] = found
            return found

    def _vertices(self, side: Side) -> int:
        if side == "both":
            return max(len(self._sources), len(self._targets))
        return len(self._sources) if side == "out" else len(self._targets)

    def _build(self, table: Table, side: Side, *, per_edge: bool) -> Adjacency:
        self.builds += 1
        self._read(table, table.layout.fragments)
        pairs = Pairs.join([self._live(table, f) for f in table.layout.fragments])
        make: Callable[..., Adjacency] = Adjacency.of_edges if per_edge else Adjacency.of_pairs
        return make(_seen_from(pairs, side), vertices=self._vertices(side))

    def _derive(
        self, table: Table, known: _Known, side: Side, *, per_edge: bool
    ) -> Adjacency | None:
        """From the adjacency of another version, if the two differ little."""
        for other in reversed(self._versions.values()):
            base = other.made.get((side, per_edge))
            if base is None or other is known:
                continue
            change = self._difference(table, other.layout, len(base.keys))
            if change is None:
                continue
            removed, added = (_seen_from(p, side) for p in change)
            changed = base.changed(removed, added, vertices=self._vertices(side))
            if changed is not None:
                self.refreshes += 1
                return changed
        return None

    def _difference(self, table: Table, before: Layout, edges: int) -> tuple[Pairs, Pairs] | None:
        """Edges gone and come since that version; None if they are too many."""
        small = max(SMALL_CHANGE_MIN, int(edges * SMALL_CHANGE))
        old = {f.files: f for f in before.fragments}
        new = {f.files: f for f in table.layout.fragments}
        fresh = [f for files, f in new.items() if files not in old]
        lost = [f for files, f in old.items() if files not in new]
        cut = [(old[files], f) for files, f in new.items() if files in old and f != old[files]]
        size = sum(f.live_rows for f in [*fresh, *lost])
        size += sum(was.live_rows - now.live_rows for was, now in cut)
        if size > small or any(now.live_rows > was.live_rows for was, now in cut):
            return None
        if not all(self._has(before, f) for f in [*lost, *(was for was, _ in cut)]):
            return None
        removed = [self._parts[f.files].live(before.offsets(f)) for f in lost]
        for was, now in cut:
            hidden = self._cut(table.layout, before, was, now)
            if hidden is None:
                return None
            removed.append(hidden)
        self._read(table, fresh)
        return Pairs.join(removed), Pairs.join([self._live(table, f) for f in fresh])

    def _cut(self, layout: Layout, before: Layout, was: Fragment, now: Fragment) -> Pairs | None:
        """Edges of a file that a newer deletion hides; None if it also shows some again.

        Two branches delete on their own: neither deletion is then the newer one.
        """
        part = self._parts[now.files]
        gone = np.zeros(now.physical_rows, np.bool_)
        gone[_all_or(before.offsets(was))] = True
        if not gone[_all_or(layout.offsets(now))].all():
            return None
        gone[_all_or(layout.offsets(now))] = False
        return part.pairs.select(gone if part.offsets is None else gone[part.offsets])

    def _has(self, layout: Layout, fragment: Fragment) -> bool:
        """Whether every live edge of a file is known in numbers."""
        part = self._parts.get(fragment.files)
        return part is not None and part.has(layout.offsets(fragment))

    def _live(self, table: Table, fragment: Fragment) -> Pairs:
        return self._parts[fragment.files].live(table.layout.offsets(fragment))

    def _read(self, table: Table, fragments: tuple[Fragment, ...] | list[Fragment]) -> None:
        """Turn the edges of files not seen before into numbers."""
        layout = table.layout
        missing = [f for f in fragments if not self._has(layout, f)]
        if not missing:
            return
        columns = table.fragment_columns(missing, ["src", "dst"])
        joined = [_joined([part[i] for part in columns]) for i in (0, 1)]
        sources, targets = _in_parallel(
            lambda: self._sources.intern(joined[0]), lambda: self._targets.intern(joined[1])
        )
        start = 0
        for fragment in missing:
            end = start + fragment.live_rows
            self._parts[fragment.files] = _Part(
                pairs=Pairs(
                    sources=sources[start:end],
                    targets=targets[start:end],
                    addresses=layout.addresses(fragment),
                ),
                offsets=layout.offsets(fragment),
            )
            start = end

    def _forget_parts(self, newest: _Known) -> None:
        """Keep only files that some kept version has."""
        used = {f.files for k in (*self._versions.values(), newest) for f in k.layout.fragments}
        for files in [f for f in self._parts if f not in used]:
            del self._parts[files]


def _seen_from(pairs: Pairs, side: Side) -> Pairs:
    if side == "out":
        return pairs
    if side == "in":
        return pairs.reversed()
    # A loop has one orientation only.
    other = pairs.reversed().select(pairs.sources != pairs.targets)
    return Pairs.join([pairs, other])


def _joined(columns: list[pa.ChunkedArray]) -> pa.StringArray:
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())


def _all_or(live: Offsets | None) -> Offsets | slice:
    return slice(None) if live is None else live


def _in_parallel(first: Callable[[], Any], second: Callable[[], Any]) -> tuple[Vertices, Vertices]:
    with ThreadPoolExecutor(1, thread_name_prefix="omnigraph-topology") as pool:
        ahead = pool.submit(first)
        later = second()
        return ahead.result(), later
