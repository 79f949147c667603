"""Text to tokens, for both languages.

    source -> [lexer] -> tokens -> cursor -> AST

The lexer takes whole words and knows no keyword. It never raises: what it cannot read is recorded
as a problem and skipped, so that one run reports all of them. The problems carry a kind and not a
code, because each language numbers its own codes. Comments are no tokens; the formatter
asks for them with ``comments``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from typing import Unpack

from omnigraph.lang.cursor import ParseFailure, Token, TokenKind
from omnigraph.lang.source import Help, Source, Span

# `1..5` is an integer and a range because a float needs a digit on both sides of its point; the
# look-ahead keeps `1.5x` from being read as a number and a word.
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n]+)
    | (?P<line_comment>//[^\n]*)
    | (?P<comment>/\*)
    | (?P<string>")
    | (?P<float>[0-9]+\.[0-9]+(?![A-Za-z0-9_]))
    | (?P<word>[A-Za-z0-9_]+)
    | (?P<variable>\$[a-z_][A-Za-z0-9_]*)
    | (?P<punct>-> | \.\. | >= | <= | != | [{}()\[\],:.@?=<>-])
    """,
    re.VERBOSE,
)
_KINDS = {
    "float": TokenKind.FLOAT,
    "word": TokenKind.WORD,
    "variable": TokenKind.VARIABLE,
    "punct": TokenKind.PUNCT,
}
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATES = re.compile("[\ud800-\udfff]+")
_DIGITS_MAX = 400
"""More digits than any finite 64-bit float has; Python refuses to read far longer integers."""


class LexicalKind(Enum):
    """What can be wrong with the characters of a text."""

    ILLEGAL_CHARACTER = auto()
    UNTERMINATED_STRING = auto()
    UNTERMINATED_COMMENT = auto()
    UNSUPPORTED_ESCAPE = auto()
    LONG_NUMBER = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalProblem:
    """Something that is no token."""

    kind: LexicalKind
    span: Span
    message: str
    help: Help


CUTS_OFF = (LexicalKind.UNTERMINATED_STRING, LexicalKind.UNTERMINATED_COMMENT)
"""After one of these the rest of the text is lost."""


def tokenize(source: Source) -> tuple[list[Token], list[LexicalProblem]]:
    """All tokens, the last one of kind ``END``, and everything that could not be read."""
    lexer = _Lexer(source.text)
    lexer.run()
    return lexer.tokens, lexer.problems


def comments(source: Source) -> list[Span]:
    """The places of all comments in the order of the text, each with its ``//`` or ``/* */``."""
    lexer = _Lexer(source.text)
    lexer.run()
    return lexer.comments


