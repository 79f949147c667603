"""States as hands that know git name them: HEAD~2, main~1, main@yesterday."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.manifest.spoken import spoken_moment
from omnigraph.testing.clock import START_US, ManualClock

HOUR = 3600
DAY = 24 * HOUR


@pytest.fixture
def graph(tmp_path: Path):
    """A commit every twelve hours, the first of them at midnight."""
    clock = ManualClock()
    with omnigraph.init(tmp_path / "g", "node P { k: String @key }", clock=clock) as graph:
        for key in "abc":
            clock.advance(12 * HOUR)
            graph.load([{"type": "P", "data": {"k": key}}], actor=key)
        clock.advance(1 * HOUR)
        yield graph


def keys(graph: omnigraph.Graph, target: str) -> str:
    return "".join(row["k"] for row in graph.at(target).rows("P"))


@pytest.mark.parametrize(
    ("target", "found"),
    [
        ("HEAD", "abc"),
        ("HEAD~0", "abc"),
        ("HEAD~", "ab"),
        ("HEAD~1", "ab"),
        ("main~2", "a"),
        ("HEAD~1~1", "a"),
        ("v1~1", "a"),
        ("main@3~1", "a"),
        ("main@yesterday", ""),
        ("main@today", "ab"),
        ("HEAD@today", "ab"),
        ("main@2.hours.ago", "ab"),
        ("main@1h", "abc"),
        ("HEAD@20h~1", ""),
    ],
)
def test_a_state_in_words(graph: omnigraph.Graph, target: str, found: str) -> None:
    graph.tags.create("v1", "main@3")
    assert keys(graph, target) == found


def test_a_name_that_is_there_is_meant_before_its_words(graph: omnigraph.Graph) -> None:
    graph.branches.create("main~1", source="main@2")
    graph.tags.create("HEAD", "main@1")
    assert keys(graph, "main~1") == "a"
    assert keys(graph, "HEAD") == ""


def test_what_lies_before_the_first_commit_is_an_error(graph: omnigraph.Graph) -> None:
    with pytest.raises(omnigraph.NotFoundError, match="'main' has no 4 commits before it"):
        graph.at("main~4")
    with pytest.raises(omnigraph.NotFoundError, match="no branch, tag or commit 'nope'"):
        graph.at("nope~1")
    with pytest.raises(omnigraph.NotFoundError, match="did not exist"):
        graph.at("main@2.weeks.ago")


def test_commits_since_a_moment_in_words(graph: omnigraph.Graph) -> None:
    assert [c.actor for c in graph.commits(since="today")] == ["c", "b"]
    assert len(graph.commits(since="yesterday")) == 4
    assert [c.actor for c in graph.commits(since="13 hours ago", until="1h")] == ["c", "b"]
    with pytest.raises(omnigraph.UsageError, match="not a moment: 'soon'"):
        graph.commits(since="soon")


def test_a_snapshot_and_a_commit_in_words(graph: omnigraph.Graph) -> None:
    assert graph.snapshot(at="today").commit.actor == "b"
    assert graph.commit("HEAD~1").actor == "b"
    assert graph.commit("main~2").actor == "a"


@pytest.mark.parametrize(
    ("words", "ago_s"),
    [
        ("now", 0),
        ("today", 10 * HOUR),
        ("Yesterday", 10 * HOUR + DAY),
        ("thursday", 10 * HOUR + 7 * DAY),
        ("last wednesday", 10 * HOUR + DAY),
        ("friday", 10 * HOUR + 6 * DAY),
        ("a week ago", 7 * DAY),
        ("2-weeks-ago", 14 * DAY),
        ("90m", 90 * 60),
        ("1 month", 30 * DAY),
    ],
)
def test_words_of_time(words: str, ago_s: int) -> None:
    """1 January 2026 is a Thursday; it is ten in the morning."""
    now_us = START_US + 10 * HOUR * 1_000_000
    assert spoken_moment(words, now_us) == now_us - ago_s * 1_000_000


@pytest.mark.parametrize(
    "words", ["", "soon", "ago", "2", "d", "-1d", "99999999999d", "²d", "x ago"]
)
def test_words_without_a_moment(words: str) -> None:
    assert spoken_moment(words, START_US) is None
