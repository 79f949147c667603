"""What is checked: rows of the input as DataFrames, and the committed state they meet.

    parsed input, pinned snapshot -> [subject] -> rules

The final image of a table is its input with the last row of every id. Repeated ids are rare; only
a table that is known to have some pays for dropping the rows before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from omnigraph.pipeline.scan import Scan
from omnigraph.schema.catalog import Catalog, GraphType
from omnigraph.write.delta import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FILE, LINE = "_file", "_line"
"""Where a row came from: the number of its source and the line in it. Also the order of rows."""


Read = Callable[[Iterable[pa.RecordBatch]], Iterator[tuple[str, pa.Table]]]


class Committed(Protocol):
    """The pinned snapshot, read by executors. Reads are remembered as the read set."""

    def row_count(self, table_key: str) -> int:
        """Rows in the table, 0 when it does not exist yet. Costs nothing."""
        ...

    def frame(self, table_key: str, columns: Sequence[str]) -> DataFrame:
        """Columns of a table that exists."""
        ...

    def scan(self, table_key: str, columns: Sequence[str]) -> Scan:
        """The same, for tasks that read for themselves."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTable:
    """The rows of one type in the input."""

    type: GraphType
    rows: DataFrame
    """Columns of ``table_schema(type)`` in their Spark types, ``_file`` and ``_line``."""
    ids_fresh: bool = False
    """Every id was generated for this load: none repeats, none exists yet."""
    repeats: bool = False
    """Some id occurs more than once."""

    @property
    def image(self) -> DataFrame:
        """The last row of every id; rows without one are all kept."""
        if not self.repeats:
            return self.rows
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        newest_first = Window.partitionBy("id").orderBy(F.desc(FILE), F.desc(LINE))
        numbered = self.rows.where(col("id").isNotNull()).withColumn(
            "_age", F.row_number().over(newest_first)
        )
        last = numbered.where(col("_age") == 1).drop("_age")
        return last.unionByName(self.rows.where(col("id").isNull()))


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

    def exists(self, table_key: str) -> bool:
        """Whether committed rows of this table can matter: there are some and they may stay."""
        if self.overwrites and table_key in self.tables:
            return False
        return self.committed.row_count(table_key) > 0

    def untouched(self, table_key: str, columns: Sequence[str]) -> DataFrame:
        """Committed rows that the input does not replace."""
        from pyspark.sql import functions as F

        found = self.committed.frame(table_key, list(dict.fromkeys(("id", *columns))))
        own = self.tables.get(table_key)
        if own is None or own.ids_fresh:
            return found
        ids = own.rows.select(F.col("id").alias("_own"))
        return found.join(ids, found["id"] == ids["_own"], "left_anti")

    def removed(self, table_key: str) -> DataFrame | None:
        """Ids that an overwrite makes disappear, as ``_gone``; None where nothing can."""
        from pyspark.sql import functions as F

        own = self.tables.get(table_key)
        if own is None or not self.overwrites or not self.committed.row_count(table_key):
            return None
        before = self.committed.frame(table_key, ("id",)).select(F.col("id").alias("_gone"))
        if own.ids_fresh:
            return before
        ids = own.rows.select(F.col("id").alias("_own"))
        return before.join(ids, before["_gone"] == ids["_own"], "left_anti")


def repeated(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The tuples of these columns that occur more than once; those with a null take no part."""
    from pyspark.sql import functions as F

    complete = rows.where(no_nulls(columns))
    counted = complete.groupBy(*[col(c) for c in columns]).agg(F.count("*").alias("_count"))
    return counted.where(F.col("_count") > 1).select(*[col(c) for c in columns])


def no_nulls(columns: Sequence[str]) -> Column:
    """A condition: no member is null."""
    return reduce(lambda a, b: a & b, [col(c).isNotNull() for c in columns])


def col(name: str) -> Column:
    """A column by its exact name: a dot in it would mean a field of a struct."""
    from pyspark.sql import functions as F

    return F.col("`" + name.replace("`", "``") + "`")


def union(frames: Sequence[DataFrame]) -> DataFrame:
    """The rows of all frames."""
    from pyspark.sql import DataFrame

    return reduce(DataFrame.unionByName, frames)
