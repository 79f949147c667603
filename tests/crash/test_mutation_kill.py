"""`kill -9` in the middle of a delete over two tables: node and edges are all there, or all gone."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import omnigraph
from omnigraph.failpoints import ENV_POINTS, FailPoint
from support.mutators import PEOPLE, SCHEMA, mutate
from support.racers import Racer, run_alone

BEFORE_COMMIT = (
    FailPoint.WRITE_INTENT_WRITTEN,
    FailPoint.STAGE_AFTER_COMMIT,
    FailPoint.STAGE_AFTER_PIN,
    FailPoint.WRITE_ALL_STAGED,
    FailPoint.PUBLISH_BEFORE_COMMIT,
)
AFTER_COMMIT = (FailPoint.PUBLISH_AFTER_COMMIT, FailPoint.SETTLE_BEFORE_HINT)


@pytest.mark.parametrize("point", [*BEFORE_COMMIT, *AFTER_COMMIT], ids=str)
def test_a_killed_delete_leaves_the_old_or_the_new_state(tmp_path: Path, point: FailPoint) -> None:
    root = str(tmp_path / "g")
    people = {f"p{i}" for i in range(PEOPLE)}
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load([{"type": "Person", "data": {"name": n}} for n in sorted(people)])
        ends = [("p0", "p1"), ("p1", "p0"), ("p1", "p2"), ("p0", "p0")]
        graph.load([{"edge": "Knows", "from": a, "to": b} for a, b in ends])
        before = graph.snapshot().commit

    racer = Racer(kind="drop", uri=root, name="w", count=1, type_name="Person")
    child = run_alone(racer, os.environ | {ENV_POINTS: f"{point}=kill"})
    assert child.returncode == -signal.SIGKILL, child

    with omnigraph.open(root) as graph:
        snapshot = graph.snapshot()
        found = snapshot.count("Person"), snapshot.count("Knows")
        if point in BEFORE_COMMIT:
            assert (snapshot.commit, found) == (before, (PEOPLE, 4))
        elif snapshot.commit.parent_id == before.id:
            assert found == (PEOPLE - 1, 1)
        else:  # Housekeeping runs beside the next write, which had brought the person back.
            assert found == (PEOPLE, 1)
        outcome = mutate(graph, "next", 'delete Person where name in ["p0", "p1"]')
        assert outcome.receipt.commit is not None
        assert graph.snapshot().count("Knows") == 0
        assert {r["name"] for r in graph.snapshot().rows("Person")} == people - {"p0", "p1"}
