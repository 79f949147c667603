"""Merges of many processes into one branch, while others write and delete on it."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph
from support.examples import examples
from support.mergers import SCHEMA, SLOTS
from support.mutators import PEOPLE
from support.racers import Racer, run_racers

TIMES = examples(3)
RETIRED = ("r0", "r1")


def people(names: list[str]) -> list[dict[str, Any]]:
    return [{"type": "Person", "data": {"name": name}} for name in names]


def racer(kind: str, uri: str, name: str, type_name: str) -> Racer:
    return Racer(kind=kind, uri=uri, name=name, count=TIMES, type_name=type_name)


@pytest.mark.xdist_group("races")
def test_merges_writes_and_deletes_race(store_root: str) -> None:
    graph = omnigraph.init(store_root, SCHEMA)
    old = [f"old-{name}-{i}" for name in RETIRED for i in range(TIMES)]
    graph.load(people([*(f"p{i}" for i in range(PEOPLE)), *old]))
    graph.load([{"type": "Tally", "data": {"name": "t"}}])
    branches = [f"b{i}" for i in range(SLOTS)]
    for name in branches:
        graph.branches.create(name)
    crowd = [
        *(racer("deliver", store_root, name, f"w{i}") for i, name in enumerate(branches)),
        *(racer("retire", store_root, name, "Person") for name in RETIRED),
        racer("relate", store_root, "relate", "Knows"),
        racer("drop", store_root, "drop", "Person"),
    ]
    results = run_racers(crowd)
    for made, result in zip(crowd, results, strict=True):
        # An edge may find its person gone. Nobody is refused for a technical reason.
        allowed = {"constraint"} if made.kind == "relate" else set[str]()
        assert set(result.errors) <= allowed, result
    state = graph.snapshot()
    (tally,) = state.rows("Tally").to_dicts()
    assert {n: v for n, v in tally.items() if n.startswith("w")} == {
        f"w{i}": TIMES for i in range(SLOTS)
    }, "an update was lost"
    names = {row["name"] for row in state.rows("Person")}
    delivered = {f"{name}-{i}" for name in branches for i in range(TIMES)}
    assert names == {f"p{i}" for i in range(PEOPLE)} | delivered, "lost, or brought back"
    edges = state.rows("Knows").to_dicts()
    assert {e["src"] for e in edges} | {e["dst"] for e in edges} <= names, "a dangling edge"
    assert len({e["id"] for e in edges}) == len(edges)
    history(graph, branches)


def history(graph: omnigraph.Graph, branches: list[str]) -> None:
    """Main is a line; every delivery is one merge of its branch, and all of it is behind main."""
    repository = graph._repository
    head = repository.branch("main").refresh().snapshot
    line = list(repository.lineage.first_parents(head))
    assert [c.parent_id for c in line] == [*(c.id for c in line[1:]), None]
    merges = [c for c in line if c.kind == "merge"]
    assert sorted(str(c.actor) for c in merges) == sorted(branches * TIMES)
    assert all(c.merged_parent_id is not None for c in merges)
    reached = {c.id: c for c in repository.lineage.reachable(head)}
    for commit in reached.values():
        parents = repository.lineage.parents(commit)
        assert commit.generation == 1 + max((p.generation for p in parents), default=0)
