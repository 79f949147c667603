"""A branch is a ref and a manifest of its own: reading and writing one needs nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.branch.control import create_branch
from omnigraph.errors import ErrorKind
from omnigraph.manifest.repository import Repository
from omnigraph.storage.location import locate
from support.racers import SCHEMA


def person(*names: str) -> list[dict]:
    return [{"type": "Person", "data": {"name": n}} for n in names]


def fork(root: object, name: str) -> None:
    """A branch of main, made by another process."""
    repository = Repository(locate(str(root)))
    create_branch(repository, name, repository.branch("main").head.snapshot)
    repository.close()


@pytest.mark.parametrize("name", ["feature", "a", "a/b", "ünï cödé", "main2"])
def test_a_branch_is_read_and_written_beside_main(store_root: str, name: str) -> None:
    with omnigraph.init(store_root, SCHEMA) as graph:
        graph.load(person("a", "b"))
        fork(store_root, name)
        graph.load(person("on main"))
        result = graph.load(person("on branch"), branch=name, actor="ann")
        assert result.commit is not None
        assert result.commit.branch == name
        assert result.commit.to_dict()["graph_branch"] == name
        rows = {
            b: sorted(r["name"] for r in graph.snapshot(b).rows("Person")) for b in ("main", name)
        }
        assert rows == {"main": ["a", "b", "on main"], name: ["a", "b", "on branch"]}
        # Both lineages share the fork point, and each has exactly its own commit on top.
        mine, main = graph.commits(branch=name), graph.commits()
        assert mine[1:] == main[1:]
        assert [c.branch for c in mine] == [name, "main", "main"]


def test_two_lineages_with_the_same_version_numbers_are_not_mixed_up(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        graph.load(person("a"))
        fork(tmp_path, "other")
        for i in range(5):
            graph.load(person(f"m{i}"))
            graph.load(person(f"o{i}"), branch="other")
            graph.load([{"edge": "Knows", "from": "a", "to": f"o{i}"}], branch="other")
            with pytest.raises(omnigraph.ConstraintError):
                graph.load([{"edge": "Knows", "from": "a", "to": f"o{i}"}])
        for branch, letter in (("main", "m"), ("other", "o")):
            names = {r["name"] for r in graph.snapshot(branch).rows("Person")}
            assert names == {"a", *(f"{letter}{i}" for i in range(5))}


@pytest.mark.parametrize("name", ["nowhere", "Main", "a/b/c"])
def test_an_unknown_branch(store_root: str, name: str) -> None:
    with omnigraph.init(store_root, SCHEMA) as graph:
        for call in (
            lambda: graph.snapshot(name),
            lambda: graph.commits(branch=name),
            lambda: graph.load(person("a"), branch=name),
        ):
            with pytest.raises(omnigraph.NotFoundError) as caught:
                call()
            assert caught.value.kind is ErrorKind.BRANCH_NOT_FOUND


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x" * 201])
def test_names_that_no_branch_can_have(tmp_path: Path, name: str) -> None:
    with omnigraph.init(tmp_path, SCHEMA) as graph, pytest.raises(omnigraph.UsageError):
        graph.snapshot(name)


def test_a_damaged_ref(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        (tmp_path / "_refs/branches/broken").mkdir(parents=True)
        (tmp_path / "_refs/branches/broken/1.json").write_text("{}")
        with pytest.raises(omnigraph.CorruptionError):
            graph.snapshot("broken")


@pytest.mark.parametrize("ends", ["rename", "delete"])
def test_a_name_that_came_back_ends_with_its_branch(tmp_path: Path, ends: str) -> None:
    """Its newest life is over, also if somebody opened the branch by the first one."""
    with omnigraph.init(tmp_path / "g", "node A { k: String @key }") as graph:
        graph.branches.create("y")
        graph.branches.rename("y", "x")
        graph.branches.rename("x", "y")
    with omnigraph.open(tmp_path / "g") as cold:
        if ends == "rename":
            cold.branches.rename("y", "x")
        else:
            cold.branches.delete("y")
    with omnigraph.open(tmp_path / "g") as graph:
        assert graph.branches.list() == (["main", "x"] if ends == "rename" else ["main"])
        graph.branches.create("y")
        assert graph.snapshot("y").branch == "y"
