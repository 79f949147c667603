"""Tokens: what the lexer makes of a text and what the cursor walks over.

There are no keyword tokens. A word is a word; the parser decides by its place whether it is a
keyword, so a property may be called ``node`` or ``limit``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from omnigraph.lang.source import Span


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

    def is_punct(self, text: str) -> bool:
        return self.kind is TokenKind.PUNCT and self.text == text

    def is_word(self, text: str) -> bool:
        return self.kind is TokenKind.WORD and self.text == text

    def __str__(self) -> str:
        if self.kind in (TokenKind.END, TokenKind.STRING):
            return str(self.kind) if self.kind is TokenKind.END else f"a {self.kind}"
        return f"`{self.text}`"
