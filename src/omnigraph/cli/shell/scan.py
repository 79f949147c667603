"""An unfinished query text, as far as it can be understood.

    text before the cursor -> [scan] -> complete

The parser wants whole texts; at a prompt the text ends in the middle of a word. This looks at its
tokens only: which brackets are open and what they hold, which variables there are and their types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.lang.cursor import Token, TokenKind
from omnigraph.lang.lexer import CUTS_OFF, comments, tokenize
from omnigraph.lang.source import Source
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType

_WORD = re.compile(r"\$?[A-Za-z0-9_]*\Z")
_CLAUSE_WORDS = frozenset({"match", "not", "optional", "exists", "count"})
_OPENING = ("{", "(", "[")
_CLOSING = ("}", ")", "]")


class BlockKind(StrEnum):
    """What stands between two brackets."""

    BODY = "body"
    CLAUSES = "clauses"
    RETURN = "return"
    ORDER = "order"
    INLINE = "inline"
    """Properties behind a binding: ``$v: Vessel { … }``."""
    INSERT = "insert"
    SET = "set"
    HOPS = "hops"
    PARAMS = "params"
    CALL = "call"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenBlock:
    """An open bracket."""

    kind: BlockKind
    word: str = ""
    """The type whose properties it holds, the function it calls, or the word before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorScan:
    """What is known at the cursor."""

    word: str
    """The unfinished word, perhaps empty; a variable with its ``$``."""
    tokens: tuple[Token, ...]
    """Everything before that word."""
    open: tuple[OpenBlock, ...]
    """The innermost last."""
    closed: OpenBlock | None
    """The block that ended with the last token."""
    hidden: bool
    """Whether the cursor is inside a string or a comment."""
    variables: Mapping[str, GraphType]
    """Those whose type is known; names without ``$``."""
    names: tuple[str, ...]
    """All variables, in the order of their first mention."""
    params: tuple[str, ...]
    aliases: tuple[str, ...]

    @property
    def block(self) -> BlockKind | None:
        """What the cursor is in."""
        return self.open[-1].kind if self.open else None

    def back(self, distance: int) -> Token | None:
        """A token before the cursor: 1 is the last one."""
        return self.tokens[-distance] if distance <= len(self.tokens) else None


def scan(text: str, catalog: Catalog) -> CursorScan:
    """Look at the text before the cursor."""
    found = _WORD.search(text)
    word = found.group() if found else ""
    source = Source(name="input", text=text[: len(text) - len(word)])
    tokens, problems = tokenize(source)
    tokens.pop()
    hidden = any(p.kind in CUTS_OFF for p in problems) or _in_line_comment(source)
    walk = _CursorWalk(tokens)
    walk.run()
    return CursorScan(
        word=word,
        tokens=tuple(tokens),
        open=tuple(walk.stack),
        closed=walk.closed,
        hidden=hidden,
        variables=_types(walk.bindings, _hops(tokens), catalog),
        names=tuple(dict.fromkeys(walk.names)),
        params=tuple(dict.fromkeys(walk.params)),
        aliases=tuple(dict.fromkeys(walk.aliases)),
    )


def _in_line_comment(source: Source) -> bool:
    text = source.text
    return any(c.end == len(text) and text.startswith("//", c.start) for c in comments(source)[-1:])


