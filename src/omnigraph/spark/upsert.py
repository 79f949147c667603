"""Rows that replace committed ones, by many processes, with the identity of what they replace.

    input rows by bucket ──┐
                           ├─ by bucket: last row of every id, old or new ─▶ files ─┐
    committed ids, places ─┘                                                        ├─▶ Patch
                                        places of replaced rows, by fragment ─▶ marks ─┘

Equal ids meet in one bucket, so its task knows which row is the last, which id is committed, and
where. It writes replaced rows and new rows into separate files, because only the former bring their
row ids along, and passes the places on to the tasks that mark them, one for each fragment. All of
it is one job and is collected once; what a repeated task wrote before is referred to by nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.ddl import schema_of
from omnigraph.arrow.sets import one_array
from omnigraph.errors import InternalError
from omnigraph.query.pinned_scan import ROW_ADDRESS, ROW_ID, PinnedScan
from omnigraph.rules.bucket import last_of_each
from omnigraph.rules.digest import Spread, packed, spread_rows, unpacked
from omnigraph.rules.repeats import stable_hashes
from omnigraph.rules.table_delta import FILE, LINE
from omnigraph.rules.unchanged import FINGERPRINT, blob_columns, plain_columns, with_fingerprint
from omnigraph.schema.same_values import same_mask
from omnigraph.spark.append import TableTarget
from omnigraph.spark.errors import task
from omnigraph.spark.exchange import PinnedState
from omnigraph.spark.input import Intake, Read
from omnigraph.storage.bulk import blobs_at, fragments_from_text, mark_rows, write_partition
from omnigraph.storage.changes import Patch
from omnigraph.storage.layout import Positions
from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion
from omnigraph.storage.pieces import FilePiece
from omnigraph.storage.row_changes import RowIds, by_fragment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, GroupedData, SparkSession

BUCKET_ROWS = 1 << 18
"""About so many rows of the input, whole, are in the memory of a task."""
BUCKETS_MIN, BUCKETS_MAX = 4, 1 << 14
PENDING_BYTES_MAX = 64 << 20

_EXCHANGE_DDL = "bucket int, committed boolean, payload binary"
_EXCHANGE = schema_of(_EXCHANGE_DDL)
_MATCHED_DDL = "fragment bigint, file int, line bigint, number int, payload binary"
_MATCHED = schema_of(_MATCHED_DDL)
"""Rows to mark in a fragment, then the fragment as marked: `line` is how many. Or a file that was
written, with the place of its first row; such rows only pass the tasks that mark."""
_COUNTED_DDL = "n bigint"
_COUNTED = schema_of(_COUNTED_DDL)
_REPLACING, _NEW = -1, -2
"""Stand for the fragment in rows that are files: of replaced rows, and of new ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upserted:
    """What an upsert has put into files."""

    patch: Patch
    written: int
    """Rows, replaced and new ones."""
    replaced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What tasks have to know."""

    location: Location
    target: TableTarget
    buckets: int
    compares: bool
    """Rows that are committed as they are are left out."""

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """What is read of the rows that may be replaced."""
        return plain_columns(self.target.type) if self.compares else ("id",)

    @property
    def base(self) -> TableVersion:
        if self.target.base is None:
            raise InternalError("rows of a table that has none cannot be replaced")
        return self.target.base


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUpsert:
    """Rows of one table on their way to what they replace."""

    spark: SparkSession
    intake: Intake
    location: Location
    target: TableTarget
    state: PinnedState | None
    """What is committed; None if nothing of it is replaced."""
    rows: int
    """About how many the input has."""
    compares: bool = False
    """Rows that are committed as they are are left out."""

    def stage(self) -> Upserted:
        """Write the rows, of every id the last."""
        work = self._work
        written = self._by_bucket(_send_rows).applyInArrow(
            task(lambda table: _write_bucket(work, table)), _MATCHED_DDL
        )
        results = written.groupBy("fragment").applyInArrow(
            task(lambda table: _mark_fragment(work, table)), _MATCHED_DDL
        )
        return _upserted(results)

    def count_unchanged(self) -> int:
        """How many rows are committed as they are. Writes nothing."""
        work = self._work
        counted = self._by_bucket(_send_prints).applyInArrow(
            task(lambda table: _count_bucket(work, table)), _COUNTED_DDL
        )
        return sum(row["n"] for row in counted.collect())

    @property
    def _work(self) -> _Work:
        buckets = min(max(BUCKETS_MIN, -(-self.rows // BUCKET_ROWS)), BUCKETS_MAX)
        return _Work(
            location=self.location, target=self.target, buckets=buckets, compares=self.compares
        )

    def _by_bucket(self, send: Callable[..., Iterator[pa.RecordBatch]]) -> GroupedData:
        work = self._work
        sent = task(partial(send, work, self.intake.read))
        exchanged = self.intake.frame.mapInArrow(sent, _EXCHANGE_DDL)
        if self.state is not None:
            key = self.target.type.table_key
            scan = self.state.scan(key, work.stored_columns, with_address=True)
            exchanged = exchanged.unionByName(_committed_ids(self.spark, scan, work))
        return exchanged.repartition(work.buckets, "bucket").groupBy("bucket")


def _committed_ids(spark: SparkSession, scan: PinnedScan, work: _Work) -> DataFrame:
    pieces = tuple(scan.pieces())
    numbers = spark.range(0, len(pieces), 1, max(1, len(pieces)))
    return numbers.mapInArrow(task(partial(_send_ids, work, scan, pieces)), _EXCHANGE_DDL)


def _upserted(results: DataFrame) -> Upserted:
    """The one action on this frame."""
    rows = results.collect()
    files = [r for r in rows if r["fragment"] < 0]
    files.sort(key=lambda r: (r["fragment"], r["file"], r["line"], r["number"]))
    marks = sorted((r for r in rows if r["fragment"] >= 0), key=lambda r: r["fragment"])
    added = fragments_from_text(r["payload"].decode() for r in files)
    patch = Patch(
        marked=fragments_from_text(r["payload"].decode() for r in marks if r["payload"]),
        gone=tuple(r["fragment"] for r in marks if not r["payload"]),
        added=added,
    )
    return Upserted(
        patch=patch,
        written=sum(part.physical_rows for part in added),
        replaced=sum(r["line"] for r in marks),
    )


# -- tasks: rows and ids to their buckets --------------------------------------------------------


def _send_prints(
    work: _Work, read: Read, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """As much of the rows as it takes to compare them."""
    columns = ["id", FILE, LINE, FINGERPRINT, *blob_columns(work.target.type)]
    return _send_rows(work, read, batches, columns)


def _send_rows(
    work: _Work,
    read: Read,
    batches: Iterable[pa.RecordBatch],
    columns: Sequence[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    pending: list[pa.Table] = []
    size = 0
    for key, rows in read(batches):
        if key != work.target.type.table_key or not rows.num_rows:
            continue
        shaped = with_fingerprint(work.target.type, rows) if work.compares else rows
        pending.append(shaped if columns is None else shaped.select(columns))
        size += pending[-1].nbytes
        if size > PENDING_BYTES_MAX:
            yield from _sent(work, pa.concat_tables(pending), committed=False)
            pending, size = [], 0
    if pending:
        yield from _sent(work, pa.concat_tables(pending), committed=False)


def _send_ids(
    work: _Work, scan: PinnedScan, pieces: tuple[FilePiece, ...], numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            found = list(scan.batches(pieces[number]))
            if found:
                rows = pa.Table.from_batches(found)
                if work.compares:
                    rows = with_fingerprint(work.target.type, rows)
                    rows = rows.select(["id", ROW_ADDRESS, ROW_ID, FINGERPRINT])
                yield from _sent(work, rows, committed=True)


def _sent(work: _Work, rows: pa.Table, *, committed: bool) -> Iterator[pa.RecordBatch]:
    hashes = stable_hashes([rows.column("id")])
    for bucket, part in spread_rows(rows, hashes, Spread(buckets=work.buckets)):
        yield pa.record_batch([[bucket], [committed], [packed(part)]], schema=_EXCHANGE)


# -- tasks: a bucket -----------------------------------------------------------------------------


def _write_bucket(work: _Work, table: pa.Table) -> pa.Table:
    """Write the rows of a bucket; gives the files, and the places of what they replace."""
    mine, theirs = _sides(table)
    if mine is None:
        return _MATCHED.empty_table()
    rows = _last_of_each(mine)
    if theirs is None:
        return pa.Table.from_pylist(_files(work, rows, None), schema=_MATCHED)
    at = one_array(pc.index_in(rows.column("id"), value_set=theirs.column("id")))
    if work.compares and len(same := _unchanged(work, rows, theirs)):
        written = np.ones(rows.num_rows, np.bool_)
        written[same] = False
        rows, at = rows.filter(pa.array(written)), at.filter(pa.array(written))
    places = theirs.select([ROW_ADDRESS, ROW_ID]).take(at.drop_null())
    row_ids = places.column(ROW_ID).to_numpy().astype(np.uint64)
    replaced = _files(work, rows.filter(at.is_valid()), row_ids)
    new = _files(work, rows.filter(at.is_null()), None)
    marks = [
        {"fragment": fragment, "payload": offsets.astype(np.uint32).tobytes()}
        for fragment, offsets in by_fragment(places.column(ROW_ADDRESS).to_numpy())
    ]
    return pa.Table.from_pylist([*replaced, *new, *marks], schema=_MATCHED)


def _count_bucket(work: _Work, table: pa.Table) -> pa.Table:
    mine, theirs = _sides(table)
    same = 0
    if mine is not None and theirs is not None:
        same = len(_unchanged(work, _last_of_each(mine), theirs))
    return pa.Table.from_pylist([{"n": same}], schema=_COUNTED)


def _unchanged(work: _Work, rows: pa.Table, theirs: pa.Table) -> Positions:
    """The places of rows that are committed as they are."""
    found = one_array(pc.index_in(rows.column("id"), value_set=theirs.column("id")))
    places = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    stored = theirs.select([ROW_ADDRESS, FINGERPRINT]).take(found.drop_null())
    own = rows.column(FINGERPRINT).take(pa.array(places))
    same = same_mask(stored.column(FINGERPRINT), own)
    places, stored = places[same], stored.filter(pa.array(same))
    for name in blob_columns(work.target.type):
        if not len(places):
            break
        # Blobs are read only where they decide: of rows that agree in everything else.
        addresses = stored.column(ROW_ADDRESS).to_numpy()
        blobs = blobs_at(work.location, work.base, name, addresses)
        same = same_mask(blobs, rows.column(name).take(pa.array(places)))
        places, stored = places[same], stored.filter(pa.array(same))
    return places


def _sides(table: pa.Table) -> tuple[pa.Table | None, pa.Table | None]:
    payloads: dict[bool, list[Any]] = {False: [], True: []}
    flags = table.column("committed").to_pylist()
    cells = [p for chunk in table.column("payload").chunks for p in chunk]
    for committed, cell in zip(flags, cells, strict=True):
        payloads[committed].append(cell)
    mine, theirs = payloads[False], payloads[True]
    return (unpacked(mine) if mine else None, unpacked(theirs) if theirs else None)


def _last_of_each(rows: pa.Table) -> pa.Table:
    """In the order of the input, without rows that a later one of the same id replaces."""
    rows = rows.sort_by([(FILE, "ascending"), (LINE, "ascending")])
    kept = last_of_each(rows)
    return rows if kept.all() else rows.filter(pa.array(kept))


def _files(work: _Work, rows: pa.Table, row_ids: RowIds | None) -> list[dict[str, Any]]:
    if not rows.num_rows:
        return []
    schema = work.target.schema
    texts = write_partition(
        work.location,
        work.target.type.table_path,
        work.target.base,
        schema,
        [rows.select(schema.names)],
        row_ids=row_ids,
    )
    first = rows.select([FILE, LINE]).slice(0, 1).to_pylist()[0]
    kind = _NEW if row_ids is None else _REPLACING
    place = {"fragment": kind, "file": first[FILE], "line": first[LINE]}
    return [place | {"number": n, "payload": text.encode()} for n, text in enumerate(texts)]


# -- tasks: a fragment ---------------------------------------------------------------------------


def _mark_fragment(work: _Work, table: pa.Table) -> pa.Table:
    """Mark the replaced rows of one fragment; a group of files is passed on."""
    fragment = table.column("fragment")[0].as_py()
    if fragment < 0:
        return table
    payloads = table.column("payload").to_pylist()
    offsets = np.sort(np.concatenate([np.frombuffer(p, np.uint32) for p in payloads]))
    marked = mark_rows(work.location, work.base, fragment, offsets.tolist())
    row = {"fragment": fragment, "line": len(offsets), "payload": marked and marked.encode()}
    return pa.Table.from_pylist([row], schema=_MATCHED)
