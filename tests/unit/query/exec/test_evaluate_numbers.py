"""Numbers of different types compare by value: examples at the places where rounding would show."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from evaluate_cases import VALUES, Rows, const
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query import typed
from omnigraph.query.exec.evaluate import evaluate, holds
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import PropertyType, Scalar

BIG = 2**53


def compare(
    op: Any, scalar: Scalar, left: list[Any], right: Any, other: Scalar
) -> list[bool | None]:
    kinds = {"a": PropertyType(scalar=scalar), "b": PropertyType(scalar=other)}
    values = {"a": left, "b": right if isinstance(right, list) else []}
    arrays = {n: pa.array(v, arrow_type(kinds[n])) for n, v in values.items()}
    a, b = (typed.Prop(variable="p", column=n, type=k) for n, k in kinds.items())
    operand = b if isinstance(right, list) else const(right, other)
    data = Rows(len(left), values, arrays)
    return evaluate(typed.Compare(op=op, left=a, right=operand), data, VALUES).to_pylist()


@pytest.mark.parametrize(
    ("op", "scalar", "left", "right", "other", "expected"),
    [
        ("=", Scalar.I64, [BIG, BIG + 1], float(BIG), Scalar.F64, [True, False]),
        ("<", Scalar.I64, [BIG, BIG + 1], float(BIG), Scalar.F64, [False, False]),
        ("=", Scalar.F64, [float(BIG)], BIG + 1, Scalar.I64, [False]),
        ("<", Scalar.F64, [float(BIG)], BIG + 1, Scalar.I64, [True]),
        (">=", Scalar.F64, [float(BIG), BIG + 2.0], BIG + 1, Scalar.I64, [False, True]),
        ("=", Scalar.I64, [BIG + 1, BIG], [float(BIG), float(BIG)], Scalar.F64, [False, True]),
        (">", Scalar.I64, [BIG + 1], [float(BIG)], Scalar.F64, [True]),
        ("<", Scalar.F64, [float(BIG)], [BIG + 1], Scalar.I64, [True]),
        (">", Scalar.U64, [0, 2**64 - 1], [-1, -1], Scalar.I64, [True, True]),
        ("=", Scalar.U64, [2**64 - 1], [-1], Scalar.I64, [False]),
        ("<", Scalar.I64, [-1], [2**64 - 1], Scalar.U64, [True]),
        (">", Scalar.U64, [0, 5], -1, Scalar.I64, [True, True]),
        ("<", Scalar.U64, [2**64 - 1], 2.0**64, Scalar.F64, [True]),
        ("=", Scalar.U64, [2**64 - 1], [2.0**64], Scalar.F64, [False]),
        ("=", Scalar.I32, [2, 3], 2.5, Scalar.F64, [False, False]),
        ("!=", Scalar.I32, [2, 3], 2.5, Scalar.F64, [True, True]),
        ("<", Scalar.I32, [2, 3], 2.5, Scalar.F64, [True, False]),
        (">", Scalar.I32, [-3, -2], -2.5, Scalar.F64, [False, True]),
        ("<", Scalar.I32, [2, None], 2**40, Scalar.I64, [True, None]),
        ("=", Scalar.I32, [2, None], 2**40, Scalar.I64, [False, None]),
        ("=", Scalar.F32, [0.1], 0.1, Scalar.F64, [False]),
        (">", Scalar.F32, [0.1], 0.1, Scalar.F64, [True]),
        ("=", Scalar.F32, [0.1], [0.1], Scalar.F64, [False]),
        ("<", Scalar.F32, [3.0e38], 1e300, Scalar.F64, [True]),
        ("=", Scalar.F64, [0.0], -0.0, Scalar.F64, [True]),
        ("<", Scalar.F64, [1.7e308], 10**400, Scalar.I64, [True]),
        (">", Scalar.F64, [-1.7e308], -(10**400), Scalar.I64, [True]),
        ("=", Scalar.U32, [5], [5.0], Scalar.F32, [True]),
        ("<", Scalar.I32, [-1], [2**32 - 1], Scalar.U32, [True]),
    ],
)  # fmt: skip
def test_by_value(
    op: Any, scalar: Scalar, left: list[Any], right: Any, other: Scalar, expected: list
) -> None:
    assert compare(op, scalar, left, right, other) == expected


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30),
    st.lists(st.none() | st.floats() | st.integers()),
)
def test_many_values_in_a_list_are_found_by_value(column: list[int], wanted: list[Any]) -> None:
    kind = PropertyType(scalar=Scalar.I64)
    data = Rows(len(column), {}, {"a": pa.array(column, pa.int64())})
    item = typed.Prop(variable="p", column="a", type=kind)
    near = [*wanted, *(float(v) for v in column[::2]), *(v + 1 for v in column[1::2])]
    listed = const(tuple(near), Scalar.F64, is_list=True)
    known = [w for w in near if w is not None]
    assert holds(typed.InList(item=item, values=listed), data, VALUES).tolist() == [
        v in known for v in column
    ]
