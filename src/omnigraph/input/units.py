"""What there is to read, as a value that travels to executors, and cut into units of work.

    sources (driver) -> [units] -> one number per unit -> the executor that reads it

A unit is what one call of a reader handles: a byte range of a text, a whole file that cannot be
cut, some row groups of a Parquet file. Units of files are numbered from zero in input order; the
plan finds the unit of a number, so a task needs nothing but numbers. A DataFrame that a user gives
is a group of its own, and its partitions are its units.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from omnigraph.errors import InternalError
from omnigraph.input.streams import GivenStream, SourceFile

GROUP_BITS = 36
"""A unit's number within its group; the group stands above."""
_UNITS_PER_TASK_MAX = 4
_TASKS_ALONE_MAX = 64


class Format(StrEnum):
    """How the bytes of a file are read."""

    JSONL = "JSONL"
    CSV = "CSV"
    PARQUET = "Parquet"
    ARROW = "Arrow"


class Compression(StrEnum):
    """How a text is packed; the value is Arrow's name of the codec."""

    GZIP = "gzip"
    ZSTD = "zstd"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """Which column of a source fills which column of a type's table."""

    table_key: str
    columns: tuple[tuple[str, str], ...]
    """Column of the table, and name of the column in the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """One file and how it is cut."""

    file: SourceFile
    format: Format
    compression: Compression | None = None
    cuts: tuple[int, ...]
    """Unit ``i`` is ``[cuts[i], cuts[i + 1])``: bytes, row groups of a Parquet file, or batches of
    an Arrow file."""
    shape: TableShape | None = None
    """None: every record names its type."""
    header: tuple[str, ...] = ()
    """The names of the columns of a CSV file."""
    header_stop: int = 0
    """Where the text behind the header begins."""
    delimiter: str = ","

    @property
    def unit_count(self) -> int:
        return len(self.cuts) - 1

    @property
    def in_order(self) -> bool:
        """Whether it can only be read from its beginning to its end."""
        return self.compression is not None or isinstance(self.file, GivenStream)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputUnit:
    """One unit of one file."""

    number: int
    file: int
    """Index among all sources."""
    planned: PlannedFile
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True)
class WorkPlan:
    """All files of an input, in order."""

    files: tuple[PlannedFile, ...]
    indices: tuple[int, ...]
    """The index of each file among all sources."""

    @cached_property
    def _firsts(self) -> list[int]:
        firsts = [0]
        for planned in self.files:
            firsts.append(firsts[-1] + planned.unit_count)
        return firsts

    @property
    def unit_count(self) -> int:
        return self._firsts[-1]

    @property
    def task_count(self) -> int:
        """Small inputs have a task per unit; large ones a few units per task, as tasks cost too."""
        packed = -(-self.unit_count // _UNITS_PER_TASK_MAX)
        return max(1, min(self.unit_count, max(_TASKS_ALONE_MAX, packed)))

    def unit(self, number: int) -> InputUnit:
        """The unit of this number."""
        if not 0 <= number < self.unit_count:
            raise InternalError(f"there is no unit {number} among {self.unit_count}")
        place = bisect.bisect_right(self._firsts, number) - 1
        planned = self.files[place]
        cut = number - self._firsts[place]
        return InputUnit(
            number=number,
            file=self.indices[place],
            planned=planned,
            start=planned.cuts[cut],
            stop=planned.cuts[cut + 1],
        )


def byte_cuts(size: int, range_bytes: int | None) -> tuple[int, ...]:
    """A file in ranges of about equal size, or in one; an empty one has no unit."""
    return (*range(0, size, range_bytes or max(size, 1)), size)


def group_unit(group: int, number: int) -> int:
    """The number of a unit among all groups. Files are group 0, DataFrames follow."""
    return (group << GROUP_BITS) + number


def grouped_cuts(sizes: Sequence[int], wanted: int | None) -> tuple[int, ...]:
    """Neighbours put together until they have the wanted size; one that is larger stays alone."""
    if wanted is None:
        return (0, len(sizes)) if sizes else (0,)
    cuts, size = [0], 0
    for place, one in enumerate(sizes):
        if size and size + one > wanted:
            cuts.append(place)
            size = 0
        size += one
    return (*cuts, len(sizes)) if sizes else (0,)
