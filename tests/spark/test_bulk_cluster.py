"""Bulk loads on a real cluster, where workers die and tasks are repeated: every row exactly once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.spark import append

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


def _flaky():
    """The task of a load that writes files; first attempts lose their answer when all is written."""

    def write(writing, batches):
        from pyspark import TaskContext

        from omnigraph.spark.append import _write

        answers = list(_write(writing, batches))
        context = TaskContext.get()
        if context.partitionId() % 3 == 0 and context.attemptNumber() == 0:
            raise ConnectionResetError("the store went away")
        yield from answers

    return write


def test_an_attempt_that_fails_after_it_wrote_is_made_again(graph, files, on_cluster, monkeypatch):
    monkeypatch.setattr(append, "_write", _flaky())
    result = graph.load(files, engine="spark", spark=on_cluster)
    assert {c.inserted for c in result.changes.values()} == {FILES * ROWS}
    with omnigraph.open(graph.uri) as fresh:
        people = fresh.snapshot().rows("Person", columns=["id"]).to_arrow()
        assert people.num_rows == len(set(people["id"].to_pylist())) == FILES * ROWS
        assert fresh.snapshot().count("Knows") == FILES * ROWS
        assert fresh.upkeep.check().ok
    # A third of the tasks wrote a file of each table that nobody refers to.
    assert len(written(graph) - referenced(graph)) >= 2 * (FILES // 3)


DRIVER = """
import json, sys
import omnigraph
from omnigraph.spark import append
from omnigraph.spark.sessions import pipeline_session

uri, gate, arrived, conf, *files = sys.argv[1:]

def write(writing, batches):
    from pathlib import Path
    from omnigraph.spark.append import _write
    answers = list(_write(writing, batches))
    Path(arrived).touch()
    Path(gate).open("rb").close()
    yield from answers

append._write = write
conf = json.loads(conf)
with pipeline_session(master=conf["spark.master"], conf=conf) as pipeline:
    with omnigraph.open(uri) as graph:
        graph.load(files, engine="spark", spark=pipeline.spark)
"""


def test_a_driver_that_is_killed_while_tasks_write_leaves_nothing_visible(
    graph, files, spark_sessions, spark_cluster, tmp_path
):
    spark_sessions.stop()  # Its executors have the cores.
    gate, arrived = tmp_path / "gate", tmp_path / "arrived"
    os.mkfifo(gate)
    # It lives for seconds: a simpler collector and compiler are up sooner.
    java = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
    own = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": java}
    conf = json.dumps(spark_cluster.conf() | own)
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, graph.uri, gate, arrived, conf, *files],
        env={**os.environ, "PYSPARK_PYTHON": str(spark_cluster.python)},
        start_new_session=True,
    )
    try:
        wait_until(lambda: arrived.exists() or driver.poll() is not None)
        assert driver.poll() is None
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        os.close(os.open(gate, os.O_RDWR))
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.snapshot().version == 1
        assert fresh.snapshot().count("Person") == fresh.snapshot().count("Knows") == 0
        assert written(graph), "files that nobody refers to are all that is left"
        assert fresh.upkeep.check(full=True).ok
        session = spark_sessions.on(spark_cluster)
        result = fresh.load(files, engine="spark", spark=session)
        assert {c.inserted for c in result.changes.values()} == {FILES * ROWS}
        assert fresh.snapshot().count("Person") == FILES * ROWS
        assert fresh.upkeep.check(full=True).ok
