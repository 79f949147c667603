"""Taking a commit back: as a new commit, on top of whatever came after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from merge_support import SCHEMA, World, edge, person

import omnigraph
from omnigraph.branch.merge.conflicts import MergeResult
from omnigraph.branch.merge.revert import revert
from omnigraph.errors import ErrorKind


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        yield World(graph)


def undo(world: World, commit: str, **options: object) -> MergeResult:
    return revert(world.repository, commit, **options)  # pyright: ignore


@pytest.mark.parametrize("later", [False, True])
def test_every_kind_of_change_is_taken_back(world: World, later: bool) -> None:
    before = world.state()
    operations = (
        lambda: world.put("main", person("Eve"), edge("Knows", "Alice", "Bob", id="new")),
        lambda: world.drop("main", "Person", "name", "Bob"),
        lambda: world.set("main", "Alice", "age", "31"),
        lambda: world.put("main", edge("Knows", "Dan", "Alice", id="e")),
    )
    for operation in operations:
        parent = world.head()
        operation()
        commit = world.head()
        if later:
            world.set("main", "Carol", "city", '"Oslo"')
        seen = undo(world, commit.id, dry_run=True)
        result = undo(world, commit.id, actor="ann")
        assert seen.changes == result.changes
        head = world.head()
        assert (head.kind, head.actor, head.message) == ("revert", "ann", f"revert {commit.id}")
        assert head.merged_parent_id is None
        assert head.parent_id != parent.id
        if later:
            assert world.people()["Carol"]["city"] == "Oslo"
            world.run("main", 'update Person set { city: null } where name = "Carol"')
        assert world.state() == before


def test_reverting_a_revert_brings_it_back(world: World) -> None:
    world.set("main", "Alice", "age", "31")
    undo(world, world.head().id)
    assert world.people()["Alice"]["age"] == 30
    undo(world, world.head().id)
    assert world.people()["Alice"]["age"] == 31


def test_what_was_taken_back_already_is_not_taken_back_again(world: World) -> None:
    world.set("main", "Alice", "age", "31")
    commit = world.head().id
    undo(world, commit)
    before = world.head()
    result = undo(world, commit)
    assert result.outcome == "already_up_to_date"
    assert world.head() == before


def test_a_merge_goes_back_to_its_first_parent(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    world.set("main", "Bob", "age", "1")
    world.merge()
    merged = world.head()
    world.set("main", "Dan", "age", "4")
    undo(world, merged.id)
    ages = {n: p["age"] for n, p in world.people().items()}
    assert ages == {"Alice": 30, "Bob": 1, "Carol": 30, "Dan": 4}


def test_later_changes_of_the_same_thing_are_conflicts(world: World) -> None:
    world.set("main", "Alice", "age", "31")
    commit = world.head()
    world.set("main", "Alice", "age", "32")
    before = world.head()
    with pytest.raises(omnigraph.OmnigraphError) as caught:
        undo(world, commit.id)
    assert caught.value.kind is ErrorKind.MERGE_CONFLICT
    (conflict,) = caught.value.conflicts  # pyright: ignore
    assert [(p.base, p.ours, p.theirs) for p in conflict.properties] == [(31, 32, 30)]
    assert undo(world, commit.id, dry_run=True).outcome == "conflicts"
    assert world.head() == before
    undo(world, commit.id, prefer="theirs")
    assert world.people()["Alice"]["age"] == 30


def test_an_edge_to_what_would_go_is_a_conflict(world: World) -> None:
    world.put("main", person("Eve"))
    commit = world.head()
    world.put("main", edge("Knows", "Eve", "Bob", id="new"))
    with pytest.raises(omnigraph.OmnigraphError) as caught:
        undo(world, commit.id)
    assert [str(c.kind) for c in caught.value.conflicts] == ["orphan_edge"]  # pyright: ignore
    undo(world, commit.id, prefer="theirs")
    assert "Eve" not in world.people()
    assert "new" not in world.state()["Knows"]


def test_the_first_commit_stays(world: World) -> None:
    genesis = world.graph.commits()[-1]
    with pytest.raises(omnigraph.UsageError) as caught:
        undo(world, genesis.id)
    assert caught.value.kind is ErrorKind.PARENTLESS_COMMIT


@pytest.mark.parametrize("commit", ["01ZZZZZZZZ", "", "nothing"])
def test_an_unknown_commit(world: World, commit: str) -> None:
    with pytest.raises(omnigraph.NotFoundError):
        undo(world, commit)


def test_a_commit_of_the_beginning_of_its_id_and_on_a_branch(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    undo(world, world.head("work").id[:20], branch="work")
    assert world.people("work")["Alice"]["age"] == 30
