"""A committed state in memory that remembers how it was read.

Implements ``rules.table_delta.CommittedState`` and ``query.mutate.base.Base`` over Arrow tables, so
that rules and mutations can be tested without storage and their cost in reads can be asserted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRead:
    """One read: a lookup of values in a column, or a scan (``column`` None)."""

    table_key: str
    column: str | None
    values: tuple[object, ...]
    """Distinct, sorted by text."""
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemoryState:
    """Tables by key; a missing key is a table that does not exist yet."""

    tables: Mapping[str, pa.Table] = field(default_factory=lambda: dict[str, pa.Table]())
    reads: list[RecordedRead] = field(default_factory=lambda: list[RecordedRead]())
    """Every read so far, in order."""

    def row_count(self, table_key: str) -> int:
        """Rows in the table, 0 when it does not exist."""
        table = self.tables.get(table_key)
        return 0 if table is None else table.num_rows

    def lookup(
        self, table_key: str, column: str, values: pa.Array, columns: tuple[str, ...]
    ) -> pa.Table:
        """The rows whose column is among the values."""
        asked = tuple(sorted(set(values.to_pylist()), key=str))
        self.reads.append(
            RecordedRead(table_key=table_key, column=column, values=asked, columns=columns)
        )
        table = self.tables[table_key]
        is_in: Any = pyarrow.compute.is_in  # pyright: ignore[reportAttributeAccessIssue]
        mask = is_in(table.column(column), value_set=values, skip_nulls=True)
        return table.filter(mask).select(list(columns))

    def rows_of(self, table_key: str, ids: pa.Array, columns: tuple[str, ...]) -> pa.Table:
        """The rows of these ids; recorded as a lookup."""
        return self.lookup(table_key, "id", ids, columns)

    def scan(self, table_key: str, columns: tuple[str, ...]) -> pa.Table:
        """All rows."""
        self.reads.append(
            RecordedRead(table_key=table_key, column=None, values=(), columns=columns)
        )
        return self.tables[table_key].select(list(columns))

    def positions(
        self, table_key: str, column: str, values: pa.Array, *, then: tuple[str, ...] = ()
    ) -> npt.NDArray[np.int64]:
        """Where the rows stand whose column is among the values."""
        asked = tuple(sorted(set(values.to_pylist()), key=str))
        self.reads.append(
            RecordedRead(table_key=table_key, column=column, values=asked, columns=())
        )
        column_values = self.tables[table_key].column(column).to_pylist()
        return np.flatnonzero(np.array([v in asked for v in column_values], np.bool_))

    def ids_with(self, asks: Sequence[tuple[str, str, pa.StringArray]]) -> list[pa.Table]:
        """One lookup after the other."""
        return [self.lookup(key, column, values, ("id",)) for key, column, values in asks]

    def rows_at(
        self, table_key: str, positions: npt.NDArray[np.int64], columns: tuple[str, ...]
    ) -> pa.Table:
        """Rows by their positions; recorded as a read of the column ``@``."""
        places = tuple(positions.tolist())
        self.reads.append(
            RecordedRead(table_key=table_key, column="@", values=places, columns=columns)
        )
        return self.tables[table_key].take(pa.array(positions)).select(list(columns))
