"""Exactly what breaks the rules in doubt: one job, whatever their number.

    input rows ─┬────────────── marked as kept or not ─┬─▶ by bucket ─▶ exact rules ─▶ [explain]
    committed ──┴─ (only where ids repeat or meet) ────┘

A row of the input counts in the final state if it is the last of its id, a committed row if the
input does not replace it. Nearly always all of them do; only tables where ids repeat, or where the
input names committed ids, are first brought together by id to find out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import among
from omnigraph.rules.repeats import find_repeats
from omnigraph.spark.check.digest import (
    EXCHANGE_DDL,
    Digest,
    Rows,
    exchange_row,
    packed,
    unpacked,
)
from omnigraph.spark.check.exact import KEPT, Exact, Needed, explain
from omnigraph.spark.check.found import FOUND_DDL
from omnigraph.spark.check.subject import FILE, LINE, Read, Subject
from omnigraph.spark.check.values import ValuesAsked, tell_values
from omnigraph.spark.errors import task
from omnigraph.spark.scan import Scan
from omnigraph.storage.pieces import FilePiece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUCKET_ROWS = 1 << 18
BUCKETS_MIN, BUCKETS_MAX = 4, 1 << 14
_KEY = "_key"

Wanted = Mapping[int, Rows]
"""Topics by their numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Who sends what, and where to."""

    mine: Wanted
    theirs: Wanted
    buckets: int
    mixed: frozenset[str]
    """Tables of which some row may not be kept."""

    def topics(self, *, committed: bool, mixed: bool) -> dict[int, Rows]:
        """The topics of one side, of tables that are mixed or not."""
        side = self.theirs if committed else self.mine
        return {n: t for n, t in side.items() if (t.table_key in self.mixed) == mixed}


def explained(
    spark: SparkSession,
    subject: Subject,
    rules: Sequence[Exact],
    values: ValuesAsked | None,
    *,
    mixed: Collection[str],
    limit: int | None,
) -> DataFrame:
    """Violations and their numbers, in ``FOUND_DDL``; of each rule the first ``limit`` per bucket.

    ``mixed`` names the tables in which ids repeat, or some of whose committed ids the input names.
    """
    parts: list[DataFrame] = []
    if rules:
        parts.append(_by_rules(spark, subject, rules, frozenset(mixed), limit))
    if values is not None:
        told = task(partial(tell_values, values))
        parts.append(subject.intake.frame.mapInArrow(told, FOUND_DDL))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _by_rules(
    spark: SparkSession,
    subject: Subject,
    rules: Sequence[Exact],
    mixed: frozenset[str],
    limit: int | None,
) -> DataFrame:
    needs = list(dict.fromkeys(need for rule in rules for need in rule.needs))
    plan = _plan(subject, needs, mixed)
    mine = plan.topics(committed=False, mixed=False)
    theirs = plan.topics(committed=True, mixed=False)
    parts = [_marked(spark, subject, plan)]
    if mine:
        parts.append(_send_from_input(subject, mine, plan.buckets, by_id=False))
    if scans := _scans(subject, theirs.values()):
        parts.append(_send_from_committed(spark, scans, theirs, plan.buckets, by_id=False))
    sent = reduce(lambda a, b: a.unionByName(b), [part for part in parts if part is not None])
    asked, topics = tuple(rules), {**plan.mine, **plan.theirs}
    return (
        sent.repartition(plan.buckets, "bucket")
        .groupBy("bucket")
        .applyInArrow(
            task(lambda rows: explain(rows, rules=asked, topics=topics, limit=limit)), FOUND_DDL
        )
    )


def _plan(subject: Subject, needs: Sequence[Needed], mixed: frozenset[str]) -> _Plan:
    numbers = {need: number for number, need in enumerate(needs)}
    mine = {n: topic for (committed, topic), n in numbers.items() if not committed}
    theirs = {n: topic for (committed, topic), n in numbers.items() if committed}
    rows = subject.rows + sum(subject.committed.row_count(t.table_key) for t in theirs.values())
    buckets = min(max(BUCKETS_MIN, -(-rows // BUCKET_ROWS)), BUCKETS_MAX)
    return _Plan(mine=mine, theirs=theirs, buckets=buckets, mixed=mixed)


def _scans(subject: Subject, topics: Iterable[Rows]) -> list[Scan]:
    """One scan of each committed table, with the columns of all its topics."""
    columns: dict[str, dict[str, None]] = {}
    for topic in topics:
        stored = [name for name in ("id", *topic.columns) if name not in (KEPT, _KEY)]
        columns.setdefault(topic.table_key, {}).update(dict.fromkeys(stored))
    return [subject.committed.scan(key, tuple(names)) for key, names in columns.items()]


# -- sending rows to where they meet -------------------------------------------------------------


def _send_from_input(subject: Subject, topics: Wanted, buckets: int, *, by_id: bool) -> DataFrame:
    send = partial(_send_input, subject.intake.read, topics, buckets, by_id)
    return subject.intake.frame.mapInArrow(task(send), EXCHANGE_DDL)


def _send_from_committed(
    spark: SparkSession, scans: Sequence[Scan], topics: Wanted, buckets: int, *, by_id: bool
) -> DataFrame:
    work = tuple((number, piece) for number, s in enumerate(scans) for piece in s.pieces())
    send = partial(_send_committed, tuple(scans), work, topics, buckets, by_id)
    numbers = spark.range(0, len(work), 1, max(1, len(work)))
    return numbers.mapInArrow(task(send), EXCHANGE_DDL)


def _send_input(
    read: Read, topics: Wanted, buckets: int, by_id: bool, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    digest = Digest(topics, buckets=buckets, committed=False)
    for table_key, rows in read(batches):
        yield from digest.take(table_key, _with_key(rows) if by_id else _all_kept(rows))
    yield from digest.rest()


def _send_committed(
    scans: Sequence[Scan],
    work: Sequence[tuple[int, FilePiece]],
    topics: Wanted,
    buckets: int,
    by_id: bool,
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    digest = Digest(topics, buckets=buckets, committed=True)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            which, piece = work[number]
            scan = scans[which]
            for part in scan.batches(piece):
                rows = pa.Table.from_batches([part])
                rows = _with_key(rows) if by_id else _all_kept(rows)
                yield from digest.take(scan.table.type.table_key, rows)
    yield from digest.rest()


def _all_kept(rows: pa.Table) -> pa.Table:
    return rows.append_column(KEPT, pa.array(np.ones(rows.num_rows, np.bool_)))


def _with_key(rows: pa.Table) -> pa.Table:
    """With the id once more, and something in the place of ids that are missing."""
    return rows.append_column(_KEY, pc.fill_null(rows.column("id"), ""))


# -- tables of which some row may not be kept ----------------------------------------------------


def _marked(spark: SparkSession, subject: Subject, plan: _Plan) -> DataFrame | None:
    """The rows of mixed tables in terms of the plan, each with its mark."""
    mine = _by_id(plan.topics(committed=False, mixed=True).values(), (FILE, LINE))
    theirs = _by_id(plan.topics(committed=True, mixed=True).values(), ())
    if not mine and not theirs:
        return None
    keys = sorted({*mine, *theirs})
    # Who is kept among committed rows is decided by the ids of the input.
    asked = {
        n: mine.get(key) or Rows(table_key=key, columns=("id", FILE, LINE, _KEY), by=(_KEY,))
        for n, key in enumerate(keys)
    }
    sent = _send_from_input(subject, asked, plan.buckets, by_id=True)
    if theirs:
        stored = {n: theirs[key] for n, key in enumerate(keys) if key in theirs}
        scans = _scans(subject, stored.values())
        committed = _send_from_committed(spark, scans, stored, plan.buckets, by_id=True)
        sent = sent.unionByName(committed)
    marked = (
        sent.repartition(plan.buckets, "bucket")
        .groupBy("bucket")
        .applyInArrow(task(lambda rows: _mark(rows)), EXCHANGE_DDL)
    )
    return marked.mapInArrow(task(partial(_send_marked, plan, tuple(keys))), EXCHANGE_DDL)


def _by_id(topics: Iterable[Rows], place: tuple[str, ...]) -> dict[str, Rows]:
    """By table key: all columns that any topic of a table wants, to be exchanged by id."""
    columns: dict[str, dict[str, None]] = {}
    for topic in topics:
        wanted = [name for name in topic.columns if name != KEPT]
        columns.setdefault(topic.table_key, {}).update(dict.fromkeys(("id", *wanted, *place, _KEY)))
    return {k: Rows(table_key=k, columns=tuple(names), by=(_KEY,)) for k, names in columns.items()}


def _mark(rows: pa.Table) -> pa.Table:
    """A task: which rows of one bucket of ids are kept."""
    payloads = [p for chunk in rows.column("payload").chunks for p in chunk]
    met: dict[int, tuple[list[pa.BinaryScalar], list[pa.BinaryScalar]]] = {}
    flags = rows.column("committed").to_pylist()
    for number, committed, payload in zip(
        rows.column("topic").to_pylist(), flags, payloads, strict=True
    ):
        met.setdefault(number, ([], []))[committed].append(payload)
    parts: list[pa.RecordBatch] = []
    for number, (mine, theirs) in met.items():
        ids = pa.array([], pa.string())
        if mine:
            table = unpacked(mine).sort_by([(FILE, "ascending"), (LINE, "ascending")])
            kept = np.ones(table.num_rows, np.bool_)
            kept[find_repeats([table.column("id")]).superseded()] = False
            ids = table.column("id")
            parts.append(_marked_row(number, table, pa.array(kept), committed=False))
        if theirs:
            table = unpacked(theirs)
            stays = pc.invert(among(table.column("id"), ids))
            parts.append(_marked_row(number, table, stays, committed=True))
    return pa.Table.from_batches(parts)


def _marked_row(
    number: int, table: pa.Table, kept: pa.Array | pa.ChunkedArray, *, committed: bool
) -> pa.RecordBatch:
    whole = table.drop_columns([_KEY]).append_column(KEPT, kept)
    return exchange_row(0, number, packed(whole), committed=committed)


def _send_marked(
    plan: _Plan, keys: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    sides = {
        committed: Digest(
            plan.topics(committed=committed, mixed=True), buckets=plan.buckets, committed=committed
        )
        for committed in (False, True)
    }
    for batch in batches:
        numbers, flags = batch.column("topic").to_pylist(), batch.column("committed").to_pylist()
        for place, payload in enumerate(batch.column("payload")):
            key = keys[int(numbers[place])]
            yield from sides[bool(flags[place])].take(key, unpacked([payload]))
    for digest in sides.values():
        yield from digest.rest()
