"""Branches, tags, graphs and readers when answers get lost or somebody else does the same.

Groups 5 and 7 to 10 of docs/dev/recovery-scenarios.md; what other modules prove is named there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from scenario_support import (
    GROWN,
    KINDS,
    SCHEMA,
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
from omnigraph.testing.http1 import Fault
from omnigraph.testing.proxy import CountingProxy

STEPS = (
    FailPoint.SCHEMA_AFTER_OBJECTS,
    FailPoint.STAGE_AFTER_COMMIT,
    FailPoint.STAGE_AFTER_PIN,
    FailPoint.WRITE_ALL_STAGED,
    FailPoint.PUBLISH_BEFORE_COMMIT,
    FailPoint.PUBLISH_AFTER_COMMIT,
)
LOST = (Fault.DROP_BEFORE, Fault.DROP_AFTER)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("life")


@pytest.fixture
def graph(tmp_path: Path, folder: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.open(copy_of(folder, tmp_path / "g")) as opened:
        yield opened


@pytest.fixture
def far(folder: Path, copied_to_s3: Callable[[Path], str]) -> Iterator[omnigraph.Graph]:
    """A graph on S3, behind the proxy."""
    with omnigraph.open(copied_to_s3(template(folder))) as opened:
        yield opened


def names(graph: omnigraph.Graph, at: str = "main") -> set[str]:
    return {row["name"] for row in graph.at(at).rows("Person")}


def everything(graph: omnigraph.Graph) -> dict[str, bytes]:
    root = Path(graph.uri)
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def refused(call: Callable[[], object], kind: ErrorKind) -> None:
    with pytest.raises(omnigraph.OmnigraphError) as caught:
        call()
    assert caught.value.kind is kind


# -- group 5: many at once -------------------------------------------------------------------------


def test_of_many_loads_with_one_same_id_one_wins_and_the_others_leave_nothing(
    graph: omnigraph.Graph,
) -> None:
    """Each with a row of its own: a loser's row does not come alone."""
    handles = [omnigraph.open(graph.uri) for _ in range(6)]

    def load(number: int) -> bool:
        rows = [person("same", number), person(f"own{number}"), city(f"own{number}")]
        try:
            handles[number].load(rows)
        except omnigraph.ConstraintError:
            return False
        return True

    with ThreadPoolExecutor(len(handles)) as pool:
        won = [number for number, done in enumerate(pool.map(load, range(6))) if done]
    for handle in handles:
        handle.close()
    with omnigraph.open(graph.uri) as fresh:
        rows = {row["name"]: row["age"] for row in fresh.snapshot().rows("Person")}
        cities = {row["name"] for row in fresh.snapshot().rows("City")}
        assert won == [rows["same"]]
        own = {name for name in rows if name.startswith("own")}
        assert own == {f"own{rows['same']}"}
        assert own == {name for name in cities if name.startswith("own")}
        assert intents(fresh) == []
        assert fresh.upkeep.check().ok


# -- group 7: the life of branches -----------------------------------------------------------------


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("path", ["_branches/", "_refs/branches"])
def test_a_branch_is_made_once_although_an_answer_gets_lost(
    far: omnigraph.Graph, s3_proxy: CountingProxy, path: str, fault: Fault
) -> None:
    rule = s3_proxy.fail(fault, operation="PUT", path=path)
    made = far.branches.create("x", description="what for")
    assert rule.fired == 1
    s3_proxy.reset()
    with omnigraph.open(far.uri) as other:
        assert other.branches.show("x").incarnation == made.incarnation
        other.load([person("on x")], branch="x")
    assert "on x" in names(far, "x")
    refused(lambda: far.branches.create("x"), ErrorKind.BRANCH_EXISTS)


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("path", ["/_versions/", ".dead"])
def test_a_branch_ends_although_an_answer_gets_lost(
    far: omnigraph.Graph, s3_proxy: CountingProxy, path: str, fault: Fault
) -> None:
    rule = s3_proxy.fail(fault, operation="PUT", path=path)
    far.branches.delete("work")
    assert rule.fired == 1
    s3_proxy.reset()
    for graph in (far, omnigraph.open(far.uri)):
        assert graph.branches.list() == ["main", "side"]
        refused(lambda graph=graph: graph.snapshot("work"), ErrorKind.BRANCH_NOT_FOUND)
    far.branches.create("work")
    far.load([person("again")], branch="work")
    assert "again" in names(far, "work")


