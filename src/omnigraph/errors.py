"""Every error Omnigraph raises on purpose.

The classes answer one question, "what do I do now?":

    OmnigraphError
    ├── UsageError            call it differently (bad option, bad argument)
    ├── SchemaError           fix the .pg text (carries diagnostics)
    ├── QueryError            fix the .gq text (carries diagnostics)
    ├── ParameterError        call the query with other values: one is missing, unknown or wrong
    ├── InputError            fix the data: it cannot be read as this graph's data
    ├── ConstraintError       fix the data: it breaks a rule of the schema (carries violations)
    ├── MigrationError        change the schema in another way, or the rows that are in the way
    ├── MergeConflictError    decide: two branches changed the same thing (carries conflicts)
    ├── ConflictError         another write was faster: look again, then retry the whole operation
    ├── NotFoundError         the named thing is not there
    ├── AlreadyExistsError    the named thing is there already
    ├── LimitError            ask for less, or raise the limit
    ├── StorageError          the store did not answer as it should: fix access, or retry later
    ├── CommitUnknownError    the outcome is undetermined: inspect before retrying, delete nothing
    ├── FormatError           this graph was written by another version of omnigraph
    ├── CorruptionError       stored data is missing or damaged: stop and inspect
    └── InternalError         a bug in omnigraph

``kind`` is a stable, append-only code; exit codes and HTTP statuses derive from it in one table.
Messages are for people and may change; programs read ``kind`` and ``details``.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol


class ErrorKind(StrEnum):
    """Stable machine-readable codes. Append, never rename or reuse."""

    USAGE = "usage"
    SCHEMA = "schema"
    QUERY = "query"
    PARAMETER = "parameter"
    INPUT = "input"
    CONSTRAINT = "constraint"
    KEY_CONFLICT = "key_conflict"
    MIGRATION = "migration"
    READ_SET_CONFLICT = "read_set_conflict"
    VERSION_MISMATCH = "expected_version_mismatch"
    PRECONDITION_FAILED = "precondition_failed"
    CONTENTION = "contention"
    REVOKED = "revoked"
    MERGE_CONFLICT = "merge_conflict"
    NOT_A_GRAPH = "not_a_graph"
    BRANCH_NOT_FOUND = "branch_not_found"
    COMMIT_NOT_FOUND = "commit_not_found"
    TAG_NOT_FOUND = "tag_not_found"
    HISTORY_RECLAIMED = "history_reclaimed"
    TYPE_NOT_FOUND = "type_not_found"
    FILE_NOT_FOUND = "file_not_found"
    ALREADY_INITIALIZED = "already_initialized"
    BRANCH_EXISTS = "branch_exists"
    TAG_EXISTS = "tag_exists"
    CURSOR_REJECTED = "change_cursor_rejected"
    FEED_GAP = "change_feed_gap"
    PARENTLESS_COMMIT = "parentless_commit"
    LIMIT = "resource_limit"
    STORAGE_TRANSIENT = "storage_transient"
    STORAGE_CONFIGURATION = "storage_configuration"
    STORAGE_DENIED = "storage_denied"
    STORAGE_NOT_FOUND = "storage_not_found"
    STORAGE_FULL = "storage_full"
    STORAGE_UNKNOWN = "storage_unknown"
    COMMIT_UNKNOWN = "commit_unknown"
    FORMAT_NEWER = "format_newer"
    FORMAT_OLDER = "format_older"
    CORRUPTION = "corruption"
    INTERNAL = "internal"
    OPERATION_NOT_FOUND = "operation_not_found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule of the schema, at one entity, in data that was about to be written."""

    rule: str
    """Which rule: value, enum, range, check, required, unique, key, endpoint, cardinality."""
    message: str
    """Stable prefix, for example ``@range violation on Vessel.imo: …``."""
    entity_kind: str
    """``node`` or ``edge``."""
    type_name: str
    entity_id: str | None = None
    property_name: str | None = None
    source: str | None = None
    """Where the row came from: a file name, ``rows``, ``table`` …"""
    line: int | None = None
    """1-based line in a text source, 1-based row otherwise."""

    def __str__(self) -> str:
        where = f"{self.source}:{self.line}: " if self.source and self.line else ""
        return f"{where}{self.message}"

    def to_dict(self) -> dict[str, Any]:
        """The violation as plain JSON data, without absent fields."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class OmnigraphError(Exception):
    """Root of everything raised on purpose. Catch this to catch all of it."""

    default_kind: ClassVar[ErrorKind] = ErrorKind.INTERNAL

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind | None = None,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind or self.default_kind
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Subclasses take other arguments than they pass to Exception; workers of a process pool
        # must be able to send every error back all the same.
        return _restore, (type(self), self.args, self.__dict__)

    def to_dict(self) -> dict[str, Any]:
        """The JSON envelope that the CLI prints and the server will send."""
        body: dict[str, Any] = {"error": self.message, "code": str(self.kind)}
        if self.hint:
            body["hint"] = self.hint
        return body | self.details


def _restore(
    kind: type[OmnigraphError], args: tuple[Any, ...], state: Mapping[str, Any]
) -> OmnigraphError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class UsageError(OmnigraphError):
    """The call itself is wrong: an option, an argument, a combination."""

    default_kind = ErrorKind.USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding in a schema or query text, with its place."""

    code: str
    message: str
    line: int
    """1-based."""
    column: int
    """1-based, in characters."""
    length: int = 1
    """Characters to underline, at least one."""
    expected: str | None = None
    hint: str | None = None
    source_line: str = ""
    """The text of the line, for display; of a long one the part around the place."""
    left_out: int = 0
    """Characters of the line that stand before that part."""

    def to_dict(self) -> dict[str, Any]:
        """The diagnostic as plain JSON data, without absent fields."""
        names = ("code", "message", "line", "column", "length", "expected", "hint")
        return {n: v for n in names if (v := getattr(self, n)) is not None}


