"""Files to load, on a disk or in a bucket: found, recognised, read in ranges.

    path | folder | pattern -> [inputs] -> InputFile (a value) -> InputReader in any process

A file is found once, by the process that plans; others read it later, and maybe again. So a file
carries what shows whether it is still the same one (size, and ETag or time of change), and a reader
refuses one that is not. Nothing here knows what the bytes mean.
"""

from __future__ import annotations

import fnmatch
import io
import os
import re
import stat
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import unquote

import obstore
from obstore.exceptions import PreconditionError
from obstore.store import ObjectStore

from omnigraph.errors import ErrorKind, StorageError, UsageError
from omnigraph.storage.contact import asked, each
from omnigraph.storage.faults import is_missing, translated
from omnigraph.storage.location import BUCKETS, SUPPORTED, Location, locate

_STREAM_BUFFER_BYTES = 4 << 20
_PATTERN = re.compile(r"[*?\[]")
_HIDDEN = ("_", ".")
"""How names of files begin that are beside data but hold none: markers, checksums."""


class UnreadableInput(Exception):
    """A file is not there, may not be read, or is no longer what it was."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.missing = missing


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """One file as it was when it was found."""

    name: str
    """As shown in messages: as it was given, or the given folder and what follows."""
    path: str
    """The absolute path, or the key in the bucket."""
    size: int
    stamp: str
    """Changes when the content does; empty when the store has none."""
    bucket: Location | None = None
    """None: a local file."""


def find_inputs(path: str, environ: Mapping[str, str] | None = None) -> list[InputFile]:
    """The files behind a path: the file itself, the files of a folder, or what a pattern matches.

    Found ones are ordered by name. Raises ``UnreadableInput`` if there is nothing.
    """
    if not path:
        raise UsageError("the file name is empty", hint="give the path of a file")
    if path.startswith(BUCKETS):
        return _in_bucket(path, environ)
    scheme, separator, rest = path.partition("://")
    if separator and scheme != "file":
        raise UsageError(
            f"cannot read from '{scheme}://' in {path}",
            hint=SUPPORTED,
        )
    return _on_disk(path, Path(unquote(rest.removeprefix("localhost")) if separator else path))


def is_plain(path: str) -> bool:
    """Whether a path is not that of a pipe or a device; what is not there is plain."""
    if "://" in path:
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return True  # Finding it reports what is wrong.
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


# -- finding -------------------------------------------------------------------------------------


def _on_disk(name: str, path: Path) -> list[InputFile]:
    with _as_unreadable():
        try:
            found = path.stat()
        except FileNotFoundError:
            return _matching(name, path)
        if stat.S_ISDIR(found.st_mode):
            below = [p for p in path.rglob("*") if not _is_hidden(p.relative_to(path).parts)]
            return _listed(name, path, below)
        return [_local(name, path, found)]


def _matching(name: str, path: Path) -> list[InputFile]:
    if not _PATTERN.search(str(path)):
        raise UnreadableInput("no such file", missing=True)
    parts = path.parts
    fixed = next(i for i, part in enumerate(parts) if _PATTERN.search(part))
    root = Path(*parts[:fixed])
    return _listed(name, root, root.glob(str(Path(*parts[fixed:]))), shown=Path(name))


def _listed(
    name: str, root: Path, paths: Iterator[Path] | list[Path], shown: Path | None = None
) -> list[InputFile]:
    files = [
        _local(str(p) if shown else f"{name.rstrip('/')}/{p.relative_to(root)}", p, p.stat())
        for p in sorted(paths)
        if p.is_file()
    ]
    if not files:
        what = "no file matches" if shown else "the folder holds no files"
        raise UnreadableInput(what, missing=True)
    return files


def _local(name: str, path: Path, found: os.stat_result) -> InputFile:
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableInput("not a plain file: it cannot be read by several processes")
    return InputFile(
        name=name, path=str(path.absolute()), size=found.st_size, stamp=str(found.st_mtime_ns)
    )


def _is_hidden(parts: tuple[str, ...]) -> bool:
    return any(part.startswith(_HIDDEN) for part in parts)


def _in_bucket(uri: str, environ: Mapping[str, str] | None) -> list[InputFile]:
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    location = locate(f"{scheme}://{bucket}", environ)
    with _as_unreadable(), translated(f"looking for {uri}"):
        store = location.connect()
        if key and not key.endswith("/"):
            try:
                head = asked(location, lambda: obstore.head(store, key))
                return [_object(uri, head["path"], head["size"], head["e_tag"], location)]
            except FileNotFoundError:
                pass
        pattern = _PATTERN.search(key)
        folder = key.rstrip("/") + "/" if key else ""
        root = key[: pattern.start()].rpartition("/")[0] if pattern else folder
        files = [
            _object(f"{scheme}://{bucket}/{e['path']}", e["path"], e["size"], e["e_tag"], location)
            for batch in each(location, obstore.list(store, root or None))
            for e in batch
            if (
                _matches(e["path"], key)
                if pattern
                else not _is_hidden(tuple(e["path"].removeprefix(folder).split("/")))
            )
        ]
    if not files:
        raise UnreadableInput("no file matches" if pattern else "no such file", missing=True)
    return sorted(files, key=lambda f: f.path)


def _matches(path: str, pattern: str) -> bool:
    """Part by part, so that a star stays within its folder as it does on a disk."""
    names, wanted = path.split("/"), pattern.split("/")
    return len(names) == len(wanted) and all(map(fnmatch.fnmatchcase, names, wanted))


def _object(name: str, key: str, size: int, etag: str | None, location: Location) -> InputFile:
    return InputFile(name=name, path=key, size=size, stamp=_quoted(etag), bucket=location)


def _quoted(etag: str | None) -> str:
    """Azure lists them without the quotes that it asks for and answers with."""
    return f'"{etag}"' if etag and not etag.endswith('"') else etag or ""


# -- reading -------------------------------------------------------------------------------------


class InputReader:
    """Reads ranges of one file, and refuses to when it is no longer the file that was found."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self._descriptor: int | None = None
        self.done = 0
        """How far a stream of it was read."""
        with _as_unreadable(), translated(f"opening {file.name}"):
            self._store = _store_of(file.bucket) if file.bucket is not None else None
            if file.bucket is None:
                self._descriptor = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        self.verify()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def verify(self) -> None:
        """Raise if the file has changed; an object of a bucket is compared by every read."""
        if self._descriptor is None:
            return
        now = os.fstat(self._descriptor)
        if (now.st_size, str(now.st_mtime_ns)) != (self._file.size, self._file.stamp):
            raise _changed(self._file.size, now.st_size)

    def read_at(self, offset: int, size: int) -> bytes:
        """Exactly these bytes, or fewer where the file ends."""
        size = min(size, self._file.size - offset)
        if size <= 0:
            return b""
        with _as_unreadable(), translated(f"reading {self._file.name}"):
            if self._store is not None:
                return self._get(offset, size)
            return self._pread(offset, size)

    def head(self, size: int) -> bytes:
        """The first bytes."""
        return self.read_at(0, size)

    def seekable(self) -> io.BufferedReader:
        """The same as ``stream``."""
        return self.stream()

    def stream(self) -> io.BufferedReader:
        """The whole file as a stream that can seek."""
        return io.BufferedReader(_Stream(self, self._file.size), _STREAM_BUFFER_BYTES)

    def _pread(self, offset: int, size: int) -> bytes:
        if self._descriptor is None:
            raise ValueError("the reader is closed")
        pieces: list[bytes] = []
        while size:
            piece = os.pread(self._descriptor, size, offset)
            if not piece:
                raise _changed(self._file.size, offset)
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _get(self, offset: int, size: int) -> bytes:
        stamp = self._file.stamp or None
        try:
            answer = obstore.get(
                self._store,  # pyright: ignore[reportArgumentType]
                self._file.path,
                options={"range": (offset, offset + size), "if_match": stamp},
            )
        except PreconditionError:
            raise _changed(self._file.size, None) from None
        # Not every server looks at the condition.
        if answer.meta["size"] != self._file.size or (
            stamp and _quoted(answer.meta["e_tag"]) != stamp
        ):
            raise _changed(self._file.size, answer.meta["size"])
        content = bytes(answer.bytes())
        if len(content) != size:
            raise _changed(self._file.size, offset + len(content))
        return content


