"""Rule 3 at scale: both ends of every edge exist, before and after."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import InternalError, Violation
from omnigraph.pipeline.check.found import Found, Place, Row, found, input_schema
from omnigraph.pipeline.check.subject import FILE, LINE, InputTable, Subject, col, union
from omnigraph.pipeline.check.unique import row_violation
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.write.rules.words import end_missing, survivor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def ends_found(
    subject: Subject, table: InputTable, *, place: Place, column: str, node_name: str
) -> Found:
    """Edges of the input without a node at one end."""
    rows = table.image.select("id", column, FILE, LINE)
    missing = _missing(subject, table.image.select(col(column).alias("_end")), node_name)
    rows = rows.join(missing, rows[column] == missing["_end"], "left_semi")
    word = partial(
        _word_end, edge=table.type, column=column, node_name=node_name, files=subject.files
    )
    return found(rows, input_schema(table_schema(table.type), (column,)), place, word)


def _missing(subject: Subject, ends: DataFrame, node_name: str) -> DataFrame:
    """The distinct ends that are neither in the input nor among committed nodes that stay."""
    from pyspark.sql import functions as F

    distinct = ends.where(F.col("_end").isNotNull()).distinct()
    known: list[DataFrame] = []
    key = f"node:{node_name}"
    if key in subject.tables:
        known.append(subject.tables[key].rows.select(F.col("id").alias("_known")))
    if subject.exists(key):
        known.append(subject.committed.frame(key, ("id",)).select(F.col("id").alias("_known")))
    if not known:
        return distinct
    there = union(known)
    return distinct.join(there, distinct["_end"] == there["_known"], "left_anti")


def survivors_found(
    subject: Subject, table: InputTable, *, place: Place, edge: EdgeType, column: str, order: int
) -> Found:
    """Committed edges that stay although the node at one end goes with its overwritten type."""
    from pyspark.sql import functions as F

    removed = subject.removed(table.type.table_key)
    if removed is None:
        raise InternalError(f"no node of {table.type.name} goes")
    left = subject.untouched(edge.table_key, (column,)).select(
        "id", column, F.col("id").alias("_name"), F.lit(order).alias("_rank")
    )
    rows = left.join(removed, left[column] == removed["_gone"], "left_semi")
    word = partial(_word_survivor, edge=edge, column=column)
    return found(rows, _survivor_schema(column), place, word)


def _survivor_schema(column: str) -> pa.Schema:
    texts = [pa.field(name, pa.string()) for name in ("id", column, "_name")]
    return pa.schema([*texts, pa.field("_rank", pa.int32())])


def _word_end(
    row: Row, *, edge: GraphType, column: str, node_name: str, files: tuple[str, ...]
) -> Violation:
    message = end_missing(column, row[column], node_name)
    return row_violation(row, edge, files, "endpoint", message, column)


def _word_survivor(row: Row, *, edge: EdgeType, column: str) -> Violation:
    return survivor(edge, column, row["id"], row[column])
