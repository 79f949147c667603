"""``spark.read.format("omnigraph")`` and ``df.write.format("omnigraph")``."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from reading_cases import TYPES, assert_same, build, pinned_of, rows_of

import omnigraph
from omnigraph.errors import UsageError
from omnigraph.rules.table_delta import WriteMode
from omnigraph.spark.datasource import Options, read_options, register
from omnigraph.spark.sessions import pipeline_session

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
PEOPLE = """
node Person { name: String @key  age: I32?  worth: U64?  since: DateTime? }
node Log { line: String }
edge Knows: Person -> Person { weight: F32? }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    return build(tmp_path_factory.mktemp("datasource") / "graph")


@pytest.fixture
def people(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "people", PEOPLE) as graph:
        graph.load([{"name": n, "age": i} for i, n in enumerate("abcdef")], type="Person")
        yield graph


@pytest.fixture
def registered(spark):
    register(spark)
    return spark


def reader(spark, graph: omnigraph.Graph, type_name: str, /, **options: str):
    source = spark.read.format("omnigraph").option("graph", graph.uri).option("type", type_name)
    return source.options(**options)


def writer(frame, graph: omnigraph.Graph, type_name: str, *, mode: str = "append", **options: str):
    target = frame.write.format("omnigraph").option("graph", graph.uri).option("type", type_name)
    return target.options(**options).mode(mode)


def message_of(action: Any) -> str:
    with pytest.raises(Exception) as caught:
        action()
    return str(caught.value)


# -- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TYPES)
def test_every_type_reads_as_locally(name: str, graph, registered):
    frame = reader(registered, graph, name).load()
    found = rows_of(frame, pinned_of(graph).type(name))
    assert found.equals(graph.snapshot().rows(name).to_arrow())


def test_columns_by_option_and_by_schema(graph, registered):
    thing = graph.catalog.nodes["Thing"]
    expected = graph.snapshot().rows("Thing", ["huge", "name"]).to_arrow()
    by_option = reader(registered, graph, "Thing", columns="huge, name").load()
    by_schema = reader(registered, graph, "Thing").schema("huge decimal(20,0), name string").load()
    assert by_option.columns == by_schema.columns == ["huge", "name"]
    assert rows_of(by_option, thing).equals(expected)
    assert rows_of(by_schema, thing).equals(expected)
    # The plan shows that these are all the columns that the source is asked for.
    plan = plan_of(by_option.where("huge is not null"))
    assert "huge" in plan and "name" in plan and "image" not in plan


def plan_of(frame) -> str:
    import contextlib
    import io

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()


def test_a_condition_by_option(graph, registered):
    frame = reader(registered, graph, "Thing", columns="id", where="small > 5 and huge < 50").load()
    expected = [
        r["id"]
        for r in graph.snapshot().rows("Thing").to_dicts()
        if (r["small"] or 0) > 5 and r["huge"] is not None and r["huge"] < 50
    ]
    assert expected and [r["id"] for r in frame.collect()] == expected
    # It narrows the DataFrame for good, whatever is asked of it afterwards.
    assert frame.where("id = 'nobody'").count() == 0 and frame.count() == len(expected)
    told = message_of(lambda: reader(registered, graph, "Thing", where="smal > 5").load())
    assert "node type `Thing` has no property `smal`" in told


def test_a_commit_is_read_as_it_was_and_a_frame_keeps_its_snapshot(people, registered):
    first = people.snapshot()
    frame = reader(registered, people, "Person", columns="name").load()
    assert frame.count() == 6
    people.load([{"name": "z"}], type="Person")
    assert frame.count() == 6  # The snapshot was chosen when the frame was made.
    assert reader(registered, people, "Person").load().count() == 7
    old = reader(registered, people, "Person", commit=first.commit.id).load()
    assert rows_of(old, people.catalog.nodes["Person"]).equals(first.rows("Person").to_arrow())
    same = registered.read.format("omnigraph").options(
        **read_options(pinned_of(people, first), "Person")
    )
    assert same.load().count() == 6
    assert reader(registered, people, "Person", branch="main").load().count() == 7


