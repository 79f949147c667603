"""`kill -9` while a branch is made, ended or renamed: it has happened or not, and no name is stuck."""

from __future__ import annotations

import os
import signal

import pytest

import omnigraph
from omnigraph.failpoints import ENV_POINTS, FailPoint
from support.children import finished
from support.racers import SCHEMA

CASES = [
    ("create", FailPoint.BRANCH_BEFORE_REF, {"main", "x"}),
    ("delete", FailPoint.BRANCH_BEFORE_DEATH, {"main"}),
    ("rename", FailPoint.BRANCH_BEFORE_RENAME, {"main", "x"}),
    ("rename", FailPoint.BRANCH_BEFORE_DEATH, {"main", "y"}),
]
COMMANDS = {"create": ("new",), "delete": ("x",), "rename": ("x", "y")}
SCRIPT = (
    "import sys, omnigraph\n"
    "graph = omnigraph.open(sys.argv[1])\n"
    "getattr(graph.branches, sys.argv[2])(*sys.argv[3:])\n"
)


def living(graph: omnigraph.Graph) -> set[str]:
    """The branches that can be read and written."""
    found = set[str]()
    for name in ("main", "new", "x", "y"):
        rows = [{"type": "Person", "data": {"name": f"on {name}"}}]
        try:
            graph.load(rows, mode="merge", branch=name)
            found.add(name)
        except omnigraph.NotFoundError:
            pass
    return found


@pytest.mark.parametrize(
    ("command", "point", "expected"), CASES, ids=lambda v: None if isinstance(v, set) else str(v)
)
def test_a_killed_command_leaves_no_name_stuck(
    store_root: str, command: str, point: FailPoint, expected: set[str]
) -> None:
    with omnigraph.init(store_root, SCHEMA) as graph:
        graph.load([{"type": "Person", "data": {"name": "a"}}])
        graph.branches.create("x")
    environment = os.environ | {ENV_POINTS: f"{point}=kill"}
    child = finished(SCRIPT, store_root, command, *COMMANDS[command], environment=environment)
    assert child.returncode == -signal.SIGKILL, child
    with omnigraph.open(store_root) as graph:
        assert living(graph) == expected
        # Whatever happened, every name can be used from here on.
        for name in ("new", "x", "y"):
            if name in living(graph):
                graph.branches.delete(name)
            graph.branches.create(name)
        assert graph.branches.list() == ["main", "new", "x", "y"]
        assert living(graph) == {"main", "new", "x", "y"}
