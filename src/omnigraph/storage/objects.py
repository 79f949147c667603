"""Control objects: small files beside the tables (schemas, intents, refs, hints).

One code path for a folder and a bucket. Names are relative to the graph's root. Creation is
conditional (`create`), which is what makes a name an authority among many processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock, get_ident
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import ObjectStore

from omnigraph.storage.contact import asked, each
from omnigraph.storage.faults import translated
from omnigraph.storage.location import Location

T = TypeVar("T")
THREADS = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object as a listing shows it."""

    name: str
    size: int
    modified_us: int
    """When it was last written, by the clock of the store."""


class Objects:
    """Reads and writes small objects below one root."""

    def __init__(self, location: Location, *, create: bool = False) -> None:
        self.location = location
        with translated(f"opening {location.uri}"):
            self._store: ObjectStore = location.connect(create=create)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="omnigraph-store")

    def beside(self, work: Callable[[], T]) -> Future[T]:
        """Do something that waits for the store while something else does. It must not wait for
        other work that was begun so."""
        try:
            return self._threads.submit(work)
        except RuntimeError:  # Closed: a state that a program still holds is read without threads.
            return done(work)

    def close(self) -> None:
        """Stop the threads."""
        self._threads.shutdown(wait=True)

    def get(self, name: str, *, referenced: bool = False) -> bytes | None:
        """The object's bytes, or None when there is none (an error if it is ``referenced``)."""
        with translated(f"reading {name} in {self.location.uri}", referenced=referenced):
            try:
                return asked(self.location, lambda: bytes(obstore.get(self._store, name).bytes()))
            except FileNotFoundError:
                if referenced:
                    raise
                return None

    def put(self, name: str, content: bytes) -> None:
        """Write or replace an object."""
        if (path := self._local(name)) is not None and _written(path, content):
            return
        with translated(f"writing {name} in {self.location.uri}"):
            obstore.put(self._store, name, content, use_multipart=False)

    def create(self, name: str, content: bytes) -> bool:
        """Write an object unless one is there; say whether it was written."""
        with translated(f"creating {name} in {self.location.uri}"):
            try:
                obstore.put(self._store, name, content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            return True

    def exists(self, name: str) -> bool:
        """Whether the object is there (one HEAD; on a folder one look at the file)."""
        path = self._local(name)
        if path is not None:
            # Every read asks this first. Whatever else can be wrong is reported by the store below.
            try:
                os.stat(path)  # noqa: PTH116 - a Path costs as much as the look
                return True
            except FileNotFoundError:
                return False
            except OSError:
                pass
        return self.entry(name) is not None

    def copy(self, source: str, target: str) -> None:
        """Copy inside the store; the bytes do not travel."""
        origin, path = self._local(source), self._local(target)
        if origin is not None and path is not None and _linked(origin, path):
            return
        with translated(f"copying {source} to {target}"):
            obstore.copy(self._store, source, target)

    def delete(self, names: Sequence[str]) -> None:
        """Remove objects, one request for all on S3; it is fine if some are gone already."""
        if self.location.local_path is not None:
            names = [n for n in names if (path := self._local(n)) and not _removed(path)]
        if not names:
            return
        with translated(f"deleting {', '.join(names)}"):
            try:
                obstore.delete(self._store, list(names))
            except FileNotFoundError:
                # On a folder the batch stops at the first missing name; the others still count.
                if len(names) > 1:
                    for name in names:
                        self.delete([name])

    def _local(self, name: str) -> str | None:
        root = self.location.local_path
        return f"{root}/{name}" if root is not None else None

    def names(self, prefix: str) -> Iterator[str]:
        """Names of all objects below a prefix."""
        return (entry.name for entry in self.entries(prefix))

    def entries(self, prefix: str) -> Iterator[StoredObject]:
        """All objects below a prefix with their sizes and times, as the store lists them."""
        with translated(f"listing {prefix}"):
            for batch in each(self.location, obstore.list(self._store, prefix)):
                for entry in batch:
                    yield _stored(entry["path"], entry["size"], entry["last_modified"])

    def entry(self, name: str) -> StoredObject | None:
        """One object's size and time; None when there is none."""
        with translated(f"looking for {name} in {self.location.uri}"):
            try:
                found = asked(self.location, lambda: obstore.head(self._store, name))
            except FileNotFoundError:
                return None
            return _stored(found["path"], found["size"], found["last_modified"])

    def folders(self, prefix: str) -> list[str]:
        """Names of the folders right below a prefix, sorted; what is in them is not listed."""
        with translated(f"listing {prefix}"):
            return sorted(obstore.list_with_delimiter(self._store, prefix)["common_prefixes"])


def done(function: Callable[..., T], *arguments: Any) -> Future[T]:
    """Done here and now, with the outcome kept as if a thread had done it."""
    task = Future[T]()
    try:
        task.set_result(function(*arguments))
    except Exception as e:
        task.set_exception(e)
    return task


def once(read: Callable[[], T]) -> Callable[[], T]:
    """A read that the first thread to ask does; other threads wait for it."""
    lock, found = Lock(), list[T]()

    def get() -> T:
        with lock:
            if not found:
                found.append(read())
            return found[0]

    return get


def _stored(name: str, size: int, modified: datetime) -> StoredObject:
    return StoredObject(
        name=name, size=size, modified_us=(modified - _EPOCH) // timedelta(microseconds=1)
    )


# -- on a disk -------------------------------------------------------------------------------------
# What every write does, by the system itself: a call of the store costs ten times as much. Each
# says whether it did it. Whatever stands in the way, a folder that is missing or a disk that is
# full, is left to the store, which overcomes it or says what it is.


def _written(path: str, content: bytes) -> bool:
    # As the store does it: under a name that listings leave out, until the content is there.
    draft = f"{path}#{os.getpid()}{get_ident()}"
    try:
        with open(draft, "xb") as file:  # noqa: PTH123 - a Path costs as much as the write
            file.write(content)
        os.replace(draft, path)  # noqa: PTH105
        return True
    except OSError:
        with suppress(OSError):
            os.unlink(draft)  # noqa: PTH108
        return False


def _linked(source: str, target: str) -> bool:
    try:
        os.link(source, target)
        return True
    except OSError:
        return False


def _removed(path: str) -> bool:
    try:
        os.unlink(path)  # noqa: PTH108
        return True
    except FileNotFoundError:
        return True
    except OSError:
        return False


# -- sync ------------------------------------------------------------------------------------------
# Force files to stable storage on a local disk (``durability="fsync"``).
#
# Lance and obstore write files without fsync: an acknowledged commit survives a crash of the
# process but not of the machine. Syncing needs the files and every folder on the way, because a new
# name in a folder is lost with the folder's own unsynced entry.


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
