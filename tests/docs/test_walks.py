"""The walks through the code are true: every named function is called, in the order of the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from walking import calls_of, steps_of

import omnigraph

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
QUERY = "match { $p: Person  $p knows $q } return { $q.name }"


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        graph.load([{"type": "Person", "data": {"name": name}} for name in ("a", "b")])
        graph.load([{"edge": "Knows", "from": "a", "to": "b"}])
        yield graph


def test_the_way_of_a_load(graph: omnigraph.Graph, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,age\nc,3\n")
    walked(lambda: graph.load(tmp_path / "people.csv", type="Person"), "Load")


def test_the_way_of_a_query(graph: omnigraph.Graph) -> None:
    walked(lambda: graph.query(QUERY).to_dicts(), "Query")


def test_the_way_of_a_merge(graph: omnigraph.Graph) -> None:
    graph.branches.create("side")
    for branch, name in (("side", "s"), ("main", "m")):
        graph.load([{"type": "Person", "data": {"name": name}}], branch=branch)
    walked(lambda: graph.merge("side"), "Merge")


def test_the_way_of_a_cleanup(graph: omnigraph.Graph) -> None:
    walked(lambda: graph.upkeep.cleanup(keep=1, confirm=True, grace=0), "Cleanup")


def walked(run, title: str) -> None:
    rest = iter(calls_of(run))
    for step in steps_of(title):
        assert step in rest, f"{title}: {step} is not called, or not at this place"
