"""Every pair of operations on two branches: what the merge is, what it holds, where it came from."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from merge_support import SCHEMA, World, edge, person

import omnigraph


def nothing(world: World, branch: str) -> None:
    pass


def insert_node(world: World, branch: str) -> None:
    world.put(branch, person("Eve", age=20 if branch == "main" else 21))


def delete_node(world: World, branch: str) -> None:
    world.drop(branch, "Person", "name", "Alice")


def insert_edge(world: World, branch: str) -> None:
    world.put(branch, edge("Knows", "Alice", "Carol"))


def delete_edge(world: World, branch: str) -> None:
    world.drop(branch, "Knows", "id", "e")


def update(world: World, branch: str) -> None:
    world.set(branch, "Alice", "age", "31" if branch == "main" else "32")


def net_zero(world: World, branch: str) -> None:
    world.put(branch, edge("Knows", "Alice", "Carol", id=f"gone-{branch}"))
    world.drop(branch, "Knows", "id", f"gone-{branch}")


OPERATIONS: dict[str, Callable[[World, str], None]] = {
    "none": nothing,
    "+node": insert_node,
    "-node": delete_node,
    "+edge": insert_edge,
    "-edge": delete_edge,
    "update": update,
    "net-zero": net_zero,
}
CONFLICTS = {
    ("+node", "+node"): "divergent_insert",
    ("-node", "+edge"): "orphan_edge",
    ("-node", "update"): "delete_vs_update",
    ("+edge", "-node"): "orphan_edge",
    ("update", "-node"): "delete_vs_update",
    ("update", "update"): "divergent_update",
}


def expected(world: World, source: str, target: str) -> tuple[set[str], int, int | None]:
    """People, number of edges and Alice's age after both operations."""
    both = {source, target}
    people = {"Alice", "Bob", "Carol", "Dan"}
    people |= {"Eve"} if "+node" in both else set()
    people -= {"Alice"} if "-node" in both else set()
    edges = 1 + (source == "+edge") + (target == "+edge") - ("-edge" in both)
    age = None if "-node" in both else 30
    if "update" in both:
        age = 32 if source == "update" else 31
    return people, edges, age


@pytest.mark.parametrize("granularity", ["property", "row"])
@pytest.mark.parametrize(("source", "target"), list(product(OPERATIONS, OPERATIONS)))
def test_a_pair_of_operations(tmp_path: Path, source: str, target: str, granularity: str) -> None:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        world = World(graph)
        OPERATIONS[source](world, "work")
        OPERATIONS[target](world, "main")
        ours, theirs = world.head(), world.head("work")
        if (kind := CONFLICTS.get((source, target))) is not None:
            found = world.conflicts(granularity=granularity)
            assert [str(c.kind) for c in found] == [kind]
            assert [c["kind"] for c in (f.to_dict() for f in found)] == [kind]
            return
        seen = world.merge(granularity=granularity, dry_run=True)
        result = world.merge(granularity=granularity)
        assert (seen.outcome, seen.changes) == (result.outcome, result.changes)
        if source == "none":
            assert result.outcome == "already_up_to_date"
            assert result.commit is None
            assert world.head() == ours
            return
        assert result.outcome == ("fast_forward" if target == "none" else "merged")
        commit = world.head()
        assert result.commit == commit
        assert (commit.parent_id, commit.merged_parent_id) == (ours.id, theirs.id)
        assert commit.generation == 1 + max(ours.generation, theirs.generation)
        assert world.repository.lineage.parents(commit) == (ours, theirs)
        people, edges, age = expected(world, source, target)
        state = world.state()
        assert set(state["Person"]) == people
        assert len(state["Knows"]) == edges
        assert state["Person"].get("Alice", {}).get("age") == age
        assert all(r["src"] in people and r["dst"] in people for r in state["Knows"].values())
        assert world.merge(granularity=granularity).outcome == "already_up_to_date"
        back = world.merge("main", "work", granularity=granularity)
        assert back.outcome == "fast_forward"
        assert world.state("work") == state


@pytest.mark.parametrize("granularity", ["property", "row"])
@pytest.mark.parametrize("operation", ["+node", "update"])
def test_equal_changes_on_both_sides_agree(
    tmp_path: Path, operation: str, granularity: str
) -> None:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        world = World(graph)
        for branch in ("main", "work"):
            if operation == "+node":
                world.put(branch, person("Eve", age=1))
            else:
                world.set(branch, "Alice", "age", "31")
        result = world.merge(granularity=granularity)
        assert result.outcome == "merged"
        assert result.changes == {}
        assert world.state() == world.state("work")
