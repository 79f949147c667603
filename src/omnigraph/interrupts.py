"""Ctrl-C while a write is being published: it waits until the store has answered.

    write -> hold -> commit sent -> answer -> [release] -> KeyboardInterrupt

An interrupt in the middle of the one commit that counts would leave open what became of it. So it
is kept back for that long, in the only thread that gets it. A second one is not.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from threading import current_thread, main_thread
from types import FrameType
from typing import Self

_Handler = Callable[[int, FrameType | None], object]


class InterruptGate:
    """Keeps an interrupt back between ``hold`` and ``release``."""

    def __init__(self) -> None:
        self._handler: _Handler | None = None
        self._holding = False
        self._kept = False

    def __enter__(self) -> Self:
        if current_thread() is main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):  # Else interrupts are ignored, or end the process.
                self._handler = handler
                signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        self._holding = False
        if self._handler is None:
            return
        signal.signal(signal.SIGINT, self._handler)
        if error is None:
            self._deliver()

    def hold(self) -> None:
        """From here on an interrupt waits."""
        self._holding = True

    def release(self) -> None:
        """From here on it does not; one that waited comes now."""
        self._holding = False
        self._deliver()

    def _deliver(self) -> None:
        if self._kept and self._handler is not None:
            self._kept = False
            self._handler(signal.SIGINT, None)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self._holding and not self._kept:
            self._kept = True
        elif self._handler is not None:
            self._handler(number, frame)
