"""Merging, reverting and comparing through an open graph, as a program does it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.failpoints import FailPoint, armed

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load({"Person": [{"name": n, "age": 1} for n in ("ann", "bob")]})
        graph.branches.create("work")
        yield graph


def update(graph: omnigraph.Graph, branch: str, **values: object) -> None:
    graph.load({"Person": [{"name": "ann", "age": 1} | values]}, mode="merge", branch=branch)


def ann(graph: omnigraph.Graph, branch: str = "main") -> dict:
    found = [r for r in graph.snapshot(branch).rows("Person") if r["name"] == "ann"]
    return {"age": found[0]["age"], "city": found[0]["city"]}


def test_two_sides_change_two_properties(graph) -> None:
    update(graph, "work", age=2)
    update(graph, "main", city="oslo")
    looked = graph.merge("work", dry_run=True)
    assert (looked.outcome, looked.commit, ann(graph)) == (
        "merged",
        None,
        {"age": 1, "city": "oslo"},
    )
    result = graph.merge("work", delete_branch=True, actor="eve")
    assert (result.outcome, result.branch_deleted) == ("merged", True)
    assert ann(graph) == {"age": 2, "city": "oslo"}
    assert graph.branches.list() == ["main"]
    assert result.commit is not None
    assert graph.commit(result.commit.id) == result.commit
    counts = graph.diff(result.commit.parent_id, "main").counts
    assert counts["node:Person"].updated == 1


def test_a_conflict_and_its_decisions(graph) -> None:
    update(graph, "work", age=2)
    update(graph, "main", age=3)
    with pytest.raises(omnigraph.MergeConflictError) as caught:
        graph.merge("work")
    (conflict,) = caught.value.conflicts
    assert (conflict.kind, conflict.entity_id) == ("divergent_update", "ann")
    assert ann(graph)["age"] == 3
    decided = b'{"node": "Person", "id": "ann", "properties": {"age": {"value": 9}}}'
    assert graph.merge("work", resolutions=decided, dry_run=True).conflicts == ()
    graph.merge("work", prefer="theirs")
    assert ann(graph)["age"] == 2
    assert graph.merge("work").outcome == "already_up_to_date"


def test_a_branch_that_was_written_meanwhile_is_not_deleted(graph) -> None:
    update(graph, "work", age=2)
    with (
        omnigraph.open(graph.uri) as other,
        armed(FailPoint.PUBLISH_AFTER_COMMIT, lambda: update(other, "work", age=5)),
    ):
        result = graph.merge("work", delete_branch=True)
    assert result.branch_deleted is False
    assert "work" in graph.branches
    assert result.branch_delete_error


def test_a_commit_is_taken_back(graph) -> None:
    update(graph, "main", age=7)
    made = graph.snapshot().commit
    graph.load({"Person": [{"name": "cat"}]})
    result = graph.revert(made.id)
    assert result.commit is not None
    assert result.commit.kind == "revert"
    assert ann(graph)["age"] == 1
    assert graph.snapshot().count("Person") == 3
    with pytest.raises(omnigraph.MergeConflictError):
        update(graph, "main", age=8)
        graph.revert(result.commit.id)
