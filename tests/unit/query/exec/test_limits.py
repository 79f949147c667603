"""What a query may use: where the numbers come from, and how a breach is told."""

from __future__ import annotations

import pytest

from omnigraph.errors import LimitError, UsageError
from omnigraph.query.exec.columns import KeptColumn
from omnigraph.query.exec.limits import (
    CACHE_DEFAULT,
    CACHE_VARIABLE,
    MEMORY_DEFAULT,
    MEMORY_VARIABLE,
    TIMEOUT_VARIABLE,
    Guard,
    Limits,
)
from omnigraph.testing.clock import ManualClock


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch):
    for name in (MEMORY_VARIABLE, TIMEOUT_VARIABLE, CACHE_VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_defaults_and_who_wins(monkeypatch):
    assert Limits.of(None, None) == Limits(timeout_s=None, memory_bytes=MEMORY_DEFAULT)
    monkeypatch.setenv(TIMEOUT_VARIABLE, "2.5")
    monkeypatch.setenv(MEMORY_VARIABLE, "1e6")
    assert Limits.of(None, None) == Limits(timeout_s=2.5, memory_bytes=1_000_000)
    assert Limits.of(7.0, 3) == Limits(timeout_s=7.0, memory_bytes=3)
    monkeypatch.setenv(TIMEOUT_VARIABLE, "")
    assert Limits.of(None, None).timeout_s is None


@pytest.mark.parametrize("text", ["abc", "0", "-1", "nan", "inf", "1 GB"])
def test_a_memory_limit_that_is_none(monkeypatch, text):
    monkeypatch.setenv(MEMORY_VARIABLE, text)
    with pytest.raises(UsageError):
        Limits.of(None, None)


@pytest.mark.parametrize("text", ["abc", "0", "-1", "nan", "5s"])
def test_a_timeout_that_is_none(monkeypatch, text):
    monkeypatch.setenv(TIMEOUT_VARIABLE, text)
    with pytest.raises(UsageError):
        Limits.of(None, None)


@pytest.mark.parametrize(("timeout_s", "memory_bytes"), [(0, None), (-1.0, None), (None, 0)])
def test_arguments_out_of_range(timeout_s, memory_bytes):
    with pytest.raises(UsageError):
        Limits.of(timeout_s, memory_bytes)


@pytest.mark.parametrize("text", ["abc", "nan", "inf", "1 GB"])
def test_a_cache_size_that_is_none(monkeypatch, text):
    monkeypatch.setenv(CACHE_VARIABLE, text)
    with pytest.raises(UsageError):
        KeptColumn()


def test_cache_sizes(monkeypatch):
    assert KeptColumn().bytes_max == CACHE_DEFAULT
    monkeypatch.setenv(CACHE_VARIABLE, "0")
    assert KeptColumn().bytes_max == 0
    monkeypatch.setenv(CACHE_VARIABLE, "2e6")
    assert KeptColumn().bytes_max == 2_000_000


def test_time_is_up_only_after_the_deadline():
    clock = ManualClock()
    guard = Guard(Limits(timeout_s=2.0), clock)
    clock.advance(2.0)
    guard.check_time("here")
    clock.advance(0.001)
    with pytest.raises(LimitError) as caught:
        guard.check_time("here")
    assert caught.value.details == {"limit": "time", "timeout_s": 2.0, "step": "here"}
    # Setting the wall clock back gives no more time.
    clock.set_us(0)
    with pytest.raises(LimitError):
        guard.check_rows(1, 1, "there")


def test_without_a_timeout_the_clock_is_not_asked():
    class Never(ManualClock):
        def monotonic_s(self):
            raise AssertionError("asked")

    Guard(Limits(), Never()).check_rows(1, 1, "here")


def test_rows_are_judged_by_rows_and_columns():
    guard = Guard(Limits(memory_bytes=1_000), ManualClock())
    guard.check_rows(20, 1, "here")
    with pytest.raises(LimitError) as caught:
        guard.check_rows(21, 1, "here")
    assert caught.value.details == {
        "limit": "memory",
        "memory_bytes": 1_000,
        "rows": 21,
        "step": "here",
    }
    with pytest.raises(LimitError):
        guard.check_rows(20, 2, "here")


def test_sizes_beyond_any_unit():
    with pytest.raises(LimitError) as caught:
        Guard(Limits(), ManualClock()).check_rows(10**20, 3, "here")
    assert "TiB" in str(caught.value)
