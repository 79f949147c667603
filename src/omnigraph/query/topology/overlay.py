"""Newer commits on top of an adjacency that stays as it is.

    adjacency of a version, edges gone and come since -> [overlay] -> adjacency of a newer one

A commit changes what a few nodes are connected with. Those nodes' edges are kept anew, all others
are those of the root, which any number of versions share: it may be an array of gigabytes, or a
mapped file. Places of the overlay follow those of the root, so a traversal asks for ranges first
and for what stands there then, and only nodes that were touched are looked up twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.query.topology.adjacency import (
    TARGET_BITS,
    TARGET_MASK,
    Adjacency,
    Index,
    Mask,
    Pairs,
    counted,
)
from omnigraph.query.topology.vertices import Vertices
from omnigraph.storage.layout import Addresses

LAID_OVER_MIN = 1 << 16
"""A smaller adjacency is copied: that costs no more than keeping the change apart."""
OVERLAY_PART = 16
"""An overlay of more than this part of its root is folded into it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Overlay:
    """An adjacency of which some origins have other edges."""

    root: Adjacency
    touched: Vertices
    """The origins that have, ascending."""
    layer: Adjacency
    """All their edges, and no others."""
    vertex_count: int

    @property
    def size(self) -> int:
        """How many keys it has at most: those of the root that do not count are among them."""
        return len(self.root.keys) + len(self.layer.keys)

    @property
    def pieces(self) -> tuple[Adjacency, ...]:
        """What it consists of; the root may be shared."""
        return (self.root, self.layer)

    @cached_property
    def _bounds(self) -> tuple[Index, Index]:
        """Where the edges of each touched origin begin and end, as places."""
        keys, start = self.layer.keys, len(self.root.keys)
        return (
            np.searchsorted(keys, self.touched << TARGET_BITS) + start,
            np.searchsorted(keys, (self.touched + 1) << TARGET_BITS) + start,
        )

    @cached_property
    def _ranges(self) -> dict[int, tuple[int, int]]:
        firsts, lasts = self._bounds
        both = zip(firsts.tolist(), lasts.tolist(), strict=True)
        return dict(zip(self.touched.tolist(), both, strict=True))

    def ranges(self, origins: Vertices) -> tuple[Index, Index]:
        """First place and number of edges of each origin; a negative origin has none."""
        starts, counts = self.root.ranges(origins)
        mine, number = self._of_layer(origins)
        if mine.any():
            firsts, lasts = self._bounds
            number = number[mine]
            starts, counts = starts.copy(), counts.copy()
            starts[mine], counts[mine] = firsts[number], lasts[number] - firsts[number]
        return starts, counts

    def _of_layer(self, origins: Vertices) -> tuple[Mask, Index]:
        """Which origins were touched, and where they stand among those."""
        if not len(self.touched):
            return np.zeros(len(origins), np.bool_), np.zeros(len(origins), np.int64)
        number = np.searchsorted(self.touched, origins)
        number[number == len(self.touched)] = 0
        return self.touched[number] == origins, number

    def range_of(self, origin: int) -> tuple[int, int]:
        """First place of one origin, and the one after its last."""
        found = self._ranges.get(origin)
        return self.root.range_of(origin) if found is None else found

    def span(self, first: int, last: int) -> Vertices:
        """The targets in one origin's range."""
        start = len(self.root.keys)
        if first >= start:
            return self.layer.span(first - start, last - start)
        return self.root.span(first, last)

    def reached(self, places: Index) -> Vertices:
        """The targets at some places."""
        return self._keys_at(places) & TARGET_MASK

    def _keys_at(self, places: Index) -> npt.NDArray[np.int64]:
        return self._picked(self.root.keys, self.layer.keys, places)

    def _picked(
        self, below: npt.NDArray[np.int64], above: npt.NDArray[np.int64], places: Index
    ) -> npt.NDArray[np.int64]:
        later = places >= len(self.root.keys)
        if not later.any():
            return below[places]
        found = np.empty(len(places), np.int64)
        found[~later] = below[places[~later]]
        found[later] = above[places[later] - len(self.root.keys)]
        return found

    def addresses_at(self, places: Index) -> Addresses | None:
        """The edges at some places; None where pairs stand for them."""
        below, above = self.root.addresses, self.layer.addresses
        if below is None or above is None:
            return None
        return self._picked(below, above, places)

    def connected(self, origins: Vertices, targets: Vertices) -> Mask:
        """Whether each pair is there."""
        found = self.root.connected(origins, targets)
        mine, _ = self._of_layer(origins)
        found[mine] = self.layer.connected(origins[mine], targets[mine])
        return found

    @cached_property
    def arrivals(self) -> npt.NDArray[np.int64]:
        """Keys per target."""
        return self._instead(self.root.arrivals, None)

    def arrivals_from(self, weights: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The sum per target of the weights of its origins; the sums have to be exact as floats."""
        return self._instead(self.root.arrivals_from(weights), weights)

    def _instead(
        self, sums: npt.NDArray[np.int64], weights: npt.NDArray[Any] | None
    ) -> npt.NDArray[np.int64]:
        """Sums over all keys of the root, as they are with those of the layer instead of its."""
        gone, come = (
            counted(keys, weights).astype(np.int64) for keys in (self._hidden, self.layer.keys)
        )
        length = max(len(sums), len(come))
        made = np.zeros(length, np.int64)
        made[: len(sums)] = sums
        made[: len(gone)] -= gone
        made[: len(come)] += come
        return made

    @cached_property
    def _hidden(self) -> npt.NDArray[np.int64]:
        """The keys of the root that do not count."""
        return self.root.keys[self._hidden_places]

    @cached_property
    def _hidden_places(self) -> Index:
        starts, counts = self.root.ranges(self.touched)
        return places_in(starts, counts)

    def folded(self) -> Adjacency:
        """The same as one adjacency: a copy of the root."""
        keep = np.ones(len(self.root.keys), np.bool_)
        keep[self._hidden_places] = False
        keys = np.concatenate([self.root.keys[keep], self.layer.keys])
        # Two sorted runs: a stable sort finds them and merges.
        order = np.argsort(keys, kind="stable")
        addresses = None
        if self.root.addresses is not None and self.layer.addresses is not None:
            addresses = np.concatenate([self.root.addresses[keep], self.layer.addresses])[order]
        keys = keys[order]
        origins = np.arange(self.vertex_count + 1, dtype=np.int64) << TARGET_BITS
        return Adjacency(
            keys=keys,
            addresses=addresses,
            pointers=np.searchsorted(keys, origins).astype(np.int64),
            parallel=self.root.parallel or self.layer.parallel,
        )


AnyAdjacency = Adjacency | Overlay
"""The edges of a table version, or of some of its nodes."""


def changed(
    base: AnyAdjacency,
    removed: Pairs,
    added: Pairs,
    *,
    vertices: int,
    edges_of: Callable[[Vertices], Pairs] | None = None,
) -> AnyAdjacency | None:
    """An adjacency after a small change; None when it has to be made anew.

    Nothing is read, looked up or sorted but the edges of the nodes that the change touches, and of
    those that changes before it have touched. Where pairs stand for edges, one that goes may leave
    another behind: ``edges_of`` has the edges that some nodes have after the change.
    """
    root = base.root if isinstance(base, Overlay) else base
    if root.pointers is None or len(root.keys) < LAID_OVER_MIN:
        whole = base.folded() if isinstance(base, Overlay) else base
        return whole.changed(removed, added, vertices=vertices)
    now = np.union1d(removed.sources, added.sources)
    fresh = _edges_of(base, now).changed(removed, added, vertices=vertices)
    if fresh is None and edges_of is not None:
        fresh = Adjacency.of_pairs(edges_of(now))
    if fresh is None:
        return None
    touched = now
    layer = Adjacency(keys=fresh.keys, addresses=fresh.addresses, parallel=fresh.parallel)
    if isinstance(base, Overlay):
        touched = np.union1d(base.touched, now)
        layer = _joined(_edges_of(base, np.setdiff1d(base.touched, now)), layer)
    made = Overlay(root=root, touched=touched, layer=layer, vertex_count=vertices)
    return made.folded() if len(layer.keys) * OVERLAY_PART > len(root.keys) else made


def _edges_of(base: AnyAdjacency, origins: Vertices) -> Adjacency:
    """The edges of some origins, ascending, alone."""
    starts, counts = base.ranges(origins)
    places = places_in(starts, counts)
    keys = (np.repeat(origins, counts) << TARGET_BITS) | base.reached(places)
    addresses = base.addresses_at(places)
    parallel = any(piece.parallel for piece in base.pieces)
    return Adjacency(keys=keys, addresses=addresses, parallel=parallel)


def _joined(one: Adjacency, other: Adjacency) -> Adjacency:
    keys = np.concatenate([one.keys, other.keys])
    order = np.argsort(keys, kind="stable")
    addresses = None
    if one.addresses is not None and other.addresses is not None:
        addresses = np.concatenate([one.addresses, other.addresses])[order]
    return Adjacency(keys=keys[order], addresses=addresses, parallel=one.parallel or other.parallel)


def places_in(starts: Index, counts: Index) -> Index:
    """All places of some ranges, one range after the other."""
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
