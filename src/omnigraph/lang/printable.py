"""Text of unknown origin in messages: on one line, with nothing in it that cannot be seen."""

from __future__ import annotations

_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """The text with everything escaped that would break its line or not be seen."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _NAMED_ESCAPES.get(c) or _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
