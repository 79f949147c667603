from __future__ import annotations

import pytest

from omnigraph.errors import render_diagnostic
from omnigraph.lang.source import Source, Span


def test_position_is_one_based():
    source = Source(name="t", text="ab\ncd\r\n\ne")
    assert [source.position(i) for i in range(10)] == [
        (1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (4, 1), (4, 2),
    ]  # fmt: skip


def test_line_has_no_line_break():
    source = Source(name="t", text="ab\ncd\r\n\ne")
    assert [source.line(i) for i in (1, 2, 3, 4)] == ["ab", "cd", "", "e"]


def test_underline_stays_on_its_line():
    source = Source(name="t", text="abc\ndef")
    found = source.diagnostic(code="X", message="m", span=Span(start=1, end=7))
    assert (found.line, found.column, found.length, found.source_line) == (1, 2, 2, "abc")


def test_diagnostic_at_the_end_of_the_text():
    source = Source(name="t", text="abc\n")
    found = source.diagnostic(code="X", message="m", span=Span(start=4, end=4))
    assert (found.line, found.column, found.length, found.source_line) == (2, 1, 1, "")


def test_unprintable_half_of_a_pair_is_replaced_in_the_shown_line():
    source = Source(name="t", text="a\ud800b")
    found = source.diagnostic(code="X", message="m", span=Span(start=1, end=2))
    assert found.source_line == "a?b"


@pytest.mark.parametrize(
    ("text", "part", "underline"),
    [
        ('"船" x', "x", "     ^"),
        ("船船 x", "船船", "^^^^"),
        ("ＡＢx", "x", "    ^"),
        ("e\u0301x", "x", " ^"),
        ("\té x", "x", "\t  ^"),
        ("\u0301", "\u0301", "^"),
    ],
)
def test_caret_stands_under_its_character_in_a_line_of_wide_ones(text, part, underline):
    source = Source(name="t", text=text)
    at = text.index(part)
    found = source.diagnostic(code="X", message="m", span=Span(start=at, end=at + len(part)))
    assert render_diagnostic("t", found).split("\n")[2] == "      | " + underline


def test_of_a_long_line_the_part_around_the_place_is_shown():
    line = "a" * 300 + "HERE" + "b" * 300
    for text, place in ((line, 300), ("HERE" + "b" * 500, 0), ("a" * 500 + "HERE", 500)):
        found = Source(name="q", text=f"first\n{text}\n").diagnostic(
            code="X", message="no", span=Span(start=place + 6, end=place + 10)
        )
        shown, caret = render_diagnostic("q", found).split("\n")[1:]
        assert len(shown) < 200
        assert shown[caret.index("^") : caret.rindex("^") + 1] == "HERE"
        assert (found.line, found.column, found.length) == (2, place + 1, 4)


def test_what_a_message_quotes_is_cut():
    found = Source(name="q", text="x").diagnostic(
        code="X",
        message=f"unknown `{'n' * 10_000}` in `D`",
        span=Span(start=0, end=1),
        hint=f"write `{'m' * 10_000}`",
    )
    assert len(found.message) < 300
    assert found.message.endswith("…` in `D`")
    assert len(found.hint or "") < 300
