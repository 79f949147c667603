"""ULIDs: ascending, distinct, with their time, however many are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph import ids as module
from omnigraph.ids import SeededIds, SystemIds, derived_ulids
from omnigraph.testing.clock import ManualClock
from support.ulids import number


@pytest.mark.parametrize("count", [0, 1, 7, 16, 17, 10_000, 10_001, 70_000])
def test_many_at_once(count: int) -> None:
    clock = ManualClock()
    drawn = SystemIds(clock).ulids(count).to_pylist()
    assert drawn == sorted(set(drawn))
    assert len(drawn) == count
    assert all(len(text) == 26 for text in drawn)
    assert all(number(text) >> 80 == clock.now_us() // 1000 for text in drawn)


def test_batches_of_one_millisecond_do_not_meet() -> None:
    source = SystemIds(ManualClock())
    batches = [source.ulids(module.SORTED_MAX + 1).to_pylist() for _ in range(5)]
    assert len({text for batch in batches for text in batch}) == 5 * (module.SORTED_MAX + 1)


@pytest.mark.parametrize("count", [5, module.SORTED_MAX + 5])
def test_a_seed_gives_the_same_ids(count: int) -> None:
    one, two = (SeededIds(3, ManualClock()).ulids(count).to_pylist() for _ in range(2))
    assert one == two
    assert one != SeededIds(4, ManualClock()).ulids(count).to_pylist()


def test_few_are_spelled_as_many_are(monkeypatch: pytest.MonkeyPatch) -> None:
    few = SeededIds(3, ManualClock()).ulids(module.FEW_MAX).to_pylist()
    monkeypatch.setattr(module, "FEW_MAX", 0)
    assert few == SeededIds(3, ManualClock()).ulids(len(few)).to_pylist()
    one = SeededIds(5, ManualClock())
    assert one.ulid() == SeededIds(5, ManualClock()).ulids(1)[0].as_py()


def test_numbers_that_run_over_a_word_are_spelled_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_ROWS", 7)
    start = (5 << 80) + (1 << 64) - 10
    distances = np.arange(0, 40, dtype=np.uint64)
    assert [number(t) for t in module._from(start, distances).to_pylist()] == [
        start + d for d in range(40)
    ]


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5_000])
@pytest.mark.parametrize("low", [0, 1, 1023, (1 << 20) - 2, (1 << 64) - 1500, (1 << 79) - 1])
def test_ids_count_on_from_any_number(low: int, count: int) -> None:
    start = (7 << 80) + low
    found = module._consecutive(start, count).to_pylist()
    assert [number(text) for text in found] == list(range(start, start + count))


def test_derived_ids_ascend_with_source_and_line() -> None:
    run = SystemIds(ManualClock()).ulid()
    lines = np.array([0, 1, 500], np.int64)
    found = [*derived_ulids(run, 0, lines).to_pylist(), *derived_ulids(run, 1, lines).to_pylist()]
    assert found == sorted(set(found))
