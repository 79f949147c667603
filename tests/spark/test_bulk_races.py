"""Bulk loads while others publish, and drivers that die: re-validated or refused, never half."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ConflictError, ConstraintError, ErrorKind
from omnigraph.failpoints import FailPoint, armed

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""


def person(name: str, age: int = 0) -> dict:
    return {"type": "Person", "data": {"name": name, "age": age}}


def knows(a: str, b: str) -> dict:
    return {"edge": "Knows", "from": a, "to": b}


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        graph.load([person(n) for n in "abc"])
        yield graph


@pytest.fixture
def load(graph, spark, tmp_path: Path):
    """Load records on Spark, overtaken by somebody just before the commit."""
    import json

    def run(records: list[dict], mode: str, overtaking):
        source = tmp_path / "in.jsonl"
        source.write_text("".join(json.dumps(r) + "\n" for r in records))
        with (
            omnigraph.open(graph.uri) as other,
            armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: overtaking(other)) as arm,
        ):
            try:
                return graph.load(source, mode=mode, engine="spark", spark=spark)
            finally:
                assert arm.fired == 1

    return run


def people(graph: omnigraph.Graph) -> dict[str, int]:
    return {r["id"]: r["age"] for r in graph.snapshot().rows("Person")}


def data_files(graph: omnigraph.Graph) -> set[str]:
    return {f.name for f in Path(graph.uri).glob("*/*/data/*.lance")}


def referenced(graph: omnigraph.Graph) -> set[str]:
    repository = graph._repository
    pins = repository.branch("main").refresh().snapshot.pins.values()
    names = [name for pin in pins for name in repository.table(pin).files_since(None)]
    return {Path(name).name for name in names if name.endswith(".lance")}


def row_ids(graph: omnigraph.Graph) -> dict[str, int]:
    pin = graph._repository.branch("main").refresh().snapshot.pins["node:Person"]
    table = graph._repository.table(pin).dataset.to_table(columns=["id", "_rowid"])
    return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))


def test_an_append_goes_on_top_of_another_and_writes_nothing_twice(graph, load):
    records = [person("d"), person("e"), knows("a", "d")]
    result = load(records, "append", lambda other: other.load([person("x"), knows("a", "x")]))
    assert set(people(graph)) == set("abcdex")
    assert graph.snapshot().count("Knows") == 2
    assert result.commit == graph.commits()[0]
    assert graph.commits()[1].changes["node:Person"].inserted == 1
    assert data_files(graph) == referenced(graph)


def test_what_became_wrong_meanwhile_is_refused(graph, load):
    with pytest.raises(ConstraintError) as caught:
        load([person("d"), person("e")], "append", lambda other: other.load([person("d", 9)]))
    assert caught.value.kind is ErrorKind.KEY_CONFLICT
    assert people(graph)["d"] == 9
    assert "e" not in people(graph)
    assert data_files(graph) == referenced(graph), "what was staged is gone"


def test_a_node_that_goes_meanwhile_takes_the_edges_with_it(graph, load):
    delete = 'delete Person where name = "a"'
    with pytest.raises(ConstraintError, match="src 'a' not found in Person"):
        load([knows("a", "b"), person("d")], "append", lambda other: other.mutate(delete))
    assert set(people(graph)) == {"b", "c"}


def test_a_merge_replaces_what_somebody_inserted_meanwhile(graph, load):
    result = load(
        [person("d", 1), person("e", 1)], "merge", lambda other: other.load([person("d", 9)])
    )
    change = result.changes["node:Person"]
    assert (change.inserted, change.updated) == (1, 1)
    assert people(graph) == {"a": 0, "b": 0, "c": 0, "d": 1, "e": 1}
    assert data_files(graph) >= referenced(graph)


def test_a_merge_is_matched_anew_when_its_table_moved(graph, load):
    before = row_ids(graph)

    def overtake(other: omnigraph.Graph) -> None:
        other.load([person("b", 5), person("x", 5)], mode="merge")

    load([person("b", 7), person("c", 7), person("d", 7)], "merge", overtake)
    assert people(graph) == {"a": 0, "b": 7, "c": 7, "d": 7, "x": 5}
    after = row_ids(graph)
    assert {k: after[k] for k in before} == before
    assert len(set(after.values())) == 5


def test_an_overwrite_never_swallows_what_it_did_not_see(graph, load):
    with pytest.raises(ConflictError) as caught:
        load([person("z")], "overwrite", lambda other: other.load([person("x")]))
    assert caught.value.kind is ErrorKind.VERSION_MISMATCH
    assert set(people(graph)) == {"a", "b", "c", "x"}
    assert data_files(graph) == referenced(graph)


DRIVER = """
import sys, omnigraph
from omnigraph.spark.sessions import pipeline_session

uri, source = sys.argv[1:]
with pipeline_session(master="local[2]") as pipeline, omnigraph.open(uri) as graph:
    graph.load(source, mode="merge", engine="spark", spark=pipeline.spark)
"""


@pytest.mark.parametrize("point", ["write.all_staged", "publish.after_commit"])
def test_a_killed_driver_leaves_the_old_state_or_the_new_one(
    graph, spark_sessions, tmp_path, point
):
    """The process that publishes dies; its tasks have all answered, so the JVM may be one that is up.

    A JVM that dies with it, and with tasks that write: ``test_bulk_cluster.py``.
    """
    source = tmp_path / "in.jsonl"
    source.write_text('{"type": "Person", "data": {"name": "a", "age": 5}}\n'
                      '{"type": "Person", "data": {"name": "d", "age": 5}}\n')  # fmt: skip
    with spark_sessions.lent() as jvm:
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, graph.uri, str(source)],
            env={**os.environ, **jvm, "OMNIGRAPH_FAILPOINTS": f"{point}=kill"},
            capture_output=True,
            timeout=300,
        )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    published = point == "publish.after_commit"
    expected = {"a": 0, "b": 0, "c": 0} | ({"a": 5, "d": 5} if published else {})
    with omnigraph.open(graph.uri) as fresh:
        assert people(fresh) == expected
        session = spark_sessions.local()
        result = fresh.load(source, mode="merge", engine="spark", spark=session)
        # What was published is there already, exactly so.
        assert dict(result.unchanged) == ({"node:Person": 2} if published else {})
        assert (result.commit is None) == published
        assert people(fresh) == {"a": 5, "b": 0, "c": 0, "d": 5}
