"""Any state of a graph is read again, by every name that it has."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.testing.clock import ManualClock
from support.racers import SCHEMA

START = datetime(2026, 1, 1, tzinfo=UTC)
START_US = 1_767_225_600_000_000
DEEP = 60
"""More commits than one manifest carries."""


def person(*names: str) -> list[dict[str, Any]]:
    return [{"type": "Person", "data": {"name": n}} for n in names]


def seen(view: omnigraph.SnapshotView) -> set[str]:
    return {row["name"] for row in view.rows("Person", columns=["name"])}


class Told:
    """A graph whose every state is remembered: version and moment, and the people in it."""

    def __init__(self, root: Path) -> None:
        self.clock = ManualClock(START_US)
        self.graph = omnigraph.init(root, SCHEMA, clock=self.clock)
        self.minute = 0
        self.states: list[tuple[str, int, int, str, frozenset[str]]] = []
        """Branch, manifest version, minute, commit and people."""

    def load(self, name: str, branch: str = "main") -> str:
        self.minute += 1
        self.clock.set_us(START_US + self.minute * 60_000_000)
        made = self.graph.load(person(name), branch=branch).commit
        assert made is not None
        people = frozenset(seen(self.graph.snapshot(branch)))
        self.states.append((branch, made.manifest_version, self.minute, made.id, people))
        return made.id


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Main; a branch from its middle; a branch from the middle of that. Each deeper than one
    manifest tells, their commits taking turns."""
    made = Told(tmp_path_factory.mktemp("deep") / "g")
    for i in range(DEEP):
        made.load(f"m{i}")
    made.graph.branches.create("side", "main@31")
    for i in range(DEEP):
        made.load(f"s{i}", "side")
        if i % 10 == 0:
            made.load(f"n{i}")
    made.graph.branches.create("leaf", "side@31")
    for i in range(3):
        made.load(f"l{i}", "leaf")
    yield made
    made.graph.close()


def test_every_state_by_version_commit_and_moment(told: Told) -> None:
    graph = told.graph
    for branch, version, minute, commit, people in told.states[::3]:
        moment = START + timedelta(minutes=minute)
        for view in (
            graph.at(f"{branch}@{version}"),
            graph.at(commit),
            graph.snapshot(branch, version=version),
            graph.snapshot(commit=commit.lower()),
            graph.snapshot(branch, commit=commit),
            graph.at(f"{branch}@{moment.isoformat()}"),
            graph.snapshot(branch, at=moment),
            graph.snapshot(branch, at=moment + timedelta(seconds=59, microseconds=999_999)),
        ):
            assert (view.commit.id, seen(view)) == (commit, people)


def test_a_moment_before_a_branch_began_is_one_of_its_parent(told: Told) -> None:
    """The state of a branch is what it would have shown: the commits in its own line."""
    by_minute = {minute: people for branch, _, minute, _, people in told.states if branch == "main"}
    for minute in (1, 7, 29, 30):
        moment = START + timedelta(minutes=minute)
        for branch in ("main", "side", "leaf"):
            assert seen(told.graph.snapshot(branch, at=moment)) == by_minute[minute]
    # Main went on after the fork: the branch stays where it left.
    late = START + timedelta(minutes=45)
    assert seen(told.graph.snapshot("main", at=late)) == by_minute[45]
    assert seen(told.graph.snapshot("side", at=late)) == by_minute[30]
    assert seen(told.graph.snapshot("leaf", at=late)) == by_minute[30]


def test_the_very_first_and_the_newest_moment(told: Told) -> None:
    graph = told.graph
    assert graph.snapshot(at=START).commit.kind == "init"
    assert graph.snapshot("leaf", at=START).commit.kind == "init"
    assert graph.snapshot(at="2199-01-01").commit.id == graph.snapshot().commit.id
    for branch in ("main", "side", "leaf"):
        with pytest.raises(NotFoundError, match="did not exist") as caught:
            graph.snapshot(branch, at=START - timedelta(microseconds=1))
        assert caught.value.kind is ErrorKind.COMMIT_NOT_FOUND
        assert "2026-01-01T00:00:00" in (caught.value.hint or "")


