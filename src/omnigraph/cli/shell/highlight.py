"""Colours for a query text while it is typed."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.lexer import comments, tokenize
from omnigraph.lang.source import Source, Span
from omnigraph.lang.tokens import Token, TokenKind

WORDS = frozenset(
    {
        "query", "match", "return", "distinct", "order", "limit", "offset", "not", "optional",
        "exists", "insert", "upsert", "update", "delete", "set", "where", "as", "asc", "desc",
        "and", "or", "in", "is", "null", "true", "false", "contains", "starts_with",
    }
)  # fmt: skip
_KINDS = {
    TokenKind.STRING: "ansigreen",
    TokenKind.VARIABLE: "ansicyan",
    TokenKind.INT: "ansimagenta",
    TokenKind.FLOAT: "ansimagenta",
}


def styled(text: str) -> list[tuple[str, str]]:
    """The text in pieces, each with a style; together they are the text again."""
    source = Source(name="input", text=text)
    found = [(span, "ansibrightblack") for span in comments(source)]
    found += [(token.span, style) for token in tokenize(source)[0] if (style := _style(token))]
    return list(_pieces(text, sorted(found, key=lambda f: f[0].start)))


def _pieces(text: str, spans: list[tuple[Span, str]]) -> Iterator[tuple[str, str]]:
    at = 0
    for span, style in spans:
        if span.start > at:
            yield "", text[at : span.start]
        yield style, text[span.start : span.end]
        at = span.end
    if at < len(text):
        yield "", text[at:]


def _style(token: Token) -> str:
    if token.kind is TokenKind.WORD:
        return "bold" if token.text in WORDS else "ansiyellow" if token.is_type_name else ""
    return _KINDS.get(token.kind, "")
