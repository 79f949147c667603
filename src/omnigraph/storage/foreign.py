"""What another program did to the mirror of a table, by Lance's own record of it.

    mirror -> versions after our last -> [foreign] -> commits; rows before and after

Files that both sides share are not read: what differs is in the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lance import LanceDataset, LanceOperation

from omnigraph.storage.faults import translated
from omnigraph.storage.layout import path_of
from omnigraph.storage.location import Location
from omnigraph.storage.mirror import shown_by
from omnigraph.storage.names import TableVersion
from omnigraph.storage.namespace import open_dataset
from omnigraph.storage.records import open_newest

UNKNOWN = "unknown"
"""The operation of a version that left no record of what it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignCommit:
    """One version that another program made."""

    version: int
    operation: str
    """As Lance calls it: Append, Delete, Rewrite …"""
    maintenance: bool
    """Whether it certainly changed no row: files were joined, or numbers reserved for that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignHistory:
    """What another program did since our last version of a mirror."""

    shown: TableVersion
    """What that version of ours shows."""
    base: int
    head: int
    commits: tuple[ForeignCommit, ...]
    """Oldest first."""


def foreign_history(location: Location, path: str) -> ForeignHistory | None:
    """The newest versions of a mirror that are not ours; None if there is none of ours below."""
    with translated(f"reading the versions of {path}"):
        newest = open_newest(location, path)
        after, commits = newest, list[ForeignCommit]()
        while newest is not None and after is not None:
            shown = shown_by(after)
            if shown is not None:
                base = after.version
                commits.reverse()
                return ForeignHistory(
                    shown=shown, base=base, head=newest.version, commits=tuple(commits)
                )
            if after.version == 1:
                return None
            before = _at(location, path, after.version - 1)
            commits.append(_commit(before, after))
            after = before
        return None


def foreign_rows(
    location: Location, path: str, history: ForeignHistory
) -> tuple[pa.Table, pa.Table]:
    """Rows before and after, without those in files that both sides show. Blobs are bytes."""
    with translated(f"reading the versions {history.base} and {history.head} of {path}"):
        before, after = (_at(location, path, v) for v in (history.base, history.head))
        shared = _fragments(before).keys() & _fragments(after).keys()
        return _rows(before, shared), _rows(after, shared)


def _at(location: Location, path: str, version: int) -> LanceDataset:
    return open_dataset(location, path, version)


def _commit(before: LanceDataset, after: LanceDataset) -> ForeignCommit:
    transaction = after.read_transaction(after.version)
    operation: Any = transaction.operation if transaction is not None else None
    if isinstance(operation, LanceOperation.Rewrite):
        kind, harmless = "Rewrite", before.count_rows() == after.count_rows()
    elif operation is None:
        kind, harmless = UNKNOWN, False
    elif type(operation) is LanceOperation.BaseOperation:
        # Lance's Python has no name for it: reserving numbers for new files, before they are
        # joined, is one of these. What shows the same files and columns changed nothing.
        same = _shape(before) == _shape(after)
        kind, harmless = ("ReserveFragments", True) if same else (UNKNOWN, False)
    else:
        kind, harmless = type(operation).__name__, False
    return ForeignCommit(version=after.version, operation=kind, maintenance=harmless)


def _shape(dataset: LanceDataset) -> tuple[Any, ...]:
    """Everything that a reader of a version depends on."""
    indexes = sorted(s.uuid for index in dataset.describe_indices() for s in index.segments)
    return dataset.schema, dataset.config(), sorted(_fragments(dataset)), indexes


def _fragments(dataset: LanceDataset) -> dict[str, Any]:
    """The parts of a version, by which files they consist of."""
    found: dict[str, Any] = {}
    for fragment in dataset.get_fragments():
        metadata: Any = fragment.metadata
        files = [(file.base_id, path_of(file)) for file in metadata.files]
        gone = metadata.deletion_file
        marks = (gone.base_id, gone.path(metadata.id)) if gone is not None else None
        found[repr((sorted(files, key=str), marks))] = fragment
    return found


def _rows(dataset: LanceDataset, without: set[str]) -> pa.Table:
    chosen = [part for key, part in _fragments(dataset).items() if key not in without]
    if not chosen:
        return dataset.scanner(limit=0, blob_handling="all_binary").to_table()
    return dataset.scanner(fragments=chosen, blob_handling="all_binary").to_table()
