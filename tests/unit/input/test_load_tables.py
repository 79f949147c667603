from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from load_cases import ALL, CATALOG, tables
from test_load_fast_equals_exact import assert_same_rows

from omnigraph.errors import InputError, UsageError
from omnigraph.ids import SeededIds
from omnigraph.input.loaded_rows import LoadedRows
from omnigraph.input.tables import rows_from_table
from omnigraph.schema.arrow import table_schema

KNOWS = CATALOG.edges["Knows"]
VESSEL = CATALOG.nodes["Vessel"]


def _load(graph_type, table) -> LoadedRows:
    return rows_from_table(graph_type, table, SeededIds(1), source_name="t")


def _one(name: str, array: pa.Array) -> list[object]:
    return _load(ALL, pa.table({name: array})).rows[name].to_pylist()


def _message(graph_type, table) -> str:
    with pytest.raises(InputError) as caught:
        _load(graph_type, table)
    return caught.value.message


@given(tables(ALL))
def test_a_table_of_the_right_types_passes_unchanged(rows: pa.Table):
    assert_same_rows(_load(ALL, rows).rows, rows)


def test_columns_of_the_right_type_are_not_copied():
    rows = pa.table(
        {
            "src": ["a", "b"],
            "dst": ["b", "a"],
            "id": ["1", "2"],
            "since": pa.array([1, 2], pa.int32()),
        }
    )
    loaded = _load(KNOWS, rows)
    for name in ("id", "src", "dst", "since"):
        mine, given_ = loaded.rows[name].chunk(0).buffers(), rows[name].chunk(0).buffers()
        assert mine[1].address == given_[1].address
    assert loaded.rows.schema.equals(table_schema(KNOWS))
    assert loaded.origins.at(1) == ("t", 2)


def test_from_and_to_name_the_endpoints_and_missing_ids_are_fresh():
    loaded = _load(KNOWS, pa.table({"from": ["a"], "to": ["b"]}))
    assert loaded.rows["src"].to_pylist() == ["a"] and len(loaded.rows["id"][0].as_py()) == 26


def test_keyed_types_get_their_canonical_ids():
    assert _load(VESSEL, pa.table({"imo": [5, 6]})).rows["id"].to_pylist() == ["5", "6"]
    assert 't:2: id "7" is not the id that the key gives ("6")' in _message(
        VESSEL, pa.table({"imo": [5, 6], "id": ["5", "7"]})
    )


@pytest.mark.parametrize(
    "table",
    [
        pa.record_batch({"note": ["a"]}),
        pa.RecordBatchReader.from_batches(
            pa.schema({"note": pa.string()}), [pa.record_batch({"note": ["a"]})]
        ),
        pd.DataFrame({"note": ["a"]}, index=[99]),
        pa.table({"note": pa.chunked_array([["a"], pa.array([], pa.string())])}),
    ],
)
def test_what_counts_as_a_table(table):
    assert _load(CATALOG.nodes["Bare"], table).rows["note"].to_pylist() == ["a"]


def test_what_is_no_table():
    with pytest.raises(UsageError, match="got dict"):
        _load(CATALOG.nodes["Bare"], {"note": ["a"]})


_MS = pa.timestamp("ms", tz="UTC")


@pytest.mark.parametrize(
    ("name", "array", "expected"),
    [
        ("s", pa.array(["a", None]).dictionary_encode(), ["a", None]),
        ("s", pa.array(["a"], pa.large_string()), ["a"]),
        ("s", pa.array(["a"], pa.string_view()), ["a"]),
        ("s", pa.nulls(2), [None, None]),
        ("i", pa.array([5], pa.int64()), [5]),
        ("w", pa.array([5], pa.int8()), [5]),
        ("i", pa.array([5.0, None]), [5, None]),
        ("w", pa.array([Decimal(2**64 - 1), None], pa.decimal128(20, 0)), [2**64 - 1, None]),
        ("i", pa.array([Decimal("-7.00")], pa.decimal128(9, 2)), [-7]),
        ("ws", pa.array([[Decimal(2**63)]], pa.list_(pa.decimal128(20, 0))), [[2**63]]),
        ("f", pa.array([0.1]), [float(np.float32(0.1))]),
        ("d", pa.array([1, 2]), [1.0, 2.0]),
        ("on", pa.array([date(2020, 1, 1)], pa.date64()), [date(2020, 1, 1)]),
        ("on", pa.array([datetime(2020, 1, 1)], pa.timestamp("ns")), [date(2020, 1, 1)]),
        ("on", pa.array(["2020-01-01"]), [date(2020, 1, 1)]),
        (
            "at",
            pa.array([10**6], pa.timestamp("ns", tz="Europe/Oslo")),
            [datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)],
        ),
        ("at", pa.array([1], pa.timestamp("s")), [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]),
        ("at", pa.array(["1970-01-01T00:00:01"]), [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)]),
        ("b", pa.array([b"x"], pa.binary()), [b"x"]),
        ("b", pa.array(["base64:AA=="]), [b"\0"]),
        ("v", pa.array([[1.0, 2.0, 3.0], None]), [[1.0, 2.0, 3.0], None]),
        ("v", pa.array([None, [1, 2, 3]], pa.list_(pa.float64(), 3)), [None, [1.0, 2.0, 3.0]]),
        ("is", pa.array([[1], [], None], pa.large_list(pa.int64())), [[1], [], None]),
        ("ss", pa.array([[]]), [[]]),
        ("ats", pa.array([["1970-01-01"]]), [[datetime(1970, 1, 1, tzinfo=UTC)]]),
    ],
)
def test_exact_conversions(name, array, expected):
    assert _one(name, array) == expected


