"""Rule 3 at scale: both ends of every edge exist, before and after."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.pipeline.check.found import (
    ENDPOINTS,
    SURVIVORS,
    Found,
    Place,
    Row,
    found,
    input_schema,
)
from omnigraph.pipeline.check.subject import FILE, LINE, InputTable, Subject, union
from omnigraph.pipeline.check.unique import row_violation
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.write.rules.words import end_missing, survivor

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def endpoints_found(subject: Subject, number: int, table: InputTable) -> Iterator[Found]:
    """Edges of the input without a node at an end."""
    from pyspark.sql import functions as F

    edge = table.type
    if not isinstance(edge, EdgeType):
        return
    ends = (("src", edge.source), ("dst", edge.target))
    for order, (column, node_name) in enumerate(ends):
        asked = [table.image.select(F.col(c).alias("_end")) for c, n in ends if n == node_name]
        missing = _missing(subject, union(asked), node_name)
        rows = table.image.select("id", column, FILE, LINE)
        rows = rows.join(missing, rows[column] == missing["_end"], "left_semi")
        word = partial(
            _word_end, edge=edge, column=column, node_name=node_name, files=subject.files
        )
        place = Place(table=number, stage=ENDPOINTS, number=order)
        yield found(rows, input_schema(table_schema(edge), (column,)), place, word)


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


def survivors_found(subject: Subject, number: int, table: InputTable) -> Iterator[Found]:
    """Committed edges that stay although a node of this overwritten type goes."""
    from pyspark.sql import functions as F

    node = table.type
    removed = subject.removed(node.table_key)
    if not isinstance(node, NodeType) or removed is None:
        return
    order = 0
    for edge in subject.catalog.edges_at(node.name):
        # An overwritten type has no surviving edges: its new rows were checked as input.
        if not subject.exists(edge.table_key):
            continue
        for column, node_name in (("src", edge.source), ("dst", edge.target)):
            if node_name != node.name:
                continue
            left = subject.untouched(edge.table_key, (column,))
            left = left.select(
                "id", column, F.col("id").alias("_name"), F.lit(order).alias("_rank")
            )
            rows = left.join(removed, left[column] == removed["_gone"], "left_semi")
            schema = pa.schema(
                [
                    ("id", pa.string()),
                    (column, pa.string()),
                    ("_name", pa.string()),
                    ("_rank", pa.int32()),
                ]
            )
            word = partial(_word_survivor, edge=edge, column=column)
            yield found(rows, schema, Place(table=number, stage=SURVIVORS), word)
            order += 1


def _word_end(
    row: Row, *, edge: EdgeType, column: str, node_name: str, files: tuple[str, ...]
) -> Violation:
    message = end_missing(column, row[column], node_name)
    return row_violation(row, edge, files, "endpoint", message, column)


def _word_survivor(row: Row, *, edge: EdgeType, column: str) -> Violation:
    return survivor(edge, column, row["id"], row[column])
