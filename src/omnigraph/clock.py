"""Time, injected. Nothing else in the package reads the wall clock or sleeps (ruff sees to it)."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """What the package may know about time."""

    def now_us(self) -> int:
        """Microseconds since the Unix epoch, UTC."""
        ...

    def monotonic_s(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The real clock."""

    def now_us(self) -> int:
        """Microseconds since the Unix epoch, UTC."""
        return time.time_ns() // 1000

    def monotonic_s(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