def test_a_path_names_the_graph_and_edges_answer_in_any_case(graph, registered):
    frame = registered.read.format("omnigraph").option("type", "linked").load(graph.uri)
    assert frame.count() == graph.snapshot().count("Linked")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"graph": "/no/such/place"}, "no graph at /no/such/place"),
        ({"graph": ""}, "no graph named"),
        ({"type": "Thnig"}, "did you mean `Thing`?"),
        ({"type": ""}, "no type named"),
        ({"branch": "x"}, "no branch 'x'"),
        ({"commit": "ZZZ"}, "no commit ZZZ on branch 'main'"),
        ({"brnch": "x"}, "did you mean `branch`?"),
        ({"columns": "id, nme"}, "Thing has no column 'nme'"),
        ({"pushdown": "perhaps"}, "use true or false"),
    ],
)
def test_mistakes_are_told_when_the_frame_is_made(options, told: str, graph, registered):
    assert told in message_of(lambda: reader(registered, graph, "Thing", **options).load())


@pytest.mark.parametrize(
    ("schema", "told"),
    [("nme string", "did you mean `name`?"), ("huge bigint", "huge is decimal(20,0) in Spark")],
)
def test_a_schema_cannot_change_what_columns_are(schema: str, told: str, graph, registered):
    frame = reader(registered, graph, "Thing").schema(schema).load()
    assert told in message_of(frame.collect)


def test_options_without_spark(tmp_path: Path):
    given = {"Graph": str(tmp_path), "TYPE": "P", "Columns": "a , b", "MODE": "Merge"}
    read = Options.of(given, {})
    assert read.columns == ("a", "b") and read.mode is WriteMode.MERGE and not read.pushdown
    with pytest.raises(UsageError, match="unknown load mode 'upsert'"):
        Options.of({**given, "mode": "upsert"}, {})
    there = {"graph": "s3://b/p", "type": "P", "AWS_ACCESS_KEY_ID": "k", "aws_region": "r"}
    location = Options.of(there, {"AWS_REGION": "other", "AWS_SECRET_ACCESS_KEY": "s"}).location
    assert location.options["aws_access_key_id"] == "k" and location.options["aws_region"] == "r"
    assert location.options["aws_secret_access_key"] == "s"


# -- filters -------------------------------------------------------------------------------------


@pytest.fixture
def pushing(registered):
    before = registered.conf.get(PUSHDOWN)
    registered.conf.set(PUSHDOWN, "true")
    yield registered
    registered.conf.set(PUSHDOWN, before)


FILTERS = (
    "small > 5 and small <= 40",
    "name = 't7'",
    "name in ('t7', 't8', 'nobody')",
    "count = 4294967295",
    "huge > 9223372036854775807",
    "ratio = 0.5",
    "weight = 0.0",
    "born < date'2000-01-01'",
    "seen >= timestamp'1970-01-01 00:00:00Z'",
    "not flag",
    "name like 't1%' and name not like '%5%'",
    "small is null or big is null",
    "small <=> null",
    "not (small <=> 7)",
    "place is not null and size(names) = 2",
    "small not in (1, 2, 3)",
)


@pytest.mark.parametrize("condition", FILTERS)
def test_filters_that_are_pushed_down_keep_what_spark_keeps(condition: str, graph, pushing):
    columns = "id, name, flag, small, big, count, huge, ratio, weight, born, seen, place, names"
    plain = reader(pushing, graph, "Thing", columns=columns).load().where(condition)
    pushed = (
        reader(pushing, graph, "Thing", columns=columns, pushdown="true").load().where(condition)
    )
    expected = rows_of(plain, graph.catalog.nodes["Thing"])
    assert 0 < expected.num_rows < graph.snapshot().count("Thing")
    assert rows_of(pushed, graph.catalog.nodes["Thing"]).equals(expected)


