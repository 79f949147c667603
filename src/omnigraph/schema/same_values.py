"""Whether two columns hold the same values, row by row and exactly.

    images of two versions -> [values] -> which rows, which properties changed

A diff must not call a change what is none, nor miss one. So null is the same as null and nothing
else, floats are compared by their bits (a NaN is itself, ``-0.0`` is not ``0.0``), and lists,
vectors and blobs by what they hold.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import Mask
from omnigraph.errors import InternalError
from omnigraph.schema.json_text import json_text


def same_mask(a: pa.Array | pa.ChunkedArray, b: pa.Array | pa.ChunkedArray) -> Mask:
    """Where ``a`` and ``b`` hold the same value. They have the same length.

    Columns of two numeric types, as a schema change leaves them, are the same where an export
    spells both alike. Of other different types only nulls are the same.
    """
    if len(a) != len(b):
        raise InternalError(f"columns of {len(a)} and {len(b)} rows cannot be compared")
    parts = [_same(x, y) for x, y in _aligned(a, b)]
    return np.concatenate(parts) if parts else np.empty(0, np.bool_)


def _aligned(
    a: pa.Array | pa.ChunkedArray, b: pa.Array | pa.ChunkedArray
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Both columns in pieces that end at the same rows."""
    left, right = _chunks(a), _chunks(b)
    i = j = start_i = start_j = 0
    while i < len(left) and j < len(right):
        rows = min(len(left[i]) - start_i, len(right[j]) - start_j)
        yield left[i].slice(start_i, rows), right[j].slice(start_j, rows)
        start_i += rows
        start_j += rows
        if start_i == len(left[i]):
            i, start_i = i + 1, 0
        if start_j == len(right[j]):
            j, start_j = j + 1, 0


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return [chunk for chunk in chunks if len(chunk)]


def _same(a: pa.Array, b: pa.Array) -> Mask:
    valid_a, valid_b = _mask(a.is_valid()), _mask(b.is_valid())
    same = ~valid_a & ~valid_b
    both = valid_a & valid_b
    if both.all():
        return _same_valid(a, b)
    chosen = pa.array(both)
    same[both] = _same_valid(a.filter(chosen), b.filter(chosen))
    return same


def _same_valid(a: pa.Array, b: pa.Array) -> Mask:
    """Of columns without nulls at the top."""
    kind = a.type
    if not len(a):
        return np.empty(0, np.bool_)
    if _is_list(kind) and _is_list(b.type):
        return _same_lists(a, b)
    if kind != b.type:
        if not (_is_number(kind) and _is_number(b.type)):
            return np.zeros(len(a), np.bool_)
        a, b = json_text(a), json_text(b)
    elif pa.types.is_floating(kind):
        bits = pa.uint32() if kind.bit_width == 32 else pa.uint64()
        a, b = a.view(bits), b.view(bits)
    return _mask(pc.equal(a, b))


def _same_lists(a: pa.Array, b: pa.Array) -> Mask:
    lengths = _lengths(a)
    same = lengths == _lengths(b)
    if not same.all():
        chosen = pa.array(same)
        a, b, lengths = a.filter(chosen), b.filter(chosen), lengths[same]
    # Lists of equal lengths have their elements at equal places. Those that differ are counted up
    # to the end of each list: a list is the same if the count does not move over it.
    differing = np.concatenate([np.zeros(1, np.int64), np.cumsum(~_same(a.flatten(), b.flatten()))])
    ends = np.cumsum(lengths)
    same[same] = differing[ends] == differing[ends - lengths]
    return same


def _lengths(lists: pa.Array) -> npt.NDArray[np.int64]:
    if pa.types.is_fixed_size_list(lists.type):
        return np.full(len(lists), lists.type.list_size, np.int64)
    return pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _mask(values: pa.BooleanArray) -> Mask:
    return values.to_numpy(zero_copy_only=False)
