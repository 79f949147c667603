"""`kill -9` at every failpoint: afterwards there is the old state or the new state, nothing else,
and the next write succeeds at once, without anybody repairing anything."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import omnigraph
from omnigraph.failpoints import ENV_POINTS, FailPoint
from support.racers import SCHEMA, Racer, run_alone

PEOPLE = [f"p{i}" for i in range(10)]
BEFORE_COMMIT = (
    FailPoint.WRITE_INTENT_WRITTEN,
    FailPoint.STAGE_AFTER_FILES,
    FailPoint.STAGE_AFTER_COMMIT,
    FailPoint.STAGE_AFTER_PIN,
    FailPoint.WRITE_ALL_STAGED,
    FailPoint.PUBLISH_BEFORE_COMMIT,
)
AFTER_COMMIT = (
    FailPoint.PUBLISH_AFTER_COMMIT,
    FailPoint.SETTLE_BEFORE_HINT,
    FailPoint.SETTLE_BEFORE_INTENT_DROP,
    FailPoint.SETTLE_BEFORE_MIRROR,
)
BRANCH = (
    FailPoint.BRANCH_BEFORE_REF,
    FailPoint.BRANCH_BEFORE_RENAME,
    FailPoint.BRANCH_BEFORE_DEATH,
)
"""In ``test_branch_kill.py``."""
APPLY = (FailPoint.SCHEMA_AFTER_OBJECTS,)
"""In ``test_schema_kill.py``."""
MIGRATION = (FailPoint.MIGRATE_BEFORE_STEP, FailPoint.MIGRATE_AFTER_STEP)
"""In ``test_migration_kill.py``."""
INIT = (FailPoint.INIT_BEFORE_MANIFEST, FailPoint.INIT_AFTER_MANIFEST)
NEW_STATE = {
    "append": {*PEOPLE, "w-0"},
    "merge": {*PEOPLE, "w-0"},
    "replace": set(PEOPLE[1:]),
}


UPKEEP = (
    FailPoint.RECOVERY_AFTER_REVOCATION,
    FailPoint.RECOVERY_BEFORE_DROP,
    FailPoint.CLEANUP_AFTER_RECORD,
    FailPoint.CLEANUP_AFTER_ANNOUNCEMENT,
    FailPoint.CLEANUP_BETWEEN_FILES,
)
"""In ``test_recovery_kill.py``."""


def test_every_failpoint_has_a_row_here() -> None:
    named = {*BEFORE_COMMIT, *AFTER_COMMIT, *INIT, *BRANCH, *APPLY, *MIGRATION, *UPKEEP}
    assert named == set(FailPoint)


@pytest.mark.parametrize("point", [*BEFORE_COMMIT, *AFTER_COMMIT], ids=str)
@pytest.mark.parametrize("mode", ["append", "merge", "replace"])
def test_a_killed_load_leaves_the_old_or_the_new_state(
    store_root: str, mode: str, point: FailPoint
) -> None:
    with omnigraph.init(store_root, SCHEMA) as graph:
        graph.load([{"type": "Person", "data": {"name": name}} for name in PEOPLE])
        before = graph.snapshot()

    racer = Racer(kind=mode, uri=store_root, name="w", count=1, type_name="Person")
    child = run_alone(racer, os.environ | {ENV_POINTS: f"{point}=kill"})
    assert child.returncode == -signal.SIGKILL, child

    with omnigraph.open(store_root) as graph:
        names = set(graph.snapshot().rows("Person").to_arrow()["name"].to_pylist())
        if point in BEFORE_COMMIT:
            assert graph.snapshot().commit == before.commit
            assert names == set(PEOPLE)
        else:
            assert graph.snapshot().commit.parent_id == before.commit.id
            assert names == NEW_STATE[mode]
        # The next write: same process, at once, and exactly one commit more.
        receipt = graph.load([{"type": "Person", "data": {"name": "next"}}])
        assert receipt.commit is not None
        assert len(graph.commits()) == (3 if point in BEFORE_COMMIT else 4)
        rows = graph.snapshot().rows("Person").to_arrow()["name"].to_pylist()
        assert sorted(rows) == sorted({*names, "next"})


@pytest.mark.parametrize("point", INIT, ids=str)
def test_a_killed_init_can_be_repeated_or_has_happened(store_root: str, point: FailPoint) -> None:
    script = "import sys, omnigraph; omnigraph.init(*sys.argv[1:])"
    child = subprocess.run(
        [sys.executable, "-c", script, store_root, SCHEMA],
        env=os.environ | {ENV_POINTS: f"{point}=kill"},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    if point is FailPoint.INIT_BEFORE_MANIFEST:
        with pytest.raises(omnigraph.NotFoundError):
            omnigraph.open(store_root)
        omnigraph.init(store_root, SCHEMA).close()
    else:
        with pytest.raises(omnigraph.AlreadyExistsError):
            omnigraph.init(store_root, SCHEMA)
    with omnigraph.open(store_root) as graph:
        graph.load([{"type": "Person", "data": {"name": "first"}}])
        assert graph.snapshot().count("Person") == 1
