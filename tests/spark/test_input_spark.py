"""An input read by Spark: rows, places, ids and problems are those of the local loader, it is read
once, and reading it again gives the same."""

from __future__ import annotations

import gzip
import os
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph import InputError, NotFoundError, StorageError
from omnigraph.input.sources import sort_out
from omnigraph.spark import input as input_module
from omnigraph.spark.arrow import carried_schema, spark_schema
from omnigraph.spark.errors import task, translated
from omnigraph.spark.input import ParsedInput, parse_input
from omnigraph.spark.sessions import Pipeline, pipeline_session
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "input"))
from input_cases import (
    CATALOG,
    RUN,
    Parsed,
    assert_same,
    in_order,
    parse_here,
    random_text,
    read_locally,
    rows_schema,
)


@pytest.fixture
def pipeline(spark) -> Pipeline:
    return pipeline_session(spark)


@pytest.fixture
def parse(pipeline):
    kept: list[ParsedInput] = []

    def run(source, *, type_name=None, mapping=None, **options) -> ParsedInput:
        given = sort_out(source, type_name=type_name, columns=mapping)
        kept.append(parse_input(pipeline, given, CATALOG, run_id=RUN, **options))
        return kept[-1]

    yield run
    for one in kept:
        one.unpersist()


def frame_of(parsed: ParsedInput, key: str):
    """The rows of a type as a DataFrame."""
    intake, schema = parsed.intake(), rows_schema(CATALOG.table(key))
    frame, read = intake.frame, intake.read

    def unpack(batches):  # A function in a function: it is sent by its code, not by its name.
        from omnigraph.spark.arrow import carried_schema, to_spark

        for found, table in read(batches):
            if found == key:
                for batch in table.cast(schema).to_batches():
                    yield to_spark(batch, carried_schema(schema))

    return frame.mapInArrow(task(unpack), spark_schema(schema))


def rows_of(parsed: ParsedInput, key: str) -> pa.Table:
    schema = carried_schema(rows_schema(CATALOG.table(key)))
    return in_order(frame_of(parsed, key).toArrow().cast(schema))


def as_parsed(parsed: ParsedInput) -> Parsed:
    """For comparison with the local loader."""
    rows = {key: rows_of(parsed, key) for key in parsed.keys}
    return Parsed(
        plan=None, stats=[], rows=rows, problems=parsed.problems(), batches=[], ledger=None
    )


def bare(*notes: str) -> str:
    return "".join(f'{{"type":"Bare","data":{{"note":"{note}"}}}}\n' for note in notes)


# --- files --------------------------------------------------------------------------------------


def test_jsonl_in_many_ranges_is_what_the_local_loader_reads(parse, tmp_path: Path):
    paths = [tmp_path / f"{n}.jsonl" for n in range(3)]
    for n, path in enumerate(paths):
        path.write_bytes(random_text(Random(n), lines=25, bad=0))
    parsed = parse([str(p) for p in paths], range_bytes=1024)
    assert parsed.files == tuple(str(p) for p in paths)
    for path in paths:
        path.rename(path.with_suffix(".gone"))  # from here on only what was kept is read
    ours = as_parsed(parsed)
    for path in paths:
        path.with_suffix(".gone").rename(path)
    assert_same(ours, paths)
    assert {key: parsed.row_count(key) for key in parsed.keys} == {
        key: rows.num_rows for key, rows in ours.rows.items()
    }
    assert parsed.ids_fresh("edge:Knows", CATALOG) and not parsed.ids_fresh("node:Vessel", CATALOG)
    assert parsed.error() is None


