"""Mutations of many processes on one graph: each acts on what it saw, and nothing is lost."""

from __future__ import annotations

import pytest

import omnigraph
from support.examples import examples
from support.mutators import PEOPLE, SCHEMA
from support.racers import Racer, run_racers

PROCESSES = 6
TIMES = examples(5)


def racers(kind: str, uri: str, type_name: str, count: int = PROCESSES) -> list[Racer]:
    return [
        Racer(kind=kind, uri=uri, name=f"{kind}{i}", count=TIMES, type_name=type_name)
        for i in range(count)
    ]


@pytest.mark.xdist_group("races")
def test_a_slot_is_claimed_once(store_root: str) -> None:
    graph = omnigraph.init(store_root, SCHEMA)
    graph.load([{"type": "Slot", "data": {"name": f"s{i}"}} for i in range(TIMES)])
    results = run_racers(racers("claim", store_root, "Slot"))
    assert [r.errors for r in results] == [()] * PROCESSES
    owners = {r["name"]: r["owner"] for r in graph.snapshot().rows("Slot")}
    assert len(owners) == TIMES and None not in owners.values()
    claims = [c for c in graph.commits() if c.kind == "mutation"]
    assert len(claims) == TIMES, "a second claim finds the slot taken and commits nothing"
    assert all(c.changes["node:Slot"].updated == 1 for c in claims)
    assert sorted(str(c.actor) for c in claims) == sorted(owners.values())


@pytest.mark.xdist_group("races")
def test_no_increment_is_lost(store_root: str) -> None:
    graph = omnigraph.init(store_root, SCHEMA)
    graph.load([{"type": "Counter", "data": {"name": "c", "value": 0}}])
    results = run_racers(racers("increment", store_root, "Counter"))
    assert [r.errors for r in results] == [()] * PROCESSES
    (counter,) = graph.snapshot().rows("Counter").to_dicts()
    assert counter["value"] == PROCESSES * TIMES
    assert len(graph.commits()) == 2 + PROCESSES * TIMES


@pytest.mark.xdist_group("races")
def test_deletes_inserts_and_edges_leave_nothing_dangling(store_root: str) -> None:
    graph = omnigraph.init(store_root, SCHEMA)
    graph.load([{"type": "Person", "data": {"name": f"p{i}"}} for i in range(PEOPLE)])
    crowd = [
        *racers("drop", store_root, "Person", 2),
        *racers("relate", store_root, "Knows", 2),
        *racers("join", store_root, "", 2),
    ]
    results = run_racers(crowd)
    for racer, result in zip(crowd, results, strict=True):
        # An edge may find its person gone. Nobody is refused for a technical reason.
        allowed = {"constraint"} if racer.kind == "relate" else set()
        assert set(result.errors) <= allowed, result
    snapshot = graph.snapshot()
    people = {r["name"] for r in snapshot.rows("Person")}
    joined = {f"join{i}-{n}" for i in range(2) for n in range(TIMES)}
    assert people == {f"p{i}" for i in range(PEOPLE)} | joined
    edges = snapshot.rows("Knows").to_dicts()
    assert {e["src"] for e in edges} | {e["dst"] for e in edges} <= people
    assert {e["src"] for e in edges} >= joined
    commits = graph.commits()
    assert [c.parent_id for c in commits] == [*(c.id for c in commits[1:]), None]
    made = sum(c.changes["edge:Knows"].inserted for c in commits if "edge:Knows" in c.changes)
    gone = sum(c.changes["edge:Knows"].deleted for c in commits if "edge:Knows" in c.changes)
    assert made - gone == len(edges)
