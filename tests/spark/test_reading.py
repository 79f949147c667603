"""Tables of a snapshot as DataFrames: the rows, columns and conditions of the local engine."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from reading_cases import TYPES, assert_same, build, pinned_of, rows_of

import omnigraph
from omnigraph.errors import InternalError, QueryError, UsageError
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.query.compile import condition_of
from omnigraph.query.pinned_scan import PinnedScan
from omnigraph.spark.handle import graph_tables, register_views, view_names
from omnigraph.spark.sessions import pipeline_session
from omnigraph.spark.tables import table_frame
from omnigraph.storage import pieces
from omnigraph.storage.pieces import open_pinned
from omnigraph.testing.proxy import CountingProxy


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    return build(tmp_path_factory.mktemp("reading") / "graph")


@pytest.fixture(scope="module")
def pinned(graph: omnigraph.Graph) -> PinnedGraph:
    return pinned_of(graph)


def key(graph: omnigraph.Graph, name: str) -> str:
    return (graph.catalog.nodes.get(name) or graph.catalog.edges[name]).table_key


def scan_rows(scan: PinnedScan) -> pa.Table:
    """What executors would read, read here."""
    batches = [batch for piece in scan.pieces() for batch in scan.batches(piece)]
    return pa.Table.from_batches(batches, scan.schema)


# -- the same rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TYPES)
def test_every_type_reads_as_locally(name: str, graph, pinned, spark):
    frame = table_frame(spark, pinned, key(graph, name))
    found = rows_of(frame, pinned.type(name))
    assert found.equals(graph.snapshot().rows(name).to_arrow())  # Also in the same order.


def test_a_type_without_a_table_is_an_empty_frame_of_the_right_schema(pinned, spark):
    assert "edge:NeverLinked" not in pinned.pins
    frame = table_frame(spark, pinned, "edge:NeverLinked")
    assert frame.schema.simpleString() == "struct<id:string,src:string,dst:string>"
    assert frame.count() == 0


def test_a_pinned_graph_survives_a_trip(pinned):
    copy = pickle.loads(pickle.dumps(pinned))
    assert copy == pinned
    assert "secret" not in repr(pinned) and len(pickle.dumps(pinned)) < 20_000


def test_an_old_commit_is_read_as_it_was(tmp_path: Path, spark):
    with omnigraph.init(tmp_path / "g", "node P { name: String @key  age: I32? }") as graph:
        graph.load([{"name": "a", "age": 1}, {"name": "b"}], type="P")
        before = graph.snapshot()
        old = pinned_of(graph, before)
        frame = table_frame(spark, old, "node:P", ["name", "age"])
        graph.load([{"name": "a", "age": 2}, {"name": "c"}], type="P", mode="merge")
        graph.mutate('delete P where name = "b"')
        # Made before and after the writes: both show what the commit shows.
        assert rows_of(frame, old.type("P")).to_pylist() == [
            {"name": "a", "age": 1},
            {"name": "b", "age": None},
        ]
        again = rows_of(table_frame(spark, old, "node:P"), old.type("P"))
        assert again.equals(before.rows("P").to_arrow())
        new = rows_of(table_frame(spark, pinned_of(graph), "node:P"), old.type("P"))
        assert_same(new, graph.snapshot().rows("P").to_arrow())


def test_a_moved_graph_is_read_where_it_is(graph, tmp_path: Path, spark):
    import shutil

    moved = tmp_path / "elsewhere"
    shutil.copytree(graph.uri, moved)
    with omnigraph.open(moved) as copy:
        found = rows_of(
            table_frame(spark, pinned_of(copy), "node:Thing"), copy.catalog.nodes["Thing"]
        )
        assert found.equals(graph.snapshot().rows("Thing").to_arrow())


# -- pieces --------------------------------------------------------------------------------------


def test_many_small_fragments_are_one_task_and_large_ones_are_cut(
    pinned, graph, spark, monkeypatch: pytest.MonkeyPatch
):
    scan = PinnedScan(table=pinned.table(pinned.type("Thing")), columns=("id", "small"))
    table = open_pinned(pinned.location, scan.table.name)
    fragments = table.layout.fragments
    assert len(fragments) >= 8 and any(f.deletion for f in fragments)
    assert [p.fragments for p in scan.pieces()] == [tuple(f.id for f in fragments)]
    monkeypatch.setattr(pieces, "PIECE_ROWS", 7)
    cut = scan.pieces()
    assert len(cut) > 30 and {p.rows is None for p in cut} == {True, False}
    whole = rows_of(table_frame(spark, pinned, "node:Thing"), pinned.type("Thing"))
    assert whole.equals(graph.snapshot().rows("Thing").to_arrow())


@pytest.mark.parametrize("rows", [1, 3, 17, 30, 64, 1000])
def test_pieces_are_the_whole_table_however_it_is_cut(
    rows: int, pinned, graph, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pieces, "PIECE_ROWS", rows)
    for name in ("Thing", "Meter", "Linked"):
        scan = PinnedScan(table=pinned.table(pinned.type(name)), columns=("id",))
        expected = graph.snapshot().rows(name, ["id"]).to_arrow()
        assert scan_rows(scan).equals(expected)
        for piece in scan.pieces():
            count = sum(b.num_rows for b in scan.batches(piece))
            assert 0 < count <= max(rows, 1) and (piece.rows is None or count == piece.rows)


def test_wide_rows_make_small_pieces(pinned, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 20_000)
    table = pinned.table(pinned.type("Thing"))
    narrow = PinnedScan(table=table, columns=("id", "small")).pieces()
    wide = PinnedScan(table=table, columns=("id", "image")).pieces()
    assert len(narrow) < len(wide)


# -- columns and conditions ----------------------------------------------------------------------


def test_columns_come_in_the_order_that_was_asked_for(pinned, graph, spark):
    frame = table_frame(spark, pinned, "node:Thing", ["huge", "id", "place"])
    assert frame.columns == ["huge", "id", "place"]
    expected = graph.snapshot().rows("Thing", ["huge", "id", "place"]).to_arrow()
    assert rows_of(frame, pinned.type("Thing")).equals(expected)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["id", "nme"], "Thing has no column 'nme'"),
        (["id", "id"], "named twice"),
        ([], "no column of Thing is named"),
        ("name", "columns is a list of names"),
    ],
)
def test_columns_that_make_no_sense(columns, message: str, pinned):
    with pytest.raises(UsageError, match=message):
        table_frame(None, pinned, "node:Thing", columns)


def test_only_the_columns_that_are_asked_for_are_read(pinned):
    def bytes_read(*columns: str) -> int:
        table = pinned.table(pinned.type("Thing"))
        pieces._opened.clear()  # A fresh handle has read nothing and remembers nothing.
        scan = PinnedScan(table=table, columns=columns)
        before = open_pinned(table.location, table.name).dataset.io_stats_snapshot().read_bytes
        assert scan_rows(scan).num_rows == table.row_count
        after = open_pinned(table.location, table.name).dataset.io_stats_snapshot().read_bytes
        return after - before

    few, all_ = bytes_read("small"), bytes_read("small", "image", "names", "times")
    assert few * 5 < all_


def test_executors_fetch_only_what_is_asked_for(
    s3_proxied_root: str, s3_proxy: CountingProxy, spark
):
    with omnigraph.init(s3_proxied_root, "node P { name: String @key  n: I32  b: Blob }") as graph:
        rows = [{"name": f"p{i}", "n": i, "b": bytes([i % 256]) * 10_000} for i in range(200)]
        graph.load(rows, type="P")
        pinned = pinned_of(graph)

    def received(*columns: str) -> tuple[int, int]:
        frame = table_frame(spark, pinned, "node:P", list(columns))
        s3_proxy.reset()
        found = rows_of(frame, pinned.type("P"))
        assert found.column("n").to_pylist() == list(range(200))
        return found.num_rows, sum(r.bytes_received for r in s3_proxy.requests)

    few, all_ = received("n")[1], received("n", "b")[1]
    assert few < 100_000 and all_ > 2_000_000


WHERE = {
    "small >= 3 and small < 40": True,
    'name = "t7" or name = "t8"': True,
    "flag = true and not (ratio > 1.0)": True,
    'seen < datetime("2000-01-01T00:00:00Z")': True,
    'born = date("9999-12-31")': True,
    "weight = 0.0": True,
    'colour = "red" and names contains "é"': True,
    "count > 4294967294": False,
    "huge = 18446744073709551615": False,
    "place is null": False,
    "huge > 9223372036854775807 and small > 0": True,
    "not (huge >= 9223372036854775808)": False,
    'name starts_with "t1" and count < 50': True,
}
"""Conditions, and whether Lance answers at least a part of them."""


@pytest.mark.parametrize("text", WHERE)
def test_a_condition_keeps_what_the_query_language_would_keep(text: str, graph, pinned):
    thing = pinned.type("Thing")
    condition = condition_of(text, thing, pinned.catalog)
    scan = PinnedScan(table=pinned.table(thing), columns=("id", "sizes"), condition=condition)
    words = " ".join(
        f"$t.{w}" if w in thing.by_name else w for w in text.replace("(", "( ").split()
    )
    kept = graph.query(f"match {{ $t: Thing {words} }} return {{ $t.id as id }} order {{ id }}")
    found = scan_rows(scan)
    assert sorted(found.column("id").to_pylist()) == [row["id"] for row in kept]
    assert 0 < found.num_rows < graph.snapshot().count("Thing")
    assert (scan._pushed is not None) == WHERE[text]
    everything = graph.snapshot().rows("Thing", ["id", "sizes"]).to_arrow()
    mask = pc.is_in(everything["id"], found["id"].combine_chunks())
    assert found.equals(everything.filter(mask))


def test_conditions_of_every_kind_on_spark(graph, pinned, spark):
    thing = pinned.type("Thing")
    plain = table_frame(spark, pinned, "node:Thing", ["id", "small"], pc.field("small") > 5)
    typed = table_frame(
        spark,
        pinned,
        "node:Thing",
        ["id", "small"],
        condition_of("small > 5", thing, pinned.catalog),
    )
    both = table_frame(
        spark,
        pinned,
        "node:Thing",
        ["id"],
        condition_of("small > 5 and huge < 50", thing, pinned.catalog),
    )
    rows = [r for r in graph.snapshot().rows("Thing").to_dicts() if (r["small"] or 0) > 5]
    expected = [(r["id"], r["small"]) for r in rows]
    assert [tuple(r) for r in plain.collect()] == [tuple(r) for r in typed.collect()] == expected
    smaller = [r["id"] for r in rows if r["huge"] is not None and r["huge"] < 50]
    assert [r[0] for r in both.collect()] == smaller


def test_a_table_that_lance_takes_no_conditions_on(graph, pinned, spark):
    meter = pinned.type("Meter")
    with pytest.raises(UsageError, match="lists of unsigned numbers"):
        table_frame(spark, pinned, "node:Meter", ["id"], pc.field("unit") == "bar")
    condition = condition_of('unit = "bar" and readings contains 4294967295', meter, pinned.catalog)
    frame = table_frame(spark, pinned, "node:Meter", ["id", "limits"], condition)
    expected = [
        r["id"]
        for r in graph.snapshot().rows("Meter").to_dicts()
        if r["unit"] == "bar" and 2**32 - 1 in (r["readings"] or [])
    ]
    assert expected and [r["id"] for r in frame.collect()] == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("smal = 1", QueryError),
        ("small = ", QueryError),
        ("small = 1 delete Thing where small = 2", UsageError),
        ("", QueryError),
    ],
)
def test_conditions_that_are_none(text: str, error: type[Exception], pinned):
    with pytest.raises(error):
        condition_of(text, pinned.type("Thing"), pinned.catalog)


def test_findings_in_a_condition_are_shown_where_they_are(pinned):
    with pytest.raises(QueryError) as caught:
        condition_of("small = 1 and\nsmal = 2", pinned.type("Thing"), pinned.catalog)
    (found,) = caught.value.diagnostics
    assert (found.line, found.column, found.source_line) == (2, 1, "smal = 2")


def test_a_parameter_has_its_value(pinned, graph, spark):
    from omnigraph.query import typed
    from omnigraph.query.exec.evaluate import Values

    kind = pinned.type("Thing").by_name["small"].type
    condition = typed.Compare(
        op="=",
        left=typed.Prop(variable="x", column="small", type=kind),
        right=typed.Param(name="n", type=kind),
    )
    values = Values(params={"n": 2**31 - 1}, now=datetime(2026, 1, 1, tzinfo=UTC))
    frame = table_frame(spark, pinned, "node:Thing", ["id"], condition, values=values)
    expected = [
        r["id"] for r in graph.snapshot().rows("Thing").to_dicts() if r["small"] == 2**31 - 1
    ]
    assert [r["id"] for r in frame.collect()] == expected


def test_conditions_of_two_kinds_do_not_mix(pinned):
    table = pinned.table(pinned.type("Thing"))
    scan = PinnedScan(table=table, columns=("id",), condition=pc.field("small") > 1)
    with pytest.raises(InternalError):
        scan.narrowed([condition_of("small > 1", table.type, pinned.catalog)])


# -- addresses -----------------------------------------------------------------------------------


def test_addresses_say_where_rows_lie_and_identity_outlives_an_update(tmp_path: Path, spark):
    with omnigraph.init(tmp_path / "g", "node P { name: String @key  age: I32? }") as graph:
        graph.load([{"name": n, "age": 1} for n in "abcd"], type="P")
        graph.load([{"name": n, "age": 1} for n in "ef"], type="P")
        graph.mutate('delete P where name = "b"')

        def places() -> dict[str, tuple[int, int]]:
            frame = table_frame(spark, pinned_of(graph), "node:P", ["name"], with_address=True)
            assert frame.columns == ["name", "_rowaddr", "_rowid"]
            return {row[0]: (row[1], row[2]) for row in frame.collect()}

        before = places()
        table = graph._repository.table(graph.snapshot()._snapshot.pins["node:P"])
        assert sorted(a for a, _ in before.values()) == sorted(
            table.layout.all_addresses().tolist()
        )
        graph.load([{"name": "c", "age": 2}], type="P", mode="merge")
        after = places()
        assert after["c"][0] != before["c"][0] and after["c"][1] == before["c"][1]
        assert {n: p for n, p in after.items() if n != "c"} == {
            n: p for n, p in before.items() if n != "c"
        }
        alone = table_frame(spark, pinned_of(graph), "node:P", [], with_address=True)
        assert alone.columns == ["_rowaddr", "_rowid"] and alone.count() == 5


# -- views ---------------------------------------------------------------------------------------


def test_sql_over_all_types_of_a_snapshot(graph, pinned, spark):
    names = register_views(spark, pinned, prefix="old_")
    assert names == [f"old_{t}" for t in TYPES]
    counted = spark.sql(
        "select count(*) from old_Linked l join old_Thing t on t.id = l.src"
    ).collect()
    (expected,) = graph.query("match { $a: Thing  $a $e:linked $b } return { count($e) as n }")
    assert counted[0][0] == expected["n"] > 0
    (alone,) = register_views(
        spark, pinned, "some_", ["linked"], columns={"Linked": ["src", "dst"]}
    )
    assert alone == "some_Linked" and spark.table(alone).columns == ["src", "dst"]
    for name in [*names, alone]:
        spark.catalog.dropTempView(name)


def test_a_node_and_an_edge_of_one_name_have_two_views(tmp_path: Path):
    schema = "node Post { t: String @key }\nnode POST { t: String @key }\nedge Post: Post -> Post"
    with (
        omnigraph.init(tmp_path / "g", schema) as graph,
        pytest.raises(UsageError, match="same name"),
    ):
        view_names(pinned_of(graph))
    schema = "node Post { t: String @key }\nedge Post: Post -> Post"
    with omnigraph.init(tmp_path / "h", schema) as graph:
        assert view_names(pinned_of(graph)) == {"node:Post": "Post", "edge:Post": "Post_edge"}


def test_types_are_a_list(pinned):
    with pytest.raises(UsageError, match="types is a list"):
        graph_tables(None, pinned, "Thing")


# -- elsewhere -----------------------------------------------------------------------------------


def reads_the_same(session, graph: omnigraph.Graph, pinned: PinnedGraph) -> None:
    with pipeline_session(session) as pipeline:
        for name in ("Thing", "Meter", "Never", "Linked"):
            frame = table_frame(pipeline.spark, pinned, key(graph, name))
            found = rows_of(frame, pinned.type(name))
            assert found.equals(graph.snapshot().rows(name).to_arrow())
        condition = condition_of("small > 5 and huge < 50", pinned.type("Thing"), pinned.catalog)
        kept = table_frame(pipeline.spark, pinned, "node:Thing", ["id"], condition)
        assert 0 < kept.count() < graph.snapshot().count("Thing")


def test_a_connect_session_reads_the_same(graph, pinned, spark_connect):
    reads_the_same(spark_connect, graph, pinned)


def test_a_cluster_reads_the_same(graph, pinned, on_cluster):
    reads_the_same(on_cluster, graph, pinned)
