"""What a lookup returns is copied out of whole columns: the same as by the general way."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.query.exec import few
from omnigraph.query.exec.columns import KeptColumn

SCHEMA = """
node Person { name: String @key  age: I32?  city: String  tags: [String]?  joined: Date? }
node Item { shelf: I32  number: I32  label: String?  @key(shelf, number) }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = 300
ONE = "match { $p: Person { name: $k } } return { $p.age $p.name $p.city $p.tags $p.joined }"
NAME = "match { $p: Person { name: $k } } return { $p.name }"
TWICE = "match { $p: Person { name: $k } } return { $p.name as a $p.age as b $p.name as c $p.age }"
EDGE = (
    "match { $p: Person { name: $k } $p $e: knows $q } "
    "return { $e.since $q.name $q.age } order { $q.name }"
)
EDGES = "match { $p: Person { name: $k } $p $e: knows $q } return { $e.since }"
MAYBE = (
    "match { $p: Person { name: $k } optional { $p knows $q } } "
    "return { $q.age $q.city } order { $q.age }"
)
QUESTIONS = (ONE, NAME, TWICE, EDGE, EDGES, MAYBE)


def people(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "name": [f"n{n}" for n in numbers],
            "age": pa.array([None if n % 7 == 0 else n for n in numbers], pa.int32()),
            "city": [f"city{n % 3}" for n in numbers],
            "tags": pa.array([None if n % 5 == 0 else [f"t{n}", "x"] for n in numbers]),
            "joined": pa.array([None if n % 4 == 0 else n for n in numbers], pa.date32()),
        }
    )


def edges(pairs: list[tuple[int, int]]) -> pa.Table:
    return pa.table(
        {
            "from": [f"n{a}" for a, _ in pairs],
            "to": [f"n{b}" for _, b in pairs],
            "since": pa.array([None if a % 2 else a for a, _ in pairs], pa.int32()),
        }
    )


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load(people(0, PEOPLE), type="Person")
        graph.load(edges([(n, n + d) for n in range(50) for d in range(n % 7)]), type="Knows")
        graph.load(pa.table({"shelf": [1, 1], "number": [1, 2], "label": ["a", None]}), type="Item")
        yield graph


def both_ways(graph: omnigraph.Graph, text: str, key: str) -> tuple[pa.Table, pa.Table]:
    """The result as it comes, and by the general way."""
    as_it_is = graph.query(text_of(text), params={"k": key}).to_arrow()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few, "FEW_RESULTS", 0)
        return as_it_is, graph.query(text_of(text), params={"k": key}).to_arrow()


def text_of(body: str) -> str:
    return f"query q($k: String) {{ {body} }}"


def check(graph: omnigraph.Graph, keys: list[str]) -> None:
    # In whatever order a row comes, it has these columns in these types.
    for text in QUESTIONS:
        for key in keys:
            ours, expected = both_ways(graph, text, key)
            assert ours.schema == expected.schema
            ours.validate(full=True)
            assert sorted(map(repr, ours.to_pylist())) == sorted(map(repr, expected.to_pylist()))


KEYS = [f"n{n}" for n in (0, 1, 2, 3, 7, 10, 35, 49, 299)] + ["nobody", ""]


def test_every_state_of_a_graph(graph):
    check(graph, KEYS)
    update = "query u($k: String) { update Person set { age: 77 } where name = $k }"
    for key in ("n1", "n35", "n299"):  # Rows move: numbers are not their places any more.
        graph.mutate(update, params={"k": key})
    check(graph, KEYS)
    graph.load(people(PEOPLE, 5), type="Person")  # Ids that are not joined to the others.
    check(graph, [*KEYS, "n300", "n304"])
    graph.mutate("query d($k: String) { delete Person where name = $k }", params={"k": "n2"})
    check(graph, [*KEYS, "n300", "n304"])
    assert graph.query(text_of(ONE), params={"k": "n35"}).to_dicts()[0]["p.age"] == 77
    assert graph.query(text_of(NAME), params={"k": "n2"}).to_dicts() == []
    assert graph.query(text_of(NAME), params={"k": "n304"}).to_dicts() == [{"p.name": "n304"}]


def test_a_key_of_two_properties(graph):
    text = "query q($n: I32) { match { $i: Item { shelf: 1, number: $n } } return { $i.label $i.number } }"
    for _ in range(2):
        found = [graph.query(text, params={"n": n}).to_dicts() for n in (1, 2, 3)]
        assert [[list(row.values()) for row in rows] for rows in found] == [
            [["a", 1]],
            [[None, 2]],
            [],
        ]


def test_a_row_is_a_copy_and_not_a_part_of_the_column(graph):
    graph.query(text_of(ONE), params={"k": "n5"})
    found = graph.query(text_of(ONE), params={"k": "n5"}).to_arrow()
    assert len(pickle.dumps(found)) < 3_000
    assert found.get_total_buffer_size() < 300


def test_a_lookup_evaluates_nothing(graph, monkeypatch):
    expected = graph.query(text_of(ONE), params={"k": "n5"}).to_arrow()

    def evaluate(*_: object) -> None:
        raise AssertionError("the general way")

    monkeypatch.setattr("omnigraph.query.exec.run.evaluate", evaluate)
    for name in ("n5", "n6"):
        assert graph.query(text_of(ONE), params={"k": name}).to_arrow().num_rows == 1
    assert graph.query(text_of(ONE), params={"k": "n5"}).to_arrow() == expected


def test_views_go_before_a_value_does():
    kept = KeptColumn(100)
    kept.make("a", lambda: "A", lambda _: 40)
    kept.make("b", lambda: "B", lambda _: 40)
    kept.add_view("lookup", "of a", ["a"])
    assert kept.view("lookup") == "of a"
    # The view was in use, so what it shows was used after the other one.
    kept.make("c", lambda: "C", lambda _: 40)
    assert kept.view("lookup") is None
    assert [kept.get(k) for k in "abc"] == ["A", None, "C"]


def test_a_view_of_a_state_that_is_not_read_any_more_goes():
    kept = KeptColumn(100)
    kept.add_view("lookup", "of nothing", [])
    kept.forget_views()
    assert kept.view("lookup") is None
