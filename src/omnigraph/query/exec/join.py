"""Two frames side by side: every pair of rows, or those whose values are equal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.query.exec.aggregate import codes_of
from omnigraph.query.exec.frame import Frame, Index, NodeBinding
from omnigraph.query.exec.grouping import Codes, group
from omnigraph.query.exec.limits import Guard
from omnigraph.query.exec.weights import summed, times

WHERE = "combining parts of the pattern that no traversal connects"


def product(left: Frame, right: Frame, guard: Guard) -> Frame:
    """Every row of one with every row of the other."""
    total = left.length * right.length
    guard.check_rows(total, len(left.bindings) + len(right.bindings), WHERE)
    return side_by_side(
        left.take(np.repeat(np.arange(left.length), right.length)),
        right.take(np.tile(np.arange(right.length), left.length)),
    )


def equal_rows(
    left: Frame,
    right: Frame,
    on: Sequence[tuple[pa.Array, pa.Array]],
    guard: Guard,
) -> Frame:
    """Rows whose values are equal in every pair of columns; null equals nothing."""
    ours, theirs = _common_codes(on, left.length, right.length)
    lefts, rights = np.flatnonzero(ours >= 0), np.flatnonzero(theirs >= 0)
    rights = rights[np.argsort(theirs[rights], kind="stable")]
    sorted_codes = theirs[rights]
    starts = np.searchsorted(sorted_codes, ours[lefts])
    counts = np.searchsorted(sorted_codes, ours[lefts], side="right") - starts
    guard.check_rows(int(counts.sum()), len(left.bindings) + len(right.bindings), WHERE)
    index = np.repeat(np.arange(len(lefts)), counts)
    places = np.arange(len(index)) + (starts - (np.cumsum(counts) - counts))[index]
    return side_by_side(left.take(lefts[index]), right.take(rights[places]))


def _common_codes(
    on: Sequence[tuple[pa.Array, pa.Array]], left: int, right: int
) -> tuple[Codes, Codes]:
    keys: list[Codes] = []
    known = np.ones(left + right, np.bool_)
    for ours, theirs in on:
        both = pa.concat_arrays([_plain(ours), _plain(theirs)])
        if both.null_count:
            known &= both.is_valid().to_numpy(zero_copy_only=False)
        keys.append(codes_of(both))
    codes = np.where(known, group(keys, left + right).of_row, -1)
    return codes[:left], codes[left:]


def _plain(values: pa.Array) -> pa.Array:
    return values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values


def side_by_side(left: Frame, right: Frame) -> Frame:
    """The variables of both; rows correspond."""
    weights = left.weights
    if right.weights is not None:
        weights = right.weights if weights is None else times(weights, right.weights)
    return Frame(
        left.length,
        {**left.bindings, **right.bindings},
        tags={**left.tags, **right.tags},
        weights=weights,
        scores=left.scores if left.scores is not None else right.scores,
    )


def compact(frame: Frame, keep: tuple[str, ...], *, counted: bool) -> Frame:
    """Equal rows in these variables as one; weights add up if rows are counted."""
    if frame.length == 0:
        return frame.only(keep)
    if len(keep) == 1 and not frame.tags and not counted:
        only = frame.bindings[keep[0]]
        if isinstance(only, NodeBinding):
            return Frame(*only.distinct(keep[0]))
    keys: list[Index] = [frame.bindings[name].identity for name in keep]
    keys += list(frame.tags.values())
    groups = group(keys, frame.length)
    if groups.count == frame.length:
        small = frame.only(keep)
        return small if counted else Frame(small.length, small.bindings, tags=small.tags)
    small = frame.only(keep).take(groups.first)
    if not counted:
        return Frame(small.length, small.bindings, tags=small.tags, scores=small.scores)
    return small.weighted(summed(groups.of_row, frame.weights, groups.count))
