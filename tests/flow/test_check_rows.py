"""A check finds rows that a load would refuse, and repair takes away what leads nowhere.

Nothing in this release publishes such a state, so each is made here past the validator.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.manifest.snapshot import TableChange
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.write import next_snapshot, preparation, publish, schema_view
from omnigraph.write.request import WriteRequest
from omnigraph.write.txn import GraphDelta
from omnigraph.write.validate import TableOutcome, Validated

SCHEMA = """
node P { k: String @key  n: I32  e: enum(x, y)?  u: String?  f: F64?  @range(n, 0..9)  @unique(u) }
edge E: P -> P @card(0..1) { w: I32? }
"""
Rows = list[dict[str, Any]]


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.load([{"type": "P", "data": {"k": k, "n": 1}} for k in "ab"])
    return graph


def force(graph: omnigraph.Graph, key: str, rows: Rows, branch: str = "main") -> None:
    """Publish rows past the validator."""
    graph_type = graph.snapshot(branch).catalog.table(key)
    table = pa.Table.from_pylist(rows, schema=table_schema(graph_type))
    none = pa.array([], pa.string())

    def unchecked(txn: Any, delta: GraphDelta, **_: Any) -> Validated:
        outcome = TableOutcome(
            rows=table,
            matched=none,
            removed=none,
            inserted_count=len(rows),
            updated_count=0,
            deleted_count=0,
        )
        return Validated(tables={key: outcome})

    delta = GraphDelta(tables={key: TableDelta(type=graph_type, mode=WriteMode.APPEND, rows=table)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparation, "validated", unchecked)
        patch.setattr(schema_view, "validated", unchecked)
        request = WriteRequest(kind="load", branch=branch, prepare=lambda _: delta)
        publish.publish(graph._repository, request)


def node(key: str, **data: Any) -> dict[str, Any]:
    return {"id": key, "k": key, "n": 1, "e": None, "u": None, "f": None, **data}


def findings(graph: omnigraph.Graph, *, full: bool = True) -> list[tuple[str, str]]:
    with omnigraph.open(graph.uri) as fresh:
        found = fresh.upkeep.check(full=full).findings
    assert all(f.remedy for f in found)
    return [(f.code, f.message) for f in found]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([node("c", n=10)], "'c': @range violation on P.n: value 10 not in 0..9"),
        ([node("c", e="z")], "'c': invalid enum value 'z' for P.e (expected: x, y)"),
        ([node("c", f=float("nan"))], "'c': non-finite value for P.f"),
        ([node("c", u="one"), node("d", u="one")], "@unique violation on P.u"),
        ([node("other") | {"k": "a"}], "id 'other' does not follow from 'a'"),
    ],
    ids=["range", "enum", "value", "unique", "key"],
)
def test_rows_that_a_load_would_refuse_are_found(
    graph: omnigraph.Graph, rows: Rows, message: str
) -> None:
    assert findings(graph) == []
    force(graph, "node:P", rows)
    assert findings(graph, full=False) == []
    ((code, told),) = findings(graph)
    assert code == "rule"
    assert message in told


def test_a_required_value_that_is_missing_is_found(tmp_path: Path) -> None:
    text = SCHEMA.replace("n: I32 ", "n: I32? ")
    with omnigraph.init(tmp_path / "g", text) as graph:
        graph.load([{"type": "P", "data": {"k": "a"}}])
        repository = graph._repository
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("omnigraph.upkeep.schema_apply.broken_rules", lambda *_: ([], 0))
            # Lance minds nulls in columns that must have none; older releases left them as they were.
            patch.setattr(
                "omnigraph.storage.reshape.Reshape.commit", lambda self, current, _: current
            )
            patch.setattr("omnigraph.upkeep.schema_apply._tables", lambda *_: {})
            graph.schema_apply(SCHEMA)
        assert repository.head("main").snapshot.head.kind == "schema_apply"
        assert findings(graph) == [("rule", "'a': missing required value for P.n")]


def test_too_many_edges_are_found(graph: omnigraph.Graph) -> None:
    rows = [{"id": i, "src": "a", "dst": "b", "w": 1} for i in ("e1", "e2")]
    force(graph, "edge:E", rows)
    ((code, told),) = findings(graph)
    assert code == "rule"
    assert "@card violation on edge E" in told


def test_counts_that_differ_from_the_difference_are_found(graph: omnigraph.Graph) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_snapshot, "changes_of", lambda *_: {"node:P": TableChange(updated=7)})
        graph.load([{"type": "P", "data": {"k": "c", "n": 1}}])
    ((code, told),) = findings(graph)
    assert code == "count"
    assert told == "it counts +0 ~7 -0 of node:P, and its difference has +1 ~0 -0"


def test_a_reset_counts_from_what_was_shown_before(graph: omnigraph.Graph) -> None:
    first = graph.snapshot().commit.id
    graph.load([{"type": "P", "data": {"k": "c", "n": 1}}])
    graph.reset(first)
    assert graph.snapshot().commit.changes == {"node:P": TableChange(deleted=1)}
    assert findings(graph) == []


def test_rows_that_were_written_as_they_were_are_no_wrong_count(graph: omnigraph.Graph) -> None:
    graph.load([{"type": "P", "data": {"k": "a", "n": 1}}], mode="merge")
    assert findings(graph) == []


def test_edges_that_lead_nowhere_are_repaired_by_force(graph: omnigraph.Graph) -> None:
    graph.branches.create("b")
    edges = [{"id": "e1", "src": "a", "dst": "gone", "w": 1}, {"id": "e2", "src": "b", "dst": "a"}]
    for branch in ("main", "b"):
        force(graph, "edge:E", edges, branch)
    assert {code for code, _ in findings(graph)} == {"endpoint"}
    seen = graph.upkeep.repair()
    assert [(e.branch, e.type_key, e.count, e.examples, e.action) for e in seen.edges] == [
        ("main", "edge:E", 1, ("e1",), "preview"),
        ("b", "edge:E", 1, ("e1",), "preview"),
    ]
    refused = graph.upkeep.repair(confirm=True)
    assert [e.action for e in refused.edges] == ["refused", "refused"]
    assert refused.refused == refused.edges
    done = graph.upkeep.repair(confirm=True, force=True)
    assert [e.action for e in done.edges] == ["deleted", "deleted"]
    assert [dict(c.changes) for c in done.commits] == [{"edge:E": TableChange(deleted=1)}] * 2
    assert [r["id"] for r in graph.snapshot("b").rows("E")] == ["e2"]
    assert findings(graph) == []
    assert graph.upkeep.repair(confirm=True, force=True).edges == ()
    assert done.to_dict()["edges"][0]["examples"] == ["e1"]
