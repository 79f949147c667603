"""Export by executors: the lines of the local exporter, Parquet in our own types, exactly once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_cases import SCHEMA, TYPES, build, pinned_of

import omnigraph
from omnigraph.errors import CorruptionError, NotFoundError, StorageError, UsageError
from omnigraph.schema import table_text
from omnigraph.schema.arrow import table_schema
from omnigraph.spark import export
from omnigraph.spark.export import export_snapshot
from omnigraph.spark.sessions import pipeline_session
from omnigraph.storage import pieces
from omnigraph.storage.location import locate
from omnigraph.storage.streams import open_input


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> omnigraph.Graph:
    return build(tmp_path_factory.mktemp("export") / "graph")


@pytest.fixture
def many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_ROWS", 50)


def local_lines(view: omnigraph.SnapshotView, name: str, folder: Path) -> bytes:
    view.export(folder / "local.jsonl", types=[name])
    return (folder / "local.jsonl").read_bytes()


def files_below(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def run_here(job: export._Job, attempts: int = 1) -> dict[int, dict[str, Any]]:
    """Every task here, so many times; only the last report arrives."""
    parts: dict[int, dict[str, Any]] = {}
    for number in range(len(job.work)):
        for _ in range(attempts):
            (report,) = export._write_parts(job, iter([pa.record_batch({"id": [number]})]))
            (parts[number],) = report.to_pylist()
    return parts


# -- the same data -------------------------------------------------------------------------------


def test_jsonl_is_what_the_local_exporter_writes(graph, tmp_path: Path, spark, many_pieces):
    out = tmp_path / "out"
    done = export_snapshot(spark, pinned_of(graph), out, format="jsonl")
    view = graph.snapshot()
    assert [t.name for t in done.types] == list(TYPES)
    assert done.rows == sum(d.entity_count for d in view.datasets)
    assert len(done.types[0].files) > 3
    for exported in done.types:
        assert exported.rows == view.count(exported.name)
        lines = b"".join((out / f).read_bytes() for f in sorted(exported.files))
        assert lines == local_lines(view, exported.name, tmp_path)
        assert exported.bytes == len(lines)
    kept = [f for t in done.types for f in t.files]
    assert files_below(out) == sorted([*kept, "_export.json"])
    marker = json.loads((out / "_export.json").read_text())
    assert marker["graph_commit_id"] == view.commit.id and marker["rows"] == done.rows


def test_what_was_exported_loads_back(graph, tmp_path: Path, spark):
    done = export_snapshot(spark, pinned_of(graph), tmp_path / "out", format="jsonl")
    with omnigraph.init(tmp_path / "back", SCHEMA) as back:
        back.load([tmp_path / "out" / f for t in done.types for f in t.files])
        for name in TYPES:
            assert local_lines(back.snapshot(), name, tmp_path) == local_lines(
                graph.snapshot(), name, tmp_path
            )


def test_parquet_has_our_own_types(graph, tmp_path: Path, spark, many_pieces):
    out = tmp_path / "out"
    done = export_snapshot(spark, pinned_of(graph), out)
    for exported in done.types:
        graph_type = pinned_of(graph).type(exported.name)
        tables = [pq.read_table(out / f) for f in exported.files]
        assert all(t.schema.equals(table_schema(graph_type)) for t in tables)
        assert pa.concat_tables(tables).equals(graph.snapshot().rows(exported.name).to_arrow())
    # A type without rows has a file that says which columns it would have.
    (never,) = [t for t in done.types if t.name == "Never"]
    assert never.files == ("nodes/Never/part-00000.parquet",) and never.rows == 0
    # Spark reads its own way: unsigned numbers as wider ones.
    things = spark.read.parquet(str(out / "nodes/Thing"))
    assert things.count() == graph.snapshot().count("Thing")


def test_row_groups_are_bounded(graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(export, "_run", lambda spark, job: run_here(job))
    monkeypatch.setattr(table_text, "ROW_GROUP_ROWS", 20)
    monkeypatch.setattr(pieces, "BATCH_ROWS_MAX", 8)
    done = export_snapshot(None, pinned_of(graph), tmp_path / "out", types=["Thing"])
    groups = pq.ParquetFile(tmp_path / "out" / done.types[0].files[0]).metadata
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert len(sizes) > 5 and max(sizes) <= 28


def test_some_types_of_an_old_commit(tmp_path: Path, spark):
    schema = "node P { name: String @key }\nedge Likes: P -> P"
    with omnigraph.init(tmp_path / "g", schema) as graph:
        graph.load([{"name": "a"}, {"name": "b"}], type="P")
        old = graph.snapshot()
        graph.load([{"name": "c"}], type="P")
        graph.mutate('delete P where name = "a"')
        done = export_snapshot(
            spark,
            pinned_of(graph, old),
            tmp_path / "out",
            format="jsonl",
            types=["P", "likes", "P"],
        )
        assert [(t.name, t.rows) for t in done.types] == [("P", 2), ("Likes", 0)]
        assert done.commit_id == old.commit.id
        text = (tmp_path / "out" / "nodes/P/part-00000.jsonl").read_text()
        assert text.splitlines() == [
            '{"type":"P","data":{"id":"a","name":"a"}}',
            '{"type":"P","data":{"id":"b","name":"b"}}',
        ]


@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_to_and_from_s3(format, s3_root: str, tmp_path: Path, spark):
    with omnigraph.init(f"{s3_root}/graph", "node P { name: String @key  n: U64? }") as graph:
        graph.load([{"name": f"p{i}", "n": 2**64 - 1 - i} for i in range(100)], type="P")
        graph.load([{"name": f"q{i}"} for i in range(10)], type="P")
        done = export_snapshot(spark, pinned_of(graph), f"{s3_root}/out", format=format)
        assert done.rows == 110
        target = locate(f"{s3_root}/out")
        content = [open_input(target, f).read() for f in done.types[0].files]
        if format == "jsonl":
            assert b"".join(content) == local_lines(graph.snapshot(), "P", tmp_path)
        elif format == "csv":
            assert {part[:11] for part in content} == {b"id,name,n\r\n"}
            assert sum(part.count(b"\r\n") - 1 for part in content) == 110
        else:
            found = pa.concat_tables([pq.read_table(pa.BufferReader(c)) for c in content])
            assert found.equals(graph.snapshot().rows("P").to_arrow())
        names = set(graph._repository.objects.names(""))
        assert not any("_parts" in n for n in names)
        with pytest.raises(UsageError, match="is not empty"):
            export_snapshot(spark, pinned_of(graph), f"{s3_root}/out", format=format)


# -- exactly once --------------------------------------------------------------------------------


def test_a_repeated_task_changes_nothing(
    graph, tmp_path: Path, many_pieces, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(export, "_run", lambda spark, job: run_here(job, attempts=3))
    out = tmp_path / "out"
    done = export_snapshot(None, pinned_of(graph), out, format="jsonl")
    for exported in done.types:
        lines = b"".join((out / f).read_bytes() for f in exported.files)
        assert lines == local_lines(graph.snapshot(), exported.name, tmp_path)
    assert files_below(out) == sorted([*(f for t in done.types for f in t.files), "_export.json"])


def test_a_task_that_fails_after_writing_is_repeated_by_spark(
    graph, tmp_path: Path, many_pieces, on_cluster, monkeypatch: pytest.MonkeyPatch
):
    """The first attempt of every task writes its whole part and then dies."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            mark = Path(folder, str(batch.column(0)[0].as_py()))
            if not mark.exists():
                mark.touch()
                raise OSError("died after writing")
            yield batch

    folder = str(marks)
    with pipeline_session(on_cluster) as pipeline:
        spark = pipeline.spark
        real = type(spark.range(1)).mapInArrow
        # Between the writes and their report stands a step that fails once.
        monkeypatch.setattr(
            type(spark.range(1)),
            "mapInArrow",
            lambda frame, function, schema: real(real(frame, function, schema), fail_once, schema),
        )
        done = export_snapshot(spark, pinned_of(graph), tmp_path / "out", format="jsonl")
        monkeypatch.undo()
    assert len(list(marks.iterdir())) > 3
    for exported in done.types:
        lines = b"".join((tmp_path / "out" / f).read_bytes() for f in exported.files)
        assert lines == local_lines(graph.snapshot(), exported.name, tmp_path)
    kept = [f for t in done.types for f in t.files]
    assert files_below(tmp_path / "out") == sorted([*kept, "_export.json"])


