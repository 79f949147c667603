"""A dataset that only grows: rows that are added and read whole.

For what is told beside the graph: audits and the history. Nothing of the graph depends on it, so an
ordinary Lance dataset is enough. Each row is there once: of two that add at the same moment, the
one that comes second looks again.
"""

from __future__ import annotations

from collections.abc import Callable

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from omnigraph.storage.faults import is_missing, translated
from omnigraph.storage.location import Location

_RACES_MAX = 8
_FILES_MAX = 64
"""More files than these are made one."""


def read_records(location: Location, path: str) -> pa.Table | None:
    """All rows; None while there is no dataset."""
    with translated(f"reading {path}"):
        found = _opened(location, path)
        return found.to_table() if found is not None else None


def add_missing(
    location: Location, path: str, key: str, missing: Callable[[frozenset[str]], pa.Table]
) -> int:
    """Add the rows that ``missing`` makes of the keys that are there; how many those were.

    However many do this at once, a row is there once: a commit replaces the version whose keys were
    read, which Lance never rebases, and lists its files again.
    """
    options = dict(location.options) or None
    uri = location.table_uri(path)
    with translated(f"adding to {path}"):
        for _ in range(_RACES_MAX):
            current = _opened(location, path)
            there = current.to_table(columns=[key])[key].to_pylist() if current is not None else []
            rows = missing(frozenset(there))
            if not rows.num_rows:
                return 0
            kept = [part.metadata for part in current.get_fragments()] if current else []
            fresh = rows
            if current is not None and len(kept) >= _FILES_MAX:
                fresh, kept = pa.concat_tables([current.to_table(), rows]), []
            made = write_fragments(
                fresh,
                current if current is not None else uri,
                mode="create" if current is None else "append",
                storage_options=options,
            )
            try:
                LanceDataset.commit(
                    current if current is not None else uri,
                    LanceOperation.Overwrite(rows.schema, [*kept, *made]),
                    read_version=current.version if current is not None else 0,
                    max_retries=0,
                    storage_options=options,
                )
            except CommitConflictError:
                continue
            except OSError as e:
                if current is None and (is_missing(e) or "already exists" in str(e)):
                    continue
                raise
            return rows.num_rows
        return 0


def _opened(location: Location, path: str) -> LanceDataset | None:
    try:
        return lance.dataset(
            location.table_uri(path), storage_options=dict(location.options) or None
        )
    except (OSError, ValueError) as e:
        if is_missing(e):
            return None
        raise
