"""How far a long operation is: a bar on stderr, shown only when there is something to wait for.

    library's progress callback -> [Meter] -> rich.progress, from the first second on

A timer starts the bar, not the callback: the library reads first and then checks and writes without
calling back, and that part can be the long one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import StrEnum
from threading import Lock, Timer
from typing import TYPE_CHECKING, Self

from omnigraph.cli.lines import size_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from omnigraph.input.phases import LoadPhase

DELAY_S = 1.0
"""Shorter operations show no bar."""


class MeterUnit(StrEnum):
    """What is counted."""

    BYTES = "bytes"
    ENTITIES = "entities"
    PLACES = "places"
    """Tables, and what else there is."""
    TABLES = "tables"


class Meter(AbstractContextManager["Meter"]):
    """Takes how much is done, from any thread, as long as it is entered; shows nothing itself."""

    def advance_to(self, done: int) -> None:
        """So much is done in all."""

    def advance_of(self, done: int, total: int) -> None:
        """So much is done of so much in all: for work that learns that on the way."""

    def show_phase(self, said: LoadPhase) -> None:
        """What is being done now: an operation on Spark has phases, and counts their tasks."""

    def __exit__(self, *error: object) -> None:
        """The operation is over."""


class BarMeter(Meter):
    """A bar on a terminal."""

    def __init__(
        self,
        console: Console,
        label: str,
        total: int | None,
        unit: MeterUnit,
        *,
        last_label: str | None = None,
        delay_s: float = DELAY_S,
    ) -> None:
        self._console = console
        self._label = label
        self._total = total
        self._unit = unit
        self._last_label = last_label
        self._done = 0
        self._phase: LoadPhase | None = None
        self._bar: Progress | None = None
        self._over = False
        self._lock = Lock()
        self._timer = Timer(delay_s, self._start)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def advance_to(self, done: int) -> None:
        """So much is done in all; at the total the last, unmeasured part of the work begins."""
        with self._lock:
            self._done = done
            if self._bar is not None:
                self._show(self._bar)

    def advance_of(self, done: int, total: int) -> None:
        """As ``advance_to``; work of several passes starts over with each."""
        with self._lock:
            self._done, self._total = done, total
            if self._bar is not None:
                self._bar.update(self._bar.tasks[0].id, total=total)
                self._show(self._bar)

    def show_phase(self, said: LoadPhase) -> None:
        """A bar of its own for each phase, in place of the one before."""
        with self._lock:
            self._phase = said
            if self._bar is not None:
                self._show(self._bar)

    def _start(self) -> None:
        # rich.progress is only imported once there is a bar to show.
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[amount]}"),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
                # The streams of the process are not this thread's to replace.
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._bar.add_task(self._label, total=self._total, amount="")
            self._show(self._bar)
            self._bar.start()

    def _show(self, bar: Progress) -> None:
        if self._phase is not None:
            self._show_tasks(bar, self._phase)
            return
        measured = bar.tasks[0].id
        bar.update(
            measured,
            completed=self._done,
            amount=amount_text(self._done, self._total, self._unit),
        )
        reached = self._total is not None and self._done >= self._total
        if self._last_label and reached and len(bar.tasks) == 1:
            # A task without a total pulses; rich cannot take the total away from the first one.
            bar.add_task(self._last_label, total=None, amount="")
            bar.update(measured, visible=False)

    def _show_tasks(self, bar: Progress, said: LoadPhase) -> None:
        if bar.tasks[-1].description != said.phase:
            bar.update(bar.tasks[-1].id, visible=False)
            bar.add_task(said.phase, total=None, amount="")
        if said.total:
            amount = f"{said.done:,} of {said.total:,} tasks"
            bar.update(bar.tasks[-1].id, completed=said.done, total=said.total, amount=amount)


def amount_text(done: int, total: int | None, unit: MeterUnit) -> str:
    """``12.0 MB of 34.0 MB``, ``5 of 7 entities``; without a total only what is done."""
    if unit is MeterUnit.BYTES:
        return size_text(done) if total is None else f"{size_text(done)} of {size_text(total)}"
    return f"{done:,} {unit}" if total is None else f"{done:,} of {total:,} {unit}"
