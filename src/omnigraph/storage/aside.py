"""Versions made beside a remote store: Lance commits in a folder, and all files are sent at once.

    manifest of a version -> [aside: commit in a folder] -> new files, next manifest -> store

A commit of Lance's on a remote store is a row of requests that wait for each other. A manifest,
though, names its files below wherever it lies: one that was made here is good there. So what is
small is made in a temporary folder, and all of it goes to the store side by side.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from functools import partial
from pathlib import Path
from typing import Any

from lance import LanceDataset

from omnigraph.errors import InternalError
from omnigraph.storage.names import manifest_name
from omnigraph.storage.namespace import own_session


class Aside:
    """A version of a dataset as far as a commit looks at it, and what commits add to it."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="omnigraph-aside-"))
        weakref.finalize(self, partial(shutil.rmtree, self._root, ignore_errors=True))
        self._known: set[str] = set()

    @property
    def uri(self) -> str:
        """Where it lies."""
        return str(self._root)

    def open(self, version: int, manifest: bytes) -> LanceDataset:
        """The version that has this manifest, to commit on."""
        self.place(manifest_name(".", version), manifest)
        # A session of its own: no other lineage is ever seen in it (docs/adr/0020).
        return LanceDataset(self.uri, version, session=own_session())

    def place(self, name: str, content: bytes) -> None:
        """Put a file of the version where a commit will look for it."""
        path = self._root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        self._known.add(path.relative_to(self._root).as_posix())

    def begin(self, operation: Any) -> LanceDataset:
        """The first version of a table."""
        return LanceDataset.commit(
            self.uri, operation, read_version=0, max_retries=0, enable_stable_row_ids=True
        )

    def commit(self, base: LanceDataset, operation: Any) -> LanceDataset:
        """The version after ``base``."""
        made = LanceDataset.commit(base, operation, read_version=base.version, max_retries=0)
        if made.version != base.version + 1:
            raise InternalError(f"version {made.version} after {base.version}, made aside")
        return made

    def manifest(self, version: int) -> bytes:
        """The manifest of a version."""
        return (self._root / manifest_name(".", version)).read_bytes()

    def take(self, *folders: str) -> dict[str, bytes]:
        """Files that were made in these folders since the last time, by name."""
        made = {
            path.relative_to(self._root).as_posix(): path
            for folder in folders
            for path in (self._root / folder).rglob("*")
            if path.is_file()
        }
        fresh = {name: made[name].read_bytes() for name in made.keys() - self._known}
        self._known |= fresh.keys()
        return fresh
