"""What both languages share: source text, tokens, lexer, token cursor, spelling hints."""

from omnigraph.lang.cursor import Cursor, ParseFailure, Token, TokenKind
from omnigraph.lang.lexer import LexicalKind, LexicalProblem, comments, tokenize
from omnigraph.lang.source import Source, Span, TextFindings
from omnigraph.lang.suggest import closest, did_you_mean, misspelling_of

__all__ = [
    "Cursor",
    "LexicalKind",
    "LexicalProblem",
    "ParseFailure",
    "Source",
    "Span",
    "TextFindings",
    "Token",
    "TokenKind",
    "closest",
    "comments",
    "did_you_mean",
    "misspelling_of",
    "tokenize",
]
