"""One line of text as strict JSON: RFC 8259 and not a character more.

Python's `json` takes `NaN`, keeps the last of two equal members, rounds numbers to 64 bits and lets
half of a surrogate pair through; here all of these are refused or kept exact. The exact path is
built on this; the fast path must never accept a line that this refuses.
"""

from __future__ import annotations

import json
from typing import Any, Never, cast

from omnigraph.schema.property_values import NumberText, shown

_DIGITS_MAX = 400
"""Longer integers fit no type; `int()` itself refuses above some thousand digits."""


class LineRefused(Exception):
    """The line is not strict JSON."""

    def __init__(self, message: str, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


def parse_line(raw: bytes) -> Any:
    """The JSON value of one line; numbers that are not plain integers come as ``NumberText``."""
    try:
        line = raw.decode()
    except UnicodeDecodeError as error:
        raise LineRefused(
            f"not valid UTF-8: byte 0x{raw[error.start]:02x} at byte {error.start + 1} of the line"
        ) from None
    try:
        value = _DECODER.decode(line)
    except json.JSONDecodeError as error:
        raise LineRefused(f"not valid JSON: {_in_our_words(error.msg)}", error.pos + 1) from None
    except RecursionError:
        raise LineRefused("not readable: nested too deeply") from None
    # Only an escape can bring a lone surrogate in: decoding UTF-8 has refused the others.
    if "\\u" in line and _has_half_pair(value):
        raise LineRefused("not valid JSON: a \\u escape is half of a surrogate pair")
    return value


def _in_our_words(message: str) -> str:
    return next((ours for start, ours in _WORDS if message.startswith(start)), message)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise LineRefused(f"not valid input: member {shown(name)} occurs twice")
            seen.add(name)
    return members


def _constant(name: str) -> Never:
    raise LineRefused(f"not valid JSON: {name} is not a number of JSON")


def _integer(digits: str) -> int | NumberText:
    if digits == "-0" or len(digits) > _DIGITS_MAX:
        return NumberText(digits)
    return int(digits)


def _has_half_pair(value: Any) -> bool:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return True
        return False
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return any(_has_half_pair(k) or _has_half_pair(v) for k, v in members.items())
    if isinstance(value, list):
        return any(_has_half_pair(v) for v in cast("list[Any]", value))
    return False


_WORDS = (
    ("Expecting value", "this is not a JSON value"),
    ("Extra data", "text after the end of the object"),
    ("Invalid control character", "a control character must be escaped"),
    ("Unterminated string", "the string has no closing quote"),
    ("Invalid \\uXXXX escape", "\\u needs four hexadecimal digits"),
    ("Invalid \\escape", "JSON has no such escape"),
    ("Expecting property name", "expected the name of a member in double quotes"),
    ("Expecting ':' delimiter", "expected ':' after the name of a member"),
    ("Expecting ',' delimiter", "expected ',' or the end of the object or array"),
    ("Illegal trailing comma", "a comma before the end"),
)
"""How messages of Python's decoder begin, and what we say instead."""

_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_float=NumberText,
    parse_int=_integer,
    parse_constant=_constant,
    strict=True,
)
