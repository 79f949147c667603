"""What is wrong with the input, collected and reported all at once.

    jsonl | records | tables -> [problems] -> InputError

A reader that stops at the first bad line makes its user run it again for every mistake; one that
lists a million bad lines is no help. So problems are collected up to a bound. Nothing here knows
where problems come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.errors import InputError
from omnigraph.lang.source import one_line

PROBLEMS_MAX = 20
"""Reading stops after this many."""


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


def input_error(
    problems: Sequence[Problem], *, stopped: bool = False, total: int | None = None
) -> InputError:
    """The error with the first problems.

    ``stopped``: reading ended before the input did; else ``total`` is how many there are.
    """
    lines = [str(p) for p in problems]
    count = len(problems) if total is None else total
    if stopped:
        lines.append(f"stopped reading after {len(problems)} problems")
    elif count > len(problems):
        lines.append(f"and {count - len(problems)} more problems")
    return InputError(
        "\n".join(lines),
        details={
            "problems": [p.to_dict() for p in problems],
            "problem_count": count,
            "stopped": stopped,
        },
    )
