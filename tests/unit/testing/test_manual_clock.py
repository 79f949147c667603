"""The manual clock, alone and below the seeded ids."""

from __future__ import annotations

import pytest

from omnigraph.ids import SeededIds
from omnigraph.testing.clock import START_US, ManualClock


def test_time_moves_only_when_told():
    clock = ManualClock()
    assert clock.now_us() == clock.now_us() == START_US
    assert clock.monotonic_s() == 0


def test_sleep_advances_both_times_and_is_remembered():
    clock = ManualClock(start_us=0)
    clock.sleep(1.5)
    clock.advance(0.25)
    assert clock.now_us() == 1_750_000
    assert clock.monotonic_s() == 1.75
    assert clock.sleeps_s == [1.5]


def test_setting_the_wall_clock_back_leaves_the_monotonic_clock_alone():
    clock = ManualClock(start_us=5_000_000)
    clock.advance(2)
    clock.set_us(1)
    assert clock.now_us() == 1
    assert clock.monotonic_s() == 2


def test_time_does_not_run_backwards():
    with pytest.raises(ValueError, match="backwards"):
        ManualClock().advance(-1)


def test_with_seeded_ids_a_run_repeats_itself():
    def run():
        clock = ManualClock()
        ids = SeededIds(7, clock)
        first = ids.ulid()
        clock.advance(1)
        return first, ids.ulid(), ids.jitter()

    assert run() == run()
    first, second, _ = run()
    assert first < second
