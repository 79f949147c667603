"""The pipeline on a real cluster: processes that do not have omnigraph, and that die."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph import UsageError
from omnigraph.pipeline.package import ship
from omnigraph.pipeline.session import pipeline_session
from omnigraph.testing.bare_python import bare_python


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
