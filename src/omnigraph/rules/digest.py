"""Key columns on their way from the tasks that read rows to those that compare them.

    rows of one task -> [digest] -> (bucket, topic, committed, payload) -> rules, bucket by bucket

Strings of equal value always meet in one bucket, whichever task read them. A payload is an Arrow
stream of many values, so that a million ids pass through Spark as a few rows; a join of a million
rows of its own costs ten times as much. Ends of edges repeat a lot and travel once per task.

Both passes find the bucket of a key in the same way: of a number of buckets, or of a multiple of
it. So the exact pass can leave out the keys of buckets in which the first one found nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.ddl import schema_of
from omnigraph.rules.repeats import HASHED_BYTES, complete_rows, stable_hashes

EXCHANGE_DDL = "bucket int, topic int, committed boolean, payload binary"
COUNTS = -1
"""The bucket of plain numbers, which are added up."""
PENDING_VALUES_MAX = 1 << 21
"""A task that has more in hand sends them on."""
BUCKETS_MAX = 1 << 14
BATCH_BYTES = 16 << 20
"""About so much passes to Spark at once."""
_EXCHANGE = schema_of(EXCHANGE_DDL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The values of a string column."""

    table_key: str
    column: str
    distinct: bool = False
    """Every value once or a few times per task, not as often as it occurs."""
    counted: bool = False
    """Distinct values come with the number of their rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What is read for it."""
        return (self.column,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuples:
    """Hashes of tuples without nulls."""

    table_key: str
    group: tuple[str, ...]
    holders: bool = False
    """And of the ids that hold them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What is read for it."""
        return tuple(dict.fromkeys(("id", *self.group))) if self.holders else self.group


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedRows:
    """Some columns of all rows, brought together by others, of which none is null."""

    table_key: str
    columns: tuple[str, ...]
    by: tuple[str, ...]


Topic = Texts | Tuples | KeyedRows
Sided = tuple[bool, Topic]
"""A topic of the committed state, or of the input."""
Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How keys are spread over buckets."""

    buckets: int
    """Of the first pass."""
    parts: int = 1
    """Into so many each of them is divided."""
    wanted: Mapping[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    """By topic: the buckets of the first pass whose keys are sent; without an entry all are."""

    def of(self, hashes: Numbers) -> Numbers:
        """The bucket of each key."""
        # The upper bits: the lower ones of a short text are hardly mixed.
        return (hashes >> np.uint64(32)) % np.uint64(self.buckets * self.parts)

    def left_out(self, topic: int, hashes: Numbers) -> npt.NDArray[np.bool_] | None:
        """The keys that are not sent; None if all are."""
        wanted = self.wanted.get(topic)
        if wanted is None or len(wanted) == self.buckets:
            return None
        first = self.of(hashes) % np.uint64(self.buckets)
        return np.isin(first, np.array(sorted(wanted), np.uint64), invert=True)


class Digest:
    """What one task has read of some topics, until it is sent on."""

    def __init__(self, topics: Mapping[int, Topic], spread: Spread, *, committed: bool) -> None:
        self._topics = topics
        self._spread = spread
        self._committed = committed
        self._pending: dict[int, list[pa.Table]] = {}
        self._values = 0

    def take(self, table_key: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Look at some rows; gives what has become too much to keep."""
        for number, topic in self._topics.items():
            if topic.table_key == table_key and rows.num_rows:
                self._pending.setdefault(number, []).append(rows.select(list(topic.columns)))
                self._values += rows.num_rows
        if self._values > PENDING_VALUES_MAX:
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Everything that is still in hand."""
        for number, tables in self._pending.items():
            topic, rows = self._topics[number], pa.concat_tables(tables)
            hashes, values = _digest(topic, rows, committed=self._committed)
            left_out = self._spread.left_out(number, hashes)
            if left_out is not None:
                hashes, values = hashes[~left_out], values.filter(pa.array(~left_out))
            yield from self._sent(number, topic, hashes, values)
        self._pending.clear()
        self._values = 0

    def _sent(
        self, number: int, topic: Topic, hashes: Numbers, values: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        if not values.num_rows:
            return
        batch = _Batch(number, committed=self._committed)
        for bucket, part in spread_rows(values, hashes, self._spread):
            # Bucket by bucket, because a small table of distinct values stays in the cache.
            batch.add(bucket, _once(topic, part))
            if batch.size > BATCH_BYTES:
                yield batch.taken()
                batch = _Batch(number, committed=self._committed)
        if batch.size:
            yield batch.taken()


class _Batch:
    """Payloads of one topic, written one behind the other, that become a batch without a copy."""

    def __init__(self, topic: int, *, committed: bool) -> None:
        self._topic = topic
        self._committed = committed
        self._sink = pa.BufferOutputStream()
        self._ends = [0]
        self._buckets: list[int] = []

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._ends[-1]

    def add(self, bucket: int, table: pa.Table) -> None:
        """One more payload."""
        with pa.ipc.new_stream(self._sink, table.schema) as stream:
            stream.write_table(table)
        self._buckets.append(bucket)
        self._ends.append(self._sink.tell())

    def taken(self) -> pa.RecordBatch:
        """All of them; nothing can be added afterwards."""
        count = len(self._buckets)
        ends = pa.py_buffer(np.array(self._ends, np.int32))
        payloads = pa.Array.from_buffers(pa.binary(), count, [None, ends, self._sink.getvalue()])
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self._buckets, pa.int32()),
                pa.array([self._topic] * count, pa.int32()),
                pa.array([self._committed] * count),
                payloads,
            ],
            schema=_EXCHANGE,
        )


def spread_rows(rows: pa.Table, hashes: Numbers, spread: Spread) -> Iterator[tuple[int, pa.Table]]:
    """Rows by the buckets of their keys: equal keys are in one, whichever task asks."""
    # Numbers of 16 bits are sorted by radix.
    owners = spread.of(hashes).astype(np.uint16)
    order = np.argsort(owners, kind="stable")
    ordered = rows.take(pa.array(order)).combine_chunks()
    starts = np.searchsorted(owners[order], np.arange(spread.buckets * spread.parts + 1))
    for bucket in np.flatnonzero(np.diff(starts)).tolist():
        first, last = int(starts[bucket]), int(starts[bucket + 1])
        yield bucket, ordered.slice(first, last - first)


def number_row(topic: int, number: int) -> pa.RecordBatch:
    """A plain number, to be added up with the others of its topic."""
    return exchange_row(COUNTS, topic, number.to_bytes(8, "little"), committed=False)


def packed(table: pa.Table) -> bytes:
    """A table as a payload."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def unpacked(payloads: Sequence[pa.BinaryScalar]) -> pa.Table:
    """The inverse of ``packed``, of many payloads."""
    tables: list[pa.Table] = []
    for payload in payloads:
        with pa.ipc.open_stream(payload.as_buffer()) as stream:
            tables.append(stream.read_all())
    return pa.concat_tables(tables)


def _digest(topic: Topic, rows: pa.Table, *, committed: bool) -> tuple[Numbers, pa.Table]:
    """The values of a topic and what decides on their buckets."""
    if isinstance(topic, KeyedRows):
        return _complete(rows, topic.by)
    if isinstance(topic, Tuples):
        hashes, rows = _complete(rows, topic.group)
        sent = {"tuple": pa.array(hashes)}
        if topic.holders:
            sent["holder"] = pa.array(_holders(rows.column("id"), committed=committed))
        return hashes, pa.table(sent)
    column = rows.column(0)
    column = column.drop_null() if column.null_count else column
    return stable_hashes([_plain(column)]), pa.table({"text": column})


def _complete(rows: pa.Table, by: tuple[str, ...]) -> tuple[Numbers, pa.Table]:
    """Rows without a null in some columns, and the hashes of these."""
    complete = complete_rows([rows.column(c) for c in by])
    if len(complete) < rows.num_rows:
        rows = rows.take(pa.array(complete))
    return stable_hashes([_plain(rows.column(c)) for c in by]), rows


def _holders(ids: pa.ChunkedArray, *, committed: bool) -> Numbers:
    """A number for each id. Those of the two sides agree only if the ids certainly do."""
    ids = _plain(pc.fill_null(ids, ""))
    hashes = stable_hashes([ids])
    if committed:
        # Of a long id only the ends are hashed: that two agree there makes them no one entity.
        hashes[pc.greater(pc.binary_length(ids), HASHED_BYTES).to_numpy()] ^= np.uint64(1)
    return hashes


def _once(topic: Topic, texts: pa.Table) -> pa.Table:
    """Every text of a distinct topic once, if wanted with the number of its rows."""
    if not isinstance(topic, Texts) or not topic.distinct:
        return texts
    if not topic.counted:
        return pa.table({"text": pc.unique(texts.column("text"))})
    counted = pc.value_counts(texts.column("text"))
    rows = counted.field("counts").cast(pa.int32())
    return pa.table({"text": counted.field("values"), "rows": rows})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Chunks without nulls: what stands in the place of a null is no value."""
    return column.drop_null() if column.null_count else column


def exchange_row(bucket: int, topic: int, payload: bytes, *, committed: bool) -> pa.RecordBatch:
    """One row that is exchanged."""
    return pa.record_batch([[bucket], [topic], [committed], [payload]], schema=_EXCHANGE)