@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("path", ["_refs/branches", "/_versions/", ".dead"])
def test_a_branch_is_renamed_although_an_answer_gets_lost(
    far: omnigraph.Graph, s3_proxy: CountingProxy, path: str, fault: Fault
) -> None:
    rule = s3_proxy.fail(fault, operation="PUT", path=path)
    far.branches.rename("work", "done")
    assert rule.fired == 1
    s3_proxy.reset()
    with omnigraph.open(far.uri) as other:
        assert other.branches.list() == ["main", "done", "side"]
        other.load([person("on it")], branch="done")
        other.branches.create("work")
        assert "on it" not in names(other, "work")
    assert "on it" in names(far, "done")


@pytest.mark.parametrize("fault", LOST)
def test_a_tag_is_made_once_although_an_answer_gets_lost(
    far: omnigraph.Graph, s3_proxy: CountingProxy, fault: Fault
) -> None:
    rule = s3_proxy.fail(fault, operation="PUT", path="_refs/tags")
    made = far.tags.create("v1")
    assert rule.fired == 1
    s3_proxy.reset()
    with omnigraph.open(far.uri) as other:
        assert other.tags.show("v1") == made
        refused(lambda: other.tags.create("v1"), ErrorKind.TAG_EXISTS)
        s3_proxy.fail(fault, operation="DELETE", path="_refs/tags")
        s3_proxy.fail(fault, operation="POST")
        other.tags.delete("v1")
        s3_proxy.reset()
        other.tags.create("v1", "side")
    assert far.tags.show("v1").commit_id == far.snapshot("side").commit.id


def test_a_branch_whose_end_was_not_told_is_cleaned_up_and_made_anew(
    graph: omnigraph.Graph,
) -> None:
    graph.load([person("old")], branch="work")
    with armed(FailPoint.BRANCH_BEFORE_DEATH, ArmedAction.RAISE), pytest.raises(FailPointError):
        graph.branches.delete("work")
    with omnigraph.open(graph.uri) as other:
        assert other.upkeep.cleanup(keep=1, grace=0, confirm=True).errors == ()
        refused(lambda: other.snapshot("work"), ErrorKind.BRANCH_NOT_FOUND)
        other.branches.create("work")
        assert "old" not in names(other, "work")
        other.load([person("new")], branch="work")
        assert "new" in names(other, "work")
        assert other.upkeep.check().ok
    refused(lambda: graph.branches.create("work"), ErrorKind.BRANCH_EXISTS)
    assert "new" in names(graph, "work")


def test_a_branch_that_was_never_finished_is_cleaned_up(graph: omnigraph.Graph) -> None:
    with armed(FailPoint.BRANCH_BEFORE_REF, ArmedAction.RAISE), pytest.raises(FailPointError):
        graph.branches.create("x")
    graph.settle()
    known = {graph._repository.head(name).snapshot.path for name in ("work", "side")}
    (left,) = {f"_branches/{f.name}" for f in (Path(graph.uri) / "_branches").iterdir()} - known
    for file in (Path(graph.uri) / left).rglob("*"):  # The clock of the store decides.
        at_s = file.stat().st_mtime - 86_400
        os.utime(file, (at_s, at_s))
    with omnigraph.open(graph.uri) as other:
        (place,) = [
            p
            for p in other.upkeep.cleanup(keep=99, confirm=True).places
            if p.path.startswith("_branches/")
        ]
        assert (place.path, place.error) == (left, None)
        assert not list(other._repository.objects.names(left))
        other.branches.create("x")
        assert names(other, "x") == names(other)
        assert other.upkeep.check().ok


def anew(graph: omnigraph.Graph, branch: str) -> Callable[[], None]:
    """Somebody else ends a branch and makes another one of its name."""

    def act() -> None:
        with omnigraph.open(graph.uri) as other:
            other.branches.delete(branch)
            other.branches.create(branch)
            other.load([person("another life")], branch=branch)

    return act


def test_a_view_reads_on_in_the_life_that_it_was_taken_of(tmp_path: Path) -> None:
    schema = "node Person { name: String @key  age: I64?  photo: Blob? }"
    with omnigraph.init(tmp_path / "g", schema) as graph:
        graph.branches.create("work")
        photo = {"name": "ann", "photo": "base64:AAEC"}
        graph.load([{"type": "Person", "data": photo}], branch="work")
        view, page = graph.snapshot("work"), graph.changes.poll(branch="work", start="beginning")
        anew(graph, "work")()
        assert [row["photo"] for row in view.rows("Person")] == [b"\x00\x01\x02"]
        assert names(graph, "work") == {"another life"}
        # Nobody goes on in one life with a cursor of another.
        with pytest.raises(omnigraph.UsageError, match="earlier life"):
            graph.changes.poll(branch="work", cursor=page.cursor)


