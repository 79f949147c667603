"""Files that the command line writes: there with all of their content, or not at all.

export, fmt -> [files] -> a file
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from omnigraph.cli.streams import Writer, cannot_write
from omnigraph.errors import UsageError


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO]:
    """A file that is there with all of its content, or not at all."""
    mode = _mode(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise UsageError(f"cannot write {path}: it is a directory")
    if mode is not None and not stat.S_ISREG(mode):
        # A device or a pipe must never be replaced by a file. Its name is opened as it is given:
        # a pipe such as /dev/fd/63 has none that it could be resolved to.
        with _opened(path, path) as stream:
            writer = Writer(stream, str(path))
            yield cast(BinaryIO, writer)
            writer.flush()
        return
    # A link keeps pointing where it pointed.
    place = path.resolve()
    written = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    with _opened(written, path) as stream:
        try:
            if mode is not None:
                with _failing_as(path):
                    os.fchmod(stream.fileno(), stat.S_IMODE(mode))
            writer = Writer(stream, str(path))
            yield cast(BinaryIO, writer)
            writer.flush()
            with _failing_as(path):
                os.fsync(stream.fileno())
                written.replace(place)
                _sync_folder(place.parent)
        except BaseException:
            written.unlink(missing_ok=True)
            raise


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a power cut, as the content behind it does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int | None:
    """Kind and permissions of what is there."""
    with _failing_as(path):
        try:
            return path.stat().st_mode
        except FileNotFoundError:
            return None


def _opened(written: Path, path: Path) -> BinaryIO:
    with _failing_as(path):
        return written.open("wb")


@contextmanager
def _failing_as(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as e:
        raise cannot_write(str(path), e) from e
