"""Foreign exceptions become ours here and nowhere else.

Lance reports most failures as ``OSError`` or ``ValueError`` with a text, obstore as a small class
tree, and a Rust panic arrives as a ``BaseException`` that ``except Exception`` misses. Every call
into either library runs inside ``translated``, so nothing untyped leaves ``storage/``.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph.errors import (
    CorruptionError,
    ErrorKind,
    InternalError,
    OmnigraphError,
    StorageError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _FaultRule:
    """How a family of foreign messages reads in our words. The first rule that fits wins."""

    kind: ErrorKind
    pattern: str
    says: str
    hint: str
    after_missing: bool = False
    """Weaker than the plain statement that an object is not there."""


_NO_BUCKET = r"NoSuchBucket|bucket does not exist|The specified bucket"
_RULES = (
    _FaultRule(
        kind=ErrorKind.STORAGE_FULL,
        pattern=r"no space left|os error 28|disk quota|StorageFull|file too large|os error 27",
        says="no space left",
        hint="free space on the device, then repeat the command",
    ),
    _FaultRule(
        kind=ErrorKind.STORAGE_NOT_FOUND,
        pattern=_NO_BUCKET,
        says="no such bucket",
        hint="check the bucket's name and AWS_ENDPOINT_URL_S3",
    ),
    _FaultRule(
        kind=ErrorKind.STORAGE_CONFIGURATION,
        # The address is where cloud machines keep credentials: asked only when none were given.
        pattern=r"169\.254\.169\.254|169\.254\.170\.2|no.{0,20}credential|CredentialsNotLoaded",
        says="no credentials",
        hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or pip install 'omnigraph[aws]' "
        "for profiles and SSO",
    ),
    _FaultRule(
        kind=ErrorKind.STORAGE_CONFIGURATION,
        pattern=r"service account file|Missing component in SAS|Account must be specified",
        says="no usable credentials",
        hint="check the GOOGLE_* or AZURE_* variables",
    ),
    _FaultRule(
        kind=ErrorKind.STORAGE_DENIED,
        pattern=r"os error 13\b|os error 30\b|os error 1\b|errno 13\b|errno 30\b|errno 1\b"
        r"|read-only file system",
        says="access denied",
        hint="check who owns the folder, its permissions, and whether its disk can be written to",
    ),
    _FaultRule(
        kind=ErrorKind.STORAGE_DENIED,
        pattern=r"code: 40[13]\b|40[13] (?:forbidden|unauthorized)|AccessDenied|access denied"
        r"|lacked the necessary privileges|InvalidAccessKeyId"
        r"|SignatureDoesNotMatch|permission denied|PermissionDenied|Unauthenticated|ExpiredToken",
        says="access denied",
        hint="check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) "
        "or the permissions of the folder",
    ),
    _FaultRule(
        kind=ErrorKind.STORAGE_CONFIGURATION,
        pattern=r"unknown configuration|invalid url|relative URL|not a directory|os error 20\b",
        says="not a usable place",
        hint="check the URI and the AWS_* variables",
        after_missing=True,
    ),
    _FaultRule(
        kind=ErrorKind.STORAGE_TRANSIENT,
        pattern=r"connection refused|connection reset|connection closed|error sending request"
        r"|\btimed out\b|\btimeout\b|dns error|code: 50\d\b|SlowDown|after \d+ retries|broken pipe"
        r"|incomplete message",
        says="the store does not answer",
        hint="check AWS_ENDPOINT_URL_S3 and the network, then repeat the command",
        after_missing=True,
    ),
)
_CODE = re.compile(r"<Code>(\w+)</Code>")
_MISSING = re.compile(
    r"not found|no such file|NotFound|NoSuchKey|os error 2\b|does not exist", re.I
)
_TRIED = re.compile(r"(https?://[^/\s]+)\S* in ([\d.]+)(m?s)\S*, after (\d+) retries")
_SOURCE_PLACE = re.compile(r",?\s*(?:location:\s*)?(?:/\S+|rust/\S+)\.rs:\d+:\d+")


@contextmanager
def translated(doing: str, *, referenced: bool = False) -> Generator[None]:
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
    if type(error).__name__ == "PanicException" and not referenced:
        return InternalError(
            f"the storage library failed while {doing}: {short(error)}",
            hint="please report this with the command that led to it",
        )
    if isinstance(error, (TypeError, AttributeError, LookupError)):
        return InternalError(f"{type(error).__name__} while {doing}: {error}")
    code = _CODE.search(str(error))
    for rule in _RULES:
        if rule.after_missing and is_missing(error):
            return _missing(error, doing, referenced=referenced)
        if re.search(rule.pattern, _words(error), re.I | re.S):
            why = f"{rule.says} ({code[1]})" if code else rule.says
            if rule.kind is ErrorKind.STORAGE_TRANSIENT:
                why += _tried(error)
            return StorageError(
                f"{why}, while {doing}",
                kind=rule.kind,
                hint=rule.hint,
                details={"cause": short(error)},
            )
    if referenced:
        return CorruptionError(
            f"stored data is damaged, while {doing}: {short(error)}",
            hint="restore the object from a copy of the graph",
        )
    return StorageError(f"storage failed while {doing}: {short(error)}")


def _tried(error: BaseException) -> str:
    """Who was asked, how often and for how long, as far as a foreign message says so."""
    found = _TRIED.search(str(error))
    if found is None:
        return ""
    address, number, unit, retries = found.groups()
    seconds = float(number) / (1000 if unit == "ms" else 1)
    return f": {address} was asked {int(retries) + 1} times in {seconds:.1f} s"


def is_missing(error: BaseException) -> bool:
    """Whether a foreign error says that an object (not a whole bucket) is not there."""
    words = _words(error)
    if re.search(_NO_BUCKET, words, re.I):
        return False
    return isinstance(error, FileNotFoundError) or bool(_MISSING.search(words))


def _missing(error: BaseException, doing: str, *, referenced: bool) -> OmnigraphError:
    if referenced:
        return CorruptionError(
            f"an object that the graph refers to is missing, while {doing}: {short(error)}",
            hint="restore it from a copy of the graph",
        )
    return StorageError(
        f"not found while {doing}: {short(error)}", kind=ErrorKind.STORAGE_NOT_FOUND
    )


def _words(error: BaseException) -> str:
    """A foreign message without paths and addresses: a folder may be called ``run-403``."""
    text = str(error)
    code = _CODE.search(text)
    kept = re.sub(r"\S*/\S*", " ", text)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        kept += " no space left"
    # The address where cloud machines keep credentials says which credentials were missing.
    kept += " 169.254.169.254" if "//169.254." in text else ""
    return f"{kept} {code[1]}" if code else kept


def short(error: BaseException, length_max: int = 300) -> str:
    """A foreign message on one line, without source places of the library's own code."""
    text = " ".join(_SOURCE_PLACE.sub("", str(error)).split())
    return text if len(text) <= length_max else text[: length_max - 1] + "…"
