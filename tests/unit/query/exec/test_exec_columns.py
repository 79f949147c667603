"""Columns in memory: single rows or the whole column, eviction, and the same values whatever was decided."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.query.exec import columns as module
from omnigraph.query.exec.columns import Column, KeptColumn, TableColumns, take
from omnigraph.schema.arrow import table_schema
from support.examples import examples

ROWS = 100
SCHEMA = "node P { name: String @key  age: I64?  city: String?  v: Vector(2)?  tags: [String]? }"


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A table in several files with deletions, and its rows in storage order."""
    with omnigraph.init(tmp_path_factory.mktemp("columns") / "g", SCHEMA) as graph:
        for start in range(0, ROWS + 4, 26):
            graph.load(
                {
                    "P": [
                        {
                            "name": f"p{i}",
                            "age": None if i % 7 == 0 else i,
                            "city": ["Oslo", "Rome", None][i % 3],
                            "v": [float(i), 0.0],
                            "tags": [f"t{i % 4}"] * (i % 3),
                        }
                        for i in range(start, start + 26)
                    ]
                }
            )
        graph.mutate('delete P where name in ["p0", "p30", "p31", "p103"]')
        pin = graph._repository.branch("main").head.snapshot.pins["node:P"]
        table = graph._repository.tables.open(pin.name)
        rows = graph.snapshot().rows("P").to_dicts()
        assert len(rows) == ROWS
        yield table, rows, table_schema(graph.catalog.nodes["P"])


class Noted:
    """A table that says whether whole columns or single rows were asked for."""

    def __init__(self, table) -> None:
        self._table = table
        self.whole: list[str] = []
        self.fetched: list[tuple[int, tuple[str, ...]]] = []

    def __getattr__(self, name):
        return getattr(self._table, name)

    def columns(self, names):
        self.whole += names
        return self._table.columns(names)

    def take(self, positions, names):
        self.fetched.append((len(positions), tuple(names)))
        return self._table.take(positions, names)


def noted(people, bytes_max: int = 1 << 30) -> tuple[Noted, TableColumns]:
    table = Noted(people[0])
    return table, TableColumns(table, people[2], KeptColumn(bytes_max))


def array(*places: int) -> np.ndarray:
    return np.array(places, np.int64)


def test_a_small_column_is_read_whole_at_once(people):
    table, columns = noted(people)
    assert columns.take("age", array(5, -1, 5)).to_pylist() == [
        people[1][5]["age"],
        None,
        people[1][5]["age"],
    ]
    assert (table.whole, table.fetched) == (["age"], [])
    columns.take("age", array(7))
    assert table.whole == ["age"], "and kept"


def test_single_rows_are_fetched_until_they_have_cost_the_column(people, monkeypatch):
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    monkeypatch.setattr(module, "FETCH_COST", 20)
    monkeypatch.setattr(module, "FETCHED_ROW_COST", 1)
    table, columns = noted(people)
    for i in range(4):
        assert columns.take("age", array(i)).to_pylist() == [people[1][i]["age"]]
    assert (table.whole, len(table.fetched)) == ([], 4)
    assert columns.take("age", array(9)).to_pylist() == [people[1][9]["age"]]
    assert (table.whole, len(table.fetched)) == (["age"], 4), (
        "four cost 84, the fifth reads it whole"
    )
    # Each column has its own cost; many rows at once cost as much at once.
    columns.take("city", array(1))
    columns.take("city", np.arange(80))
    assert table.whole == ["age", "city"]


def test_a_column_too_large_is_always_fetched(people):
    table, columns = noted(people, bytes_max=module.PART_MAX * ROWS * 8 - 1)
    assert not columns.fits("age")
    for _ in range(3):
        assert columns.take("age", np.arange(ROWS)).to_pylist() == [r["age"] for r in people[1]]
    assert table.whole == []
    assert len(table.fetched) == 3


def test_missing_columns_are_fetched_together(people, monkeypatch):
    monkeypatch.setattr(module, "SMALL_BYTES", 0)
    table, columns = noted(people, bytes_max=module.PART_MAX * ROWS * 8)
    columns.whole("age")
    assert columns.fits("age")
    found = columns.take_many(["age", "city", "tags"], array(3, 3, -1, 90))
    assert [f.to_pylist() for f in found] == [
        [None if i < 0 else people[1][i][name] for i in (3, 3, -1, 90)]
        for name in ("age", "city", "tags")
    ]
    assert table.fetched == [(2, ("city", "tags"))], "each row once, both columns in one request"