def test_a_pushed_filter_leaves_spark_nothing_to_do(graph, pushing):
    frame = reader(pushing, graph, "Thing", columns="id, small, count", pushdown="true").load()
    assert " Filter (" not in plan_of(frame.where("small > 5 and count < 7"))
    assert " Filter " in plan_of(frame.where("id like '%5'"))
    without = reader(pushing, graph, "Thing", columns="id, small, count").load()
    assert " Filter (" in plan_of(without.where("small > 5"))


def test_spark_keeps_pushed_filters_for_the_next_query_which_is_why_they_are_off(graph, pushing):
    """If this fails, Spark is mended, and filters can be pushed down without being asked for."""
    count = graph.snapshot().count("Thing")
    right = reader(pushing, graph, "Thing", columns="id, small").load()
    assert right.where("small > 5").count() < count == right.count()
    wrong = reader(pushing, graph, "Thing", columns="id, small", pushdown="true").load()
    assert wrong.where("small > 5").count() == wrong.count() < count


def test_pushing_where_the_session_does_not_allow_it_is_refused(graph, registered):
    registered.conf.set(PUSHDOWN, "false")
    frame = reader(registered, graph, "Thing", columns="id", pushdown="true").load()
    assert PUSHDOWN in message_of(frame.collect)


# -- writing -------------------------------------------------------------------------------------


def parts_left(graph: omnigraph.Graph) -> list[Path]:
    return [p for p in Path(graph.uri, "_parts").rglob("*") if p.is_file()]


def test_a_frame_is_appended_as_one_commit(people, registered):
    frame = registered.range(0, 1000, 1, 4).selectExpr(
        "concat('n', id) as name", "cast(id as int) as age", "cast(id as decimal(20,0)) as worth"
    )
    before = people.snapshot()
    writer(frame, people, "Person", actor="ann", message="from a frame").save()
    after = people.snapshot()
    assert after.version == before.version + 1
    assert (after.commit.actor, after.commit.message) == ("ann", "from a frame")
    assert after.count("Person") == 1006 and not parts_left(people)
    found = {r["name"]: r for r in after.rows("Person").to_dicts()}
    assert found["n999"]["age"] == 999 and found["n999"]["worth"] == 999


def test_merge_and_overwrite(people, registered):
    some = registered.createDataFrame([("a", 70), ("new", 1)], "name string, age int")
    writer(some, people, "Person").option("mode", "merge").save()
    rows = {r["name"]: r["age"] for r in people.snapshot().rows("Person").to_dicts()}
    assert rows["a"] == 70 and rows["b"] == 1 and rows["new"] == 1 and len(rows) == 7
    writer(some, people, "Person", mode="overwrite").save()
    rows = {r["name"]: r["age"] for r in people.snapshot().rows("Person").to_dicts()}
    assert rows == {"a": 70, "new": 1}
    writer(some.where("false"), people, "Person", mode="overwrite").save()
    assert people.snapshot().count("Person") == 0
    told = message_of(
        lambda: writer(some, people, "Person", mode="overwrite").option("mode", "merge").save()
    )
    assert "contradicts" in told


def test_edges_and_entities_without_a_key(people, registered):
    knows = registered.createDataFrame(
        [("a", "b", 0.5), ("b", "c", None)], "src string, dst string, weight float"
    )
    writer(knows, people, "Knows").save()
    lines = registered.createDataFrame([("x",), ("x",)], "line string")
    writer(lines, people, "Log").save()
    view = people.snapshot()
    assert {(r["src"], r["dst"], r["weight"]) for r in view.rows("Knows").to_dicts()} == {
        ("a", "b", 0.5),
        ("b", "c", None),
    }
    assert view.count("Log") == 2


def test_what_is_read_can_be_written_elsewhere(graph, tmp_path: Path, registered):
    from reading_cases import SCHEMA

    with omnigraph.init(tmp_path / "copy", SCHEMA) as copy:
        for name in ("Thing", "Meter", "Linked"):
            writer(reader(registered, graph, name).load(), copy, name).save()
            expected = graph.snapshot().rows(name).to_arrow()
            assert_same(copy.snapshot().rows(name).to_arrow(), expected)


