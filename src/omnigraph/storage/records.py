"""A dataset that only grows: rows that are added and read whole.

For audits beside the graph. Nothing of the graph depends on it, so an ordinary Lance dataset with
ordinary commits is enough; two that append at once both succeed.
"""

from __future__ import annotations

import lance
import pyarrow as pa

from omnigraph.storage.faults import is_missing, translated
from omnigraph.storage.location import Location


def append_records(location: Location, path: str, rows: pa.Table) -> None:
    """Add rows; the first ones make the dataset."""
    with translated(f"appending to {path}"):
        try:
            _write(location, path, rows, "append" if _is_there(location, path) else "create")
        except OSError as e:
            if "already exists" not in str(e):
                raise
            _write(location, path, rows, "append")


def read_records(location: Location, path: str) -> pa.Table | None:
    """All rows; None while there is no dataset."""
    with translated(f"reading {path}"):
        try:
            return lance.dataset(
                location.table_uri(path), storage_options=dict(location.options) or None
            ).to_table()
        except (OSError, ValueError) as e:
            if is_missing(e):
                return None
            raise


def _is_there(location: Location, path: str) -> bool:
    try:
        lance.dataset(location.table_uri(path), storage_options=dict(location.options) or None)
    except (OSError, ValueError) as e:
        if is_missing(e):
            return False
        raise
    return True


def _write(location: Location, path: str, rows: pa.Table, mode: str) -> None:
    lance.write_dataset(
        rows,
        location.table_uri(path),
        mode=mode,
        storage_options=dict(location.options) or None,
    )
