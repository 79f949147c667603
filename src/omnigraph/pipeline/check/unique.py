"""Rule 2 at scale: identity and ``@unique`` groups, within the input and against what is there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.pipeline.check.found import Found, Place, Row, found, input_schema
from omnigraph.pipeline.check.subject import (
    FILE,
    LINE,
    InputTable,
    Subject,
    col,
    no_nulls,
    repeated,
)
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.write.rules.identity import identity_members
from omnigraph.write.rules.words import exists_already, held_twice, repeated_key, single

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def checked_groups(graph_type: GraphType) -> list[tuple[str, ...]]:
    """The groups to check beside identity; one equal to the key says nothing new."""
    key = set(identity_members(graph_type))
    return [group for group in graph_type.unique if set(group) != key]


# -- within the input ----------------------------------------------------------------------------


def repeated_ids_found(subject: Subject, table: InputTable, *, place: Place) -> Found:
    """Rows whose id an earlier row of the input has."""
    members = identity_members(table.type)
    rows = _later(table.rows, ("id",), members)
    schema = input_schema(
        table_schema(table.type), members, _first_file=pa.int32(), _first_line=pa.int64()
    )
    word = partial(_word_repeated_id, graph_type=table.type, members=members, files=subject.files)
    return found(rows, schema, place, word)


def repeated_tuples_found(
    subject: Subject, table: InputTable, *, place: Place, group: tuple[str, ...]
) -> Found:
    """Rows whose tuple an earlier row of the input has."""
    rows = _later(table.rows, group, group)
    schema = input_schema(table_schema(table.type), group, _first_id=pa.string())
    word = partial(
        _word_held, graph_type=table.type, group=group, files=subject.files, holder="_first_id"
    )
    return found(rows, schema, place, word)


def _later(rows: DataFrame, by: Sequence[str], shown: Sequence[str]) -> DataFrame:
    """Every row but the first of its tuple, with the id and the place of that first one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    columns = list(dict.fromkeys(("id", *by, *shown)))
    narrow = rows.select(*[col(c) for c in columns], FILE, LINE)
    keys = repeated(narrow, by).select(*[col(c).alias(f"_key_{i}") for i, c in enumerate(by)])
    same = _equal(narrow, by, keys)
    candidates = narrow.join(keys, same, "left_semi")
    in_order = Window.partitionBy(*[col(c) for c in by]).orderBy(FILE, LINE)
    numbered = candidates.select(
        "*",
        F.row_number().over(in_order).alias("_number"),
        F.first("id").over(in_order).alias("_first_id"),
        F.first(FILE).over(in_order).alias("_first_file"),
        F.first(LINE).over(in_order).alias("_first_line"),
    )
    return numbered.where(F.col("_number") > 1)


def _equal(rows: DataFrame, columns: Sequence[str], keys: DataFrame) -> Column:
    condition = rows[_quoted(columns[0])] == keys["_key_0"]
    for i, name in enumerate(columns[1:], start=1):
        condition = condition & (rows[_quoted(name)] == keys[f"_key_{i}"])
    return condition


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


# -- against the committed state -----------------------------------------------------------------


def conflicts_found(subject: Subject, table: InputTable, *, place: Place) -> Found:
    """Strict inserts of ids that exist already."""
    from pyspark.sql import functions as F

    image = table.image.select("id", FILE, LINE)
    there = subject.committed.frame(table.type.table_key, ("id",)).select(F.col("id").alias("_key"))
    rows = image.join(there, image["id"] == there["_key"], "left_semi")
    word = partial(_word_conflict, graph_type=table.type, files=subject.files)
    schema = input_schema(table_schema(table.type), ())
    return found(rows, schema, place, word, is_conflict=True)


def held_found(
    subject: Subject, table: InputTable, *, place: Place, group: tuple[str, ...]
) -> Found:
    """Rows whose tuple a committed entity holds that the input leaves as it is."""
    from pyspark.sql import functions as F

    columns = list(dict.fromkeys(("id", *group)))
    image = table.image.where(no_nulls(group)).select(*[col(c) for c in columns], FILE, LINE)
    holders = subject.untouched(table.type.table_key, group).select(
        F.col("id").alias("_holder"), *[col(c).alias(f"_key_{i}") for i, c in enumerate(group)]
    )
    rows = image.join(holders, _equal(image, group, holders), "inner")
    schema = input_schema(table_schema(table.type), group, _holder=pa.string())
    word = partial(
        _word_held, graph_type=table.type, group=group, files=subject.files, holder="_holder"
    )
    return found(rows, schema, place, word)


# -- words, on executors -------------------------------------------------------------------------


def _word_repeated_id(
    row: Row, *, graph_type: GraphType, members: tuple[str, ...], files: tuple[str, ...]
) -> Violation:
    places = (
        (files[row["_first_file"]], row["_first_line"]),
        (files[row[FILE]], row[LINE]),
    )
    message = repeated_key(graph_type, members, [row[m] for m in members], places)
    return row_violation(row, graph_type, files, "key", message, single(members))


def _word_held(
    row: Row, *, graph_type: GraphType, group: tuple[str, ...], files: tuple[str, ...], holder: str
) -> Violation:
    message = held_twice(graph_type, group, [row[m] for m in group], row[holder], row["id"])
    return row_violation(row, graph_type, files, "unique", message, single(group))


def _word_conflict(row: Row, *, graph_type: GraphType, files: tuple[str, ...]) -> Violation:
    message = exists_already(graph_type, row["id"])
    return row_violation(row, graph_type, files, "key", message, "id")


def row_violation(
    row: Row,
    graph_type: GraphType,
    files: tuple[str, ...],
    rule: str,
    message: str,
    property_name: str | None,
) -> Violation:
    """A violation by one row of the input."""
    return Violation(
        rule=rule,
        message=message,
        entity_kind=graph_type.kind,
        type_name=graph_type.name,
        entity_id=row["id"],
        property_name=property_name,
        source=files[row[FILE]],
        line=row[LINE],
    )