class _CursorWalk:
    """One pass over the tokens."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.stack: list[OpenBlock] = []
        self.closed: OpenBlock | None = None
        self.bindings: dict[str, str] = {}
        self.names: list[str] = []
        self.params: list[str] = []
        self.aliases: list[str] = []

    def run(self) -> None:
        for at, token in enumerate(self._tokens):
            self.closed = None
            if token.kind is TokenKind.PUNCT and token.text in _OPENING:
                self.stack.append(self._opened(at))
            elif token.kind is TokenKind.PUNCT and token.text in _CLOSING and self.stack:
                self.closed = self.stack.pop()
            elif token.kind is TokenKind.VARIABLE:
                self._variable(at, token.text.removeprefix("$"))
            elif token.is_word("as") and at + 1 < len(self._tokens):
                self.aliases.append(self._tokens[at + 1].text)
            if token.is_word("query") and not self.stack:
                # Names belong to one query.
                self.bindings, self.names, self.params, self.aliases = {}, [], [], []

    def _variable(self, at: int, name: str) -> None:
        typed = self._text(at + 1) == ":"
        if self.stack and self.stack[-1].kind is BlockKind.PARAMS:
            self.params.append(name)
        elif name != "_" and name not in self.params:
            self.names.append(name)
            if typed and at + 2 < len(self._tokens) and self._tokens[at + 2].is_type_name:
                self.bindings[name] = self._tokens[at + 2].text

    def _opened(self, at: int) -> OpenBlock:
        opening, before = self._tokens[at].text, self._text(at - 1)
        if opening == "(":
            if self._text(at - 2) == "query":
                return OpenBlock(kind=BlockKind.PARAMS)
            is_call = at > 0 and self._tokens[at - 1].is_identifier
            return OpenBlock(kind=BlockKind.CALL if is_call else BlockKind.OTHER, word=before)
        return OpenBlock(kind=BlockKind.OTHER) if opening == "[" else self._braces(at, before)

    def _braces(self, at: int, before: str) -> OpenBlock:
        if before in _CLAUSE_WORDS:
            return OpenBlock(kind=BlockKind.CLAUSES, word=before)
        if before == "return" or (before == "distinct" and self._text(at - 2) == "return"):
            return OpenBlock(kind=BlockKind.RETURN)
        if before == "order":
            return OpenBlock(kind=BlockKind.ORDER)
        if before == "set":
            return OpenBlock(kind=BlockKind.SET, word=self._text(at - 2))
        if self._text(at - 2) in ("insert", "upsert"):
            return OpenBlock(kind=BlockKind.INSERT, word=before)
        if self._text(at - 2) == ":" and at > 0 and self._tokens[at - 1].is_type_name:
            return OpenBlock(kind=BlockKind.INLINE, word=before)
        if before == ")" and not self.stack:
            return OpenBlock(kind=BlockKind.BODY)
        in_clauses = bool(self.stack) and self.stack[-1].kind is BlockKind.CLAUSES
        return OpenBlock(kind=BlockKind.HOPS if in_clauses else BlockKind.OTHER)

    def _text(self, at: int) -> str:
        return self._tokens[at].text if 0 <= at < len(self._tokens) else ""


# ---------------------------------------------------------------- types of variables


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hop:
    left: str
    edge: str | None
    """The variable of a bound edge."""
    word: str
    right: str


def _hops(tokens: Sequence[Token]) -> Iterator[_Hop]:
    """``$a word $b``, ``$a $e:word $b``, ``$a <word> $b``, each perhaps with ``{m,n}``."""
    for at, token in enumerate(tokens):
        if token.kind is not TokenKind.VARIABLE:
            continue
        rest = list(tokens[at + 1 : at + 14])
        edge = None
        if len(rest) > 1 and rest[0].kind is TokenKind.VARIABLE and rest[1].is_punct(":"):
            edge, rest = rest[0].text.removeprefix("$"), rest[2:]
        if len(rest) > 2 and rest[0].is_punct("<") and rest[2].is_punct(">"):
            word, rest = rest[1].text, rest[3:]
        elif rest and rest[0].is_identifier:
            word, rest = rest[0].text, rest[1:]
        else:
            continue
        if rest and rest[0].is_punct("{"):
            end = next((i for i, t in enumerate(rest) if t.is_punct("}")), len(rest))
            rest = rest[end + 1 :]
        right = rest[0].text if rest and rest[0].kind is TokenKind.VARIABLE else ""
        yield _Hop(
            left=token.text.removeprefix("$"), edge=edge, word=word, right=right.removeprefix("$")
        )


def _types(
    bindings: Mapping[str, str], hops: Iterator[_Hop], catalog: Catalog
) -> dict[str, GraphType]:
    """Types spread along traversals from what is bound, until nothing changes."""
    found: dict[str, GraphType] = {
        name: catalog.nodes[of] for name, of in bindings.items() if of in catalog.nodes
    }
    known = [(hop, edge) for hop in hops if (edge := catalog.edge(hop.word)) is not None]
    for hop, edge in known:
        if hop.edge is not None:
            found.setdefault(hop.edge, edge)
    for guess in (False, True):
        before = -1
        while before != len(found):
            before = len(found)
            for hop, edge in known:
                _spread(hop, edge, found, catalog, guess=guess)
    found.pop("_", None)
    found.pop("", None)
    return found


def _spread(
    hop: _Hop, edge: EdgeType, found: dict[str, GraphType], catalog: Catalog, *, guess: bool
) -> None:
    left, right = found.get(hop.left), found.get(hop.right)
    if left is None and right is None and not guess and edge.source != edge.target:
        return
    backwards = (left is not None and left.name != edge.source) or (
        left is None and right is not None and right.name != edge.target
    )
    ends = (edge.target, edge.source) if backwards else (edge.source, edge.target)
    for name, of in zip((hop.left, hop.right), ends, strict=True):
        if name not in ("", "_"):
            found.setdefault(name, catalog.nodes[of])
