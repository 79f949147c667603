"""Where the rows of a table version lie: fragments, live rows, addresses and positions.

An *address* (fragment and offset in it) names a row as long as its file lives, across versions. A
*position* counts the live rows of one version in storage order; whole columns are indexed by it.
Adjacency and caches keep addresses, because an append or a deletion elsewhere does not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset

from omnigraph.arrow.sets import Positions

Addresses = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int64]
"""Physical places of live rows within one fragment, ascending."""

OFFSET_BITS = 32
OFFSET_MASK = (1 << OFFSET_BITS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """One immutable set of files and, perhaps, a file that says which of its rows are gone."""

    id: int
    files: tuple[str, ...]
    deletion: str | None
    physical_rows: int
    live_rows: int

    @staticmethod
    def of(metadata: Any) -> Fragment:
        """From Lance's metadata of a fragment."""
        deletion = metadata.deletion_file
        return Fragment(
            id=metadata.id,
            files=tuple(path_of(file) for file in metadata.files),
            deletion=deletion.path(metadata.id) if deletion is not None else None,
            physical_rows=metadata.physical_rows,
            live_rows=metadata.num_rows,
        )


def path_of(file: Any) -> str:
    """The path of a data file. Lance's own property makes a class at each access: 0.1 ms."""
    return vars(file).get("_path") or str(file.path)


class LiveRows:
    """The rows of one fragment that deletions have left.

    Known by those that are gone, as a rule a few of very many: to follow a write costs what has
    gone, not what is there. Either form is made from the other when it is asked for.
    """

    def __init__(
        self, physical_rows: int, *, gone: Offsets | None = None, offsets: Offsets | None = None
    ) -> None:
        self._physical_rows = physical_rows
        self._gone = gone
        self._offsets = offsets

    @property
    def gone(self) -> Offsets:
        """Places of the rows that are gone, ascending."""
        if self._gone is None:
            left = np.ones(self._physical_rows, np.bool_)
            left[self.offsets] = False
            self._gone = np.flatnonzero(left)
        return self._gone

    @property
    def offsets(self) -> Offsets:
        """Places of the rows that are left, ascending."""
        if self._offsets is None:
            gone = self._gone if self._gone is not None else np.empty(0, np.int64)
            self._offsets = np.delete(np.arange(self._physical_rows, dtype=np.int64), gone)
        return self._offsets

    def numbers(self, offsets: Offsets) -> Positions:
        """How many live rows stand before each of some live rows."""
        return offsets - np.searchsorted(self.gone, offsets)

    def offsets_at(self, numbers: Positions) -> Offsets:
        """The inverse of ``numbers``."""
        before = self.gone - np.arange(len(self.gone))
        return numbers + np.searchsorted(before, numbers, side="right")

    def without(self, offsets: Offsets) -> LiveRows:
        """What is left when these go, too."""
        return LiveRows(self._physical_rows, gone=np.union1d(self.gone, offsets))

    def has(self, other: LiveRows | None) -> bool:
        """Whether every row that is left for another (None: all of the file) is left here."""
        return not len(hidden(other, self))


def hidden(shown: LiveRows | None, by: LiveRows | None) -> Offsets:
    """Rows of a file that one shows and another does not; None shows all of them."""
    if by is None or by is shown:
        return np.empty(0, np.int64)
    return by.gone if shown is None else np.setdiff1d(by.gone, shown.gone, assume_unique=True)


