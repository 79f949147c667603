"""``graph.spark()``: a snapshot in a session, with everything that Spark can do with it."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import ErrorKind, NotFoundError, QueryError, UsageError
from omnigraph.spark import register, session, sessions
from omnigraph.spark.errors import translated

SCHEMA = """
node Person { name: String @key  age: I32?  bio: String? }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = [("Ada", 36), ("Bob", 20), ("Cy", 70)]


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        graph.load([{"name": n, "age": a, "bio": "long"} for n, a in PEOPLE], type="Person")
        graph.load([{"src": "Ada", "dst": "Bob", "since": 1840}], type="Knows")
        yield graph


def test_a_table_with_only_what_is_asked_for(graph, spark):
    with graph.spark(spark) as on:
        assert on.session is spark
        frame = on.table("Person", columns=["name"], where="age > 30")
        assert frame.columns == ["name"]
        assert sorted(r["name"] for r in frame.collect()) == ["Ada", "Cy"]
        (edge,) = on.table("Knows", where='src = "Ada"', with_address=True).collect()
        assert edge["dst"] == "Bob"
        assert {"_rowid", "_rowaddr"} <= set(edge.asDict())
        assert set(on.tables(columns={"Person": ["id"]})) == {"Person", "Knows"}
    assert spark.range(1).count() == 1, "somebody else's session goes on"


def test_views_over_all_types_by_one_call(graph, spark):
    with graph.spark(spark) as on:
        assert on.views("g_") == ["g_Person", "g_Knows"]
        text = "SELECT p.age FROM g_Knows k JOIN g_Person p ON p.id = k.dst"
        assert [r["age"] for r in spark.sql(text).collect()] == [20]


def test_a_query_as_a_frame_has_the_answer_of_the_local_engine(graph, spark):
    text = "query q($a: I32) { match { $p: Person  $p.age > $a } return { $p.name as name } }"
    with graph.spark(spark) as on:
        frame = on.query(text, {"a": 30})
        found = sorted(r["name"] for r in frame.collect())
    assert found == sorted(r["name"] for r in graph.query(text, {"a": 30}))


def test_a_state_that_a_cleanup_took_is_told_to_be_gone(graph, spark, tmp_path: Path):
    held = graph.snapshot()
    on = held.spark(spark)
    frame = on.table("Person")
    with omnigraph.open(graph.uri) as other:
        for age in (1, 2):
            rows = [{"name": n, "age": age} for n, _ in PEOPLE]
            other.load(rows, type="Person", mode="overwrite")
        other.settle()
        assert other.upkeep.cleanup(keep=1, grace=0, confirm=True).files_removed
    for read in (
        lambda: on.export(tmp_path / "out"),
        lambda: held.query("match { $p: Person } return { $p.bio }", engine="spark", spark=spark),
        lambda: _collected(frame),
    ):
        with pytest.raises(NotFoundError) as gone:
            read()
        assert gone.value.kind is ErrorKind.HISTORY_RECLAIMED


def _collected(frame):
    with translated():
        return frame.collect()


def test_it_reads_the_state_it_was_made_from(graph, spark):
    old = graph.commits()[1].id
    on = graph.spark(spark)
    graph.load([{"name": "Di"}], type="Person")
    assert on.table("Person").count() == 3
    assert graph.spark(spark).table("Person").count() == 4
    with graph.spark(spark, commit=old[:20]) as before:
        assert before.commit_id == old
        assert before.table("Knows").count() == 0
        assert old in repr(before)
    with pytest.raises(NotFoundError):
        graph.spark(spark, branch="nope")


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_an_export_of_a_branch_or_a_commit(graph, spark, tmp_path: Path, format):
    old = graph.commits()[1].id
    rows = graph.export(tmp_path / "new", engine="spark", spark=spark, format=format)
    assert rows == 4
    assert graph.export(
        tmp_path / "old", engine="spark", spark=spark, format=format, commit=old
    ) == 3  # fmt: skip
    with graph.spark(spark) as on:
        done = on.export(tmp_path / "one", format="parquet", types=["Person"])
    (person,) = done.types
    assert (person.name, person.rows) == ("Person", 3)
    table = pq.read_table(tmp_path / "one" / person.files[0])
    assert sorted(table["age"].to_pylist()) == [20, 36, 70]


