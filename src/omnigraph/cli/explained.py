"""How a query is run, taken apart for programs.

graph.explain -> [explained] -> output
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.query.engine import Explanation

_STEP = re.compile(r"(?P<indent> *)(?P<step>.*)")
_NOTES = re.compile(
    r"  \[(?P<rows>\d+) rows, (?P<ms>[0-9.]+) ms, (?P<requests>\d+) requests"
    r"(?:, (?P<calls>\d+) times)?\]"
)
_INDENT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """An explanation, and which state it is about."""

    explanation: Explanation
    branch: str
    commit: str | None
    """As it was asked for."""

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``explain --json``."""
        found = self.explanation
        facts: dict[str, Any] = {
            "target": {"branch": self.branch, "commit": self.commit},
            "text": found.text,
            "steps": list(self._steps()),
        }
        if found.rows is not None and found.seconds is not None:
            facts |= {"row_count": found.rows, "elapsed_ms": round(found.seconds * 1e3, 3)}
        return facts

    def _steps(self) -> Iterator[dict[str, Any]]:
        """From the last step to the first, each with its depth; what it did, if it was run."""
        lines = self.explanation.text.rstrip("\n").split("\n")
        if self.explanation.rows is not None:
            lines.pop()  # The sum of all.
        for line in lines:
            notes = _NOTES.search(line)
            found = _STEP.fullmatch(line[: notes.start()] if notes else line)
            if found is None:
                continue
            step: dict[str, Any] = {
                "depth": len(found["indent"]) // _INDENT,
                "step": found["step"],
            }
            if notes:
                step |= {
                    "rows": int(notes["rows"]),
                    "elapsed_ms": float(notes["ms"]),
                    "requests": int(notes["requests"]),
                    "calls": int(notes["calls"] or 1),
                }
            yield step
