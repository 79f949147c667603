"""Rule 1 at scale: every value for itself, by the local validator's own code in every task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.pipeline.arrow import from_spark
from omnigraph.pipeline.check.found import (
    VIOLATIONS_DDL,
    Found,
    Place,
    batch_of,
    ranked,
)
from omnigraph.pipeline.check.subject import FILE, LINE, InputTable, Subject
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.write.delta import Origins, TableDelta, WriteMode
from omnigraph.write.rules.findings import count
from omnigraph.write.rules.values import check_values


def values_found(subject: Subject, table: InputTable, *, place: Place) -> Found:
    """All violations of rule 1 in one table, superseded rows included."""
    counter = partial(_counted, graph_type=table.type)
    worder = partial(_worded, graph_type=table.type, files=subject.files, place=place)
    return Found(
        count=table.rows.mapInArrow(counter, "n bigint"),
        violations=table.rows.mapInArrow(worder, VIOLATIONS_DDL),
    )


def _counted(
    batches: Iterable[pa.RecordBatch], *, graph_type: GraphType
) -> Iterator[pa.RecordBatch]:
    schema = unchecked_schema(graph_type)
    total = sum(
        broken_values(graph_type, pa.Table.from_batches([from_spark(batch, schema)]))
        for batch in batches
    )
    yield pa.RecordBatch.from_pydict({"n": pa.array([total], pa.int64())})


def _worded(
    batches: Iterable[pa.RecordBatch],
    *,
    graph_type: GraphType,
    files: tuple[str, ...],
    place: Place,
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sources = batch.column(FILE).to_numpy().astype(np.int32)
        lines = batch.column(LINE).to_numpy().astype(np.int64)
        origins = Origins(names=files, name_index=sources, lines=lines)
        found = check_values(_delta(batch, graph_type, origins=origins))
        yield batch_of(
            ranked(
                finding.word(index),
                # All findings on one row are in one batch: their order in it is their order.
                replace(place, number=order),
                file=int(sources[row]),
                line=int(lines[row]),
            )
            for order, finding in enumerate(found)
            for index, row in enumerate(finding.positions)
        )


def broken_values(graph_type: GraphType, rows: pa.Table) -> int:
    """How often rows of a type break rule 1."""
    delta = TableDelta(type=graph_type, mode=WriteMode.APPEND, rows=rows)
    return count(check_values(delta))


def _delta(batch: pa.RecordBatch, graph_type: GraphType, *, origins: Origins | None) -> TableDelta:
    rows = pa.Table.from_batches([from_spark(batch, unchecked_schema(graph_type))])
    return TableDelta(type=graph_type, mode=WriteMode.APPEND, rows=rows, origins=origins)


def unchecked_schema(graph_type: GraphType) -> pa.Schema:
    """The columns of a table before the check, when any value may be missing."""
    return pa.schema([f.with_nullable(True) for f in table_schema(graph_type)])