def test_a_write_does_not_land_in_another_life_of_its_branch(graph: omnigraph.Graph) -> None:
    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, anew(graph, "work")):
        refused(lambda: graph.load([person("late")], branch="work"), ErrorKind.BRANCH_NOT_FOUND)
    assert "late" not in names(graph, "work")
    assert "another life" in names(graph, "work")
    graph.load([person("next")], branch="work")
    assert recovered(graph.uri).failed == ()


def test_a_merge_takes_the_life_of_its_source_that_it_began_with(graph: omnigraph.Graph) -> None:
    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, anew(graph, "side")):
        graph.merge("side")
    assert "cem" in names(graph)
    assert "another life" not in names(graph)
    assert graph.upkeep.check().ok


def test_a_merge_does_not_land_in_another_life_of_its_target(graph: omnigraph.Graph) -> None:
    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, anew(graph, "work")):
        refused(lambda: graph.merge("side", into="work"), ErrorKind.BRANCH_NOT_FOUND)
    assert "cem" not in names(graph, "work")
    graph.merge("side", into="work")
    assert {"cem", "another life"} <= names(graph, "work")


# -- group 8: upkeep -------------------------------------------------------------------------------


@pytest.mark.parametrize("branch", ["main", "work"])
@pytest.mark.parametrize("kind", ["optimize", "index build"])
def test_upkeep_goes_on_beside_a_write_that_died(
    graph: omnigraph.Graph, kind: str, branch: str
) -> None:
    crash(
        graph,
        lambda: graph.load([person("lost")], branch=branch, actor="alice"),
        FailPoint.PUBLISH_BEFORE_COMMIT,
    )
    before = picture(graph, branch)
    KINDS[kind].run(graph, branch)
    assert picture(graph, branch) == before
    (row,) = recovered(graph.uri).recovered
    assert row.recovery_kind is RecoveryKind.ROLLED_BACK
    assert picture(graph, branch) == before


@pytest.mark.parametrize("branch", ["main", "work"])
def test_optimize_does_not_bring_back_what_somebody_deletes_meanwhile(
    graph: omnigraph.Graph, branch: str
) -> None:
    with omnigraph.open(graph.uri) as other:

        def delete() -> None:
            other.mutate('delete Person where name = "ann"', branch=branch)

        with armed(FailPoint.PUBLISH_BEFORE_COMMIT, delete):
            graph.optimize(branch=branch)
    assert "ann" not in names(graph, branch)
    assert list(graph.snapshot(branch).rows("Knows")) == []
    assert graph.upkeep.check().ok


@pytest.mark.parametrize("point", [FailPoint.PUBLISH_BEFORE_COMMIT, FailPoint.PUBLISH_AFTER_COMMIT])
def test_cleanup_is_not_stopped_by_a_pending_intent(
    graph: omnigraph.Graph, point: FailPoint
) -> None:
    crash(graph, lambda: graph.load([person("x")], actor="alice"), point)
    shown = picture(graph)
    with later(graph.uri) as other:
        assert other.upkeep.cleanup(keep=1, grace=0, confirm=True).errors == ()
        assert other.upkeep.recovery.list() == ()
        assert len(other.upkeep.recovery.audit()) == 1
        assert other.upkeep.cleanup(keep=1, grace=0).places == ()
    graph.load([person("next")])
    graph.mutate('delete Person where name = "next"')
    assert picture(graph) == shown
    assert graph.upkeep.check(full=True).ok


# -- group 9: init ---------------------------------------------------------------------------------

OBJECTS = ["_schema/", ".pg", "__manifest/data", "__manifest/_versions"]


@pytest.mark.parametrize("path", OBJECTS)
def test_an_init_that_fails_tells_why_and_can_be_repeated(
    s3_proxied_root: str, s3_proxy: CountingProxy, path: str
) -> None:
    s3_proxy.fail(Fault.STATUS, operation="PUT", path=path, status=403, times=None)
    refused(lambda: omnigraph.init(s3_proxied_root, SCHEMA), ErrorKind.STORAGE_DENIED)
    refused(lambda: omnigraph.open(s3_proxied_root), ErrorKind.NOT_A_GRAPH)
    s3_proxy.reset()
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        graph.load([person("first")])
        assert names(graph) == {"first"}


@pytest.mark.parametrize("path", [*OBJECTS, "_head.json"])
@pytest.mark.parametrize("fault", LOST)
def test_a_graph_is_made_although_an_answer_gets_lost(
    s3_proxied_root: str, s3_proxy: CountingProxy, path: str, fault: Fault
) -> None:
    rule = s3_proxy.fail(fault, operation="PUT", path=path)
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        assert rule.fired == 1
        graph.load([person("first")])
    with omnigraph.open(s3_proxied_root) as graph:
        assert names(graph) == {"first"}
        assert [c.kind for c in graph.commits()] == ["load", "init"]


