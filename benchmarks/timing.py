"""Arms that take turns in one run, and tables of what came of it."""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Timed:
    """The seconds of one arm, warm-up left out."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def interleaved(
    arms: Mapping[str, Callable[[], None]], rounds: int, *, warm: int = 1, seed: int = 1
) -> dict[str, Timed]:
    """Every arm once a round, in random order; the first rounds warm caches, the JVM, workers."""
    seconds: dict[str, list[float]] = {name: [] for name in arms}
    order = random.Random(seed)
    for turn in range(rounds + warm):
        for name in order.sample(list(arms), len(arms)):
            started = time.perf_counter()
            arms[name]()
            if turn >= warm:
                seconds[name].append(time.perf_counter() - started)
    return {name: Timed(seconds=tuple(values)) for name, values in seconds.items()}


class Report:
    """What a benchmark found: printed as it comes, and kept for ``--json``."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}
        self.goals: list[dict[str, Any]] = []

    def goal(self, what: str, value: float, limit: float, unit: str = "x") -> None:
        """A figure that must not pass a limit."""
        met = value <= limit
        self.goals.append({"what": what, "value": value, "limit": limit, "met": met})
        verdict = "met" if met else "MISSED"
        print(f"  {what:58} {value:6.2f}{unit}   goal <= {limit:g}{unit}   {verdict}")

    def save(self, path: str | None) -> None:
        if path is not None:
            found = {"figures": self.figures, "goals": self.goals}
            Path(path).write_text(json.dumps(found, indent=2) + "\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns: the first to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  " + "  ".join(cells))
