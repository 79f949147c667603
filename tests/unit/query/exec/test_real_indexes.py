"""Reads with indexes that were really built: they are used, and what they miss is found as well."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.query.exec import columns as columns_module
from omnigraph.query.exec import world as world_module
from omnigraph.storage import staging, tables
from omnigraph.storage.tables import Table

SCHEMA = "node N { name: String @key  n: I64? @index }\nedge Next: N -> N"
NEXT = "query q($n: String) { match { $a: N { name: $n }  $a next $b } return { $b.name } }"
LENGTH = 200


def nodes(start: int, end: int) -> list[dict]:
    return [{"name": f"n{i}", "n": i} for i in range(start, end)]


def edges(start: int, end: int) -> list[dict]:
    return [{"src": f"n{a}", "dst": f"n{b}"} for a, b in pairwise(range(start, end))]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load({"N": nodes(0, LENGTH), "Next": edges(0, LENGTH)})
        graph.optimize()
        graph.load({"N": nodes(LENGTH, LENGTH + 10), "Next": edges(LENGTH - 1, LENGTH + 10)})
        graph.load({"N": [{"name": "n5", "n": 5000}]}, mode="merge")
    return tmp_path / "g"


@pytest.fixture
def lance_filters(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Conditions that went down, each with the plan that Lance made of it."""
    asked: list[str] = []
    where = Table.where

    def recorded(self: Table, condition, columns, **more):
        asked.append(self.dataset.scanner(columns=["id"], filter=condition).explain_plan())
        return where(self, condition, columns, **more)

    monkeypatch.setattr(Table, "where", recorded)
    return asked


def table_of(graph: omnigraph.Graph, key: str) -> Table:
    return graph._repository.table(graph._repository.branch("main").head.snapshot.pins[key])


def step(graph: omnigraph.Graph, number: int) -> list[str]:
    return [row["b.name"] for row in graph.query(NEXT, {"n": f"n{number}"}).to_dicts()]


def test_a_traversal_is_looked_up_in_real_indexes(place, lance_filters, monkeypatch) -> None:
    monkeypatch.setattr(world_module, "LOOKUP_COST", 0.001)
    monkeypatch.setattr(world_module, "LOOKUP_START_COST", 0)
    monkeypatch.setattr(columns_module, "FETCH_COST", 0)
    monkeypatch.setattr(columns_module, "FETCHED_ROW_COST", 0)
    with omnigraph.open(place) as graph:
        assert table_of(graph, "edge:Next").indexed_columns == {"id", "src", "dst"}
        assert table_of(graph, "node:N").indexed_columns == {"id", "name", "n"}
        for number in (3, LENGTH - 1, LENGTH + 5):
            assert step(graph, number) == [f"n{number + 1}"]
        assert step(graph, LENGTH + 9) == []
        (topology,) = graph._engine._caches._edges.values()
        assert topology.builds == 0
    assert len(lance_filters) >= 8
    assert all("ScalarIndexQuery" in plan for plan in lance_filters)


def test_lookups_stop_when_reading_the_column_is_cheaper(place, lance_filters) -> None:
    with omnigraph.open(place) as graph:
        query = "query q($n: I64) { match { $a: N  $a.n = $n } return { $a.name } }"
        counts = []
        for number in (1, 2, 3):
            assert graph.query(query, {"n": number}).to_dicts() == [{"a.name": f"n{number}"}]
            counts.append(len(lance_filters))
    assert counts == [1, 1, 1], "one request for few rows costs more than this column"


def test_a_changed_value_is_found_by_the_new_one_only(place, monkeypatch) -> None:
    monkeypatch.setattr(columns_module, "FETCH_COST", 0)
    with omnigraph.open(place) as graph:
        query = "query q($n: I64) { match { $a: N  $a.n = $n } return { $a.name } }"
        assert graph.query(query, {"n": 5}).to_dicts() == []
        assert graph.query(query, {"n": 5000}).to_dicts() == [{"a.name": "n5"}]
        graph.optimize()
        assert graph.query(query, {"n": 5}).to_dicts() == []
        assert graph.query(query, {"n": 5000}).to_dicts() == [{"a.name": "n5"}]


def test_keys_of_a_table_too_large_to_keep_are_found_by_its_index(place, monkeypatch) -> None:
    """The way of a write's checks: existence, uniqueness, endpoints."""
    monkeypatch.setattr(staging, "CACHE_BYTES_MAX", 1)

    def refuse(*_args, **_more):
        pytest.fail("the whole column is read")

    with omnigraph.open(place) as graph:
        table = table_of(graph, "node:N")
        expected = table.dataset.to_table(columns=["id"], with_row_address=False)
        ids = expected["id"].to_pylist()
        monkeypatch.setattr(Table, "batches", refuse)
        wanted = pa.array(["n3", "n5", f"n{LENGTH + 2}", "nobody"])
        rows = table.lookup("id", wanted, ("id", "n"))
        assert sorted(rows["n"].to_pylist()) == [3, LENGTH + 2, 5000]
        assert rows.column_names == ["id", "n"]
        positions = table.positions("id", wanted).tolist()
        assert [ids[p] for p in positions] == [i for i in ids if i in wanted.to_pylist()]
        assert table.lookup("n", pa.array([7, 5]), ("name",))["name"].to_pylist() == ["n7"]
        with pytest.raises(omnigraph.ConstraintError):
            graph.load({"N": nodes(3, 4)})
        graph.load({"N": nodes(300, 301), "Next": [{"src": "n300", "dst": "n3"}]})


