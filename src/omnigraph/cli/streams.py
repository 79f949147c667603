"""Writing to the standard streams, with the failures that can have.

    output, export -> [streams] -> stdout, stderr

A reader that goes away (`export | head`) stays a BrokenPipeError, which ends the program silently;
every other failure to write is told as a StorageError.
"""

from __future__ import annotations

import errno
import re
import sys
from contextlib import suppress
from typing import TextIO, cast

from omnigraph.errors import ErrorKind, StorageError

# Text from data, file names and commit messages reaches a terminal: control characters, direction
# overrides and halves of surrogate pairs are shown instead of sent.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with everything that could steer a terminal made visible."""
    return _UNSAFE.sub(lambda m: m[0].encode("unicode_escape").decode(), text)


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at this stream; a closed one is nobody's."""
    # The interpreter sets a standard stream to None when its descriptor is closed.
    found = cast("TextIO | None", stream)
    return found is not None and not found.closed and found.isatty()


def write_text(text: str) -> None:
    """Write to stdout and flush."""
    if cast("TextIO | None", sys.stdout) is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as e:
        raise cannot_write("the output", e) from e


def write_bytes(content: bytes) -> None:
    """Write to stdout as it is, whatever encoding the terminal has, and flush."""
    if cast("TextIO | None", sys.stdout) is None:
        return
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except OSError as e:
        raise cannot_write("the output", e) from e


def write_error(text: str) -> None:
    """Write to stderr; a failure there cannot be told to anybody."""
    if cast("TextIO | None", sys.stderr) is None:
        return
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def cannot_write(name: str, error: OSError) -> OSError | StorageError:
    """What to raise when writing ``name`` failed."""
    if isinstance(error, BrokenPipeError):
        return error
    kinds = {
        errno.ENOSPC: ErrorKind.STORAGE_FULL,
        errno.EDQUOT: ErrorKind.STORAGE_FULL,
        errno.EACCES: ErrorKind.STORAGE_DENIED,
        errno.EPERM: ErrorKind.STORAGE_DENIED,
        errno.EROFS: ErrorKind.STORAGE_DENIED,
        errno.ENOENT: ErrorKind.STORAGE_NOT_FOUND,
    }
    return StorageError(
        f"cannot write {name}: {error.strerror or error}",
        kind=kinds.get(error.errno or 0, ErrorKind.STORAGE_UNKNOWN),
    )
