"""`kill -9` while writes are published together: all of them are there afterwards, or none."""

from __future__ import annotations

import os
import signal
import sys

import pytest

import omnigraph
from omnigraph.failpoints import ENV_POINTS, FailPoint
from support.children import finished
from support.queueing import queued

SCHEMA = """
node Person { name: String @key }
node City { name: String @key }
edge Knows: Person -> Person
"""
KNOWS = "query q($n: String) { insert Knows { from: $n, to: $n } }"
COUNT = 5
_CHILD = "import sys; from crash.test_together_kill import write; write(sys.argv[1])"

BEFORE = (
    FailPoint.STAGE_AFTER_COMMIT,
    FailPoint.STAGE_AFTER_PIN,
    FailPoint.WRITE_ALL_STAGED,
    FailPoint.PUBLISH_BEFORE_COMMIT,
)
AFTER = (FailPoint.PUBLISH_AFTER_COMMIT, FailPoint.SETTLE_BEFORE_HINT)


def write(uri: str) -> None:
    """In the process that dies: some writes that queue up behind another one."""
    graph = omnigraph.open(uri)
    names = [f"p{n}" for n in range(COUNT)]
    queued(
        lambda: graph.load([{"type": "City", "data": {"name": "c"}}]),
        [lambda n=n: graph.mutate(KNOWS, params={"n": n}) for n in names],
    )
    sys.stdout.write("not killed\n")


@pytest.mark.parametrize("point", [*BEFORE, *AFTER], ids=str)
def test_all_of_them_or_none(store_root: str, point: FailPoint) -> None:
    with omnigraph.init(store_root, SCHEMA) as graph:
        graph.load([{"type": "Person", "data": {"name": f"p{n}"}} for n in range(COUNT)])
        graph.load([{"edge": "Knows", "from": "p0", "to": "p1"}])
        graph.load([{"type": "City", "data": {"name": "a"}}])
    # The write that the others wait for passes each of these points once.
    armed = {ENV_POINTS: f"{point}=kill;skip=1"}
    child = finished(_CHILD, store_root, environment=os.environ | armed)
    assert child.returncode == -signal.SIGKILL, child
    with omnigraph.open(store_root) as graph:
        done = COUNT if point in AFTER else 0
        assert graph.snapshot().count("City") == 2
        assert graph.snapshot().count("Knows") == 1 + done
        commits = graph.commits()
        assert len(commits) == 5 + done
        made = [c.manifest_version for c in commits[:done]]
        assert len(set(made)) <= 1
        for number, commit in enumerate(commits[:done]):
            assert graph.at(f"commit:{commit.id}").count("Knows") == 1 + done - number
        graph.mutate(KNOWS, params={"n": "p0"})
        assert graph.snapshot().count("Knows") == 2 + done
        graph.upkeep.recovery.run(stalled_after=0)
        assert graph.upkeep.check(full=True, history=True).ok
