"""Reads of a remote table that begin before what they wait for is known.

    table, columns or values -> [read ahead] -> requests beside those of an index

A row that an index finds is read in three rounds: the end of its file, what the columns say of
themselves, the values. The first two do not depend on the row: where a table has few large files
they are asked for while the index is. Of small files, one request reads all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.errors import OmnigraphError
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import Fragment
from omnigraph.storage.objects import Objects, once
from omnigraph.storage.opened import OpenedVersion
from omnigraph.storage.rows import READERS_MAX
from omnigraph.storage.table_memory import ColumnCache, TableMemory

LARGE_ROWS = 1_000
"""So many rows lie in a file that is not read by one request."""
LARGE_MAX = 4
"""More files than this are not looked at for the sake of a few rows."""

BESIDE_ROWS_MAX = 100_000
"""So many rows that no index covers are read beside what an index finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What an index says something about, in a version."""

    indexed: tuple[Fragment, ...]
    later: tuple[Fragment, ...]
    """Fragments that came after it."""

    @property
    def beside(self) -> tuple[Fragment, ...]:
        """Later ones that are so small that they are read while the index is asked."""
        few = sum(f.live_rows for f in self.later) <= BESIDE_ROWS_MAX
        return self.later if self.indexed and few else ()


class Where(Protocol):
    """Rows that Lance finds in some fragments, or in all."""

    def __call__(
        self, condition: Any, columns: Sequence[str], *, fragments: Sequence[int] = ()
    ) -> pa.Table: ...


Question = tuple[str, str, tuple[str, ...]]
"""A column, a value, and what is read of the rows that have it."""


class ReadAhead:
    """What one version of a remote table is asked for before its time."""

    def __init__(
        self, opened: OpenedVersion, memory: TableMemory, cache: ColumnCache, objects: Objects
    ) -> None:
        self._opened = opened
        self._memory = memory
        self._cache = cache
        self._objects = objects
        self._knows_deletions = False
        self._told: dict[int, Callable[[], None]] = {}
        self._asked: dict[Question, Future[pa.Table]] = {}
        self._lock = Lock()

    def expect(self, columns: Sequence[str]) -> None:
        """Rows will be read: learn how their files are laid out, once for each file."""
        large = [f for f in self._memory.layout.fragments if f.live_rows >= LARGE_ROWS]
        if len(large) > LARGE_MAX:
            return
        for fragment in large:
            new = [c for c in columns if self._cache.is_new(fragment.files, c)]
            if new:
                self._objects.beside(partial(self._look, fragment, new))

    def _look(self, fragment: Fragment, columns: list[str]) -> None:
        self._let_lance_know(fragment)
        with suppress(OmnigraphError), translated("reading ahead", referenced=True):
            found = self._opened.dataset.get_fragment(fragment.id)
            if found is not None:
                found.take([0], columns=columns)

    def expect_deletions(self) -> None:
        """Rows will be looked for: learn which of them are gone, Lance and we."""
        with self._lock:
            if self._knows_deletions:
                return
            self._knows_deletions = True
        marked = [f for f in self._memory.layout.fragments if f.deletion is not None]
        if len(marked) <= LARGE_MAX:
            for fragment in marked:
                self._objects.beside(partial(self._let_lance_know, fragment))
                self._objects.beside(partial(self._know, fragment))

    def _let_lance_know(self, fragment: Fragment) -> None:
        """Lance reads this when it is through with an index, and for each question that is under
        way; unless it has it."""
        if fragment.deletion is None:
            return
        with self._lock:
            read = self._told.setdefault(fragment.id, once(partial(self._tell, fragment)))
        read()

    def _tell(self, fragment: Fragment) -> None:
        with suppress(OmnigraphError), translated("reading ahead", referenced=True):
            found = self._opened.dataset.get_fragment(fragment.id)
            if found is not None:
                found.scanner(columns=[], with_row_address=True, limit=1).to_table()

    def _know(self, fragment: Fragment) -> None:
        with suppress(OmnigraphError):
            self._memory.layout.live(fragment)

    # -- rows with single values -----------------------------------------------------------------

    def ask(
        self,
        where: Where,
        by_index: Coverage,
        column: str,
        values: Sequence[str],
        columns: Sequence[str],
    ) -> None:
        """Begin to look for values that ``find`` will be asked for."""
        self.expect_deletions()
        self.expect(columns)
        names = tuple(dict.fromkeys((column, *columns)))
        # What was read stays in the cache of columns.
        self._objects.beside(partial(self._rows_of, by_index.beside, names))
        for value in values:
            question = (column, value, tuple(columns))
            with self._lock:
                if question not in self._asked:
                    read = partial(_rows_with, where, by_index, column, value, columns)
                    self._asked[question] = self._objects.beside(read)

    def find(
        self,
        where: Where,
        by_index: Coverage,
        column: str,
        values: Sequence[str],
        columns: Sequence[str],
    ) -> list[pa.Table]:
        """Rows by the one value that they have, with their addresses.

        Small files that came after the index are read beside it, and once for all values.
        """
        self.expect_deletions()
        self.expect(columns)
        names = tuple(dict.fromkeys((column, *columns)))
        rest = self._objects.beside(partial(self._rows_of, by_index.beside, names))

        def one(value: str) -> pa.Table:
            with self._lock:
                asked = self._asked.pop((column, value, tuple(columns)), None)
            if asked is not None:
                return asked.result()
            return _rows_with(where, by_index, column, value, columns)

        if len(values) == 1:
            each = [one(values[0])]
        else:
            with ThreadPoolExecutor(min(len(values), READERS_MAX)) as pool:
                each = list(pool.map(one, values))
        rows = rest.result()
        if rows is None:
            return each
        parts = zip(each, values, strict=True)
        return [
            pa.concat_tables([found, _only(rows, column, value).select(found.column_names)])
            for found, value in parts
        ]

    def _rows_of(self, fragments: Sequence[Fragment], names: Sequence[str]) -> pa.Table | None:
        """All rows of some fragments, with their addresses."""
        if not fragments:
            return None
        schema = pa.schema([self._opened.facts.schema.field(name) for name in names])
        parts: list[pa.Table] = []
        columns = self._memory.fragment_columns(fragments, names)
        for fragment, found in zip(fragments, columns, strict=True):
            addresses = self._memory.layout.addresses(fragment).astype(np.uint64)
            part = pa.table(found, schema=schema)
            parts.append(part.append_column("_rowaddr", pa.array(addresses)))
        return pa.concat_tables(parts)


def _rows_with(
    where: Where, by_index: Coverage, column: str, value: str, columns: Sequence[str]
) -> pa.Table:
    """Rows with one value, but for those of files that are read beside the index."""
    only = [f.id for f in by_index.indexed] if by_index.beside else []
    return where(pc.field(column) == value, columns, fragments=only)


def _only(rows: pa.Table, column: str, value: str) -> pa.Table:
    return rows.filter(pc.equal(rows.column(column), value))
