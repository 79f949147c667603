"""A pinned table version in pieces that separate processes read, each on its own.

    pin -> [pieces: open, cut] -> processes -> [pieces: open, read] -> batches

A piece is some whole fragments, or a range of rows of one large fragment. Pieces are in storage
order and together are the whole version, however often they are read. A process opens a
version once, however many pieces of it it reads.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from omnigraph.errors import InternalError
from omnigraph.storage.faults import translated
from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion
from omnigraph.storage.objects import Objects
from omnigraph.storage.staging import TableStore
from omnigraph.storage.tables import Table, is_blob

PIECE_ROWS = 1 << 20
PIECE_BYTES = 128 << 20
"""A piece is about so large at most, whichever is reached first."""
BATCH_ROWS_MAX = 1 << 16
BATCH_BYTES, BATCH_BYTES_MAX = 16 << 20, 32 << 20
"""What a batch should be by the width of its columns, and what long texts and blobs may make it."""
TABLES_OPEN_MAX = 32

_TEXT_BYTES, _BLOB_BYTES, _LIST_BYTES = 32, 256 << 10, 128
"""What a value of unknown length is taken to need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """Some rows of a table version."""

    fragments: tuple[int, ...]
    start: int = 0
    rows: int | None = None
    """With a number: only so many live rows of the one fragment, from ``start`` on."""


_opened: OrderedDict[Any, Table] = OrderedDict()
_lock = Lock()


def open_pinned(location: Location, name: TableVersion) -> Table:
    """The table at exactly this version; opened once in a process, then kept for a while."""
    key = (location.identity, name)
    with _lock:
        table = _opened.get(key)
        if table is not None:
            _opened.move_to_end(key)
            return table
    table = TableStore(location, Objects(location)).open(name)
    with _lock:
        _opened[key] = table
        while len(_opened) > TABLES_OPEN_MAX:
            _opened.popitem(last=False)
    return table


def cut(table: Table, columns: Sequence[str], *, ranges: bool = True) -> list[FilePiece]:
    """The version in pieces of about equal work, if these columns are what is read.

    ``ranges`` allows to cut a large fragment by its rows.
    """
    share = _share(table.dataset.schema, columns)
    pieces: list[FilePiece] = []
    group: list[int] = []
    group_rows, group_bytes = 0, 0.0
    for fragment in table.dataset.get_fragments():
        rows = fragment.metadata.num_rows
        size = share * _file_bytes(fragment.metadata)
        parts = _parts(rows, size) if ranges else 1
        full = group_rows + rows > PIECE_ROWS or group_bytes + size > PIECE_BYTES
        if group and (full or parts > 1):
            pieces.append(FilePiece(fragments=tuple(group)))
            group, group_rows, group_bytes = [], 0, 0.0
        if parts > 1:
            pieces += _ranges(fragment.fragment_id, rows, parts)
        elif rows:
            group.append(fragment.fragment_id)
            group_rows, group_bytes = group_rows + rows, group_bytes + size
    return [*pieces, FilePiece(fragments=tuple(group))] if group else pieces


def piece_batches(
    table: Table,
    piece: FilePiece,
    columns: Sequence[str],
    *,
    condition: pc.Expression | None = None,
    addresses: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The rows of a piece in storage order, blobs as plain bytes; only these columns are read.

    With ``condition`` Lance gives only the rows for which it holds; it goes with whole fragments,
    because a range counts rows before conditions and Lance after. With ``addresses`` the columns
    ``_rowid`` and ``_rowaddr`` come too.
    """
    if condition is not None and piece.rows is not None:
        raise InternalError("a condition goes with whole fragments")
    dataset = table.dataset
    with translated(f"scanning {table.name.path}", referenced=True):
        yield from dataset.scanner(
            columns=list(columns),
            filter=condition,
            fragments=[dataset.get_fragment(f) for f in piece.fragments],
            offset=piece.start or None,
            limit=piece.rows,
            batch_size=_batch_rows(dataset.schema, columns),
            batch_size_bytes=BATCH_BYTES_MAX,
            blob_handling="all_binary",
            scan_in_order=True,
            with_row_id=addresses,
            with_row_address=addresses,
        ).to_batches()


def _parts(rows: int, size: float) -> int:
    return max(1, -(-rows // PIECE_ROWS), min(rows, -int(-size // PIECE_BYTES)))


def _ranges(fragment: int, rows: int, parts: int) -> list[FilePiece]:
    edges = [rows * i // parts for i in range(parts + 1)]
    return [
        FilePiece(fragments=(fragment,), start=start, rows=end - start)
        for start, end in pairwise(edges)
        if end > start
    ]


def _file_bytes(metadata: Any) -> float:
    """What a fragment takes on disk; old files do not say so."""
    known = [file.file_size_bytes for file in metadata.files]
    return float(sum(size or metadata.physical_rows * 64 for size in known))


def _share(schema: pa.Schema, columns: Sequence[str]) -> float:
    """Which part of a row these columns are, roughly."""
    whole = sum(_width(field) for field in schema)
    return sum(_width(schema.field(name)) for name in columns) / max(whole, 1)


def _batch_rows(schema: pa.Schema, columns: Sequence[str]) -> int:
    fields = [schema.field(name) for name in columns]
    width = sum(_width(field) for field in fields if not is_blob(field))
    return max(1, min(BATCH_ROWS_MAX, BATCH_BYTES // max(width, 1)))


def _width(field: pa.Field) -> int:
    """Bytes that a value takes, roughly."""
    if is_blob(field):
        return _BLOB_BYTES
    kind = field.type
    if pt.is_fixed_size_list(kind):
        return max(1, kind.list_size * kind.value_type.bit_width // 8)
    if pt.is_list(kind):
        return _LIST_BYTES
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:
        return _TEXT_BYTES