def test_slices_are_respected():
    lists = pa.array([[9], [1, 2], None, [3]], pa.large_list(pa.int64())).slice(1)
    assert _one("is", lists) == [[1, 2], None, [3]]
    vectors = pa.array([[9, 9, 9], None, [1, 2, 3]], pa.list_(pa.float64(), 3)).slice(1)
    assert _one("v", vectors) == [None, [1, 2, 3]]


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("s", pa.array([1]), "t: column 's': values of Arrow type int64 cannot be read as String"),
        ("i", pa.array([1, 2**40]), "t:2: column 'i': 1099511627776 is out of range for I32"),
        ("i", pa.array([1.0, 1.5]), "t:2: column 'i': expected I32, got 1.5"),
        ("i", pa.array([Decimal("1.5")]), "t:1: column 'i': expected I32, got 1.5"),
        ("w", pa.array([Decimal(1), Decimal(-1)]), "t:2: column 'w': -1 is out of range for U64"),
        ("i", pa.array([True]), "values of Arrow type bool cannot be read as I32"),
        ("t", pa.array([1]), "values of Arrow type int64 cannot be read as Bool"),
        ("f", pa.array([1.0, 1e39]), "t:2: column 'f': 1e+39 is out of range for F32"),
        ("d", pa.array([float("nan")]), "t:1: column 'd': expected a finite number, got nan"),
        (
            "d",
            pa.array([2**53 + 1]),
            "t:1: column 'd': Integer value 9007199254740993 not in range",
        ),
        (
            "on",
            pa.array([datetime(2020, 1, 1, 5)]),
            "t:1: column 'on': expected Date, got the timestamp",
        ),
        ("at", pa.array([0, 1], pa.timestamp("us")), "t:2: column 'at': "),
        ("at", pa.array(["x"]), "t:1: column 'at': \"x\" is not a DateTime"),
        ("v", pa.array([[1.0, 2.0]]), "t:1: column 'v': expected Vector(3), got 2 numbers"),
        ("v", pa.array([1.0]), "t: column 'v': values of Arrow type double are not lists"),
        ("is", pa.array([[1], [None]]), "t:2: column 'is': element 0 of the list is null"),
        ("b", pa.array(["s3://x"]), "external blobs are not enabled"),
        ("on", pa.array([10**7], pa.int32()), "is outside of the years 0001 to 9999"),
    ],
)
def test_refusals_name_column_and_first_row(name, array, message):
    assert message in _message(ALL, pa.table({name: array}))


def test_the_first_bad_row_is_counted_through_chunks():
    chunks = pa.chunked_array([[1, 2], [3, 2**40, 2**41]])
    assert "t:4: column 'i'" in _message(ALL, pa.table({"i": chunks}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["from", "to", "src", "dst"], "found 'src', 'dst', 'from', 'to'"),
        (
            ["from", "dst"],
            "an edge table has the columns 'src' and 'dst' or 'from' and 'to'; found 'dst', 'from'",
        ),
        (["from"], "found 'from'"),
        ([], "found neither"),
        (["from", "to", "sinse"], "Knows has no property \"sinse\" (did you mean 'since'?)"),
    ],
)
def test_columns_that_do_not_fit_the_type(columns, message):
    assert message in _message(KNOWS, pa.table({c: ["a"] for c in columns}))


def test_null_endpoints_and_repeated_columns_are_refused():
    assert "t:2: column 'to': an endpoint of an edge cannot be null" in _message(
        KNOWS, pa.table({"from": ["a", "b"], "to": ["a", None]})
    )
    twice = pa.Table.from_arrays([pa.array(["a"])] * 2, names=["note", "note"])
    assert "column 'note' occurs twice" in _message(CATALOG.nodes["Bare"], twice)


def test_pandas_nan_is_null_and_integers_with_gaps_are_integers():
    frame = pd.DataFrame(
        {"d": [1.5, np.nan], "i": [1, None], "s": ["a", None], "v": [[1.0, 2.0, 3.0], None]}
    )
    rows = _load(ALL, frame).rows
    assert rows["d"].to_pylist() == [1.5, None] and rows["i"].to_pylist() == [1, None]
    assert rows["s"].to_pylist() == ["a", None] and rows["v"].null_count == 1