def test_problems_are_those_of_the_local_loader_and_all_of_them_are_counted(parse, tmp_path: Path):
    paths = [tmp_path / f"{n}.jsonl" for n in range(2)]
    for n, path in enumerate(paths):
        path.write_bytes(bare("x").encode() + random_text(Random(n), lines=120, bad=0.5))
    parsed = parse([str(p) for p in paths], range_bytes=1024)
    assert [p.to_dict() for p in parsed.problems()] == read_locally(paths)
    here = parse_here([str(p) for p in paths])
    assert parsed.problem_count == len(here.problems) > 60
    assert parsed.problems(45) == here.problems[:45]
    frame = parsed.problem_frame().orderBy("file", "line").collect()
    assert len(frame) == parsed.problem_count
    for row in frame[:: len(frame) // 7]:
        line = Path(row["file"]).read_bytes().split(b"\n")[row["line"] - 1]
        assert row["text"] == line.removesuffix(b"\r").decode(errors="replace")
    error = parsed.error(3)
    assert error is not None and error.details["problem_count"] == parsed.problem_count
    assert error.message.splitlines()[-1] == f"and {parsed.problem_count - 3} more problems"


def test_reading_again_gives_the_same_ids(parse, tmp_path: Path):
    path = tmp_path / "in.jsonl"
    path.write_text(bare(*(str(n) for n in range(300))))
    parsed = parse(str(path), range_bytes=1024)
    first = rows_of(parsed, "node:Bare")
    assert first.equals(rows_of(parsed, "node:Bare"))
    parsed.unpersist()  # now every task reads its part of the file again
    assert first.equals(rows_of(parsed, "node:Bare"))
    other_cuts = parse(str(path))
    assert first.equals(rows_of(other_cuts, "node:Bare"))
    assert first["id"].to_pylist() == sorted(set(first["id"].to_pylist()))


def test_an_input_that_changed_before_it_is_read_again_fails_and_loses_no_row(
    parse, tmp_path: Path
):
    path = tmp_path / "in.jsonl"
    path.write_text(bare("a", "b"))
    parsed = parse(str(path))
    parsed.unpersist()
    path.write_text(bare("a"))
    with (
        pytest.raises(InputError, match=r"in\.jsonl: the input changed while it was being loaded"),
        translated(),
    ):
        frame_of(parsed, "node:Bare").count()


def test_a_large_file_that_cannot_be_cut_is_spread_over_tasks(parse, tmp_path: Path, monkeypatch):
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(random_text(Random(3), lines=100, bad=0)))
    monkeypatch.setattr(input_module, "_TASK_BYTES", 3 * path.stat().st_size)
    parsed = parse(str(path))
    here = parse_here(str(path))
    for key in here.rows:
        assert rows_of(parsed, key).equals(here.rows[key])


def test_a_packed_file_that_is_cut_off_is_a_problem(parse, tmp_path: Path):
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress(random_text(Random(3), lines=200, bad=0))[:-100])
    (problem,) = parse([str(path)]).problems()
    assert problem.source == str(path)
    assert problem.message.startswith("the gzip data is cut off after line ")


def test_a_missing_file_is_told_before_a_task_runs(parse, tmp_path: Path):
    with pytest.raises(NotFoundError, match=r"gone\.jsonl: no such file"):
        parse([str(tmp_path / "gone.jsonl")])


def test_an_empty_input(parse, tmp_path: Path):
    (tmp_path / "in.jsonl").write_text("")
    parsed = parse(str(tmp_path / "in.jsonl"))
    assert (parsed.keys, parsed.problem_count, parsed.problems()) == ((), 0, [])


