"""``same_mask`` against the plainest comparison there is: Python values, one at a time."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InternalError
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.same_values import same_mask

FLOATS = [0.0, -0.0, 1.0, 1.5, math.nan, math.inf, -math.inf]
VALUES: dict[Scalar, list] = {
    Scalar.STRING: ["", "a", "b", "ä", "\0", "null"],
    Scalar.BLOB: [b"", b"a", b"\0", b"\xff" * 9],
    Scalar.BOOL: [True, False],
    Scalar.I32: [0, -1, 2**31 - 1],
    Scalar.I64: [0, -1, 2**63 - 1, 2**53, 2**53 + 1],
    Scalar.U32: [0, 1, 2**32 - 1],
    Scalar.U64: [0, 1, 2**64 - 1, 2**64 - 2],
    Scalar.F32: FLOATS,
    Scalar.F64: [*FLOATS, 0.1, 0.1 + 2**-55],
    Scalar.DATE: [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
    Scalar.DATETIME: [datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 1000, UTC)],
}
TYPES = [
    *(PropertyType(scalar=s, is_list=many) for s in VALUES for many in (False, True)),
    PropertyType(scalar=Scalar.VECTOR, vector_size=3),
]


def naive(a: object, b: object) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(naive, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    return type(a) is type(b) and a == b


def values_of(kind: PropertyType) -> st.SearchStrategy:
    if kind.vector_size is not None:
        one = st.lists(
            st.sampled_from([*FLOATS, None]), min_size=kind.vector_size, max_size=kind.vector_size
        )
    else:
        one = st.sampled_from(VALUES[kind.scalar])
        if kind.is_list:
            one = st.lists(one | st.none(), max_size=4)
    return one | st.none()


@st.composite
def two_columns(draw: st.DrawFn) -> tuple[pa.DataType, list[tuple]]:
    kind = draw(st.sampled_from(TYPES))
    value = values_of(kind)
    same = value.map(lambda v: (v, v))
    return arrow_type(kind), draw(st.lists(same | st.tuples(value, value), max_size=12))


def in_chunks(values: list, kind: pa.DataType, cuts: list[int]) -> pa.ChunkedArray:
    edges = [0, *sorted(min(c, len(values)) for c in cuts), len(values)]
    whole = pa.array(values, kind)
    chunks = [whole.slice(a, b - a) for a, b in pairwise(edges)]
    return pa.chunked_array(chunks, kind)


@given(
    columns=two_columns(),
    cuts=st.tuples(*[st.lists(st.integers(0, 12), max_size=3) for _ in range(2)]),
)
def test_it_agrees_with_python_values_one_at_a_time(columns: tuple, cuts: tuple) -> None:
    kind, pairs = columns
    a, b = ([p[i] for p in pairs] for i in (0, 1))
    expected = [naive(x, y) for x, y in pairs]
    assert same_mask(in_chunks(a, kind, cuts[0]), in_chunks(b, kind, cuts[1])).tolist() == expected
    # As slices of larger arrays, whose buffers begin elsewhere.
    padded = [pa.array([None, *v, None], kind).slice(1, len(v)) for v in (a, b)]
    assert same_mask(*padded).tolist() == expected


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_column_type_is_the_same_as_itself(kind: PropertyType) -> None:
    scalars = VALUES.get(kind.scalar, FLOATS[:3])
    values = [*([scalars] if kind.is_list or kind.vector_size else scalars), None]
    column = pa.array(values, arrow_type(kind))
    assert same_mask(column, column).tolist() == [True] * len(values)
    assert same_mask(column, column.take(pa.array([len(values) - 1] * len(values)))).tolist() == [
        *([False] * (len(values) - 1)),
        True,
    ]


def test_bits_decide_between_nans() -> None:
    bits = pa.array([0x7FC00000, 0x7FC00001], pa.uint32())
    other = pa.array([0x7FC00000, 0x7FC00000], pa.uint32())
    assert same_mask(bits.view(pa.float32()), other.view(pa.float32())).tolist() == [
        True,
        False,
    ]


def test_numbers_of_two_widths_are_the_same_where_an_export_spells_them_alike() -> None:
    small = pa.array([1, -5, None, 7], pa.int32())
    assert same_mask(small, pa.array([1, -5, None, 8], pa.int64())).tolist() == [
        True, True, True, False,
    ]  # fmt: skip
    single = pa.array([0.5, 0.1, 16777217.0], pa.float32())
    assert same_mask(single, pa.array([0.5, 0.1, 16777217.0])).tolist() == [True, True, False]


def test_other_types_share_only_null() -> None:
    assert same_mask(pa.array(["1", None]), pa.array([1, None])).tolist() == [False, True]


def test_columns_of_two_lengths_are_a_bug() -> None:
    with pytest.raises(InternalError):
        same_mask(pa.array([1]), pa.array([1, 2]))
