"""What a word is, and that a column and a text have the same ones."""

from __future__ import annotations

import itertools
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
import search_reference as reference
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.query.search import analyzer
from omnigraph.query.search.analyzer import analyse, fold, tokens

ODD = (
    "aZz09 _-'.\n\u00df\u00e9\u0301\u0345\u00d8\u00c6\u0130\u0131\u03a3\u03c2\uff76\uff9e\u6771\u4eac\u3042\u3099\u309f\u30fc\u00bd\u2122\u00b2\u2460\u2474"
    "\u00ad\u200b\u200c\u200d\ufeff\u0600\u05d0\u05b8\u0623\u064f\u0939\u093f\u094d\uac00\u1100\u1161\U00020000\ufa0e\ufe0f\U000e0100"
    "\ufdfa\u037a\u2260\u0338\u212a\ufb01\u01c5\u13a0\uab70\U0001f600\x00"
)
text = st.one_of(st.text(), st.text(alphabet=ODD), st.text(alphabet="ab \u6771\u00e9\u0301"))
rows = st.lists(st.none() | text, max_size=12)


@pytest.mark.parametrize(
    ("given_text", "words"),
    [
        ("", []),
        (" \t\n.,;", []),
        ("The quick, brown FOX!", ["the", "quick", "brown", "fox"]),
        ("don't snake_case e-mail a1b2 3.14", ["don", "t", "snake", "case", "e", "mail", "a1b2", "3", "14"]),
        ("Caf\u00e9 Cafe\u0301 CAFE", ["cafe", "cafe", "cafe"]),
        ("Stra\u00dfe STRASSE", ["strasse", "strasse"]),
        ("\u03bf\u03b4\u03cc\u03c2 \u039f\u0394\u039f\u03a3", ["\u03bf\u03b4\u03bf\u03c3", "\u03bf\u03b4\u03bf\u03c3"]),
        ("\u0141\u00f3d\u017a \u00d8resund \u00c6gir \u0130stanbul D\u0131\u015f", ["lodz", "oresund", "aegir", "istanbul", "dis"]),
        ("\ufb01ne \uff21\uff22\uff11 m\u00b2 \u2167", ["fine", "ab1", "m2", "viii"]),
        ("x\u00bdy Foo\u2122 \u2474a", ["x", "y", "foo", "a"]),
        ("\u6771\u4eac\u30bf\u30ef\u30fc\u3078ABC", ["\u6771", "\u4eac", "\u30bf\u30ef\u30fc", "\u3078", "abc"]),
        ("\u304c \u304b\u3099", ["\u304c", "\u304c"]),
        ("\uff76\uff9e\uff72\uff84\uff9e", ["\u30ac\u30a4\u30c9"]),
        ("\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab", ["\ud55c\uad6d\uc5b4", "\ud55c"]),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", ["\u0939\u093f\u0928\u094d\u0926\u0940"]),
        ("\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd \u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f", ["\u05e9\u05dc\u05d5\u05dd", "\u0645\u062d\u0645\u062f"]),
        ("co\u00adoperate a\u200bb \u0301 \ufeffbom", ["cooperate", "a", "b", "bom"]),
        ("\U0001f600smile\U0001f600", ["smile"]),
    ],
)  # fmt: skip
def test_words(given_text: str, words: list[str]) -> None:
    assert tokens(given_text) == words
    assert analyse(pa.array([given_text])).row(0) == words


@given(text)
@example("\u0301\u6771\u0301a\u0301b")
@example("\u3042\u200da \u0301\u6771")
def test_words_are_what_the_definition_says(value: str) -> None:
    expected = [word for raw in reference.words_of(value) if (word := fold(raw))]
    assert tokens(value) == expected


@given(rows, st.integers(1, 40), st.lists(st.integers(0, 12), max_size=3))
@example(["\u6771", "\u0301a", None, "\u0301", ""], 1, [])
@example(["\u6771", "\u093fa", "\u6771\u093fa"], 40, [])
@example(["a", "b", "\u00e9", ""], 1, [1, 2])
def test_a_column_has_the_words_of_its_texts(
    values: list[str | None], piece_bytes: int, cuts: list[int]
) -> None:
    edges = sorted({0, len(values), *(min(c, len(values)) for c in cuts)})
    chunks = [pa.array(values[a:b], pa.string()) for a, b in itertools.pairwise(edges)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analyzer, "PIECE_BYTES", piece_bytes)
        found = analyse(pa.chunked_array(chunks, pa.string()))
    expected = [tokens(value) if value is not None else [] for value in values]
    assert [found.row(i) for i in range(len(values))] == expected
    assert found.documents == sum(value is not None for value in values)
    assert found.lengths.tolist() == list(map(len, expected))
    assert len(set(found.terms)) == len(found.terms)
    assert all(found.terms)


