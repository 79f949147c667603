"""Which files a version needs: what cleanup may not delete, and what a check looks for.

pins -> [reach] -> names of files
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from omnigraph.storage.faults import translated
from omnigraph.storage.layout import data_files, file_names, index_folders
from omnigraph.storage.strict import StrictVersion
from omnigraph.storage.tables import Table

_TRANSACTION_NAME = re.compile(r"(\d+)-[0-9a-f-]+\.txn")


def table_files(table: Table) -> Iterator[str]:
    """Files that a reader of this version needs, from the root: its manifest, data, deletions.

    A data file stands for its blobs too, which lie in a folder of its name; an index is named as
    the folder of its files, with a slash at the end.
    """
    path = table.name.path
    yield table.name.manifest
    with translated(f"looking at {path} version {table.name.version}", referenced=True):
        yield from data_files(path, table.dataset)
        for folder in index_folders(path, table.dataset):
            yield f"{folder}/"


def rows_files(path: str, stored: StrictVersion) -> list[str]:
    """The data files of one version of a strict dataset, from the root."""
    with translated(f"looking at {path} version {stored.version}", referenced=True):
        return file_names(path, [part.metadata for part in stored.handle.get_fragments()])


def transaction_base(name: str) -> int | None:
    """The version that a transaction file's commit was made on; None if the name does not say."""
    found = _TRANSACTION_NAME.fullmatch(name.rpartition("/")[2])
    return int(found[1]) if found is not None else None