def test_more_values_than_an_index_is_for_are_found_in_the_column(place, monkeypatch) -> None:
    monkeypatch.setattr(staging, "CACHE_BYTES_MAX", 1)
    monkeypatch.setattr(tables, "FOUND_VALUES_MAX", 2)
    with omnigraph.open(place) as graph:
        table = table_of(graph, "node:N")
        monkeypatch.setattr(Table, "where", None)
        found = table.lookup("id", pa.array(["n1", "n2", "n3"]), ("id",))
        assert sorted(found["id"].to_pylist()) == ["n1", "n2", "n3"]


def test_conditions_go_down_typed(place) -> None:
    with omnigraph.open(place) as graph:
        table = table_of(graph, "node:N")
        plan = table.dataset.scanner(filter=pc.field("name").isin(["n1"])).explain_plan()
        assert "ScalarIndexQuery" in plan


TEXTS = [
    "alphabet", "ALPHABET", "beta 100% a_b", "ΟΔΟΣΑΒ", "Straße", "日本語文字", "été", "e\u0301te", "",
    None, "line\nbreak", "back\\slash", "(abc).*", "ab",
]  # fmt: skip
PARTS = [
    "alpha", "ALPHA", "lph", "ph", "p", "", "100%", "0% a", "a_b", "ΟΔΟΣ", "raße", "RASSE", "本語文",
    "本語", "ét", "été", "ete", "ine\nbre", "k\\slas", "abc).*", "...", "moved", "later", "nowhere",
]  # fmt: skip
CONTAINS = """
query q($part: String) { match { $d: Doc  $d.text contains $part } return { $d.name } }
"""


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, str | None]]:
    """Texts of which the index covers most, some moved and some gone; and what they are now."""
    monkeypatch.setattr(world_module, "PARTS_ROWS_MIN", 1)
    texts = {f"d{i}": TEXTS[i % len(TEXTS)] for i in range(LENGTH)}
    with omnigraph.init(
        tmp_path / "g", "node Doc { name: String @key  text: String? @index }"
    ) as graph:
        graph.load({"Doc": [{"name": n, "text": t} for n, t in texts.items()]})
        graph.build_indexes()
        later = {"d0": "moved alphabet", "d1": None, "d9": "moved", "e1": "later", "e2": "alphabet"}
        graph.load({"Doc": [{"name": n, "text": t} for n, t in later.items()]}, mode="merge")
        texts |= later
        for gone in ("d14", "d15", "e2"):
            graph.mutate(f'delete Doc where name = "{gone}"')
            del texts[gone]
    return tmp_path / "g", texts


def test_a_part_of_a_text_is_found_by_its_index(docs, lance_filters, monkeypatch) -> None:
    place, texts = docs
    monkeypatch.setattr(columns_module, "FETCH_COST", 0)
    monkeypatch.setattr(columns_module, "FETCHED_ROW_COST", 0)
    asked: set[str] = set()
    for part in PARTS:
        expected = sorted(n for n, text in texts.items() if text is not None and part in text)
        with omnigraph.open(place) as graph:
            lance_filters.clear()
            found = graph.query(CONTAINS, {"part": part}).to_arrow().column(0).to_pylist()
            assert sorted(found) == expected, part
            if lance_filters:
                asked.add(part)
                assert all("(NGram)" in plan for plan in lance_filters), part
            graph.optimize()
            assert sorted(graph.query(CONTAINS, {"part": part}).to_dicts(), key=str) == [
                {"d.name": n} for n in expected
            ], part
    without = {"ph", "p", "", "0% a", "a_b", "本語", "ét", "..."}
    assert asked == set(PARTS) - without, "those have no three letters in a row"


def test_parts_are_found_in_memory_when_that_is_cheaper(docs, lance_filters) -> None:
    place, _ = docs
    with omnigraph.open(place) as graph:
        counts = []
        for part in ("alphabet", "moved", "alphabet"):
            assert graph.query(CONTAINS, {"part": part}).to_dicts()
            counts.append(len(lance_filters))
    assert counts == [1, 1, 1]


def test_an_index_of_parts_that_misses_most_is_not_asked(docs, lance_filters) -> None:
    place, _ = docs
    with omnigraph.open(place) as graph:
        graph.load({"Doc": [{"name": f"z{i}", "text": "alphabet"} for i in range(2 * LENGTH)]})
        lance_filters.clear()
        assert len(graph.query(CONTAINS, {"part": "phabe"}).to_dicts()) > 2 * LENGTH
    assert lance_filters == []


def test_few_texts_are_read_whole(docs, lance_filters, monkeypatch) -> None:
    place, texts = docs
    monkeypatch.setattr(world_module, "PARTS_ROWS_MIN", len(texts) + 1)
    with omnigraph.open(place) as graph:
        assert graph.query(CONTAINS, {"part": "alphabet"}).to_dicts()
    assert lance_filters == []
