"""Files of columns, Parquet and Arrow, as rows of one type. The line of a row is its number.

unit -> batches of the wanted columns -> table_shape.piece_of -> [table_files] -> pieces
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import InternalError
from omnigraph.input.loaded_rows import InputPiece
from omnigraph.input.streams import SourceReader
from omnigraph.input.table_shape import piece_of
from omnigraph.input.units import Format, InputUnit, TableShape
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.faults import short
from omnigraph.storage.inputs import UnreadableInput

PARQUET = b"PAR1"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
"""How the length of a message begins; no text does."""
_BATCH_BYTES = 8 << 20
_BATCH_ROWS_MAX = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some rows of a file."""

    rows: pa.RecordBatch
    done: int
    """How many bytes of the file were read for it and all before it, about."""


def damaged(format: Format, error: BaseException) -> UnreadableInput:
    """What Arrow says of a file that it cannot read."""
    return UnreadableInput(f"cannot be read as {format}: {short(error)}")


def batch_pieces(unit: InputUnit, catalog: Catalog) -> Callable[[Batch], Iterator[InputPiece]]:
    """The function that reads a batch as one piece."""
    shape = _shape(unit)
    graph_type = catalog.table(shape.table_key)

    def pieces_of(batch: Batch) -> Iterator[InputPiece]:
        columns = dict(zip(batch.rows.schema.names, batch.rows.columns, strict=True))
        yield piece_of(graph_type, shape, columns, batch.rows.num_rows)

    return pieces_of


def _shape(unit: InputUnit) -> TableShape:
    if unit.planned.shape is None:
        raise InternalError(f"a {unit.planned.format} file without a shape")
    return unit.planned.shape


def _wanted(unit: InputUnit) -> list[str]:
    return list(dict.fromkeys(column for _, column in _shape(unit).columns))


# -- Parquet -------------------------------------------------------------------------------------


def open_parquet(reader: SourceReader) -> pq.ParquetFile:
    """The file with its footer read. Raises ``UnreadableInput``."""
    try:
        return pq.ParquetFile(pa.PythonFile(reader.seekable(), mode="r"))
    except (pa.ArrowException, OSError) as error:
        raise damaged(Format.PARQUET, error) from error


def parquet_batches(unit: InputUnit, reader: SourceReader) -> Iterator[Batch]:
    """The rows of some row groups. Raises ``UnreadableInput``."""
    file = open_parquet(reader)
    groups = list(range(unit.start, unit.stop))
    total, rows = max(file.metadata.num_rows, 1), 0
    try:
        for batch in file.iter_batches(
            batch_size=_batch_rows(file, groups),
            row_groups=groups,
            columns=_wanted(unit),
            use_threads=False,
        ):
            rows += batch.num_rows
            yield Batch(rows=batch, done=unit.planned.file.size * rows // total)
    except (pa.ArrowException, OSError) as error:
        raise damaged(Format.PARQUET, error) from error


def _batch_rows(file: pq.ParquetFile, groups: list[int]) -> int:
    """As many rows as are about as large as a block of text."""
    metadata = [file.metadata.row_group(group) for group in groups]
    size = sum(group.total_byte_size for group in metadata)
    rows = sum(group.num_rows for group in metadata)
    return max(1, min(_BATCH_ROWS_MAX, rows * _BATCH_BYTES // max(size, 1)))


# -- Arrow ---------------------------------------------------------------------------------------


def open_arrow(reader: SourceReader) -> Any:
    """The file or stream with its schema read. Raises ``UnreadableInput``."""
    try:
        source = pa.PythonFile(reader.seekable(), mode="r")
        if reader.head(len(ARROW_FILE)) == ARROW_FILE:
            return pa.ipc.open_file(source)
        return pa.ipc.open_stream(source)
    except (pa.ArrowException, OSError) as error:
        raise damaged(Format.ARROW, error) from error


def arrow_batches(unit: InputUnit, reader: SourceReader) -> Iterator[Batch]:
    """The rows of some batches. Raises ``UnreadableInput``."""
    opened = open_arrow(reader)
    wanted = _wanted(unit)
    try:
        if isinstance(opened, pa.RecordBatchFileReader):
            batches = map(opened.get_batch, range(unit.start, unit.stop))
        else:
            batches = iter(opened)
        for batch in batches:
            chosen = _plain(batch.select(wanted))
            for start in range(0, chosen.num_rows, _BATCH_ROWS_MAX):
                yield Batch(rows=chosen.slice(start, _BATCH_ROWS_MAX), done=reader.done)
    except (pa.ArrowException, OSError) as error:
        raise damaged(Format.ARROW, error) from error


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Without dictionaries: a value is what it stands for."""
    columns = [
        c.dictionary_decode() if isinstance(c, pa.DictionaryArray) else c for c in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