@pytest.mark.parametrize("operation", ["HEAD", "GET", "LIST"])
def test_an_init_that_cannot_look_first_makes_nothing(
    s3_proxied_root: str, s3_proxy: CountingProxy, operation: str
) -> None:
    rule = s3_proxy.fail(Fault.STATUS, operation=operation, status=403, times=None)
    try:
        omnigraph.init(s3_proxied_root, SCHEMA).close()
    except omnigraph.StorageError as e:
        assert e.kind is ErrorKind.STORAGE_DENIED
        s3_proxy.reset()
        refused(lambda: omnigraph.open(s3_proxied_root), ErrorKind.NOT_A_GRAPH)
        omnigraph.init(s3_proxied_root, SCHEMA).close()
    else:
        assert not rule.fired
        s3_proxy.reset()
    with omnigraph.open(s3_proxied_root) as graph:
        graph.load([person("first")])
        assert names(graph) == {"first"}


@pytest.mark.parametrize("point", [FailPoint.INIT_BEFORE_MANIFEST, FailPoint.INIT_AFTER_MANIFEST])
def test_an_init_that_dies_is_repeated_or_has_happened(tmp_path: Path, point: FailPoint) -> None:
    root = tmp_path / "g"
    with armed(point, die), pytest.raises(SystemExit):
        omnigraph.init(root, SCHEMA)
    if point is FailPoint.INIT_BEFORE_MANIFEST:
        omnigraph.init(root, SCHEMA).close()
    else:
        refused(lambda: omnigraph.init(root, SCHEMA), ErrorKind.ALREADY_INITIALIZED)
    with omnigraph.open(root) as graph:
        graph.load([person("first")])
        assert names(graph) == {"first"}
        assert graph.upkeep.check().ok


# -- group 10: readers -----------------------------------------------------------------------------


@pytest.mark.parametrize("point", [FailPoint.WRITE_ALL_STAGED, FailPoint.PUBLISH_AFTER_COMMIT])
def test_a_reader_recovers_nothing_and_writes_nothing(
    graph: omnigraph.Graph, point: FailPoint
) -> None:
    for branch in ("main", "work"):
        crash(graph, lambda b=branch: graph.load([person("x")], branch=b), point)
    before = everything(graph)
    with later(graph.uri) as reader:
        for branch in ("main", "work", "side"):
            picture(reader, branch)
            reader.query("match { $p: Person } return { $p.name }", branch=branch)
            reader.changes.poll(branch=branch, start="beginning")
        reader.commits()
        reader.diff("start")
        reader.upkeep.recovery.list()
        reader.upkeep.check()
        reader.upkeep.status()
    assert everything(graph) == before


def test_a_look_that_fails_leaves_a_reader_with_what_it_had(
    far: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    view, before = far.snapshot(), picture(far)
    with omnigraph.open(far.uri) as other:
        other.schema_apply(GROWN)
    for operation, path in (("HEAD", "__manifest"), ("GET", "__manifest"), ("GET", "_schema/")):
        s3_proxy.fail(Fault.STATUS, operation=operation, path=path, status=403, times=None)
        refused(lambda: far.snapshot().schema, ErrorKind.STORAGE_DENIED)
        s3_proxy.reset()
        assert (view.schema, sorted(r["name"] for r in view.rows("Person"))) == (
            before.schema,
            ["ann", "bob", "dora", "eve"],
        )
    assert picture(far).schema == GROWN
    assert {r["born"] for r in far.snapshot().rows("Human")} == {0}


@pytest.mark.parametrize("point", STEPS)
@pytest.mark.parametrize("branch", ["main", "work"])
def test_nobody_sees_a_new_schema_with_old_tables(
    graph: omnigraph.Graph, branch: str, point: FailPoint
) -> None:
    """At every step of a schema change, warm and cold readers see one whole state."""
    seen: list[Any] = []
    with omnigraph.open(graph.uri) as warm:
        before = picture(warm, branch)

        def look() -> None:
            with omnigraph.open(graph.uri) as cold:
                seen.extend([picture(warm, branch), picture(cold, branch)])

        with armed(point, look) as arm:
            graph.schema_apply(GROWN, branch=branch)
        assert arm.fired == 1
        published = point is FailPoint.PUBLISH_AFTER_COMMIT
        assert seen == [picture(graph, branch) if published else before] * 2
        assert picture(warm, branch) == picture(graph, branch) != before