def test_moments_in_other_zones_and_forms(told: Told) -> None:
    graph, commit = told.graph, told.states[9][3]
    cet = timezone(timedelta(hours=1))
    for at in (
        "2026-01-01T00:10:00Z",
        "2026-01-01T00:10",
        "2026-01-01 00:10:30",
        "2026-01-01T01:10:00+01:00",
        "2025-12-31T19:10:00-05:00",
        datetime(2026, 1, 1, 0, 10),
        datetime(2026, 1, 1, 1, 10, tzinfo=cet),
    ):
        assert graph.snapshot(at=at).commit.id == commit, at
    assert graph.snapshot(at="2026-01-01").commit.kind == "init"


def test_commits_are_found_by_the_beginning_of_their_id(told: Told) -> None:
    graph = told.graph
    side = [s for s in told.states if s[0] == "side"]
    for state in (told.states[0], side[0], side[-1], told.states[-1]):
        commit = state[3]
        assert graph.commit(commit[:20]).id == graph.at(commit[:20].lower()).commit.id == commit
    with pytest.raises(UsageError, match="commits begin with 01"):
        graph.at("commit:01")
    with pytest.raises(NotFoundError) as caught:
        graph.snapshot("main", commit=side[-1][3])
    assert caught.value.kind is ErrorKind.COMMIT_NOT_FOUND


def test_a_log_crosses_the_borders_of_branches(told: Told) -> None:
    lines = {b: [c.id for c in told.graph.commits(branch=b)] for b in ("main", "side", "leaf")}
    assert [len(line) for line in lines.values()] == [1 + DEEP + 6, 31 + DEEP, 31 + 30 + 3]
    assert lines["leaf"][3:33] == lines["side"][DEEP - 30 : DEEP]
    assert lines["leaf"][-31:] == lines["side"][-31:] == lines["main"][-31:]
    log = [entry.commit.id for entry in told.graph.log()]
    assert len(log) == len(set(log)) == 1 + len(told.states)
    beyond = told.graph.commits(branch="leaf", not_in="main")
    assert [c.id for c in beyond] == lines["leaf"][:33]


# ---------------------------------------------------------------- branches that end, names that change


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Told]:
    made = Told(tmp_path / "g")
    made.load("a")
    made.load("b")
    made.graph.branches.create("parent", "main@2")
    made.load("p", "parent")
    made.graph.branches.create("child", "parent")
    made.load("c", "child")
    yield made
    made.graph.close()


def test_a_child_reads_the_past_of_a_parent_that_ended(small: Told) -> None:
    graph = small.graph
    commit = small.states[2][3]
    graph.branches.delete("parent")
    graph.close()
    with omnigraph.open(graph.uri) as graph:
        at_p = START + timedelta(minutes=3)
        assert seen(graph.snapshot("child", at=at_p)) == {"a", "p"}
        assert seen(graph.at(commit)) == {"a", "p"}
        assert graph.commit(commit).branch == "parent"
        assert [c.branch for c in graph.commits(branch="child")] == ["child", "parent", "main", "main"]  # fmt: skip
        for target in ("parent", "parent@1", "branch:parent"):
            with pytest.raises(NotFoundError) as caught:
                graph.at(target)
            assert caught.value.kind is ErrorKind.BRANCH_NOT_FOUND


def test_a_renamed_branch_keeps_its_past(small: Told) -> None:
    graph = small.graph
    graph.branches.rename("parent", "other")
    graph.load(person("q"), branch="other")
    for view in (graph.at("other@2"), graph.snapshot("other", at=START + timedelta(minutes=3))):
        assert seen(view) == {"a", "p"}
    assert seen(graph.at("other")) == {"a", "p", "q"}
    assert seen(graph.snapshot("child", at=START + timedelta(minutes=3))) == {"a", "p"}
    with pytest.raises(NotFoundError):
        graph.at("parent@2")


