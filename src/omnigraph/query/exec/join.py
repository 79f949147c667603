"""Two frames side by side: every pair of rows, or those whose values are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.query.exec.aggregate import Codes, codes_of, group
from omnigraph.query.exec.frame import Binding, Frame, Index, NodeBinding, summed, times
from omnigraph.query.exec.limits import Guard
from omnigraph.query.exec.outputs import plain

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
        both = pa.concat_arrays(_of_one_type(plain(ours), plain(theirs)))
        if both.null_count:
            known &= both.is_valid().to_numpy(zero_copy_only=False)
        keys.append(codes_of(both))
    codes = np.where(known, group(keys, left + right).of_row, -1)
    return codes[:left], codes[left:]


def _of_one_type(ours: pa.Array, theirs: pa.Array) -> list[pa.Array]:
    """Numbers in the type that holds both exactly; a plan joins no others of two types."""
    if ours.type == theirs.type:
        return [ours, theirs]
    if pa.types.is_floating(ours.type):
        wide = pa.float64()
    else:
        kinds = (ours.type, theirs.type)
        wide = pa.uint64() if all(map(pa.types.is_unsigned_integer, kinds)) else pa.int64()
    return [ours.cast(wide), theirs.cast(wide)]


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


# -- blocks ----------------------------------------------------------------------------------------
# Inner blocks: run once for all rows of the enclosing frame, then matched back to them.
#
# A block starts from the rows of the enclosing frame, each tagged with its number. What comes out
# of it carries the tags: rows that appear have a solution, their weights say how many.


TAG = "#outer"
SHARE_MIN = 32
"""From so many rows on it pays to look whether several ask the same question."""


def outer_frame(frame: Frame, variables: tuple[str, ...]) -> Frame:
    """The rows of a frame as the start of a block."""
    small = frame.only(variables)
    return Frame(frame.length, small.bindings, tags={TAG: np.arange(frame.length)})


def solutions(frame: Frame, variables: tuple[str, ...], inside: Callable[[Frame], Frame]) -> Index:
    """How many solutions a block has for each row; asked once for rows with equal variables."""
    if frame.length >= SHARE_MIN:
        groups = group([frame.bindings[v].identity for v in variables], frame.length)
        if groups.count * 2 <= frame.length:
            asked = frame.only(variables).take(groups.first)
            return _counts(asked, variables, inside)[groups.of_row]
    return _counts(frame, variables, inside)


def _counts(frame: Frame, variables: tuple[str, ...], inside: Callable[[Frame], Frame]) -> Index:
    found = inside(outer_frame(frame, variables))
    return summed(found.tags[TAG], found.weights, frame.length)


def attach(frame: Frame, inside: Frame, variables: tuple[str, ...]) -> Frame:
    """Left outer join: rows without a solution stay once, with nulls."""
    tags = inside.tags[TAG]
    lonely = np.ones(frame.length, np.bool_)
    lonely[tags] = False
    alone = np.flatnonzero(lonely)
    index = np.concatenate([tags, alone])
    places = np.concatenate([np.arange(inside.length), np.full(len(alone), -1)])
    # Rows stay in the order of the rows they come from.
    order = np.argsort(index, kind="stable")
    grown = frame.take(index[order])
    added: dict[str, Binding] = {
        name: inside.bindings[name].with_nulls(places[order]) for name in variables
    }
    return grown.binding({**grown.bindings, **added})
