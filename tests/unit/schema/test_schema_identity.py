from __future__ import annotations

import json
import math
import struct
import sys
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InputError, InternalError
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.identity import canonical_ids


def node(body):
    return compile_schema(f"node T {{ {body} }}").nodes["T"]


def ids(graph_type, **columns):
    arrays = {}
    for name, values in columns.items():
        prop = graph_type.by_name.get(name)
        arrays[name] = pa.array(values, arrow_type(prop.type) if prop else pa.string())
    return canonical_ids(graph_type, pa.table(arrays)).to_pylist()


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        ("String", ["", "a b", 'q"\\', "é"], ["", "a b", 'q"\\', "é"]),
        ("I32", [0, -7, 2**31 - 1], ["0", "-7", "2147483647"]),
        ("I64", [-(2**63)], ["-9223372036854775808"]),
        ("U64", [2**64 - 1], ["18446744073709551615"]),
        ("Bool", [True, False], ["true", "false"]),
        ("Date", [date(1970, 1, 2), date(1969, 12, 31)], ["1", "-1"]),
        ("DateTime", [datetime(1970, 1, 1, 0, 0, 1, 5000, UTC)], ["1005"]),
        ("enum(a, b)", ["a", "b"], ["a", "b"]),
        ("F64", [0.1, 5.0, -0.0, 0.0, 1e16, 1e-7, 1e300], ["0.1", "5", "0", "0", "1e+16", "1e-07", "1e+300"]),
        ("F32", [0.1, 16777216.0, -0.0, 3.4028234663852886e38], ["0.1", "16777216", "0", "3.4028235e+38"]),
    ],
)  # fmt: skip
def test_text_of_one_member(kind, values, texts):
    assert ids(node(f"a: {kind} @key"), a=values) == texts


def test_null_member_gives_a_null_id():
    assert ids(node("a: I32 @key"), a=[1, None]) == ["1", None]
    assert ids(node("a: F32 @key"), a=[1.5, None]) == ["1.5", None]
    both = node("a: I32 b: String @key(a, b)")
    assert ids(both, a=[1, None, 3], b=['"', '"', None]) == [r'["1","\""]', None, None]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_number_that_is_not_finite_is_refused(value):
    with pytest.raises(InputError, match=r"T\.a: "):
        ids(node("a: F64 @key"), a=[1.0, value])


def test_several_members_are_a_json_array_in_the_order_of_their_numbers():
    graph_type = node("b: Bool a: String @key(a, b)")
    assert ids(graph_type, a=["x", "é"], b=[True, False]) == ['["true","x"]', '["false","é"]']


def test_only_rows_that_need_it_are_escaped():
    graph_type = node("a: String b: String @key(a, b)")
    values = ["plain", 'q"', "b\\", "n\n", "\x00\x1f\x7f", "é\u2028", ""]
    expected = [json.dumps([v, "x"], ensure_ascii=False, separators=(",", ":")) for v in values]
    assert ids(graph_type, a=values, b=["x"] * len(values)) == expected


def test_keyed_edge_starts_with_its_endpoints():
    schema = compile_schema(
        "node N {} edge E: N -> N { d: Date @key(@src, @dst, d) } edge F: N -> N { @key(@src, @dst) }"
    )
    day = [date(1970, 1, 3)]
    assert ids(schema.edges["E"], src=["1"], dst=['"'], d=day) == [r'["1","\"","2"]']
    assert ids(schema.edges["F"], src=["a"], dst=["b"]) == ['["a","b"]']


def test_declared_id_is_the_id():
    assert ids(node("id: String @key"), id=["x", "y"]) == ["x", "y"]


def test_type_without_key_has_no_derived_ids():
    schema = compile_schema("node N { a: I32 } edge E: N -> N")
    for graph_type in (schema.nodes["N"], schema.edges["E"]):
        with pytest.raises(InternalError):
            canonical_ids(graph_type, pa.table({"src": ["a"], "dst": ["b"]}))


def test_chunks_slices_and_no_rows():
    graph_type = node("a: I64 b: String @key(a, b)")
    table = pa.table(
        {"a": pa.chunked_array([[1], [], [2, 3]]), "b": pa.chunked_array([["x", '"'], ["z"]])}
    )
    assert canonical_ids(graph_type, table).to_pylist() == ['["1","x"]', r'["2","\""]', '["3","z"]']
    assert canonical_ids(graph_type, table.slice(2)).to_pylist() == ['["3","z"]']
    empty = canonical_ids(graph_type, table.slice(0, 0))
    assert (len(empty), empty.type) == (0, pa.string())
    assert isinstance(empty, pa.StringArray)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32)))
def test_f32_text_reads_back_as_the_same_value(values):
    for value, text in zip(values, ids(node("a: F32 @key"), a=values), strict=True):
        assert struct.unpack("<f", struct.pack("<f", float(text)))[0] == value


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_f64_text_reads_back_as_the_same_value(values):
    texts = ids(node("a: F64 @key"), a=values)
    assert [float(t) for t in texts] == values
    assert all(repr(v).removesuffix(".0") == t for v, t in zip(values, texts, strict=True) if v)


@given(st.lists(st.tuples(st.text(), st.text(), st.integers(-5, 5))))
def test_composite_ids_are_json_and_never_ambiguous(rows):
    graph_type = node("a: String b: String c: I32 @key(a, b, c)")
    a, b, c = zip(*rows, strict=True) if rows else ((), (), ())
    found = ids(graph_type, a=a, b=b, c=c)
    assert [json.loads(t) for t in found] == [[x, y, str(z)] for x, y, z in rows]
    assert len(set(found)) == len(set(rows))


@pytest.mark.parametrize("body", ["a: I64 @key", "b: String @key", "a: I64 b: String @key(a, b)"])
def test_a_million_keys_do_not_take_a_python_loop(body):
    rows_n = 1_000_000
    numbers = pa.array(range(rows_n), pa.int64())
    table = pa.table({"a": numbers, "b": numbers.cast(pa.string())})
    graph_type = node(body)
    calls_n = 0

    def count(*_):
        nonlocal calls_n
        calls_n += 1

    sys.setprofile(count)
    try:
        found = canonical_ids(graph_type, table)
    finally:
        sys.setprofile(None)
    assert len(found) == rows_n
    # Calls, not seconds: what the kernels do inside is one call each.
    assert calls_n < 1_000
