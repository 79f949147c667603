"""Where one input of the shell ends and the next begins, and its colours while it is typed.

    keys, lines of a pipe -> [reading] -> session

At a prompt the Enter key asks ``is_complete``. Lines of a pipe are put together by ``inputs``; it
can look at the next line before it decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.errors import QueryError
from omnigraph.lang.cursor import Token, TokenKind
from omnigraph.lang.lexer import CUTS_OFF, comments, tokenize
from omnigraph.lang.source import Source, Span
from omnigraph.query.parse import parse_queries
from omnigraph.query.parse.codes import SyntaxCode

_UNFINISHED = frozenset(
    {
        SyntaxCode.BLOCK_NOT_CLOSED,
        SyntaxCode.RETURN_MISSING,
        SyntaxCode.WHERE_MISSING,
        SyntaxCode.UNTERMINATED_STRING,
        SyntaxCode.UNTERMINATED_COMMENT,
    }
)
"""Findings that more text can answer."""
_BEGINNINGS = frozenset({"query", "match", "insert", "upsert", "update", "delete"})

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


def is_complete(text: str) -> bool:
    """Whether a text can be run as it is, or is wrong in a way that more text cannot help."""
    text = text.strip()
    if text.startswith(":"):
        name, _, rest = text.partition(" ")
        return is_complete(rest) if name == ":explain" else is_balanced(rest)
    if not is_balanced(text):
        return False
    try:
        parse_queries(Source(name="input", text=text))
    except QueryError as error:
        if not _tokens(text):
            return True  # Nothing, or a comment: there is nothing to wait for.
        end = Source(name="input", text=text).position(len(text))
        return not any(
            d.code in _UNFINISHED or (d.line, d.column) >= end for d in error.diagnostics
        )
    return True


def is_balanced(text: str) -> bool:
    """Whether no bracket, string or comment is open."""
    tokens, problems = tokenize(Source(name="input", text=text))
    signs = [t.text for t in tokens if t.kind is TokenKind.PUNCT]
    depth = sum(s in ("{", "(", "[") for s in signs) - sum(s in ("}", ")", "]") for s in signs)
    return depth <= 0 and not any(p.kind in CUTS_OFF for p in problems)


def is_empty(text: str) -> bool:
    """Whether there is nothing to run: white space and comments."""
    return not _tokens(text) and is_balanced(text)


def inputs(lines: Iterable[str]) -> Iterator[str]:
    """Lines put together to inputs.

    One ends at a blank line outside of brackets, before a line that begins a query, a statement or
    a command, and at the end. So a condition may go on in the next line.
    """
    held: list[str] = []
    for line in lines:
        text = "\n".join(held)
        if held and is_balanced(text):
            blank = not line.strip()
            if blank or (_begins(line) and is_complete(text)) or text.startswith(":"):
                yield text
                held = []
        if held or line.strip():
            held.append(line)
    if held:
        yield "\n".join(held)


def _begins(line: str) -> bool:
    if line.lstrip().startswith(":"):
        return True
    tokens = _tokens(line)
    return not tokens or (tokens[0].kind is TokenKind.WORD and tokens[0].text in _BEGINNINGS)


def _tokens(text: str) -> list[Token]:
    tokens, _ = tokenize(Source(name="input", text=text))
    return tokens[:-1]


# ---------------------------------------------------------------- colours


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
