"""Patterns of `@check`: whichever engine searches, they mean what Python says, but for `$`.

That is the end of the text, and not the place before a final line break.
"""

from __future__ import annotations

import re
import warnings

import pyarrow as pa
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from validate_fixtures import APPEND, catalog, change, messages, node, prop

from omnigraph.rules.values import re2_spelling, texts_without
from omnigraph.schema.catalog import Check, Scalar
from support.examples import examples

CHARACTERS = "ab01_- \n\r\t.$^é٣ß²Ⅷ中\u00a0\u0301\u2028\x00\x85K🙂"
ATOMS = [
    *"ab0_-é中", ".", r"\.", r"\n", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", "^", "$", r"\A", r"\Z",
    "[ab]", "[^ab]", "[^a]", r"[\d_]", r"[^\w]", r"[^\W\d]", "[a-z]", "[à-ÿ]", r"[^\n]", r"[\s\S]",
    r"[^\s\S]", "(?:)", r"\x00", "[^-]", r"[]\\^]", r"\b", "(?i:A)", "(?=a)", "(?!b)", "[🙂]",
]  # fmt: skip
patterns = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda p: f"(?:{'|'.join(p)})"),
        st.tuples(
            inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{,2}", "{1,}?"])
        ).map(lambda p: f"({p[0]}){p[1]}"),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=examples(500))
@given(patterns, st.lists(st.text(CHARACTERS, max_size=6), min_size=1, max_size=12))
@example("a$", ["a", "a\n", "a\n\n", "a\nb"])
@example("a$\n", ["a\n"])
@example("(?:a$|b)\n?", ["a\n"])
@example(r"^\d+$", ["٣", "3\n", "²"])
@example(r"^\w+$", ["é_٣", "²Ⅷ中", "\u0301"])
@example("(|a)+$", ["aa"])
@example("(?s).", ["\n"])
@example("(?m)^b", ["a\nb"])
@example("(?x) a b # c", ["ab"])
@example(r"(a)\1", ["aa", "a"])
def test_same_texts_as_python(pattern, texts):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = re.compile(pattern.replace("$", r"\Z"))
    except (re.error, Warning):
        assume(False)
        return
    found = texts_without(pattern, pa.array(texts)).to_pylist()
    assert found == [t for t in texts if compiled.search(t) is None], re2_spelling(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a|aa)+$",
        "^(a*)*b",
        r"^(\w+\s?)*$",
        r"^([a-zA-Z0-9]+)*@",
        "(.*a){20}#",
        "^(?:a?){30}a{30}b",
    ],
)
def test_a_pattern_that_python_would_never_finish_is_searched_at_once(pattern):
    text = "a" * 5_000 + "!"
    types = catalog(
        node("N", prop("p", Scalar.STRING), checks=(Check(property_name="p", pattern=pattern),))
    )
    delta = change(types, APPEND, N=[{"id": "1", "p": text}, {"id": "2", "p": text}])
    assert len(messages(types, delta)) == 2


@pytest.mark.parametrize(
    "pattern",
    [
        "^[A-Z]{3}$",
        r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$",
        r"^\d{4}-\d{2}$",
        "^[a-z]+(-[a-z]+)*$",
        r"\w{1,64}",
    ],
)
def test_usual_patterns_have_a_spelling(pattern):
    assert re2_spelling(pattern) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        r"\bx",
        "(?i)x",
        "(?i:x)",
        "(?=x)",
        "(?<!x)y",
        r"(x)\1",
        "(?>x)",
        "x*+",
        "(?a)x",
    ],
)
def test_what_re2_understands_differently_stays_with_python(pattern):
    assert re2_spelling(pattern) is None


def test_repetition_beyond_the_limits_of_re2_stays_with_python():
    texts = pa.array(["a" * 1_500, "a" * 1_499])
    assert texts_without("^a{1500}$", texts).to_pylist() == ["a" * 1_499]


@pytest.mark.parametrize(
    "pattern", ["^[A-Z]{3}$", "^(?:ABC|XYZ)$", "(?i)^abc$", r"^ABC(?=$)", r"^[^$\n]*$(?!x)"]
)
def test_the_end_is_not_before_a_final_line_break(pattern):
    assert texts_without(pattern, pa.array(["ABC", "ABC\n"])).to_pylist() == ["ABC\n"]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(r"^a\$$", "a$"), ("^[$]$", "$"), (r"^[\]$]+$", "]$"), ("^[]$]+$", "]$"), ("^[^]$]+$", "ab")],
)
def test_a_dollar_that_is_a_character_stays_one(pattern, text):
    assert texts_without(pattern, pa.array([text, text + "\n"])).to_pylist()[-1:] != [text]
    assert text not in texts_without(pattern, pa.array([text])).to_pylist()


def test_the_end_of_lines_can_still_be_asked_for():
    assert texts_without("(?m)^a$", pa.array(["a\nb", "b\na\n"])).to_pylist() == []
