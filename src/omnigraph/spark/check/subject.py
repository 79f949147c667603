"""What is checked: the rows of an input, and the committed state they meet.

parsed input, pinned snapshot -> [subject] -> verdict, and where that doubts: exact rules
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from omnigraph.rules.table_delta import WriteMode
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.spark.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE, LINE = "_file", "_line"
"""Where a row came from: the number of its source and the line in it. Also the order of rows."""

Read = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[str, pa.Table]]]


class Committed(Protocol):
    """The pinned snapshot, read by executors. Reads are remembered as the read set."""

    def row_count(self, table_key: str) -> int:
        """Rows in the table, 0 when it does not exist yet. Costs nothing."""
        ...

    def scan(self, table_key: str, columns: Sequence[str]) -> Scan:
        """Columns of a table that exists, for tasks to read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTable:
    """The rows of one type in the input."""

    type: GraphType
    rows: int
    ids_fresh: bool = False
    """Every id was generated for this load: none repeats, none exists yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The input as tasks read it, all types together."""

    frame: DataFrame
    """Kept rows, in whatever shape ``read`` takes."""
    read: Read
    """Runs on executors: batches of the frame as rows of types, by table key. In the columns of
    ``table_schema(type)``, ``_file`` and ``_line``; values before the check, so any may be null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An input on its way into a graph."""

    catalog: Catalog
    mode: WriteMode
    tables: Mapping[str, InputTable]
    """By table key, in order of first mention."""
    files: tuple[str, ...]
    """Names of the sources, by number."""
    committed: Committed
    intake: Intake

    @property
    def overwrites(self) -> bool:
        """Whether the rows of a type become its whole content."""
        return self.mode is WriteMode.OVERWRITE

    @property
    def rows(self) -> int:
        """Rows of all types."""
        return sum(table.rows for table in self.tables.values())

    def exists(self, table_key: str) -> bool:
        """Whether committed rows of this table can matter: there are some and they may stay."""
        if self.overwrites and table_key in self.tables:
            return False
        return self.committed.row_count(table_key) > 0
