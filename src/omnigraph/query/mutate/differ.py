"""Whether two columns of one type hold the same values, row by row.

Two nulls are the same; a null and a value are not. Numbers are the same when their bits are, so
that a zero can be given the other sign. Lists and vectors are compared element by element.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import Mask


def differing(left: pa.Array, right: pa.Array) -> Mask:
    """Rows in which the two arrays, equally long and of one type, are not the same."""
    here, there = _valid(left), _valid(right)
    differs = here != there
    both = here & there
    if not both.any():
        return differs
    if both.all():
        return _values_differ(left, right)
    rows = pa.array(np.flatnonzero(both))
    differs[both] = _values_differ(left.take(rows), right.take(rows))
    return differs


def _valid(array: pa.Array) -> Mask:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _values_differ(left: pa.Array, right: pa.Array) -> Mask:
    """The same where no row is null."""
    kind = left.type
    if pt.is_fixed_size_list(kind):
        elements = differing(left.flatten(), right.flatten())
        return np.logical_or.reduce(elements.reshape(len(left), kind.list_size), axis=1)
    if pt.is_list(kind):
        return _lists_differ(left, right)
    if pt.is_floating(kind):
        whole = pa.int32() if kind == pa.float32() else pa.int64()
        left, right = left.view(whole), right.view(whole)
    return pc.not_equal(left, right).to_numpy(zero_copy_only=False)


def _lists_differ(left: pa.Array, right: pa.Array) -> Mask:
    lengths = pc.list_value_length(left).to_numpy(zero_copy_only=False)
    differs = lengths != pc.list_value_length(right).to_numpy(zero_copy_only=False)
    same = np.flatnonzero(~differs)
    if not len(same):
        return differs
    rows = pa.array(same)
    elements = differing(left.take(rows).flatten(), right.take(rows).flatten())
    owners = np.repeat(same, lengths[same])
    differs[owners[elements]] = True
    return differs
