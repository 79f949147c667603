"""Cleanup: what it keeps, what it takes, and that nobody who writes meanwhile is harmed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import ErrorKind, StorageError
from omnigraph.failpoints import ArmedAction, FailPoint, FailPointError, armed
from omnigraph.housekeeping.intents import Lease
from omnigraph.manifest.snapshot import MAIN, TableChange
from omnigraph.manifest.sweeps import numbers
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.changes import Append
from omnigraph.storage.objects import Objects
from omnigraph.testing.clock import ManualClock
from omnigraph.upkeep.cleanup import CleanupReport, cleanup
from omnigraph.upkeep.retention import Policy
from omnigraph.write.plan import Action as Does
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.stage import BulkChange, BulkWork
from omnigraph.write.txn import WriteTxn

SCHEMA = """
node Person { name: String @key  age: I64? }
edge Knows: Person -> Person
"""
DAY_S = 86_400


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        yield made


def put(graph: omnigraph.Graph, name: str, age: int = 0, branch: str = "main") -> str:
    rows = [{"type": "Person", "data": {"name": name, "age": age}}]
    receipt = graph.load(rows, mode="merge", branch=branch)
    graph.settle()
    assert receipt.commit is not None
    return receipt.commit.id


def ages(graph: omnigraph.Graph, at: str = "main") -> dict[str, int]:
    return {row["name"]: row["age"] for row in graph.at(at).rows("Person")}


def clean(graph: omnigraph.Graph, **policy: Any) -> CleanupReport:
    return cleanup(graph._repository, Policy(**policy), confirm=True)


def finds_nothing(graph: omnigraph.Graph, **policy: Any) -> bool:
    with omnigraph.open(graph.uri) as fresh:
        report = cleanup(fresh._repository, Policy(**policy))
        return report.places == ()


def reclaimed(read: Callable[[], object]) -> bool:
    try:
        read()
    except omnigraph.NotFoundError as e:
        return e.kind is ErrorKind.HISTORY_RECLAIMED
    return False


def everything(graph: omnigraph.Graph) -> dict[str, bytes]:
    root = Path(graph.uri)
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_the_newest_states_stay_and_older_ones_go(graph: omnigraph.Graph) -> None:
    commits = [put(graph, "a", age) for age in range(8)]
    preview_before = everything(graph)
    preview = cleanup(graph._repository, Policy(keep=3))
    assert everything(graph) == preview_before
    done = clean(graph, keep=3)
    assert (done.bytes_removed, done.files_removed) == (
        preview.bytes_removed,
        preview.files_removed,
    )
    assert done.bytes_removed > 0
    assert done.errors == ()
    with omnigraph.open(graph.uri) as fresh:
        for age in (5, 6, 7):
            assert ages(fresh, commits[age]) == {"a": age}
        for age in range(5):
            commit = commits[age]
            assert reclaimed(lambda commit=commit: ages(fresh, commit))
        assert [c.id for c in fresh.commits()][: len(commits)] == list(reversed(commits))
        assert cleanup(fresh._repository, Policy(keep=3)).places == ()
        put(fresh, "b")
        assert ages(fresh) == {"a": 7, "b": 0}


def test_a_second_cleanup_finds_nothing_and_leaves_no_trace(graph: omnigraph.Graph) -> None:
    for age in range(5):
        put(graph, "a", age)
    assert clean(graph, keep=1).files_removed
    before = everything(graph)
    assert clean(graph, keep=1).files_removed == 0
    assert everything(graph) == before


@pytest.mark.parametrize("bad", [{}, {"keep": 0}, {"keep": -1}, {"older_than_s": -1.0}])
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(omnigraph.UsageError):
        Policy(**bad)


def test_tags_branches_and_their_ancestors_stay(graph: omnigraph.Graph) -> None:
    put(graph, "a", 1)
    graph.tags.create("v1")
    put(graph, "a", 2)
    graph.branches.create("work")
    put(graph, "w", 1, "work")
    for age in range(3, 9):
        put(graph, "a", age)
    clean(graph, keep=1)
    with omnigraph.open(graph.uri) as fresh:
        assert ages(fresh, "v1") == {"a": 1}
        assert ages(fresh, "work") == {"a": 2, "w": 1}
        assert fresh.merge("work").outcome == "merged"
        assert ages(fresh) == {"a": 8, "w": 1}
        assert fresh.diff("v1", "main").counts["node:Person"].total == 2
    graph.tags.delete("v1")
    assert clean(graph, keep=1).files_removed
    assert finds_nothing(graph, keep=1)


def test_both_limits_a_state_must_fail_both(tmp_path: Path) -> None:
    clock = ManualClock()
    with omnigraph.init(tmp_path / "g", SCHEMA, clock=clock) as graph:
        commits = []
        for age in range(6):
            clock.advance(DAY_S)
            commits.append(put(graph, "a", age))
        clock.set_us(1_950_000_000_000_000)  # Later than the files by the clock of this machine.
        shown = 1_950_000_000_000_000 - graph.commit(commits[3]).created_at_us
        cleanup(graph._repository, Policy(keep=1, older_than_s=shown / 1e6), confirm=True)
        for age in (2, 3, 4, 5):  # The third was shown until the fourth came.
            assert ages(graph, commits[age]) == {"a": age}
        with omnigraph.open(graph.uri, clock=clock) as fresh:
            assert reclaimed(lambda: ages(fresh, commits[1]))
        assert clean(graph, keep=5, older_than_s=0.0).files_removed == 0


def test_the_grace_window_keeps_what_was_shown_or_written_in_it(graph: omnigraph.Graph) -> None:
    commits = [put(graph, "a", age) for age in range(4)]
    assert clean(graph, keep=1, grace_s=3600.0).files_removed == 0
    assert ages(graph, commits[0]) == {"a": 0}


def test_what_crashes_left_is_taken(graph: omnigraph.Graph) -> None:
    put(graph, "a", 1)
    clean_files = set(everything(graph))
    for point in (FailPoint.STAGE_AFTER_COMMIT, FailPoint.PUBLISH_BEFORE_COMMIT):
        with (
            omnigraph.open(graph.uri) as other,
            armed(point, _die, times=None),
            pytest.raises(SystemExit),
        ):
            put(other, "b", 2)
    assert set(everything(graph)) > clean_files
    report = cleanup(graph._repository, Policy(keep=9), confirm=True, lease_s=0)
    assert report.files_removed
    assert ages(graph) == {"a": 1}
    left = {n for n in everything(graph) if n.startswith(("nodes", "edges", "__recovery"))}
    assert left <= clean_files
    assert cleanup(graph._repository, Policy(keep=9), confirm=True).files_removed == 0


def test_rows_that_were_never_loaded_are_taken_after_a_day(graph: omnigraph.Graph) -> None:
    put(graph, "a", 1)
    folder = Path(graph.uri, "_parts", "01M7JCX9YMN7M61SDGDNEN7V36")
    folder.mkdir(parents=True)
    for name, age_s in (("old", 2 * DAY_S), ("waiting", DAY_S // 2)):
        (folder / f"{name}.arrow").write_bytes(b"rows")
        written = folder.stat().st_mtime - age_s
        os.utime(folder / f"{name}.arrow", (written, written))
    (place,) = clean(graph, keep=9).places
    assert (place.type_key, place.files_removed, place.bytes_removed) == ("parts", 1, 4)
    assert [p.name for p in folder.iterdir()] == ["waiting.arrow"]


def _die() -> None:
    raise SystemExit


def test_a_branch_that_ended_is_reduced_to_its_last_word(graph: omnigraph.Graph) -> None:
    put(graph, "a", 1)
    graph.branches.create("work")
    for age in range(5):
        put(graph, "w", age, "work")
    stale = omnigraph.open(graph.uri)
    put(stale, "w", 9, "work")
    graph.branches.delete("work")
    clean(graph, keep=1)
    assert finds_nothing(graph, keep=1)
    # A handle that slept can neither write there nor be told anything but the truth.
    with stale, pytest.raises(omnigraph.NotFoundError) as gone:
        put(stale, "w", 10, "work")
    assert gone.value.kind is ErrorKind.BRANCH_NOT_FOUND
    graph.branches.create("work")
    put(graph, "again", 1, "work")
    assert ages(graph, "work") == {"a": 1, "again": 1}
    graph.branches.delete("work")
    assert clean(graph, keep=1).files_removed
    assert len(list(graph._repository.objects.names("_refs/branches"))) == 2


def test_a_handle_that_slept_through_a_cleanup_wakes_up_well(graph: omnigraph.Graph) -> None:
    put(graph, "a", 0)
    with omnigraph.open(graph.uri) as stale:
        assert ages(stale) == {"a": 0}
        for age in range(1, 12):
            put(graph, "a", age)
        clean(graph, keep=1)
        put(stale, "late", 1)
        assert ages(stale) == {"a": 11, "late": 1}
    assert ages(graph) == {"a": 11, "late": 1}


@pytest.mark.parametrize(
    "point",
    [
        FailPoint.STAGE_AFTER_FILES,
        FailPoint.STAGE_AFTER_COMMIT,
        FailPoint.STAGE_AFTER_PIN,
        FailPoint.WRITE_ALL_STAGED,
        FailPoint.PUBLISH_BEFORE_COMMIT,
    ],
)
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_stalled_writer_publishes_intact_data(
    graph: omnigraph.Graph, point: FailPoint, mode: str
) -> None:
    for age in range(4):
        put(graph, "a", age)
    with omnigraph.open(graph.uri) as other:
        ages(other)

        def meanwhile() -> None:
            put(graph, "b", 1)
            put(graph, "b", 2)
            assert clean(graph, keep=1).files_removed

        rows = [{"type": "Person", "data": {"name": n, "age": 7}} for n in ("late", "later")]
        if mode != "append":
            rows.append({"type": "Person", "data": {"name": "a", "age": 7}})
        with armed(point, meanwhile):
            try:
                other.load(rows, mode=mode)
                expected = {"late": 7, "later": 7, "a": 3 if mode == "append" else 7, "b": 2}
            except omnigraph.ConflictError:
                assert mode == "overwrite"  # Its table was changed meanwhile.
                expected = {"a": 3, "b": 2}
        other.settle()
    with omnigraph.open(graph.uri) as fresh:
        assert ages(fresh) == expected
    assert clean(graph, keep=1).errors == ()
    with omnigraph.open(graph.uri) as fresh:
        assert ages(fresh) == expected


@pytest.mark.parametrize("point", [FailPoint.WRITE_ALL_STAGED, FailPoint.PUBLISH_BEFORE_COMMIT])
def test_a_state_that_was_given_up_is_not_shown_again(
    graph: omnigraph.Graph, point: FailPoint
) -> None:
    commits = [put(graph, "a", age) for age in range(5)]
    with omnigraph.open(graph.uri) as other:
        ages(other, commits[1])

        def meanwhile() -> None:
            assert clean(graph, keep=1).files_removed

        with armed(point, meanwhile), pytest.raises(omnigraph.NotFoundError) as refused:
            other.reset(commits[1])
        assert refused.value.kind is ErrorKind.HISTORY_RECLAIMED
        # From memory, too, nobody gets it back.
        for attempt in (
            lambda: other.reset(commits[1]),
            lambda: other.tags.create("old", commits[1]),
            lambda: other.branches.create("old", commits[1]),
            lambda: other.revert(commits[2], prefer="theirs"),
        ):
            with pytest.raises(omnigraph.NotFoundError):
                attempt()
        assert other.branches.list() == ["main"]
        assert list(other.tags.list()) == []
    assert ages(graph) == {"a": 4}


@pytest.mark.parametrize(
    "point", [FailPoint.CLEANUP_AFTER_RECORD, FailPoint.CLEANUP_AFTER_ANNOUNCEMENT]
)
def test_a_name_given_meanwhile_keeps_its_state(graph: omnigraph.Graph, point: FailPoint) -> None:
    commits = [put(graph, "a", age) for age in range(5)]
    kept: list[str] = []

    def meanwhile() -> None:
        with omnigraph.open(graph.uri) as other:
            try:
                other.tags.create("t", commits[1])
                other.branches.create("b", commits[2])
                kept.extend(["t", "b"])
            except omnigraph.NotFoundError as e:
                assert e.kind is ErrorKind.HISTORY_RECLAIMED

    with armed(point, meanwhile):
        clean(graph, keep=1)
    assert bool(kept) == (point is FailPoint.CLEANUP_AFTER_RECORD)
    with omnigraph.open(graph.uri) as fresh:
        assert [ages(fresh, name) for name in kept] == [{"a": 1}, {"a": 2}][: len(kept)]
        clean(fresh, keep=1)
    with omnigraph.open(graph.uri) as fresh:
        assert [ages(fresh, name) for name in kept] == [{"a": 1}, {"a": 2}][: len(kept)]


@pytest.mark.parametrize(
    "point",
    [
        FailPoint.CLEANUP_AFTER_RECORD,
        FailPoint.CLEANUP_AFTER_ANNOUNCEMENT,
        FailPoint.CLEANUP_BETWEEN_FILES,
    ],
)
def test_a_cleanup_that_dies_is_run_again(graph: omnigraph.Graph, point: FailPoint) -> None:
    for age in range(5):
        put(graph, "a", age)
    skip = 2 if "between" in point else 0
    with armed(point, ArmedAction.RAISE, skip=skip), pytest.raises(FailPointError):
        clean(graph, keep=1)
    put(graph, "b", 1)
    assert ages(graph) == {"a": 4, "b": 1}
    clean(graph, keep=1)
    assert finds_nothing(graph, keep=1)
    with omnigraph.open(graph.uri) as fresh:
        assert ages(fresh) == {"a": 4, "b": 1}


def test_a_long_write_that_lives_is_spared(graph: omnigraph.Graph) -> None:
    for age in range(4):
        put(graph, "a", age)
    repository = graph._repository
    made: list[BulkChange] = []

    def prepare(txn: WriteTxn) -> BulkChange:
        if not made:
            kind = txn.schema.catalog.table("node:Person")
            rows = txn.scan("node:Person", ("id", "name", "age")).slice(0, 1)
            rows = rows.set_column(0, "id", [["bulk"]]).set_column(1, "name", [["bulk"]])
            rows = rows.select(table_schema(kind).names).cast(table_schema(kind))
            files = repository.tables.write_files(kind.table_path, rows, txn.table("node:Person"))
            txn.consulted.clear()
            work = BulkWork(
                type=kind,
                actions=(Does.APPEND,),
                change=TableChange(inserted=1),
                staged=Append(files=files),
            )
            made.append(BulkChange(tables={"node:Person": work}))
            with omnigraph.open(graph.uri) as other:
                put(other, "b", 1)
                report = clean(other, keep=1)
                assert len(report.spared) == 1
        return made[0]

    receipt = publish(
        repository,
        WriteRequest(
            kind="load",
            branch=MAIN,
            prepare=prepare,
            requires=Requires.LEASE,
        ),
    )
    graph.settle()
    assert receipt.commit is not None
    with omnigraph.open(graph.uri) as fresh:
        assert set(ages(fresh)) == {"a", "b", "bulk"}
        assert list(fresh._repository.objects.names("__recovery")) == []
    assert clean(graph, keep=1).files_removed
    assert set(ages(graph)) == {"a", "b", "bulk"}


def test_one_table_that_fails_does_not_stop_the_others(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for age in range(4):
        put(graph, "a", age)
        graph.load([{"edge": "Knows", "from": "a", "to": "a"}], mode="overwrite")
        graph.settle()
    real = Objects.delete

    def refuses(self: Objects, names: list[str]) -> None:
        if any(name.startswith("nodes/") for name in names):
            raise StorageError("access denied", kind=ErrorKind.STORAGE_DENIED)
        real(self, names)

    with monkeypatch.context() as patched:
        patched.setattr(Objects, "delete", refuses)
        report = clean(graph, keep=1)
    assert [(e.type_key, e.error) for e in report.errors] == [("node:Person", "access denied")]
    assert any(p.type_key == "edge:Knows" and p.files_removed for p in report.places)
    assert clean(graph, keep=1).errors == ()
    assert finds_nothing(graph, keep=1)


def schemas(graph: omnigraph.Graph) -> set[str]:
    return {p.name for p in (Path(graph.uri) / "_schema").glob("*.*")}


def test_schemas_that_no_state_names_are_taken(graph: omnigraph.Graph) -> None:
    put(graph, "a", 1)
    graph.tags.create("t")
    tagged = graph.snapshot().schema_hash
    hashes = []
    for age, name in enumerate(("x", "y", "z"), start=2):
        graph.schema_apply(SCHEMA.replace("age: I64?", f"age: I64?  {name}: I64?"), confirm=True)
        hashes.append(graph.snapshot().schema_hash)
        put(graph, "a", age)
    with (
        armed(FailPoint.SCHEMA_AFTER_OBJECTS, _die),
        omnigraph.open(graph.uri) as other,
        pytest.raises(SystemExit),
    ):
        other.schema_apply(SCHEMA.replace("age: I64?", "never: I64?"), confirm=True)
    assert len(schemas(graph)) == 10
    clean(graph, keep=1)
    kept = {f"{h}.{suffix}" for h in (tagged, hashes[-1]) for suffix in ("json", "pg")}
    assert schemas(graph) == kept
    assert (Path(graph.uri) / "_schema" / "numbers").is_dir()
    with omnigraph.open(graph.uri) as fresh:
        assert "x" not in fresh.at("t").catalog.nodes["Person"].by_name
        # One that comes back is written again.
        fresh.schema_apply(SCHEMA.replace("age: I64?", "age: I64?  x: I64?"), confirm=True)
        assert fresh.upkeep.check(full=True, history=True).ok
    clean(graph, keep=9)
    assert finds_nothing(graph, keep=9)


def test_a_schema_that_is_being_applied_is_written_again(graph: omnigraph.Graph) -> None:
    for age in range(4):
        put(graph, "a", age)

    def meanwhile() -> None:
        assert clean(graph, keep=1).files_removed

    with (
        omnigraph.open(graph.uri) as other,
        armed(FailPoint.PUBLISH_BEFORE_COMMIT, meanwhile),
    ):
        assert other.schema_apply(SCHEMA.replace("age: I64?", "age: I64?  x: I64?")).applied
    with omnigraph.open(graph.uri) as fresh:
        assert "x" in fresh.catalog.nodes["Person"].by_name
        assert ages(fresh) == {"a": 3}


def test_a_cleanup_takes_over_what_one_that_died_gave_up(graph: omnigraph.Graph) -> None:
    for age in range(5):
        put(graph, "a", age)
    with (
        armed(FailPoint.CLEANUP_AFTER_ANNOUNCEMENT, ArmedAction.RAISE),
        pytest.raises(FailPointError),
    ):
        clean(graph, keep=1)
    assert clean(graph, keep=3).files_removed
    assert finds_nothing(graph, keep=3)


def test_history_stays_walkable_far_back(graph: omnigraph.Graph) -> None:
    first = put(graph, "a", 0)
    graph.branches.create("old")
    put(graph, "o", 1, "old")
    for age in range(1, 120):
        put(graph, "a", age)
    clean(graph, keep=1)
    with omnigraph.open(graph.uri) as fresh:
        assert cleanup(fresh._repository, Policy(keep=1)).places == ()
        assert len(fresh.commits()) == 121
        assert len(fresh.commits(first_parent=True)) == 121
        assert fresh.commit(first).id == first
        assert fresh.merge("old").outcome == "merged"
        assert ages(fresh) == {"a": 119, "o": 1}


def test_old_records_are_forgotten(graph: omnigraph.Graph) -> None:
    for age in range(1, 20):
        put(graph, "a", age)
        put(graph, "a", -age)
        clean(graph, keep=1)
    assert len(numbers(graph._repository.objects)) <= 17


def test_the_feed_tells_a_gap(graph: omnigraph.Graph) -> None:
    put(graph, "a", 0)
    commits = [put(graph, "a", age) for age in range(1, 6)]
    clean(graph, keep=1)
    with omnigraph.open(graph.uri) as fresh, pytest.raises(omnigraph.NotFoundError) as gap:
        list(fresh.changes.commit(commits[1]))
    assert gap.value.kind is ErrorKind.FEED_GAP


def test_a_lease_has_no_thread_before_it_is_held(graph: omnigraph.Graph) -> None:
    Lease(graph._repository.objects, "01X").end()


def test_cleanup_on_every_kind_of_store(store_root: str) -> None:
    with omnigraph.init(store_root, SCHEMA) as graph:
        commits = [put(graph, "a", age) for age in range(6)]
        graph.tags.create("t", commits[1])
        graph.branches.create("work", commits[2])
        put(graph, "w", 1, "work")
        report = clean(graph, keep=1)
        assert report.errors == ()
        with omnigraph.open(store_root) as fresh:
            assert ages(fresh) == {"a": 5}
            assert ages(fresh, "t") == {"a": 1}
            assert ages(fresh, "work") == {"a": 2, "w": 1}
            # A store that counts seconds leaves what is as young as the cleanup itself.
            assert reclaimed(lambda: ages(fresh, commits[3]))
            assert fresh.merge("work").outcome == "merged"
            assert fresh.upkeep.check(full=True).ok


def test_a_long_write_begins_after_the_cleanups_that_were(graph: omnigraph.Graph) -> None:
    """It is not told at its end that one ran before it: its handle may have slept."""
    put(graph, "a", 0)
    with omnigraph.open(graph.uri) as other:
        for age in range(1, 4):
            put(other, "a", age)
        assert clean(other, keep=1).files_removed
        kind = other.catalog.nodes["Person"]

        def prepare(txn: WriteTxn) -> BulkChange:
            assert txn.snapshot.swept == 1
            rows = pa.Table.from_pylist(
                [{"id": "bulk", "name": "bulk", "age": 1}], table_schema(kind)
            )
            base = txn.table("node:Person")
            files = graph._repository.tables.write_files(kind.table_path, rows, base)
            put(other, "b", 1)
            assert len(clean(other, keep=1).spared) == 1
            work = BulkWork(
                type=kind,
                actions=(Does.APPEND,),
                change=TableChange(inserted=1),
                staged=Append(files=files),
            )
            txn.consulted.clear()
            return made.setdefault("it", BulkChange(tables={"node:Person": work}))

        made: dict[str, BulkChange] = {}
        request = WriteRequest(
            kind="load",
            branch=MAIN,
            prepare=lambda txn: made.get("it") or prepare(txn),
            requires=Requires.LEASE,
        )
        assert publish(graph._repository, request).commit is not None
    with omnigraph.open(graph.uri) as fresh:
        assert ages(fresh) == {"a": 3, "b": 1, "bulk": 1}


def test_any_two_of_many_branches_can_be_merged_after_a_cleanup(graph: omnigraph.Graph) -> None:
    """Too many pairs to look at one by one; ancestors that main has no part in."""
    put(graph, "a", 0)
    graph.branches.create("stem")
    twigs = [f"t{number}" for number in range(17)]
    for number, name in enumerate(twigs, start=1):
        put(graph, "stem", number, "stem")
        graph.branches.create(name, "stem")
        put(graph, name, number, name)
        put(graph, "a", number)
    clean(graph, keep=1)
    with omnigraph.open(graph.uri) as fresh:
        assert cleanup(fresh._repository, Policy(keep=1)).places == ()
        for name, into in (("t0", "t9"), ("t9", "t16"), ("t3", "main"), ("t16", "t4")):
            assert fresh.merge(name, into=into).outcome == "merged"
        expected = {"a": 0, "stem": 17} | {n: int(n[1:]) + 1 for n in ("t0", "t4", "t9", "t16")}
        assert ages(fresh, "t4") == expected
        assert fresh.upkeep.check(full=True).ok


def test_ancestors_of_ancestors_stay(graph: omnigraph.Graph) -> None:
    """Lines that were merged into each other have several, which a merge makes one."""
    names = ("left", "right")
    put(graph, "a", 0)
    for name in names:
        graph.branches.create(name)
        put(graph, name, 0, name)
    for step in range(1, 4):
        for name in names:
            put(graph, name, step, name)
            put(graph, "a", step * 10 + names.index(name), name)
        for name in names:
            graph.branches.create(f"{name}{step}", name)
        graph.merge("right1" if step == 1 else f"right{step}", into="left", prefer="theirs")
        graph.merge(f"left{step}", into="right", prefer="ours")
        for name in names:
            graph.branches.delete(f"{name}{step}")
    for name in names:
        put(graph, f"own {name}", 1, name)
    before = ages(graph, "left") | ages(graph, "right")
    bases = graph.merge("right", into="left", dry_run=True).base_commits
    assert len(bases) == 2
    clean(graph, keep=1)
    with omnigraph.open(graph.uri) as fresh:
        for base in bases:
            ages(fresh, base)
        assert fresh.merge("right", into="left").outcome == "merged"
        assert ages(fresh, "left") == before


def test_a_tag_can_be_merged_after_a_cleanup(graph: omnigraph.Graph) -> None:
    put(graph, "a", 0)
    graph.branches.create("gone")
    put(graph, "g", 1, "gone")
    graph.tags.create("kept", "gone")
    put(graph, "g", 2, "gone")
    graph.branches.delete("gone")
    for age in range(1, 5):
        put(graph, "a", age)
    clean(graph, keep=1)
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.merge("kept").outcome == "merged"
        assert ages(fresh) == {"a": 4, "g": 1}
