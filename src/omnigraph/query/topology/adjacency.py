"""Edges as sorted pairs of vertex numbers.

A pair is one 64-bit key, origin above target; sorted keys answer every question of a traversal:
neighbours are a range, a connection is a search, degrees are differences. The same form serves the
whole edge table (with a pointer per origin) and the few edges an index lookup brings, so both arms
of a traversal run the same code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.deadline import look
from omnigraph.query.topology.vertices import Vertices
from omnigraph.storage.layout import Addresses

Keys = npt.NDArray[np.int64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
TARGET_BITS = 32
PIECE_KEYS = 1 << 20
TARGET_MASK = (1 << TARGET_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Edges in numbers, in no order."""

    sources: Vertices
    targets: Vertices
    addresses: Addresses

    def __len__(self) -> int:
        return len(self.sources)

    def reversed(self) -> Pairs:
        return Pairs(sources=self.targets, targets=self.sources, addresses=self.addresses)

    @staticmethod
    def none() -> Pairs:
        empty = np.empty(0, np.int64)
        return Pairs(sources=empty, targets=empty, addresses=empty)

    @staticmethod
    def join(parts: list[Pairs]) -> Pairs:
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Pairs.none()
        return Pairs(
            sources=np.concatenate([p.sources for p in parts]),
            targets=np.concatenate([p.targets for p in parts]),
            addresses=np.concatenate([p.addresses for p in parts]),
        )

    def select(self, keep: npt.NDArray[np.bool_]) -> Pairs:
        return Pairs(
            sources=self.sources[keep], targets=self.targets[keep], addresses=self.addresses[keep]
        )


def keys_of(origins: Vertices, targets: Vertices) -> Keys:
    """Pairs as keys."""
    return (origins << TARGET_BITS) | targets