def test_a_failed_export_leaves_nothing(graph, tmp_path: Path, spark):
    broken = tmp_path / "broken"
    shutil.copytree(graph.uri, broken)
    with omnigraph.open(broken) as copy:
        pinned = pinned_of(copy)
        table = copy._repository.table(pinned.pins["edge:Linked"])
        Path(broken, table.files_since(None)[0]).unlink()
        with pytest.raises(CorruptionError, match="is missing"):
            export_snapshot(spark, pinned, tmp_path / "out", format="jsonl")
    assert files_below(tmp_path / "out") == []


def test_a_place_that_cannot_be_written_to(graph, tmp_path: Path, spark):
    (tmp_path / "file").write_text("x")
    with pytest.raises((StorageError, UsageError)):
        export_snapshot(spark, pinned_of(graph), tmp_path / "file")


def test_mistakes(graph, tmp_path: Path):
    pinned = pinned_of(graph)
    with pytest.raises(UsageError, match="unknown format 'xml'"):
        export_snapshot(None, pinned, tmp_path / "out", format="xml")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="types is a list"):
        export_snapshot(None, pinned, tmp_path / "out", types="Thing")
    with pytest.raises(NotFoundError, match="no type 'Thnig'"):
        export_snapshot(None, pinned, tmp_path / "out", types=["Thnig"])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(UsageError, match="is not empty"):
        export_snapshot(None, pinned, tmp_path / "full")
    assert files_below(tmp_path) == ["full/x"]
