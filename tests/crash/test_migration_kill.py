"""`kill -9` while a graph of an older format is brought up to date: it has the older stamp or the
newest one, reads the same either way, and the next write of either release goes its way."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import ENV_POINTS, FailPoint
from omnigraph.manifest.format import FORMAT
from support.children import finished
from support.releases import release_of_format

ON_MAIN = {1, 2, 3, 4, 5, 7}
WRITE = """
import sys, json, omnigraph
with omnigraph.open(sys.argv[1]) as graph:
    graph.load([json.loads(sys.argv[2])], branch=sys.argv[3])
"""
BEFORE_COMMIT = (
    FailPoint.MIGRATE_BEFORE_STEP,
    FailPoint.MIGRATE_AFTER_STEP,
    FailPoint.WRITE_ALL_STAGED,
    FailPoint.PUBLISH_BEFORE_COMMIT,
)
AFTER_COMMIT = (FailPoint.PUBLISH_AFTER_COMMIT, FailPoint.SETTLE_BEFORE_HINT)


def vessel(imo: int, **more: object) -> dict[str, object]:
    return {"type": "Vessel", "data": {"imo": imo, "name": "New", "active": True, **more}}


def imos(graph: omnigraph.Graph, branch: str) -> set[int]:
    return set(graph.snapshot(branch).rows("Vessel").to_arrow()["imo"].to_pylist())


def stamp(graph: omnigraph.Graph, branch: str = "main") -> int:
    return graph.upkeep.status(branch).format


def killed_at(point: FailPoint, root: Path, line: dict[str, object], branch: str) -> None:
    environment = os.environ | {ENV_POINTS: f"{point}=kill"}
    child = finished(WRITE, str(root), json.dumps(line), branch, environment=environment)
    assert child.returncode == -signal.SIGKILL, child


@pytest.mark.parametrize("point", [*BEFORE_COMMIT, *AFTER_COMMIT], ids=str)
def test_a_killed_first_write_leaves_the_older_or_the_newest_format(
    graph_v1: Path, point: FailPoint
) -> None:
    killed_at(point, graph_v1, vessel(50, rating=1), "main")
    rows = ON_MAIN if point in BEFORE_COMMIT else {*ON_MAIN, 50}
    with omnigraph.open(graph_v1) as graph:
        assert stamp(graph) == (1 if point in BEFORE_COMMIT else FORMAT)
        assert imos(graph, "main") == rows
        assert graph.upkeep.check(full=True).ok
    with release_of_format(1):
        if point in BEFORE_COMMIT:
            # Nothing has happened yet, so the older release goes on with its graph.
            with omnigraph.open(graph_v1) as graph:
                graph.load([vessel(51, rating=1)])
                assert stamp(graph) == 1
            rows = {*rows, 51}
        else:
            with pytest.raises(omnigraph.FormatError) as caught:
                omnigraph.open(graph_v1)
            assert caught.value.kind is ErrorKind.FORMAT_NEWER
    with omnigraph.open(graph_v1) as graph:
        graph.load([vessel(52, rating=1)])
        assert imos(graph, "main") == {*rows, 52}
        assert (stamp(graph), stamp(graph, "review")) == (FORMAT, 1)
        assert graph.upkeep.check(full=True).ok


@pytest.mark.parametrize("point", [FailPoint.MIGRATE_BEFORE_STEP, FailPoint.MIGRATE_AFTER_STEP])
def test_a_killed_first_write_of_a_branch_leaves_it_as_it_was(
    graph_v1: Path, point: FailPoint
) -> None:
    killed_at(point, graph_v1, vessel(50), "review")
    with omnigraph.open(graph_v1) as graph:
        assert (stamp(graph), stamp(graph, "review")) == (1, 1)
        graph.load([vessel(51)], branch="review")
        assert (stamp(graph), stamp(graph, "review")) == (1, FORMAT)
        assert imos(graph, "review") == {1, 2, 4, 8, 51}