def holes(tokens: Sequence[Token], problems: Iterable[LexicalProblem]) -> frozenset[int]:
    """Starts of the tokens that stand directly behind characters that were skipped."""
    starts = [t.span.start for t in tokens]
    found: set[int] = set()
    for p in problems:
        index = bisect_left(starts, p.span.start)
        # One inside a string leaves no hole: the string is there.
        inside = index > 0 and tokens[index - 1].span.end > p.span.start
        if p.kind is LexicalKind.ILLEGAL_CHARACTER and not inside:
            found.add(starts[index])
    return frozenset(found)


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 1 if text.startswith("\ufeff") else 0
        self.tokens: list[Token] = []
        self.problems: list[LexicalProblem] = []
        self.comments: list[Span] = []

    def run(self) -> None:
        while self.at < len(self.text):
            match = _TOKEN.match(self.text, self.at)
            group = match.lastgroup if match else None
            if match is None or group is None:
                self._illegal()
            elif group == "comment":
                self._block_comment()
            elif group == "string":
                self._string()
            else:
                if group == "line_comment":
                    self.comments.append(Span(start=self.at, end=match.end()))
                elif group != "space":
                    self._simple(group, match.group())
                self.at = match.end()
        end = len(self.text)
        self.tokens.append(Token(kind=TokenKind.END, text="", span=Span(start=end, end=end)))
        self._surrogates()

    def _simple(self, group: str, text: str) -> None:
        kind = _KINDS[group]
        if group == "word" and text[0].isdigit():
            kind = TokenKind.INT if text.isdigit() else TokenKind.DIGIT_WORD
        span = Span(start=self.at, end=self.at + len(text))
        if len(text) > _DIGITS_MAX and kind in (TokenKind.INT, TokenKind.FLOAT):
            message = f"number has more than {_DIGITS_MAX} digits"
            self._problem(LexicalKind.LONG_NUMBER, span, message)
            # The parser must not be asked to convert it; zero keeps the shape of the text.
            text = "0"
        self.tokens.append(Token(kind=kind, text=text, span=span))

    def _illegal(self) -> None:
        start = self.at
        while self.at < len(self.text) and not _TOKEN.match(self.text, self.at):
            self.at += 1
        text = self.text[start : self.at]
        self._problem(
            LexicalKind.ILLEGAL_CHARACTER,
            Span(start=start, end=self.at),
            f"illegal character {_shown(text[0])}",
            hint=_illegal_hint(text),
        )

    def _block_comment(self) -> None:
        end = self.text.find("*/", self.at + 2)
        if end < 0:
            span = Span(start=self.at, end=self.at + 2)
            message = "comment is not closed"
            self._problem(LexicalKind.UNTERMINATED_COMMENT, span, message, expected="`*/`")
            self.at = len(self.text)
        else:
            self.comments.append(Span(start=self.at, end=end + 2))
            self.at = end + 2

    def _string(self) -> None:
        match = _STRING.match(self.text, self.at)
        if match is None:
            span = Span(start=self.at, end=self.at + 1)
            message = "string is not closed"
            self._problem(LexicalKind.UNTERMINATED_STRING, span, message, expected='`"`')
            self.at = len(self.text)
            return
        for escape in _ESCAPE.finditer(match.group(1)):
            if escape.group(1) not in _ESCAPES:
                start = match.start(1) + escape.start()
                self._problem(
                    LexicalKind.UNSUPPORTED_ESCAPE,
                    Span(start=start, end=start + 2),
                    f"unsupported escape sequence `\\{escape.group(1)}`",
                    expected='`\\"`, `\\\\`, `\\n`, `\\r` or `\\t`',
                    hint="write a backslash as `\\\\`",
                )
        value = _ESCAPE.sub(lambda m: _ESCAPES.get(m.group(1), m.group(1)), match.group(1))
        span = Span(start=match.start(), end=match.end())
        self.tokens.append(Token(kind=TokenKind.STRING, text=value, span=span))
        self.at = match.end()

    def _surrogates(self) -> None:
        # Outside strings and comments they are illegal like any other non-ASCII character.
        reported = {p.span.start for p in self.problems}
        for match in _SURROGATES.finditer(self.text):
            if match.start() not in reported:
                span = Span(start=match.start(), end=match.end())
                message = f"illegal character {_shown(match.group()[0])}: not a Unicode character"
                self._problem(LexicalKind.ILLEGAL_CHARACTER, span, message)

    def _problem(self, kind: LexicalKind, span: Span, message: str, **help: Unpack[Help]) -> None:
        self.problems.append(LexicalProblem(kind=kind, span=span, message=message, help=help))


def _shown(character: str) -> str:
    number = f"U+{ord(character):04X}"
    if not character.isprintable():
        return number
    quoted = f'"{character}"' if character == "'" else f"'{character}'"
    return quoted if character.isascii() else f"{quoted} ({number})"


def _illegal_hint(text: str) -> str | None:
    if text[0] == ";":
        return "nothing separates statements here; leave the semicolon out"
    if text[0] == "$":
        return "a variable is `$` and a name that starts with a lower-case letter or `_`"
    if text[0] in "'`“”‘’":
        return 'strings stand in straight double quotes: "…"'
    if text[0] == "#":
        return "comments are written `// …` or `/* … */`"
    return None if text[0].isascii() else "non-ASCII characters may stand in strings and comments"


# -- numbers ---------------------------------------------------------------------------------------
# Numbers written with an exponent, which neither language has.
#
# `1e3` is a word to the lexer, and `1.5e3` three tokens; the message says what is meant instead.


_EXPONENT = re.compile(r"[0-9]+(?:\.[0-9]+)?[eE][+-]?([0-9]+)(?![A-Za-z0-9_])")
_WRITTEN_OUT_MAX = 30
"""A greater exponent is not spelled out in digits."""
_NUMERIC = (TokenKind.INT, TokenKind.FLOAT, TokenKind.DIGIT_WORD)


def refuse_exponent(source: Source, token: Token, *, code: str | None = None) -> None:
    """Raise ``ParseFailure`` if a number with an exponent starts with this token."""
    if token.kind not in _NUMERIC:
        return
    found = _EXPONENT.match(source.text, token.span.start)
    if found is None:
        return
    digits = found.group(1).lstrip("0") or "0"
    short = len(digits) < 3 and int(digits) <= _WRITTEN_OUT_MAX
    plain = f": write {Decimal(found.group()):f}" if short else ""
    span = Span(start=found.start(), end=found.end())
    raise ParseFailure(f"numbers have no exponent here{plain}", span, code=code)
