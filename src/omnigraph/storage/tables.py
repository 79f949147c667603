"""Tables: reading one pinned version.

    pin -> [table] -> rows, columns, positions

A ``Table`` is one version of one Lance dataset, opened by the exact path of its manifest
(``storage/staging.py``). It is immutable; what it keeps in memory is derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.arrow.sets import among, known_among, true_at
from omnigraph.errors import CorruptionError, InternalError, NotFoundError
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import (
    Addresses,
    Fragment,
    Layout,
    Positions,
    data_files,
    index_folders,
)
from omnigraph.storage.names import TableVersion
from omnigraph.storage.namespace import StagingNamespace, Succession
from omnigraph.storage.objects import Objects, once
from omnigraph.storage.opened import MadeAside, OpenedVersion, manifest_of
from omnigraph.storage.read_ahead import Coverage, ReadAhead
from omnigraph.storage.rows import READERS_MAX, is_blob, read_rows
from omnigraph.storage.searches import AskedIndex, FoundRows, IndexParts, search
from omnigraph.storage.table_memory import ColumnCache, TableMemory

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false


T = TypeVar("T")
PIECE_ROWS = 1 << 18
"""Rows of a large column that are looked through at once."""
ANSWERS_MAX = 1_000
ANSWER_VALUES_MAX = 16
ANSWER_ROWS_MAX = 1_000
"""Small answers of indexes are remembered: so many of so few values and rows."""
FOUND_VALUES_MAX = 10_000
"""Up to so many values are looked up in an index; for more the whole column is read."""

# What finding rows costs, in rows of a column in memory that are looked at in the same time. For
# one value that is 2.5 ns a row, beside 0.65 ms for a lookup in an index; for a hundred values
# 26 ns beside 4.2 ms, for a thousand 26 ns beside 11 ms.
LOOKUP_COST = 250_000
LOOKUP_VALUE_COST = 200
READ_COST_LOCAL = 12
"""Reading a row of a column from a local disk."""
READ_COST_REMOTE = 4
"""The same from a remote store, where lookups are dearer, too. A single write does not buy a column
of megabytes."""


class Table:
    """One immutable version of one table."""

    def __init__(
        self,
        name: TableVersion,
        dataset: LanceDataset,
        space: StagingNamespace,
        cache: ColumnCache,
        objects: Objects | None = None,
        *,
        since: int | None = None,
        aside: MadeAside | None = None,
    ) -> None:
        self.name = name
        self.since = name.version if since is None else since
        """The version that staging began with; what came after it no reader has seen."""
        self.space = space
        self.opened = OpenedVersion(name, dataset, space, aside)
        self.memory = TableMemory(name.path, self.opened, cache, objects)
        self._objects = objects
        self._manifest = once(partial(manifest_of, name, aside, objects))
        self._ahead = (
            ReadAhead(self.opened, self.memory, cache, objects)
            if objects is not None and space.is_remote
            else None
        )
        self.succession = Succession()
        self._found = FoundRows()
        self._answers: dict[tuple[Any, ...], Positions] = {}
        """Where rows stand that an index was asked for, by column and values."""

    @property
    def facts(self) -> LanceDataset:
        """The version for what its manifest says."""
        return self.opened.facts

    @property
    def dataset(self) -> LanceDataset:
        """The version for its rows."""
        return self.opened.dataset

    @property
    def manifest(self) -> bytes:
        """The manifest as it is stored: what the next version is made from aside."""
        return self._manifest()

    @property
    def is_on_the_way(self) -> bool:
        """Whether staging made this version to go on from: it has no manifest of its own."""
        return self.since != self.name.version

    def expect_change(self) -> None:
        """A version will be made of this one: begin to read what that takes."""
        if self._ahead is not None and self._objects is not None:
            self._objects.beside(self._manifest)

    def files_since(self, base: Table | None) -> list[str]:
        """Data and deletion files and folders of indexes that this version has and ``base`` has
        not, from the root."""
        known = base.files_since(None) if base is not None else []
        path, dataset = self.name.path, self.facts
        files = {*data_files(path, dataset), *index_folders(path, dataset)}
        return sorted(files - set(known))

    @property
    def row_count(self) -> int:
        """Live rows; from metadata alone."""
        with translated(f"counting rows of {self.name.path}", referenced=True):
            return self.facts.count_rows()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Rows in storage order, blobs as plain bytes."""
        with translated(f"scanning {self.name.path}", referenced=True):
            yield from self.dataset.scanner(
                columns=list(columns) if columns is not None else None,
                blob_handling="all_binary",
                scan_in_order=True,
            ).to_batches()

    @property
    def layout(self) -> Layout:
        """Where the rows lie."""
        return self.memory.layout

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Whole columns, as far as possible from memory."""
        return self.memory.columns(names, self.row_count)

    def fragment_columns(
        self, fragments: Sequence[Fragment], names: Sequence[str]
    ) -> list[list[pa.ChunkedArray]]:
        """Columns of the live rows of some fragments, as far as possible from memory."""
        return self.memory.fragment_columns(fragments, names)

    def take(self, positions: Sequence[int] | Positions, columns: Sequence[str]) -> pa.Table:
        """Some rows by their positions, read from the files; blobs as plain bytes."""
        places = np.asarray(positions, np.int64)
        if not len(places) and not any(is_blob(self.facts.schema.field(c)) for c in columns):
            return self._empty(columns)
        ids = self._found.ids(places) if "id" in columns else None
        others = [name for name in columns if ids is None or name != "id"]
        with translated(f"reading rows of {self.name.path}", referenced=True):
            rows = read_rows(self.dataset, self.layout, places, others)
        if ids is None:
            if "id" in columns and len(places) <= READERS_MAX:
                self.remember(rows["id"].to_pylist(), places)
            return rows
        fields = {field.name: field for field in rows.schema}
        return pa.table(
            [ids if name == "id" else rows[name] for name in columns],
            schema=pa.schema([fields.get(n, self.facts.schema.field(n)) for n in columns]),
        )

    def positions(self, column: str, values: pa.Array, *, then: Sequence[str] = ()) -> Positions:
        """Where ``column`` is one of ``values``, ascending. The columns ``then`` will be read."""
        by_index = self._asks_index(column, values)
        if self._ahead is not None and (by_index or not self.memory.knows(column)):
            self._ahead.expect_deletions()
            self.expect(then)
        if by_index:
            return self._positions_by_index(column, values)
        found, start = [np.empty(0, np.int64)], 0
        is_wanted = known_among(values, self.row_count)
        for piece in self._pieces((column,), len(values)):
            found.append(true_at(is_wanted(piece[column])) + start)
            start += piece.num_rows
        return np.concatenate(found)

    def positions_of(self, ids: pa.StringArray) -> Positions:
        """Where the rows stand that have these ids; every one must exist."""
        positions = self.positions("id", ids)
        if len(positions) != len(ids):
            raise InternalError(f"rows of {self.name.path} that are to be removed are not there")
        return positions

    def ids_at(self, positions: Positions) -> pa.Array | pa.ChunkedArray:
        """The ids of some rows."""
        found = self._found.ids(positions)
        if found is not None:
            return found
        if self.memory.knows("id"):
            return self.columns(("id",)).column(0).take(pa.array(positions))
        return self.take(positions, ("id",)).column(0)

    def _asks_index(self, column: str, values: pa.Array) -> bool:
        """Whether an index finds these values sooner than a look through the column.

        In memory a column is looked through in a time that grows with it; one that is not there
        has to be read once. Until lookups have cost as much as that, they are the better bet.
        """
        kind = self.facts.schema.field(column).type
        exact = pa.types.is_string(kind) or pa.types.is_signed_integer(kind)
        few = len(values) <= FOUND_VALUES_MAX and not values.null_count
        if not (few and exact and self.takes_conditions and column in self.indexed_columns):
            return False
        if not self._fits_cache(1):
            return True
        price = LOOKUP_COST + len(values) * LOOKUP_VALUE_COST
        if self.row_count > price and not self.is_remote:
            return True
        if self.memory.knows(column):
            return False
        reading = self.row_count * (READ_COST_REMOTE if self.is_remote else READ_COST_LOCAL)
        return self.memory.rents(column, price, reading)

    def _positions_by_index(self, column: str, values: pa.Array) -> Positions:
        """By the index where it reaches; files that came later are looked through."""
        known = self._found.positions(values) if column == "id" else None
        if known is not None:
            return known
        if len(values) > ANSWER_VALUES_MAX:
            return self._asked_of_index(column, values)
        # A write asks what is there, and its check asks again.
        question = (column, *values.to_pylist())
        answer = self._answers.get(question)
        if answer is None:
            answer = self._asked_of_index(column, values)
            if len(answer) <= ANSWER_ROWS_MAX and len(self._answers) < ANSWERS_MAX:
                self._answers[question] = answer
        return answer

    def _asked_of_index(self, column: str, values: pa.Array) -> Positions:
        layout, split = self.layout, self._by_index(column)
        indexed, later = split.indexed, split.later
        rest = self._beside(lambda: self.fragment_columns(later, (column,))) if later else None
        found = [np.empty(0, np.int64)]
        if indexed:
            found.append(layout.positions(self._addresses_by_index(column, values, indexed)))
        if rest is not None:
            columns = rest()
            kind = self.facts.schema.field(column).type
            chunks = [chunk for (part,) in columns for chunk in part.chunks]
            # All of them at once: each pass costs more than the few rows of one file.
            places = true_at(among(pa.chunked_array(chunks, kind), values))
            before = np.cumsum([0, *(f.live_rows for f in later)])
            number = np.searchsorted(before, places, side="right") - 1
            starts = np.fromiter(map(layout.start_of, later), np.int64, len(later))
            found.append(places - before[number] + starts[number])
        positions = np.sort(np.concatenate(found))
        if column == "id" and len(values) == len(positions) == 1:
            self.remember(values.to_pylist(), positions)
        return positions

    def _addresses_by_index(
        self, column: str, values: pa.Array, known: Sequence[Fragment]
    ) -> Addresses:
        """Rows that an index finds in the files that it covers."""
        asked, index = self.memory.asked, self._value_indexes[column]
        if asked is not None and asked.answers(column, index, known):
            # A file of an older version may be gone by now; then it is asked no more.
            with suppress(CorruptionError, NotFoundError):
                return self.layout.shown(asked.find(column, values, known))
        asked = AskedIndex(
            dataset=self.dataset,
            indexes=self._value_indexes,
            files={f.id: f.files for f in self.layout.fragments},
        )
        self.memory.asked = asked
        return asked.find(column, values, known)

    def _by_index(self, column: str) -> Coverage:
        covered = self.indexed_fragments.get(column, frozenset())
        fragments = self.layout.fragments
        return Coverage(
            indexed=tuple(f for f in fragments if f.id in covered),
            later=tuple(f for f in fragments if f.id not in covered),
        )

    def _beside(self, read: Callable[[], T]) -> Callable[[], T]:
        """Begin to read on a remote store; on a disk it is read when it is asked for."""
        if self._ahead is None or self._objects is None:
            return read
        return self._objects.beside(read).result

    def expect(self, columns: Sequence[str]) -> None:
        """Few rows will be read by their positions, which are not known yet."""
        if self._ahead is not None:
            schema = self.facts.schema
            self._ahead.expect([c for c in columns if not is_blob(schema.field(c))])

    def remember(self, ids: Iterable[str], positions: Positions) -> None:
        """Know the positions of some ids, so that neither is read again."""
        self._found.add(ids, positions)

    @property
    def is_remote(self) -> bool:
        """Whether every read is a request to another machine."""
        return self.space.is_remote

    def _pieces(self, columns: Sequence[str], values: int) -> Iterator[pa.Table]:
        """Columns as they are kept, or piece by piece where they are too large for that.

        A piece has at least as many rows as values are looked for in it: for each piece these are
        put into a hash table, which must not cost more than the rows do.
        """
        if self._fits_cache(len(columns)):
            yield self.columns(columns)
            return
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for batch in self.batches(columns):
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= max(values, PIECE_ROWS):
                yield pa.Table.from_batches(waiting)
                waiting, rows = [], 0
        if waiting:
            yield pa.Table.from_batches(waiting)

    def where(
        self, condition: pc.Expression, columns: Sequence[str], *, fragments: Sequence[int] = ()
    ) -> pa.Table:
        """Rows that Lance finds for a typed condition, with their addresses in ``_rowaddr``."""
        return search(self.dataset, condition, columns, fragments)

    def among(self, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Rows whose ``column`` is one of ``values``, with their addresses in ``_rowaddr``."""
        if self.takes_conditions:
            return self.where(pc.field(column).isin(values), columns)
        positions = self.positions(column, values)
        addresses = pa.array(self.layout.addresses_at(positions))
        return self.take(positions, columns).append_column("_rowaddr", addresses)

    def among_each(
        self, column: str, values: Sequence[str], columns: Sequence[str]
    ) -> list[pa.Table]:
        """Rows by the single value that they have: ``column`` itself need not be read."""
        if not self.takes_conditions:
            return [self.among(column, pa.array([v], pa.string()), columns) for v in values]
        return self._where_each(column, values, columns)

    def ask_ahead(self, column: str, values: Sequence[str], columns: Sequence[str]) -> None:
        """``among_each`` will be asked this: begin to look."""
        if self._ahead is not None and self.takes_conditions:
            self._ahead.ask(self.where, self._by_index(column), column, values, columns)

    def _where_each(
        self, column: str, values: Sequence[str], columns: Sequence[str]
    ) -> list[pa.Table]:
        if self._ahead is None:
            return [self.where(pc.field(column) == value, columns) for value in values]
        return self._ahead.find(self.where, self._by_index(column), column, values, columns)

    def prefers_each(self, count: int) -> bool:
        """Whether so few values are asked for one by one: that saves requests, not time."""
        return count == 1 or (self.is_remote and count <= READERS_MAX)

    @cached_property
    def takes_conditions(self) -> bool:
        """Whether Lance accepts conditions: it refuses all on a table with lists of unsigned."""
        return not any(
            pa.types.is_list(field.type) and pa.types.is_unsigned_integer(field.type.value_type)
            for field in self.facts.schema
        )

    @property
    def indexed_columns(self) -> frozenset[str]:
        """Columns with an index that finds single values."""
        return frozenset(self.indexed_fragments)

    @cached_property
    def indexed_fragments(self) -> Mapping[str, frozenset[int]]:
        """The fragments that an index for single values covers, by its column."""
        return {
            name: frozenset[int]().union(*parts.values())
            for name, parts in self._value_indexes.items()
        }

    @cached_property
    def _value_indexes(self) -> Mapping[str, IndexParts]:
        found: dict[str, dict[str, frozenset[int]]] = {}
        with translated(f"reading indexes of {self.name.path}", referenced=True):
            for index in self.facts.describe_indices():
                if index.index_type.upper() == "BTREE":
                    parts = {
                        str(part.uuid): frozenset(part.fragment_ids) for part in index.segments
                    }
                    for name in index.field_names:
                        found.setdefault(name, {}).update(parts)
        return found

    @property
    def reads(self) -> int:
        """Requests that reading this version has taken so far."""
        return int(self.dataset.io_stats_snapshot().read_iops)

    def lookup(self, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Rows whose ``column`` is one of ``values``, projected on ``columns``; blobs as bytes."""
        wanted = list(dict.fromkeys([column, *columns]))
        if any(is_blob(self.facts.schema.field(name)) for name in columns):
            return self.take(self.positions(column, values), columns)
        if self._asks_index(column, values):
            return self._rows_by_index(column, values, columns)
        is_wanted = known_among(values, self.row_count)
        found = [
            piece.filter(is_wanted(piece[column])).select(list(columns))
            for piece in self._pieces(wanted, len(values))
        ]
        return pa.concat_tables(found) if found else self._empty(columns)

    def _rows_by_index(self, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Rows that an index finds; ids that are known to exist are not read."""
        if self._ahead is not None:
            self._ahead.expect_deletions()
        if list(columns) != ["id"]:
            self.expect(columns)
        positions = self._positions_by_index(column, values)
        if column == "id" and list(columns) == ["id"]:
            distinct = pc.unique(values)
            if len(distinct) == len(positions):
                return pa.table([distinct], schema=self._empty(columns).schema)
        return self.take(positions, columns)

    def _fits_cache(self, column_count: int) -> bool:
        return self.memory.fits(self.row_count, column_count)

    def _empty(self, names: Sequence[str]) -> pa.Table:
        return pa.schema([self.facts.schema.field(n) for n in names]).empty_table()
