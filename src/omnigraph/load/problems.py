"""What is wrong with the input, collected and told all at once.

    jsonl | records | tables -> [problems] -> InputError

A reader that stops at the first bad line makes its user run it again for every mistake; one that
lists a million bad lines tells nothing. So problems are collected up to a bound. Nothing here knows
where problems come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from omnigraph.errors import InputError

PROBLEMS_MAX = 20
"""Reading stops after this many."""
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """The text with everything escaped that would break its line or not be seen."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _NAMED_ESCAPES.get(c) or _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong at one place of the input."""

    message: str
    line: int | None = None
    """1-based line of a text, 1-based row otherwise; None when the whole source is meant."""
    column: int | None = None
    """1-based character in the line, for malformed JSON."""
    source: str = ""

    def __str__(self) -> str:
        place = [self.source, *(str(n) for n in (self.line, self.column) if n is not None)]
        return one_line(f"{':'.join(place)}: {self.message}")

    def at(self, source: str, lines_before: int) -> Problem:
        """The same problem, placed in its source instead of in a block of it."""
        line = None if self.line is None else self.line + lines_before
        return replace(self, source=source, line=line)

    def to_dict(self) -> dict[str, Any]:
        """The problem as plain JSON data, without absent fields."""
        names = ("source", "line", "column", "message")
        fields = {n: v for n in names if (v := getattr(self, n)) is not None}
        return fields | {"message": one_line(self.message)}


def input_error(problems: Sequence[Problem], *, stopped: bool = False) -> InputError:
    """The error that tells all of them; ``stopped``: reading ended before the input did."""
    lines = [str(p) for p in problems]
    if stopped:
        lines.append(f"stopped reading after {len(problems)} problems")
    return InputError(
        "\n".join(lines),
        details={
            "problems": [p.to_dict() for p in problems],
            "problem_count": len(problems),
            "stopped": stopped,
        },
    )


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the nearest known word, or nothing."""
    folded = {k.lower(): k for k in known}
    near = get_close_matches(word.lower(), folded, n=1)
    return f" (did you mean '{folded[near[0]]}'?)" if near else ""
