"""Whole columns in memory, in the forms that operators want.

    table version, column -> [column] -> evaluate, group, sort, project

A column that filters or groups is read whole and kept, within a bound, under the version of its
table. Texts that repeat are kept as codes into a dictionary: comparing, grouping and sorting then
touch each distinct text once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.exec.limits import CACHE_VARIABLE as CACHE_VARIABLE
from omnigraph.query.exec.limits import cache_bytes
from omnigraph.query.search.text_index import TextIndex
from omnigraph.storage.layout import Fragment, Positions
from omnigraph.storage.names import TableVersion
from omnigraph.storage.tables import Table

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false


PART_MAX = 4
"""One column may take a quarter of the cache; a larger one is read as needed."""
TEXT_BYTES = 32
"""Guess of the size of a text before it was seen."""
REPEATS_MIN = 4
"""Texts are kept as codes if each comes so often on average."""
SMALL_BYTES = 4 << 20
"""A column up to this size is read whole at first touch: on S3 the time of a few requests."""
FETCH_COST = 16_000
"""Rows that a scan reads while one request for single rows is answered."""
FETCHED_ROW_COST = 8
"""Rows that a scan reads while one single row is decoded."""
FEW_ROWS = 2_000
VIEWS_MAX = 512

T = TypeVar("T")


def fetch_cost(rows: int, requests: int = 1) -> int:
    """What fetching single rows costs, in rows that a scan reads meanwhile."""
    return requests * FETCH_COST + rows * FETCHED_ROW_COST


class Column:
    """One whole column of one version."""

    def __init__(self, values: pa.ChunkedArray) -> None:
        self.values: pa.Array = contiguous(values)

    @cached_property
    def encoded(self) -> pa.Array:
        """The same values; texts that repeat as a dictionary array."""
        if not pa.types.is_string(self.values.type) or len(self.values) < FEW_ROWS:
            return self.values
        sample = self.values.slice(0, FEW_ROWS).dictionary_encode()
        if len(sample.dictionary) * REPEATS_MIN > FEW_ROWS:
            return self.values
        coded = self.values.dictionary_encode()
        return coded if len(coded.dictionary) * REPEATS_MIN <= len(coded) else self.values

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    def take(self, rows: Positions) -> pa.Array:
        """Values of rows; null for a negative one."""
        return take(self.encoded, rows)


def take(values: pa.Array, rows: Positions) -> pa.Array:
    """Values at places; null for a negative place."""
    if len(rows) and rows.min() < 0:
        return values.take(pa.array(rows, mask=rows < 0))
    return values.take(pa.array(rows))


def contiguous(values: pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    if values.num_chunks == 1:
        return values.chunk(0)
    joined = values.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        return joined.chunk(0) if joined.num_chunks else pa.array([], values.type)
    return joined


class KeptColumn:
    """A bounded cache of derived values, least recently used out first."""

    def __init__(self, bytes_max: int | None = None) -> None:
        self.bytes_max = cache_bytes() if bytes_max is None else bytes_max
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._views: dict[Hashable, tuple[Any, Sequence[Hashable]]] = {}
        self._lock = RLock()

    def view(self, key: Hashable) -> Any:
        """What was put beside the kept values under a key; None after anything had to go."""
        found = self._views.get(key)
        return None if found is None else found[0]

    def add_view(self, key: Hashable, value: object, of: Sequence[Hashable]) -> None:
        """Put something beside the values that it refers to; it has no memory of its own.

        It is dropped before any value goes, and until then these values count as used.
        """
        with self._lock:
            if len(self._views) >= VIEWS_MAX:
                self._drop_views()
            self._views[key] = value, of

    def forget_views(self) -> None:
        """Drop them: some belong to a state that is not read any more."""
        with self._lock:
            self._drop_views()

    def _drop_views(self) -> None:
        for _, of in self._views.values():
            for key in of:
                if key in self._entries:
                    self._entries.move_to_end(key)
        self._views = {}

    def get(self, key: Hashable) -> Any:
        """What is kept under the key, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def make(self, key: Hashable, make: Callable[[], T], size: Callable[[T], int]) -> T:
        """What is kept, else made and kept."""
        found = self.get(key)
        if found is not None:
            return found
        made = make()
        bytes_ = size(made)
        if bytes_ <= self.bytes_max:
            with self._lock:
                if self._bytes + bytes_ > self.bytes_max:
                    self._drop_views()
                if key not in self._entries:
                    self._entries[key] = (made, bytes_)
                    self._bytes += bytes_
                while self._bytes > self.bytes_max:
                    _, (_, dropped) = self._entries.popitem(last=False)
                    self._bytes -= dropped
        return made