class TextError(OmnigraphError):
    """A text in one of our languages has findings; shared by both languages."""

    def __init__(self, source_name: str, diagnostics: Sequence[Diagnostic]) -> None:
        self.source_name = source_name
        self.diagnostics = tuple(diagnostics)
        super().__init__(
            "\n".join(render_diagnostic(source_name, d) for d in self.diagnostics),
            details={
                "source": source_name,
                "diagnostics": [d.to_dict() for d in self.diagnostics],
            },
        )


def render_diagnostic(source_name: str, diagnostic: Diagnostic) -> str:
    """A finding as a person reads it: place, message, the line and a caret under the spot."""
    d = diagnostic
    lines = [f"{source_name}:{d.line}:{d.column}: {d.code}: {d.message}"]
    if d.source_line:
        gutter = f"{d.line:>5} | "
        start = d.column - 1 - d.left_out
        end = start + d.length
        lead = "".join("\t" if c == "\t" else " " * _width(c) for c in d.source_line[:start])
        beyond = max(0, end - max(start, len(d.source_line)))
        length = max(1, sum(map(_width, d.source_line[start:end])) + beyond)
        lines += [gutter + d.source_line, " " * (len(gutter) - 2) + "| " + lead + "^" * length]
    if d.expected:
        lines.append(f"  expected: {d.expected}")
    if d.hint:
        lines.append(f"  hint: {d.hint}")
    return "\n".join(lines)


def _width(character: str) -> int:
    """Columns that a terminal gives a character."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


class SchemaError(TextError):
    """The schema text does not describe a valid schema."""

    default_kind = ErrorKind.SCHEMA


class QueryError(TextError):
    """The query text is not a valid query on this schema."""

    default_kind = ErrorKind.QUERY


class ParameterError(OmnigraphError):
    """The values given for a query's parameters do not fit its declaration; nothing ran."""

    default_kind = ErrorKind.PARAMETER


class InputError(OmnigraphError):
    """Data that cannot be read as this graph's data: malformed, unknown names, wrong values."""

    default_kind = ErrorKind.INPUT


class ConstraintError(OmnigraphError):
    """Well-formed data that breaks rules of the schema. Nothing was published."""

    default_kind = ErrorKind.CONSTRAINT

    def __init__(
        self,
        violations: Sequence[Violation],
        *,
        total: int | None = None,
        kind: ErrorKind | None = None,
        hint: str | None = None,
    ) -> None:
        self.violations = tuple(violations)
        self.total = max(total or 0, len(self.violations))
        shown = [str(v) for v in self.violations]
        if (more := self.total - len(shown)) > 0:
            shown.append(f"… and {more} more")
        super().__init__(
            "\n".join(shown),
            kind=kind,
            hint=hint,
            details={
                "violations": [v.to_dict() for v in self.violations],
                "violation_count": self.total,
            },
        )


