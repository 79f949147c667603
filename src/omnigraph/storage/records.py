"""A dataset that only grows: rows that are added and read whole.

For what is recorded beside the graph: audits and the history. Nothing of the graph depends on it,
so an ordinary Lance dataset is enough. Each row is there once: of two writers that add at the same
moment, the second looks again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from omnigraph.storage.faults import is_missing, translated
from omnigraph.storage.location import Location
from omnigraph.storage.namespace import access, open_dataset
from omnigraph.storage.objects import Objects

_RACES_MAX = 8
_FILES_MAX = 32
"""More files than these are made one, and what earlier versions needed is deleted."""


def read_records(location: Location, path: str) -> pa.Table | None:
    """All rows; None while there is no dataset."""
    with translated(f"reading {path}"):
        found = open_newest(location, path)
        return found.to_table() if found is not None else None


@dataclass(frozen=True, kw_only=True)
class Records:
    """What is there before rows are added."""

    dataset: LanceDataset | None

    def values(self, column: str) -> frozenset[str]:
        """All values of one column, which is read for that."""
        if self.dataset is None:
            return frozenset()
        return frozenset(self.dataset.to_table(columns=[column])[column].to_pylist())

    @property
    def notes(self) -> dict[str, str]:
        """What the rows of the last time carried as metadata of their schema."""
        found = self.dataset.schema.metadata if self.dataset is not None else None
        return {key.decode(): value.decode() for key, value in (found or {}).items()}


def add_missing(location: Location, path: str, missing: Callable[[Records], pa.Table]) -> int:
    """Add the rows that ``missing`` makes of what is there; how many those were.

    However many do this at once, a row is there once: a commit replaces the version that was looked
    at, which Lance never rebases, and lists its files again.
    """
    uri = location.table_uri(path)
    with translated(f"adding to {path}"):
        for _ in range(_RACES_MAX):
            current = open_newest(location, path)
            rows = missing(Records(dataset=current))
            if not rows.num_rows:
                return 0
            kept = [part.metadata for part in current.get_fragments()] if current else []
            fresh, old = rows, list[str]()
            if current is not None and len(kept) >= _FILES_MAX:
                fresh, kept = pa.concat_tables([current.to_table(), rows]), []
                # Listed before the commit: a write that has files by now was not faster.
                old = list(Objects(location).names(path))
            try:
                made = write_fragments(
                    fresh.cast(rows.schema),
                    current if current is not None else uri,
                    mode="create" if current is None else "append",
                    **access(location, path),
                )
                LanceDataset.commit(
                    current if current is not None else uri,
                    LanceOperation.Overwrite(rows.schema, [*kept, *made]),
                    read_version=current.version if current is not None else 0,
                    max_retries=0,
                    **access(location, path),
                )
            except CommitConflictError:
                continue
            except OSError as e:
                if current is None and (is_missing(e) or "already exists" in str(e)):
                    continue
                raise
            Objects(location).delete([name for name in old if not name.endswith(".json")])
            return rows.num_rows
        return 0


def open_newest(location: Location, path: str) -> LanceDataset | None:
    """A dataset as any program opens it; None if there is none."""
    try:
        return open_dataset(location, path)
    except (OSError, ValueError) as e:
        if is_missing(e):
            return None
        raise
