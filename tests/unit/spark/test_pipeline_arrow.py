from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InternalError
from omnigraph.schema.temporal import DAY_MAX, DAY_MIN, MS_MAX, MS_MIN
from omnigraph.spark.arrow import (
    U64,
    carried_schema,
    from_spark,
    spark_schema,
    to_spark,
)

MS = pa.timestamp("ms", tz="UTC")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("flag", pa.bool_()),
        pa.field("i32", pa.int32()),
        pa.field("i64", pa.int64()),
        pa.field("u32", pa.uint32()),
        pa.field("u64", pa.uint64()),
        pa.field("f32", pa.float32()),
        pa.field("f64", pa.float64()),
        pa.field("day", pa.date32()),
        pa.field("at", MS),
        pa.field("blob", pa.large_binary()),
        pa.field("names", pa.list_(pa.field("item", pa.string()))),
        pa.field("sizes", pa.list_(pa.field("item", pa.uint64()))),
        pa.field("times", pa.list_(pa.field("item", MS))),
        pa.field("vector", pa.list_(pa.field("item", pa.float32()), 3)),
        pa.field("node", pa.struct([pa.field("@id", pa.string()), pa.field("n", pa.uint64())])),
    ]
)
FINITE = {"allow_nan": False, "allow_infinity": False}
U64S = st.integers(0, 2**64 - 1)
INSTANTS = st.integers(MS_MIN, MS_MAX)
VALUES: dict[str, st.SearchStrategy] = {
    "flag": st.booleans(),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "i64": st.integers(-(2**63), 2**63 - 1),
    "u32": st.integers(0, 2**32 - 1),
    "u64": U64S,
    "f32": st.floats(width=32, **FINITE),
    "f64": st.floats(**FINITE),
    "day": st.integers(DAY_MIN, DAY_MAX),
    "at": INSTANTS,
    "blob": st.binary(max_size=8),
    "names": st.lists(st.text(max_size=4), max_size=3),
    "sizes": st.lists(U64S, max_size=3),
    "times": st.lists(INSTANTS, max_size=3),
    "vector": st.lists(st.floats(width=32, **FINITE), min_size=3, max_size=3),
    "node": st.fixed_dictionaries({"@id": st.text(max_size=3), "n": U64S}),
}


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    count = draw(st.integers(0, 6))
    columns = [pa.array([f"n{i}" for i in range(count)], pa.string())]
    for field in list(SCHEMA)[1:]:
        some = VALUES[field.name] | st.none()
        values = draw(st.lists(some, min_size=count, max_size=count))
        columns.append(pa.array(values, field.type))
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    return batch.slice(draw(st.integers(0, count)))


@given(batches())
def test_there_and_back_changes_nothing(batch: pa.RecordBatch):
    carried = carried_schema(SCHEMA)
    sent = to_spark(batch, carried)
    sent.validate(full=True)
    assert sent.schema == carried
    back = from_spark(sent, SCHEMA)
    back.validate(full=True)
    assert back.schema == SCHEMA and back.equals(batch)


def test_the_carried_schema_is_the_one_that_spark_makes_of_ours():
    from pyspark.sql.pandas.types import to_arrow_schema

    assert to_arrow_schema(spark_schema(SCHEMA), timezone="UTC") == carried_schema(SCHEMA)


def test_the_words_for_spark():
    words = spark_schema(SCHEMA).simpleString()
    assert words.startswith("struct<id:string,flag:boolean,i32:int,i64:bigint,u32:bigint,")
    assert "u64:decimal(20,0)" in words
    assert "sizes:array<decimal(20,0)>,times:array<timestamp>,vector:array<float>" in words
    assert words.endswith("node:struct<@id:string,n:decimal(20,0)>>")
    assert [f.nullable for f in spark_schema(SCHEMA)][:2] == [False, True]


def test_what_spark_says_in_other_words_is_understood():
    at = datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)
    given_ = pa.record_batch(
        {
            "at": pa.array([at], pa.timestamp("us", tz="America/New_York")),
            "blob": pa.array([b"x"], pa.large_binary()),
            "id": pa.array(["a"], pa.large_string()),
        }
    )
    schema = pa.schema([SCHEMA.field(n) for n in ("id", "at", "blob")])
    assert from_spark(given_, schema).to_pylist() == [{"id": "a", "at": at, "blob": b"x"}]


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("u32", -1, pa.int64()),
        ("u32", 2**32, pa.int64()),
        ("u64", 2**64, U64),
        ("u64", -1, U64),
        ("at", datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC), pa.timestamp("us", tz="UTC")),
        ("vector", [1.0, 2.0], pa.list_(pa.float32())),
    ],
)
def test_a_value_that_the_type_does_not_have_is_refused(name: str, value, kind: pa.DataType):
    batch = pa.record_batch({name: pa.array([None, value], kind)})
    with pytest.raises(pa.ArrowInvalid):
        from_spark(batch, pa.schema([SCHEMA.field(name)]))


def test_a_null_for_a_required_column_is_refused():
    batch = pa.record_batch({"id": pa.array([None], pa.string())})
    with pytest.raises(pa.ArrowInvalid, match="column 'id' has nulls"):
        from_spark(batch, pa.schema([SCHEMA.field("id")]))


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("i32", pa.array([1], pa.int64())),
        ("f32", pa.array([1.0], pa.float64())),
        ("at", pa.array([date(2026, 1, 1)], pa.date32())),
        ("u64", pa.array([1], pa.int64())),
        ("names", pa.array([[1]], pa.list_(pa.int32()))),
        ("node", pa.array([{"@id": "a"}], pa.struct([("@id", pa.string())]))),
    ],
)
def test_another_type_is_a_mistake_of_ours(name: str, array: pa.Array):
    with pytest.raises(InternalError, match=f"column '{name}' came from Spark as"):
        from_spark(pa.record_batch({name: array}), pa.schema([SCHEMA.field(name)]))


def test_a_type_that_no_property_has_is_no_type_for_spark():
    with pytest.raises(InternalError, match="no Spark type holds"):
        carried_schema(pa.schema([("x", pa.duration("s"))]))
