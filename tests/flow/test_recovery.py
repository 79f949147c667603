"""Intents that writes have left: classified, rolled forward, revoked, put aside; nobody waits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ErrorKind, StorageError
from omnigraph.failpoints import ArmedAction, FailPoint, FailPointError, armed
from omnigraph.housekeeping import audit
from omnigraph.housekeeping.audit import RecoveryKind, recoveries
from omnigraph.housekeeping.intents import LEASE_S, Lease
from omnigraph.testing.clock import ManualClock
from omnigraph.upkeep.recovery import (
    RECOVERY_ACTOR,
    IntentState,
    find_intent,
    pending_intents,
    quarantined,
    recover,
)

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
NOW_US = 1_900_000_000_000_000


def person(name: str) -> list[dict[str, object]]:
    return [{"type": "Person", "data": {"name": name}}]


def names(graph: omnigraph.Graph, branch: str = "main") -> set[str]:
    return {row["name"] for row in graph.snapshot(branch).rows("Person")}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_US)


@pytest.fixture
def graph(tmp_path: Path, clock: ManualClock) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA, clock=clock) as made:
        made.load(person("a"))
        made.settle()
        yield made


def crash(graph: omnigraph.Graph, point: FailPoint, name: str, branch: str = "main") -> None:
    """A write that ends without a word at a point; its intent stays as after a kill."""

    def die() -> None:
        raise SystemExit

    with armed(point, die), pytest.raises(SystemExit):
        graph.load(person(name), branch=branch, actor="alice")


def heard(graph: omnigraph.Graph, ago_s: float, now_us: int = NOW_US) -> None:
    """All intents were last heard of so long ago."""
    at_s = now_us / 1e6 - ago_s
    for file in (Path(graph.uri) / "__recovery").glob("*.json"):
        os.utime(file, (at_s, at_s))


@pytest.mark.parametrize("branch", ["main", "work"])
@pytest.mark.parametrize("point", [FailPoint.WRITE_ALL_STAGED, FailPoint.PUBLISH_BEFORE_COMMIT])
def test_a_stalled_write_is_revoked(graph: omnigraph.Graph, branch: str, point: FailPoint) -> None:
    if branch == "work":
        graph.branches.create("work")
    crash(graph, point, "lost", branch)
    repository = graph._repository
    heard(graph, LEASE_S - 1)
    (running,) = pending_intents(repository)
    assert running.state is IntentState.RUNNING
    assert recover(repository).running == (running,)

    heard(graph, LEASE_S + 1)
    (stalled,) = pending_intents(repository)
    assert (stalled.state, stalled.branch) == (IntentState.STALLED, branch)
    (row,) = recover(repository).recovered
    assert (row.recovery_kind, row.recovery_for_actor) == (RecoveryKind.ROLLED_BACK, "alice")
    assert pending_intents(repository) == []

    commit = graph.commits(branch=branch, actor=RECOVERY_ACTOR)[0]
    assert (commit.kind, commit.id) == ("recovery", row.graph_commit_id)
    assert repository.head(branch).snapshot.revoked == (stalled.operation_id,)
    assert recoveries(repository) == [row]
    assert names(graph, branch) == {"a"}
    graph.load(person("b"), branch=branch)
    assert names(graph, branch) == {"a", "b"}
    assert recover(repository).recovered == ()


def test_a_stalled_writer_that_wakes_up_is_told(graph: omnigraph.Graph) -> None:
    with omnigraph.open(graph.uri) as other:

        def recover_meanwhile() -> None:
            heard(graph, LEASE_S + 1)
            other_clock = ManualClock(NOW_US)
            other._repository.clock = other_clock
            assert len(recover(other._repository).recovered) == 1

        with (
            armed(FailPoint.PUBLISH_BEFORE_COMMIT, recover_meanwhile),
            pytest.raises(omnigraph.ConflictError) as refused,
        ):
            graph.load(person("late"))
    assert refused.value.kind is ErrorKind.REVOKED
    assert names(graph) == {"a"}
    graph.load(person("late"))
    assert names(graph) == {"a", "late"}


def test_a_writer_that_is_faster_than_its_revocation_counts(graph: omnigraph.Graph) -> None:
    crash(graph, FailPoint.PUBLISH_BEFORE_COMMIT, "lost")
    heard(graph, LEASE_S + 1)
    (stalled,) = pending_intents(graph._repository)
    other = omnigraph.open(graph.uri)

    # The revocation has looked and is about to publish when the write it gives up is published.
    def publish_first() -> None:
        other._repository.ids.ulid = lambda: stalled.operation_id  # type: ignore[method-assign]
        with armed(FailPoint.SETTLE_BEFORE_HINT, ArmedAction.RAISE):
            other.load(person("lost"))
            other.settle()

    with other, armed(FailPoint.PUBLISH_BEFORE_COMMIT, publish_first):
        (row,) = recover(graph._repository).recovered
    assert row.recovery_kind is RecoveryKind.ROLLED_FORWARD
    assert names(graph) == {"a", "lost"}
    assert graph._repository.head("main").snapshot.revoked == ()


@pytest.mark.parametrize("reset", [False, True])
def test_a_published_write_is_rolled_forward(graph: omnigraph.Graph, reset: bool) -> None:
    before = graph.snapshot().commit.id
    crash(graph, FailPoint.PUBLISH_AFTER_COMMIT, "b")
    with omnigraph.open(graph.uri) as other:
        if reset:
            other.reset(before)
            other.settle()
        heard(other, 120)
        other._repository.clock = ManualClock(NOW_US)
        (row,) = recover(other._repository).recovered
        assert row.recovery_kind is RecoveryKind.ROLLED_FORWARD
        assert pending_intents(other._repository) == []
        assert names(other) == ({"a"} if reset else {"a", "b"})
        assert not other.commits(actor=RECOVERY_ACTOR)


def test_the_first_write_of_a_handle_finishes_what_was_published(graph: omnigraph.Graph) -> None:
    crash(graph, FailPoint.PUBLISH_AFTER_COMMIT, "b")
    heard(graph, 120)
    with omnigraph.open(graph.uri, clock=ManualClock(NOW_US)) as reader:
        assert names(reader) == {"a", "b"}
        assert len(pending_intents(reader._repository)) == 1
    with omnigraph.open(graph.uri, clock=ManualClock(NOW_US)) as writer:
        writer.load(person("c"))
        writer.settle()
        assert pending_intents(writer._repository) == []
        assert [r.recovery_kind for r in recoveries(writer._repository)] == [
            RecoveryKind.ROLLED_FORWARD
        ]


def test_what_cannot_be_read_is_put_aside_and_blocks_nobody(graph: omnigraph.Graph) -> None:
    folder = Path(graph.uri) / "__recovery"
    for name, content in {
        "01A.json": b"{",
        "01B.json": b"[]",
        "01C.json": b'{"operation_id":"01D"}',
        "odd.txt": b"\xff",
    }.items():
        (folder / name).write_bytes(content)
    graph.load(person("b"))
    assert {p.state for p in pending_intents(graph._repository)} == {IntentState.UNREADABLE}
    report = recover(graph._repository)
    assert {row.recovery_kind for row in report.recovered} == {RecoveryKind.QUARANTINED}
    assert len(quarantined(graph._repository)) == 4
    assert recover(graph._repository).recovered == ()
    graph.load(person("c"))
    assert names(graph) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "point", [FailPoint.RECOVERY_AFTER_REVOCATION, FailPoint.RECOVERY_BEFORE_DROP]
)
def test_a_recovery_that_dies_is_repeated_with_one_row(
    graph: omnigraph.Graph, point: FailPoint
) -> None:
    crash(graph, FailPoint.PUBLISH_BEFORE_COMMIT, "lost")
    heard(graph, LEASE_S + 1)
    with armed(point, ArmedAction.RAISE), pytest.raises(FailPointError):
        recover(graph._repository)
    assert len(pending_intents(graph._repository)) == 1
    recover(graph._repository)
    assert pending_intents(graph._repository) == []
    assert len(recoveries(graph._repository)) == 1
    assert len(graph.commits(actor=RECOVERY_ACTOR)) == 1


def test_an_audit_that_fails_leaves_the_intent(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash(graph, FailPoint.PUBLISH_BEFORE_COMMIT, "lost")
    heard(graph, LEASE_S + 1)

    def full(*_: object) -> None:
        raise StorageError("no space left", kind=ErrorKind.STORAGE_FULL)

    with monkeypatch.context() as patched:
        patched.setattr(audit, "add_missing", full)
        report = recover(graph._repository)
    assert report.failed[0][1] == "no space left"
    assert len(pending_intents(graph._repository)) == 1
    assert len(recover(graph._repository).recovered) == 1
    assert len(recoveries(graph._repository)) == 1


def test_an_intent_of_a_branch_that_ended_is_dropped(graph: omnigraph.Graph) -> None:
    graph.branches.create("work")
    crash(graph, FailPoint.PUBLISH_BEFORE_COMMIT, "lost", "work")
    with omnigraph.open(graph.uri) as other:
        other.branches.delete("work")
        heard(other, 0)
        (row,) = recover(other._repository).recovered
    assert (row.recovery_kind, row.graph_commit_id) == (RecoveryKind.ROLLED_BACK, None)


def test_a_listing_that_fails_is_loud_and_blocks_no_write(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(prefix: str) -> Iterator[object]:
        raise StorageError("no answer", kind=ErrorKind.STORAGE_TRANSIENT)

    monkeypatch.setattr(graph._repository.objects, "entries", fails)
    graph.load(person("b"))
    assert names(graph) == {"a", "b"}
    with pytest.raises(StorageError):
        recover(graph._repository)


def test_one_intent_is_found_by_the_beginning_of_its_id(graph: omnigraph.Graph) -> None:
    crash(graph, FailPoint.PUBLISH_BEFORE_COMMIT, "lost")
    (pending,) = pending_intents(graph._repository)
    assert find_intent(graph._repository, pending.operation_id[:8].lower()) == pending
    with pytest.raises(omnigraph.NotFoundError) as unknown:
        find_intent(graph._repository, "01ZZZ")
    assert unknown.value.kind is ErrorKind.OPERATION_NOT_FOUND


def test_a_lease_is_renewed_until_it_ends(graph: omnigraph.Graph) -> None:
    lease = Lease(graph._repository.objects, "01LEASE", renew_s=0.002)
    file = Path(graph.uri) / "__recovery" / "01LEASE.json"
    lease.hold(b"first")
    file.write_bytes(b"")
    while not file.read_bytes():  # Comes back by itself.
        pass
    lease.end()
    file.unlink()
    assert not file.exists()
