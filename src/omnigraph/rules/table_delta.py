"""What rules look at: the change of one table, and the committed state that it meets.

    load | mutate | merge -> [table delta] -> rules -> stage -> publish

A delta holds complete row images in Arrow and ids to remove. It is a value: building one has no
effect, and the same delta is checked again on a newer snapshot when a race is lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.manifest.snapshot import TablePin
from omnigraph.schema.catalog import GraphType

if TYPE_CHECKING:
    from omnigraph.storage.changes import Rework


NO_IDS: pa.StringArray = pa.array([], pa.string())
FILE, LINE = "_file", "_line"
"""Where a row of a bulk load came from: the number of its source and the line in it. Also the order
of rows."""


class WriteMode(StrEnum):
    """What happens to entities that exist already."""

    APPEND = "append"
    """Strict insert: an id that exists already is a key conflict."""
    MERGE = "merge"
    """Upsert: the new image replaces the old one."""
    OVERWRITE = "overwrite"
    """The rows become the whole content of the type."""


Lines = range | npt.NDArray[np.int64]
"""1-based lines (text sources) or rows (tables). Mostly they follow each other, and a range takes
no room beside millions of rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origins:
    """Where each row of a delta came from, for messages: stretches of rows behind each other."""

    names: tuple[str, ...]
    """Source names, e.g. file paths as the user gave them."""
    firsts: npt.NDArray[np.int64]
    """The first row of each stretch."""
    stretches: tuple[tuple[int, Lines], ...]
    """The source, as a place in ``names``, and the lines."""

    @staticmethod
    def of(names: Sequence[str], stretches: Iterable[tuple[int, Lines]]) -> Origins:
        """Stretches in the order of the rows."""
        found = tuple(stretches)
        counts = np.array([0, *(len(lines) for _, lines in found)], np.int64)
        return Origins(names=tuple(names), firsts=np.cumsum(counts)[:-1], stretches=found)

    def at(self, row: int) -> tuple[str, int]:
        """Source name and line of one row."""
        # Of stretches with the same first row all but the last are empty.
        number = int(np.searchsorted(self.firsts, row, side="right")) - 1
        source, lines = self.stretches[number]
        return self.names[source], int(lines[row - int(self.firsts[number])])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDelta:
    """The change of one table."""

    type: GraphType
    mode: WriteMode
    rows: pa.Table
    """Complete images in the columns of ``schema.arrow.table_schema(type)``. Values have the right
    Arrow type already; nothing else is promised: required values may be null (a null key member
    leaves ``id`` null), ids may repeat, ranges may be broken. Blob cells are plain bytes."""
    ids_fresh: bool = False
    """Every id in ``rows`` was generated for this write: none repeats, none exists yet. Spares the
    validator the search for repeats and the lookup of the ids."""
    removed: pa.StringArray = field(default_factory=lambda: NO_IDS)
    """Ids to delete; disjoint from the ids in ``rows``. Empty in loads."""
    origins: Origins | None = None
    may_repeat: bool = False
    """Rows may be what is committed already; such are found, and not written. Others who make a
    delta have compared before."""
    ids_foreign: bool = False
    """The rows were written under another schema: their ids may not follow from the key."""
    reshape: Rework | None = None
    """What happens to the columns of the table before the rows are written."""
    refilled: int = 0
    """Committed rows that this does not name and that get another value by ``reshape``."""
    adopt: TablePin | None = None
    """A version that exists already and *is* the result, so that nothing has to be written. The
    rows and ids still say how it differs from what is committed: rules are checked by them."""

    @property
    def only_writes(self) -> bool:
        """Whether it does nothing but insert and replace rows."""
        special = self.reshape is not None or self.adopt is not None or self.ids_foreign
        return self.mode is not WriteMode.OVERWRITE and not len(self.removed) and not special

    @property
    def is_fresh(self) -> bool:
        """Whether it does nothing but insert rows with new ids."""
        return self.ids_fresh and self.only_writes


class CommittedState(Protocol):
    """The pinned snapshot that a delta is checked against. Reads are remembered as the read set."""

    def row_count(self, table_key: str) -> int:
        """Rows in the table, 0 when it does not exist yet. Costs nothing."""
        ...

    def lookup(
        self, table_key: str, column: str, values: pa.Array, columns: tuple[str, ...]
    ) -> pa.Table:
        """Committed rows whose ``column`` is among ``values`` (not null), projected on ``columns``.

        Made for any number of values: few become an index lookup, many a scan of the column.
        """
        ...

    def rows_of(self, table_key: str, ids: pa.Array, columns: tuple[str, ...]) -> pa.Table:
        """Committed rows by their ids, where whole rows are wanted: read, and not kept in memory
        as the columns are that ``lookup`` goes through."""
        ...

    def scan(self, table_key: str, columns: tuple[str, ...]) -> pa.Table:
        """All committed rows of a table, projected on ``columns``."""
        ...


# -- jobs ------------------------------------------------------------------------------------------
# Rules that need nothing of each other, checked on all cores.


_PARALLEL_ROWS_MIN = 50_000
"""Below this much work starting threads costs more than they save."""

Job = tuple[int, Callable[[], None]]
"""Roughly how many rows a job looks at, and the job. Jobs write their result where they like."""


def run(jobs: Sequence[Job]) -> None:
    """Run independent jobs, on all cores when there is enough to do.

    Arrow and NumPy release the interpreter lock in the loops that matter. Jobs must not read the
    committed state: that stays on the calling thread, in a fixed order.
    """
    if len(jobs) < 2 or sum(rows for rows, _ in jobs) < _PARALLEL_ROWS_MIN:
        for _, job in jobs:
            job()
        return
    with ThreadPoolExecutor(max_workers=min(len(jobs), os.cpu_count() or 1)) as pool:
        # The longest first, so that no core is left alone with a long job at the end.
        ordered = sorted(jobs, key=lambda job: job[0], reverse=True)
        for future in [pool.submit(job) for _, job in ordered]:
            future.result()
