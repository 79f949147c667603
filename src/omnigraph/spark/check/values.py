"""Rule 1 at scale: every value for itself, by the local validator's own code in every task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.rules.findings import count
from omnigraph.rules.table_delta import Origins, TableDelta, WriteMode
from omnigraph.rules.values import check_values
from omnigraph.schema.catalog import GraphType
from omnigraph.spark.check.found import Place, RowPlaces, found_table, told_findings
from omnigraph.spark.check.subject import FILE, LINE, Read


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesAsked:
    """The tables whose broken values are to be told."""

    read: Read
    types: Mapping[str, GraphType]
    places: Mapping[str, Place]
    """Both by table key."""
    files: tuple[str, ...]
    limit: int | None


def broken_values(graph_type: GraphType, rows: pa.Table) -> int:
    """How often rows of a type break rule 1."""
    delta = TableDelta(type=graph_type, mode=WriteMode.APPEND, rows=rows)
    return count(check_values(delta))


def tell_values(asked: ValuesAsked, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task: the violations of rule 1 in some part of the input, superseded rows included."""
    for table_key, rows in asked.read(batches):
        if table_key not in asked.types:
            continue
        delta = input_delta(asked.types[table_key], rows, asked.files)
        place = asked.places[table_key]
        told, total = told_findings(check_values(delta), RowPlaces(rows), place, asked.limit)
        yield from found_table(told, total, place, conflict=False).to_batches()


def input_delta(
    graph_type: GraphType,
    rows: pa.Table,
    files: tuple[str, ...],
    mode: WriteMode = WriteMode.APPEND,
) -> TableDelta:
    """Some rows of the input as the local rules take them."""
    origins = Origins(
        names=files,
        name_index=rows.column(FILE).to_numpy().astype(np.int32),
        lines=rows.column(LINE).to_numpy().astype(np.int64),
    )
    return TableDelta(type=graph_type, mode=mode, rows=rows, origins=origins)
