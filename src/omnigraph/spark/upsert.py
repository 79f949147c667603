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

from collections.abc import Iterable, Iterator
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
from omnigraph.spark.append import TableTarget
from omnigraph.spark.errors import task
from omnigraph.spark.input import Intake, Read
from omnigraph.storage.bulk import fragments_from_text, mark_rows, write_partition
from omnigraph.storage.changes import Patch
from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion
from omnigraph.storage.pieces import FilePiece
from omnigraph.storage.row_changes import RowIds, by_fragment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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

    @property
    def base(self) -> TableVersion:
        if self.target.base is None:
            raise InternalError("rows of a table that has none cannot be replaced")
        return self.target.base


def stage_upsert(
    spark: SparkSession,
    intake: Intake,
    location: Location,
    target: TableTarget,
    committed: PinnedScan | None,
    *,
    rows: int,
) -> Upserted:
    """Write the rows of one table, of every id the last.

    ``committed`` scans the ids of the table's base with addresses; None while it has no version.
    ``rows``: about how many the input has.
    """
    buckets = min(max(BUCKETS_MIN, -(-rows // BUCKET_ROWS)), BUCKETS_MAX)
    work = _Work(location=location, target=target, buckets=buckets)
    exchanged = intake.frame.mapInArrow(task(partial(_send_rows, work, intake.read)), _EXCHANGE_DDL)
    if committed is not None:
        exchanged = exchanged.unionByName(_committed_ids(spark, committed, work))
    written = (
        exchanged.repartition(buckets, "bucket")
        .groupBy("bucket")
        .applyInArrow(task(lambda table: _write_bucket(work, table)), _MATCHED_DDL)
    )
    results = written.groupBy("fragment").applyInArrow(
        task(lambda table: _mark_fragment(work, table)), _MATCHED_DDL
    )
    return _upserted(results)


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


def _send_rows(
    work: _Work, read: Read, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    pending: list[pa.Table] = []
    size = 0
    for key, rows in read(batches):
        if key != work.target.type.table_key or not rows.num_rows:
            continue
        pending.append(rows)
        size += rows.nbytes
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
                yield from _sent(work, pa.Table.from_batches(found), committed=True)


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
    places = theirs.select([ROW_ADDRESS, ROW_ID]).take(at.drop_null())
    row_ids = places.column(ROW_ID).to_numpy().astype(np.uint64)
    replaced = _files(work, rows.filter(at.is_valid()), row_ids)
    new = _files(work, rows.filter(at.is_null()), None)
    marks = [
        {"fragment": fragment, "payload": offsets.astype(np.uint32).tobytes()}
        for fragment, offsets in by_fragment(places.column(ROW_ADDRESS).to_numpy())
    ]
    return pa.Table.from_pylist([*replaced, *new, *marks], schema=_MATCHED)


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