class Layout:
    """The fragments of one table version, in storage order."""

    def __init__(self, fragments: Sequence[Fragment], live: Callable[[Fragment], LiveRows]) -> None:
        self.fragments = tuple(fragments)
        self._live = live

    @cached_property
    def starts(self) -> Positions:
        """The position of each fragment's first live row; one more for the end."""
        counts = np.fromiter(
            (f.live_rows for f in self.fragments), np.int64, count=len(self.fragments)
        )
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])

    @property
    def row_count(self) -> int:
        return int(self.starts[-1])

    def live(self, fragment: Fragment) -> LiveRows | None:
        """The live rows of a fragment; None when nothing of it was deleted."""
        return self._live(fragment) if fragment.deletion is not None else None

    def offsets(self, fragment: Fragment) -> Offsets | None:
        """The same, all of them by their places."""
        live = self.live(fragment)
        return None if live is None else live.offsets

    @cached_property
    def _by_id(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        ids = np.fromiter((f.id for f in self.fragments), np.int64, count=len(self.fragments))
        order = np.argsort(ids, kind="stable")
        return ids[order], order

    def positions(self, addresses: Addresses) -> Positions:
        """Positions of live rows by their addresses."""
        if len(self.fragments) == 1 and self.fragments[0].deletion is None:
            return addresses & OFFSET_MASK
        ids, order = self._by_id
        which = order[np.searchsorted(ids, addresses >> OFFSET_BITS)]
        offsets = addresses & OFFSET_MASK
        for number in np.unique(which):
            live = self.live(self.fragments[number])
            if live is not None:
                mine = which == number
                offsets[mine] = live.numbers(offsets[mine])
        return self.starts[which] + offsets

    def start_of(self, fragment: Fragment) -> int:
        """The position of a fragment's first live row."""
        return int(self.starts[self._numbers[fragment.id]])

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {fragment.id: number for number, fragment in enumerate(self.fragments)}

    def owners(self, positions: Positions) -> list[Fragment]:
        """The fragments that have the rows at these positions."""
        which = np.searchsorted(self.starts, positions, side="right") - 1
        return [self.fragments[number] for number in np.unique(which).tolist()]

    def addresses_at(self, positions: Positions) -> Addresses:
        """Addresses of live rows by their positions."""
        which = np.searchsorted(self.starts, positions, side="right") - 1
        offsets = positions - self.starts[which]
        for number in np.unique(which):
            live = self.live(self.fragments[number])
            if live is not None:
                mine = which == number
                offsets[mine] = live.offsets_at(offsets[mine])
        ids = np.fromiter((f.id for f in self.fragments), np.int64, count=len(self.fragments))
        return (ids[which] << OFFSET_BITS) | offsets

    def shown(self, addresses: Addresses) -> Addresses:
        """Those of some rows of its fragments that are not gone."""
        left = np.ones(len(addresses), np.bool_)
        owners = addresses >> OFFSET_BITS
        ids, order = self._by_id
        for number in order[np.searchsorted(ids, np.unique(owners))].tolist():
            fragment = self.fragments[number]
            live = self.live(fragment)
            if live is not None:
                mine = owners == fragment.id
                left[mine] = ~np.isin(addresses[mine] & OFFSET_MASK, live.gone)
        return addresses[left]

    def live_without(self, removed: Positions) -> dict[int, LiveRows]:
        """Live rows of the fragments that lose some, by id, when these positions are gone."""
        addresses = self.addresses_at(removed)
        owners = addresses >> OFFSET_BITS
        live: dict[int, LiveRows] = {}
        for number in np.unique(np.searchsorted(self.starts, removed, side="right") - 1):
            fragment = self.fragments[number]
            gone = addresses[owners == fragment.id] & OFFSET_MASK
            known = self.live(fragment)
            none = np.empty(0, np.int64)
            before = LiveRows(fragment.physical_rows, gone=none) if known is None else known
            live[fragment.id] = before.without(gone)
        return live

    def addresses(self, fragment: Fragment) -> Addresses:
        """Addresses of a fragment's live rows, in storage order."""
        live = self.offsets(fragment)
        offsets = np.arange(fragment.physical_rows, dtype=np.int64) if live is None else live
        return (np.int64(fragment.id) << OFFSET_BITS) | offsets

    def all_addresses(self) -> Addresses:
        """Addresses of all live rows, in storage order."""
        if not self.fragments:
            return np.empty(0, np.int64)
        return np.concatenate([self.addresses(f) for f in self.fragments])


# -- physical --------------------------------------------------------------------------------------
# How rows lie in Lance: what a logical schema becomes in a file.
#
# Knows the file format, the annotation of keys and the form of blobs, and nothing else.


FILE_FORMAT = "2.2"
PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}


def physical_schema(schema: pa.Schema) -> pa.Schema:
    """A logical table schema as Lance stores it: key annotated, blobs as blob columns."""
    fields = []
    for field in schema:
        if field.name == "id":
            field = field.with_metadata(PRIMARY_KEY)
        elif field.type == pa.large_binary():
            field = lance.blob_field(field.name, nullable=field.nullable)
        fields.append(field)
    return pa.schema(fields)


def physical_table(rows: pa.Table) -> pa.Table:
    """Rows in the physical schema. Only blob columns are converted."""
    schema = physical_schema(rows.schema)
    columns = [
        lance.blob_array(column.to_pylist()) if column.type == pa.large_binary() else column
        for column in rows.columns
    ]
    return pa.table(columns, schema=schema)


# -- files -----------------------------------------------------------------------------------------
# The files of one version of a table, as its manifest names them.


def file_names(path: str, fragments: Iterable[Any]) -> list[str]:
    """The data files of these fragments, from the root."""
    return [f"{path}/data/{path_of(file)}" for fragment in fragments for file in fragment.files]


def data_files(path: str, dataset: LanceDataset) -> Iterator[str]:
    """Data and deletion files, from the root. A data file stands for its blobs, too."""
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        yield from file_names(path, [metadata])
        if metadata.deletion_file is not None:
            yield f"{path}/{metadata.deletion_file.path(metadata.id)}"


def index_folders(path: str, dataset: LanceDataset) -> Iterator[str]:
    """The folder of every part of an index, from the root."""
    for index in dataset.describe_indices():
        for segment in index.segments:
            yield f"{path}/_indices/{segment.uuid}"
