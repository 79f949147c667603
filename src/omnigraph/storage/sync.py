"""Force files to stable storage on a local disk (``durability="fsync"``).

Lance and obstore write files without fsync: an acknowledged commit survives a crash of the process
but not of the machine. Syncing needs the files and every folder on the way, because a new name in a
folder is lost with the folder's own unsynced entry.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from omnigraph.storage.faults import translated


def sync_files(root: Path, names: Iterable[str]) -> None:
    """Sync files below a root, what belongs to them, and all folders up to the root."""
    folders: set[Path] = set()
    with translated("syncing files to disk"):
        for name in names:
            path = root / name
            # A data file may have companions of the same stem (blob side files).
            for file in _with_companions(path):
                _sync(file)
                folders.update(p for p in file.parents if p == root or root in p.parents)
        for folder in sorted(folders, key=lambda p: len(p.parts), reverse=True):
            _sync(folder)


def sync_root(root: Path) -> None:
    """Sync the folders that lead to a new root, so that the root's own name is not lost."""
    with translated("syncing folders to disk"):
        _sync(root.parent)
    for folder in list(root.parents)[1:]:
        with suppress(OSError):  # Older folders may belong to others.
            _sync(folder)


def _with_companions(path: Path) -> list[Path]:
    side = path.with_suffix("")
    more = [p for p in side.rglob("*") if p.is_file()] if side.is_dir() else []
    return [path, *more]


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
