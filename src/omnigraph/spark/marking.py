"""What versions of a table need, found by executors: the first half of a cleanup of a large past.

    kept versions of a table -> tasks: open each, list its files -> [marking] -> names, each once

A cleanup in one process opens every version that is kept. That is one open for each, and lists of
files that overlap nearly completely: so tasks open them, and only names that differ come home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import UsageError
from omnigraph.input.engine import Engine
from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion
from omnigraph.storage.pieces import open_pinned
from omnigraph.storage.reach import table_files

if TYPE_CHECKING:
    from collections.abc import Generator

    from pyspark.sql import SparkSession

Mark = Callable[[Sequence[TableVersion]], Iterator[str]]

AUTO_VERSIONS = 5_000
"""Tables of which so many versions are kept are for Spark."""
VERSIONS_PER_TASK = 32
_NAMES = "name string"


@contextmanager
def marking(
    location: Location, here: Callable[[Sequence[TableVersion]], Any], engine: str, spark: Any
) -> Generator[Callable[[Sequence[TableVersion]], Any]]:
    """How to mark with an engine: ``local`` is ``here``, ``auto`` goes by how much there is."""
    if engine not in ("auto", *Engine):
        raise UsageError(f"unknown engine '{engine}'", hint="use auto, local or spark")
    with ExitStack() as open_sessions:
        made: list[Mark] = []

        def on_spark(versions: Sequence[TableVersion]) -> Iterator[str]:
            from omnigraph.spark.sessions import pipeline_session

            if not made:
                pipeline = open_sessions.enter_context(pipeline_session(spark))
                made.append(partial(mark_on_spark, pipeline.spark, location))
            return made[0](versions)

        def by_size(versions: Sequence[TableVersion]) -> Any:
            return on_spark(versions) if _is_large(versions) else here(versions)

        if engine == Engine.SPARK or (engine == "auto" and spark is not None):
            yield on_spark
        else:
            yield here if engine == Engine.LOCAL else by_size


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


def _is_large(versions: Sequence[TableVersion]) -> bool:
    if len(versions) < AUTO_VERSIONS:
        return False
    from omnigraph.spark.sessions import spark_available

    return spark_available()