def test_many_formats_in_one_input(parse, spark, tmp_path: Path):
    (tmp_path / "knows.csv").write_text('from,to\n"a\nb",c\n' + "d,e\n" * 20)
    pq.write_table(pa.table({"text": ["x", "y"]}), tmp_path / "bare.parquet", row_group_size=1)
    named = spark.createDataFrame([("n1", 5), ("n2", None)], "key string, rank bigint")
    parsed = parse(
        {
            "Knows": tmp_path / "knows.csv",
            "Bare": [tmp_path / "bare.parquet"],
            "Named": named.repartition(1),
        },
        mapping={"Bare": {"note": "text"}, "Named": {"id": "key", "rank": "rank"}},
        range_bytes=12,
    )
    assert parsed.keys == ("edge:Knows", "node:Bare", "node:Named")
    assert parsed.files[2] == "Named" and parsed.problem_count == 0
    knows = rows_of(parsed, "edge:Knows")
    assert knows["src"].to_pylist()[:2] == ["a\nb", "d"]
    assert knows["_line"].to_pylist() == [2, *range(4, 24)]
    assert rows_of(parsed, "node:Bare").select(["note", "_file", "_line"]).to_pylist() == [
        {"note": "x", "_file": 1, "_line": 1},
        {"note": "y", "_file": 1, "_line": 2},
    ]
    found = rows_of(parsed, "node:Named").to_pylist()
    assert sorted((r["id"], r["rank"], r["_file"]) for r in found) == [
        ("n1", 5, 2),
        ("n2", None, 2),
    ]


# --- DataFrames ---------------------------------------------------------------------------------


def test_a_frame_keeps_its_order_as_lines_and_all_of_its_types(parse, spark):
    frame = spark.range(0, 100, 1, 3).selectExpr(
        "concat('t', id) as s",
        "cast(cast(id as string) as binary) as b",
        "id % 2 = 0 as t",
        "cast(id as int) as i",
        "id as u",
        "cast('18446744073709551615' as decimal(20,0)) as w",
        "cast(id as float) as f",
        "date'2020-02-29' as on",
        "timestamp'2020-01-01 12:00:00 UTC' as at",
        "array(1.5d, 2.5d, cast(id as double)) as v",
        "array(cast(id as int)) as is",
    )
    parsed = parse(frame, type_name="All")
    rows = rows_of(parsed, "node:All")
    assert rows["_line"].to_pylist() == list(range(1, 101))
    assert rows["s"].to_pylist() == [f"t{n}" for n in range(100)]
    last = rows.to_pylist()[99]
    assert last["w"] == Decimal(2**64 - 1) and last["u"] == 99 and last["v"] == [1.5, 2.5, 99.0]
    assert last["at"] == datetime(2020, 1, 1, 12, tzinfo=UTC)
    parsed.unpersist()
    assert rows.equals(rows_of(parsed, "node:All"))
    # What this reads can be loaded again.
    again = parse(frame_of(parsed, "node:All").drop("_file", "_line", "id"), type_name="All")
    assert again.problem_count == 0 and again.row_count("node:All") == 100


def test_bad_rows_of_a_frame_have_their_number(parse, spark):
    frame = spark.range(0, 100, 1, 3).selectExpr("if(id % 40 = 39, id * 100000000, id) as i")
    parsed = parse(frame, type_name="All")
    assert [(p.source, p.line) for p in parsed.problems()] == [("All", 40), ("All", 80)]
    assert "3900000000 is out of range for I32" in parsed.problems(1)[0].message


def test_columns_of_a_frame_that_do_not_fit_are_refused_before_a_task_runs(parse, spark):
    with pytest.raises(InputError, match="All: column 'i': values of Arrow type string cannot"):
        parse(spark.createDataFrame([("x",)], "i string"), type_name="All")
    with pytest.raises(InputError, match='Bare has no property "nota"'):
        parse(spark.createDataFrame([("x",)], "nota string"), type_name="Bare")
    with pytest.raises(InputError, match="column 'note' occurs twice"):
        parse(spark.sql("select 'a' as note, 'b' as note"), type_name="Bare")


def test_names_of_columns_are_taken_as_they_are(parse, spark):
    frame = spark.sql("select 'a' as `x.y`, 'b' as NOTE, 'c' as note, 'd' as other, 'e' as other")
    parsed = parse(frame, type_name="Bare", mapping={"note": "note", "id": "x.y"})
    found = rows_of(parsed, "node:Bare").select(["id", "note"]).to_pylist()
    assert found == [{"id": "a", "note": "c"}]
    assert not parsed.ids_fresh("node:Bare", CATALOG)


