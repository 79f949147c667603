"""Sorting by counting gives the order that comparing gives, whatever the numbers are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.query.exec import order as module
from support.examples import examples

KINDS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64, np.float64)


@st.composite
def sort_keys(draw: st.DrawFn, length: int) -> np.ndarray:
    kind = draw(st.sampled_from(KINDS))
    if np.dtype(kind).kind == "f":
        numbers = st.floats(-4, 4)
    else:
        bounds = np.iinfo(kind)
        near = draw(st.integers(int(bounds.min), int(bounds.max)))
        reach = draw(st.sampled_from([1, 300, 1 << 17, 1 << 40, 1 << 64]))
        numbers = st.integers(
            max(int(bounds.min), near - reach), min(int(bounds.max), near + reach)
        )
    return np.array(draw(st.lists(numbers, min_size=length, max_size=length)), kind)


@settings(max_examples=examples(100))
@given(st.data(), st.integers(0, 12), st.integers(1, 3), st.sampled_from([0, 16, 48, 64]))
def test_any_keys(data, length, count, bits):
    keys = [data.draw(sort_keys(length)) for _ in range(count)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "COUNTED_MIN", 0)
        patch.setattr(module, "COUNTED_BITS_MAX", bits)
        found = module._lexsort(keys, length)
    assert found.tolist() == np.lexsort(tuple(reversed(keys))).tolist()


@pytest.mark.parametrize("bits", [1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 62])
def test_large_keys(bits):
    dice = np.random.default_rng(bits)
    key = dice.integers(-(1 << (bits - 1)), 1 << (bits - 1), 5_000)
    key[::7] = key[0]
    for asked in (key, -key, np.sort(key), np.full(5_000, 3)):
        assert module.stable_order(asked).tolist() == np.argsort(asked, kind="stable").tolist()