class TableColumns:
    """Columns of one table version: whole and kept, or fetched for some rows."""

    def __init__(self, table: Table | None, schema: pa.Schema, kept: KeptColumn) -> None:
        self.table = table
        self._schema = schema
        self._kept = kept
        self._fetch_cost: dict[str, int] = {}
        """What fetching single rows of a column has cost so far, in rows of a scan."""

    @property
    def row_count(self) -> int:
        return self.table.layout.row_count if self.table is not None else 0

    def fits(self, name: str) -> bool:
        """Whether the whole column may be kept in memory."""
        return self._size(name) <= self._kept.bytes_max // PART_MAX

    def _size(self, name: str) -> int:
        """Bytes of the whole column, guessed from its type."""
        kind = self._schema.field(name).type
        width = TEXT_BYTES if _is_long(kind) else 8
        if pa.types.is_fixed_size_list(kind):
            width = 4 * kind.list_size
        return self.row_count * width

    def known(self, name: str) -> Column | None:
        """The whole column if it is in memory already."""
        return None if self.table is None else self._kept.get((self.table.name, name))

    def whole(self, name: str) -> Column:
        """The whole column."""
        found = self.known(name)
        if found is not None:
            return found
        table = self.table
        if table is None:
            return Column(pa.chunked_array([], self._schema.field(name).type))
        return self._kept.make(
            (table.name, name),
            lambda: Column(table.columns([name]).column(0)),
            lambda made: made.nbytes,
        )

    def take(self, name: str, rows: Positions) -> pa.Array:
        """Values of some rows; null for a negative one."""
        found = self.known(name)
        if found is not None:
            return found.take(rows)
        if self.table is None or self._worth_whole(name, len(rows)):
            return self.whole(name).take(rows)
        return self._fetch([name], rows)[0]

    def take_many(self, names: list[str], rows: Positions) -> list[pa.Array]:
        """The same for several columns; those not in memory are fetched together."""
        if self.table is None:
            return [self.whole(n).take(rows) for n in names]
        missing = [n for n in names if self.known(n) is None]
        whole = [n for n in missing if self._worth_whole(n, len(rows))]
        if len(whole) > 1:
            self._read_whole(whole)
        single = [n for n in missing if n not in whole]
        fetched = dict(zip(single, self._fetch(single, rows), strict=True)) if single else {}
        return [fetched[n] if n in fetched else self.whole(n).take(rows) for n in names]

    def _read_whole(self, names: list[str]) -> None:
        """Read whole columns together and keep them."""
        if self.table is None:
            return
        found = self.table.columns(names)
        for name in names:
            column = Column(found.column(name))
            self._kept.make((self.table.name, name), lambda c=column: c, lambda c: c.nbytes)

    def _worth_whole(self, name: str, count: int) -> bool:
        """Whether to read the column: single rows are fetched until that has cost as much."""
        cost = self._fetch_cost.get(name, 0) + fetch_cost(count)
        self._fetch_cost[name] = cost
        small = self._size(name) <= SMALL_BYTES
        return (small or cost >= self.row_count) and self.fits(name)

    def _fetch(self, names: list[str], rows: Positions) -> list[pa.Array]:
        table = self.table
        wanted, places = np.unique(rows, return_inverse=True)
        null = bool(len(wanted)) and wanted[0] < 0
        if null:
            wanted, places = wanted[1:], places - 1
        if table is None or not len(wanted):
            return [pa.nulls(len(rows), self._schema.field(n).type) for n in names]
        found = table.take(wanted.tolist(), names)
        return [take(contiguous(found[n]), places.astype(np.int64)) for n in names]


def _is_long(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_list(kind) or pa.types.is_large_binary(kind)


def numeric(values: pa.Array) -> npt.NDArray[Any]:
    """Numbers, days or instants without nulls as numpy, without a copy where possible."""
    if pa.types.is_timestamp(values.type):
        values = values.view(pa.int64())
    elif pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    return values.to_numpy(zero_copy_only=False)


# -- text indexes ----------------------------------------------------------------------------------
# Text indexes of columns, kept from version to version.
#
# A version that only appended files has the words of the one before it and some more, so its index
# is the older one extended. Any other change makes the index anew.


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
