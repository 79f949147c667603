"""Bulk loads on a real cluster, where workers die and tasks are repeated: every row exactly once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.pipeline.check.subject import Intake
from omnigraph.pipeline.input import parse_input
from omnigraph.pipeline.session import pipeline_session
from omnigraph.pipeline.stage import Target, stage_rows

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { weight: F64? }
"""
FILES, ROWS = 10, 4_000


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        yield graph


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Each file is a task of its own."""
    found = []
    for number in range(FILES):
        names = [f"p{number}-{i}" for i in range(ROWS)]
        records = [{"type": "Person", "data": {"name": n, "age": number}} for n in names]
        records += [
            {"edge": "Knows", "from": n, "to": names[0], "data": {"weight": 0.5}} for n in names
        ]
        found.append(tmp_path / f"{number}.jsonl")
        found[-1].write_text("".join(json.dumps(r) + "\n" for r in records))
    return found


def written(graph: omnigraph.Graph) -> set[str]:
    return {f.name for f in Path(graph.uri).glob("*/*/data/*.lance")}


def referenced(graph: omnigraph.Graph) -> set[str]:
    repository = graph._repository
    pins = repository.branch("main").refresh().snapshot.pins.values()
    names = [name for pin in pins for name in repository.table(pin).files_since(None)]
    return {Path(name).name for name in names if name.endswith(".lance")}


def wait_until(condition, seconds: float = 240.0) -> None:
    clock = SystemClock()
    end_s = clock.monotonic_s() + seconds
    while not condition():
        assert clock.monotonic_s() < end_s
        clock.sleep(0.01)


def test_a_load_survives_the_loss_of_a_worker(graph, files, on_cluster, spark_cluster):
    """It is lost with its executor, its Pythons and what they kept, while files are written."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(graph.load, files, engine="spark", spark=on_cluster)
        try:
            wait_until(lambda: written(graph) or running.done())
        finally:
            spark_cluster.kill_worker(1)
        result = running.result()
    assert result.changes["node:Person"].inserted == FILES * ROWS
    assert result.changes["edge:Knows"].inserted == FILES * ROWS
    with omnigraph.open(graph.uri) as fresh:
        people = fresh.snapshot().rows("Person", columns=["id"]).to_arrow()
        assert people.num_rows == len(set(people["id"].to_pylist())) == FILES * ROWS
        edges = fresh.snapshot().rows("Knows", columns=["id", "src"]).to_arrow()
        assert edges.num_rows == len(set(edges["id"].to_pylist())) == FILES * ROWS
        assert len(set(edges["src"].to_pylist())) == FILES * ROWS
    assert written(graph) >= referenced(graph), "what is too much, nobody refers to"


def test_an_attempt_that_fails_after_it_wrote_is_made_again(graph, files, on_cluster):
    with pipeline_session(on_cluster) as pipeline:
        parsed = parse_input(pipeline, files, graph.catalog, run_id=graph._repository.ids.ulid())
        frame, read = parsed.packed()

        def flaky(batches):
            from pyspark import TaskContext

            yield from read(batches)
            context = TaskContext.get()
            if context.partitionId() % 3 == 0 and context.attemptNumber() == 0:
                # Everything was handed over by now, and some of it lies in files.
                raise ConnectionResetError("the store went away")

        people = graph.catalog.table("node:Person")
        staged = stage_rows(
            Intake(frame=frame, read=flaky),
            graph._repository.location,
            {"node:Person": Target(type=people, base=None)},
            {"node:Person": FILES * ROWS},
        )
        parsed.unpersist()
    fragments = staged["node:Person"].fragments
    assert sum(f.physical_rows for f in fragments) == FILES * ROWS
    assert {file.path for f in fragments for file in f.files} <= written(graph)
