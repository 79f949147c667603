"""Two columns are the same where their values are: every type, nulls and empty lists included."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.schema.same_values import same_mask

FLOATS = st.sampled_from([0.0, -0.0, 0.5, 1e300])
TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), st.sampled_from(["", "a", "ü"])),
    (pa.large_binary(), st.sampled_from([b"", b"\0", b"ab"])),
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-1, 1)),
    (pa.uint64(), st.sampled_from([0, 2**64 - 1])),
    (pa.float64(), FLOATS),
    (pa.timestamp("ms", tz="UTC"), st.integers(0, 2)),
    (pa.list_(pa.string()), st.lists(st.sampled_from(["", "a"]), max_size=3)),
    (pa.list_(pa.float64()), st.lists(FLOATS, max_size=3)),
    (pa.list_(pa.float64(), 2), st.lists(FLOATS, min_size=2, max_size=2)),
]


def bits(value: Any) -> Any:
    if isinstance(value, list):
        return [bits(v) for v in value]
    return struct.pack("d", value) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("kind", "values"), TYPES, ids=lambda v: str(v) if isinstance(v, pa.DataType) else ""
)
@given(data=st.data())
def test_where_python_says_so(
    kind: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    cell = st.none() | values
    pairs = data.draw(st.lists(st.tuples(cell, cell), max_size=8))
    # Slices have offsets, and what lies before them must not be looked at.
    left = pa.array([None, *(a for a, _ in pairs)], kind).slice(1)
    right = pa.array([*(b for _, b in pairs)], kind)
    assert same_mask(left, right).tolist() == [bits(a) == bits(b) for a, b in pairs]
