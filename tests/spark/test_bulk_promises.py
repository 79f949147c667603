"""What a bulk load promises beyond its outcome: identity, scale, stores, speculation, leftovers."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import omnigraph
from omnigraph.cli.main import app
from omnigraph.errors import ConstraintError, InputError
from omnigraph.input.sources import sort_out
from omnigraph.spark.append import TableTarget, stage_rows
from omnigraph.spark.input import parse_input
from omnigraph.spark.sessions import pipeline_session

KINDS = 6
MANY = "\n".join(
    f"node N{i} {{ k: String @key  v: I64? }}\nedge E{i}: N{i} -> N{(i + 1) % KINDS}"
    for i in range(KINDS)
)
ONE = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"


def row_ids(graph: omnigraph.Graph, key: str = "node:Person") -> dict[str, int]:
    pin = graph._repository.branch("main").refresh().snapshot.pins[key]
    table = graph._repository.table(pin).dataset.to_table(columns=["id", "_rowid"])
    return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))


def data_files(graph: omnigraph.Graph) -> set[Path]:
    return set(Path(graph.uri).glob("*/*/data/*.lance"))


def referenced(graph: omnigraph.Graph) -> set[str]:
    repository = graph._repository
    pins = repository.branch("main").refresh().snapshot.pins.values()
    names = [name for pin in pins for name in repository.table(pin).files_since(None)]
    return {Path(name).name for name in names if name.endswith(".lance")}


def people(names: range, age: int) -> pa.Table:
    return pa.table({"name": [f"p{i}" for i in names], "age": pa.array([age] * len(names))})


def test_many_files_of_many_types_are_one_commit_far_past_8192_rows(spark, tmp_path: Path):
    rows = 20_000
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(KINDS):
        nodes = [{"type": f"N{i}", "data": {"k": f"{n}", "v": n}} for n in range(rows)]
        edges = [{"edge": f"E{i}", "from": f"{n}", "to": f"{rows - 1 - n}"} for n in range(rows)]
        for part in range(4):
            chunk = [*nodes[part::4], *edges[part::4]]
            text = "".join(json.dumps(r) + "\n" for r in chunk)
            (folder / f"{i}-{part}.jsonl").write_text(text)
    with omnigraph.init(tmp_path / "graph", MANY) as graph:
        result = graph.load(folder, engine="spark", spark=spark)
        assert result.commit == graph.commits()[0]
        assert graph.snapshot().version == 2
        assert {c.inserted for c in result.changes.values()} == {rows}
        assert len(result.changes) == 2 * KINDS
        for i in range(KINDS):
            found = graph.snapshot().rows(f"N{i}", columns=["id"]).to_arrow()["id"].to_pylist()
            assert len(found) == len(set(found)) == rows
            assert graph.snapshot().count(f"E{i}") == rows


@pytest.mark.parametrize("mode", ["merge", "overwrite"])
def test_rows_that_are_replaced_keep_their_identity(spark, tmp_path: Path, mode: str):
    with omnigraph.init(tmp_path / "graph", ONE) as graph:
        graph.load(people(range(12_000), 1), type="Person")
        before = row_ids(graph)
        pq.write_table(people(range(6_000, 18_000), 2), tmp_path / "in.parquet")
        result = graph.load(
            tmp_path / "in.parquet", type="Person", mode=mode, engine="spark", spark=spark
        )
        change = result.changes["node:Person"]
        removed = 6_000 if mode == "overwrite" else 0
        assert (change.inserted, change.updated, change.deleted) == (6_000, 6_000, removed)
        after = row_ids(graph)
        kept = before.keys() & after.keys()
        assert len(kept) == 12_000 - removed
        assert {k: after[k] for k in kept} == {k: before[k] for k in kept}
        assert len(set(after.values())) == len(after)
        assert not {after[k] for k in after.keys() - before.keys()} & set(before.values())


def test_from_a_bucket_into_a_bucket(spark, s3_root: str, tmp_path: Path):
    """Input, graph and rejected rows: no Hadoop library is involved."""
    lines = "".join(
        json.dumps({"type": "Person", "data": {"name": f"p{i}", "age": i % 9}}) + "\n"
        for i in range(9_000)
    )
    from omnigraph.storage.location import locate
    from omnigraph.storage.streams import open_output

    with open_output(locate(f"{s3_root}/in"), "people.jsonl") as out:
        out.write(lines.encode())
    with omnigraph.init(f"{s3_root}/graph", ONE) as graph:
        graph.load(f"{s3_root}/in", engine="spark", spark=spark)
        result = graph.load(f"{s3_root}/in/*.jsonl", mode="merge", engine="spark", spark=spark)
        assert (result.commit, dict(result.unchanged)) == (None, {"node:Person": 9_000})
        assert graph.snapshot().count("Person") == 9_000
        with pytest.raises(ConstraintError) as caught:
            graph.load(f"{s3_root}/in", rejects=tmp_path / "r.parquet", spark=spark)
        assert caught.value.total == 9_000
    table = pq.read_table(tmp_path / "r.parquet")
    assert sorted(table["line"].to_pylist()) == list(range(1, 9_001))
    assert set(table["rule"].to_pylist()) == {"key"}


def test_a_file_that_goes_away_half_way_is_a_problem_of_the_input(
    spark, tmp_path: Path, monkeypatch
):
    """It was there when the input was looked at, and is not when a task reads it."""
    from omnigraph.spark import input as reading

    files = [tmp_path / f"{i}.jsonl" for i in range(3)]
    for i, file in enumerate(files):
        file.write_text(f'{{"type": "Person", "data": {{"name": "{i}"}}}}\n')
    plan = reading.plan_input

    def planned(*arguments, **options):
        found = plan(*arguments, **options)
        files[1].unlink()
        return found

    monkeypatch.setattr(reading, "plan_input", planned)
    with omnigraph.init(tmp_path / "graph", ONE) as graph:
        with pytest.raises(InputError, match=r"1\.jsonl: no such file"):
            graph.load(files, engine="spark", spark=spark)
        assert graph.snapshot().version == 1
        assert data_files(graph) == set()


SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.multiplier": "1.1",
}


def _held(gate: str, attempts: str):
    """The task of a load that writes files, whose first attempt on the first part never answers."""

    def write(writing, batches):
        from pathlib import Path

        from pyspark import TaskContext

        from omnigraph.spark.append import _write

        answers = list(_write(writing, batches))
        context = TaskContext.get()
        if context.partitionId() == 0:
            names = [name for batch in answers for name in batch["fragment"].to_pylist()]
            Path(attempts, str(context.attemptNumber())).write_text("\n".join(names))
            if context.attemptNumber() == 0:
                # Its files are there. Nobody opens the gate before the whole load is done.
                Path(gate).open("rb").close()
        yield from answers

    return write


def test_a_load_in_which_a_copy_of_a_slow_task_wins_has_every_row_once(
    spark_sessions, spark_cluster, tmp_path: Path, monkeypatch
):
    """Spark starts a second copy on the other worker when the first has written its files."""
    from omnigraph.spark import append

    files, names = [], [[f"{n}-{i}" for i in range(500)] for n in range(6)]
    for number, own in enumerate(names):
        records = [{"type": "Person", "data": {"name": name}} for name in own]
        records += [{"edge": "Knows", "from": name, "to": own[0]} for name in own]
        files.append(tmp_path / f"{number}.jsonl")
        files[-1].write_text("".join(json.dumps(r) + "\n" for r in records))
    gate, attempts = tmp_path / "gate", tmp_path / "attempts"
    os.mkfifo(gate)
    attempts.mkdir()
    spark_cluster.start()
    session = spark_sessions.on(spark_cluster, SPECULATION)
    monkeypatch.setattr(append, "_write", _held(str(gate), str(attempts)))
    try:
        with omnigraph.init(tmp_path / "graph", ONE) as graph:
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(graph.load, files, engine="spark", spark=session)
                try:
                    result = running.result(timeout=240)
                finally:
                    # Only now may the first copy go on, if it still waits.
                    os.close(os.open(gate, os.O_RDWR))
            assert {c.inserted for c in result.changes.values()} == {3_000}
            lost = _names((attempts / "0").read_text())
            assert lost and len(list(attempts.iterdir())) > 1, "a copy has answered, not the first"
            assert lost <= {f.name for f in data_files(graph)} - referenced(graph)
    finally:
        spark_sessions.stop()
    with omnigraph.open(tmp_path / "graph") as graph:
        people = graph.snapshot().rows("Person", columns=["id"]).to_arrow()["id"].to_pylist()
        assert sorted(people) == sorted(name for own in names for name in own)
        ends = graph.snapshot().rows("Knows", columns=["src", "dst"]).to_arrow().to_pylist()
        assert {(e["src"], e["dst"]) for e in ends} == {(n, own[0]) for own in names for n in own}
        assert len(ends) == 3_000
        assert len(graph.commits()) == 2
        assert graph.upkeep.check(full=True).ok
        # What the first copy wrote belongs to nothing: a cleanup takes it, and nothing else.
        graph.upkeep.cleanup(keep=100, grace=0, confirm=True)
        assert {f.name for f in data_files(graph)} == referenced(graph)
        assert graph.upkeep.check(full=True).ok
    assert CliRunner().invoke(app, ["check", str(tmp_path / "graph")]).exit_code == 0


def _names(fragments: str) -> set[str]:
    """The data files that a task says it wrote."""
    parsed = [json.loads(text) for text in fragments.splitlines()]
    return {file["path"] for fragment in parsed for file in fragment["files"]}


def test_what_a_load_left_behind_can_be_removed(spark, tmp_path: Path):
    """Files that no version refers to are all that a crash leaves: without them nothing changes."""
    file = tmp_path / "in.jsonl"
    file.write_text("".join(f'{{"type": "Person", "data": {{"name": "{i}"}}}}\n' for i in range(9)))
    with omnigraph.init(tmp_path / "graph", ONE) as graph:
        graph.load(file, engine="spark", spark=spark)
        with pipeline_session(spark) as pipeline:
            parsed = parse_input(
                pipeline, sort_out(file), graph.catalog, run_id=graph._repository.ids.ulid()
            )
            person = graph.catalog.table("node:Person")
            pin = graph._repository.branch("main").refresh().snapshot.pins["node:Person"]
            stage_rows(  # As a load does, whose driver dies before it publishes.
                parsed.intake(),
                graph._repository.location,
                {"node:Person": TableTarget(type=person, base=pin.name)},
                {"node:Person": 9},
            )
            parsed.unpersist()
        orphans = {f for f in data_files(graph) if f.name not in referenced(graph)}
        assert orphans
        assert graph.snapshot().count("Person") == 9
        for orphan in orphans:
            orphan.unlink()
    with omnigraph.open(tmp_path / "graph") as graph:
        assert len(graph.snapshot().rows("Person")) == 9
        assert graph.load(file, mode="overwrite", engine="spark", spark=spark).commit is not None