@settings(max_examples=examples(60))
@given(
    st.sampled_from(["name", "age", "city", "v", "tags", "id"]),
    st.lists(st.lists(st.integers(-1, ROWS - 1), max_size=8), min_size=1, max_size=4),
    st.sampled_from([0, 1, 900, 4_000, 1 << 30]),
    st.sampled_from([0, 1 << 20]),
)
def test_any_rows_with_any_cache(people, name, asked, bytes_max, small):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMALL_BYTES", small)
        patch.setattr(module, "FETCH_COST", 30)
        kept = KeptColumn(bytes_max)
        columns = TableColumns(people[0], people[2], kept)
        for places in asked:
            expected = [None if i < 0 else people[1][i][name] for i in places]
            assert columns.take(name, array(*places)).to_pylist() == expected
            beside = "city" if name == "age" else "age"
            (many, other) = columns.take_many([name, beside], array(*places))
            assert many.to_pylist() == expected
            assert other.to_pylist() == [None if i < 0 else people[1][i][beside] for i in places]
            assert kept._bytes <= max(bytes_max, 0)


def test_a_type_without_a_table(people):
    columns = TableColumns(None, people[2], KeptColumn())
    assert columns.row_count == 0
    assert columns.whole("age").values.type == pa.int64()
    assert columns.take("city", array(-1, -1)).to_pylist() == [None, None]
    assert [c.to_pylist() for c in columns.take_many(["age", "tags"], array(-1))] == [[None]] * 2


# ---------------------------------------------------------------- the cache itself


def test_what_is_used_least_goes_first():
    kept = KeptColumn(100)
    for key in "abc":
        kept.make(key, lambda key=key: key.upper(), lambda _: 40)
    assert [kept.get(k) for k in "abc"] == [None, "B", "C"]
    kept.get("b")
    kept.make("d", lambda: "D", lambda _: 40)
    assert [kept.get(k) for k in "bcd"] == ["B", None, "D"]


def test_what_never_fits_is_made_again():
    kept, made = KeptColumn(0), []
    for _ in range(2):
        assert kept.make("a", lambda: made.append(1) or "A", lambda _: 1) == "A"
    assert len(made) == 2
    assert kept.get("a") is None


def test_threads_that_make_the_same_thing():
    kept, together = KeptColumn(1_000), Barrier(4)

    def work(_: int) -> int:
        together.wait()
        for key in range(50):
            assert kept.make(key, lambda key=key: key * 2, lambda _: 100) == key * 2
        return kept._bytes

    with ThreadPoolExecutor(4) as pool:
        assert all(size <= 1_000 for size in pool.map(work, range(4)))
    assert kept._bytes == sum(size for _, size in kept._entries.values()) <= 1_000


# ---------------------------------------------------------------- texts that repeat


def test_texts_that_repeat_are_coded(monkeypatch):
    monkeypatch.setattr(module, "FEW_ROWS", 8)
    texts = ["Oslo", "Rome", None, "Oslo"] * 10
    coded = Column(pa.chunked_array([pa.array(texts[:7]), pa.array(texts[7:])])).encoded
    assert isinstance(coded, pa.DictionaryArray)
    assert coded.to_pylist() == texts
    assert take(coded, array(0, -1, 2)).to_pylist() == ["Oslo", None, None]


@pytest.mark.parametrize(
    "texts",
    [
        [f"t{i}" for i in range(40)],
        ["same"] * 9 + [f"t{i}" for i in range(60)],
        ["same"] * 7,
    ],
    ids=["different", "different after the sample", "few"],
)
def test_texts_that_differ_are_not(monkeypatch, texts):
    monkeypatch.setattr(module, "FEW_ROWS", 8)
    column = Column(pa.chunked_array([pa.array(texts)]))
    assert not isinstance(column.encoded, pa.DictionaryArray)
    assert column.encoded.to_pylist() == texts
