"""`kill -9` in the middle of a schema change: the old schema with its rows, or the new one."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import omnigraph
from omnigraph.failpoints import ENV_POINTS, FailPoint
from support.evolvers import GROWN, START
from support.racers import Racer, run_alone

BEFORE_COMMIT = (
    FailPoint.SCHEMA_AFTER_OBJECTS,
    FailPoint.WRITE_INTENT_WRITTEN,
    FailPoint.STAGE_AFTER_COMMIT,
    FailPoint.STAGE_AFTER_PIN,
    FailPoint.WRITE_ALL_STAGED,
    FailPoint.PUBLISH_BEFORE_COMMIT,
)
AFTER_COMMIT = (
    FailPoint.PUBLISH_AFTER_COMMIT,
    FailPoint.SETTLE_BEFORE_HINT,
    FailPoint.SETTLE_BEFORE_INTENT_DROP,
)


@pytest.mark.parametrize("point", [*BEFORE_COMMIT, *AFTER_COMMIT], ids=str)
def test_a_killed_change_leaves_the_old_or_the_new_schema(tmp_path: Path, point: FailPoint) -> None:
    root = str(tmp_path / "g")
    with omnigraph.init(root, START) as graph:
        graph.load(
            [
                {"type": "Person", "data": {"name": "ann", "age": 3}},
                {"type": "City", "data": {"name": "oslo"}},
                {"edge": "LivesIn", "from": "ann", "to": "oslo"},
            ]
        )
        before = graph.snapshot().commit

    racer = Racer(kind="grow", uri=root, name="w", count=1, type_name="")
    child = run_alone(racer, os.environ | {ENV_POINTS: f"{point}=kill"})
    assert child.returncode == -signal.SIGKILL, child

    with omnigraph.open(root) as graph:
        snapshot = graph.snapshot()
        if point in BEFORE_COMMIT:
            assert (snapshot.commit, snapshot.schema) == (before, START)
            assert snapshot.rows("Person").to_dicts() == [{"id": "ann", "name": "ann", "age": 3}]
            graph.load([{"type": "Person", "data": {"name": "bob", "age": 4}}])
            graph.schema_apply(GROWN)
        else:
            assert (snapshot.commit.parent_id, snapshot.schema) == (before.id, GROWN)
            assert not graph.schema_apply(GROWN).applied
            graph.load([{"type": "Human", "data": {"name": "bob", "years": 4, "country": "no"}}])
        rows = graph.snapshot().rows("Human").to_dicts()
        assert [(r["name"], r["years"], r["country"]) for r in rows] == [
            ("ann", 3, "no"),
            ("bob", 4, "no"),
        ]
        found = graph.query("match { $h: Human  $h livesIn $c } return { $h.name, $c.name }")
        assert found.to_dicts() == [{"h.name": "ann", "c.name": "oslo"}]
