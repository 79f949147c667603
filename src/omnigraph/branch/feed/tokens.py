"""Cursors and page tokens: where a reader stands, as text that only this module understands.

    position -> [tokens] -> text that a reader keeps -> [tokens] -> position

Nothing is stored for a reader: the text says everything. It names the graph, the life of the branch
and the filter it belongs to, so that it cannot be used for anything else, and carries a checksum,
so that a cut or mistyped one is noticed. Its first letter is its kind. A cursor says which commit
was delivered last; a page token stands inside of a poll, or inside of the changes of one commit,
and lasts no longer.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.branch.delta import Op
from omnigraph.branch.diff import KINDS, OPS, checked_words
from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.manifest.refs import branch_path
from omnigraph.manifest.snapshot import MAIN_PATH, GraphCommit, ManifestPlace
from omnigraph.schema.catalog import Catalog, GraphType, type_named

TOKEN_BYTES_MAX = 4096
_CHECK_BYTES = 9
"""A multiple of three: the text needs no padding for it."""
_SALT = b"omnigraph change token 1\n"
_NUMBER_MAX = (1 << 63) - 1
_PATH = re.compile(rf"{MAIN_PATH}|{branch_path('[0-9A-Z]{26}')}")
"""A token is text from outside: it never leads to any other place."""


class Reason(StrEnum):
    """Why a cursor is refused."""

    TOO_LONG = "too_long"
    DAMAGED = "damaged"
    NOT_A_CURSOR = "not_a_cursor"
    """It is a page token."""
    NOT_A_PAGE_TOKEN = "not_a_page_token"
    OTHER_GRAPH = "other_graph"
    OTHER_BRANCH = "other_branch"
    OTHER_FILTER = "other_filter"
    OTHER_COMMIT = "other_commit"
    LEFT_BEHIND = "left_behind"
    """The branch was reset, and the commit is not in its line any more."""


_ANEW = "read a new baseline, or start with 'beginning' or 'now'"
_HINTS = {
    Reason.NOT_A_CURSOR: "give it as the page token",
    Reason.NOT_A_PAGE_TOKEN: "give it as the cursor; page tokens come with pages that are not the "
    "last of their poll",
    Reason.OTHER_FILTER: "poll with the kinds, types and ops that it was made with",
    Reason.OTHER_COMMIT: "give the page token together with the commit it was made for",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Everything up to this commit, and it too, was delivered."""

    commit_id: str
    place: ManifestPlace
    """Where the commit is found, so that no walk is needed."""

    @staticmethod
    def at(commit: GraphCommit) -> Position:
        return Position(commit_id=commit.id, place=commit.place)


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorBinding:
    """What a token belongs to."""

    graph_id: str
    path: str
    """The life of the branch."""
    filter: str
    """The digest of the filter."""

    def check(self, other: CursorBinding) -> None:
        """Refuse a token that was made for something else."""
        if other.graph_id != self.graph_id:
            raise rejected(Reason.OTHER_GRAPH, "it belongs to another graph")
        if other.path != self.path:
            raise rejected(
                Reason.OTHER_BRANCH,
                "it belongs to another branch, or to an earlier life of this one",
            )
        if other.filter != self.filter:
            raise rejected(Reason.OTHER_FILTER, "it was made with another filter")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedCursor:
    """Where a reader of a branch goes on."""

    binding: CursorBinding
    position: Position

    def encode(self) -> str:
        return _encoded("c", *_bound(self.binding), *_placed(self.position))

    @staticmethod
    def decode(text: object) -> FeedCursor:
        fields = _decoded(text, "c", Reason.NOT_A_CURSOR)
        with _Fields(fields) as taken:
            return FeedCursor(binding=taken.binding(), position=taken.position())