def test_a_name_used_again_shows_its_new_life_only(small: Told) -> None:
    graph = small.graph
    graph.branches.delete("parent")
    graph.branches.create("parent", "main")
    assert seen(graph.at("parent")) == {"a", "b"}
    assert seen(graph.snapshot("parent", at=START + timedelta(minutes=3))) == {"a", "b"}
    with pytest.raises(NotFoundError, match="its versions are 1 to 1"):
        graph.at("parent@2")


def test_tags_and_commits_outlive_resets(small: Told) -> None:
    graph = small.graph
    last = small.states[1][3]
    graph.tags.create("v1", "main")
    graph.reset("main@2")
    assert seen(graph.at("main")) == {"a"}
    # By its tag, its id, its version; and the moment of before the reset shows it as well.
    for view in (graph.at("v1"), graph.at(last), graph.at("main@3"), graph.at(last[:20])):
        assert (view.commit.id, seen(view)) == (last, {"a", "b"})
    graph.tags.delete("v1")
    graph.reset("main@1")
    graph.close()
    with omnigraph.open(graph.uri) as graph:
        assert seen(graph.at(last)) == {"a", "b"}
        assert [c.kind for c in graph.commits()] == ["reset", "init"]


def test_names_that_could_be_several_things(small: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch goes before a tag, a tag before a commit; each can be named as what it is."""
    for module in ("control", "tags"):  # Earlier releases took any name.
        monkeypatch.setattr(f"omnigraph.branch.{module}.check_new_name", lambda *_: None)
    graph = small.graph
    first, second = small.states[0][3], small.states[1][3]
    graph.tags.create("child", second)
    assert seen(graph.at("child")) == {"a", "p", "c"}
    assert seen(graph.at("tag:child")) == {"a", "b"}
    graph.tags.create(second, first)
    assert seen(graph.at(second)) == {"a"}
    assert seen(graph.at(f"commit:{second}")) == {"a", "b"}
    graph.branches.create("x@2", first)
    assert seen(graph.at("x@2@1")) == {"a"}
    assert seen(graph.at("branch:x@2")) == {"a"}


@pytest.mark.parametrize("text", ["", "  ", None, 7])
def test_what_is_no_target(small: Told, text: object) -> None:
    with pytest.raises(UsageError):
        small.graph.at(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "asked",
    [
        {"commit": "01", "tag": "v1"},
        {"version": 1, "at": "2026-01-01"},
        {"branch": "main", "tag": "v1"},
        {"version": "1"},
        {"version": True},
        {"at": "soon"},
        {"at": 12},
    ],
)
def test_what_names_two_states_or_none(small: Told, asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        small.graph.snapshot(**asked)


def test_a_clock_that_goes_back_leaves_moments_in_order(tmp_path: Path) -> None:
    """Another machine's clock is behind; the time of commits never decreases on a branch."""
    clock = ManualClock(START_US)
    with omnigraph.init(tmp_path / "g", SCHEMA, clock=clock) as graph:
        clock.advance(600)
        graph.load(person("a"))
        clock.set_us(START_US - 3_600_000_000)
        graph.load(person("b"))
        graph.branches.create("side")
        graph.load(person("c"), branch="side")
        assert seen(graph.snapshot(at=START + timedelta(seconds=599))) == set()
        assert seen(graph.snapshot(at=START + timedelta(seconds=600))) <= {"a", "b"}
        newest = graph.snapshot(at=START + timedelta(seconds=601))
        assert seen(newest) == {"a", "b"}
        assert seen(graph.snapshot("side", at=START + timedelta(seconds=601))) == {"a", "b", "c"}
