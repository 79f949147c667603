"""Exit codes: one table from what went wrong to what the shell sees."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from omnigraph.errors import ErrorKind

OK: Final = 0
FAILURE: Final = 1
USAGE: Final = 2
PRECONDITION: Final = 4
INTERRUPTED: Final = 130
"""128 + SIGINT, as a shell reports it."""
BROKEN_PIPE: Final = 141
"""128 + SIGPIPE: the reader of our output went away, which is its right."""

EXIT_CODES: Mapping[ErrorKind, int] = MappingProxyType(
    {
        ErrorKind.USAGE: USAGE,
        ErrorKind.SCHEMA: FAILURE,
        ErrorKind.QUERY: FAILURE,
        ErrorKind.PARAMETER: FAILURE,
        ErrorKind.INPUT: FAILURE,
        ErrorKind.CONSTRAINT: FAILURE,
        ErrorKind.KEY_CONFLICT: FAILURE,
        ErrorKind.MIGRATION: FAILURE,
        ErrorKind.READ_SET_CONFLICT: FAILURE,
        ErrorKind.VERSION_MISMATCH: FAILURE,
        ErrorKind.PRECONDITION_FAILED: PRECONDITION,
        ErrorKind.CONTENTION: FAILURE,
        ErrorKind.REVOKED: FAILURE,
        ErrorKind.MERGE_CONFLICT: FAILURE,
        ErrorKind.NOT_A_GRAPH: FAILURE,
        ErrorKind.BRANCH_NOT_FOUND: FAILURE,
        ErrorKind.COMMIT_NOT_FOUND: FAILURE,
        ErrorKind.TAG_NOT_FOUND: FAILURE,
        ErrorKind.HISTORY_RECLAIMED: FAILURE,
        ErrorKind.TYPE_NOT_FOUND: FAILURE,
        ErrorKind.OPERATION_NOT_FOUND: FAILURE,
        ErrorKind.FILE_NOT_FOUND: FAILURE,
        ErrorKind.ALREADY_INITIALIZED: FAILURE,
        ErrorKind.BRANCH_EXISTS: FAILURE,
        ErrorKind.TAG_EXISTS: FAILURE,
        ErrorKind.CURSOR_REJECTED: FAILURE,
        ErrorKind.FEED_GAP: FAILURE,
        ErrorKind.PARENTLESS_COMMIT: FAILURE,
        ErrorKind.LIMIT: FAILURE,
        ErrorKind.STORAGE_TRANSIENT: FAILURE,
        ErrorKind.STORAGE_CONFIGURATION: FAILURE,
        ErrorKind.STORAGE_DENIED: FAILURE,
        ErrorKind.STORAGE_NOT_FOUND: FAILURE,
        ErrorKind.STORAGE_FULL: FAILURE,
        ErrorKind.STORAGE_UNKNOWN: FAILURE,
        ErrorKind.COMMIT_UNKNOWN: FAILURE,
        ErrorKind.FORMAT_NEWER: FAILURE,
        ErrorKind.FORMAT_OLDER: FAILURE,
        ErrorKind.CORRUPTION: FAILURE,
        ErrorKind.INTERNAL: FAILURE,
    }
)

MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        OK: "done",
        FAILURE: "it failed; nothing was published unless the message says otherwise",
        USAGE: "the command line is wrong: an option, an argument, a combination",
        PRECONDITION: "a precondition that the caller stated does not hold",
        INTERRUPTED: "interrupted (Ctrl-C)",
        BROKEN_PIPE: "the program that read the output stopped reading",
    }
)