class MigrationError(OmnigraphError):
    """A schema cannot be applied to what the graph holds. Nothing was changed."""

    default_kind = ErrorKind.MIGRATION

    def __init__(
        self,
        message: str,
        *,
        reasons: Sequence[str],
        steps: Sequence[Mapping[str, Any]],
        violations: Sequence[Violation] = (),
        total: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.summary = message
        self.reasons = tuple(reasons)
        """Each step that is not possible, in words."""
        self.steps = tuple(dict(step) for step in steps)
        """The same as plain data."""
        self.violations = tuple(violations)
        """The first rows that are in the way."""
        self.total = max(total or 0, len(self.violations))
        super().__init__(
            "\n".join([message, *(f"  {line}" for line in self.lines)]),
            hint=hint,
            details={
                "steps": [dict(step) for step in self.steps],
                "violations": [v.to_dict() for v in self.violations],
                "violation_count": self.total,
            },
        )

    @property
    def lines(self) -> list[str]:
        """The steps and the rows, a line each."""
        more = self.total - len(self.violations)
        rest = [f"… and {more:,} more"] if more > 0 else []
        return [*self.reasons, *(str(v) for v in self.violations), *rest]


class ConflictRecord(Protocol):
    """One conflict of a merge, as far as an error needs to know it (``branch.merge.conflicts``)."""

    @property
    def message(self) -> str:
        """The conflict in words."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The conflict as plain JSON data."""
        ...


class MergeConflictError(OmnigraphError):
    """Both sides of a merge changed the same thing, or break a rule together. Nothing changed."""

    default_kind = ErrorKind.MERGE_CONFLICT
    shown_max: ClassVar[int] = 3

    def __init__(
        self,
        message: str,
        conflicts: Sequence[ConflictRecord],
        *,
        hint: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.conflicts: tuple[Any, ...] = tuple(conflicts)
        super().__init__(
            message,
            hint=hint,
            details={
                **(details or {}),
                "merge_conflicts": [c.to_dict() for c in self.conflicts],
                "merge_conflict_count": len(self.conflicts),
            },
        )

    def __str__(self) -> str:
        lines = [self.message, *(f"  {c.message}" for c in self.conflicts[: self.shown_max])]
        if (more := len(self.conflicts) - self.shown_max) > 0:
            lines.append(f"  … and {more} more")
        return "\n".join([*lines, f"  hint: {self.hint}"] if self.hint else lines)


class ConflictError(OmnigraphError):
    """Another writer changed what this operation was based on; nothing was published."""

    default_kind = ErrorKind.READ_SET_CONFLICT


class NotFoundError(OmnigraphError):
    """The named graph, branch, commit, type or file does not exist."""

    default_kind = ErrorKind.NOT_A_GRAPH


class AlreadyExistsError(OmnigraphError):
    """The thing to be created exists already."""

    default_kind = ErrorKind.ALREADY_INITIALIZED


class LimitError(OmnigraphError):
    """A stated limit was exceeded."""

    default_kind = ErrorKind.LIMIT


class WriteInterrupted(KeyboardInterrupt):
    """Ctrl-C came while a write ran: an interrupt that knows what became of the write."""

    def __init__(self, commit_id: str, *, published: bool | None) -> None:
        outcome = {
            True: f"commit {commit_id} was published",
            False: "the write was not published",
            None: f"the write may or may not be published: look for commit {commit_id}",
        }[published]
        super().__init__(outcome)
        self.commit_id = commit_id
        """The id that the write has, or would have, as a commit."""
        self.published = published
        """None if a second interrupt came before the store had answered."""


class StorageError(OmnigraphError):
    """The file system or object store failed; ``kind`` says in which way."""

    default_kind = ErrorKind.STORAGE_UNKNOWN


class CommitUnknownError(OmnigraphError):
    """The publish may or may not have landed and the store cannot be asked: inspect first."""

    default_kind = ErrorKind.COMMIT_UNKNOWN


class FormatError(OmnigraphError):
    """The graph's format stamp is not one this version reads."""

    default_kind = ErrorKind.FORMAT_NEWER


class CorruptionError(OmnigraphError):
    """A referenced object is missing, truncated or not what its name says."""

    default_kind = ErrorKind.CORRUPTION


class InternalError(OmnigraphError):
    """A broken invariant: a bug in omnigraph, never the user's fault."""

    default_kind = ErrorKind.INTERNAL
