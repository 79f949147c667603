"""What a load is doing at the moment, for a user that waits for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """The parts of a load on Spark, in their order. A lost race leads back to ``CHECKING``."""

    STARTING = "starting Spark"
    READING = "reading"
    CHECKING = "checking"
    WRITING = "writing"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPhase:
    """How far a phase is."""

    phase: Phase
    done: int = 0
    """Tasks that are done."""
    total: int = 0
    """Tasks that are known; later ones may follow from the outcome of these. 0: none yet."""

    def __str__(self) -> str:
        return f"{self.phase}, {self.done} of {self.total} tasks" if self.total else self.phase


TellPhase = Callable[[LoadPhase], None]
"""Called from any thread."""
