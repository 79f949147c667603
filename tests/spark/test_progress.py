"""What a load tells while it runs: its phases in order, and tasks as Spark counts them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InputError
from omnigraph.input.phases import LoadPhase, Phase
from omnigraph.spark import progress

SCHEMA = "node A { k: String @key }\nedge E: A -> A"
FILES = 6


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    found = []
    for number in range(FILES):
        names = [f"{number}-{i}" for i in range(50)]
        records = [{"type": "A", "data": {"k": n}} for n in names]
        records += [{"edge": "E", "from": n, "to": names[0]} for n in names]
        found.append(tmp_path / f"{number}.jsonl")
        found[-1].write_text("".join(json.dumps(r) + "\n" for r in records))
    return found


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        yield graph


def check(said: list[LoadPhase]) -> None:
    assert list(dict.fromkeys(s.phase for s in said)) == list(Phase)
    for phase in (Phase.READING, Phase.CHECKING, Phase.WRITING):
        told = [s for s in said if s.phase is phase]
        assert all(0 <= s.done <= s.total for s in told)
        assert [s.done for s in told] == sorted(s.done for s in told)
        assert told[-1].done == told[-1].total > 0, told
    reading = [s for s in said if s.phase is Phase.READING]
    assert reading[-1].total == FILES, "a file is a task"
    assert len(set(map(str, said))) == len(said), "nothing is said twice"


def test_phases_and_tasks_of_a_classic_session(graph, files, spark, monkeypatch):
    monkeypatch.setattr(progress, "ASK_EVERY_S", 0.01)
    said: list[LoadPhase] = []
    graph.load(files, engine="spark", spark=spark, phases=said.append)
    check(said)
    assert not list(spark.sparkContext.getJobTags()), "no tag stays"


def test_phases_and_tasks_of_a_connect_session(graph, files, spark_connect):
    said: list[LoadPhase] = []
    graph.load(files, engine="spark", spark=spark_connect, phases=said.append)
    assert list(dict.fromkeys(s.phase for s in said)) == list(Phase)
    assert max(s.done for s in said if s.phase is Phase.READING) == FILES
    assert all(s.done <= s.total for s in said)


def test_only_jobs_of_the_load_are_counted(graph, files, spark, monkeypatch):
    """Another thread of the program uses the session at the same time."""
    monkeypatch.setattr(progress, "ASK_EVERY_S", 0.01)
    from threading import Event, Thread

    over = Event()

    def others() -> None:
        while not over.is_set():
            spark.range(0, 100, 1, 50).count()

    thread = Thread(target=others)
    thread.start()
    said: list[LoadPhase] = []
    try:
        graph.load(files, engine="spark", spark=spark, phases=said.append)
    finally:
        over.set()
        thread.join()
    check(said)


def test_a_refused_load_says_what_it_was_doing(graph, files, spark):
    files[0].write_text("nonsense\n")
    said: list[LoadPhase] = []
    with pytest.raises(InputError):
        graph.load(files, engine="spark", spark=spark, phases=said.append)
    assert said[-1].phase is Phase.READING
    assert not list(spark.sparkContext.getJobTags())


def test_a_session_that_does_not_answer_is_not_asked_again(spark):
    class Gone:
        _jsc = property(lambda self: 1 / 0)

    from threading import Event

    said: list[LoadPhase] = []
    progress._ask(Gone(), "tag", progress._Count(Phase.READING, said.append), Event())
    assert said == []
