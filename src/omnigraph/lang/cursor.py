"""A place in a list of tokens, for recursive descent.

    tokens -> [cursor] -> a language's parser -> AST

Look ahead, take, or insist. Insisting raises ``ParseFailure``; the parser catches it where it can
start afresh, so a text with several mistakes yields several diagnostics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn, TypeVar, Unpack

from omnigraph.lang.source import Help, Span

T = TypeVar("T")


class ParseFailure(Exception):
    """The text cannot be read on from here. ``code`` None means: some token was not expected."""

    def __init__(
        self, message: str, span: Span, *, code: str | None = None, **help: Unpack[Help]
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.code = code
        self.help = help


class Cursor:
    """Walks over tokens and never past the last one, which is of kind ``END``."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def here(self) -> Token:
        return self._tokens[self._at]

    @property
    def index(self) -> int:
        """How many tokens stand before the current one."""
        return self._at

    @property
    def last_span(self) -> Span:
        """Place of the token taken last."""
        return self._tokens[max(0, self._at - 1)].span

    @property
    def at_end(self) -> bool:
        return self.here.kind is TokenKind.END

    def peek(self, ahead: int = 1) -> Token:
        """The token that many places further on."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The current token; moves on."""
        token = self.here
        if not self.at_end:
            self._at += 1
        return token

    def at_punct(self, text: str) -> bool:
        return self.here.is_punct(text)

    def at_word(self, text: str) -> bool:
        return self.here.is_word(text)

    def accept_punct(self, text: str) -> Token | None:
        """Take this punctuation if it is here."""
        return self.take() if self.at_punct(text) else None

    def accept_word(self, text: str) -> Token | None:
        """Take this word if it is here."""
        return self.take() if self.at_word(text) else None

    def expect_punct(self, text: str, *, hint: str | None = None) -> Token:
        """Take this punctuation or fail."""
        return self.accept_punct(text) or self.fail(f"`{text}`", hint=hint)

    def expect_kind(self, kind: TokenKind, *, hint: str | None = None) -> Token:
        """Take a token of this kind or fail."""
        return self.take() if self.here.kind is kind else self.fail(str(kind), hint=hint)

    def separated(self, read: Callable[[], T]) -> tuple[T, ...]:
        """What ``read`` takes, once and again behind every comma."""
        found = [read()]
        while self.accept_punct(","):
            found.append(read())
        return tuple(found)

    def accept_enum_word(self) -> Token | None:
        """Take a value such as ``in-progress`` or ``2xx``: all tokens that touch, as one word."""
        parts: list[Token] = []
        while self._continues_enum_word(parts):
            parts.append(self.take())
        if not parts:
            return None
        text = "".join(p.text for p in parts)
        return Token(kind=TokenKind.WORD, text=text, span=parts[0].span.to(parts[-1].span))

    def _continues_enum_word(self, parts: Sequence[Token]) -> bool:
        token = self.here
        if parts and parts[-1].span.end != token.span.start:
            return False
        words = (TokenKind.WORD, TokenKind.DIGIT_WORD, TokenKind.INT)
        return token.kind in words or token.is_punct("-")

    def fail(self, expected: str, *, hint: str | None = None, code: str | None = None) -> NoReturn:
        """Raise: the current token is not what has to stand here."""
        raise ParseFailure(
            f"unexpected {self.here}", self.here.span, code=code, expected=expected, hint=hint
        )


# -- tokens ----------------------------------------------------------------------------------------
# Tokens: what the lexer makes of a text and what the cursor walks over.
#
# There are no keyword tokens. A word is a word; the parser decides by its place whether it is a
# keyword, so a property may be called ``node`` or ``limit``.


class TokenKind(StrEnum):
    """The value is how a message names such a token."""

    WORD = "word"
    """A letter or underscore, then letters, digits, underscores."""
    DIGIT_WORD = "word that starts with a digit"
    """Digits running into letters, like ``2xx``: legal as an enum value, nowhere else."""
    VARIABLE = "variable"
    """``$name``; the text keeps the dollar sign."""
    INT = "integer"
    FLOAT = "decimal number"
    STRING = "string"
    PUNCT = "punctuation"
    END = "end of file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A word and its place. A variable's name stands without its ``$``."""

    text: str
    span: Span

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token. ``text`` is the text as written, for a string its value after escapes."""

    kind: TokenKind
    text: str
    span: Span

    @property
    def is_type_name(self) -> bool:
        return self.kind is TokenKind.WORD and self.text[0].isupper()

    @property
    def is_identifier(self) -> bool:
        return self.kind is TokenKind.WORD and not self.text[0].isupper()

    @property
    def name(self) -> Name:
        return Name(text=self.text.removeprefix("$"), span=self.span)

    def is_punct(self, text: str) -> bool:
        return self.kind is TokenKind.PUNCT and self.text == text

    def is_word(self, text: str) -> bool:
        return self.kind is TokenKind.WORD and self.text == text

    def __str__(self) -> str:
        if self.kind in (TokenKind.END, TokenKind.STRING):
            return str(self.kind) if self.kind is TokenKind.END else f"a {self.kind}"
        return f"`{self.text}`"
