"""The text index against a scan in plain Python, in every shape that its answers can take."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
import search_reference as reference
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.query.search import text_index
from omnigraph.query.search.analyzer import tokens
from omnigraph.query.search.text_index import Lists, TextIndex

WORDS = (
    "a",
    "b",
    "ab",
    "ba",
    "abc",
    "Caf\u00e9",
    "cafe",
    "\u6771",
    "\u4eac",
    "long" * 20,
    "-",
    "\u0301",
)
sentence = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join) | st.text(max_size=6)
columns = st.lists(st.none() | sentence, max_size=14)
queries = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join) | st.text(max_size=4)


@contextmanager
def dense(factor: int) -> Iterator[None]:
    """0: always sets of rows; large: always masks over all rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_index, "_DENSE", factor)
        yield


def words_of(values: list[str | None]) -> list[list[str] | None]:
    return [None if value is None else tokens(value) for value in values]


def grown(values: list[str | None], cuts: list[int]) -> TextIndex:
    """The index of the values, built from the first ones and extended by the others."""
    edges = sorted({0, len(values), *(min(c, len(values)) for c in cuts)})
    index = TextIndex.build(pa.array(values[: edges[0]], pa.string()))
    for low, high in itertools.pairwise(edges):
        index = index.extended(pa.array(values[low:high], pa.string()))
    return index


cuts = st.lists(st.integers(0, 14), max_size=3)
factors = st.sampled_from([0, 1, 2, 4, 16, 10**6])


@given(columns, queries, factors)
def test_search(values: list[str | None], query: str, factor: int) -> None:
    wanted, documents = tokens(query), words_of(values)
    expected = [i for i, d in enumerate(documents) if d and reference.search(d, wanted)]
    with dense(factor):
        assert TextIndex.build(pa.array(values, pa.string())).search(query).tolist() == expected


@given(columns, queries)
def test_phrase(values: list[str | None], query: str) -> None:
    wanted, documents = tokens(query), words_of(values)
    expected = [i for i, d in enumerate(documents) if d and reference.phrase(d, wanted)]
    assert TextIndex.build(pa.array(values, pa.string())).phrase(query).tolist() == expected


@given(columns, queries, st.integers(0, 5), factors)
def test_fuzzy(values: list[str | None], query: str, edits: int, factor: int) -> None:
    wanted, documents = tokens(query), words_of(values)
    expected = [i for i, d in enumerate(documents) if d and reference.fuzzy(d, wanted, edits)]
    with dense(factor):
        index = TextIndex.build(pa.array(values, pa.string()))
        assert index.fuzzy(query, edits).tolist() == expected


@given(columns, queries, st.none() | st.lists(st.integers(0, 13)), factors)
def test_bm25(
    values: list[str | None], query: str, candidates: list[int] | None, factor: int
) -> None:
    expected = reference.bm25(words_of(values), tokens(query))
    rows = None
    if candidates is not None:
        rows = np.array([c for c in candidates if c < len(values)], np.int64)
        expected = {row: score for row, score in expected.items() if row in rows}
    with dense(factor):
        found, scores = TextIndex.build(pa.array(values, pa.string())).bm25(query, rows)
    assert found.tolist() == sorted(expected)
    # The formula is evaluated in the documented order, so not even the last digit differs.
    assert scores.tolist() == [expected[row] for row in sorted(expected)]
    assert (found.dtype, scores.dtype) == (np.int64, np.float64)


@given(columns, cuts, queries, st.integers(0, 3))
def test_an_extended_index_answers_as_a_new_one(
    values: list[str | None], at: list[int], query: str, edits: int
) -> None:
    whole, parts = TextIndex.build(pa.array(values, pa.string())), grown(values, at)
    assert parts.search(query).tolist() == whole.search(query).tolist()
    assert parts.phrase(query).tolist() == whole.phrase(query).tolist()
    assert parts.fuzzy(query, edits).tolist() == whole.fuzzy(query, edits).tolist()
    for one, other in zip(parts.bm25(query), whole.bm25(query), strict=True):
        assert one.tolist() == other.tolist()
    assert parts.documents == whole.documents
    assert parts.lengths.tolist() == whole.lengths.tolist()


def test_extending_leaves_the_old_index_alone() -> None:
    old = TextIndex.build(pa.array(["a b", "b c"]))
    new = old.extended(pa.array(["c d", None, "a"]))
    assert old.search("a d").tolist() == [0]
    assert new.search("a d").tolist() == [0, 2, 4]
    assert new.nbytes > old.nbytes > 0


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize("values", [[], [None, None], ["", "..."], [None, "", "!"]])
def test_nothing_to_find(values: list[str | None]) -> None:
    index = TextIndex.build(pa.array(values, pa.string()))
    for found in (index.search("a"), index.phrase("a b"), index.fuzzy("a", 9), *index.bm25("a")):
        assert found.tolist() == []
    extended = index.extended(pa.array(["a"]))
    assert extended.search("a").tolist() == [len(values)]