_stores: dict[tuple[object, ...], ObjectStore] = {}


def _store_of(bucket: Location) -> ObjectStore:
    """One store per bucket and process: it keeps its connections."""
    key = bucket.identity
    if key not in _stores:
        _stores[key] = bucket.connect()
    return _stores[key]


class _Stream(io.RawIOBase):
    """The bytes of a reader behind each other."""

    def __init__(self, reader: InputReader, size: int) -> None:
        self._reader = reader
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        content = self._reader.read_at(self._at, len(buffer))
        buffer[: len(content)] = content
        self._at += len(content)
        self._reader.done = self._at
        return len(content)


def _changed(size: int, now: int | None) -> UnreadableInput:
    sizes = "" if now in (None, size) else f" (it had {size} bytes, now it has {now})"
    return UnreadableInput(f"the file changed while it was being loaded{sizes}")


@contextmanager
def _as_unreadable() -> Generator[None]:
    """Failures that are the file's own become ``UnreadableInput``; those of the store stay."""
    try:
        yield
    except StorageError as error:
        cause = error.__cause__
        if isinstance(cause, UnreadableInput):
            raise cause from None
        if cause is not None and is_missing(cause):
            raise UnreadableInput("no such file", missing=True) from error
        if isinstance(cause, OSError) and cause.errno is not None:
            raise UnreadableInput(f"cannot be read: {cause.strerror or cause}") from error
        if error.kind in (ErrorKind.STORAGE_DENIED, ErrorKind.STORAGE_NOT_FOUND):
            raise UnreadableInput(f"cannot be read: {error.message}") from error
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise UnreadableInput("no such file", missing=True) from error
        raise UnreadableInput(f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:  # the name holds a character that no file name can
        raise UnreadableInput(f"cannot be read: {error}") from error
