"""A snapshot written to files by executors: Parquet, or JSONL that loads back exactly.

    PinnedGraph -> pieces of all tables -> [export: a part each, on executors] -> names -> files

    out/nodes/Person/part-00000.parquet …   out/edges/Knows/part-00000.parquet …   out/_export.json

A task writes its part under a name of its own attempt, out of sight. Only the names that came back
to the driver become files, so a task that was repeated, or ran twice at a time, changes nothing.
``_export.json`` is written last: where it is, the export is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import pyarrow as pa

from omnigraph.errors import UsageError
from omnigraph.ids import SystemIds
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.query.pinned_scan import PinnedScan
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EntityKind, GraphType
from omnigraph.schema.table_text import write_csv, write_parquet
from omnigraph.spark.errors import task, translated
from omnigraph.storage.location import Location, locate
from omnigraph.storage.objects import Objects
from omnigraph.storage.pieces import FilePiece
from omnigraph.storage.streams import move, open_output, remove_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Format = Literal["parquet", "jsonl", "csv"]
FORMATS: tuple[Format, ...] = ("parquet", "jsonl", "csv")
MARKER = "_export.json"
PARTS = "_parts"
_MOVERS = 8
_REPORT = "number bigint, part string, row_count bigint, bytes bigint"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedType:
    """What was written of one type."""

    name: str
    kind: EntityKind
    rows: int
    bytes: int
    files: tuple[str, ...]
    """Below the folder of the export, in storage order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A finished export."""

    uri: str
    format: Format
    commit_id: str
    types: tuple[ExportedType, ...]

    @property
    def rows(self) -> int:
        """Of all types."""
        return sum(t.rows for t in self.types)

    def to_dict(self) -> dict[str, Any]:
        """As ``_export.json`` has it."""
        return {
            "format": self.format,
            "graph_commit_id": self.commit_id,
            "rows": self.rows,
            "types": [
                {"type": t.name, "kind": t.kind, "rows": t.rows, "files": list(t.files)}
                for t in self.types
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What executors have to know."""

    out: Location
    format: Format
    scans: tuple[PinnedScan, ...]
    work: tuple[tuple[int, FilePiece], ...]
    """Pieces to write, each with the number of its scan."""


def export_snapshot(
    spark: SparkSession,
    pinned: PinnedGraph,
    out: str | os.PathLike[str],
    *,
    format: Format = "parquet",
    types: Sequence[str] = (),
) -> Export:
    """Write all types of a snapshot, or these, to an empty folder or an empty ``s3://`` prefix.

    A folder must be one that executors and driver share. Parquet files have the graph's own Arrow
    schema; JSONL lines are those of ``graph.export``, and the parts of a type in the order of their
    names are in its order too. Nothing is left behind if it fails.
    """
    if format not in FORMATS:
        raise UsageError(f"unknown format '{format}'", hint=f"use {' or '.join(FORMATS)}")
    location = locate(out)
    chosen = _chosen(pinned, types)
    objects = empty_place(location)
    scans = tuple(
        PinnedScan(table=pinned.table(t), columns=tuple(table_schema(t).names)) for t in chosen
    )
    work = tuple((n, piece) for n, scan in enumerate(scans) for piece in scan.pieces())
    job = _Job(out=location, format=format, scans=scans, work=work)
    try:
        parts = _run(spark, job)
        done = Export(
            uri=location.uri,
            format=format,
            commit_id=pinned.commit_id,
            types=tuple(_settle(job, parts)),
        )
    finally:
        # Also what repeated tasks left; after a success nothing else is there any more.
        remove_below(location, PARTS)
    objects.put(MARKER, json.dumps(done.to_dict(), indent=1).encode())
    return done


def empty_place(location: Location) -> Objects:
    """Where an export can go. Raises ``UsageError`` if something is there."""
    objects = Objects(location, create=True)
    if next(iter(objects.names("")), None) is not None:
        raise UsageError(f"{location.uri} is not empty", hint="export to a new folder or prefix")
    return objects


def _chosen(pinned: PinnedGraph, types: Sequence[str]) -> list[GraphType]:
    if isinstance(types, str):
        raise UsageError("types is a list of names", hint=f'say types=["{types}"]')
    named = {t.table_key: t for t in (pinned.type(name) for name in types)}
    return list(named.values()) or list(pinned.catalog.types())


def _run(spark: SparkSession, job: _Job) -> dict[int, Any]:
    """One job for all types. It is collected once: collecting again would write again."""
    if not job.work:
        return {}
    numbers = spark.range(0, len(job.work), 1, len(job.work))
    with translated("exporting"):
        rows = numbers.mapInArrow(task(partial(_write_parts, job)), _REPORT).collect()
    return {row["number"]: row for row in rows}


# -- on executors --------------------------------------------------------------------------------


def _write_parts(job: _Job, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            which, piece = job.work[number]
            scan = job.scans[which]
            name = f"{PARTS}/{SystemIds().ulid()}"
            with open_output(job.out, name) as out:
                counted = _Counted(scan.batches(piece))
                _WRITERS[job.format](scan, counted, out)
                size = out.tell()
            yield pa.RecordBatch.from_pydict(
                {"number": [number], "part": [name], "row_count": [counted.rows], "bytes": [size]}
            )


class _Counted:
    """Batches, and how many rows went by."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _write_jsonl(scan: PinnedScan, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    from omnigraph.schema.json_text import write_jsonl

    write_jsonl(scan.table.type, batches, out)


def _write_parquet(scan: PinnedScan, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    write_parquet(scan.schema, batches, out)


def _write_csv(scan: PinnedScan, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    write_csv(scan.schema, batches, out)


_WRITERS = {"parquet": _write_parquet, "jsonl": _write_jsonl, "csv": _write_csv}


# -- on the driver -------------------------------------------------------------------------------


def _settle(job: _Job, parts: Mapping[int, Any]) -> Iterator[ExportedType]:
    """Give every reported part its place, type by type."""
    with ThreadPoolExecutor(_MOVERS) as movers:
        for index, scan in enumerate(job.scans):
            graph_type = scan.table.type
            mine = [parts[n] for n, (which, _) in enumerate(job.work) if which == index]
            names = [_file_name(job, graph_type, i) for i in range(len(mine))]
            moves = zip((part["part"] for part in mine), names, strict=True)
            # A list: only asking for the outcome of a move says whether it succeeded.
            list(movers.map(lambda pair: move(job.out, *pair), moves))
            if not mine and job.format != "jsonl":
                # A type without rows is still a table, and its file says of which columns.
                names = [_file_name(job, graph_type, 0)]
                with open_output(job.out, names[0]) as out:
                    _WRITERS[job.format](scan, (), out)
            yield ExportedType(
                name=graph_type.name,
                kind=graph_type.kind,
                rows=sum(part["row_count"] for part in mine),
                bytes=sum(part["bytes"] for part in mine),
                files=tuple(names),
            )


def _file_name(job: _Job, graph_type: GraphType, number: int) -> str:
    return f"{graph_type.kind}s/{graph_type.name}/part-{number:05}.{job.format}"