@dataclass(frozen=True, kw_only=True)
class Adjacency:
    """Sorted keys; each pair once, or once per edge with the edge's address beside it."""

    keys: Keys
    addresses: Addresses | None = None
    pointers: npt.NDArray[np.int64] | None = None
    """Where each origin's keys start, one more for the end. None for few edges."""
    parallel: bool = False
    """Whether two edges were folded into one pair."""
    mapped: bool = False
    """Whether the arrays are those of a file, which takes no memory of its own."""

    @staticmethod
    def of_pairs(pairs: Pairs, *, vertices: int | None = None) -> Adjacency:
        """Each pair once."""
        keys = np.sort(keys_of(pairs.sources, pairs.targets))
        parallel = False
        if len(keys) > 1:
            fresh = keys[1:] != keys[:-1]
            if not fresh.all():
                parallel = True
                keys = np.concatenate([keys[:1], keys[1:][fresh]])
        return Adjacency(keys=keys, pointers=_pointers(keys, vertices), parallel=parallel)

    @staticmethod
    def of_edges(pairs: Pairs, *, vertices: int | None = None) -> Adjacency:
        """Each edge on its own."""
        keys = keys_of(pairs.sources, pairs.targets)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        return Adjacency(
            keys=keys, addresses=pairs.addresses[order], pointers=_pointers(keys, vertices)
        )

    @property
    def size(self) -> int:
        """How many keys it has."""
        return len(self.keys)

    @property
    def vertex_count(self) -> int | None:
        """The number of origins that there are; None if these are the edges of a few."""
        return None if self.pointers is None else len(self.pointers) - 1

    @property
    def pieces(self) -> tuple[Adjacency, ...]:
        """What it consists of."""
        return (self,)

    @property
    def nbytes(self) -> int:
        """Memory that it alone takes."""
        if self.mapped:
            return 0
        arrays = (self.keys, self.addresses, self.pointers)
        return sum(a.nbytes for a in arrays if a is not None)

    def ranges(self, origins: Vertices) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """First key and number of keys of each origin; a negative origin has none."""
        if self.pointers is not None and (
            len(origins) == 0 or (origins.min() >= 0 and origins.max() < len(self.pointers) - 1)
        ):
            starts = self.pointers[origins]
            return starts, self.pointers[origins + 1] - starts
        starts = np.searchsorted(self.keys, origins << TARGET_BITS)
        ends = np.searchsorted(self.keys, (origins + 1) << TARGET_BITS)
        return starts, np.where(origins < 0, 0, ends - starts)

    def range_of(self, origin: int) -> tuple[int, int]:
        """First key of one origin, and the one after its last."""
        if origin < 0:
            return 0, 0
        pointers = self.pointers
        if pointers is not None and origin < len(pointers) - 1:
            return int(pointers[origin]), int(pointers[origin + 1])
        ends = np.searchsorted(self.keys, [origin << TARGET_BITS, (origin + 1) << TARGET_BITS])
        return int(ends[0]), int(ends[1])

    def span(self, first: int, last: int) -> Vertices:
        """The targets in one origin's range."""
        return self.keys[first:last] & TARGET_MASK

    def reached(self, places: Index) -> Vertices:
        """The targets at some places."""
        return self.keys[places] & TARGET_MASK

    def addresses_at(self, places: Index) -> Addresses | None:
        """The edges at some places; None where pairs stand for them."""
        return None if self.addresses is None else self.addresses[places]

    def connected(self, origins: Vertices, targets: Vertices) -> npt.NDArray[np.bool_]:
        """Whether each pair is there."""
        wanted = keys_of(origins, targets)
        places = np.searchsorted(self.keys, wanted)
        inside = places < len(self.keys)
        found = np.zeros(len(wanted), np.bool_)
        found[inside] = self.keys[places[inside]] == wanted[inside]
        return found & (origins >= 0) & (targets >= 0)

    @cached_property
    def arrivals(self) -> npt.NDArray[np.int64]:
        """Keys per target."""
        counts = np.zeros(0, np.int64)
        for keys in self._pieces():
            more = counted(keys, None, minlength=len(counts))
            counts = more if not len(counts) else _added(counts, more)
        return counts

    def arrivals_from(self, weights: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The sum per target of the weights of its origins; the sums have to be exact as floats."""
        sums = np.zeros(0)
        for keys in self._pieces():
            more = counted(keys, weights, minlength=len(sums))
            sums = more if not len(sums) else _added(sums, more)
        return sums.astype(np.int64)

    def _pieces(self) -> Iterator[Keys]:
        """All keys, so many at once that adding up the pieces costs no more than counting them."""
        size = max(PIECE_KEYS, len(self.pointers) if self.pointers is not None else 0)
        for start in range(0, len(self.keys), size):
            look("counting arrivals")
            yield self.keys[start : start + size]

    def changed(self, removed: Pairs, added: Pairs, *, vertices: int) -> Adjacency | None:
        """This adjacency after a small change; None when it has to be made anew.

        It only copies arrays: nothing is read, looked up or sorted but the change itself.
        """
        keys, addresses, parallel = self.keys, self.addresses, self.parallel
        gone_origins = removed.sources
        new_origins = added.sources
        if len(removed):
            gone = keys_of(removed.sources, removed.targets)
            if addresses is None:
                if parallel:
                    return None  # Another edge may still connect the pair.
                keys = np.delete(keys, np.searchsorted(keys, gone))
            else:
                keep = ~np.isin(addresses, removed.addresses)
                keys, addresses = keys[keep], addresses[keep]
        if len(added):
            new = keys_of(added.sources, added.targets)
            order = np.argsort(new, kind="stable")
            new = new[order]
            if addresses is None:
                distinct = np.unique(new)
                fresh = distinct[~_member(keys, distinct)]
                parallel = parallel or len(fresh) < len(new)
                keys = np.insert(keys, np.searchsorted(keys, fresh), fresh)
                new_origins = fresh >> TARGET_BITS
            else:
                places = np.searchsorted(keys, new, side="right")
                keys = np.insert(keys, places, new)
                addresses = np.insert(addresses, places, added.addresses[order])
        return Adjacency(
            keys=keys,
            addresses=addresses,
            pointers=self._moved_pointers(gone_origins, new_origins, vertices),
            parallel=parallel,
        )

    def _moved_pointers(
        self, gone: Vertices, new: Vertices, vertices: int
    ) -> npt.NDArray[np.int64] | None:
        if self.pointers is None:
            return None
        moves = np.zeros(vertices + 1, np.int64)
        np.subtract.at(moves, gone + 1, 1)
        np.add.at(moves, new + 1, 1)
        old = self.pointers
        if len(old) < vertices + 1:
            old = np.concatenate([old, np.full(vertices + 1 - len(old), old[-1])])
        return old + np.cumsum(moves)


def counted(
    keys: Keys, weights: npt.NDArray[Any] | None, *, minlength: int = 0
) -> npt.NDArray[Any]:
    """How many keys there are per target, or the sum of the weights of their origins."""
    own = None if weights is None else weights[keys >> TARGET_BITS]
    return np.bincount(keys & TARGET_MASK, weights=own, minlength=minlength)


def _added(sums: npt.NDArray[Any], more: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The sum of two arrays of which the second may be the longer one; it is changed."""
    more[: len(sums)] += sums
    return more


def _member(keys: Keys, wanted: Keys) -> npt.NDArray[np.bool_]:
    places = np.searchsorted(keys, wanted)
    inside = places < len(keys)
    found = np.zeros(len(wanted), np.bool_)
    found[inside] = keys[places[inside]] == wanted[inside]
    return found


def _pointers(keys: Keys, vertices: int | None) -> npt.NDArray[np.int64] | None:
    if vertices is None:
        return None
    counts = np.bincount(keys >> TARGET_BITS, minlength=vertices)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
