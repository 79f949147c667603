"""How a query is run, taken apart for programs.

graph.explain -> [explained] -> output
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.query.engine import ExplainedStep, Explanation


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
            "steps": [_step(step) for step in found.steps],
            "notices": [notice.to_dict() for notice in found.notices],
        }
        if found.rows is not None and found.seconds is not None:
            facts |= {"row_count": found.rows, "elapsed_ms": round(found.seconds * 1e3, 3)}
        return facts


def _step(step: ExplainedStep) -> dict[str, Any]:
    facts: dict[str, Any] = {"depth": step.depth, "step": step.text}
    if step.notes is not None:
        facts |= {
            "rows": step.notes.rows,
            "elapsed_ms": round(step.notes.seconds * 1e3, 3),
            "requests": step.notes.requests,
            "calls": step.notes.calls,
        }
    return facts
