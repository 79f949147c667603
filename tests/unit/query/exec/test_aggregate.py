"""Aggregates over rows that stand for many, against the rows written out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from exec_support import frame
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.query.exec.aggregate import Grouped, codes_of
from omnigraph.query.typed import AggregateCall, Prop
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import PropertyType, Scalar
from support.examples import examples

VALUES = {
    Scalar.I64: [-(2**63), -1, 0, 3, 2**63 - 1],
    Scalar.I32: [-3, 0, 7],
    Scalar.U64: [0, 1, 2**64 - 1],
    Scalar.F64: [-1.5, -0.0, 0.0, 2.25],
    Scalar.STRING: ["", "a", "B", "é"],
    Scalar.BOOL: [False, True],
}
NUMBERS = (Scalar.I32, Scalar.F64)
"""Sums of these few are exact in any order; extremes are tested with the others."""


def call(function: str, scalar: Scalar, *, distinct: bool = False) -> AggregateCall:
    kind = PropertyType(scalar=scalar, nullable=True)
    result = {
        "count": PropertyType(scalar=Scalar.I64),
        "sum": PropertyType(scalar=Scalar.F64, nullable=True),
        "avg": PropertyType(scalar=Scalar.F64, nullable=True),
    }.get(function, kind)
    operand = Prop(variable="v", column="p", type=kind)
    return AggregateCall(function=function, operand=operand, distinct=distinct, type=result)


@st.composite
def cases(draw):
    function = draw(st.sampled_from(["count", "sum", "avg", "min", "max"]))
    scalars = NUMBERS if function in ("sum", "avg") else tuple(VALUES)
    scalar = draw(st.sampled_from(scalars))
    row = st.tuples(
        st.integers(-1, 2), st.sampled_from(VALUES[scalar]) | st.none(), st.integers(1, 4)
    )
    rows = draw(st.lists(row, max_size=12))
    distinct = function in ("count", "sum", "avg") and draw(st.booleans())
    return scalar, function, distinct, rows, draw(st.booleans()), draw(st.booleans())


def expected(function, distinct, values):
    known = [v for v in values if v is not None]
    if distinct:
        known = list(dict.fromkeys(0.0 if v == 0 else v for v in known))
    if function == "count":
        return len(known)
    if not known:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(known)
    total = sum(Fraction(v) for v in known)
    return float(total if function == "sum" else total / len(known))


@settings(max_examples=examples(100))
@given(cases())
def test_every_function(case):
    scalar, function, distinct, rows, keyed, weighted = case
    keys = [r[0] for r in rows]
    weights = [r[2] for r in rows] if weighted else None
    grouped = Grouped(
        frame(weights=weights, v=list(range(len(rows)))),
        [np.array(keys, np.int64)] if keyed else [],
    )
    column = pa.array([r[1] for r in rows], arrow_type(PropertyType(scalar=scalar)))
    if scalar is Scalar.STRING:
        column = column.dictionary_encode()
    found = grouped.evaluate(call(function, scalar, distinct=distinct), column).to_pylist()
    groups: dict[int, list] = {}
    for key, value, weight in rows:
        copies = weight if weighted else 1
        groups.setdefault(key if keyed else 0, []).extend([value] * copies)
    if not keyed and not rows:
        groups = {0: []}
    firsts = grouped.groups.first.tolist()
    order = [keys[f] for f in firsts] if keyed else [0]
    assert found == [expected(function, distinct, groups[key]) for key in order]


def test_the_type_of_an_extreme_is_the_operands():
    grouped = Grouped(frame(v=[0, 1]), [])
    for scalar in (Scalar.U64, Scalar.I32, Scalar.STRING):
        values = pa.array(VALUES[scalar][:2], arrow_type(PropertyType(scalar=scalar)))
        assert grouped.evaluate(call("max", scalar), values).type == values.type


def test_no_rows_without_keys_is_one_row():
    grouped = Grouped(frame(v=[]), [])
    none = pa.array([], pa.int64())
    answers = [
        grouped.evaluate(call(f, Scalar.I64), none)[0].as_py() for f in ("count", "sum", "min")
    ]
    assert answers == [0, None, None]
    assert grouped.row_counts().tolist() == [0]


def test_no_rows_with_keys_is_no_row():
    grouped = Grouped(frame(v=[]), [np.empty(0, np.int64)])
    assert grouped.count == 0
    assert len(grouped.evaluate(call("avg", Scalar.I64), pa.array([], pa.int64()))) == 0


@pytest.mark.parametrize(
    "values",
    [
        pa.array([3, 3, None, 2**63 - 1, -(2**63)], pa.int64()),
        pa.array([0, 2**64 - 1, 0], pa.uint64()),
        pa.array([-1, 5, -1], pa.int32()),
        pa.array([0.0, -0.0, None, 1.5], pa.float64()),
        pa.array([0.0, -0.0, 1.5], pa.float32()),
        pa.array(["a", None, "", "a"], pa.string()),
        pa.array(["a", None, "", "a"], pa.string()).dictionary_encode(),
        pa.array([True, False, None, True]),
        pa.array([[1], [], None, [1], [None]], pa.list_(pa.int64())),
        pa.array([{"@id": "a", "x": 1}, None, {"@id": "a", "x": 1}]),
        pa.array([1, None, 1], pa.timestamp("ms", "UTC")),
        pa.array([], pa.int64()),
    ],
    ids=lambda v: str(v.type),
)
def test_codes_are_equal_where_values_are(values):
    codes = codes_of(values).tolist()
    plain = values.to_pylist()
    for one, i in zip(plain, codes, strict=True):
        assert (i == -1) == (one is None)
        for other, j in zip(plain, codes, strict=True):
            assert (i == j) == (one == other)
