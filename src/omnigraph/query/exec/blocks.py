"""Inner blocks: run once for all rows of the enclosing frame, then matched back to them.

A block starts from the rows of the enclosing frame, each tagged with its number. What comes out of
it carries the tags: rows that appear have a solution, their weights say how many.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.query.exec.frame import Binding, Frame, Index
from omnigraph.query.exec.grouping import group
from omnigraph.query.exec.weights import summed

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
    return Frame(
        grown.length,
        {**grown.bindings, **added},
        tags=grown.tags,
        weights=grown.weights,
        scores=grown.scores,
    )
