"""Which commits somebody sees: by actor, kind, type and time, and only what another state lacks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.branch.history import CommitFilter
from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.testing.clock import ManualClock
from support.racers import SCHEMA

START = datetime(2026, 1, 1, tzinfo=UTC)
START_US = 1_767_225_600_000_000


def person(*names: str) -> list[dict[str, Any]]:
    return [{"type": "Person", "data": {"name": n}} for n in names]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.Graph]:
    """Sixty loads, a minute apart, by three actors in turn; every tenth one is of edges."""
    clock = ManualClock(START_US)
    root = tmp_path_factory.mktemp("filters") / "g"
    with omnigraph.init(root, SCHEMA, actor="founder", clock=clock) as made:
        for i in range(60):
            clock.advance(60)
            actor = ("ann", "bob", None)[i % 3]
            if i and i % 10 == 0:
                made.load([{"edge": "Knows", "from": "0", "to": str(i - 1)}], actor=actor)
            else:
                made.load(person(str(i)), actor=actor, message=f"m{i}")
        made.branches.create("side", "main@11")
        clock.advance(60)
        made.mutate('delete Person where name = "1"', branch="side", actor="sid")
        yield made


def minutes(commits: omnigraph.Commits) -> list[int]:
    return [(c.created_at_us - START_US) // 60_000_000 for c in commits]


def test_newest_first_and_no_more_than_asked_for(graph: omnigraph.Graph) -> None:
    assert minutes(graph.commits()) == list(range(60, -1, -1))
    assert minutes(graph.commits(limit=3)) == [60, 59, 58]
    assert minutes(graph.commits(limit=0)) == []
    assert minutes(graph.commits(limit=1000)) == list(range(60, -1, -1))


def test_by_actor_and_kind(graph: omnigraph.Graph) -> None:
    assert minutes(graph.commits(actor="ann")) == list(range(58, 0, -3))
    assert minutes(graph.commits(actor="ann", limit=2)) == [58, 55]
    assert minutes(graph.commits(actor="founder", kind="init")) == [0]
    assert minutes(graph.commits(actor="ann", kind="init")) == []
    assert minutes(graph.commits(kind="mutation")) == []
    assert minutes(graph.commits(branch="side", kind="mutation")) == [61]


def test_by_type(graph: omnigraph.Graph) -> None:
    assert minutes(graph.commits(type="Knows")) == [51, 41, 31, 21, 11]
    assert minutes(graph.commits(type="Person", limit=2)) == [60, 59]
    assert minutes(graph.commits(type="Nobody")) == []


def test_by_time_both_ends_included(graph: omnigraph.Graph) -> None:
    def at(minute: float) -> datetime:
        return START + timedelta(minutes=minute)

    assert minutes(graph.commits(since=at(58))) == [60, 59, 58]
    assert minutes(graph.commits(until=at(2))) == [2, 1, 0]
    assert minutes(graph.commits(since=at(7), until=at(9.5))) == [9, 8, 7]
    assert minutes(graph.commits(since=at(9), until=at(7))) == []
    text = "2026-01-01T01:58:00+01:00"
    assert minutes(graph.commits(since=text)) == [60, 59, 58]
    assert minutes(graph.commits(since="2026-01-02")) == []
    assert minutes(graph.commits(until="2026-01-01")) == [0]
    found = graph.commits(since=at(20), until=at(50), actor="bob", type="Person", limit=3)
    assert minutes(found) == [50, 47, 44]


def test_of_one_branch_only(graph: omnigraph.Graph) -> None:
    assert minutes(graph.commits(branch="side")) == [61, *range(10, -1, -1)]
    assert minutes(graph.commits(branch="side", not_in="main")) == [61]
    assert minutes(graph.commits(not_in="side")) == list(range(60, 10, -1))
    assert minutes(graph.commits(not_in="main@31")) == list(range(60, 30, -1))
    assert minutes(graph.commits(not_in="side", actor="ann", limit=1)) == [58]
    assert minutes(graph.commits(not_in="main")) == []
    assert minutes(graph.commits(branch="side", first_parent=True)) == [61, *range(10, -1, -1)]


@pytest.mark.parametrize(
    "asked",
    [
        {"limit": -1},
        {"limit": "3"},
        {"since": "soon"},
        {"until": 12},
        {"since": ""},
        {"not_in": " "},
        {"not_in": "main", "first_parent": True},
    ],
)
def test_filters_that_mean_nothing(graph: omnigraph.Graph, asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        graph.commits(**asked)


def test_states_that_are_not_there(graph: omnigraph.Graph) -> None:
    cases: list[dict[str, Any]] = [{"branch": "nope"}, {"not_in": "nope"}]
    for asked in cases:
        with pytest.raises(NotFoundError) as caught:
            graph.commits(**asked)
        assert caught.value.kind is ErrorKind.BRANCH_NOT_FOUND


def test_nothing_is_read_beyond_what_is_asked_for(graph: omnigraph.Graph) -> None:
    """A walk stops at the limit, and at what the other state has as well."""
    commits = graph.commits()

    def walked(limit: int) -> int:
        steps = 0

        def counted() -> Iterator[omnigraph.GraphCommit]:
            nonlocal steps
            for commit in commits:
                steps += 1
                yield commit

        list(CommitFilter.of(limit=limit, actor="ann").select(counted()))
        return steps

    assert [walked(n) for n in (0, 1, 2)] == [0, 3, 6]


def test_a_fork_seen_from_both_sides(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load(person("a"))
        graph.branches.create("one")
        graph.branches.create("two", "one")
        for name in ("one", "two"):
            for i in range(3):
                graph.load(person(f"{name}{i}"), branch=name)
        assert len(graph.commits(branch="one", not_in="two")) == 3
        assert len(graph.commits(branch="two", not_in="one")) == 3
        assert len(graph.commits(branch="two", not_in="main")) == 3
        assert graph.commits(not_in="two") == graph.commits(limit=0)
        log = graph.log()
        assert len(log) == 8
        assert {e.branches for e in log if e.branches} == {("main",), ("one",), ("two",)}
        with pytest.raises(UsageError):
            graph.log(first_parent=True)
