"""Intents that cannot be written, dropped, listed or read, and audits that fail: loud, and in nobody's way.

Groups 3, 4 and 6 of docs/dev/recovery-scenarios.md. The store itself refuses, behind the proxy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import pytest
from scenario_support import (
    ACTOR,
    city,
    copy_of,
    crash,
    die,
    intents,
    later,
    person,
    picture,
    recovered,
    template,
)

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import ArmedAction, FailPoint, FailPointError, armed
from omnigraph.housekeeping.audit import RecoveryKind
from omnigraph.housekeeping.intents import LEASE_S, Lease, intent_name
from omnigraph.testing.http1 import Fault, Request
from omnigraph.testing.proxy import CountingProxy
from omnigraph.upkeep.recovery import RECOVERY_ACTOR, IntentState, recover

AUDIT = "_graph_commit_recoveries.lance"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("intents")


@pytest.fixture
def graph(tmp_path: Path, folder: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.open(copy_of(folder, tmp_path / "g")) as opened:
        yield opened


@pytest.fixture
def far(folder: Path, copied_to_s3: Callable[[Path], str]) -> Iterator[omnigraph.Graph]:
    """A graph on S3, behind the proxy."""
    with omnigraph.open(copied_to_s3(template(folder))) as opened:
        yield opened


def names(graph: omnigraph.Graph, branch: str = "main") -> set[str]:
    return {row["name"] for row in graph.snapshot(branch).rows("Person")}


def load(graph: omnigraph.Graph, name: str, branch: str = "main") -> None:
    graph.load([person(name)], branch=branch, actor=ACTOR)


def lose(graph: omnigraph.Graph, name: str, branch: str = "main") -> str:
    """A write that dies before its commit; the id of its operation."""
    there = set(intents(graph))
    crash(graph, lambda: load(graph, name, branch), FailPoint.PUBLISH_BEFORE_COMMIT)
    (fresh,) = set(intents(graph)) - there
    return Path(fresh).stem


def in_listing(prefix: str) -> Callable[[Request], bool]:
    return lambda request: "prefix=" in request.query and prefix in request.query


# -- group 3: the intent ---------------------------------------------------------------------------


def test_an_intent_that_cannot_be_written_stops_the_write_and_nothing_else(
    far: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    before = picture(far)
    s3_proxy.fail(Fault.STATUS, operation="PUT", path="__recovery/", status=403, times=None)
    with pytest.raises(omnigraph.StorageError) as refused:
        load(far, "new")
    assert refused.value.kind is ErrorKind.STORAGE_DENIED
    assert picture(far) == before
    s3_proxy.reset()
    assert intents(far) == []
    load(far, "new")
    assert "new" in names(far)
    assert far.upkeep.check().ok
    assert recovered(far.uri).recovered == ()


def test_an_intent_that_cannot_be_dropped_goes_with_the_next_write(
    far: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    load(far, "first")  # The handle has finished what others left: that is not what helps here.
    far.settle()
    rule = s3_proxy.fail(Fault.STATUS, operation="POST", status=403, times=None)
    load(far, "second")
    assert len(intents(far)) == 1
    assert rule.fired
    s3_proxy.reset()
    load(far, "third")
    assert intents(far) == []
    assert {"first", "second", "third"} <= names(far)
    assert far.upkeep.recovery.audit() == ()  # Nobody had to recover anything.


def test_an_intent_that_stays_goes_with_the_first_write_of_another_handle(
    far: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    s3_proxy.fail(Fault.STATUS, operation="POST", status=403, times=None)
    load(far, "second")
    (left,) = intents(far)
    s3_proxy.reset()
    with later(far.uri, 120) as other:
        load(other, "third")
        assert intents(other) == []
        (row,) = other.upkeep.recovery.audit()
    assert (intent_name(row.operation_id), row.recovery_kind, row.recovery_for_actor) == (
        left,
        RecoveryKind.ROLLED_FORWARD,
        ACTOR,
    )


def test_a_listing_that_fails_is_told_to_who_asked_and_to_nobody_else(
    far: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    lost = lose(far, "lost")
    rule = s3_proxy.fail(
        Fault.STATUS, operation="LIST", when=in_listing("__recovery"), status=403, times=None
    )
    with later(far.uri) as other:
        load(other, "new")  # Its housekeeping asks for the list, too.
        other.settle()
        assert "new" in names(other)
        for asked in (
            other.upkeep.recovery.list,
            other.upkeep.recovery.run,
            lambda: other.upkeep.recovery.show(lost),
            lambda: other.upkeep.cleanup(keep=1, confirm=True),
        ):
            with pytest.raises(omnigraph.StorageError) as refused:
                asked()
            assert refused.value.kind is ErrorKind.STORAGE_DENIED
    assert rule.fired
    s3_proxy.reset()
    assert [row.operation_id for row in recovered(far.uri).recovered] == [lost]


def test_an_intent_that_cannot_be_fetched_is_told_and_the_others_are_dealt_with(
    far: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    first, second = lose(far, "lost"), lose(far, "lost too")
    s3_proxy.fail(Fault.STATUS, operation="GET", path=first, status=403, times=None)
    with later(far.uri) as other:
        states = {item.operation_id: item.state for item in other.upkeep.recovery.list()}
        assert states == {first: IntentState.UNCLEAR, second: IntentState.STALLED}
        report = other.upkeep.recovery.run()
        assert [row.operation_id for row in report.recovered] == [second]
        ((failed, why),) = report.failed
        assert failed == first
        assert why
        load(other, "new")
        # A cleanup that cannot see whose files it has to spare removes nothing.
        with pytest.raises(omnigraph.StorageError):
            other.upkeep.cleanup(keep=1, confirm=True)
    s3_proxy.reset()
    assert [row.operation_id for row in recovered(far.uri).recovered] == [first]


UNREADABLE = {
    "cut off": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "no object": lambda text: "[]",
    "of a newer release": lambda text: json.dumps(json.loads(text) | {"format": 99}),
    "of another operation": lambda text: json.dumps(json.loads(text) | {"operation_id": "01X"}),
    "no path of a branch": lambda text: json.dumps(json.loads(text) | {"manifest_path": "../x"}),
    "of no version": lambda text: json.dumps(json.loads(text) | {"base_manifest_version": None}),
}


@pytest.mark.parametrize("damage", UNREADABLE)
def test_an_intent_that_cannot_be_read_is_put_aside_once(
    graph: omnigraph.Graph, damage: str
) -> None:
    lost = lose(graph, "lost")
    file = Path(graph.uri) / intent_name(lost)
    file.write_text(UNREADABLE[damage](file.read_text()))
    load(graph, "new")
    with later(graph.uri) as other:
        load(other, "newer")
        (item,) = other.upkeep.recovery.list()
        assert (item.state, item.operation_id) == (IntentState.UNREADABLE, lost)
        assert item.reason
        assert not other.upkeep.check().ok
        with (
            armed(FailPoint.RECOVERY_BEFORE_DROP, ArmedAction.RAISE),
            pytest.raises(FailPointError),
        ):
            recover(other._repository)
        (row,) = other.upkeep.recovery.run().recovered
        assert (row.operation_id, row.recovery_kind) == (lost, RecoveryKind.QUARANTINED)
        assert other.upkeep.recovery.list() == ()
        assert other.upkeep.recovery.run().recovered == ()
        assert len(other.upkeep.recovery.audit()) == 1
        assert intents(other) == [f"__recovery/unreadable/{lost}.json"]
        load(other, "newest")
        assert {"new", "newer", "newest"} <= names(other)


def test_what_cannot_be_put_aside_stays_and_is_told(
    far: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    far._repository.objects.put("__recovery/01ODD.json", b"{")
    lost = lose(far, "lost")
    s3_proxy.fail(Fault.STATUS, operation="COPY", path="__recovery", status=403, times=None)
    report = recovered(far.uri)
    assert [name for name, _ in report.failed] == ["01ODD"]
    assert [row.operation_id for row in report.recovered] == [lost]
    s3_proxy.reset()
    assert [row.operation_id for row in recovered(far.uri).recovered] == ["01ODD"]


def test_an_intent_of_a_branch_that_cannot_be_read_blocks_no_other(graph: omnigraph.Graph) -> None:
    first, second = lose(graph, "lost", "work"), lose(graph, "lost")
    path = graph._repository.head("work").snapshot.path
    for file in (Path(graph.uri) / path / "_versions").glob("*.manifest"):
        file.write_bytes(b"damaged")
    with later(graph.uri) as other:
        states = {item.operation_id: item.state for item in other.upkeep.recovery.list()}
        assert states == {first: IntentState.UNCLEAR, second: IntentState.STALLED}
        report = other.upkeep.recovery.run()
    assert [row.operation_id for row in report.recovered] == [second]
    assert [name for name, _ in report.failed] == [first]


@pytest.mark.parametrize("point", [FailPoint.PUBLISH_BEFORE_COMMIT, FailPoint.PUBLISH_AFTER_COMMIT])
def test_intents_of_a_renamed_branch_are_found_under_its_new_name(
    graph: omnigraph.Graph, point: FailPoint
) -> None:
    crash(graph, lambda: load(graph, "x", "work"), point)
    with omnigraph.open(graph.uri) as other:
        other.branches.rename("work", "done")
        other.branches.create("work")
    report = recovered(graph.uri)
    back = point is FailPoint.PUBLISH_BEFORE_COMMIT
    (row,) = report.recovered
    assert row.recovery_kind == (RecoveryKind.ROLLED_BACK if back else RecoveryKind.ROLLED_FORWARD)
    with omnigraph.open(graph.uri) as other:
        assert len(other.commits(branch="done", actor=RECOVERY_ACTOR)) == back
        assert not other.commits(branch="work", actor=RECOVERY_ACTOR)
        load(other, "next", "done")
        assert ("x" in names(other, "done")) is not back


def test_a_lease_that_cannot_be_renewed_once_is_renewed_the_next_time(
    far: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    lease = Lease(far._repository.objects, "01LEASE", renew_s=0.002)
    lease.hold(b"first")
    rule = s3_proxy.fail(Fault.STATUS, operation="PUT", path="01LEASE", status=403, times=3)
    while rule.fired < 3:  # Each of them is one renewal: a refusal is not tried again.
        pass
    lease.renew(intent_name("01LEASE"), b"second")
    far._repository.objects.put(intent_name("01LEASE"), b"")
    while not far._repository.objects.get(intent_name("01LEASE")):
        pass
    lease.end()
    assert far._repository.objects.get(intent_name("01LEASE")) == b"second"


def test_a_hint_that_cannot_be_written_costs_nobody_an_answer(
    far: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    s3_proxy.fail(Fault.STATUS, operation="PUT", path="_head.json", status=403, times=None)
    for branch in ("main", "work"):
        for i in range(3):
            load(far, f"p{i}", branch)
    far.settle()
    with omnigraph.open(far.uri) as other:
        assert {"p0", "p1", "p2"} <= names(other)
        assert {"p0", "p1", "p2"} <= names(other, "work")
        load(other, "p3", "work")
    assert intents(far) == []


# -- group 4: the audit ----------------------------------------------------------------------------


@pytest.mark.parametrize("point", [FailPoint.PUBLISH_BEFORE_COMMIT, FailPoint.PUBLISH_AFTER_COMMIT])
def test_an_audit_that_fails_is_made_up_for(
    far: omnigraph.Graph, s3_proxy: CountingProxy, point: FailPoint
) -> None:
    crash(far, lambda: load(far, "x", "work"), point)
    s3_proxy.fail(Fault.STATUS, operation="PUT", path=AUDIT, status=403, times=None)
    report = recovered(far.uri)
    assert report.recovered == ()
    assert len(report.failed) == 1
    assert len(intents(far)) == 1
    with later(far.uri) as other:
        load(other, "new", "work")  # Its first write would finish it, and fails to record that.
        other.settle()
        assert {"new"} <= names(other, "work")
    s3_proxy.reset()
    assert len(recovered(far.uri).recovered) == 1
    with later(far.uri) as other:
        (row,) = other.upkeep.recovery.audit()
        given_up = other.commits(branch="work", actor=RECOVERY_ACTOR)
        back = point is FailPoint.PUBLISH_BEFORE_COMMIT
        assert row.recovery_kind == (
            RecoveryKind.ROLLED_BACK if back else RecoveryKind.ROLLED_FORWARD
        )
        # One commit gives it up, however often recovery was run, and the row names it.
        assert [c.id for c in given_up] == ([row.graph_commit_id] if back else [])
        assert other.upkeep.recovery.list() == ()


@pytest.mark.parametrize(
    "point",
    [
        FailPoint.WRITE_ALL_STAGED,
        FailPoint.PUBLISH_AFTER_COMMIT,
        FailPoint.RECOVERY_AFTER_REVOCATION,
        FailPoint.RECOVERY_BEFORE_DROP,
    ],
)
@pytest.mark.parametrize("branch", ["main", "work"])
def test_a_recovery_that_dies_anywhere_leaves_one_row_of_the_write(
    graph: omnigraph.Graph, point: FailPoint, branch: str
) -> None:
    lost = lose(graph, "lost", branch)
    with later(graph.uri) as other:
        with armed(point, die), pytest.raises(SystemExit):
            recover(other._repository)
        load(other, "new", branch)
    load(graph, "newer", branch)
    with later(graph.uri, 10 * 3600) as other:
        recover(other._repository)
        assert other.upkeep.recovery.list() == ()
        rows = {row.operation_id: row for row in other.upkeep.recovery.audit()}
        assert len(rows) == len(other.upkeep.recovery.audit())
        assert rows[lost].recovery_kind is RecoveryKind.ROLLED_BACK
        made_by = [c.id for c in other.commits(branch=branch, actor=RECOVERY_ACTOR)]
        assert rows[lost].graph_commit_id in made_by
        assert {"new", "newer"} <= names(other, branch)
        assert "lost" not in names(other, branch)
        assert other.upkeep.check().ok


@pytest.mark.parametrize(
    "point", [FailPoint.PUBLISH_BEFORE_COMMIT, FailPoint.RECOVERY_AFTER_REVOCATION]
)
def test_two_recoveries_at_once_give_a_write_up_once(
    graph: omnigraph.Graph, point: FailPoint
) -> None:
    file = Path(graph.uri) / intent_name(lose(graph, "lost"))
    at_s = file.stat().st_mtime - 2 * LEASE_S
    os.utime(file, (at_s, at_s))
    with omnigraph.open(graph.uri) as one, omnigraph.open(graph.uri) as two:
        with armed(point, lambda: recover(two._repository)):
            recover(one._repository)
        assert len(one.upkeep.recovery.audit()) == 1
        assert len(one.commits(actor=RECOVERY_ACTOR)) == 1
        assert one.upkeep.recovery.list() == ()


def test_many_who_died_are_dealt_with_together(graph: omnigraph.Graph) -> None:
    """One commit of a branch gives all of them up; one version of the audit tells of them."""
    lost = [lose(graph, f"lost{i}", branch) for i in range(4) for branch in ("main", "work")]
    for i in range(4):
        crash(graph, lambda i=i: load(graph, f"made{i}"), FailPoint.PUBLISH_AFTER_COMMIT)
    report = recovered(graph.uri)
    assert len(report.recovered) == len(lost) + 4
    with later(graph.uri) as other:
        for branch in ("main", "work"):
            assert len(other.commits(branch=branch, actor=RECOVERY_ACTOR)) == 1
        assert {row.operation_id for row in other.upkeep.recovery.audit()} >= set(lost)
        assert lance.dataset(f"{graph.uri}/{AUDIT}").version == 3


def test_two_who_tell_of_a_recovery_at_the_same_moment_leave_one_row(
    graph: omnigraph.Graph,
) -> None:
    crash(graph, lambda: load(graph, "x"), FailPoint.PUBLISH_AFTER_COMMIT)
    from omnigraph.storage import records

    real = records.write_fragments
    with later(graph.uri) as one, later(graph.uri) as two, pytest.MonkeyPatch.context() as patch:

        def overtaken(*arguments: object, **options: object) -> object:
            patch.undo()
            recover(two._repository)
            return real(*arguments, **options)  # type: ignore[arg-type]

        patch.setattr(records, "write_fragments", overtaken)
        recover(one._repository)
        assert len(one.upkeep.recovery.audit()) == 1


def test_a_young_write_that_is_given_up_and_publishes_after_all_counts(
    graph: omnigraph.Graph,
) -> None:
    lost = lose(graph, "lost")
    with omnigraph.open(graph.uri) as other, omnigraph.open(graph.uri) as third:

        def publish_first() -> None:
            other._repository.ids.ulid = lambda: lost  # type: ignore[method-assign]
            with armed(FailPoint.SETTLE_BEFORE_HINT, ArmedAction.RAISE):
                load(other, "lost")
                other.settle()

        with armed(FailPoint.PUBLISH_BEFORE_COMMIT, publish_first):
            report = recover(third._repository, lease_s=0)
    assert report.failed == ()
    assert "lost" in names(graph)
    assert not graph.commits(actor=RECOVERY_ACTOR)


# -- group 6: somebody else was faster, and then the write dies -------------------------------------


@pytest.mark.parametrize("branch", ["main", "work"])
@pytest.mark.parametrize("rows", [[person("winner")], [city("winner")]], ids=["same", "disjoint"])
def test_a_winner_stays_when_the_loser_dies(
    graph: omnigraph.Graph, rows: list[dict[str, object]], branch: str
) -> None:
    with omnigraph.open(graph.uri) as other:

        def overtake() -> None:
            other.load(rows, branch=branch)

        with (
            armed(FailPoint.PUBLISH_BEFORE_COMMIT, overtake),
            armed(FailPoint.PUBLISH_BEFORE_COMMIT, die, skip=2),
            pytest.raises(SystemExit),
        ):
            load(graph, "loser", branch)
        shown = picture(other, branch)
        assert any("winner" in row for found in shown.rows.values() for row in found)
        assert picture(graph, branch) == shown
        load(graph, "next", branch)
    (row,) = recovered(graph.uri).recovered
    assert row.recovery_kind is RecoveryKind.ROLLED_BACK
    with omnigraph.open(graph.uri) as other:
        assert "loser" not in names(other, branch)
        assert "next" in names(other, branch)
        assert other.upkeep.check().ok
