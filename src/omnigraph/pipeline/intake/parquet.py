"""Parquet in a task: some row groups of a file, as rows of one type. The line is the row's number.

unit -> batches of the wanted columns -> columns.piece_of -> [parquet] -> pieces
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import InternalError
from omnigraph.pipeline.intake.columns import piece_of
from omnigraph.pipeline.intake.parsed import Piece
from omnigraph.pipeline.intake.units import Unit
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.faults import short
from omnigraph.storage.inputs import InputReader, UnreadableInput

_BATCH_BYTES = 8 << 20
_BATCH_ROWS_MAX = 1 << 16


def open_parquet(reader: InputReader) -> pq.ParquetFile:
    """The file with its footer read. Raises ``UnreadableInput``."""
    try:
        return pq.ParquetFile(pa.PythonFile(reader.stream(), mode="r"))
    except (pa.ArrowException, OSError) as error:
        raise damaged(error) from error


def damaged(error: BaseException) -> UnreadableInput:
    """What Arrow says of a file that it cannot read."""
    return UnreadableInput(f"cannot be read as Parquet: {short(error)}")


def read_parquet_unit(unit: Unit, catalog: Catalog) -> Iterator[Piece]:
    """The pieces of a unit. Raises ``UnreadableInput``."""
    shape = unit.planned.shape
    if shape is None:
        raise InternalError("a Parquet file without a shape")
    graph_type = catalog.table(shape.table_key)
    groups = list(range(unit.start, unit.stop))
    with InputReader(unit.planned.file) as reader:
        file = open_parquet(reader)
        try:
            batches = file.iter_batches(
                batch_size=_batch_rows(file, groups),
                row_groups=groups,
                columns=[column for _, column in shape.columns],
                use_threads=False,
            )
            for batch in batches:
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                yield piece_of(graph_type, shape, columns, batch.num_rows)
        except (pa.ArrowException, OSError) as error:
            raise damaged(error) from error
        reader.verify()


def _batch_rows(file: pq.ParquetFile, groups: list[int]) -> int:
    """As many rows as are about as large as a block of text."""
    metadata = [file.metadata.row_group(group) for group in groups]
    size = sum(group.total_byte_size for group in metadata)
    rows = sum(group.num_rows for group in metadata)
    return max(1, min(_BATCH_ROWS_MAX, rows * _BATCH_BYTES // max(size, 1)))
