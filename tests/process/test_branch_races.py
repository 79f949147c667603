"""Many processes make, write, merge, rename and end the same branches: nothing is lost or stuck."""

from __future__ import annotations

import pytest

import omnigraph
from support.branchers import NAMES
from support.racers import SCHEMA, Racer, run_racers

PROCESSES = 8
STEPS = 20
REFUSALS = {"branch_exists", "branch_not_found"}


@pytest.mark.xdist_group("races")
def test_branches_that_everybody_fights_over(store_root: str) -> None:
    with omnigraph.init(store_root, SCHEMA) as graph:
        graph.load([{"type": "Person", "data": {"name": "first"}}])
        for name in NAMES:
            graph.branches.create(name)
        main = graph.snapshot().commit
    results = run_racers(
        [
            Racer(kind="churn", uri=store_root, name=f"r{i}", count=STEPS, type_name="Person")
            for i in range(PROCESSES)
        ]
    )
    assert {error for r in results for error in r.errors} <= REFUSALS
    acknowledged = [note.split() for r in results for note in r.notes]
    assert acknowledged
    with omnigraph.open(store_root) as graph:
        assert graph.snapshot().commit == main
        for name in [n for n in NAMES if n in living(graph)]:
            snapshot = graph.snapshot(name)
            line = graph.commits(branch=name)  # Also what was merged.
            written = {c.message for c in line if c.kind == "load" and c.message}
            rows = {row["name"] for row in snapshot.rows("Person")}
            assert rows == {"first", *written}
            # Whatever was acknowledged in this life, or in one that it was made from, is there.
            own = {commit for path, commit in acknowledged if path == snapshot.commit.path}
            own = own if snapshot.commit.path != main.path else set()
            assert own <= {c.id for c in line}
        # Nobody is left stuck: every name can be ended and used again.
        for name in NAMES:
            if name in living(graph):
                graph.branches.delete(name)
            graph.branches.create(name)
            graph.load([{"type": "Person", "data": {"name": "last"}}], branch=name)
        assert graph.branches.list() == ["main", *NAMES]


def living(graph: omnigraph.Graph) -> set[str]:
    found = set[str]()
    for name in NAMES:
        try:
            graph.snapshot(name)
            found.add(name)
        except omnigraph.NotFoundError:
            pass
    return found
