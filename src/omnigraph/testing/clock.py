"""A clock that moves only when it is told to.

Goes wherever a ``Clock`` goes; together with ``ids.SeededIds`` it makes a run reproducible to the
byte. Must not: wait. A sleep moves the clock and returns at once, so a loop that waits for another
process must be given the real clock.
"""

from __future__ import annotations

import threading

START_US = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""


class ManualClock:
    """A settable clock; sleeping advances it. Safe to share between threads."""

    def __init__(self, start_us: int = START_US) -> None:
        self._lock = threading.Lock()
        self._now_us = start_us
        self._monotonic_us = 0
        self.sleeps_s: list[float] = []
        """Every sleep that was asked for, in order: what a test of a back-off looks at."""

    def now_us(self) -> int:
        """Microseconds since the Unix epoch, UTC."""
        with self._lock:
            return self._now_us

    def monotonic_s(self) -> float:
        """Seconds that went by on this clock; setting the wall time does not change it."""
        with self._lock:
            return self._monotonic_us / 1_000_000

    def sleep(self, seconds: float) -> None:
        """Advance at once."""
        with self._lock:
            self.sleeps_s.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let time go by. Never back: use ``set_us`` to model a wall clock that was set back."""
        if seconds < 0:
            raise ValueError(f"time does not run backwards: {seconds}")
        step_us = round(seconds * 1_000_000)
        with self._lock:
            self._now_us += step_us
            self._monotonic_us += step_us

    def set_us(self, now_us: int) -> None:
        """Set the wall time, in either direction, as an operator or NTP would."""
        with self._lock:
            self._now_us = now_us
