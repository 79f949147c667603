"""Numbers written with an exponent, which neither language has.

`1e3` is a word to the lexer, and `1.5e3` three tokens; the message says what is meant instead.
"""

from __future__ import annotations

import re
from decimal import Decimal

from omnigraph.lang.cursor import ParseFailure
from omnigraph.lang.source import Source, Span
from omnigraph.lang.tokens import Token, TokenKind

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
