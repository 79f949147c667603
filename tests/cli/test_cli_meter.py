"""The progress bar: only on a terminal, only after a while, gone at the end."""

from __future__ import annotations

import io
from threading import Event

import pytest
from rich.console import Console

from omnigraph.cli import output
from omnigraph.cli.meter import BarMeter, Meter, MeterUnit, amount_text
from omnigraph.cli.output import JsonOutput, TextOutput
from omnigraph.input.phases import LoadPhase, Phase


class _Screen(io.StringIO):
    """A terminal that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        self.changed.set()
        return written

    def isatty(self) -> bool:
        return True

    def await_text(self, text: str) -> None:
        while text not in self.getvalue():
            assert self.changed.wait(30), self.getvalue()
            self.changed.clear()


def _meter(screen: _Screen, *, delay_s: float, total: int | None = 2_000_000) -> Meter:
    console = Console(file=screen, force_terminal=True, width=100)
    return BarMeter(
        console,
        "reading",
        total,
        MeterUnit.BYTES,
        last_label="checking and writing",
        delay_s=delay_s,
    )


def test_a_short_operation_shows_nothing() -> None:
    screen = _Screen()
    with _meter(screen, delay_s=60) as meter:
        meter.advance_to(1)
    assert screen.getvalue() == ""


def test_a_long_operation_shows_how_far_it_is_and_then_that_it_writes() -> None:
    screen = _Screen()
    with _meter(screen, delay_s=0) as meter:
        screen.await_text("reading")
        meter.advance_to(1_500_000)
        screen.await_text("1.5 MB of 2.0 MB")
        meter.advance_to(2_000_000)
        screen.await_text("checking and writing")
        meter.advance_to(2_000_000)


def test_the_bar_starts_without_being_told_anything() -> None:
    screen = _Screen()
    with _meter(screen, delay_s=0.01, total=None):
        screen.await_text("0 B")


def test_reading_that_was_over_before_the_bar_came_shows_the_writing() -> None:
    screen = _Screen()
    with _meter(screen, delay_s=0.01) as meter:
        meter.advance_to(2_000_000)
        screen.await_text("checking and writing")


def test_the_phases_of_a_load_on_spark_are_shown_one_after_the_other() -> None:
    screen = _Screen()
    with _meter(screen, delay_s=0) as meter:
        meter.show_phase(LoadPhase(phase=Phase.STARTING))
        screen.await_text("starting Spark")
        meter.show_phase(LoadPhase(phase=Phase.READING, done=3, total=16))
        screen.await_text("3 of 16 tasks")
        meter.advance_to(2_000_000)  # All bytes were read; the tasks tell more than that.
        meter.show_phase(LoadPhase(phase=Phase.CHECKING, done=1, total=1_200))
        screen.await_text("1 of 1,200 tasks")
    assert "checking and writing" not in screen.getvalue()


def test_a_total_that_is_learned_on_the_way() -> None:
    screen = _Screen()
    console = Console(file=screen, force_terminal=True, width=100)
    with BarMeter(console, "Cleaning up", None, MeterUnit.PLACES, delay_s=0) as meter:
        meter.advance_of(3, 40)
        screen.await_text("3 of 40 places")
        meter.advance_of(1, 7)  # The second pass.
        screen.await_text("1 of 7 places")


def test_an_error_takes_the_bar_away() -> None:
    screen = _Screen()
    with pytest.raises(ValueError, match="stop"), _meter(screen, delay_s=0):
        screen.await_text("reading")
        raise ValueError("stop")
    # The cursor is shown again.
    assert screen.getvalue().rstrip().endswith(("\x1b[?25h", "\x1b[2K"))


def test_no_bar_for_programs_pipes_and_quiet_people(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(JsonOutput().meter("x", 1, MeterUnit.BYTES)) is Meter
    assert type(TextOutput().meter("x", 1, MeterUnit.BYTES)) is Meter
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    assert isinstance(TextOutput().meter("x", 1, MeterUnit.BYTES), BarMeter)
    assert type(TextOutput(quiet=True).meter("x", 1, MeterUnit.BYTES)) is Meter


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [
        (5, 10, MeterUnit.BYTES, "5 B of 10 B"),
        (1_500, None, MeterUnit.BYTES, "1.5 KB"),
        (12_000_000, 3_400_000_000, MeterUnit.BYTES, "12.0 MB of 3.4 GB"),
        (1_000, 25_000, MeterUnit.ENTITIES, "1,000 of 25,000 entities"),
        (7, None, MeterUnit.ENTITIES, "7 entities"),
        (7, 8, MeterUnit.TABLES, "7 of 8 tables"),
    ],
)
def test_amounts(done: int, total: int | None, unit: MeterUnit, text: str) -> None:
    assert amount_text(done, total, unit) == text
