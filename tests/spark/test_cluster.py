"""The pipeline on a real cluster: processes that do not have omnigraph, and that die."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph import UsageError
from omnigraph.spark.package import ship
from omnigraph.spark.sessions import pipeline_session
from omnigraph.testing.cluster import bare_python


def test_the_package_reaches_workers_that_do_not_have_it(
    spark_cluster, spark_sessions, where_omnigraph_is
):
    spark_sessions.stop()
    session = spark_sessions.on(spark_cluster)  # Nothing was sent to this one yet.
    assert where_omnigraph_is(session) == {"nowhere"}
    with pipeline_session(session):
        (place,) = where_omnigraph_is(session)
        assert ".zip/omnigraph" in place


def test_a_job_survives_the_loss_of_a_worker(on_cluster, spark_cluster, tmp_path: Path):
    """Both workers are in the middle of a task when one of them is lost with all its processes."""
    folder = str(tmp_path)
    os.mkfifo(tmp_path / "gate")

    def waits(batches):
        from pathlib import Path

        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        ids = [i for batch in batches for i in batch.column(0).to_pylist()]
        here = Path(folder) / f"{context.partitionId()}-{context.attemptNumber()}"
        here.touch()
        with (Path(folder) / "gate").open("rb"):  # A pipe: opens when somebody holds its other end.
            pass
        yield pa.RecordBatch.from_pydict(
            {"id": ids, "attempt": [context.attemptNumber()] * len(ids)}
        )

    def first_attempts() -> int:
        return len(list(tmp_path.glob("[0-9]-0")))

    frame = on_cluster.range(0, 1000, 1, 2).mapInArrow(waits, "id bigint, attempt bigint")
    answer = in_background(frame.collect)
    wait_until(lambda: first_attempts() == 2)
    spark_cluster.kill_worker(1)
    gate = os.open(tmp_path / "gate", os.O_RDWR)  # Open for as long as somebody may still come.
    try:
        rows = answer.result()
    finally:
        os.close(gate)
    assert sorted(row["id"] for row in rows) == list(range(1000))
    assert {row["attempt"] for row in rows} == {0, 1}


def test_nothing_outlives_a_program_that_is_killed(tmp_path: Path):
    """Neither a cluster (its master is enough to see it) nor the JVM of a session."""
    code = """
import os, sys
from omnigraph.spark import jvm
from omnigraph.testing.cluster import run_spark_cluster
with run_spark_cluster(workers=0) as cluster, jvm.running({}, loopback=True):
    print(*cluster.processes(), jvm.running_pid(), flush=True)
    sys.stdin.read()
"""
    program = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert program.stdin is not None
    assert program.stdout is not None
    with program.stdin, program.stdout:
        pids = [int(pid) for pid in program.stdout.readline().split()]
        assert len(pids) == 2
        assert all(is_running(pid) for pid in pids)
        program.kill()
        program.wait()
    wait_until(lambda: not any(is_running(pid) for pid in pids))
    wait_until(lambda: not list(tmp_path.glob("omnigraph-cluster-*")))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def in_background(function):
    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(1)
    try:
        return executor.submit(function)
    finally:
        executor.shutdown(wait=False)


def wait_until(condition, seconds: float = 120.0) -> None:
    from omnigraph.clock import SystemClock

    clock = SystemClock()
    end_s = clock.monotonic_s() + seconds
    while not condition():
        assert clock.monotonic_s() < end_s
        clock.sleep(0.02)


def test_workers_that_lack_a_package_are_named_with_what_they_lack(spark_sessions, tmp_path: Path):
    """A local session, because only the Python of the workers matters here."""
    python = bare_python(tmp_path / "python", without=("obstore", "orjson"))
    session = spark_sessions.local(python)
    try:
        with pytest.raises(UsageError, match="lacks obstore, orjson") as caught:
            ship(session)
        assert "pip install obstore orjson" in (caught.value.hint or "")
    finally:
        spark_sessions.stop()
