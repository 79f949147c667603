"""`kill -9` in the middle of an optimize: the same rows, and the next one succeeds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.failpoints import ENV_POINTS, FailPoint

SCHEMA = "node P { name: String @key  n: I32? @index  t: String? @index }\nedge E: P -> P"
BEFORE_COMMIT = (
    FailPoint.STAGE_AFTER_COMMIT,
    FailPoint.STAGE_AFTER_PIN,
    FailPoint.WRITE_ALL_STAGED,
    FailPoint.PUBLISH_BEFORE_COMMIT,
)
AFTER_COMMIT = (FailPoint.PUBLISH_AFTER_COMMIT, FailPoint.SETTLE_BEFORE_INTENT_DROP)


@pytest.mark.parametrize("point", [*BEFORE_COMMIT, *AFTER_COMMIT], ids=str)
def test_a_killed_optimize_loses_nothing(tmp_path: Path, point: FailPoint) -> None:
    root = tmp_path / "g"
    with omnigraph.init(root, SCHEMA) as graph:
        for i in range(4):
            graph.load([{"type": "P", "data": {"name": f"p{i}", "n": i, "t": "some words"}}])
        graph.load([{"edge": "E", "from": "p0", "to": "p1"}])
        graph.mutate('delete P where name = "p3"')
        before = graph.snapshot().commit
    child = subprocess.run(
        [sys.executable, "-m", "omnigraph", "optimize", str(root)],
        env=os.environ | {ENV_POINTS: f"{point}=kill"},
        capture_output=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child
    with omnigraph.open(root) as graph:
        published = graph.snapshot().commit.id != before.id
        assert published == (point in AFTER_COMMIT)
        assert rows(graph) == [0, 1, 2]
        graph.load([{"type": "P", "data": {"name": "p9", "n": 9}}])
        assert graph.optimize().commit is not None
        assert rows(graph) == [0, 1, 2, 9]
        assert graph.optimize().commit is None


def rows(graph: omnigraph.Graph) -> list[int]:
    found = graph.query("match { $p: P } return { $p.n } order { $p.n }").to_dicts()
    return [row["p.n"] for row in found]