def test_pandas_columns_that_arrow_cannot_read_are_named():
    assert "column 's': " in _message(ALL, pd.DataFrame({"s": ["a", 1, b"x"]}))
    assert "column 7 is not named by a string" in _message(ALL, pd.DataFrame({7: ["a"]}))


def test_an_empty_table_is_fine():
    assert _load(ALL, pa.table({"s": pa.array([], pa.string())})).rows.num_rows == 0
    assert _load(ALL, pa.table({})).rows.num_rows == 0


# --- extension types --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("on", pa.array(pd.Series(pd.period_range("2020-01", periods=2, freq="M")))),
        ("i", pa.array([1], pa.bool8())),
        ("t", pa.array([1], pa.bool8())),
        ("s", pa.array(["a"], pa.opaque(pa.string(), "t", "v"))),
        ("s", pa.array([b"x" * 16], pa.uuid())),
        ("is", pa.ListArray.from_arrays([0, 1], pa.array([1], pa.bool8()))),
        (
            "v",
            pa.ExtensionArray.from_storage(
                pa.fixed_shape_tensor(pa.float32(), [3, 1]),
                pa.array([[1, 2, 3]], pa.list_(pa.float32(), 3)),
            ),
        ),
    ],
)
def test_extension_types_mean_more_than_their_storage(name, array):
    message = _message(ALL, pa.table({name: array}))
    assert message.startswith(f"t: column '{name}': values of the extension type ")
    assert "cannot be read as" in message


@pytest.mark.parametrize(
    ("name", "array", "expected"),
    [
        ("s", pa.array(['{"a":1}', None], pa.json_()), ['{"a":1}', None]),
        ("b", pa.array([b"x" * 16], pa.uuid()), [b"x" * 16]),
        (
            "v",
            pa.ExtensionArray.from_storage(
                pa.fixed_shape_tensor(pa.float32(), [3]),
                pa.array([[1, 2, 3]], pa.list_(pa.float32(), 3)),
            ),
            [[1.0, 2.0, 3.0]],
        ),
    ],
)
def test_extension_types_that_mean_their_storage(name, array, expected):
    assert _one(name, array) == expected


# --- data frames ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        (
            "d",
            [1 + 2j],
            "t: column 'd' has the pandas type complex128, which cannot be read as F64",
        ),
        (
            "d",
            pd.arrays.SparseArray([1.5, None]),
            "t: column 'd' has the pandas type Sparse[float64, nan], which cannot be read as F64",
        ),
        ("on", pd.period_range("2020-01", periods=2, freq="M"), "extension type pandas.period"),
        (
            "w",
            pd.Series([1, None, 2**64], dtype=object),
            "t:3: column 'w': 18446744073709551616 is out of range for U64",
        ),
        (
            "w",
            pd.Series([10**5000], dtype=object),
            "t:1: column 'w': an integer of about 5000 digits is out of range for U64",
        ),
        ("s", ["a", None, 1], "t:3: column 's': expected String, got 1"),
        ("v", [np.zeros((3, 1))], "t:1: column 'v': expected Vector(3)"),
        ("zz", [1 + 2j], 't: All has no property "zz"'),
    ],
)
def test_pandas_columns_are_refused_in_our_own_words(name, values, message):
    assert message in _message(ALL, pd.DataFrame({name: values}))


def test_a_value_that_cannot_be_shown_is_named_by_its_type():
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    frame = pd.DataFrame({"s": ["a", Mute()]})
    assert "t:2: column 's': expected String, got a value of type Mute" in _message(ALL, frame)


def test_rows_without_columns_are_rows():
    bare = CATALOG.nodes["Bare"]
    assert _load(bare, pd.DataFrame(index=range(3))).rows["note"].to_pylist() == [None] * 3
    assert len(set(_load(bare, pd.DataFrame(index=range(3))).rows["id"].to_pylist())) == 3
    assert _load(bare, pa.table({"x": [1, 2]}).select([])).rows.num_rows == 2
    assert _load(bare, pa.record_batch({"x": [1, 2]}).select([])).rows.num_rows == 2


@pytest.mark.parametrize("name", ["imo", "id", "name"])
def test_an_index_that_is_a_property_is_not_lost(name):
    frame = pd.DataFrame({"imo": [1], "id": ["1"], "name": ["x"]}).set_index(name)
    assert _message(VESSEL, frame) == (
        f"t: '{name}' is the index of the DataFrame, and the index is not read: call reset_index()"
    )


def test_other_indices_do_not_matter():
    frame = pd.DataFrame({"imo": [1], "other": ["x"]}).set_index("other")
    assert _load(VESSEL, frame).rows["imo"].to_pylist() == [1]
    both = pd.DataFrame({"imo": [1]}).set_index("imo", drop=False)
    assert _load(VESSEL, both).rows["imo"].to_pylist() == [1]
    levels = pd.DataFrame({"src": ["a"], "to": ["b"], "since": [1]}).set_index(["src", "to"])
    assert "'src' is the index" in _message(KNOWS, levels)