@given(st.text(alphabet=st.characters(exclude_categories=["Cn"])))
def test_composed_and_decomposed_text_is_the_same(value: str) -> None:
    composed = unicodedata.normalize("NFC", value)
    assert tokens(composed) == tokens(unicodedata.normalize("NFD", value))


@given(text)
def test_folding_twice_changes_nothing(value: str) -> None:
    assert fold(fold(value)) == fold(value)


@given(st.lists(text.map(lambda t: t.replace("\n", "")), min_size=1))
def test_words_can_be_folded_together(words: list[str]) -> None:
    assert fold("\n".join(words)).split("\n") == [fold(word) for word in words]


def test_every_character_alone_and_inside_a_word() -> None:
    """All of Unicode in one column: cut by arrays as it is cut one by one."""
    characters = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
    assigned = [c for c in characters if unicodedata.category(c) not in ("Cn", "Co")]
    texts = ["".join(assigned[i : i + 61]) for i in range(0, len(assigned), 61)]
    texts += [f"a{c}b" for c in assigned[::7]]
    found = analyse(pa.array(texts))
    words = iter(found.words.tolist())
    for value, count in zip(texts, found.lengths.tolist(), strict=True):
        assert [found.terms[next(words)] for _ in range(count)] == tokens(value), value


def test_a_query_may_hold_what_no_column_can() -> None:
    assert tokens("a\ud800b") == ["a", "b"]


# ---------------------------------------------------------------- shapes of columns


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_string_types(kind: pa.DataType) -> None:
    found = analyse(pa.array(["One two", None, "", "\u00dcber zwei"], kind))
    assert [found.row(i) for i in range(4)] == [["one", "two"], [], [], ["uber", "zwei"]]
    assert found.documents == 3


def test_dictionary_columns() -> None:
    column = pa.array(["a b", None, "a b"]).dictionary_encode()
    assert analyse(column).words.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("middle", [None, ""])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_slice_of_a_column(middle: str | None, kind: pa.DataType) -> None:
    column = pa.array(["zero", "one two", middle, "three", "four"], kind).slice(1, 3)
    found = analyse(column)
    assert [found.row(i) for i in range(3)] == [["one", "two"], [], ["three"]]
    assert found.documents == (2 if middle is None else 3)
    assert found.terms == ["one", "two", "three"]


@pytest.mark.parametrize(
    "column",
    [pa.array([], pa.string()), pa.chunked_array([], pa.string()), pa.chunked_array([[]], pa.string())],
)  # fmt: skip
def test_no_rows(column: pa.Array) -> None:
    found = analyse(column)
    assert (found.terms, found.words.tolist(), found.lengths.tolist()) == ([], [], [])
    assert found.documents == 0


@pytest.mark.parametrize("value", [None, "", "...", "\u0301"])
def test_no_words(value: str | None) -> None:
    found = analyse(pa.array([value] * 3, pa.string()))
    assert found.terms == []
    assert found.lengths.tolist() == [0, 0, 0]


def test_what_lies_behind_a_null_is_not_read() -> None:
    text_buffer = pa.py_buffer(b"seen hidden seen")
    offsets = pa.py_buffer(np.array([0, 5, 11, 16], np.int32))
    column = pa.StringArray.from_buffers(3, offsets, text_buffer, pa.py_buffer(b"\x05"))
    assert column.to_pylist() == ["seen ", None, " seen"]
    found = analyse(column)
    assert (found.terms, found.lengths.tolist()) == (["seen"], [1, 0, 1])


def test_texts_longer_than_a_piece() -> None:
    long_word, many = "x" * (analyzer.PIECE_BYTES + 7), "\u00e9 b " * 300_000
    found = analyse(pa.array(["a", long_word, "", many, "c"]))
    assert found.lengths.tolist() == [1, 1, 0, 600_000, 1]
    assert found.terms == ["a", long_word, "e", "b", "c"]