@pytest.mark.parametrize(
    ("rows", "schema", "told"),
    [
        ([("a", 1)], "name string, age int", "key conflict on Person: 'a' exists already"),
        ([("x", 1)], "name string, agge int", "did you mean"),
        ([("x", "1")], "name string, age string", "column 'age'"),
        ([("x", {"a": 1})], "name string, age map<string,int>", "which no property can hold"),
        ([("x", Decimal(-1))], "name string, worth decimal(20,0)", "-1 is out of range for U64"),
        ([(None, 1)], "name string, age int", "name"),
    ],
)
def test_a_write_that_is_refused_leaves_nothing(rows, schema: str, told: str, people, registered):
    before = people.snapshot()
    frame = registered.createDataFrame(rows, schema)
    assert told in message_of(writer(frame, people, "Person").save)
    assert people.snapshot().commit == before.commit and not parts_left(people)


def test_a_task_that_fails_leaves_nothing(people, registered):
    # One task: another may end its part after the write was given up, and cleanup takes that.
    frame = registered.range(0, 10, 1, 1).selectExpr(
        "concat('n', id) as name",
        "cast(if(id = 9, raise_error('half-way'), id) as int) as age",
    )
    assert "half-way" in message_of(writer(frame, people, "Person").save)
    assert people.snapshot().count("Person") == 6 and not parts_left(people)


def test_a_commit_is_never_written_to(people, registered):
    frame = registered.createDataFrame([("x",)], "name string")
    told = message_of(writer(frame, people, "Person", commit=people.snapshot().commit.id).save)
    assert "a commit is never written to" in told


# -- elsewhere -----------------------------------------------------------------------------------


def test_on_s3_with_settings_as_options(s3_root: str, s3_server, registered):
    settings = {k: v for k, v in s3_server.env().items() if k.startswith("AWS_")}
    with omnigraph.init(s3_root, PEOPLE) as graph:
        graph.load([{"name": "a", "age": 5}], type="Person")
        frame = registered.createDataFrame([("b", 6)], "name string, age int")
        writer(frame, graph, "Person", **settings).save()
        found = reader(registered, graph, "Person", columns="name, age", **settings).load()
        assert sorted(map(tuple, found.collect())) == [("a", 5), ("b", 6)]
        assert not list(graph._repository.objects.names("_parts"))


def reads_and_writes(session, people: omnigraph.Graph) -> None:
    with pipeline_session(session) as pipeline:
        register(pipeline.spark)
        frame = reader(pipeline.spark, people, "Person", columns="name", where="age > 3").load()
        assert sorted(r["name"] for r in frame.collect()) == ["e", "f"]
        writer(frame.selectExpr("concat(name, '2') as name"), people, "Person").save()
        assert people.snapshot().count("Person") == 8


def test_a_connect_session_reads_and_writes(people, spark_connect):
    reads_and_writes(spark_connect, people)


def test_a_cluster_reads_and_writes(people, on_cluster):
    reads_and_writes(on_cluster, people)


def test_batches_of_a_write_keep_their_types(people):
    from omnigraph.input.parts import FrameWrite, load_parts, remove_parts, write_part

    schema = pa.schema([("name", pa.string()), ("worth", pa.decimal128(20, 0))])
    write = FrameWrite(
        location=people._repository.location,
        type_name="Person",
        mode=WriteMode.APPEND,
        branch="main",
        actor=None,
        message=None,
        write_id="w1",
        schema=schema,
    )

    def batch(*rows: tuple[str, int]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(
            [{"name": n, "worth": Decimal(w)} for n, w in rows], schema
        )

    lost = write_part(write, [batch(("x", 1))])  # An attempt whose answer never arrived.
    first = write_part(write, [batch(("x", 1)), batch(), batch(("y", 2**64 - 1))])
    assert write_part(write, [batch()]) is None and lost and first and lost != first
    load_parts(write, [first])
    rows = {r["name"]: r["worth"] for r in people.snapshot().rows("Person").to_dicts()}
    assert rows["x"] == 1 and rows["y"] == 2**64 - 1 and len(rows) == 8
    assert len(parts_left(people)) == 2
    remove_parts(write)
    assert not parts_left(people)
