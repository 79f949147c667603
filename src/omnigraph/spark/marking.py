"""What versions of a table need, found by executors: the first half of a cleanup of a large past.

    kept versions of a table -> tasks: open each, list its files -> [marking] -> names, each once

A cleanup in one process opens every version that is kept. That is one open for each, and lists of
files that overlap nearly completely: so tasks open them, and the driver gets each name once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion
from omnigraph.storage.pieces import open_pinned
from omnigraph.storage.reach import table_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VERSIONS_PER_TASK = 32
_NAMES = "name string"


def mark_on_spark(
    spark: SparkSession, location: Location, versions: Sequence[TableVersion]
) -> Iterator[str]:
    """The files of these versions, from the root, each once."""
    from omnigraph.spark.errors import task, translated

    if not versions:
        return
    tasks = -(-len(versions) // VERSIONS_PER_TASK)
    numbers = spark.range(0, len(versions), 1, tasks)
    with translated("looking at the past"):
        names = numbers.mapInArrow(task(partial(_files, location, tuple(versions))), _NAMES)
        for row in names.distinct().toLocalIterator():
            yield row[0]


def _files(
    location: Location, versions: Sequence[TableVersion], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What the versions of one task need; versions that follow each other share most of it."""
    for batch in numbers:
        needed: dict[str, None] = {}
        for number in batch.column(0).to_pylist():
            needed.update(dict.fromkeys(table_files(open_pinned(location, versions[number]))))
        yield pa.RecordBatch.from_pydict({"name": list(needed)})
