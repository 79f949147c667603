"""What runs on executors: read units, and unpack what was read.

    numbers of units -> [tasks] -> parsed frame -> [tasks] -> typed rows | problems

Each function here returns the function that Spark calls; what it closes over is small and can be
pickled. Bad input is data: a task raises only if a store does not answer, which is worth another
attempt, or if the input is no longer what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.ids import derived_ulids
from omnigraph.input.packed import (
    FILE,
    LINE,
    PROBLEMS,
    Ledger,
    Packed,
    pack_unit,
    unpacked,
)
from omnigraph.input.readers import read_unit
from omnigraph.input.units import TableShape, WorkPlan, group_unit
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.schema.identity import is_keyed
from omnigraph.schema.ir import from_ir
from omnigraph.spark.arrow import carried_schema, to_spark
from omnigraph.spark.errors import task
from omnigraph.spark.frames import read_batches, unit_of

Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]

PROBLEM_DDL = "file string, line bigint, column int, message string, text string"
_PROBLEM = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("column", pa.int32()),
        ("message", pa.string()),
        ("text", pa.string()),
    ]
)
_ROWS_PER_BATCH_MAX = 1 << 15


@lru_cache(maxsize=4)
def _catalog(ir: bytes) -> Catalog:
    return from_ir(ir)[0]


# -- reading -------------------------------------------------------------------------------------


def file_task(ir: bytes, plan: WorkPlan) -> Task:
    """Numbers of units -> rows of the parsed frame."""

    @task
    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                unit = plan.unit(number)
                yield from pack_unit(number, unit.file, read_unit(unit, _catalog(ir)))

    return run


def frame_task(ir: bytes, shape: TableShape, group: int, file: int) -> Task:
    """Rows of a user's DataFrame -> rows of the parsed frame."""

    @task
    def run(batches: Batches) -> Batches:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        graph_type = _catalog(ir).table(shape.table_key)
        pieces = read_batches(chain([first], filled), graph_type, shape)
        yield from pack_unit(group_unit(group, unit_of(first)), file, pieces)

    return run


# -- unpacking -----------------------------------------------------------------------------------


def rows_schema(graph_type: GraphType) -> pa.Schema:
    """The columns of ``rows``: those of the table, any of which may be null yet, file and line."""
    own = [field.with_nullable(True) for field in table_schema(graph_type)]
    return pa.schema([*own, pa.field(FILE, pa.int32()), pa.field(LINE, pa.int64())])


def rows_task(ir: bytes, table_key: str, run_id: str, ledger: Ledger) -> Task:
    """Rows of the parsed frame of one kind -> typed rows with their places and ids."""

    @task
    def run(batches: Batches) -> Batches:
        graph_type = _catalog(ir).table(table_key)
        schema = rows_schema(graph_type)
        carried = carried_schema(schema)
        for packed in unpacked(batches, ledger):
            table = _placed(packed, graph_type, run_id).cast(schema)
            for batch in table.to_batches(max_chunksize=_ROWS_PER_BATCH_MAX):
                yield to_spark(batch, carried)

    return run


def tables_reader(
    ir: bytes, run_id: str, ledger: Ledger
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[str, pa.Table]]]:
    """For tasks that work on all types at once: the parsed frame as tables, by table key.

    In the columns of ``rows_schema``; no row passes through Spark.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.Table]]:
        for packed in unpacked(batches, ledger):
            if packed.kind != PROBLEMS:
                graph_type = _catalog(ir).table(packed.kind)
                yield packed.kind, _placed(packed, graph_type, run_id)

    return read


def _placed(packed: Packed, graph_type: GraphType, run_id: str) -> pa.Table:
    rows = packed.rows
    lines = packed.lines + packed.before
    columns = rows.columns
    if not is_keyed(graph_type) and columns[0].null_count:
        columns[0] = _with_ids(columns[0], run_id, packed.file, lines)
    files = pa.array(np.full(len(lines), packed.file, dtype=np.int32))
    names = [*rows.column_names, FILE, LINE]
    return pa.Table.from_arrays([*columns, files, pa.array(lines)], names=names)


def _with_ids(given: pa.ChunkedArray, run_id: str, file: int, lines: np.ndarray) -> pa.ChunkedArray:
    """The given ids, and where there is none the one that belongs to the place of the row."""
    if given.null_count == len(given):
        return pa.chunked_array([derived_ulids(run_id, file, lines)])
    missing = given.is_null().combine_chunks()
    fresh = derived_ulids(run_id, file, lines[missing.to_numpy(zero_copy_only=False)])
    return pa.chunked_array([pc.replace_with_mask(given.combine_chunks(), missing, fresh)])


def problems_task(ledger: Ledger, limit: int | None) -> Task:
    """Rows of the parsed frame -> problems in their places; of each row of it the first ones."""

    @task
    def run(batches: Batches) -> Batches:
        for packed in unpacked(batches, ledger):
            if packed.kind == PROBLEMS:
                rows = packed.rows if limit is None else packed.rows.slice(0, limit)
                yield from _placed_problems(packed, rows, ledger).to_batches()

    return run


def _placed_problems(packed: Packed, rows: pa.Table, ledger: Ledger) -> pa.Table:
    lines = pc.add(rows.column("line"), packed.before)
    # A name of a file may hold bytes that are no text.
    name = ledger.files[packed.file].encode(errors="backslashreplace").decode()
    names = pa.array([name] * rows.num_rows, pa.string())
    columns = [names, lines, *(rows.column(name) for name in ("column", "message", "text"))]
    return pa.Table.from_arrays(columns, schema=_PROBLEM)
