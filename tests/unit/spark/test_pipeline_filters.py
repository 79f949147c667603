"""Spark's filters and our conditions keep the same rows, null by null."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import datasource as spark

from omnigraph.query.exec.evaluate import Values, holds
from omnigraph.query.pinned_scan import _BatchRows
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.compile import compile_schema
from omnigraph.spark.filters import to_conditions

SCHEMA = """
node T {
  s: String?  b: Bool?  i: I32?  l: I64?  u: U32?  w: U64?  f: F32?  d: F64?  on: Date?  at: DateTime?
  x: Blob?  v: Vector(2)?  ss: [String]?
}
edge E: T -> T
"""
CATALOG = compile_schema(SCHEMA)
T, E = CATALOG.nodes["T"], CATALOG.edges["E"]
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
COLUMNS: dict[str, list[Any]] = {
    "s": ["", "a", "ab", "é", "zab"],
    "b": [True, False],
    "i": [-(2**31), -1, 0, 1, 2**31 - 1],
    "l": [-(2**63), 0, 5, 2**63 - 1],
    "u": [0, 5, 2**32 - 1],
    "w": [0, 5, 2**63, 2**64 - 1],
    "f": [-1.5, -0.0, 0.0, 2.5],
    "d": [-1e300, -0.0, 0.0, 0.1, 1e300],
    "on": [date(1, 1, 1), date(2026, 1, 31), date(9999, 12, 31)],
    "at": [datetime(1970, 1, 1, tzinfo=UTC), NOON],
}
VALUES = Values(params={}, now=NOON)


def batch() -> pa.RecordBatch:
    """Each column with all its values and a null, others null meanwhile."""
    rows = [{name: v} for name, values in COLUMNS.items() for v in [*values, None]]
    schema = table_schema(T)
    return pa.RecordBatch.from_pylist([{"id": str(n)} | r for n, r in enumerate(rows)], schema)


BATCH = batch()


def as_spark(name: str, value: Any) -> Any:
    """A constant as Spark hands it over for a column of ours."""
    return Decimal(value) if name == "w" else value


def sql(given_: spark.Filter, row: dict[str, Any]) -> bool | None:
    """What SQL says of a row."""
    if isinstance(given_, spark.Not):
        inner = sql(given_.child, row)
        return None if inner is None else not inner
    value = row[given_.attribute[0]]
    match given_:
        case spark.IsNull():
            return value is None
        case spark.IsNotNull():
            return value is not None
        case spark.EqualNullSafe(value=other):
            return value == other
        case spark.In(value=listed):
            if value is None:
                return None
            return True if value in listed else None if None in listed else False
    if value is None:
        return None
    match given_:
        case spark.EqualTo(value=other):
            return value == other
        case spark.GreaterThan(value=other):
            return value > other
        case spark.GreaterThanOrEqual(value=other):
            return value >= other
        case spark.LessThan(value=other):
            return value < other
        case spark.LessThanOrEqual(value=other):
            return value <= other
        case spark.StringContains(value=other):
            return other in value
        case spark.StringStartsWith(value=other):
            return value.startswith(other)
        case spark.StringEndsWith(value=other):
            return value.endswith(other)
    raise TypeError(f"not a filter of Spark: {given_}")


@st.composite
def filters(draw: st.DrawFn) -> spark.Filter:
    name = draw(st.sampled_from(list(COLUMNS)))
    constant = st.sampled_from([as_spark(name, v) for v in COLUMNS[name]])
    kinds = ["IsNull", "IsNotNull", "EqualTo", "EqualNullSafe", "In"]
    if name != "b":
        kinds += ["GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"]
    if name == "s":
        kinds += ["StringContains", "StringStartsWith", "StringEndsWith"]
    kind = draw(st.sampled_from(kinds))
    if kind.startswith("Is"):
        made = getattr(spark, kind)(attribute=(name,))
    elif kind == "In":
        listed = draw(st.lists(constant | st.none(), min_size=1, max_size=3))
        made = spark.In(attribute=(name,), value=tuple(listed))
    elif kind == "EqualNullSafe":
        made = spark.EqualNullSafe(attribute=(name,), value=draw(constant | st.none()))
    else:
        made = getattr(spark, kind)(attribute=(name,), value=draw(constant))
    return spark.Not(child=made) if draw(st.booleans()) else made


@given(st.lists(filters(), min_size=1, max_size=3))
def test_a_filter_keeps_the_rows_that_sql_keeps(given_: list[spark.Filter]):
    conditions, rest = to_conditions(given_, T)
    ends = [f for f in given_ if "StringEndsWith" in repr(f)]
    assert rest == ends and len(conditions) == len(given_) - len(rest)
    said = [f for f in given_ if f not in rest]
    for one, condition in zip(said, conditions, strict=True):
        kept = holds(condition, _BatchRows(BATCH), VALUES).tolist()
        assert kept == [sql(one, row) is True for row in BATCH.to_pylist()], one


@pytest.mark.parametrize(
    "left_to_spark",
    [
        spark.EqualTo(attribute=("i",), value="5"),
        spark.EqualTo(attribute=("i",), value=True),
        spark.EqualTo(attribute=("i",), value=1.5),
        spark.EqualTo(attribute=("w",), value=Decimal("1.5")),
        spark.GreaterThan(attribute=("d",), value=float("nan")),
        spark.LessThan(attribute=("d",), value=float("inf")),
        spark.EqualTo(attribute=("at",), value=datetime(2026, 1, 1)),
        spark.EqualTo(attribute=("at",), value=datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)),
        spark.EqualTo(attribute=("on",), value=NOON),
        spark.EqualTo(attribute=("x",), value=b"x"),
        spark.EqualTo(attribute=("ss",), value=["a"]),
        spark.In(attribute=("ss",), value=(["a"],)),
        spark.In(attribute=("i",), value=(1, "2")),
        spark.GreaterThan(attribute=("b",), value=False),
        spark.EqualTo(attribute=("node", "i"), value=1),
        spark.EqualTo(attribute=("other",), value=1),
        spark.StringContains(attribute=("ss",), value="a"),
        spark.StringEndsWith(attribute=("s",), value="a"),
        spark.Not(child=spark.StringEndsWith(attribute=("s",), value="a")),
    ],
)
def test_what_we_do_not_say_exactly_is_left_to_spark(left_to_spark: spark.Filter):
    assert to_conditions([left_to_spark], T) == ([], [left_to_spark])


@pytest.mark.parametrize("name", ["x", "v", "ss"])
def test_whether_anything_is_there_can_be_asked_of_every_column(name: str):
    conditions, rest = to_conditions([spark.IsNull(attribute=(name,))], T)
    assert not rest and holds(conditions[0], _BatchRows(BATCH), VALUES).all()


def test_ids_and_endpoints_are_text():
    given_ = [spark.EqualTo(attribute=(n,), value="a") for n in ("id", "src", "dst")]
    conditions, rest = to_conditions(given_, E)
    rows = pa.RecordBatch.from_pylist([{"id": "a", "src": "a", "dst": "b"}], table_schema(E))
    assert not rest
    assert [holds(c, _BatchRows(rows), VALUES)[0] for c in conditions] == [True, True, False]
