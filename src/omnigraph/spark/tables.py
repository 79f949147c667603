"""The tables of one snapshot as Spark DataFrames.

    repository, snapshot -> PinnedGraph -> [tables] -> DataFrame

A DataFrame made here reads one snapshot for ever: every task opens the version that the snapshot
pins. Columns and conditions have to be given here, not by ``select`` and ``where`` afterwards:
Spark cannot look into the function that reads, and so cannot take anything away from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import UsageError
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.query.pinned_scan import PinnedScan
from omnigraph.schema.arrow import table_schema
from omnigraph.spark.arrow import carried_schema, spark_schema, to_spark
from omnigraph.spark.errors import task
from omnigraph.storage.pieces import FilePiece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.query.exec.evaluate import Values
    from omnigraph.query.pinned_scan import Condition

ROWS_TOLD_MAX = 100_000_000
"""So many rows are too many to send to every executor."""


def table_frame(
    spark: SparkSession,
    pinned: PinnedGraph,
    table_key: str,
    columns: Sequence[str] | None = None,
    condition: Condition | None = None,
    *,
    values: Values | None = None,
    with_address: bool = False,
) -> DataFrame:
    """The rows of ``node:Name`` or ``edge:Name``: only these columns, where the condition holds.

    ``condition`` is an Arrow expression that Lance understands, or a typed expression of the query
    language with ``values`` for its parameters. ``with_address`` adds ``_rowaddr``, the place of a
    row in this version, and ``_rowid``, its identity.
    """
    graph_type = pinned.catalog.table(table_key)
    if isinstance(columns, str):
        raise UsageError("columns is a list of names", hint=f'say columns=["{columns}"]')
    names = table_schema(graph_type).names if columns is None else columns
    scan = PinnedScan(
        table=pinned.table(graph_type),
        columns=tuple(names),
        condition=condition,
        values=values,
        with_address=with_address,
    )
    return scan_frame(spark, scan)


def scan_frame(spark: SparkSession, scan: PinnedScan) -> DataFrame:
    """The rows of a scan, a task for each of its pieces, in storage order."""
    schema = spark_schema(scan.schema)
    pieces = scan.pieces()
    numbers = _numbers(spark, len(pieces), scan.table.row_count)
    return numbers.mapInArrow(task(partial(_read, scan, tuple(pieces))), schema)


def _numbers(spark: SparkSession, pieces: int, rows: int) -> DataFrame:
    """A number for each piece, in a partition of its own, that Spark takes for about as many rows.

    Spark guesses how large the result of a function is from how much goes into it. One number a
    piece looks like a table of a few bytes, and a join would send the whole table to every
    executor, by way of the driver. Numbers that are made and left out at once cost next to nothing
    if that takes no division.
    """
    from pyspark.sql import functions as F

    each = max(1, min(rows, ROWS_TOLD_MAX) // max(1, pieces))
    bits = each.bit_length() - 1
    numbers = spark.range(0, pieces << bits, 1, max(1, pieces))
    if not bits:
        return numbers
    first = F.col("id").bitwiseAND(F.lit((1 << bits) - 1)) == F.lit(0)
    return numbers.filter(first).select(F.shiftright(F.col("id"), bits).alias("id"))


def _read(
    scan: PinnedScan, pieces: Sequence[FilePiece], numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Runs on executors: the rows of the pieces with these numbers."""
    carried = carried_schema(scan.schema)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for rows in scan.batches(pieces[number]):
                yield to_spark(rows, carried)
