"""Membership: an element in the lists of a column, a column's values in one list.

    typed test -> [lists] -> truth

Lists are flattened and all elements are compared at once; what was found is carried back to the row
that the element belongs to.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.exec.truth import Mask, Truth, valid_mask

Offsets = npt.NDArray[np.int64]

_SEARCH_FACTOR = 16
"""Few elements look their row up; for many it is faster to count along all elements."""


def has_equal(lists: pa.Array, equal: Callable[[pa.Array], Truth]) -> Mask:
    """Rows whose list has an element that ``equal`` says yes to; null lists have none."""
    elements, offsets = flat(lists)
    return _rows_with(equal(elements).sure, offsets, lists)


def has_equal_to(
    lists: pa.Array, items: pa.Array, equal: Callable[[pa.Array, pa.Array], Truth]
) -> Mask:
    """Rows whose list has an element equal to the row's own item."""
    elements, offsets = flat(lists)
    parents = np.repeat(np.arange(len(lists)), np.diff(offsets))
    return _rows_with(equal(elements, items.take(pa.array(parents))).sure, offsets, lists)


def has_null(lists: pa.Array) -> Mask:
    """Rows whose list has an element that is null."""
    elements, offsets = flat(lists)
    valid = valid_mask(elements)
    if valid is None:
        return np.zeros(len(lists), np.bool_)
    return _rows_with(~valid, offsets, lists)


def flat(lists: pa.Array) -> tuple[pa.Array, Offsets]:
    """All elements of the rows, and where the elements of each row begin; one more for the end."""
    offsets = lists.offsets.to_numpy().astype(np.int64, copy=False)
    if not len(offsets):
        return lists.values.slice(0, 0), np.zeros(1, np.int64)
    first, end = int(offsets[0]), int(offsets[-1])
    return lists.values.slice(first, end - first), offsets - first


def _rows_with(found: Mask, offsets: Offsets, lists: pa.Array) -> Mask:
    if np.count_nonzero(found) * _SEARCH_FACTOR < len(lists):
        rows = np.zeros(len(lists), np.bool_)
        rows[np.searchsorted(offsets, np.flatnonzero(found), side="right") - 1] = True
    else:
        before = np.zeros(len(found) + 1, np.int32)
        np.cumsum(found, out=before[1:])
        reached = before[offsets]
        rows = reached[1:] > reached[:-1]
    # A null list may still have elements below it.
    valid = valid_mask(lists)
    return rows if valid is None else rows & valid


def distinct(values: tuple[Any, ...]) -> tuple[list[Any], bool]:
    """The values without repeats, and whether one of them is null."""
    found = dict.fromkeys(v for v in values if v is not None)
    return list(found), len(found) < len(values) and None in values
