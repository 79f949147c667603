"""A state that is kept is found by any moment at which its branch showed it, and no other state."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

import omnigraph
from omnigraph.errors import ErrorKind, NotFoundError
from omnigraph.testing.clock import START_US, ManualClock
from omnigraph.upkeep.cleanup import cleanup
from omnigraph.upkeep.retention import Policy

SCHEMA = "node Person { name: String @key }"
START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = 30


class Told:
    """A graph whose every step takes a minute, and what each branch showed at each of them."""

    def __init__(self, root: Path) -> None:
        self.clock = ManualClock()
        self.graph = omnigraph.init(root, SCHEMA, clock=self.clock)
        self.minute = 0
        self.shown: dict[str, dict[int, str]] = {"main": {}}
        """By branch and minute: the newest commit."""
        self.tick()

    def tick(self) -> None:
        for branch in self.shown:
            self.shown[branch][self.minute] = self.graph.snapshot(branch).commit.id
        self.minute += 1
        self.clock.set_us(START_US + self.minute * 60_000_000)

    def load(self, branch: str = "main") -> str:
        rows = [{"type": "Person", "data": {"name": f"{branch}{self.minute}"}}]
        made = self.graph.load(rows, branch=branch).commit
        assert made is not None
        self.tick()
        return made.id

    def reset(self, commit: str, branch: str = "main") -> None:
        self.graph.reset(commit, branch=branch)
        self.tick()

    def create(self, branch: str, source: str) -> None:
        self.graph.branches.create(branch, source)
        self.shown[branch] = {}
        self.tick()

    def clean(self, keep: int = 1) -> None:
        self.graph.settle()
        with omnigraph.open(self.graph.uri) as other:  # By the clock of the store.
            cleanup(other._repository, Policy(keep=keep), confirm=True)

    def check(self) -> int:
        """Every minute of every branch; how many can be read."""
        found = 0
        with omnigraph.open(self.graph.uri) as fresh:
            for branch, minutes in self.shown.items():
                for minute, commit in minutes.items():
                    at = START + timedelta(minutes=minute, seconds=30)
                    by_commit = said(lambda c=commit: fresh.at(f"commit:{c}"))
                    by_moment = said(lambda b=branch, at=at: fresh.snapshot(b, at=at))
                    assert by_moment == by_commit, (branch, minute)
                    found += by_commit is not None
        return found


def said(look: object) -> tuple[str, frozenset[str]] | None:
    """The commit and its rows; None if it was reclaimed."""
    try:
        view = look()  # pyright: ignore[reportCallIssue]
    except NotFoundError as e:
        assert e.kind in (ErrorKind.HISTORY_RECLAIMED, ErrorKind.COMMIT_NOT_FOUND)
        return None
    return view.commit.id, frozenset(row["name"] for row in view.rows("Person"))


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    made = Told(tmp_path / "g")
    yield made
    made.graph.close()


def test_a_tag_amid_reclaimed_history(told: Told) -> None:
    commits = [told.load() for _ in range(9)]
    told.graph.tags.create("early", commits[1])
    told.graph.tags.create("middle", commits[5])
    told.clean()
    assert told.check() == 3
    minute = next(m for m, c in told.shown["main"].items() if c == commits[5])
    for second in (0, 59):
        at = START + timedelta(minutes=minute, seconds=second)
        assert told.graph.snapshot("main", at=at).commit.id == commits[5]
    # The next moment was another state, which is gone; so was what came before.
    for minutes in (minute - 1, minute + 1):
        with pytest.raises(NotFoundError) as gone:
            told.graph.snapshot("main", at=START + timedelta(minutes=minutes))
        assert gone.value.kind is ErrorKind.HISTORY_RECLAIMED


def test_news_of_a_cleanup_are_no_states(told: Told) -> None:
    """Versions that only say something else about a state are as good as that one."""
    for _ in range(3):
        told.load()
    for number in range(3):
        told.graph.tags.create(f"t{number}")
        told.clean()
        told.tick()
        told.load()
    told.graph.branches.create("b")
    told.graph.branches.rename("b", "c")
    told.clean()
    assert told.check() >= 7


def test_around_a_reset(told: Told) -> None:
    commits = [told.load() for _ in range(4)]
    left = [told.load() for _ in range(3)]
    told.graph.tags.create("left", left[1])
    told.reset(commits[1])
    for _ in range(3):
        told.load()
    told.graph.tags.create("before", commits[3])
    told.clean()
    told.clean()
    assert told.check() >= 4
    with pytest.raises(NotFoundError) as gone:  # The name of the commit is still known.
        told.graph.at(f"commit:{left[2]}")
    assert gone.value.kind is ErrorKind.HISTORY_RECLAIMED


def test_before_a_branch_began(told: Told) -> None:
    commits = [told.load() for _ in range(6)]
    told.graph.tags.create("t", commits[2])
    told.create("b", "main")
    for _ in range(4):
        told.load("b")
        told.load()
    told.create("c", "b")
    told.load("c")
    told.graph.branches.delete("b")
    del told.shown["b"]
    told.clean()
    assert told.check() >= 4
    minute = next(m for m, c in told.shown["main"].items() if c == commits[2])
    at = START + timedelta(minutes=minute, seconds=30)
    assert told.graph.snapshot("c", at=at).commit.id == commits[2]


@pytest.mark.parametrize("seed", range(6))
def test_any_history(tmp_path: Path, seed: int) -> None:
    told, random = Told(tmp_path / "g"), Random(seed)
    tags = 0
    for _ in range(STEPS):
        branch = random.choice(list(told.shown))
        made = [c for minutes in told.shown.values() for c in minutes.values()]
        what = random.choices(["load", "reset", "tag", "create", "clean"], [8, 2, 3, 1, 1])[0]
        commit = random.choice(made)
        try:
            if what == "load":
                told.load(branch)
            elif what == "reset":
                told.reset(commit, branch)
            elif what == "tag":
                told.graph.tags.create(f"t{tags}", commit)
                tags += 1
            elif what == "create" and len(told.shown) < 3:
                told.create(f"b{told.minute}", commit)
            elif what == "clean":
                told.clean(random.choice([1, 2]))
        except NotFoundError as e:
            assert e.kind is ErrorKind.HISTORY_RECLAIMED
    told.clean()
    assert told.check() >= len(told.shown)
    told.graph.close()
