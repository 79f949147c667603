"""Files that are written for a caller, and how that can fail.

Imports nothing heavy.
"""

from __future__ import annotations

import errno

from omnigraph.errors import ErrorKind, StorageError, UsageError

_KINDS = {
    errno.ENOSPC: ErrorKind.STORAGE_FULL,
    errno.EDQUOT: ErrorKind.STORAGE_FULL,
    errno.EFBIG: ErrorKind.STORAGE_FULL,
    errno.EACCES: ErrorKind.STORAGE_DENIED,
    errno.EPERM: ErrorKind.STORAGE_DENIED,
    errno.EROFS: ErrorKind.STORAGE_DENIED,
    errno.ENOENT: ErrorKind.STORAGE_NOT_FOUND,
}
_HINTS = {
    ErrorKind.STORAGE_FULL: "make room, or name a place on another disk",
    ErrorKind.STORAGE_DENIED: "name a place that you may write to",
    ErrorKind.STORAGE_NOT_FOUND: "name a file in a folder that exists",
    ErrorKind.STORAGE_UNKNOWN: "name a file in a folder that can be written to",
}


def cannot_open(name: str, error: OSError) -> UsageError | StorageError:
    """What to raise when a place was named that cannot be written to."""
    failure = cannot_write(name, error)
    if failure.kind is ErrorKind.STORAGE_FULL:
        return failure
    return UsageError(failure.message, hint=failure.hint)


def cannot_write(name: str, error: OSError, *, chosen: bool = True) -> StorageError:
    """What to raise when writing ``name`` failed; a place that was ``chosen`` can be another."""
    kind = _KINDS.get(error.errno or 0, ErrorKind.STORAGE_UNKNOWN)
    message = f"cannot write {name}: {error.strerror or error}"
    return StorageError(message, kind=kind, hint=_HINTS[kind] if chosen else None)
