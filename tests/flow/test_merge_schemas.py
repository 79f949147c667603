"""Merges between branches whose schemas are not the same: data moves, schemas do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph
from omnigraph.branch.merge.run import merge
from omnigraph.manifest.repository import schema_object
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.ir import schema_hash, to_ir
from omnigraph.write.publish import restate

BOTH = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
"""
PEOPLE = """
node Person { name: String @key  age: I32? }
"""


def accept(graph: omnigraph.Graph, branch: str, text: str) -> None:
    """Show a branch with another schema, as applying one does."""
    repository = graph._repository
    ir = to_ir(compile_schema(text, source_name="schema.pg"), text)
    digest = schema_hash(ir)
    repository.objects.put(schema_object(digest), ir)

    def changed(snapshot):
        pins = {k: p for k, p in snapshot.pins.items() if k != "node:City"}
        return replace(snapshot, schema_hash=digest, pins=pins)

    restate(repository, repository.branch(branch), changed)


def person(name: str, age: int) -> dict:
    return {"type": "Person", "data": {"name": name, "age": age}}


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    graph = omnigraph.init(tmp_path, BOTH)
    graph.load([person("a", 1), {"type": "City", "data": {"name": "oslo"}}])
    graph.branches.create("work")
    return graph


def ages(graph: omnigraph.Graph, branch: str = "main") -> dict[str, int]:
    return {r["name"]: r["age"] for r in graph.snapshot(branch).rows("Person")}


def test_a_type_that_the_target_dropped_is_no_matter_if_nobody_changed_it(
    graph: omnigraph.Graph,
) -> None:
    graph.load([person("b", 2)], branch="work")
    accept(graph, "main", PEOPLE)
    graph.load([person("c", 3)])
    assert merge(graph._repository, "work").outcome == "merged"
    assert ages(graph) == {"a": 1, "b": 2, "c": 3}
    assert graph.snapshot().schema == PEOPLE


def test_changes_of_a_type_that_the_target_dropped_are_not_lost_silently(
    graph: omnigraph.Graph,
) -> None:
    graph.load([{"type": "City", "data": {"name": "rome"}}], branch="work")
    accept(graph, "main", PEOPLE)
    graph.load([person("c", 3)])
    for dry_run in (True, False):
        with pytest.raises(omnigraph.MergeConflictError, match="City"):
            merge(graph._repository, "work", dry_run=dry_run)


def test_a_schema_comes_by_the_way_back(graph: omnigraph.Graph) -> None:
    accept(graph, "work", PEOPLE)
    graph.load([person("b", 2)], branch="work")
    graph.load([person("c", 3)])
    with pytest.raises(omnigraph.MergeConflictError, match="schema") as caught:
        merge(graph._repository, "work")
    assert "merge 'main' into 'work' first" in (caught.value.hint or "")
    assert merge(graph._repository, "main", into="work").outcome == "merged"
    assert merge(graph._repository, "work").outcome == "fast_forward"
    assert graph.snapshot().schema == PEOPLE
    assert ages(graph) == ages(graph, "work") == {"a": 1, "b": 2, "c": 3}
