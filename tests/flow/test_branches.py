"""Branches live, die, are renamed and come back; whoever holds one notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint, FailPointError, armed
from support.racers import SCHEMA


def person(*names: str) -> list[dict[str, Any]]:
    return [{"type": "Person", "data": {"name": n}} for n in names]


def names(graph: omnigraph.Graph, branch: str = "main") -> list[str]:
    return sorted(r["name"] for r in graph.snapshot(branch).rows("Person"))


def not_found(call: Callable[[], object]) -> None:
    with pytest.raises(omnigraph.NotFoundError) as caught:
        call()
    assert caught.value.kind is ErrorKind.BRANCH_NOT_FOUND


def exists(call: Callable[[], object]) -> None:
    with pytest.raises(omnigraph.AlreadyExistsError) as caught:
        call()
    assert caught.value.kind is ErrorKind.BRANCH_EXISTS


@pytest.fixture
def two(store_root: str) -> Iterator[tuple[omnigraph.Graph, omnigraph.Graph]]:
    """Two handles on one graph, as two processes have them."""
    with omnigraph.init(store_root, SCHEMA) as mine, omnigraph.open(store_root) as other:
        mine.load(person("a"))
        yield mine, other


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load(person("a"))
        yield graph


def test_a_branch_from_creation_to_its_end(two) -> None:
    mine, other = two
    made = mine.branches.create("a/b", description="a try", actor="ann")
    assert (made.name, made.parent, made.description, made.actor) == ("a/b", "main", "a try", "ann")
    assert made.fork_commit == mine.snapshot().commit.id
    mine.branches.create("a")  # No name is a prefix of another.
    assert other.branches.list() == ["main", "a", "a/b"]
    assert "a" in other.branches and list(other.branches) == other.branches.list()
    other.load(person("b"), branch="a/b")
    assert (names(mine), names(mine, "a"), names(mine, "a/b")) == (["a"], ["a"], ["a", "b"])
    assert mine.branches.show("a/b").description == "a try"
    assert other.branches.describe("a/b", "another").description == "another"
    assert mine.branches.describe("a/b", None).description is None
    mine.branches.delete("a/b")
    assert mine.branches.list() == other.branches.list() == ["main", "a"]
    for graph in two:
        not_found(lambda graph=graph: graph.snapshot("a/b"))
        not_found(lambda graph=graph: graph.load(person("c"), branch="a/b"))
        not_found(lambda graph=graph: graph.branches.delete("a/b"))
        not_found(lambda graph=graph: graph.branches.show("a/b"))
        not_found(lambda graph=graph: graph.branches.rename("a/b", "x"))
    assert mine.branches.list() == ["main", "a"]


def test_main_is_always_there(graph) -> None:
    with pytest.raises(omnigraph.UsageError):
        graph.branches.delete("main")
    with pytest.raises(omnigraph.UsageError):
        graph.branches.rename("main", "trunk")
    graph.branches.create("x")
    with pytest.raises(omnigraph.UsageError):
        graph.branches.rename("x", "main")
    exists(lambda: graph.branches.create("main"))
    exists(lambda: graph.branches.create(" x "))
    info = graph.branches.show("main")
    assert (info.name, info.parent, info.incarnation) == ("main", None, None)
    assert info.to_dict()["graph_commit_id"] == graph.snapshot().commit.id


@pytest.mark.parametrize("name", ["", " ", "a\x00b", "x" * 201, "ü" * 100, ".", "..", 7, None])
def test_names_that_no_branch_can_have(graph, name) -> None:
    for call in (
        lambda: graph.branches.create(name),
        lambda: graph.branches.delete(name),
        lambda: graph.branches.rename("main", name),
        lambda: graph.branches.show(name),
    ):
        with pytest.raises(omnigraph.UsageError):
            call()
    assert graph.branches.list() == ["main"]


def test_a_branch_starts_anywhere(graph) -> None:
    first = graph.snapshot().commit
    graph.load(person("b"))
    graph.tags.create("both")
    graph.load(person("c"))
    starts = {
        "main": ["a", "b", "c"],
        "both": ["a", "b"],
        first.id: ["a"],
        first.id[:20]: ["a"],
        "main@2": ["a"],
        "tag:both": ["a", "b"],
    }
    for number, (start, expected) in enumerate(starts.items()):
        info = graph.branches.create(f"from{number}", start)
        assert names(graph, info.name) == expected, start
        assert info.fork_commit == graph.snapshot(info.name).commit.id
    not_found(lambda: graph.branches.create("x", "nowhere"))
    assert "x" not in graph.branches


def test_a_name_that_is_used_again_is_another_branch(two) -> None:
    mine, other = two
    mine.branches.create("x")
    mine.load(person("old"), branch="x")
    old = other.snapshot("x")
    first = other.branches.show("x").incarnation
    mine.branches.delete("x")
    mine.branches.create("x")
    # The other handle still has the old life open; reading finds the new one.
    assert names(other, "x") == ["a"]
    assert other.branches.show("x").incarnation != first
    other.load(person("new"), branch="x")
    assert names(mine, "x") == ["a", "new"]
    # What was read from the old life stays readable by who holds it.
    assert sorted(r["name"] for r in old.rows("Person")) == ["a", "old"]
    for _ in range(3):
        mine.branches.delete("x")
        mine.branches.create("x")
    assert names(other, "x") == ["a"]


def test_a_write_on_a_branch_that_ends_meanwhile_is_refused(two) -> None:
    mine, other = two
    mine.branches.create("x")
    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: other.branches.delete("x")):
        not_found(lambda: mine.load(person("late"), branch="x"))
    other.branches.create("x")
    assert names(mine, "x") == names(other, "x") == ["a"]


def test_a_branch_ends_with_what_was_written_to_it_last(two) -> None:
    mine, other = two
    mine.branches.create("x")
    kept = mine.snapshot("x").commit.id
    other.load(person("b"), branch="x")
    with pytest.raises(omnigraph.ConflictError) as caught:
        mine.branches.delete("x", if_commit=kept)
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
    assert names(mine, "x") == ["a", "b"]
    mine.branches.delete("x", if_commit=other.snapshot("x").commit.id)
    assert mine.branches.list() == ["main"]


def test_children_outlive_their_parents(two) -> None:
    mine, other = two
    mine.branches.create("parent")
    mine.load(person("p"), branch="parent")
    mine.branches.create("child", "parent")
    mine.load(person("c"), branch="child")
    for i in range(60):  # More than a snapshot carries.
        mine.load(person(f"p{i}"), branch="parent")
    mine.branches.create("late", "parent")
    history = [c.id for c in mine.commits(branch="parent")]
    mine.branches.delete("parent")
    assert names(other, "child") == ["a", "c", "p"]
    assert [c.id for c in other.commits(branch="late")] == history
    assert len(other.commits(branch="child")) == 4
    assert other.snapshot("late", commit=history[30]).count("Person") > 2
    other.load(person("more"), branch="late")
    assert [c.id for c in other.commits(branch="late")][1:] == history


def test_a_renamed_branch_is_the_same_branch(two) -> None:
    mine, other = two
    mine.branches.create("x", description="kept")
    mine.load(person("b"), branch="x")
    head = other.snapshot("x").commit
    info = mine.branches.rename("x", "y")
    assert (info.name, info.head, info.description) == ("y", head, "kept")
    for graph in two:
        assert graph.branches.list() == ["main", "y"]
        assert names(graph, "y") == ["a", "b"]
        not_found(lambda graph=graph: graph.snapshot("x"))
        not_found(lambda graph=graph: graph.load(person("c"), branch="x"))
    other.load(person("c"), branch="y")
    assert [c.branch for c in mine.commits(branch="y")][:2] == ["y", "x"]
    exists(lambda: mine.branches.rename("y", "y2") and mine.branches.create("y2"))
    mine.branches.create("x")  # The old name is free.
    assert names(other, "x") == ["a"]
    with pytest.raises(omnigraph.UsageError):
        mine.branches.rename("x", "x")
    exists(lambda: mine.branches.rename("x", "y2"))
    assert mine.branches.list() == ["main", "x", "y2"]


def test_writers_under_the_old_name_do_not_get_lost(two) -> None:
    mine, other = two
    mine.branches.create("x")
    other.snapshot("x")
    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: mine.branches.rename("x", "y")):
        not_found(lambda: other.load(person("b"), branch="x"))
    other.load(person("b"), branch="y")
    assert names(mine, "y") == ["a", "b"]


def test_a_half_made_branch_is_nobody_s(graph) -> None:
    with armed(FailPoint.BRANCH_BEFORE_REF, "raise"), pytest.raises(FailPointError):
        graph.branches.create("x")
    assert graph.branches.list() == ["main"]
    graph.branches.create("x")
    assert names(graph, "x") == ["a"]


@pytest.mark.parametrize("what", ["create", "delete", "open", "rename to it"])
def test_a_half_deleted_branch_is_deleted(graph, what: str) -> None:
    graph.branches.create("x")
    with armed(FailPoint.BRANCH_BEFORE_DEATH, "raise"), pytest.raises(FailPointError):
        graph.branches.delete("x")
    with omnigraph.open(graph.uri) as other:
        if what == "open":
            not_found(lambda: other.snapshot("x"))
            not_found(lambda: other.load(person("b"), branch="x"))
        elif what == "delete":
            not_found(lambda: other.branches.delete("x"))
            assert other.branches.list() == ["main"]
        elif what == "create":
            other.branches.create("x")
            assert names(other, "x") == ["a"]
        else:
            other.branches.create("y")
            other.branches.rename("y", "x")
            assert names(other, "x") == ["a"]


@pytest.mark.parametrize("point", [FailPoint.BRANCH_BEFORE_RENAME, FailPoint.BRANCH_BEFORE_DEATH])
def test_a_half_renamed_branch_can_be_renamed_again(graph, point: FailPoint) -> None:
    graph.branches.create("x")
    graph.load(person("b"), branch="x")
    with armed(point, "raise"), pytest.raises(FailPointError):
        graph.branches.rename("x", "y")
    with omnigraph.open(graph.uri) as other:
        if point is FailPoint.BRANCH_BEFORE_RENAME:  # It has not happened.
            not_found(lambda: other.snapshot("y"))
            other.load(person("c"), branch="x")
            other.branches.rename("x", "y")
        else:
            not_found(lambda: other.snapshot("x"))
            other.branches.create("x")  # The old name is free already.
            assert names(other, "x") == ["a"]
            other.branches.delete("x")
        assert other.branches.list() == ["main", "y"]
        other.load(person("d"), branch="y")
        assert names(graph, "y") == names(other, "y")


def test_tags_keep_a_name_for_a_commit(two) -> None:
    mine, other = two
    made = mine.tags.create("v1", message="first", actor="ann")
    mine.load(person("b"))
    assert other.tags.show("v1") == made == other.tags.list()[0]
    assert sorted(r["name"] for r in other.at("v1").rows("Person")) == ["a"]
    assert other.snapshot(tag="v1").commit.id == made.commit_id
    with pytest.raises(omnigraph.AlreadyExistsError) as caught:
        other.tags.create("v1")
    assert caught.value.kind is ErrorKind.TAG_EXISTS
    assert mine.tags.create("v2", "v1").commit_id == made.commit_id
    other.tags.delete("v1")
    assert [t.name for t in mine.tags] == ["v2"]
    for call in (lambda: mine.tags.delete("v1"), lambda: mine.snapshot(tag="v1")):
        with pytest.raises(omnigraph.NotFoundError) as missing:
            call()
        assert missing.value.kind is ErrorKind.TAG_NOT_FOUND
    mine.branches.create("x")
    mine.load(person("x"), branch="x")
    mine.tags.create("on-x", "x")
    mine.branches.delete("x")
    assert sorted(r["name"] for r in other.at("on-x").rows("Person")) == ["a", "b", "x"]


def test_a_branch_is_set_back(two) -> None:
    mine, other = two
    first = mine.snapshot().commit
    mine.load(person("b"))
    left = mine.snapshot().commit
    made = mine.reset(first.id, actor="ann", message="oops")
    assert made is not None
    assert (made.kind, made.parent_id, made.actor) == ("reset", first.id, "ann")
    assert made.changes["node:Person"].deleted == 1
    assert names(mine) == names(other) == ["a"]
    assert left.id not in [c.id for c in other.commits()]
    assert sorted(r["name"] for r in other.snapshot(version=3).rows("Person")) == ["a", "b"]
    assert mine.reset("main") is None
    other.load(person("c"))
    assert names(mine) == ["a", "c"]
    # Forwards, too: to a state of another branch.
    mine.branches.create("x", "main@3")
    mine.reset("x", branch="main")
    assert names(other) == ["a", "b"]
    with (
        armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: other.load(person("d"))),
        pytest.raises(omnigraph.ConflictError),
    ):
        mine.reset(first.id)
    assert names(mine) == ["a", "b", "d"]
