from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.cursor import TokenKind
from omnigraph.lang.lexer import LexicalKind, tokenize
from omnigraph.lang.source import Source


def lex(text):
    tokens, problems = tokenize(Source(name="t", text=text))
    assert tokens[-1].kind is TokenKind.END
    return [(t.kind.name, t.text) for t in tokens[:-1]], problems


def words(text):
    tokens, problems = lex(text)
    assert not problems
    return tokens


def test_range_of_integers_is_not_a_float():
    assert words("1..5") == [("INT", "1"), ("PUNCT", ".."), ("INT", "5")]


def test_range_of_floats():
    assert words("1.5..2.25") == [("FLOAT", "1.5"), ("PUNCT", ".."), ("FLOAT", "2.25")]


def test_open_ranges():
    assert words("..5") == [("PUNCT", ".."), ("INT", "5")]
    assert words("5..") == [("INT", "5"), ("PUNCT", "..")]


def test_words_are_whole_words():
    assert words("limit5 true_total node") == [
        ("WORD", "limit5"),
        ("WORD", "true_total"),
        ("WORD", "node"),
    ]


def test_number_that_runs_into_letters_is_no_number():
    assert words("2xx 1e5") == [("DIGIT_WORD", "2xx"), ("DIGIT_WORD", "1e5")]
    assert words("1.5x") == [("INT", "1"), ("PUNCT", "."), ("DIGIT_WORD", "5x")]


def test_operators_take_the_longest_match():
    text = "-> .. >= <= != = < > { } ( ) [ ] , : . @ ? -"
    assert [t for _, t in words(text)] == text.split()
    assert [t for _, t in words(text.replace(" ", "").replace(".@", "@"))][:3] == ["->", "..", ">="]


def test_variables():
    assert words("$a.b $_ $aB1") == [
        ("VARIABLE", "$a"),
        ("PUNCT", "."),
        ("WORD", "b"),
        ("VARIABLE", "$_"),
        ("VARIABLE", "$aB1"),
    ]


@pytest.mark.parametrize("text", ["$", "$ a", "$A", "$1"])
def test_dollar_without_a_name_is_illegal(text):
    _, problems = lex(text)
    assert [p.kind for p in problems] == [LexicalKind.ILLEGAL_CHARACTER]
    assert "variable" in problems[0].help["hint"]


def test_strings_know_five_escapes_and_span_lines():
    assert words(r'"\"\\\n\r\t"') == [("STRING", '"\\\n\r\t')]
    assert words('"a\nb // no /* comment"') == [("STRING", "a\nb // no /* comment")]
    assert words('"ü→"') == [("STRING", "ü→")]


def test_unsupported_escape_is_reported_at_its_place():
    tokens, problems = lex(r'x "a\qb\z" y')
    assert [p.kind for p in problems] == [LexicalKind.UNSUPPORTED_ESCAPE] * 2
    assert [p.span.start for p in problems] == [4, 7]
    assert [t for _, t in tokens] == ["x", "aqbz", "y"]


@pytest.mark.parametrize("text", ['"', '"abc', '"abc\\"', '"abc\\'])
def test_unterminated_string(text):
    _, problems = lex(text)
    assert [(p.kind, p.span.start) for p in problems] == [(LexicalKind.UNTERMINATED_STRING, 0)]


def test_comments_are_white_space_and_do_not_nest():
    assert words("a// x\nb/* /* */c/**/d") == [("WORD", w) for w in "abcd"]


@pytest.mark.parametrize("text", ["/*", "/* *", "/*/"])
def test_unterminated_comment(text):
    _, problems = lex(text)
    assert [p.kind for p in problems] == [LexicalKind.UNTERMINATED_COMMENT]


def test_run_of_illegal_characters_is_one_problem():
    tokens, problems = lex("a ;;;é b")
    assert [t for _, t in tokens] == ["a", "b"]
    assert [(p.span.start, p.span.end) for p in problems] == [(2, 6)]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (";", "';'"),
        ("'", '"\'"'),
        ("\\", "'\\'"),
        ("é", "'é' (U+00E9)"),
        ("😀", "'😀' (U+1F600)"),
        ("\x07", "U+0007"),
        ("\u200b", "U+200B"),
        ("\ud800", "U+D800"),
    ],
)
def test_illegal_character_is_shown_as_itself_and_by_number(text, named):
    _, problems = lex(text)
    assert [p.message for p in problems] == [f"illegal character {named}"]


def test_surrogates_are_illegal_even_in_strings_and_comments():
    for text in ('"\ud800"', "// \udfff", "\ud800"):
        _, problems = lex(text)
        assert [p.kind for p in problems] == [LexicalKind.ILLEGAL_CHARACTER]


def test_byte_order_mark_at_the_start_is_skipped():
    assert words("\ufeffnode") == [("WORD", "node")]


def test_long_number_is_replaced():
    tokens, problems = lex("9" * 401)
    assert tokens == [("INT", "0")]
    assert [p.kind for p in problems] == [LexicalKind.LONG_NUMBER]
    assert words("9" * 400) == [("INT", "9" * 400)]


@given(st.text(st.characters()))
def test_lexer_never_raises_and_spans_are_ordered(text):
    tokens, _ = tokenize(Source(name="t", text=text))
    starts = [t.span.start for t in tokens]
    assert starts == sorted(starts)
    assert all(0 <= t.span.start <= t.span.end <= len(text) for t in tokens)


@given(st.text('ab1.-"/*\\\n $@_{}', max_size=30))
def test_everything_but_space_and_problems_is_in_a_token(text):
    source = Source(name="t", text=text)
    tokens, problems = tokenize(source)
    if not problems:
        covered = "".join(text[t.span.start : t.span.end] for t in tokens)
        rest = text
        for token in reversed(tokens):
            rest = rest[: token.span.start] + rest[token.span.end :]
        assert len(covered) + len(rest) == len(text)
        assert tokenize(Source(name="t", text=rest))[0][0].kind is TokenKind.END