def test_a_frame_without_rows_mentions_its_type(parse, spark):
    parsed = parse(spark.createDataFrame([], "note string"), type_name="Bare")
    assert parsed.keys == ("node:Bare",) and rows_of(parsed, "node:Bare").num_rows == 0


# --- stores and sessions ------------------------------------------------------------------------


def test_files_in_a_bucket(parse, s3_root: str, tmp_path: Path):
    content = random_text(Random(1), lines=30, bad=0)
    objects = Objects(locate(s3_root))
    objects.put("in/a.jsonl", content)
    objects.put("in/b.jsonl.gz", gzip.compress(content))
    objects.put("in/_SUCCESS", b"junk")
    local = tmp_path / "a.jsonl"
    local.write_bytes(content)
    parsed = parse(f"{s3_root}/in", range_bytes=1024)
    assert parsed.files == (f"{s3_root}/in/a.jsonl", f"{s3_root}/in/b.jsonl.gz")
    here = parse_here([str(local), str(local)])
    for key in here.rows:
        assert rows_of(parsed, key).equals(here.rows[key])
    assert parse(f"{s3_root}/in/*.gz").files == (f"{s3_root}/in/b.jsonl.gz",)
    with pytest.raises(NotFoundError, match="no such file"):
        parse(f"{s3_root}/in/gone.jsonl")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"note": ["x"] * 500}), sink, row_group_size=200)
    objects.put("bare.parquet", sink.getvalue().to_pybytes())
    table = parse(f"{s3_root}/bare.parquet", type_name="Bare", range_bytes=1)
    assert rows_of(table, "node:Bare")["_line"].to_pylist() == list(range(1, 501))


def test_a_file_in_a_bucket_that_changes_is_a_problem(pipeline, s3_root: str, monkeypatch):
    objects = Objects(locate(s3_root))
    objects.put("a.jsonl", bare("a", "b").encode())
    plan = input_module.plan_input

    def plan_and_change(*args, **options):
        found = plan(*args, **options)
        objects.put("a.jsonl", bare("a", "c").encode())
        return found

    monkeypatch.setattr(input_module, "plan_input", plan_and_change)
    parsed = parse_input(pipeline, sort_out(f"{s3_root}/a.jsonl"), CATALOG, run_id=RUN)
    (problem,) = parsed.problems()
    assert problem.message == "the file changed while it was being loaded"
    parsed.unpersist()


def test_a_bucket_that_does_not_answer_is_an_error_of_the_store(parse, monkeypatch, s3_root: str):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    with pytest.raises(StorageError):
        parse(f"{s3_root}/a.jsonl")


def test_through_connect_it_is_kept_and_the_same(spark_connect, tmp_path: Path):
    content = random_text(Random(7), lines=30, bad=0)
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    pipeline = pipeline_session(spark_connect)
    parsed = parse_input(pipeline, sort_out(path), CATALOG, run_id=RUN, range_bytes=1024)
    here = parse_here(str(path))
    os.rename(path, tmp_path / "gone")  # what was kept is read, and nothing else
    for key in here.rows:
        assert rows_of(parsed, key).equals(here.rows[key])
    frame = spark_connect.range(0, 20, 1, 3).selectExpr("cast(id as string) as note")
    table = parse_input(pipeline, sort_out(frame, type_name="Bare"), CATALOG, run_id=RUN)
    assert rows_of(table, "node:Bare")["note"].to_pylist() == [str(n) for n in range(20)]
    bad = tmp_path / "bad.jsonl"
    bad.write_text(bare("x") + "{\n")
    wrong = parse_input(pipeline, sort_out(bad), CATALOG, run_id=RUN)
    assert [(p.line, p.column) for p in wrong.problems()] == [(2, 2)]
    for one in (parsed, table, wrong):
        one.unpersist()
