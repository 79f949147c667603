"""One job that answers all questions about an input.

    input, committed pieces -> digests -> exchange by bucket -> judge -> [verdict: answers]

Tasks read key columns, of the input as it is kept and of the committed tables as they are stored,
and no row becomes a row of Spark. The memory of a task is bounded by the size of a bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.schema.catalog import GraphType
from omnigraph.spark.check.digest import EXCHANGE_DDL, Digest, Topic, number_row
from omnigraph.spark.check.judge import ANSWERS_DDL, Question, Total, judge
from omnigraph.spark.check.subject import Read, Subject
from omnigraph.spark.check.values import broken_values
from omnigraph.spark.errors import task
from omnigraph.spark.scan import Scan
from omnigraph.storage.pieces import FilePiece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKET_VALUES = 1 << 20
"""About so many values of all topics together meet in one bucket."""
BUCKETS_MIN, BUCKETS_MAX = 8, 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What tasks that read the input have to do."""

    read: Read
    topics: Mapping[int, Topic]
    buckets: int
    totals: Mapping[str, int]
    """By table key: the question how often rule 1 is broken."""
    types: Mapping[str, GraphType]


def ask(
    spark: SparkSession, subject: Subject, questions: Sequence[Question]
) -> dict[Question, int]:
    """The answers; questions that are answered with zero are there too. One job."""
    mine, theirs = _topics(questions)
    scans = _scans(subject, theirs)
    values = sum(subject.tables[topic.table_key].rows for topic in mine)
    values += sum(subject.committed.row_count(topic.table_key) for topic in theirs)
    buckets = min(max(BUCKETS_MIN, -(-values // BUCKET_VALUES)), BUCKETS_MAX)
    numbers = {topic: i for i, topic in enumerate(dict.fromkeys((*mine, *theirs)))}
    exchanged = _read_input(subject, questions, {numbers[t]: t for t in mine}, buckets)
    if scans:
        told = {numbers[t]: t for t in theirs}
        exchanged = exchanged.unionByName(_read_committed(spark, scans, told, buckets))
    asked, topics = tuple(questions), {number: topic for topic, number in numbers.items()}
    # By number, so that Spark does not put small buckets together into one task. The function has
    # no annotations: Spark would try to understand them.
    judged = (
        exchanged.repartition(buckets, "bucket")
        .groupBy("bucket")
        .applyInArrow(task(lambda rows: judge(rows, questions=asked, topics=topics)), ANSWERS_DDL)
    )
    answers = dict.fromkeys(questions, 0)
    for row in judged.collect():
        answers[questions[row["question"]]] += row["n"]
    return answers


def _topics(questions: Sequence[Question]) -> tuple[list[Topic], list[Topic]]:
    """What is asked of the input, and of the committed state."""
    needs = dict.fromkeys(need for question in questions for need in question.needs)
    mine = [topic for committed, topic in needs if not committed]
    theirs = [topic for committed, topic in needs if committed]
    return mine, theirs


def _scans(subject: Subject, topics: Sequence[Topic]) -> list[Scan]:
    """One scan of each committed table, with the columns of all its topics."""
    columns: dict[str, dict[str, None]] = {}
    for topic in topics:
        columns.setdefault(topic.table_key, {}).update(dict.fromkeys(topic.columns))
    return [subject.committed.scan(key, tuple(names)) for key, names in columns.items()]


def _read_input(
    subject: Subject, questions: Sequence[Question], topics: Mapping[int, Topic], buckets: int
) -> DataFrame:
    totals = {q.name: i for i, q in enumerate(questions) if isinstance(q, Total)}
    reading = _Reading(
        read=subject.intake.read,
        topics=topics,
        buckets=buckets,
        totals=totals,
        types={key: subject.tables[key].type for key in totals},
    )
    return subject.intake.frame.mapInArrow(task(partial(_digest_input, reading)), EXCHANGE_DDL)


def _read_committed(
    spark: SparkSession, scans: Sequence[Scan], topics: Mapping[int, Topic], buckets: int
) -> DataFrame:
    work = [(number, piece) for number, scan in enumerate(scans) for piece in scan.pieces()]
    numbers = spark.range(0, len(work), 1, max(1, len(work)))
    send = partial(_digest_committed, tuple(scans), tuple(work), topics, buckets)
    return numbers.mapInArrow(task(send), EXCHANGE_DDL)


# -- tasks ---------------------------------------------------------------------------------------


def _digest_input(reading: _Reading, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    digest = Digest(reading.topics, buckets=reading.buckets, committed=False)
    broken = dict.fromkeys(reading.totals, 0)
    for table_key, rows in reading.read(batches):
        if table_key in broken:
            broken[table_key] += broken_values(reading.types[table_key], rows)
        yield from digest.take(table_key, rows)
    yield from digest.rest()
    for table_key, number in broken.items():
        if number:
            yield number_row(reading.totals[table_key], number)


def _digest_committed(
    scans: Sequence[Scan],
    work: Sequence[tuple[int, FilePiece]],
    topics: Mapping[int, Topic],
    buckets: int,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    digest = Digest(topics, buckets=buckets, committed=True)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            which, piece = work[number]
            scan = scans[which]
            for rows in scan.batches(piece):
                table = pa.Table.from_batches([rows])
                yield from digest.take(scan.table.type.table_key, table)
    yield from digest.rest()
