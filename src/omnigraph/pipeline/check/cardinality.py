"""Rule 4 at scale: the number of edges per source stays within ``@card``.

Checked for every source whose edges the input touches: sources of its edges, and of the committed
edges it replaces. A source that disappears is not held to anything.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.pipeline.check.found import Found, Place, Row, found
from omnigraph.pipeline.check.subject import FILE, LINE, InputTable, Subject
from omnigraph.schema.catalog import EdgeType
from omnigraph.write.rules.words import out_of_bounds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FOUND = pa.schema(
    [
        ("_source", pa.string()),
        ("_edges", pa.int64()),
        ("_rank", pa.int32()),
        (FILE, pa.int32()),
        (LINE, pa.int64()),
        ("_name", pa.string()),
        ("_last_file", pa.int32()),
        ("_last_line", pa.int64()),
        ("_last_id", pa.string()),
    ]
)


def cardinality_found(
    subject: Subject, table: InputTable, *, place: Place, edge: EdgeType
) -> Found:
    """Sources with too many or too few edges."""
    from pyspark.sql import functions as F

    low, high = edge.cardinality.low, edge.cardinality.high
    counted = _counted(subject, table, edge)
    removed = subject.removed(f"node:{edge.source}")
    if removed is not None:
        counted = counted.join(removed, counted["_source"] == removed["_gone"], "left_anti")
    wrong = F.col("_edges") < low
    if high is not None:
        wrong = wrong | (F.col("_edges") > high)
    # First the sources of the input in its order, then the others by name.
    own = F.col("_first").isNotNull()
    rows = counted.where(wrong).select(
        "_source",
        "_edges",
        F.when(own, 0).otherwise(1).alias("_rank"),
        F.col("_first._file").alias(FILE),
        F.col("_first._line").alias(LINE),
        F.when(own, "").otherwise(F.col("_source")).alias("_name"),
        F.col("_last._file").alias("_last_file"),
        F.col("_last._line").alias("_last_line"),
        F.col("_last.id").alias("_last_id"),
    )
    word = partial(_word, edge=edge, files=subject.files)
    return found(rows, _FOUND, place, word)


def _counted(subject: Subject, table: InputTable, edge: EdgeType) -> DataFrame:
    """Every touched source with its edges to be: their number, the first and last of the input."""
    from pyspark.sql import functions as F

    key = edge.table_key
    place = F.struct(FILE, LINE, "id")
    parts = [
        table.image.where(F.col("src").isNotNull()).select(
            "src", F.lit(1).alias("_counts"), place.alias("_place"), F.lit(1).alias("_touched")
        )
    ]
    nowhere = F.lit(None).cast(f"struct<{FILE}: int, {LINE}: bigint, id: string>").alias("_place")
    if subject.exists(key):
        stays = subject.untouched(key, ("src",))
        parts.append(stays.select("src", F.lit(1).alias("_counts"), nowhere, _flag(0)))
        if not table.ids_fresh:
            ids = table.rows.select(F.col("id").alias("_own"))
            before = subject.committed.frame(key, ("id", "src"))
            replaced = before.join(ids, before["id"] == ids["_own"], "left_semi")
            parts.append(replaced.select("src", F.lit(0).alias("_counts"), nowhere, _flag(1)))
    elif subject.overwrites and edge.cardinality.low and subject.committed.row_count(key):
        # The minimum is the only bound that a source without any edge left can break.
        before = subject.committed.frame(key, ("src",))
        parts.append(before.select("src", F.lit(0).alias("_counts"), nowhere, _flag(1)))
    everything = parts[0]
    for part in parts[1:]:
        everything = everything.unionByName(part)
    return (
        everything.groupBy(F.col("src").alias("_source"))
        .agg(
            F.sum("_counts").cast("bigint").alias("_edges"),
            F.min("_place").alias("_first"),
            F.max("_place").alias("_last"),
            F.max("_touched").alias("_any"),
        )
        .where(F.col("_any") == 1)
    )


def _flag(value: int) -> Column:
    from pyspark.sql import functions as F

    return F.lit(value).alias("_touched")


def _word(row: Row, *, edge: EdgeType, files: tuple[str, ...]) -> Violation:
    """Told at the last edge of the input at this source, or at nobody when edges only went."""
    file = row["_last_file"]
    return Violation(
        rule="cardinality",
        message=out_of_bounds(edge, row["_source"], row["_edges"]),
        entity_kind="edge",
        type_name=edge.name,
        entity_id=row["_last_id"],
        property_name="src",
        source=None if file is None else files[file],
        line=row["_last_line"],
    )
