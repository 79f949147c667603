"""A bounded cache of table columns, kept per immutable file.

Checks and queries ask the same columns again and again. Files never change once written, so a
column of a fragment can be kept under the names of its files: after a commit only new files are
read. A deletion changes no file either, it only hides rows: what was read before it still serves,
narrowed to the rows that are left. The cache changes cost, never an answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pyarrow as pa

from omnigraph.storage.layout import Offsets

PART_BYTES = 512
"""What keeping a part takes beside its values: there may be very many of one row."""

KNOWN_CHUNKS_MAX = 64
SYSTEM_COLUMNS = ("id", "src", "dst")
WHOLE_ROWS_MAX = 16
"""All columns of so small a file are kept when it is written: it will be joined with others."""

FilesKey = tuple[str, ...]
"""The data files of a fragment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPart:
    """A column of one fragment as it was read."""

    values: pa.ChunkedArray
    offsets: Offsets | None
    """The rows it has; None for all rows of the files."""

    @property
    def nbytes(self) -> int:
        own = PART_BYTES + self.values.nbytes
        return own if self.offsets is None else own + self.offsets.nbytes

    def narrowed(self, live: Offsets | None) -> pa.ChunkedArray | None:
        """The values of the live rows; None if some of them were never read."""
        if live is None:
            return self.values if self.offsets is None else None
        if self.offsets is None:
            return self.values.take(pa.array(live))
        if len(self.offsets) == len(live):
            return self.values if np.array_equal(self.offsets, live) else None
        places = np.searchsorted(self.offsets, live)
        if len(places) and (places[-1] >= len(self.offsets)):
            return None
        if not np.array_equal(self.offsets[places], live):
            return None
        return self.values.take(pa.array(places))


class ColumnCache:
    """Columns by fragment, least recently used out first."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._entries: OrderedDict[tuple[FilesKey, str], ColumnPart] = OrderedDict()
        """By files and what the column is: its name may change while its files stay."""
        self._bytes = 0
        self._lock = Lock()

    def get(self, files: FilesKey, column: str) -> ColumnPart | None:
        """The column as it was read, if it is here."""
        with self._lock:
            entry = self._entries.get((files, column))
            if entry is not None:
                self._entries.move_to_end((files, column))
            return entry

    def put(self, files: FilesKey, column: str, part: ColumnPart) -> None:
        """Keep a column; makes room by forgetting what was not used for longest."""
        if part.nbytes > self.bytes_max:
            return
        with self._lock:
            old = self._entries.pop((files, column), None)
            self._bytes -= old.nbytes if old is not None else 0
            self._entries[files, column] = part
            self._bytes += part.nbytes
            while self._bytes > self.bytes_max:
                _, dropped = self._entries.popitem(last=False)
                self._bytes -= dropped.nbytes


def seeded_columns(rows: pa.Table | None, schema: pa.Schema) -> list[str]:
    """Columns of new files that are kept right away: those of checks, all of small files."""
    small = rows is not None and rows.num_rows <= WHOLE_ROWS_MAX
    return [
        field.name
        for field in schema
        if field.name in SYSTEM_COLUMNS or (small and field.type != pa.large_binary())
    ]


def few_chunks(chunks: Sequence[pa.Array], kind: pa.DataType) -> pa.ChunkedArray:
    """The chunks as one column, joined when there are too many of them."""
    column = pa.chunked_array(chunks, kind)
    if column.num_chunks > KNOWN_CHUNKS_MAX:
        return pa.chunked_array([column.combine_chunks()], kind)
    return column
