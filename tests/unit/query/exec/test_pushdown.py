"""What is handed to Lance means in Lance what it means here, on a real dataset."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import pyarrow as pa
import pytest
from evaluate_cases import (
    COLUMNS,
    DAYS,
    EDGES,
    FLOATS,
    INSTANTS,
    NOW,
    RANGES,
    TEXTS,
    VALUES,
    Rows,
    conditions,
    const,
    prop,
)
from hypothesis import given, settings

from omnigraph.query import typed
from omnigraph.query.exec.evaluate import holds
from omnigraph.query.exec.pushdown import to_lance_filter
from omnigraph.schema.arrow import arrow_type, table_schema
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.compile import compile_schema
from omnigraph.storage.layout import FILE_FORMAT, physical_table
from support.examples import examples

LENGTH = 60
UNSIGNED = (Scalar.U32, Scalar.U64)


def pool(scalar: Scalar) -> list[Any]:
    if scalar in RANGES:
        low, high = RANGES[scalar]
        return [e for e in EDGES if low <= e <= high]
    pools: dict[Scalar, list[Any]] = {
        Scalar.F32: [f for f in FLOATS if abs(f) < 3e38],
        Scalar.F64: FLOATS,
        Scalar.STRING: TEXTS,
        Scalar.BOOL: [True, False],
        Scalar.DATE: DAYS,
        Scalar.DATETIME: INSTANTS,
    }
    return pools[scalar]


def columns() -> dict[str, pa.Array]:
    """Every pair of columns differs in its period, so that values meet in many combinations."""
    arrays: dict[str, pa.Array] = {}
    for number, (name, kind) in enumerate(COLUMNS.items()):
        values = [None, *pool(kind.scalar)]
        some = [values[(i * (number + 1) + number) % len(values)] for i in range(LENGTH)]
        if kind.is_list:
            some = [None if v is None else [v] for v in some]
        arrays[name] = pa.array(some, arrow_type(kind))
    return arrays


@pytest.fixture(scope="module")
def stored() -> Iterator[tuple[lance.LanceDataset, Rows]]:
    arrays = columns()
    # Columns that no condition speaks of, of types that Lance's expressions do not know.
    others = {
        "photo": pa.array([b"x"] * LENGTH, pa.large_binary()),
        "face": pa.array([[1.0, 2.0]] * LENGTH, pa.list_(pa.float32(), 2)),
    }
    table = pa.table({**others, **{n: a for n, a in arrays.items() if n != "u64s"}})
    key = pa.field("id", pa.string(), nullable=False)
    table = table.append_column(key, pa.array([str(i) for i in range(LENGTH)]))
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "t")
        dataset = lance.write_dataset(physical_table(table), path, data_storage_version=FILE_FORMAT)
        yield dataset, Rows(LENGTH, {}, arrays)


def found(dataset: lance.LanceDataset, condition: Any) -> list[int]:
    return [int(i) for i in dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist()]


@settings(max_examples=examples(130))
@given(expr=conditions({n: k for n, k in COLUMNS.items() if k.scalar not in UNSIGNED}))
def test_lance_and_evaluate_agree(
    stored: tuple[lance.LanceDataset, Rows], expr: typed.Expr
) -> None:
    dataset, rows = stored
    for condition in (expr, typed.Not(operand=expr)):
        asked = to_lance_filter(condition, VALUES)
        if asked is not None:
            assert found(dataset, asked) == holds(condition, rows, VALUES).nonzero()[0].tolist()


def test_what_can_be_said(stored: tuple[lance.LanceDataset, Rows]) -> None:
    dataset, rows = stored
    some: list[typed.Expr] = [
        typed.Compare(op="=", left=prop("string_1"), right=const(text, Scalar.STRING))
        for text in TEXTS
    ]
    some += [
        typed.Compare(op=op, left=prop(name), right=const(value, scalar))
        for name, value, scalar in (
            ("i64_1", 2**53 + 1, Scalar.I64),
            ("i64_1", float(2**53), Scalar.F64),
            ("i32_1", 2.5, Scalar.F64),
            ("i32_1", 2**40, Scalar.I64),
            ("f32_1", 0.1, Scalar.F64),
            ("f64_1", 2**53 + 1, Scalar.I64),
            ("date_1", date(1970, 1, 1), Scalar.DATE),
            ("datetime_1", NOW, Scalar.DATETIME),
            ("datetime_1", datetime(1, 1, 1, tzinfo=UTC), Scalar.DATETIME),
            ("string_2", None, Scalar.STRING),
        )
        for op in ("=", "!=", "<", "<=", ">", ">=")
    ]
    some += [
        typed.IsNull(operand=prop("f64_2")),
        typed.InList(
            item=prop("string_1"), values=const(("%", "it's"), Scalar.STRING, is_list=True)
        ),
        typed.InList(item=prop("i32_1"), values=const((1, 2.5, None), Scalar.F64, is_list=True)),
        typed.InList(item=prop("i32_1"), values=const((), Scalar.F64, is_list=True)),
        typed.TextTest(kind="contains", text=prop("string_1"), part=const("%", Scalar.STRING)),
        typed.TextTest(kind="starts_with", text=prop("string_1"), part=const("_", Scalar.STRING)),
        typed.And(operands=(prop("bool_1"), typed.Not(operand=prop("bool_2")))),
        typed.Compare(op="<", left=typed.Now(), right=prop("datetime_2")),
    ]
    for expr in some:
        for condition in (expr, typed.Not(operand=expr)):
            asked = to_lance_filter(condition, VALUES)
            assert asked is not None, condition
            assert found(dataset, asked) == holds(condition, rows, VALUES).nonzero()[0].tolist()


def test_a_list_of_unsigned_numbers_keeps_a_whole_table_from_lance(tmp_path: Path) -> None:
    schema = "node A { code: I32 @key  ok: [I64]?  u: U64? }\nnode B { code: I32 @key  no: [U64]? }"
    nodes = compile_schema(schema).nodes
    code = typed.Prop(variable="p", column="code", type=PropertyType(scalar=Scalar.I32))
    expr = typed.Compare(op="=", left=code, right=const(1, Scalar.I32))
    assert to_lance_filter(expr, VALUES, nodes["A"]) is not None
    assert to_lance_filter(expr, VALUES, nodes["B"]) is None
    for name, works in (("A", True), ("B", False)):
        row = {"id": "1", "code": 1}
        table = pa.Table.from_pylist([row], schema=table_schema(nodes[name]))
        dataset = lance.write_dataset(physical_table(table), str(tmp_path / name))
        asked = to_lance_filter(expr, VALUES)
        if works:
            assert found(dataset, asked) == [1]
        else:
            # When Lance learns it, this fails and the rule can go.
            with pytest.raises(ValueError, match="Substrait"):
                found(dataset, asked)


def test_what_cannot_be_said() -> None:
    other = typed.Prop(variable="q", column="i32_1", type=PropertyType(scalar=Scalar.I32))
    known = typed.Compare(op="=", left=prop("i32_1"), right=const(1, Scalar.I32))
    for expr in (
        typed.Compare(op="=", left=prop("i32_1"), right=prop("i32_2")),
        typed.Compare(op="=", left=prop("i32_1"), right=other),
        typed.And(operands=(known, typed.Compare(op="=", left=other, right=const(1, Scalar.I32)))),
        typed.Compare(op="=", left=prop("u64_1"), right=const(2**64 - 1, Scalar.U64)),
        typed.Compare(op="=", left=prop("u32_1"), right=const(1, Scalar.U32)),
        typed.Contains(values=prop("strings"), item=const("a", Scalar.STRING)),
        typed.Compare(op="=", left=const(1, Scalar.I32), right=const(1, Scalar.I32)),
        typed.Or(operands=(known, typed.IsNull(operand=prop("u64_1")))),
    ):
        assert to_lance_filter(expr, VALUES) is None, expr
