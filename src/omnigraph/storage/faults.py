"""Foreign exceptions become ours here and nowhere else.

Lance reports most failures as ``OSError`` or ``ValueError`` with a text, obstore as a small class
tree, and a Rust panic arrives as a ``BaseException`` that ``except Exception`` misses. Every call
into either library runs inside ``translated``, so nothing untyped leaves ``storage/``.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import (
    CorruptionError,
    ErrorKind,
    InternalError,
    OmnigraphError,
    StorageError,
)

_RULES: tuple[tuple[ErrorKind, str, str], ...] = (
    (
        ErrorKind.STORAGE_FULL,
        r"no space left|os error 28|disk quota|StorageFull|file too large|os error 27",
        "free space on the device, then repeat the command: nothing was published",
    ),
    (
        ErrorKind.STORAGE_NOT_FOUND,
        r"NoSuchBucket|bucket does not exist|The specified bucket",
        "check the bucket's name and AWS_ENDPOINT_URL_S3",
    ),
    (
        ErrorKind.STORAGE_DENIED,
        r"\b40[13]\b|forbidden|AccessDenied|access denied|InvalidAccessKeyId|SignatureDoesNotMatch"
        r"|permission denied|PermissionDenied|Unauthenticated|ExpiredToken|os error 13"
        r"|read-only file system|os error 30",
        "check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) or the file permissions",
    ),
    (
        ErrorKind.STORAGE_CONFIGURATION,
        r"credential|169\.254\.169\.254|unknown configuration|invalid url|relative URL"
        r"|not a directory|os error 20|is not a directory",
        "check the URI and the AWS_* variables",
    ),
    (
        ErrorKind.STORAGE_TRANSIENT,
        r"connection refused|connection reset|connection closed|error sending request|timed? ?out"
        r"|dns error|\b5\d\d\b.*(server|internal|unavailable|gateway|slow)|SlowDown"
        r"|after \d+ retries|broken pipe|incomplete message",
        "the store did not answer: check the endpoint and the network, then repeat the command",
    ),
)
_MISSING = re.compile(r"not found|no such file|NotFound|NoSuchKey|os error 2\b|does not exist", re.I)
_SOURCE_PLACE = re.compile(r",?\s*(?:location:\s*)?(?:/\S+|rust/\S+)\.rs:\d+:\d+")


@contextmanager
def translated(doing: str, *, referenced: bool = False) -> Iterator[None]:
    """Raise our own error for anything that goes wrong inside.

    ``doing`` completes "while …". With ``referenced`` the objects read inside are named by a
    published snapshot: if one is missing or unreadable the graph is damaged.
    """
    try:
        yield
    except OmnigraphError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as e:
        raise translate(e, doing, referenced=referenced) from e


def translate(error: BaseException, doing: str, *, referenced: bool = False) -> OmnigraphError:
    """Our error for a foreign one."""
    if type(error).__name__ == "PanicException":
        return InternalError(
            f"the storage library failed while {doing}: {short(error)}",
            hint="please report this with the command that led to it",
        )
    if isinstance(error, (TypeError, AttributeError, KeyError, IndexError)):
        return InternalError(f"{type(error).__name__} while {doing}: {error}")
    text = str(error)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        text += " no space left"
    for kind, pattern, hint in _RULES:
        if re.search(pattern, text, re.I | re.S):
            return StorageError(f"{kind.replace('_', ' ')} while {doing}: {short(error)}",
                                kind=kind, hint=hint)  # fmt: skip
    if is_missing(error):
        if referenced:
            return CorruptionError(
                f"an object that the graph refers to is missing, while {doing}: {short(error)}",
                hint="restore it from a copy of the graph, or read an older commit",
            )
        return StorageError(
            f"not found while {doing}: {short(error)}", kind=ErrorKind.STORAGE_NOT_FOUND
        )
    if referenced:
        return CorruptionError(
            f"stored data is damaged, while {doing}: {short(error)}",
            hint="restore the object from a copy of the graph, or read an older commit",
        )
    return StorageError(f"storage failed while {doing}: {short(error)}")


def is_missing(error: BaseException) -> bool:
    """Whether a foreign error says that an object is not there."""
    return isinstance(error, FileNotFoundError) or bool(_MISSING.search(str(error)))


def short(error: BaseException, length_max: int = 300) -> str:
    """A foreign message on one line, without source places of the library's own code."""
    text = " ".join(_SOURCE_PLACE.sub("", str(error)).split())
    return text if len(text) <= length_max else text[: length_max - 1] + "…"
