"""Edit distances over a whole vocabulary against the table of the textbook."""

from __future__ import annotations

import search_reference as reference
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.query.search.text_index import Spelling

word = st.text(alphabet="abc\u00e9\u6771\U0001f600", min_size=1, max_size=9)


@given(st.lists(word, unique=True, max_size=20), word, st.integers(-1, 10))
@example(["a"], "b", 0)
@example(["abc", "acb", "bac"], "abc", 2)
def test_words_within_some_edits(words: list[str], wanted: str, edits: int) -> None:
    expected = [i for i, w in enumerate(words) if reference.distance(w, wanted) <= edits]
    assert sorted(Spelling.of(words).near(wanted, edits).tolist()) == expected


def test_no_words_at_all() -> None:
    assert Spelling.of([]).near("a", 5).tolist() == []


def test_words_longer_than_small_cells_can_count() -> None:
    words = ["x" * 253, "x" * 254, "x" * 255, "x" * 300, "y" * 299 + "x", "ab" * 400]
    spelling = Spelling.of(words)
    assert spelling.near("x" * 254, 1).tolist() == [0, 1, 2]
    assert spelling.near("x" * 298 + "yx", 1).tolist() == [3]
    assert spelling.near("y" * 300, 1).tolist() == [4]
    assert spelling.near("ba" * 400, 2).tolist() == [5]
    assert spelling.near("z" * 255, 3).tolist() == []
    assert spelling.near("z", 10**6).tolist() == [0, 1, 2, 3, 4, 5]
