"""Conditions over columns mean, row by row, what plain Python says they mean."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from evaluate_cases import COLUMNS, NOW, VALUES, Rows, cases, const, naive, prop, rows
from hypothesis import given, settings

from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values, evaluate, holds
from omnigraph.schema.catalog import PropertyType, Scalar
from support.examples import examples


def records(data: Rows) -> list[dict[str, Any]]:
    return [{name: column[i] for name, column in data.values.items()} for i in range(data.length)]


@settings(max_examples=examples(330))
@given(cases())
def test_conditions_mean_what_python_says(case: tuple[Rows, typed.Expr]) -> None:
    data, expr = case
    expected = [naive(expr, row) for row in records(data)]
    found = evaluate(expr, data, VALUES)
    assert isinstance(found, pa.Array)
    assert found.to_pylist() == expected
    mask = holds(expr, data, VALUES)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [value is True for value in expected]


@settings(max_examples=examples(20))
@given(rows())
def test_columns_and_constants_are_themselves(data: Rows) -> None:
    for name in COLUMNS:
        found = evaluate(prop(name), data, VALUES)
        assert isinstance(found, pa.Array)
        assert found.to_pylist() == data.values[name]
    assert evaluate(const(7, Scalar.U64), data, VALUES) == pa.scalar(7, pa.uint64())
    assert evaluate(const(("a", None), Scalar.STRING, is_list=True), data, VALUES).as_py() == [
        "a",
        None,
    ]
    assert evaluate(const(date(2026, 1, 2), Scalar.DATE), data, VALUES).as_py() == date(2026, 1, 2)
    assert evaluate(typed.Now(), data, VALUES).as_py() == NOW
    vector = PropertyType(scalar=Scalar.VECTOR, vector_size=2)
    assert evaluate(typed.Const(value=(0.5, 1.0), type=vector), data, VALUES).as_py() == [0.5, 1.0]


def one(name: str, kind: PropertyType, values: list[Any], array: pa.Array) -> Rows:
    return Rows(len(values), {name: values}, {name: array})


def test_parameters_and_now_are_constants() -> None:
    kind = PropertyType(scalar=Scalar.DATETIME, nullable=True)
    at = [datetime(2026, 1, 1, tzinfo=UTC), None, datetime(2027, 1, 1, tzinfo=UTC)]
    data = one("at", kind, at, pa.array(at, pa.timestamp("ms", tz="UTC")))
    column = typed.Prop(variable="p", column="at", type=kind)
    # A clock is finer than an instant of the graph; the rest is cut off.
    values = Values(params={"then": at[2]}, now=datetime(2026, 1, 1, 0, 0, 0, 999, tzinfo=UTC))
    now = typed.Compare(op="=", left=column, right=typed.Now())
    assert evaluate(now, data, values).to_pylist() == [True, None, False]
    then = typed.Compare(op=">=", left=typed.Param(name="then", type=kind), right=column)
    assert evaluate(then, data, values).to_pylist() == [True, None, True]
    with pytest.raises(InternalError, match=r"\$then"):
        holds(then, data, VALUES)


def test_a_dictionary_may_hold_nulls_repeats_and_more_texts_than_there_are_rows() -> None:
    kind = PropertyType(scalar=Scalar.STRING, nullable=True)
    column = typed.Prop(variable="p", column="s", type=kind)
    dictionary = pa.array(["x", "y", "x", None, *(f"t{i}" for i in range(500))])
    codes = [0, 1, 2, 3, None]
    texts = ["x", "y", "x", None, None]
    few = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int16()), dictionary)
    many = pa.DictionaryArray.from_arrays(pa.array(codes * 200, pa.int8()), dictionary.slice(0, 4))
    tests: list[typed.Expr] = [
        typed.Compare(op="=", left=column, right=const("x", Scalar.STRING)),
        typed.Compare(op="!=", left=column, right=const("x", Scalar.STRING)),
        typed.Compare(op="<", left=column, right=const("y", Scalar.STRING)),
        typed.InList(item=column, values=const(("x", "q"), Scalar.STRING, is_list=True)),
        typed.TextTest(kind="starts_with", text=column, part=const("", Scalar.STRING)),
        typed.TextTest(kind="contains", text=column, part=const("x", Scalar.STRING)),
        typed.Compare(op="=", left=column, right=column),
    ]
    for test in tests:
        expected = [naive(test, {"s": t}) for t in texts]
        assert evaluate(test, one("s", kind, texts, few), VALUES).to_pylist() == expected
        data = one("s", kind, texts * 200, many)
        assert evaluate(test, data, VALUES).to_pylist() == expected * 200


def test_elements_below_a_null_list_are_not_there() -> None:
    kind = PropertyType(scalar=Scalar.I32, is_list=True, nullable=True)
    column = typed.Prop(variable="p", column="l", type=kind)
    lists = pa.ListArray.from_arrays(
        pa.array([0, 2, 3, 3], pa.int32()),
        pa.array([1, 2, 1], pa.int32()),
        type=pa.list_(pa.field("item", pa.int32())),
        mask=pa.array([True, False, False]),
    )
    data = one("l", kind, [None, [1], []], lists)
    has = typed.Contains(values=column, item=const(1, Scalar.I64))
    assert holds(has, data, VALUES).tolist() == [False, True, False]
    within = typed.InList(item=const(1, Scalar.I64), values=column)
    assert evaluate(within, data, VALUES).to_pylist() == [None, True, False]


def test_a_column_of_nothing_but_nulls_may_have_no_type() -> None:
    kind = PropertyType(scalar=Scalar.STRING, nullable=True)
    column = typed.Prop(variable="p", column="s", type=kind)
    data = one("s", kind, [None, None], pa.nulls(2))
    for test in (
        typed.Compare(op="=", left=column, right=const("x", Scalar.STRING)),
        typed.Compare(op="=", left=column, right=column),
        typed.InList(item=column, values=const(("x",), Scalar.STRING, is_list=True)),
    ):
        assert evaluate(test, data, VALUES).to_pylist() == [None, None]


class Counting(Rows):
    """Answers blocks, searches and scores, and remembers who asked."""

    asked: list[str]

    def block(self, expr: typed.Exists | typed.CountOf) -> pa.Array:
        self.asked.append("block")
        if isinstance(expr, typed.Exists):
            return pa.array([True] * self.length)
        return pa.array(range(self.length), pa.int64())

    def text(self, expr: typed.TextMatch) -> pa.Array:
        self.asked.append("text")
        return pa.array([True] * self.length)

    def score(self, expr: typed.Score) -> pa.Array:
        return pa.array([0.5] * self.length)


def test_blocks_searches_and_scores_come_from_the_rows_and_only_when_needed() -> None:
    kind = PropertyType(scalar=Scalar.I32)
    age = typed.Prop(variable="p", column="age", type=kind)
    data = Counting(3, {}, {"age": pa.array([1, 2, 3], pa.int32())})
    object.__setattr__(data, "asked", [])
    block = typed.Pattern(nodes=(), hops=(), filters=(), outer=("p",))
    degree = typed.Compare(op=">", left=typed.CountOf(block=block), right=const(0, Scalar.I64))
    search = typed.TextMatch(
        kind="search", variable="p", column="t", query=const("x", Scalar.STRING)
    )
    young = typed.Compare(op="<", left=age, right=const(0, Scalar.I32))
    old = typed.Compare(op=">", left=age, right=const(1, Scalar.I32))
    assert not holds(
        typed.And(operands=(search, typed.Not(operand=degree), young)), data, VALUES
    ).any()
    assert not evaluate(typed.And(operands=(search, degree, young)), data, VALUES).true_count
    assert holds(typed.Or(operands=(search, typed.Not(operand=young))), data, VALUES).all()
    assert data.asked == []
    both = typed.And(operands=(degree, typed.Exists(block=block), search, old))
    assert holds(both, data, VALUES).tolist() == [False, True, True]
    assert evaluate(both, data, VALUES).to_pylist() == [False, True, True]
    assert sorted(set(data.asked)) == ["block", "text"]
    rank = typed.Bm25(variable="p", column="t", query=const("x", Scalar.STRING))
    assert evaluate(rank, data, VALUES).to_pylist() == [0.5] * 3
    node = typed.Entity(variable="p", type=typed.ObjectType(type_name="T"))
    assert evaluate(typed.IsNull(operand=node), data, VALUES).to_pylist() == [False, True, False]
    assert evaluate(node, data, VALUES).to_pylist() == [True, None, True]
    with pytest.raises(InternalError):
        evaluate(typed.OutputRef(name="n", type=kind), data, VALUES)
