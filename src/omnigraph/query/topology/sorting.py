"""Sorting the edges of a large table by their ends, piece by piece.

Edges are first thrown into buckets by ranges of origins and then sorted bucket by bucket, on two
threads. No step handles more than a piece or a bucket at once, so the arrays to fill may be mapped
from a file, and a caller whose time is up is heard between any two. Two passes over the pieces:
the first counts, the second moves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from omnigraph.deadline import look
from omnigraph.query.topology.adjacency import TARGET_BITS, Keys, Pairs, keys_of
from omnigraph.storage.layout import Addresses

BUCKET_EDGES = 1 << 17
SORTERS = 2
WHERE = "sorting edges"

Piece = Callable[[], Pairs]
Pointers = npt.NDArray[np.int64]


def fill_sorted(
    pieces: Sequence[Piece], keys: Keys, addresses: Addresses | None, pointers: Pointers
) -> None:
    """Fill arrays with the keys of all pieces in order, and with where each origin's keys start.

    ``keys`` and ``addresses`` have one place an edge, ``pointers`` one an origin and one more.
    """
    degrees = np.zeros(len(pointers) - 1, np.int64)
    for piece in pieces:
        look(WHERE)
        degrees += np.bincount(piece().sources, minlength=len(degrees))
    pointers[0] = 0
    np.cumsum(degrees, out=pointers[1:])
    cuts = _cuts(pointers)
    _scatter(pieces, cuts, keys, addresses, pointers)
    _sort_buckets(pointers[cuts].tolist(), keys, addresses)


def fold_repeats(keys: Keys, pointers: Pointers) -> int:
    """Move each key that is there several times to the front once; how many keys are left."""
    kept = 0
    last = -1
    degrees = np.zeros(len(pointers) - 1, np.int64)
    for start in range(0, len(keys), BUCKET_EDGES):
        look(WHERE)
        some = keys[start : start + BUCKET_EDGES]
        fresh = some[np.append(some[0] != last, some[1:] != some[:-1])]
        last = int(some[-1])
        keys[kept : kept + len(fresh)] = fresh
        kept += len(fresh)
        np.add.at(degrees, *_counted(fresh >> TARGET_BITS))
    if kept < len(keys):
        np.cumsum(degrees, out=pointers[1:])
    return kept


def _counted(origins: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    return np.unique(origins, return_counts=True)


def _cuts(pointers: Pointers) -> npt.NDArray[np.int64]:
    """Origins at which buckets begin, and the end: each has edges for one sort."""
    wanted = np.arange(0, int(pointers[-1]), BUCKET_EDGES)
    firsts = np.searchsorted(pointers[:-1], wanted, side="right") - 1
    return np.unique(np.concatenate([[0], firsts, [len(pointers) - 1]]))


def _scatter(
    pieces: Sequence[Piece],
    cuts: npt.NDArray[np.int64],
    keys: Keys,
    addresses: Addresses | None,
    pointers: Pointers,
) -> None:
    bucket_of = np.repeat(np.arange(len(cuts) - 1, dtype=np.int32), np.diff(cuts))
    if len(cuts) <= 1 << 16:
        bucket_of = bucket_of.astype(np.uint16)  # Sorted by radix.
    free = pointers[cuts[:-1]].copy()
    for piece in pieces:
        look(WHERE)
        pairs = piece()
        owners = bucket_of[pairs.sources]
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=len(free))
        before = np.cumsum(counts) - counts
        places = np.arange(len(order)) + np.repeat(free - before, counts)
        keys[places] = keys_of(pairs.sources[order], pairs.targets[order])
        if addresses is not None:
            addresses[places] = pairs.addresses[order]
        free += counts


def _sort_buckets(bounds: Sequence[int], keys: Keys, addresses: Addresses | None) -> None:
    def sort(number: int) -> None:
        own = slice(bounds[number], bounds[number + 1])
        if addresses is None:
            keys[own].sort()
            return
        order = np.argsort(keys[own], kind="stable")
        keys[own] = keys[own][order]
        addresses[own] = addresses[own][order]

    with ThreadPoolExecutor(SORTERS, thread_name_prefix="omnigraph-sort") as pool:
        for start in range(0, len(bounds) - 1, SORTERS * 4):
            look(WHERE)
            list(pool.map(sort, range(start, min(start + SORTERS * 4, len(bounds) - 1))))
