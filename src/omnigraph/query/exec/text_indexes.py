"""Text indexes of columns, kept from version to version.

A version that only appended files has the words of the one before it and some more, so its index is
the older one extended. Any other change makes the index anew.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import RLock

from omnigraph.query.exec.columns import TableColumns
from omnigraph.query.search.text_index import TextIndex
from omnigraph.storage.layout import Fragment
from omnigraph.storage.names import TableVersion

INDEXES_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownIndex:
    fragments: tuple[Fragment, ...]
    index: TextIndex


class TextIndexes:
    """The newest few indexes."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, TableVersion], _KnownIndex] = OrderedDict()
        self._lock = RLock()
        self.builds = 0
        """How often an index was made from a whole column."""
        self.extensions = 0
        """How often one was made from an older version's."""

    def of(self, columns: TableColumns, column: str) -> TextIndex:
        """The index of one column of one version."""
        table = columns.table
        if table is None:
            return TextIndex.build(columns.whole(column).values)
        # Another column may have had this name in an older version of the same files.
        key = (table.name.path, f"{column} {table.memory.column_id(column)}", table.name)
        with self._lock:
            known = self._known.get(key)
            if known is None:
                known = _KnownIndex(
                    fragments=table.layout.fragments, index=self._make(columns, column, key)
                )
                self._known[key] = known
                while len(self._known) > INDEXES_MAX:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return known.index

    def _make(
        self, columns: TableColumns, column: str, key: tuple[str, str, TableVersion]
    ) -> TextIndex:
        values = columns.whole(column).values
        fragments = columns.table.layout.fragments if columns.table is not None else ()
        for (path, name, _), known in reversed(self._known.items()):
            count = len(known.fragments)
            if (path, name) == key[:2] and fragments[:count] == known.fragments:
                self.extensions += 1
                rows = sum(f.live_rows for f in known.fragments)
                return known.index.extended(values.slice(rows))
        self.builds += 1
        return TextIndex.build(values)
