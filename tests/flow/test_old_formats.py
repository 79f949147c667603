"""A graph of format 1 under this release: it reads as it was written, reading writes nothing, the
first write brings its branch up to date, and whatever the older release does meanwhile is safe."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from old_graph_support import FACTS, NEW, PAST, STATES, expected, imos, listing, shown, stamp

import omnigraph
from omnigraph.errors import ErrorKind, InternalError
from omnigraph.failpoints import FailPoint, armed
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects
from omnigraph.storage.strict import LostRaceError
from omnigraph.write import migration as dispatcher
from omnigraph.write.migration import MIGRATIONS, Migration
from support.releases import release_of_format

CURRENT = graph_format.FORMAT
ON_MAIN = {1, 2, 3, 4, 5, 7}
"""The vessels of the fixture."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The steps from format 1 that were taken: the branch and the version of its manifest that each
    one saw."""
    taken: list[tuple[str, int]] = []

    def counted(migration: Migration) -> Migration:
        def run(repository: Repository, branch: Branch) -> None:
            if migration.from_format == 1:
                taken.append((branch.name, branch.head.snapshot.version))
            migration.run(repository, branch)

        return Migration(
            from_format=migration.from_format,
            to_format=migration.to_format,
            name=migration.name,
            run=run,
        )

    monkeypatch.setattr(dispatcher, "MIGRATIONS", tuple(map(counted, MIGRATIONS)))
    return taken


def older_release(root: Path, action: Callable[[omnigraph.Graph], object]) -> None:
    """Let a release of format 1 do something, from opening the graph to closing it."""
    with release_of_format(1), omnigraph.open(root) as graph:
        action(graph)


def this_release(root: Path, action: Callable[[omnigraph.Graph], object]) -> None:
    """The same for this release, also while an older one is at work."""
    with release_of_format(CURRENT), omnigraph.open(root) as graph:
        action(graph)


def load(imo: int, branch: str = "main") -> Callable[[omnigraph.Graph], object]:
    """A write of one vessel."""
    line = {**NEW, "data": {**NEW["data"], "imo": imo}}
    return lambda graph: graph.load([line], branch=branch)


# Reading


def test_every_state_reads_as_it_was_written(graph_v1: Path) -> None:
    with omnigraph.open(graph_v1) as graph:
        assert graph.branches.list() == sorted(FACTS["commits"])
        for state in STATES:
            assert shown(graph, state) == expected(state), state
            assert stamp(graph, state) == 1
        for name, commits in FACTS["commits"].items():
            assert [c.to_dict() for c in graph.commits(branch=name)] == commits
        assert [i.operation_id for i in graph.upkeep.recovery.list()] == FACTS["intents"]
        assert graph.upkeep.check(full=True).ok
        assert graph.upkeep.status().format == 1


def test_whoever_only_reads_writes_nothing(graph_v1: Path) -> None:
    before = listing(graph_v1)
    with omnigraph.open(graph_v1) as graph:
        for state in STATES:
            shown(graph, state)
        rows = graph.query("query q() { match { $v: Vessel } return { $v.imo } }")
        assert len(rows.to_dicts()) == 6
        graph.explain("query q() { match { $v: Vessel } return { $v.imo } }")
        assert graph.diff("v1.0", "main")
        graph.log()
        graph.commits(branch="review")
        graph.branches.details()
        graph.tags.list()
        graph.indexes()
        graph.upkeep.status()
        graph.upkeep.status("review")
        graph.upkeep.check(full=True)
        graph.upkeep.cleanup(keep=1, grace=0)
        graph.upkeep.recovery.list()
        graph.upkeep.recovery.audit()
        graph.schema_plan(graph.schema + "node More { k: String @key }")
        graph.settle()
    assert listing(graph_v1) == before


def test_what_publishes_nothing_writes_nothing(graph_v1: Path) -> None:
    before = listing(graph_v1)
    with omnigraph.open(graph_v1) as graph:
        graph.load([NEW], dry_run=True)
        graph.schema_apply(graph.schema + "node More { k: String @key }", dry_run=True)
        graph.merge("review", dry_run=True, prefer="ours")
        graph.revert(graph.commits()[0].id, dry_run=True)
        assert not graph.schema_apply(graph.schema).applied
        nothing = graph.mutate("query q() { delete Vessel where imo = 4000 }")
        assert nothing.commit is None
        with pytest.raises(omnigraph.ConstraintError):
            graph.load([{"type": "Vessel", "data": {"imo": 1}}])
        with pytest.raises(omnigraph.ConflictError):
            graph.mutate("query q() { delete Vessel where imo = 1 }", if_commit="0" * 26)
        graph.settle()
    assert listing(graph_v1) == before


# The first write


def test_the_first_write_of_a_branch_brings_it_up_to_date(
    graph_v1: Path, steps: list[tuple[str, int]]
) -> None:
    with omnigraph.open(graph_v1) as graph:
        load(50)(graph)
        assert (stamp(graph), stamp(graph, "review")) == (CURRENT, 1)
        assert imos(graph) == {*ON_MAIN, 50}
        assert graph.commits()[0].manifest_version == 9
        load(51)(graph)
    with omnigraph.open(graph_v1) as graph:
        load(52)(graph)
        assert steps == [("main", 8)]
        graph.mutate("query q() { delete Vessel where imo = 8 }", branch="review")
        assert (stamp(graph, "review"), imos(graph, "review")) == (CURRENT, {1, 2, 4})
        assert steps == [("main", 8), ("review", 3)]
        for state in PAST:
            assert shown(graph, state) == expected(state), state
            assert stamp(graph, state) == 1
        assert graph.upkeep.check(full=True).ok


def test_it_is_the_same_on_every_store(store_root: str) -> None:
    source = Path(__file__).parents[1] / "fixtures" / "format-v1" / "graph"
    objects = Objects(locate(store_root), create=True)
    for file in source.rglob("*"):
        if file.is_file():
            objects.put(file.relative_to(source).as_posix(), file.read_bytes())
    with omnigraph.open(store_root) as graph:
        assert {state: shown(graph, state) for state in STATES} == {s: expected(s) for s in STATES}
        load(50)(graph)
        assert (stamp(graph), stamp(graph, "review")) == (CURRENT, 1)
    with omnigraph.open(store_root) as graph:
        assert imos(graph) == {*ON_MAIN, 50}
        assert {state: shown(graph, state) for state in PAST} == {s: expected(s) for s in PAST}


def add_type(graph: omnigraph.Graph) -> object:
    return graph.schema_apply(graph.schema + "node More { k: String @key }")


@pytest.mark.parametrize(
    "write",
    [
        lambda g: g.mutate("query q() { delete Vessel where imo = 1 }"),
        lambda g: g.optimize(),
        add_type,
        lambda g: g.merge("review", prefer="ours"),
        lambda g: g.reset("v1.0"),
        lambda g: g.revert(g.commits()[0].id),
        lambda g: g.upkeep.cleanup(keep=1, grace=0, confirm=True),
    ],
    ids=["mutate", "optimize", "schema", "merge", "reset", "revert", "cleanup"],
)
def test_every_kind_of_write_brings_main_up_to_date(
    graph_v1: Path, write: Callable[[omnigraph.Graph], object], steps: list[tuple[str, int]]
) -> None:
    with omnigraph.open(graph_v1) as graph:
        write(graph)
        assert stamp(graph) == CURRENT
        assert steps[0] == ("main", 8)
        assert graph.upkeep.check(full=True).ok
    with release_of_format(1), pytest.raises(omnigraph.FormatError):
        omnigraph.open(graph_v1)


def test_branches_tags_and_states_of_both_formats_live_side_by_side(graph_v1: Path) -> None:
    older_release(graph_v1, lambda old: (old.branches.create("work"), old.branches.create("late")))
    older_release(graph_v1, load(9, branch="work"))
    with omnigraph.open(graph_v1) as graph:
        # Whatever it shows, a new branch was written by this release.
        graph.branches.create("from-v1", "v1.0")
        assert (stamp(graph, "from-v1"), stamp(graph, "v1.0"), stamp(graph)) == (CURRENT, 1, 1)
        assert shown(graph, "from-v1") == expected("v1.0")
        graph.mutate("query q() { delete Vessel where imo = 4 }", branch="from-v1")
        # From main of format 1 into a branch of the newest, and the other way round.
        load(10, branch="late")(graph)
        assert (stamp(graph), stamp(graph, "work"), stamp(graph, "late")) == (1, 1, CURRENT)
        graph.merge("work", into="late")
        graph.merge("main", into="late")
        assert (imos(graph, "late"), stamp(graph)) == ({*ON_MAIN, 9, 10}, 1)
        graph.tags.create("v1.1", "main")
        graph.merge("late")
        assert (imos(graph), stamp(graph)) == ({*ON_MAIN, 9, 10}, CURRENT)
        graph.merge("work")
        assert (imos(graph), stamp(graph, "work")) == ({*ON_MAIN, 9, 10}, 1)
        graph.tags.create("v2.0", "main")
        assert (stamp(graph, "v1.1"), stamp(graph, "v2.0")) == (1, CURRENT)
        assert shown(graph, "v1.1") == expected("main")
        # Back to a state of format 1, which does not bring its stamp along.
        graph.reset("v1.0")
        assert (shown(graph, "main"), stamp(graph)) == (expected("v1.0"), CURRENT)
        graph.branches.rename("from-v1", "other")
        graph.branches.delete("review")
        for state in [s for s in PAST if not s.startswith("review")]:
            assert shown(graph, state) == expected(state), state
        assert graph.upkeep.check(full=True).ok


def test_a_renamed_branch_of_format_1_is_up_to_date(graph_v1: Path) -> None:
    with omnigraph.open(graph_v1) as graph:
        graph.branches.rename("review", "looked-at")
        assert (stamp(graph), stamp(graph, "looked-at")) == (1, CURRENT)
        assert shown(graph, "looked-at") == expected("review")


def test_what_an_older_release_left_is_recovered(graph_v1: Path) -> None:
    with omnigraph.open(graph_v1) as graph:
        (pending,) = graph.upkeep.recovery.list()
        graph.upkeep.recovery.run(stalled_after=0)
        assert graph.upkeep.recovery.list() == ()
        assert [r.operation_id for r in graph.upkeep.recovery.audit()] == [pending.operation_id]
        assert stamp(graph) == CURRENT
        load(50)(graph)


# Two releases at the same time


def test_an_older_release_refuses_what_was_brought_up_to_date(graph_v1: Path) -> None:
    with release_of_format(1), omnigraph.open(graph_v1) as old:
        load(48)(old)
        this_release(graph_v1, load(50))
        before = listing(graph_v1 / "__manifest" / "_versions")
        with pytest.raises(omnigraph.FormatError) as caught:
            load(49)(old)
        assert caught.value.kind is ErrorKind.FORMAT_NEWER
        assert listing(graph_v1 / "__manifest" / "_versions") == before
        # What it knows it may go on reading, and a branch of its own format is still its own.
        assert old.at("v1.0").count("Vessel") == 4
        old.mutate("query q() { delete Vessel where imo = 8 }", branch="review")
    with release_of_format(1), pytest.raises(omnigraph.FormatError) as caught:
        omnigraph.open(graph_v1)
    assert caught.value.kind is ErrorKind.FORMAT_NEWER
    with omnigraph.open(graph_v1) as graph:
        assert imos(graph) == {*ON_MAIN, 48, 50}
        assert (imos(graph, "review"), stamp(graph, "review")) == ({1, 2, 4}, 1)
        assert graph.upkeep.check(full=True).ok


def test_an_older_release_that_loses_the_race_says_so_and_publishes_nothing(graph_v1: Path) -> None:
    overtaken = armed(
        FailPoint.PUBLISH_BEFORE_COMMIT, lambda: this_release(graph_v1, load(50)), times=1
    )
    with release_of_format(1), omnigraph.open(graph_v1) as old:
        with overtaken, pytest.raises(omnigraph.FormatError) as caught:
            load(49)(old)
        assert caught.value.kind is ErrorKind.FORMAT_NEWER
    with omnigraph.open(graph_v1) as graph:
        assert imos(graph) == {*ON_MAIN, 50}
        assert [i.operation_id for i in graph.upkeep.recovery.list()] == FACTS["intents"]


def test_an_older_release_that_published_before_the_change_is_told_so(graph_v1: Path) -> None:
    def overtaken() -> None:
        this_release(graph_v1, load(50))
        raise LostRaceError  # As a store that was asked twice answers.

    with (
        release_of_format(1),
        omnigraph.open(graph_v1) as old,
        armed(FailPoint.PUBLISH_AFTER_COMMIT, overtaken),
    ):
        load(49)(old)
    with omnigraph.open(graph_v1) as graph:
        assert imos(graph) == {*ON_MAIN, 49, 50}
        assert [stamp(graph, f"main@{n}") for n in (9, 10)] == [1, CURRENT]


def test_a_change_that_an_older_release_overtakes_is_made_again(
    graph_v1: Path, steps: list[tuple[str, int]]
) -> None:
    overtaken = armed(
        FailPoint.PUBLISH_BEFORE_COMMIT, lambda: older_release(graph_v1, load(49)), times=1
    )
    with omnigraph.open(graph_v1) as graph:
        with overtaken:
            load(50)(graph)
        assert steps == [("main", 8), ("main", 9)]
        assert [stamp(graph, f"main@{n}") for n in (8, 9, 10)] == [1, 1, CURRENT]
        assert imos(graph) == {*ON_MAIN, 49, 50}
        assert graph.upkeep.check(full=True).ok


def test_a_handle_that_slept_through_the_change_takes_no_step(
    graph_v1: Path, steps: list[tuple[str, int]]
) -> None:
    with omnigraph.open(graph_v1) as sleeper:
        this_release(graph_v1, load(50))
        load(51)(sleeper)
        assert steps == [("main", 8)]
        assert imos(sleeper) == {*ON_MAIN, 50, 51}


def test_a_step_that_fails_leaves_the_older_format(
    graph_v1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: Repository, __: Branch) -> None:
        raise omnigraph.StorageError("the store is full")

    broken = Migration(from_format=1, to_format=CURRENT, name="fail", run=run)
    with monkeypatch.context() as patch, omnigraph.open(graph_v1) as graph:
        patch.setattr(dispatcher, "MIGRATIONS", (broken,))
        with pytest.raises(omnigraph.StorageError, match="the store is full"):
            load(49)(graph)
        assert (shown(graph, "main"), stamp(graph)) == (expected("main"), 1)
    older_release(graph_v1, load(48))
    this_release(graph_v1, load(50))


# Newer stamps, and the chain


def test_a_newer_stamp_is_refused_on_every_branch(
    graph_v1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    further = Migration(
        from_format=CURRENT, to_format=CURRENT + 1, name="more", run=lambda *_: None
    )
    with monkeypatch.context() as future:
        future.setattr(dispatcher, "MIGRATIONS", (*MIGRATIONS, further))
        with release_of_format(CURRENT + 1), omnigraph.open(graph_v1) as graph:
            graph.mutate("query q() { delete Vessel where imo = 8 }", branch="review")
            assert stamp(graph, "review") == CURRENT + 1
    with omnigraph.open(graph_v1) as graph:
        load(50)(graph)
        for use in (
            lambda: graph.at("review"),
            lambda: graph.merge("review"),
            lambda: graph.mutate("query q() { delete Vessel where imo = 1 }", branch="review"),
            lambda: graph.branches.delete("review"),
            lambda: graph.upkeep.cleanup(keep=1, grace=0, confirm=True),
        ):
            with pytest.raises(omnigraph.FormatError) as caught:
                use()
            assert caught.value.kind is ErrorKind.FORMAT_NEWER
        assert imos(graph) == {*ON_MAIN, 50}


def test_a_hole_in_the_chain_publishes_nothing(graph_v1: Path) -> None:
    before = listing(graph_v1 / "__manifest")
    with (
        release_of_format(CURRENT + 1),
        omnigraph.open(graph_v1) as graph,
        pytest.raises(InternalError, match=f"from format {CURRENT} towards format {CURRENT + 1}"),
    ):
        load(50)(graph)
    assert listing(graph_v1 / "__manifest") == before


def test_an_export_of_an_old_graph_loads_into_a_new_one(graph_v1: Path, tmp_path: Path) -> None:
    with omnigraph.open(graph_v1) as graph:
        content, schema = shown(graph, "main"), graph.schema
    with omnigraph.init(tmp_path / "new", schema) as graph:
        graph.load(io.BytesIO(content))
        assert shown(graph, "main") == content
