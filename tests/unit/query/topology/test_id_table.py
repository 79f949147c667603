"""A hash table of ids answers like a dict, also where hashes agree."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.query.topology import id_table as module
from omnigraph.query.topology.id_table import ABSENT, IdTable
from support.examples import examples

TEXTS = st.one_of(st.text(max_size=3), st.integers(0, 60).map(lambda n: f"p{n}"))


def texts(values) -> pa.StringArray:
    return pa.array(list(values), pa.string())


@settings(max_examples=examples(40))
@given(
    known=st.lists(TEXTS, unique=True, max_size=60),
    asked=st.lists(TEXTS, max_size=60),
    block=st.sampled_from([1, 7, 1 << 17]),
    rounds=st.sampled_from([1, 2, 256]),
    different=st.sampled_from([1, 3, 1 << 64]),
)
def test_a_table_is_a_dictionary(known, asked, block, rounds, different) -> None:
    """However few different hashes there are, and however soon an id gives up on slots."""

    def one(text: str) -> int:
        return hash(text) % different

    def many(values: pa.StringArray):
        return np.array([one(t) for t in values.to_pylist()], np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_ROWS", block)
        patch.setattr(module, "ROUNDS_MAX", rounds)
        patch.setattr(module, "text_hash", one)
        patch.setattr(module, "text_hashes", many)
        table = IdTable.build(texts(known))
        model = {text: number for number, text in enumerate(known)}
        right = [model.get(text, ABSENT) for text in asked]
        assert table.find(texts(asked)).tolist() == right
        assert [table.find_one(text) for text in asked] == right


def test_many_ids() -> None:
    ids = texts(f"person-{n}" for n in range(100_000))
    table = IdTable.build(ids)
    assert table.crowded == {}
    order = np.random.default_rng(3).permutation(100_000)
    assert (table.find(ids.take(pa.array(order))) == order).all()
    assert (table.find(texts(f"nobody-{n}" for n in range(1_000))) == ABSENT).all()
