"""What a rule found, as rows of a DataFrame, and how such rows become violations.

    rule -> [found] -> first violations, their number, all of them

A rule gives a frame of offending rows; only when somebody wants to read them are they put into
words, by executors and with the functions of the local validator. Every row carries its rank, so
that any number of first violations comes in the local validator's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import Violation
from omnigraph.pipeline.arrow import from_spark
from omnigraph.pipeline.check.subject import FILE, LINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RANK = ("table", "stage", "rank", "file", "line", "name", "number")
"""By these violations are ordered."""
VIOLATIONS = pa.schema(
    [
        pa.field("table", pa.int32(), nullable=False),
        pa.field("stage", pa.int32(), nullable=False),
        pa.field("rank", pa.int32(), nullable=False),
        pa.field("file", pa.int32(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("entity_kind", pa.string(), nullable=False),
        pa.field("type_name", pa.string(), nullable=False),
        pa.field("entity_id", pa.string()),
        pa.field("property_name", pa.string()),
        pa.field("source", pa.string()),
        pa.field("source_line", pa.int64()),
    ]
)
VIOLATIONS_DDL = (
    "table int, stage int, rank int, file int, line bigint, name string, number int, rule string, "
    "message string, entity_kind string, type_name string, entity_id string, "
    "property_name string, source string, source_line bigint"
)

VALUES, IDENTITY, ENDPOINTS, SURVIVORS, CARDINALITY = range(5)
"""The stages of the local validator: violations of one table are told stage by stage."""

Row = Mapping[str, Any]
Word = Callable[[Row], Violation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the violations of one rule stand among all."""

    table: int
    stage: int
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Everything that one rule found in one table."""

    count: DataFrame
    """One row, or one a partition, whose column ``n`` adds up to the number of violations."""
    violations: DataFrame
    """In ``VIOLATIONS_DDL``, in no order."""
    is_conflict: bool = False
    """A strict insert met an id that exists."""


def found(
    rows: DataFrame, schema: pa.Schema, place: Place, word: Word, *, is_conflict: bool = False
) -> Found:
    """What a rule found: offending rows, their own columns in the types of ``schema``.

    The rank of a row is its ``_rank``, ``_file``, ``_line`` and ``_name``, as far as it has them.
    ``word`` runs on executors: a function of a module, or a partial one with small values.
    """
    from pyspark.sql import functions as F

    worder = partial(_worded, word=word, place=place, schema=schema)
    return Found(
        count=rows.agg(F.count("*").alias("n")),
        violations=rows.mapInArrow(worder, VIOLATIONS_DDL),
        is_conflict=is_conflict,
    )


def _worded(
    batches: Iterable[pa.RecordBatch], *, word: Word, place: Place, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = from_spark(batch, schema).to_pylist()
        yield batch_of(
            ranked(
                word(row),
                place,
                rank=row.get("_rank") or 0,
                file=-1 if row.get(FILE) is None else row[FILE],
                line=row.get(LINE) or 0,
                name=row.get("_name") or "",
            )
            for row in rows
        )


def ranked(
    violation: Violation,
    place: Place,
    *,
    rank: int = 0,
    file: int = -1,
    line: int = 0,
    name: str = "",
) -> dict[str, Any]:
    """A violation as a row of ``VIOLATIONS``."""
    return {
        "table": place.table,
        "stage": place.stage,
        "rank": rank,
        "file": file,
        "line": line,
        "name": name,
        "number": place.number,
        "rule": violation.rule,
        "message": violation.message,
        "entity_kind": violation.entity_kind,
        "type_name": violation.type_name,
        "entity_id": violation.entity_id,
        "property_name": violation.property_name,
        "source": violation.source,
        "source_line": violation.line,
    }


def batch_of(rows: Iterable[dict[str, Any]]) -> pa.RecordBatch:
    """Rows of violations as Spark takes them."""
    return pa.RecordBatch.from_pylist(list(rows), schema=VIOLATIONS)


def violation_of(row: Any) -> Violation:
    """A row of ``VIOLATIONS`` as the violation it came from."""
    return Violation(
        rule=row["rule"],
        message=row["message"],
        entity_kind=row["entity_kind"],
        type_name=row["type_name"],
        entity_id=row["entity_id"],
        property_name=row["property_name"],
        source=row["source"],
        line=row["source_line"],
    )


def input_schema(schema: pa.Schema, columns: Iterable[str], **more: pa.DataType) -> pa.Schema:
    """The schema of offending input rows: their place, some of their columns, and what else."""
    fields = [schema.field(c).with_nullable(True) for c in dict.fromkeys(("id", *columns))]
    places = [pa.field(FILE, pa.int32()), pa.field(LINE, pa.int64())]
    return pa.schema([*fields, *places, *(pa.field(n, t) for n, t in more.items())])
