"""Where rows came from, by stretches."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.rules.table_delta import Origins


def test_every_row_has_its_source_and_line() -> None:
    stretches = [
        (0, range(0)),
        (0, range(3, 5)),
        (1, np.array([7, 9], np.int64)),
        (2, np.empty(0, np.int64)),
        (1, range(20, 21)),
        (0, range(0)),
    ]
    origins = Origins.of(["a", "b", "c"], stretches)
    expected = [("a", 3), ("a", 4), ("b", 7), ("b", 9), ("b", 20)]
    assert [origins.at(row) for row in range(5)] == expected


@pytest.mark.parametrize("count", [1, 10_000_000])
def test_rows_behind_each_other_take_no_room(count: int) -> None:
    origins = Origins.of(["a"], [(0, range(1, count + 1))])
    assert origins.at(count - 1) == ("a", count)
    assert len(origins.firsts) == 1
