"""`kill -9` of recovery, cleanup and long jobs, stopped at a point while others go on writing.

A child process stops at a failpoint and says so; the test writes beside it, kills the child by its own
id, and writes again at once. Whatever the child was doing is done by the next one, and a check finds
nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.failpoints import FailPoint, armed
from omnigraph.housekeeping.audit import RecoveryKind
from omnigraph.housekeeping.intents import LEASE_S
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.rendezvous import Rendezvous
from omnigraph.upkeep.recovery import RECOVERY_ACTOR, IntentState
from support.children import COMMAND_LINE, started

SCHEMA = """
node Person { name: String @key  age: I64? @index }
node City { name: String @key }
edge LivesIn: Person -> City
"""
GROWN = SCHEMA.replace("age: I64?", "height: F64? @backfill(1.0)  age: I64?")
LONG_LOAD = (
    "import sys, omnigraph\n"
    "from omnigraph.input import publishing\n"
    "from omnigraph.write.request import Requires, WriteRequest\n"
    "def leased(*, requires, **rest):\n"
    "    return WriteRequest(requires=requires | Requires.LEASE, **rest)\n"
    "publishing.WriteRequest = leased\n"
    "graph = omnigraph.open(sys.argv[1])\n"
    "graph.load([{'type': 'Person', 'data': {'name': 'long'}}], actor='alice')\n"
    "graph.settle()\n"
)


def person(name: str) -> list[dict[str, object]]:
    return [{"type": "Person", "data": {"name": name}}]


def names(graph: omnigraph.Graph, at: str = "main") -> set[str]:
    return {row["name"] for row in graph.at(at).rows("Person")}


def build(root: str) -> None:
    """Main with a few small files, a tag on its past, and a branch with something to merge."""
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load([*person("a"), {"type": "City", "data": {"name": "oslo"}}])
        graph.tags.create("start")
        graph.load([{"edge": "LivesIn", "from": "a", "to": "oslo"}])
        graph.branches.create("side")
        graph.load([*person("s"), {"edge": "LivesIn", "from": "s", "to": "oslo"}], branch="side")
        graph.load(person("b"))
        graph.tags.create("extra")
        graph.load(person("c"))


@contextmanager
def stopped(directory: Path, point: FailPoint, arguments: Sequence[str]) -> Iterator[None]:
    """A child that stands at a point; killed at the end of the block, or with it."""
    meeting = Rendezvous(directory)
    environment = os.environ | meeting.env(point)
    with started(*arguments, environment=environment) as (child, _):
        meeting.wait_reached(point, alive=child.is_alive)
        yield


def later(root: str, seconds: float = 2 * LEASE_S) -> omnigraph.Graph:
    return omnigraph.open(root, clock=ManualClock(SystemClock().now_us() + round(seconds * 1e6)))


def lose(root: str, name: str, branch: str) -> None:
    """A write that dies before its commit."""

    def die() -> None:
        raise SystemExit

    with (
        omnigraph.open(root) as graph,
        armed(FailPoint.PUBLISH_BEFORE_COMMIT, die),
        pytest.raises(SystemExit),
    ):
        graph.load(person(name), branch=branch, actor="alice")


def write(graph: omnigraph.Graph, name: str, branch: str = "main") -> None:
    """The next write of somebody else: at once, and all of it."""
    assert graph.load(person(name), branch=branch).commit is not None
    assert name in names(graph, branch)


def is_clean(root: str) -> None:
    """Nothing is pending after recovery, and the graph is whole."""
    with later(root) as graph:
        assert graph.upkeep.recovery.run().failed == ()
        assert graph.upkeep.recovery.list() == ()
        rows = [row.operation_id for row in graph.upkeep.recovery.audit()]
        assert len(rows) == len(set(rows))
        report = graph.upkeep.check(full=True)
        assert report.ok, report.findings


@pytest.mark.parametrize(
    ("store_root", "point"),
    [
        ("local", FailPoint.WRITE_ALL_STAGED),
        ("local", FailPoint.PUBLISH_AFTER_COMMIT),
        ("local", FailPoint.RECOVERY_AFTER_REVOCATION),
        ("local", FailPoint.RECOVERY_BEFORE_DROP),
        ("s3", FailPoint.RECOVERY_AFTER_REVOCATION),
        ("s3", FailPoint.RECOVERY_BEFORE_DROP),
    ],
    indirect=["store_root"],
)
def test_a_killed_recovery_is_run_again(store_root: str, tmp_path: Path, point: FailPoint) -> None:
    build(store_root)
    lose(store_root, "lost", "main")
    lose(store_root, "lost", "side")
    command = (COMMAND_LINE, "recovery", "run", store_root, "--stalled-after", "0s")
    with omnigraph.open(store_root) as graph:
        with stopped(tmp_path, point, command):
            write(graph, "beside")
        write(graph, "next")
        write(graph, "next", "side")
    is_clean(store_root)
    with omnigraph.open(store_root) as graph:
        rows = [r for r in graph.upkeep.recovery.audit() if r.recovery_for_actor == "alice"]
        assert sorted(r.branch or "" for r in rows) == ["main", "side"]
        for row in rows:
            assert row.recovery_kind is RecoveryKind.ROLLED_BACK
            told = graph.commits(branch=row.branch or "", actor=RECOVERY_ACTOR)
            assert row.graph_commit_id in {commit.id for commit in told}
        assert names(graph) == {"a", "b", "c", "beside", "next"}
        assert names(graph, "side") == {"a", "s", "next"}


@pytest.mark.parametrize(
    ("store_root", "point"),
    [
        ("local", FailPoint.CLEANUP_AFTER_RECORD),
        ("local", FailPoint.CLEANUP_AFTER_ANNOUNCEMENT),
        ("local", FailPoint.CLEANUP_BETWEEN_FILES),
        ("s3", FailPoint.CLEANUP_BETWEEN_FILES),
    ],
    indirect=["store_root"],
)
def test_a_killed_cleanup_is_run_again(store_root: str, tmp_path: Path, point: FailPoint) -> None:
    build(store_root)
    lose(store_root, "lost", "main")
    far = ("--yes",) if store_root.startswith("s3:") else ()
    keep = ("--keep", "1", "--grace", "0s", "--confirm", *far)
    with omnigraph.open(store_root) as graph:
        with stopped(tmp_path, point, (COMMAND_LINE, "cleanup", store_root, *keep)):
            write(graph, "beside")
            write(graph, "beside", "side")
        write(graph, "next")
        graph.settle()
    with omnigraph.open(store_root) as graph:
        assert graph.upkeep.cleanup(keep=1, grace=0, confirm=True).errors == ()
        assert names(graph) == {"a", "b", "c", "beside", "next"}
        assert names(graph, "side") == {"a", "s", "beside"}
        assert names(graph, "start") == {"a"}
        write(graph, "last", "side")
        graph.settle()
        assert graph.upkeep.cleanup(keep=1, grace=0, confirm=True).errors == ()
    if not far:  # A bucket dates its objects by the second: what is of the same one stays.
        with omnigraph.open(store_root) as graph:
            assert graph.upkeep.cleanup(keep=1, grace=0).places == ()
    is_clean(store_root)


@pytest.mark.parametrize(
    ("store_root", "point"),
    [
        ("local", FailPoint.STAGE_AFTER_FILES),
        ("local", FailPoint.PUBLISH_BEFORE_COMMIT),
        ("local", FailPoint.PUBLISH_AFTER_COMMIT),
        ("s3", FailPoint.WRITE_ALL_STAGED),
    ],
    indirect=["store_root"],
)
def test_a_killed_long_write_is_spared_while_it_lives_and_given_up_when_it_does_not(
    store_root: str, tmp_path: Path, point: FailPoint
) -> None:
    build(store_root)
    published = point is FailPoint.PUBLISH_AFTER_COMMIT
    with omnigraph.open(store_root) as graph:
        with stopped(tmp_path, point, (LONG_LOAD, store_root)):
            (item,) = graph.upkeep.recovery.list()
            assert item.state is IntentState.RUNNING
            assert item.intent is not None and item.intent.long
            write(graph, "beside")
            assert graph.upkeep.recovery.run().recovered == ()
            report = graph.upkeep.cleanup(keep=1, grace=0, confirm=True)
            assert report.spared == (item.operation_id,)
        write(graph, "next")
    is_clean(store_root)
    with omnigraph.open(store_root) as graph:
        (row,) = graph.upkeep.recovery.audit()
        assert (row.operation_id, row.recovery_for_actor) == (item.operation_id, "alice")
        expected = RecoveryKind.ROLLED_FORWARD if published else RecoveryKind.ROLLED_BACK
        assert row.recovery_kind is expected
        assert names(graph) == {"a", "b", "c", "beside", "next"} | (
            {"long"} if published else set()
        )
        # Its files are nobody's now.
        assert graph.upkeep.cleanup(keep=1, grace=0, confirm=True).spared == ()
    is_clean(store_root)


def extra(graph: omnigraph.Graph) -> str:
    return graph.at("extra").commit.id


COMMANDS: dict[str, tuple[tuple[str, ...], Callable[[omnigraph.Graph], object]]] = {
    "optimize": (("optimize",), lambda g: g.optimize()),
    "index build": (("index", "build"), lambda g: g.build_indexes()),
    "schema apply": (("schema", "apply", "--schema", "grown.pg"), lambda g: g.schema_apply(GROWN)),
    "merge": (("branch", "merge", "side"), lambda g: g.merge("side")),
    "revert": (("commit", "revert", "extra"), lambda g: g.revert(extra(g))),
    "reset": (("commit", "reset", "start", "--yes"), lambda g: g.reset("start")),
}
SHOWN = {"merge": {"a", "b", "c", "s"}, "revert": {"a", "c"}, "reset": {"a"}}
"""The people after the command; else nobody comes or goes."""


@pytest.mark.parametrize("point", [FailPoint.WRITE_ALL_STAGED, FailPoint.PUBLISH_AFTER_COMMIT])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_killed_command_stops_nobody(tmp_path: Path, command: str, point: FailPoint) -> None:
    store_root = str(tmp_path / "g")
    build(store_root)
    words, repeat = COMMANDS[command]
    (tmp_path / "grown.pg").write_text(GROWN)
    with omnigraph.open(store_root) as graph:
        named = {"extra": extra(graph), "grown.pg": str(tmp_path / "grown.pg")}
        before = graph.snapshot().commit.id
        arguments = (COMMAND_LINE, *(named.get(word, word) for word in words), store_root)
        with stopped(tmp_path, point, (*arguments, "--as", "alice")):
            published = graph.snapshot().commit.id != before
            assert published == (point is FailPoint.PUBLISH_AFTER_COMMIT)
            write(graph, "beside")
        write(graph, "next")
        if not published:
            repeat(graph)
        shown = SHOWN.get(command, {"a", "b", "c"})
        both = set[str]() if command == "reset" and not published else {"beside", "next"}
        assert names(graph) == shown | both
        assert (graph.snapshot().schema == GROWN) == (command == "schema apply")
    is_clean(store_root)
    with omnigraph.open(store_root) as graph:
        (row,) = graph.upkeep.recovery.audit()
        expected = RecoveryKind.ROLLED_FORWARD if published else RecoveryKind.ROLLED_BACK
        assert (row.recovery_kind, row.recovery_for_actor) == (expected, "alice")
        assert names(graph) == shown | both
