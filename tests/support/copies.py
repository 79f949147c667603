"""Graphs that are made on the local disk and copied to a bucket: a graph may be moved as it is.
Mirrors for other programs are left behind, because they refer to where they were made.

Making one on S3 costs ten times as much, and is only worth it where that is what is tested.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
from obstore.store import S3Store

AT_A_TIME = 8


def upload(folder: Path, root: str) -> None:
    """Put every file of a folder at the same place below ``root``, an ``s3://`` address."""
    store = S3Store.from_url(root)

    def kept(file: Path) -> bool:
        return file.relative_to(folder).parts[0] != "tables"

    def put(file: Path) -> None:
        obstore.put(store, file.relative_to(folder).as_posix(), file.read_bytes())

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(put, (file for file in folder.rglob("*") if file.is_file() and kept(file))))
