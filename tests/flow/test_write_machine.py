"""The write machine below the verbs: deletions, compare-and-swap, the intent, row identity, blobs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint, armed
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.write.publish import publish
from omnigraph.write.request import Receipt, WriteRequest
from omnigraph.write.txn import GraphDelta

SCHEMA = """
node Person { name: String @key  age: I32?  photo: Blob?  tags: [String]?  face: Vector(2)? }
edge Knows: Person -> Person
"""


def person(name: str, **data: object) -> dict:
    return {"type": "Person", "data": {"name": name, **data}}


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.load([person(n, age=i) for i, n in enumerate("abc")])
    return graph


def change(
    graph: omnigraph.Graph,
    *,
    rows: list[dict] = (),
    removed: list[str] = (),
    expected_commit: str | None = None,
) -> Receipt:
    """Upsert and delete people in one write."""
    graph_type = graph.catalog.nodes["Person"]
    delta = TableDelta(
        type=graph_type,
        mode=WriteMode.MERGE,
        rows=pa.Table.from_pylist(list(rows), schema=table_schema(graph_type)),
        removed=pa.array(removed, pa.string()),
    )
    return publish(
        graph._repository,
        WriteRequest(
            kind="mutate",
            branch="main",
            prepare=lambda txn: GraphDelta(tables={"node:Person": delta}),
            expected_commit=expected_commit,
        ),
    )


def people(graph: omnigraph.Graph) -> dict[str, int | None]:
    return {r["id"]: r["age"] for r in graph.snapshot().rows("Person")}


def test_rows_are_deleted_and_replaced_in_one_commit(graph: omnigraph.Graph) -> None:
    rows = [{"id": "b", "name": "b", "age": 9}, {"id": "d", "name": "d", "age": 4}]
    receipt = change(graph, rows=rows, removed=["a"])
    assert people(graph) == {"b": 9, "c": 2, "d": 4}
    counts = receipt.changes["node:Person"]
    assert (counts.inserted, counts.updated, counts.deleted) == (1, 1, 1)
    assert graph.snapshot().count("Person") == 3
    assert receipt.commit == graph.commits()[0]


def test_deleting_what_is_not_there_is_no_commit(graph: omnigraph.Graph) -> None:
    assert change(graph, removed=["nobody"]).commit is None
    assert len(graph.commits()) == 2


def test_a_node_with_edges_is_not_deleted_from_under_them(graph: omnigraph.Graph) -> None:
    graph.load([{"edge": "Knows", "from": "a", "to": "b"}])
    with pytest.raises(omnigraph.ConstraintError, match="dst 'b' not found in Person"):
        change(graph, removed=["b"])
    assert set(people(graph)) == {"a", "b", "c"}


def test_compare_and_swap(graph: omnigraph.Graph) -> None:
    seen = graph.snapshot().commit.id
    change(graph, removed=["a"], expected_commit=seen)
    with pytest.raises(omnigraph.ConflictError) as caught:
        change(graph, removed=["b"], expected_commit=seen)
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
    assert caught.value.details["expected"] == seen
    assert set(people(graph)) == {"b", "c"}


def test_compare_and_swap_holds_to_the_last_moment(graph: omnigraph.Graph) -> None:
    seen = graph.snapshot().commit.id
    with (
        omnigraph.open(graph.uri) as other,
        armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: other.load([person("z")])),
        pytest.raises(omnigraph.ConflictError) as caught,
    ):
        change(graph, removed=["b"], expected_commit=seen)
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED


def test_a_deletion_does_not_swallow_a_concurrent_change(graph: omnigraph.Graph) -> None:
    with (
        omnigraph.open(graph.uri) as other,
        armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: other.load([person("b")], mode="merge")),
        pytest.raises(omnigraph.ConflictError) as caught,
    ):
        change(graph, removed=["b"])
    assert caught.value.kind is ErrorKind.VERSION_MISMATCH


def test_the_intent_is_the_plan_and_goes_when_the_write_is_settled(graph: omnigraph.Graph) -> None:
    folder = Path(graph.uri) / "__recovery"
    found: list[dict] = []

    def look() -> None:
        found.extend(json.loads(f.read_text()) for f in folder.iterdir())

    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, look):
        result = graph.load([person("d")], actor="ann", message="why")
    graph.settle()
    assert result.commit is not None
    (plan,) = found
    assert plan["operation_id"] == result.commit.id
    assert (plan["kind"], plan["actor"], plan["message"]) == ("load", "ann", "why")
    assert plan["tables"][0]["table_key"] == "node:Person"
    assert plan["tables"][0]["actions"] == ["append"]
    assert not list(folder.iterdir())
    assert not list(Path(graph.uri).glob("nodes/*/_versions/*.manifest-*")), "staging names go too"


def test_row_identity_survives_an_upsert(graph: omnigraph.Graph) -> None:
    def row_ids() -> dict[str, int]:
        pin = graph._repository.branch("main").head.snapshot.pins["node:Person"]
        table = graph._repository.table(pin).dataset.to_table(columns=["id", "_rowid"])
        return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))

    before = row_ids()
    graph.load([person("b", age=50), person("new")], mode="merge")
    after = row_ids()
    assert {k: after[k] for k in before} == before
    assert after["new"] not in before.values()


def test_blobs_lists_and_vectors_survive_every_kind_of_write(graph: omnigraph.Graph) -> None:
    photos = {"small": b"x" * 10, "empty": b"", "large": bytes(range(256)) * 4096, "none": None}
    rows = [person(n, photo=p, tags=[n, ""], face=[0.5, -1.25]) for n, p in photos.items()]
    graph.load(rows)
    graph.load([person("small", age=1, photo=b"changed")], mode="merge")
    change(graph, removed=["none"])
    graph.load([person("later")])
    expected = {"small": b"changed", "empty": b"", "large": photos["large"], "later": None}

    def check(where: omnigraph.Graph) -> None:
        found = {r["id"]: r for r in where.snapshot().rows("Person")}
        assert {k: found[k]["photo"] for k in expected} == expected
        assert found["large"]["tags"] == ["large", ""]
        assert found["large"]["face"] == [0.5, -1.25]
        assert found["small"]["tags"] is None, "an upsert replaces the whole entity"

    check(graph)
    with omnigraph.open(graph.uri) as fresh:
        check(fresh)
        fresh.load(
            [person(n, photo=p) for n, p in expected.items() if n != "small"], mode="overwrite"
        )
        assert {r["id"] for r in fresh.snapshot().rows("Person")} == {"empty", "large", "later"}


def test_two_hundred_types_in_one_commit(store_root: str) -> None:
    schema = "".join(f"node T{i} {{ name: String @key }}\n" for i in range(200))
    with omnigraph.init(store_root, schema) as graph:
        result = graph.load([{"type": f"T{i}", "data": {"name": "x"}} for i in range(200)])
        assert len(result.changes) == 200
        assert len(graph.commits()) == 2
    with omnigraph.open(store_root) as graph:
        assert sum(d.entity_count for d in graph.snapshot().datasets) == 200


def test_a_warm_handle_checks_against_its_own_earlier_writes(tmp_path: Path) -> None:
    """Key columns are kept in memory and carried from version to version: never stale."""
    schema = """
    node Person { name: String @key  badge: I32? @unique }
    edge Likes: Person -> Person @card(0..2) { rank: I32? @unique }
    """
    with omnigraph.init(tmp_path / "g", schema) as graph:

        def refused(records: list[dict], mode: str = "append") -> None:
            before = graph.snapshot().version
            with pytest.raises(omnigraph.ConstraintError):
                graph.load(records, mode=mode)
            assert graph.snapshot().version == before

        for i in range(70):  # Past the number of chunks at which they are joined.
            graph.load([person(f"p{i}", badge=i)])
            if i % 10 in (1, 2, 3):
                refused([person(f"p{i}")])
                refused([person("new", badge=i)])
                refused([person("new", badge=i - 1)])
        for i in range(5):
            graph.load([like(f"p{i}", f"p{i + 1}", i), like(f"p{i}", "p69", 100 + i)])
            refused([like(f"p{i}", "p0", 200)])
            refused([like("p60", "p0", i)])
            refused([like("p60", f"p{70 + i}", 200)])
        graph.load([person("p0", badge=500)], mode="merge")
        graph.load([person("took the badge", badge=0)])
        refused([person("new", badge=500)])
        graph.load([person(f"p{i}") for i in (0, 1, 2, 3, 4, 5, 69)], mode="overwrite")
        graph.load([person("p60", badge=500)])
        refused([person("p60")])
        refused([like("p60", "p61", 200)])
        with omnigraph.open(tmp_path / "g") as fresh:
            assert fresh.snapshot().count("Person") == 8


def like(source: str, target: str, rank: int) -> dict:
    return {"edge": "Likes", "from": source, "to": target, "data": {"rank": rank}}