@pytest.mark.parametrize("query", ["", "  ", "?!", "\u0301", "\ud800"])
def test_a_query_without_words_matches_nothing(query: str) -> None:
    index = TextIndex.build(pa.array(["a", "", None, "b"]))
    for found in (index.search(query), index.phrase(query), index.fuzzy(query, 3)):
        assert found.tolist() == []
        assert found.dtype == np.int64
    assert [part.tolist() for part in index.bm25(query, np.array([0, 1]))] == [[], []]


def test_phrases_do_not_cross_rows_and_may_overlap() -> None:
    index = TextIndex.build(pa.array(["x a", "b y", None, "a a a b", "b a", "a b a b", "a, B"]))
    assert index.phrase("a b").tolist() == [3, 5, 6]
    assert index.phrase("a a").tolist() == [3]
    assert index.phrase("a a a a").tolist() == []
    assert index.phrase("b a b").tolist() == [5]
    assert index.phrase("a missing").tolist() == []


def test_ideographs_are_found_as_phrases() -> None:
    index = TextIndex.build(pa.array(["\u6771\u4eac\u90fd", "\u4eac\u90fd", "\u6771\u90fd"]))
    assert index.phrase("\u4eac\u90fd").tolist() == [0, 1]
    assert index.search("\u6771").tolist() == [0, 2]


def test_repeating_a_word_in_the_query_changes_no_score() -> None:
    index = TextIndex.build(pa.array(["fox fox dog", "fox", "dog cat"]))
    for once, twice in zip(index.bm25("fox dog"), index.bm25("fox dog Fox FOX"), strict=True):
        assert once.tolist() == twice.tolist()


def test_statistics_are_those_of_the_column_not_of_the_candidates() -> None:
    index = TextIndex.build(pa.array(["fox", "fox dog", "cat", None, "fox"]))
    rows, scores = index.bm25("fox")
    some_rows, some_scores = index.bm25("fox", np.array([4, 1, 1, 3]))
    assert some_rows.tolist() == [1, 4]
    assert some_scores.tolist() == scores[np.isin(rows, [1, 4])].tolist()


@pytest.mark.parametrize("some", [slice(3), slice(1, None), slice(None, None, 2)])
def test_rare_words_among_few_and_many_candidates(some: slice) -> None:
    index = TextIndex.build(pa.array(["rare"] + ["dog"] * 98 + ["rare dog"]))
    candidates = np.arange(100)[some]
    for query in ("rare", "rare dog"):
        rows, scores = index.bm25(query)
        among = np.isin(rows, candidates)
        found, found_scores = index.bm25(query, candidates)
        assert found.tolist() == rows[among].tolist()
        assert found_scores.tolist() == scores[among].tolist()


def test_fuzzy_without_edits_is_search_and_below_it_nothing() -> None:
    index = TextIndex.build(pa.array(["harbour", "harbor", "arbor"]))
    assert index.fuzzy("harbor", 0).tolist() == [1]
    assert index.fuzzy("harbor", 1).tolist() == [0, 1, 2]
    assert index.fuzzy("harbor", -1).tolist() == []


def test_rows_as_a_mask() -> None:
    index = TextIndex.build(pa.array(["a", None, "a b"]))
    assert index.mask(index.search("a")).tolist() == [True, False, True]
    assert index.mask(index.search("z")).tolist() == [False, False, False]


def test_chunks_and_long_texts() -> None:
    long_text = "tick " * 50_000 + "boom"
    column = pa.chunked_array([["tick boom"], [], [long_text, None], ["boom tick"]])
    index = TextIndex.build(column)
    assert index.phrase("tick boom").tolist() == [0, 1]
    assert index.lengths.tolist() == [2, 50_001, 0, 2]
    rows, scores = index.bm25("boom")
    assert rows.tolist() == [0, 1, 3]
    assert scores[0] == scores[2] > scores[1]


def test_more_words_than_a_16_bit_number_can_name() -> None:
    random = np.random.default_rng(5)
    numbers = random.integers(0, 100_000, (2_000, 60))
    index = TextIndex.build(pa.array([" ".join(map(str, row)) for row in numbers.tolist()]))
    assert len(index.terms) > 1 << 16
    for wanted in numbers[:3, 0].tolist():
        expected = np.flatnonzero((numbers == wanted).any(axis=1))
        assert index.search(str(wanted)).tolist() == expected.tolist()
    for row in (0, 999, 1_999):
        pair = " ".join(map(str, numbers[row, 30:32].tolist()))
        assert row in index.phrase(pair).tolist()


def test_lists_grow_wider_when_they_must() -> None:
    low = Lists(starts=np.array([0, 1, 2]), values=np.array([7, 8], np.int32))
    high = Lists(starts=np.array([0, 1, 1, 3]), values=np.array([2**31, 2**31 + 5, 2**31 + 9]))
    both = low.followed_by(high)
    assert [both.of(w).tolist() for w in range(3)] == [[7, 2**31], [8], [2**31 + 5, 2**31 + 9]]


def test_places_beyond_32_bits_are_kept_wide() -> None:
    found = text_index.analyse(pa.array(["a b a", "b"]))
    _, _, places = text_index._lists(found, found.words, 2, row=0, place=2**31)
    assert places.values.tolist() == [2**31, 2**31 + 2, 2**31 + 1, 2**31 + 4]
