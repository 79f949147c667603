from __future__ import annotations

import pytest

from omnigraph.lang.cursor import Cursor, ParseFailure, TokenKind
from omnigraph.lang.lexer import tokenize
from omnigraph.lang.source import Source
from omnigraph.lang.suggest import closest, did_you_mean, misspelling_of


def cursor(text):
    return Cursor(tokenize(Source(name="t", text=text))[0])


def test_cursor_stops_at_the_end():
    at = cursor("a")
    assert at.take().text == "a"
    assert at.at_end
    assert at.take().kind is TokenKind.END
    assert at.peek(5).kind is TokenKind.END


def test_accept_takes_only_what_is_there():
    at = cursor("node {")
    assert at.accept_punct("node") is None
    assert at.accept_word("node")
    assert at.accept_word("{") is None
    assert at.accept_punct("{")


def test_a_string_is_never_a_word_or_punctuation():
    at = cursor('"node" "{"')
    assert not at.at_word("node")
    at.take()
    assert not at.at_punct("{")


def test_expect_says_what_was_found_and_wanted():
    with pytest.raises(ParseFailure) as caught:
        cursor("foo").expect_punct("{", hint="h")
    failure = caught.value
    assert (failure.message, failure.help) == ("unexpected `foo`", {"expected": "`{`", "hint": "h"})
    with pytest.raises(ParseFailure, match="end of file"):
        cursor("").expect_kind(TokenKind.INT)
    with pytest.raises(ParseFailure, match="a string"):
        cursor('"x"').expect_punct("{")


@pytest.mark.parametrize(
    ("text", "word"),
    [("in-progress", "in-progress"), ("2xx,", "2xx"), ("a- b", "a-"), ("-", "-"), ("404 x", "404")],
)
def test_enum_word_joins_what_touches(text, word):
    found = cursor(text).accept_enum_word()
    assert found is not None
    assert (found.text, found.span.end) == (word, len(word))


def test_enum_word_absent():
    assert cursor('"x"').accept_enum_word() is None
    assert cursor("1.5").accept_enum_word() is None


def test_closest_ignores_case_and_may_find_nothing():
    assert closest("STRNG", ["String", "Bool"]) == "String"
    assert did_you_mean("xyz", ["String"]) is None
    assert did_you_mean("nam", ["name"]) == "did you mean `name`?"


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("kye", "key"),
        ("kex", "key"),
        ("ky", "key"),
        ("keyy", "key"),
        ("KEY", "key"),
        ("crad", "card"),
        ("unqieu", "unique"),
        ("ekyy", None),
        ("xyz", None),
        ("cards", "card"),
        ("desc", None),
    ],
)
def test_misspelling_is_one_typing_error_or_two_in_a_long_word(word, meant):
    assert misspelling_of(word, ["key", "card", "unique", "description"]) == meant
