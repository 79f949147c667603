"""Arrays in files that are mapped into memory: a cache on disk that may vanish at any time.

    vertices, edges -> [array files] -> a folder of the user, shared by all processes

A file holds some arrays and, at its end, what they are and their checksums. It is made under a
name of its own and renamed when it is complete, so a reader sees whole files only; on opening every
byte is checked, so a damaged one counts as absent. Nothing here raises because of the folder: a
full disk, a missing right or a foreign file make a query slower and never wrong.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MAGIC = b"omnigraph arrays 1\n"
SUFFIX = ".arrays"
ALIGNMENT = 64
BLOCK_WORDS = 1 << 15
"""Words of eight bytes that are added up to one number of a checksum."""
ABANDONED_S = 3_600
"""A file still unfinished after so long belongs to a process that died."""
TAIL_BYTES = 8 + 4 + len(MAGIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayFile:
    """Mapped arrays and what was written beside them."""

    meta: Mapping[str, Any]
    arrays: Mapping[str, Array]


class NewFile:
    """Arrays that are filled in place; a file of the cache once they are published."""

    def __init__(self, folder: Path, prefix: str, shapes: Mapping[str, tuple[Any, int]]) -> None:
        self._entries: dict[str, dict[str, Any]] = {}
        end = 0
        for name, (kind, count) in shapes.items():
            size = np.dtype(kind).itemsize * count
            self._entries[name] = {"kind": np.dtype(kind).str, "count": count, "at": end}
            end += -(-size // ALIGNMENT) * ALIGNMENT
        handle, scratch = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=".making")
        self._scratch = Path(scratch)
        try:
            _reserve(handle, end)
            self._map = mmap.mmap(handle, end) if end else None
        except BaseException:
            self.discard()
            raise
        finally:
            os.close(handle)
        self.arrays = {name: _mapped(self._map, e) for name, e in self._entries.items()}

    def publish(self, meta: Mapping[str, Any]) -> None:
        """Others may open the file from now on."""
        for name, entry in self._entries.items():
            entry["sum"] = _checksum(self.arrays[name])
        text = json.dumps({"meta": meta, "arrays": self._entries}).encode()
        tail = len(text).to_bytes(8, "little") + zlib.crc32(text).to_bytes(4, "little") + MAGIC
        try:
            # Not made anew if it is gone: it may have been taken for that of a dead process.
            with self._scratch.open("r+b") as file:
                file.seek(0, os.SEEK_END)
                file.write(text + tail)
            self._scratch.replace(self._scratch.with_suffix(SUFFIX))
        except OSError:
            self.discard()
        for array in self.arrays.values():
            array.flags.writeable = False

    def discard(self) -> None:
        """It was not completed."""
        with contextlib.suppress(OSError):
            self._scratch.unlink()


class ArrayFiles:
    """The files of one folder, the oldest of which give way to new ones."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        self._folder = folder
        self._bytes_max = bytes_max

    def newest(self, prefix: str) -> Iterator[str]:
        """Names of complete files, the newest first."""
        found = [(time_ns, name) for name, _, time_ns in self._listed() if name.startswith(prefix)]
        for _, name in sorted(found, reverse=True):
            if name.endswith(SUFFIX):
                yield name

    def open(self, name: str) -> ArrayFile | None:
        """A file whose every byte was checked; None if it is not there or damaged."""
        path = self._folder / name
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found = _read(path)
            with contextlib.suppress(OSError):
                os.utime(path)
            return found
        return None

    def create(self, prefix: str, shapes: Mapping[str, tuple[Any, int]]) -> NewFile | None:
        """Arrays to fill, for a file of a new name; None where none can be made."""
        size = sum(np.dtype(kind).itemsize * count for kind, count in shapes.values())
        if size > self._bytes_max:
            return None
        with contextlib.suppress(OSError, ValueError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room(size)
            return NewFile(self._folder, prefix, shapes)
        return None

    def drop(self, name: str) -> None:
        """The file is of no use any more. A process that has it mapped keeps it."""
        with contextlib.suppress(OSError):
            (self._folder / name).unlink()

    def _listed(self) -> list[tuple[str, int, int]]:
        found: list[tuple[str, int, int]] = []
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    stat = entry.stat()
                    found.append((entry.name, stat.st_size, stat.st_mtime_ns))
        return found

    def _make_room(self, size: int) -> None:
        files = sorted(self._listed(), key=lambda f: f[2])
        total = sum(f[1] for f in files)
        abandoned = time.time_ns() - ABANDONED_S * 10**9
        for name, own, time_ns in files:
            complete = name.endswith(SUFFIX)
            if (complete and total + size > self._bytes_max) or (
                not complete and time_ns < abandoned
            ):
                self.drop(name)
                total -= own


def _read(path: Path) -> ArrayFile:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(size - TAIL_BYTES)
        tail = file.read(TAIL_BYTES)
        length = int.from_bytes(tail[:8], "little")
        end = size - TAIL_BYTES - length
        if tail[12:] != MAGIC or end < 0:
            raise ValueError("no file of arrays")
        file.seek(end)
        text = file.read(length)
        if zlib.crc32(text) != int.from_bytes(tail[8:12], "little"):
            raise ValueError("a damaged description")
        described = json.loads(text)
        mapped = mmap.mmap(file.fileno(), end, access=mmap.ACCESS_READ) if end else None
    arrays: dict[str, Array] = {}
    for name, entry in described["arrays"].items():
        arrays[name] = _mapped(mapped, entry)
        if _checksum(arrays[name]) != entry["sum"]:
            raise ValueError("a damaged array")
    if mapped is not None:
        # Checking has touched every page; what is not needed again leaves this process's memory.
        mapped.madvise(mmap.MADV_DONTNEED)
    return ArrayFile(meta=described["meta"], arrays=arrays)


def _reserve(handle: int, size: int) -> None:
    """Find a place on disk for all of it: a mapped page without one would end the process."""
    if hasattr(os, "posix_fallocate"):
        if size:
            os.posix_fallocate(handle, 0, size)
        return
    zeros = bytes(1 << 20)
    for start in range(0, size, len(zeros)):
        os.write(handle, zeros[: size - start])


def _mapped(mapped: mmap.mmap | None, entry: Mapping[str, Any]) -> Array:
    kind = np.dtype(entry["kind"])
    if not entry["count"]:
        return np.empty(0, kind)
    if mapped is None:
        raise ValueError("no room for an array")
    return np.frombuffer(mapped, kind, entry["count"], entry["at"])


def _checksum(array: Array) -> int:
    """One number for the content: sums of blocks, and a checksum of these."""
    octets = array.view(np.uint8)
    whole = len(octets) // 8 * 8
    words = octets[:whole].view(np.uint64)
    blocks = len(words) // BLOCK_WORDS * BLOCK_WORDS
    sums = words[:blocks].reshape(-1, BLOCK_WORDS).sum(axis=1, dtype=np.uint64)
    rest = zlib.crc32(octets[blocks * 8 :].tobytes())
    return zlib.crc32(sums.tobytes(), rest)
