"""A bounded cache of table columns, kept per immutable file.

Checks ask the same few columns again and again: ids, endpoints, unique values. Files never change
once written, so a column of a fragment can be kept under the names of its files; after a commit
only the new fragments are read. The cache changes cost, never an answer.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import pyarrow as pa

FragmentKey = tuple[str, ...]
"""The fragment's data files and its deletion file: together they determine its live rows."""


class ColumnCache:
    """Columns by fragment, least recently used out first."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._entries: OrderedDict[tuple[FragmentKey, str], pa.ChunkedArray] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, fragment: FragmentKey, column: str) -> pa.ChunkedArray | None:
        """The column if it is here."""
        with self._lock:
            entry = self._entries.get((fragment, column))
            if entry is not None:
                self._entries.move_to_end((fragment, column))
            return entry

    def put(self, fragment: FragmentKey, column: str, values: pa.ChunkedArray) -> None:
        """Keep a column; makes room by forgetting what was not used for longest."""
        size = values.nbytes
        if size > self.bytes_max:
            return
        with self._lock:
            if (fragment, column) in self._entries:
                return
            self._entries[fragment, column] = values
            self._bytes += size
            while self._bytes > self.bytes_max:
                _, dropped = self._entries.popitem(last=False)
                self._bytes -= dropped.nbytes
