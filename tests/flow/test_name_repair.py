"""Names that earlier releases damaged: found by check, spared by cleanup, put right by repair."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.branch import control
from omnigraph.failpoints import ArmedAction, FailPoint, FailPointError, armed
from omnigraph.manifest.refs import find_branch
from omnigraph.upkeep.cleanup import cleanup
from omnigraph.upkeep.name_check import NameAction, NameFaultKind
from omnigraph.upkeep.retention import Policy

SCHEMA = "node Person { name: String @key }"


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        put(made, "main", "m")
        yield made


def put(graph: omnigraph.Graph, branch: str, name: str) -> None:
    graph.load([{"type": "Person", "data": {"name": name}}], mode="merge", branch=branch)
    graph.settle()


def people(graph: omnigraph.Graph, branch: str) -> set[str]:
    return {row["name"] for row in graph.snapshot(branch).rows("Person")}


def again(graph: omnigraph.Graph, name: str, row: str) -> None:
    graph.branches.create(name)
    put(graph, name, row)


def forget(graph: omnigraph.Graph, *objects: str) -> None:
    graph._repository.objects.delete([f"_refs/branches/{name}" for name in objects])


def clean(graph: omnigraph.Graph) -> None:
    with omnigraph.open(graph.uri) as other:
        assert cleanup(other._repository, Policy(keep=1), confirm=True).errors == ()


def as_earlier_releases_did(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    """Make a branch 'x' beside a later life of that name: numbers were counted from 1 again."""
    forget(graph, "x/1.json", "x/1.dead")
    with monkeypatch.context() as patched:
        patched.setattr(control, "newest_life", lambda objects, name: (0, False))
        again(graph, "x", row)
    assert (Path(graph.uri) / "_refs/branches/x/1.json").exists()


def faults(graph: omnigraph.Graph) -> list[tuple[str, str]]:
    with omnigraph.open(graph.uri) as fresh:
        report = fresh.upkeep.check()
        assert {finding.code for finding in report.findings} <= {"name"}
        told = fresh.upkeep.repair().names
        assert [f"branch {n.name}" for n in told] == [f.where for f in report.findings]
        assert all(n.action is NameAction.PREVIEW for n in told)
        assert all("omnigraph repair" in f.remedy for f in report.findings)
        return [(str(n.fault), n.name) for n in told]


def test_two_branches_of_one_name_both_get_one(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    again(graph, "x", "first")
    graph.branches.delete("x")
    again(graph, "x", "second")
    as_earlier_releases_did(graph, monkeypatch, "third")
    assert faults(graph) == [(NameFaultKind.TWO_LIVES, "x")]
    for _ in range(2):
        put(graph, "main", "m")
        clean(graph)
    assert faults(graph) == [(NameFaultKind.TWO_LIVES, "x")]
    report = graph.upkeep.repair(confirm=True)
    assert [(n.action, n.new_name) for n in report.names] == [(NameAction.HEALED, "x-2")]
    assert report.refused == ()
    for _ in range(2):
        with omnigraph.open(graph.uri) as fresh:
            assert fresh.branches.list() == ["main", "x", "x-2"]
            assert people(fresh, "x") == {"m", "second"}
            assert people(fresh, "x-2") == {"m", "third"}
            assert fresh.upkeep.check(full=True).ok
        clean(graph)
    put(graph, "x-2", "more")
    graph.branches.delete("x-2")
    assert graph.branches.list() == ["main", "x"]


@pytest.mark.parametrize("dropped", [False, True])
def test_a_branch_without_a_ref_gets_its_name_back(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch, dropped: bool
) -> None:
    for row in ("first", "second"):
        again(graph, "x", row)
        graph.branches.delete("x")
    as_earlier_releases_did(graph, monkeypatch, "third")
    held = omnigraph.open(graph.uri)
    assert people(held, "x") == {"m", "third"}
    if dropped:  # By the cleanup of an earlier release: a later life of the name is over.
        forget(graph, "x/1.json")
    assert faults(graph) == [(NameFaultKind.NO_REF, "x")]
    clean(graph)
    with held:  # It was told like all others, and its files are written again.
        put(held, "x", "later")
        held.settle()
    (fixed,) = graph.upkeep.repair(confirm=True).names
    assert (fixed.action, fixed.new_name) == (NameAction.HEALED, "x")
    for _ in range(2):
        with omnigraph.open(graph.uri) as fresh:
            assert fresh.branches.list() == ["main", "x"]
            assert people(fresh, "x") == {"m", "third", "later"}
            assert fresh.branches.show("x").parent == "main"
            assert fresh.upkeep.check(full=True).ok
        clean(graph)
    assert graph.upkeep.repair(confirm=True).names == ()


def test_what_an_earlier_cleanup_took_is_told_and_ended(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for row in ("first", "second"):
        again(graph, "x", row)
        graph.branches.delete("x")
    as_earlier_releases_did(graph, monkeypatch, "third")
    pin = graph.snapshot("x")._snapshot.pins["node:Person"]
    forget(graph, "x/1.json")
    graph._repository.objects.delete([pin.name.manifest])
    assert faults(graph) == [(NameFaultKind.NO_TABLES, "x")]
    clean(graph)  # No write waits for what is gone.
    report = graph.upkeep.repair(confirm=True)
    assert [n.action for n in report.names] == [NameAction.REFUSED]
    assert report.refused == report.names
    report = graph.upkeep.repair(confirm=True, discard=True)
    assert [n.action for n in report.names] == [NameAction.DISCARDED]
    assert faults(graph) == []
    clean(graph)
    again(graph, "x", "new")
    assert people(graph, "x") == {"m", "new"}


@pytest.mark.parametrize(
    ("command", "point"),
    [
        (("delete", "x"), FailPoint.BRANCH_BEFORE_DEATH),
        (("rename", "x", "y"), FailPoint.BRANCH_BEFORE_RENAME),
        (("rename", "x", "y"), FailPoint.BRANCH_BEFORE_DEATH),
    ],
    ids=["delete", "rename-before", "rename-after"],
)
def test_a_step_that_nobody_finished_is_finished(
    graph: omnigraph.Graph, command: tuple[str, ...], point: FailPoint
) -> None:
    again(graph, "x", "own")
    with armed(point, ArmedAction.RAISE), pytest.raises(FailPointError):
        getattr(graph.branches, command[0])(*command[1:])
    stuck = "y" if point is FailPoint.BRANCH_BEFORE_RENAME else "x"
    assert faults(graph) == [(NameFaultKind.UNFINISHED, stuck)]
    clean(graph)
    assert [n.action for n in graph.upkeep.repair(confirm=True).names] == [NameAction.HEALED]
    assert faults(graph) == []
    left = {"delete": [], "rename": ["x" if stuck == "y" else "y"]}[command[0]]
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.branches.list() == ["main", *left]
        for name in left:
            assert people(fresh, name) == {"m", "own"}


def test_a_ref_that_leads_to_another_branch_is_told(graph: omnigraph.Graph) -> None:
    again(graph, "x", "own")
    objects = graph._repository.objects
    ref = find_branch(objects, "x")
    assert ref is not None
    objects.copy(ref.object_name, "_refs/branches/y/1.json")
    assert faults(graph) == [(NameFaultKind.UNFINISHED, "y")]
    graph.upkeep.repair(confirm=True)
    assert graph.branches.list() == ["main", "x"]
    assert people(graph, "x") == {"m", "own"}


def test_a_branch_that_is_being_made_is_none_of_it(graph: omnigraph.Graph) -> None:
    with armed(FailPoint.BRANCH_BEFORE_REF, lambda: faults(graph) == [] or pytest.fail()):
        again(graph, "x", "own")
    assert faults(graph) == []
