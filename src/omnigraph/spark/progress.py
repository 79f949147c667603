"""How far a bulk load is: the tasks of its phases, as Spark counts them.

    load: with watch.phase(READING) ─▶ jobs ─▶ [progress] ─▶ LoadPhase(done, total) ─▶ a bar

Classic sessions are asked a few times a second, for the jobs of this thread alone; a Connect server
tells by itself, for all that its session runs. This is decoration: the one place that uses a
``sparkContext``, and a session that does not answer is not asked again.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from omnigraph.ids import SystemIds
from omnigraph.input.phases import LoadPhase, Phase, TellPhase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASK_EVERY_S = 0.2


class Watch:
    """Tells about the phases of a load, if that is wanted."""

    def __init__(self, tell: TellPhase | None) -> None:
        self._tell = tell

    def starting(self) -> None:
        """A session is looked for, and perhaps made."""
        if self._tell is not None:
            self._tell(LoadPhase(phase=Phase.STARTING))

    @contextmanager
    def phase(self, spark: SparkSession, phase: Phase) -> Generator[None]:
        """Everything that this thread runs on Spark inside is this phase."""
        if self._tell is None:
            yield
            return
        count = _Count(phase, self._tell)
        count.show()
        with _reported(spark, count) if _is_connect(spark) else _polled(spark, count):
            yield
        count.finish()


def _is_connect(spark: SparkSession) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


class _Count:
    """Tasks by stage; a stage belongs to several jobs when one uses what another has made."""

    def __init__(self, phase: Phase, tell: TellPhase) -> None:
        self._phase = phase
        self._tell = tell
        self._stages: dict[Any, tuple[int, int]] = {}
        self._said: LoadPhase | None = None

    def put(self, stage: Any, done: int, total: int) -> None:
        """So many tasks of a stage are done."""
        if total:
            self._stages[stage] = (min(done, total), total)

    def show(self) -> None:
        """Say what is known, if it is new."""
        done, total = (sum(pair[i] for pair in self._stages.values()) for i in (0, 1))
        now = LoadPhase(phase=self._phase, done=done, total=total)
        if now != self._said:
            self._said = now
            self._tell(now)

    def finish(self) -> None:
        """It ended well: every task that had to run has run."""
        self._stages = {stage: (total, total) for stage, (_, total) in self._stages.items()}
        self.show()


@contextmanager
def _reported(spark: SparkSession, count: _Count) -> Generator[None]:
    """A Connect session: the server sends what it counts along with its answers."""

    def receive(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        for stage in stages or ():
            count.put((operation_id, stage.stage_id), stage.num_completed_tasks, stage.num_tasks)
        count.show()

    handler: Any = receive
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


@contextmanager
def _polled(spark: SparkSession, count: _Count) -> Generator[None]:
    """A classic session: a thread of ours asks for the jobs that carry our tag."""
    context: Any = spark.sparkContext
    tag = f"omnigraph-load-{SystemIds().ulid()}"
    over = Event()
    thread = Thread(target=_ask, args=(context, tag, count, over), name=tag, daemon=True)
    context.addJobTag(tag)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        with suppress(Exception):  # A session that ended has no tags any more.
            context.removeJobTag(tag)


def _ask(context: Any, tag: str, count: _Count, over: Event) -> None:
    try:
        by_tag, tracker = context._jsc.sc().statusTracker(), context.statusTracker()
        last = False
        while not last:
            last = over.wait(ASK_EVERY_S)
            for job in by_tag.getJobIdsForTag(tag):
                _look(tracker, job, count)
            count.show()
    except Exception:  # A session that ended: running the jobs says so.
        return


def _look(tracker: Any, job: int, count: _Count) -> None:
    info = tracker.getJobInfo(job)
    for number in info.stageIds if info is not None else ():
        stage = tracker.getStageInfo(number)
        # A stage without a task at work or done waits for others, or is not needed at all.
        if stage is not None and (stage.numActiveTasks or stage.numCompletedTasks):
            count.put(number, stage.numCompletedTasks, stage.numTasks)
