"""Every kind of write dies at every point: the old or the new state, and nobody has to repair anything.

Groups 1 and 2 of docs/dev/recovery-scenarios.md. Each case: the write dies, the same handle writes on
at once, another handle sees the same, recovery clears up once, and a check finds nothing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from scenario_support import (
    ACTOR,
    KINDS,
    Picture,
    copy_of,
    crash,
    intents,
    later,
    picture,
    recovered,
    template,
)

import omnigraph
from omnigraph.failpoints import ArmedAction, FailPoint, FailPointError, armed
from omnigraph.housekeeping.audit import RecoveryKind
from omnigraph.upkeep.recovery import RECOVERY_ACTOR
from support.copies import upload

STAGING = (
    (FailPoint.STAGE_AFTER_COMMIT, 0),
    (FailPoint.STAGE_AFTER_PIN, 0),
    (FailPoint.STAGE_AFTER_COMMIT, 1),
    (FailPoint.STAGE_AFTER_PIN, 1),
)
"""With one table, and with two of several: the others are not there yet."""
BEFORE = (
    (FailPoint.WRITE_INTENT_WRITTEN, 0),
    (FailPoint.WRITE_ALL_STAGED, 0),
    (FailPoint.PUBLISH_BEFORE_COMMIT, 0),
)
NEXT = [{"type": "City", "data": {"name": "next"}}]
AFTER = (
    (FailPoint.PUBLISH_AFTER_COMMIT, 0),
    (FailPoint.SETTLE_BEFORE_HINT, 0),
    (FailPoint.SETTLE_BEFORE_INTENT_DROP, 0),
)


ON_A_BRANCH = (
    (FailPoint.STAGE_AFTER_PIN, 1),
    (FailPoint.WRITE_ALL_STAGED, 0),
    (FailPoint.PUBLISH_AFTER_COMMIT, 0),
    (FailPoint.SETTLE_BEFORE_INTENT_DROP, 0),
)
"""The path is the same there: one point of each kind is enough."""


def cases() -> list[tuple[str, str, FailPoint, int]]:
    found: list[tuple[str, str, FailPoint, int]] = []
    for name, kind in KINDS.items():
        points = [*BEFORE, *AFTER]
        points += [(point, skip) for point, skip in STAGING if skip < kind.tables]
        points += [(FailPoint.STAGE_AFTER_FILES, 0)] if kind.writes_files else []
        points += [(FailPoint.SCHEMA_AFTER_OBJECTS, 0)] if name == "schema apply" else []
        found += [(name, "main", *at) for at in points]
        found += [(name, "work", *at) for at in points if at in ON_A_BRANCH]
    return found


@cache
def after(folder: Path, kind: str, branch: str) -> Picture:
    """What the write makes if nothing is in its way."""
    place = folder / f"{kind} {branch}"
    with omnigraph.open(copy_of(folder, place)) as graph:
        KINDS[kind].run(graph, branch)
        return picture(graph, branch)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scenarios")


def lost(point: FailPoint) -> bool:
    """Whether a write that dies there was not published."""
    return (point, 0) not in AFTER


def next_write(graph: omnigraph.Graph, branch: str) -> None:
    """Somebody writes, at once; what it says fits both schemas."""
    assert graph.load(NEXT, mode="merge", branch=branch).commit is not None


def without_next(shown: Picture) -> Picture:
    cities = [row for row in shown.rows["City"] if "'next'" not in row]
    assert len(cities) == len(shown.rows["City"]) - 1
    return replace(shown, rows=shown.rows | {"City": cities})


@pytest.mark.parametrize(("kind", "branch", "point", "skip"), cases())
def test_a_write_that_dies_has_happened_or_not(
    tmp_path: Path, folder: Path, kind: str, branch: str, point: FailPoint, skip: int
) -> None:
    uri = copy_of(folder, tmp_path / "g")
    dies_and_is_recovered(uri, after(folder, kind, branch), kind, point, skip, branch)


@pytest.mark.parametrize("point", [FailPoint.WRITE_ALL_STAGED, FailPoint.PUBLISH_AFTER_COMMIT])
@pytest.mark.parametrize("kind", KINDS)
def test_a_write_that_dies_on_s3_has_happened_or_not(
    s3_root: str, folder: Path, kind: str, point: FailPoint
) -> None:
    upload(template(folder), s3_root)
    dies_and_is_recovered(s3_root, after(folder, kind, "work"), kind, point, 0, "work")


def dies_and_is_recovered(
    uri: str, expected: Picture, kind: str, point: FailPoint, skip: int, branch: str
) -> None:
    other = "main" if branch == "work" else "work"
    with omnigraph.open(uri) as graph:
        before, elsewhere = picture(graph, branch), picture(graph, other)
        commits = graph.commits(branch=branch, first_parent=True)
        crash(graph, lambda: KINDS[kind].run(graph, branch), point, skip)
        assert picture(graph, branch) == (before if lost(point) else expected)
        left = intents(graph)
        assert len(left) == (0 if point is FailPoint.SCHEMA_AFTER_OBJECTS else 1)

        # The same handle goes on, and so does the same write.
        next_write(graph, branch)
        assert without_next(picture(graph, branch)) == (before if lost(point) else expected)
        if lost(point):
            KINDS[kind].run(graph, branch)
            shown = picture(graph, branch)
            assert (shown if kind == "reset" else without_next(shown)) == expected
        made = graph.commits(branch=branch, first_parent=True)
        assert made[0].id == graph.snapshot(branch).commit.id
        if kind != "reset":
            assert [c.actor for c in made[: len(made) - len(commits)]] == (
                [ACTOR, None] if lost(point) else [None, ACTOR]
            )
        final = picture(graph, branch)
        assert intents(graph) == left
    with omnigraph.open(uri) as graph:
        assert (picture(graph, branch), picture(graph, other)) == (final, elsewhere)
    check_recovery(uri, branch, kind, rolled_back=lost(point), left=len(left))
    with omnigraph.open(uri) as graph:
        assert (picture(graph, branch), picture(graph, other)) == (final, elsewhere)


def check_recovery(uri: str, branch: str, kind: str, *, rolled_back: bool, left: int) -> None:
    """Recovery leaves one row of what it did, nothing is pending then, and the graph is whole."""
    report = recovered(uri)
    assert report.failed == ()
    with later(uri) as graph:
        audit = graph.upkeep.recovery.audit()
        assert audit == report.recovered
        wanted = RecoveryKind.ROLLED_BACK if rolled_back else RecoveryKind.ROLLED_FORWARD
        assert [(r.recovery_kind, r.recovery_for_actor, r.branch) for r in audit] == [
            (wanted, ACTOR, branch)
        ] * left
        given_up = graph.commits(branch=branch, actor=RECOVERY_ACTOR)
        assert [c.id for c in given_up] == [r.graph_commit_id for r in audit if rolled_back]
        assert graph.upkeep.recovery.list() == ()
        assert recovered(uri).recovered == ()
        assert graph.upkeep.recovery.audit() == audit
        assert graph.upkeep.check().ok


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("point", [point for point, _ in (*STAGING[:2], *BEFORE)])
def test_a_write_that_fails_tidies_up(
    tmp_path: Path, folder: Path, kind: str, point: FailPoint
) -> None:
    """An exception, not a crash: the caller is told, and nothing is pending afterwards."""
    if (point, 0) in STAGING and not KINDS[kind].tables:
        return
    with omnigraph.open(copy_of(folder, tmp_path / "g")) as graph:
        before = picture(graph)
        with armed(point, ArmedAction.RAISE), pytest.raises(FailPointError):
            KINDS[kind].run(graph, "main")
        assert picture(graph) == before
        assert intents(graph) == []
        KINDS[kind].run(graph, "main")
        assert picture(graph) == after(folder, kind, "main")
        assert graph.upkeep.recovery.audit() == ()
        assert graph.upkeep.check().ok
