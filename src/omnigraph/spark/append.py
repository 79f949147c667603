"""Rows become data files, written by the tasks that hold them.

    packed input -> [append: tasks write, the driver collects what they wrote] -> StagedFiles

What a task wrote counts only if its answer arrives, and the answers are collected exactly once: a
repeated, speculative or lost task leaves files that nothing refers to. The files of one table come
in the order of the input, whichever task was ready first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.arrow.ddl import schema_of
from omnigraph.errors import InternalError
from omnigraph.rules.table_delta import FILE, LINE
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.spark.errors import task
from omnigraph.spark.input import Intake, Read
from omnigraph.storage.bulk import staged_files, write_partition
from omnigraph.storage.changes import StagedFiles
from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASK_ROWS = 1 << 20
"""A task writes about so many rows: fewer make many small files, and Lance begins a new one."""
TASKS_MIN = 16
"""Unless there are fewer tasks to begin with."""
PENDING_BYTES_MAX = 256 << 20
"""A task that has more rows in hand writes those of the largest table."""

STAGED_DDL = "key string, file int, line bigint, number int, fragment string"
_STAGED = schema_of(STAGED_DDL)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTarget:
    """A table that rows are written to."""

    type: GraphType
    base: TableVersion | None
    """The version that is replaced or added to; None for a table without one."""

    @property
    def schema(self) -> pa.Schema:
        """The columns that are written."""
        return table_schema(self.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writing:
    """What tasks that write have to know."""

    location: Location
    targets: Mapping[str, TableTarget]
    read: Read


def stage_rows(
    intake: Intake, location: Location, targets: Mapping[str, TableTarget], rows: Mapping[str, int]
) -> dict[str, StagedFiles]:
    """Write all rows of these tables. ``rows`` says how many there are; another number is an error.

    One pass over the input, however many tables there are.
    """
    writing = _Writing(location=location, targets=targets, read=intake.read)
    tasks = max(TASKS_MIN, -(-sum(rows.values()) // TASK_ROWS))
    written = intake.frame.coalesce(tasks).mapInArrow(task(partial(_write, writing)), STAGED_DDL)
    found = collected(written)
    files = {key: staged_files(found.get(key, [])) for key in targets}
    for key, expected in rows.items():
        arrived = sum(part.physical_rows for part in files[key].fragments)
        if arrived != expected:
            raise InternalError(f"{arrived} of {expected} rows of {key} were written")
    return files


def collected(written: DataFrame) -> dict[str, list[str]]:
    """What tasks wrote, by table key, in the order of the input. The one action on this frame."""
    rows = written.collect()
    found: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda r: (r["key"], r["file"], r["line"], r["number"])):
        found.setdefault(row["key"], []).append(row["fragment"])
    return found


# -- tasks ---------------------------------------------------------------------------------------


def _write(writing: _Writing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    pending: dict[str, list[pa.Table]] = {}
    sizes: dict[str, int] = {}
    for key, rows in writing.read(batches):
        if key not in writing.targets or not rows.num_rows:
            continue
        pending.setdefault(key, []).append(rows)
        sizes[key] = sizes.get(key, 0) + rows.nbytes
        if sum(sizes.values()) > PENDING_BYTES_MAX:
            largest = max(sizes, key=lambda k: sizes[k])
            yield _written(writing, largest, pending.pop(largest))
            del sizes[largest]
    for key, tables in pending.items():
        yield _written(writing, key, tables)


def _written(writing: _Writing, key: str, tables: list[pa.Table]) -> pa.RecordBatch:
    target = writing.targets[key]
    schema = target.schema
    first: dict[str, Any] = tables[0].select([FILE, LINE]).slice(0, 1).to_pylist()[0]
    texts = write_partition(
        writing.location,
        target.type.table_path,
        target.base,
        schema,
        (table.select(schema.names) for table in tables),
    )
    place = {"key": key, "file": first[FILE], "line": first[LINE]}
    staged = [place | {"number": n, "fragment": text} for n, text in enumerate(texts)]
    return pa.RecordBatch.from_pylist(staged, schema=_STAGED)
