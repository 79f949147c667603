"""A merge when somebody is faster: the whole decision is made again on what is there then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from merge_support import SCHEMA, World, badge, edge, person

import omnigraph
from omnigraph.branch.merge.three_way import merge
from omnigraph.failpoints import FailPoint, armed


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        yield World(graph)


def overtaken(world: World, action: Callable[[omnigraph.Graph], object]) -> armed:
    """Another handle does something when the merge is about to be published."""

    def act() -> None:
        with omnigraph.open(world.graph.uri) as other:
            action(other)

    return armed(FailPoint.PUBLISH_BEFORE_COMMIT, act)


def test_a_change_of_the_same_row_comes_together_all_the_same(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    world.set("main", "Bob", "age", "1")
    text = 'update Person set { city: "Oslo" } where name = "Alice"'
    with overtaken(world, lambda g: g.mutate(text)):
        result = world.merge()
    assert result.outcome == "merged"
    assert world.people()["Alice"] == {"id": "Alice", "name": "Alice", "age": 31, "city": "Oslo"}


def test_a_conflict_that_came_in_between_is_told(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    world.set("main", "Bob", "age", "1")
    text = 'update Person set { age: 77 } where name = "Alice"'
    with (
        overtaken(world, lambda g: g.mutate(text)),
        pytest.raises(omnigraph.MergeConflictError) as caught,
    ):
        world.merge()
    (conflict,) = caught.value.conflicts
    assert [(p.ours, p.theirs) for p in conflict.properties] == [(77, 31)]
    assert world.graph.snapshot().commit.kind == "mutation"


def test_a_fast_forward_that_is_none_any_more(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    with overtaken(world, lambda g: g.load([badge("b1")])):
        result = world.merge()
    assert result.outcome == "merged"
    assert set(world.state()["Badge"]) == {"b1"}
    assert world.people()["Alice"]["age"] == 31


def test_an_adopted_table_that_somebody_wrote_to_is_not_lost(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    world.put("main", badge("b1"))
    with overtaken(world, lambda g: g.load([person("Eve")])):
        world.merge()
    assert set(world.people()) == {"Alice", "Bob", "Carol", "Dan", "Eve"}
    assert world.people()["Alice"]["age"] == 31


def test_a_node_that_was_deleted_in_between(world: World) -> None:
    world.put("work", edge("Knows", "Alice", "Dan", id="new"))
    world.put("main", badge("b1"))
    with (
        overtaken(world, lambda g: g.mutate('delete Person where name = "Alice"')),
        pytest.raises(omnigraph.MergeConflictError) as caught,
    ):
        world.merge()
    assert [str(c.kind) for c in caught.value.conflicts] == ["orphan_edge"]
    assert "new" not in world.state()["Knows"]


def test_the_same_merge_by_somebody_else(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    world.set("main", "Bob", "age", "1")
    with overtaken(world, lambda g: merge(g._repository, "work")):
        result = world.merge()
    assert result.outcome == "already_up_to_date"
    assert [c.kind for c in world.graph.commits(first_parent=True)].count("merge") == 1


def test_what_somebody_else_dismissed_in_between_stays_dismissed(world: World) -> None:
    """A merge elsewhere changes what is common, also where it leaves every table as it is."""
    world.set("work", "Alice", "age", "31")
    world.set("main", "Alice", "age", "32")
    world.graph.branches.create("late", "work")
    world.put("late", badge("b1"))
    with overtaken(world, lambda g: merge(g._repository, "work", prefer="ours")):
        result = merge(world.repository, "late", prefer="theirs")
    assert result.outcome == "merged"
    assert world.people()["Alice"]["age"] == 32