def test_the_format_is_known_to_a_session_once_registered(graph, spark):
    register(spark)
    read = spark.read.format("omnigraph").option("graph", graph.uri)
    assert read.option("type", "Person").load().count() == 3
    old = graph.commits()[1].id
    assert read.option("type", "Knows").option("branch", "main").load().count() == 1
    assert read.option("type", "Knows").option("commit", old).load().count() == 0


def test_a_session_of_our_own_ends_with_the_handle(graph, spark_stopped):
    with graph.spark() as on:
        assert on.table("Person").count() == 3
        with session() as same:
            assert same is on.session
        assert sessions._own is not None
    assert sessions._own is None
    on.close()


def test_mistakes(graph, spark, tmp_path: Path):
    with graph.spark(spark) as on:
        with pytest.raises(NotFoundError, match="no type 'Persn'"):
            on.table("Persn")
        with pytest.raises(UsageError, match="no column 'x'"):
            on.table("Person", columns=["x"])
        with pytest.raises(QueryError):
            on.table("Person", where="agee > 1")
        with pytest.raises(UsageError, match="only reads"):
            on.query("delete Person where age > 1")
    with pytest.raises(UsageError, match="unknown format 'xml'"):
        graph.export(tmp_path / "x", engine="spark", format="xml", spark=spark)
    with pytest.raises(UsageError, match="an export to parquet is a folder"):
        graph.export(io.BytesIO(), format="parquet")
    with pytest.raises(UsageError, match="is a folder"):
        graph.export(io.BytesIO(), engine="spark", spark=spark)
    with pytest.raises(UsageError, match="unknown engine 'sprak'"):
        graph.export(tmp_path / "x", engine="sprak")
    with pytest.raises(UsageError, match="engine is local"):
        graph.export(tmp_path / "x", spark=spark)
    with pytest.raises(UsageError, match="no session is given"):
        register(None)


@pytest.mark.parametrize("kind", ["spark_connect", "on_cluster"])
def test_on_other_sessions(graph, kind, request, tmp_path: Path):
    with graph.spark(request.getfixturevalue(kind)) as on:
        assert on.table("Person", columns=["name"], where="age > 30").count() == 2
        on.views()
        assert on.session.sql("SELECT count(*) AS n FROM Person").collect()[0]["n"] == 3
        done = on.export(tmp_path / "out", format="jsonl")
        assert done.rows == 4


def test_a_branch_of_its_own_is_loaded_read_and_exported(graph, spark, tmp_path: Path):
    graph.branches.create("draft")
    (tmp_path / "in.csv").write_text("name,age\nBob,21\nDi,50\n")
    source = {"source": tmp_path / "in.csv", "type": "Person", "mode": "merge"}
    change = graph.load(**source, branch="draft", engine="spark", spark=spark).changes[
        "node:Person"
    ]
    assert (change.inserted, change.updated) == (1, 1)
    with graph.spark(spark, branch="draft") as on:
        assert on.table("Person").count() == 4
        assert on.export(tmp_path / "draft", format="jsonl").rows == 5
    read = spark.read.format("omnigraph").option("graph", graph.uri).option("type", "Person")
    assert read.option("branch", "draft").load().count() == 4
    frame = spark.createDataFrame([("Ed", 9)], "name string, age int")
    write = frame.write.format("omnigraph").option("graph", graph.uri).option("type", "Person")
    write.option("branch", "draft").mode("append").save()
    assert graph.snapshot("draft").count("Person") == 5
    assert graph.snapshot().count("Person") == 3