@dataclass(frozen=True, slots=True, kw_only=True)
class PollToken:
    """Where the next page of a poll begins, and where its last page will end."""

    binding: CursorBinding
    position: Position
    offset: int
    """So many changes of the commit after the position were delivered already."""
    end: Position
    caught_up: bool
    """Whether the end was the head of the branch when the poll began."""

    def encode(self) -> str:
        parts = (*_bound(self.binding), *_placed(self.position), self.offset, *_placed(self.end))
        return _encoded("p", *parts, int(self.caught_up))

    @staticmethod
    def decode(text: object) -> PollToken:
        fields = _decoded(text, "p", Reason.NOT_A_PAGE_TOKEN)
        with _Fields(fields) as taken:
            return PollToken(
                binding=taken.binding(),
                position=taken.position(),
                offset=taken.number(),
                end=taken.position(),
                caught_up=bool(taken.number()),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockToken:
    """Where the next page of one commit's changes begins."""

    binding: CursorBinding
    """Of the branch that the commit was made on."""
    commit: Position
    offset: int

    def encode(self) -> str:
        return _encoded("b", *_bound(self.binding), *_placed(self.commit), self.offset)

    @staticmethod
    def decode(text: object) -> BlockToken:
        fields = _decoded(text, "b", Reason.NOT_A_PAGE_TOKEN)
        with _Fields(fields) as taken:
            return BlockToken(
                binding=taken.binding(), commit=taken.position(), offset=taken.number()
            )


def rejected(reason: Reason, why: str) -> UsageError:
    """The error for a cursor or page token that cannot be used."""
    return UsageError(
        f"change cursor rejected: {why}",
        kind=ErrorKind.CURSOR_REJECTED,
        hint=_HINTS.get(reason, _ANEW),
        details={"reason": str(reason)},
    )


_WORDS = {
    "c": "it is a cursor, not a page token",
    "p": "it is a page token, not a cursor",
    "b": "it is a page token of one commit's changes",
}


def _bound(binding: CursorBinding) -> tuple[str, str, str]:
    return binding.graph_id, binding.path, binding.filter


def _placed(position: Position) -> tuple[str, str, int | str]:
    place = position.place
    version = f"{place.version}~{place.back}" if place.back else place.version
    return position.commit_id, place.path, version


def _encoded(kind: str, *fields: str | int) -> str:
    content = json.dumps([kind, *fields], separators=(",", ":")).encode()
    text = base64.urlsafe_b64encode(_check(content) + content).decode()
    return kind + text.rstrip("=")


def _decoded(text: object, kind: str, otherwise: Reason) -> list[Any]:
    """The fields of a token of this kind."""
    if not isinstance(text, str):
        raise rejected(Reason.DAMAGED, f"it is no text but {type(text).__name__}")
    trimmed = text.strip()
    if len(trimmed) > TOKEN_BYTES_MAX:
        raise rejected(Reason.TOO_LONG, f"it is longer than {TOKEN_BYTES_MAX} bytes")
    fields = _content(trimmed)
    if fields[0] != kind:
        raise rejected(otherwise, _WORDS[fields[0]])
    return fields[1:]


def _content(text: str) -> list[Any]:
    try:
        letters = text[1:].encode("ascii")
        padded = letters + b"=" * (-len(letters) % 4)
        content = base64.b64decode(padded, altchars=b"-_", validate=True)[_CHECK_BYTES:]
        fields = json.loads(content)
    except (ValueError, RecursionError):
        fields = None
    # What we would write ourselves for these fields, and nothing that merely reads the same.
    if (
        not isinstance(fields, list)
        or text[0] not in _WORDS
        or text != _encoded(text[0], *fields[1:])
    ):
        raise rejected(Reason.DAMAGED, "it is damaged, or was never one")
    return fields


def _check(content: bytes) -> bytes:
    return hashlib.sha256(_SALT + content).digest()[:_CHECK_BYTES]


class _Fields:
    """Fields of a token, taken in their order; whatever does not fit makes it a damaged one."""

    def __init__(self, fields: list[Any]) -> None:
        self._left = list(fields)

    def __enter__(self) -> _Fields:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self._left:
            raise self._misfit()

    def binding(self) -> CursorBinding:
        return CursorBinding(graph_id=self._text(), path=self._path(), filter=self._text())

    def position(self) -> Position:
        commit_id, path = self._text(), self._path()
        version, back = self._version()
        place = ManifestPlace(path=path, version=version, back=back)
        return Position(commit_id=commit_id, place=place)

    def _version(self) -> tuple[int, int]:
        """A version, and how many of its commits are behind the position."""
        if self._left and isinstance(self._left[0], str):
            version, _, back = self._text().partition("~")
            numbers = [int(n) if n.isascii() and n.isdecimal() else -1 for n in (version, back)]
            self._left[:0] = numbers
            return self.number(), self.number()
        return self.number(), 0

    def number(self) -> int:
        value = self._next()
        if type(value) is not int or not 0 <= value <= _NUMBER_MAX:
            raise self._misfit()
        return value

    def _text(self) -> str:
        value = self._next()
        if not isinstance(value, str):
            raise self._misfit()
        return value

    def _path(self) -> str:
        path = self._text()
        if _PATH.fullmatch(path) is None:
            raise self._misfit()
        return path

    def _next(self) -> Any:
        if not self._left:
            raise self._misfit()
        return self._left.pop(0)

    @staticmethod
    def _misfit() -> UsageError:
        return rejected(Reason.DAMAGED, "it is damaged, or was never one")


# -- chosen ----------------------------------------------------------------------------------------
# Which changes a reader wants: kinds, types and operations.
#
#     words -> [chosen] -> numbers of types, operations -> digest in cursors
#
# Types are meant by their numbers, so a filter goes on meaning the same types when they are
# renamed, and two spellings of one filter are one filter.


DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """Some of the changes, in normal form; what is empty does not matter."""

    kinds: tuple[str, ...] = ()
    types: tuple[int, ...] = ()
    """Numbers of types."""
    ops: tuple[Op, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether nothing is left out."""
        return not (self.kinds or self.types or self.ops)

    @property
    def digest(self) -> str:
        """What cursors carry to recognise it."""
        if self.is_everything:
            return ""
        words = [self.kinds, self.types, [int(op) for op in self.ops]]
        content = json.dumps(words, separators=(",", ":")).encode()
        return hashlib.sha256(content).hexdigest()[:DIGEST_LENGTH]

    def wants(self, graph_type: GraphType) -> bool:
        """Whether changes of this type count."""
        kind_counts = not self.kinds or graph_type.kind in self.kinds
        return kind_counts and (not self.types or graph_type.id in self.types)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFilter:
    """A filter as a user wrote it, with names of types."""

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()

    @staticmethod
    def of(kinds: Sequence[str], types: Sequence[str], ops: Sequence[str]) -> NamedFilter:
        """Checked as far as that goes without a schema."""
        return NamedFilter(
            kinds=checked_words("kind", kinds, KINDS),
            types=checked_words("type", types),
            ops=checked_words("op", ops, OPS),
        )

    def on(self, *schemas: Callable[[], Catalog]) -> ChangeFilter:
        """The filter, with types by their names in the first of the schemas that knows them."""
        numbers = {self._number(name, schemas) for name in self.types}
        return ChangeFilter(
            kinds=() if len(self.kinds) == len(KINDS) else self.kinds,
            types=tuple(sorted(numbers)),
            ops=() if len(self.ops) == len(OPS) else tuple(op for op in Op if op.word in self.ops),
        )

    @staticmethod
    def _number(name: str, schemas: Iterable[Callable[[], Catalog]]) -> int:
        missing: NotFoundError | None = None
        for schema in schemas:
            try:
                return type_named(schema(), name).id
            except NotFoundError as error:
                missing = missing or error
        if missing is None:
            raise UsageError("types are named, and there is no schema")
        raise missing
