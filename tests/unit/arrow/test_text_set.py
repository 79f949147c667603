"""A set of texts answers as a Python set does, whatever the hash and however the texts lie."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.arrow import hashes, text_set
from omnigraph.arrow.text_set import TextSet
from support.examples import examples

TEXTS = st.one_of(
    st.none(),
    st.text("ab", max_size=3),
    st.text("aé\x00", max_size=20),
    st.builds(lambda n, tail: "x" * n + tail, st.integers(0, 70), st.sampled_from(["", "a", "b"])),
)
KINDS = st.sampled_from([pa.string(), pa.large_string()])


def chunked(values: list[str | None], kind: pa.DataType, cuts: list[int]) -> pa.ChunkedArray:
    """The values in several chunks, each a slice of a longer array."""
    padded = pa.array(["before", *values, "after"], kind)
    edges = sorted({0, len(values), *(c % (len(values) + 1) for c in cuts)})
    return pa.chunked_array([padded.slice(a + 1, b - a) for a, b in pairwise(edges)], kind)


@pytest.fixture(params=["hashes tell texts apart", "hashes tell nothing", "few rounds"])
def hashing(request, monkeypatch):
    """Small blocks, so that texts of several of them are open at once; and bad luck."""
    monkeypatch.setattr(hashes, "BLOCK_ROWS", 3)
    monkeypatch.setattr(text_set, "_FEW_ROWS", 1)
    if request.param == "hashes tell nothing":
        monkeypatch.setattr(hashes, "mix", lambda found, word: found.fill(7))
    if request.param == "few rounds":
        monkeypatch.setattr(text_set, "ROUNDS_MAX", 2)
        monkeypatch.setattr(hashes, "mix", lambda found, word: found.fill(7))


@pytest.mark.usefixtures("hashing")
class TestAnyHash:
    @settings(deadline=None, max_examples=examples(100))
    @given(
        st.lists(TEXTS, max_size=20),
        st.lists(TEXTS, max_size=20),
        st.lists(st.integers(0, 30), max_size=3),
        KINDS,
        KINDS,
    )
    def test_as_a_set_does(self, known, asked, cuts, kind, other):
        found = TextSet(chunked(known, kind, cuts)).holds(chunked([*asked, *known], other, cuts))
        names = set(known) - {None}
        assert found.tolist() == [text in names for text in [*asked, *known]]


@pytest.mark.parametrize(
    "form", ["p{}", "{:08d}", "{:026d}", "{:064d}", "{:065d}", "{}" + "z" * 30]
)
def test_many_texts(form):
    numbers = np.random.default_rng(5).permutation(60_000).tolist()
    texts = [form.format(n) for n in numbers]
    found = TextSet(pa.array(texts[:40_000])).holds(pa.chunked_array([texts[20_000:], texts[:9]]))
    assert found.tolist() == [True] * 20_000 + [False] * 20_000 + [True] * 9


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ("a", "\0a"),
        ("\0" * 8, "\0" * 7),
        ("12345678", "x12345678"),
        ("x" + "=" * 32 + "y" * 24, "z" + "=" * 32 + "y" * 24),
        ("", "\0"),
    ],
)
def test_texts_of_equal_words_or_ends_are_told_apart(known, other, monkeypatch):
    """Equal in their hash, too, as an edge that names no node may be."""
    monkeypatch.setattr(hashes, "mix", lambda found, word: None)
    assert TextSet(pa.array([known])).holds(pa.array([other, known])).tolist() == [False, True]
    assert TextSet(pa.array([other])).holds(pa.array([other, known])).tolist() == [True, False]


def test_the_same_text_many_times():
    texts = TextSet(pa.array(["same"] * 50_000 + ["other"]))
    assert texts.holds(pa.array(["same", "other", "third", None])).tolist() == [
        True,
        True,
        False,
        False,
    ]


def test_nothing_is_among_nothing():
    assert TextSet(pa.array([], pa.string())).holds(pa.array(["", None])).tolist() == [False, False]
    assert TextSet(pa.array(["a"])).holds(pa.chunked_array([], pa.string())).tolist() == []
