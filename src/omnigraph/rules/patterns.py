r"""Patterns of ``@check``, searched in linear time wherever that is possible.

Python's engine tries one way after another: on ``^(a+)+$`` and forty letters it does not come back.
RE2, which Arrow brings along, cannot be caught like that, but its language is another one: ``$``,
``\d`` and ``\w`` mean something else. So a pattern is never handed over as it stands. Python's own
parser reads it, and what it read is spelled in terms that mean the same to both. What has no such
spelling (look-around, back references, ``\b``, flags, repetitions beyond RE2's limits) stays with
Python.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from omnigraph.arrow.compute import pc

_parser: Any = importlib.import_module("re._parser")
"""Not public in Python; an operation that this module does not know stays with Python's engine."""

_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}
_FLAGS = re.UNICODE | re.VERBOSE
"""Flags that change nothing once a pattern has been read."""


def texts_without(pattern: str, texts: pa.Array) -> pa.Array:
    """Those texts in which the pattern is found nowhere."""
    spelled = _accepted_by_re2(pattern)
    if spelled is not None:
        return texts.filter(pc.invert(pc.match_substring_regex(texts, pattern=spelled)))
    search = _compiled(pattern).search
    return pa.array([t for t in texts.to_pylist() if search(t) is None], texts.type)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@lru_cache(maxsize=256)
def _accepted_by_re2(pattern: str) -> str | None:
    spelled = re2_spelling(pattern)
    try:
        if spelled is not None:
            pc.match_substring_regex(pa.array([""]), pattern=spelled)
    except pa.ArrowInvalid:
        return None
    return spelled


def re2_spelling(pattern: str) -> str | None:
    """A pattern of RE2 that is found in the same texts as this one of Python, if there is one."""
    try:
        read = _parser.parse(pattern)
        if read.state.flags & ~_FLAGS:
            return None
        return _sequence(read, last=True)
    except (_NoSpelling, RecursionError):
        return None


class _NoSpelling(Exception):
    """RE2 has no word for this."""


def _sequence(items: Any, *, last: bool) -> str:
    end = len(items) - 1
    return "".join(_item(op.name, value, last and i == end) for i, (op, value) in enumerate(items))


def _item(name: str, value: Any, last: bool) -> str:
    """One operation; ``last`` if nothing of the pattern can come behind it."""
    match name, value:
        case "LITERAL", int():
            return _character(value)
        case "NOT_LITERAL", int():
            return f"[^{_character(value)}]"
        case "ANY", _:
            return r"[^\n]"
        case "IN", [*members]:
            return _set(members)
        case "AT", _:
            return _place(value.name, last)
        case "BRANCH", (_, branches):
            return f"(?:{'|'.join(_sequence(b, last=last) for b in branches)})"
        case "SUBPATTERN", (_, 0, 0, body):
            return f"(?:{_sequence(body, last=last)})"
        case (("MAX_REPEAT" | "MIN_REPEAT"), (low, high, body)):
            # Whether as much or as little as possible is taken decides what is found, not if.
            upper = "" if high == _parser.MAXREPEAT else int(high)
            return f"(?:{_sequence(body, last=False)}){{{int(low)},{upper}}}"
        case _:
            raise _NoSpelling(name)


def _place(name: str, last: bool) -> str:
    if name in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
        return r"\A"
    if name == "AT_END_STRING":
        return r"\z"
    if name == "AT_END" and last:
        # To Python `$` is also the place before a final line break. Here that is taken as well,
        # which makes no difference as long as nothing else wants it.
        return r"(?:\n?\z)"
    raise _NoSpelling(name)


def _set(members: Sequence[tuple[Any, Any]]) -> str:
    parts: list[str] = []
    for op, value in members:
        match op.name:
            case "NEGATE":
                parts.append("^")
            case "LITERAL":
                parts.append(_character(value))
            case "RANGE":
                parts.append(f"{_character(value[0])}-{_character(value[1])}")
            case "CATEGORY":
                parts.append(_category(value.name))
            case _:
                raise _NoSpelling(op.name)
    return f"[{''.join(parts)}]"


@lru_cache
def _category(name: str) -> str:
    r"""The members of ``\d``, ``\W`` …, asked of Python: RE2 has other tables."""
    words = name.removeprefix("CATEGORY_")
    escape = _CATEGORIES.get(words.removeprefix("NOT_"))
    if escape is None:
        raise _NoSpelling(name)
    wanted = escape.upper() if words.startswith("NOT_") else escape
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    runs = (found.span() for found in re.finditer(f"{wanted}+", every))
    return "".join(f"{_character(start)}-{_character(end - 1)}" for start, end in runs)


def _character(number: int) -> str:
    return f"\\x{{{number:X}}}"
