"""A text in one of our languages, and places in it.

    [source] -> tokens -> cursor -> AST

Everything after the lexer speaks in character offsets; only a diagnostic needs line and column, so
they are computed here, once, when something is wrong.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Self, TypedDict, Unpack

from omnigraph.errors import Diagnostic, TextError


class Help(TypedDict, total=False):
    """What a diagnostic may say beside its message."""

    expected: str | None
    hint: str | None


SHOWN_MAX = 160
"""Characters of a source line in a message."""
SHOWN_BEFORE = 60
QUOTED_MAX = 200
"""Characters of a name or a text in a message."""
_LONG_QUOTE = re.compile(rf"`([^`]{{{QUOTED_MAX}}})[^`]+`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A half-open range of character offsets."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The range from the start of this one to the end of the other."""
        return Span(start=self.start, end=max(self.end, other.end))


@dataclass(frozen=True, kw_only=True)
class Source:
    """A named text."""

    name: str
    text: str

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column of a character."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a 1-based line, without its line break."""
        start = self._line_starts[number - 1]
        last = number == len(self._line_starts)
        end = len(self.text) if last else self._line_starts[number] - 1
        return self.text[start:end].removesuffix("\r")

    def diagnostic(
        self, *, code: str, message: str, span: Span, **help: Unpack[Help]
    ) -> Diagnostic:
        """A finding at this place. The underlined part never leaves the first line of the span."""
        number, column = self.position(span.start)
        # Half of a surrogate pair may be the very thing we complain about; it cannot be printed.
        text, left_out = _around(self.line(number), column - 1)
        text = text.encode("utf-8", "replace").decode("utf-8")
        length = max(1, min(span.end - span.start, len(text) + left_out - column + 1))
        said = {name: _shortened(words) for name, words in help.items() if isinstance(words, str)}
        return Diagnostic(
            code=code,
            message=_shortened(message),
            line=number,
            column=column,
            length=length,
            source_line=text,
            left_out=left_out,
            **said,
        )


def _shortened(message: str) -> str:
    """A message in which nothing that was quoted is very long."""
    return _LONG_QUOTE.sub(r"`\1…`", message) if len(message) > QUOTED_MAX else message


def _around(line: str, place: int) -> tuple[str, int]:
    """What is shown of a line, and how many characters come before it."""
    if len(line) <= SHOWN_MAX:
        return line, 0
    start = max(0, min(place - SHOWN_BEFORE, len(line) - SHOWN_MAX))
    end = start + SHOWN_MAX
    # An ellipsis takes the place of one character, so that columns stay what they are.
    shown = line[start:end]
    shown = f"…{shown[1:]}" if start else shown
    return (f"{shown[:-1]}…" if end < len(line) else shown), start


# -- printable -------------------------------------------------------------------------------------
# Text of unknown origin in messages: on one line, with nothing in it that cannot be seen.


_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """The text with everything escaped that would break its line or not be seen."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _NAMED_ESCAPES.get(c) or _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# -- findings --------------------------------------------------------------------------------------
# Everything that is wrong with one text, collected to be reported together.
#
#     lexer, parser, checks -> [findings] -> SchemaError or QueryError
#
# Each language has its own codes and its own error; how findings are kept, ordered and raised is
# the same for both and stands here.


class ExplainedCode(StrEnum):
    """Stable codes of findings, each with one line of explanation."""

    explanation: str

    def __new__(cls, code: str, explanation: str) -> Self:
        made = str.__new__(cls, code)
        made._value_ = code
        made.explanation = explanation
        return made


FINDINGS_MAX = 100
"""More is not read at once, and each finding carries its line: a long one must not fill memory."""


class TextFindings:
    """A growing list of diagnostics for one source."""

    def __init__(self, source: Source, error: type[TextError]) -> None:
        self.source = source
        self._error = error
        self._diagnostics: dict[Diagnostic, None] = {}

    def add(self, code: StrEnum, span: Span, message: str, **help: Unpack[Help]) -> None:
        """Record a finding; the same finding twice counts once, and ``FINDINGS_MAX`` are kept."""
        if len(self._diagnostics) >= FINDINGS_MAX:
            return
        found = self.source.diagnostic(code=str(code), message=message, span=span, **help)
        self._diagnostics[found] = None

    def include(self, found: Iterable[Diagnostic]) -> None:
        """Record what was found elsewhere about the same text; all of it is kept."""
        self._diagnostics.update(dict.fromkeys(found))

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings in the order of the text."""
        return tuple(sorted(self._diagnostics, key=lambda d: (d.line, d.column, d.code)))

    def raise_if_any(self) -> None:
        """Raise the language's error with all findings in the order of the text."""
        if self._diagnostics:
            raise self._error(self.source.name, self.diagnostics)
