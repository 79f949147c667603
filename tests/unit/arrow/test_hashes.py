"""Hashes of texts: one text at a time and by arrays, the same numbers everywhere."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.arrow import hashes as module
from omnigraph.arrow.hashes import text_hash, text_hashes

TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["", "\0", "\0" * 8, "a" * 7, "a" * 8, "a" * 9, "ä" * 600, "x" * 512]),
    st.integers(500, 530).map(lambda n: "y" * n),
)


@given(st.lists(TEXTS, max_size=60), st.integers(0, 5), st.sampled_from([1, 3, 1 << 15]))
def test_arrays_and_single_texts_agree(texts: list[str], skipped: int, block: int) -> None:
    before = module.BLOCK_ROWS
    module.BLOCK_ROWS = block
    try:
        whole = text_hashes(pa.array(texts, pa.string()))
        part = text_hashes(pa.array(texts, pa.string()).slice(skipped))
    finally:
        module.BLOCK_ROWS = before
    assert whole.tolist() == [text_hash(t) for t in texts]
    assert part.tolist() == [text_hash(t) for t in texts[skipped:]]


def test_the_numbers_are_those_that_files_hold() -> None:
    texts = ("", "a", "person-0000001", "ä" * 600)
    assert [text_hash(t) for t in texts] == [
        0,
        0x54CDA58FEF23226F,
        0x1F090EF29C561860,
        0x217548F34A497EF8,
    ]


def test_texts_that_differ_anywhere_differ() -> None:
    """Long ids often agree at both ends."""
    texts = [
        f"https://example.org/item/{i:09}/the/same/long/end/of/every/id" for i in range(50_000)
    ]
    assert len(set(text_hashes(pa.array(texts)).tolist())) == len(texts)
