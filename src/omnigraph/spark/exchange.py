"""Keys and rows on their way to the tasks that compare them: one exchange for all rules.

    input ──────┐ tasks: digests
                ├────────────────▶ one exchange by bucket ─▶ tasks: a function of each bucket
    committed ──┘ tasks: digests

Tasks read columns, of the input as it is kept and of the committed tables as they are stored, and
no row becomes a row of Spark. The memory of a task is bounded by the size of a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.query.pinned_scan import PinnedScan
from omnigraph.rules.digest import EXCHANGE_DDL, Digest, Spread, Topic, number_row
from omnigraph.rules.values import BrokenValues
from omnigraph.spark.errors import task
from omnigraph.spark.input import Intake, Read
from omnigraph.storage.pieces import FilePiece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.write.txn import WriteTxn

Shape = Callable[[pa.Table], pa.Table]
"""A function of a module: what is added to rows before they are sent."""


class PinnedState:
    """The pinned snapshot of a write, as tasks read it.

    Every read is noted in the transaction's read set, as local reads are: after a lost race it
    decides whether the checks have to be made again.
    """

    def __init__(self, txn: WriteTxn) -> None:
        self._txn = txn
        self._pinned = PinnedGraph.of(txn.repository, txn.snapshot)

    def scan(
        self, table_key: str, columns: Sequence[str], *, with_address: bool = False
    ) -> PinnedScan:
        """Columns of a table that exists, if wanted with the place and the identity of each row."""
        self._txn.consulted.add(table_key)
        graph_type = self._txn.schema.catalog.table(table_key)
        return PinnedScan(
            table=self._pinned.table(graph_type), columns=tuple(columns), with_address=with_address
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """What tasks send of the rows that they read."""

    topics: Mapping[int, Topic]
    """By their numbers."""
    spread: Spread
    shape: Shape | None = None
    added: frozenset[str] = frozenset()
    """Columns that the shape adds."""
    values: Mapping[int, BrokenValues] = field(default_factory=dict[int, BrokenValues])
    """Tests of single values, by their numbers. They are made on the way, of the input."""

    def digest(self, *, committed: bool) -> Digest:
        """What one task sends."""
        return Digest(self.topics, self.spread, committed=committed)

    def shaped(self, rows: pa.Table) -> pa.Table:
        """Rows as the topics want them."""
        return rows if self.shape is None else self.shape(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSources:
    """Where rows come from: the input, and the committed state that it meets."""

    spark: SparkSession
    intake: Intake
    state: PinnedState

    def send_input(self, sending: Sending) -> DataFrame:
        """What tasks that read the input send."""
        send = partial(_send_input, self.intake.read, sending)
        return self.intake.frame.mapInArrow(task(send), EXCHANGE_DDL)

    def send_committed(self, sending: Sending) -> DataFrame:
        """What tasks that read committed tables send; each is read once."""
        columns: dict[str, dict[str, None]] = {}
        for topic in sending.topics.values():
            stored = [name for name in topic.columns if name not in sending.added]
            columns.setdefault(topic.table_key, {}).update(dict.fromkeys(stored))
        scans = [self.state.scan(key, tuple(names)) for key, names in columns.items()]
        work = tuple((number, piece) for number, s in enumerate(scans) for piece in s.pieces())
        send = partial(_send_committed, tuple(scans), work, sending)
        numbers = self.spark.range(0, len(work), 1, max(1, len(work)))
        return numbers.mapInArrow(task(send), EXCHANGE_DDL)


def by_bucket(
    sent: Sequence[DataFrame], meet: Callable[[pa.Table], pa.Table], ddl: str, *, partitions: int
) -> DataFrame:
    """The one exchange: what was sent, by bucket, as a function sees it."""
    together = reduce(lambda a, b: a.unionByName(b), sent)
    # By number, so that Spark does not put small buckets together into one task.
    return together.repartition(partitions, "bucket").groupBy("bucket").applyInArrow(meet, ddl)


# -- tasks ---------------------------------------------------------------------------------------


def _send_input(
    read: Read, sending: Sending, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    digest = sending.digest(committed=False)
    tests = {test.type.table_key: (number, test) for number, test in sending.values.items()}
    broken = dict.fromkeys(sending.values, 0)
    for table_key, rows in read(batches):
        if table_key in tests:
            number, test = tests[table_key]
            broken[number] += test.count(rows)
        yield from digest.take(table_key, sending.shaped(rows))
    yield from digest.rest()
    for number, found in broken.items():
        if found:
            yield number_row(number, found)


def _send_committed(
    scans: Sequence[PinnedScan],
    work: Sequence[tuple[int, FilePiece]],
    sending: Sending,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    digest = sending.digest(committed=True)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            which, piece = work[number]
            scan = scans[which]
            for part in scan.batches(piece):
                rows = sending.shaped(pa.Table.from_batches([part]))
                yield from digest.take(scan.table.type.table_key, rows)
    yield from digest.rest()
