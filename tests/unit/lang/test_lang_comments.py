"""Comments of a text, and how they stand between two tokens."""

from __future__ import annotations

import pytest

from omnigraph.lang.layout import render
from omnigraph.lang.lexer import comments, tokenize
from omnigraph.lang.pretty import CommentFinder
from omnigraph.lang.source import Source


def found(text):
    return [text[c.start : c.end] for c in comments(Source(name="x", text=text))]


def test_comments_are_found_in_order_and_whole():
    text = "// a\nb /* c\n d */ e // f"
    assert found(text) == ["// a", "/* c\n d */", "// f"]


def test_what_looks_like_a_comment_in_a_string_is_none():
    assert found('"// a" /* "b" */ "/* c */"') == ['/* "b" */']


def test_a_comment_without_end_is_no_comment():
    assert found("a /* b") == []


def test_tokens_are_the_same_with_and_without_comments():
    def texts(text):
        return [t.text for t in tokenize(Source(name="x", text=text))[0]]

    assert texts("a /* x */ b // y\n{") == texts("a b {")


def remarks(between):
    """The remarks between `a` and `b`."""
    text = f"a{between}b"
    finder = CommentFinder(Source(name="x", text=text), comments(Source(name="x", text=text)))
    notes = finder.between(1, len(text) - 1)
    return (
        notes.behind and render(notes.behind.doc),
        [render(r.doc) for r in notes.own],
        notes.front and render(notes.front.doc),
    )


@pytest.mark.parametrize(
    ("between", "behind", "own", "front"),
    [
        (" ", None, [], None),
        (" // x\n", "// x", [], None),
        (" /* x */\n", "/* x */", [], None),
        ("\n// x\n", None, ["// x"], None),
        (" /* x */ ", None, [], "/* x */"),
        ("\n/* x */ ", None, [], "/* x */"),
        (" /* x */ /* y */ // z\n", "/* x */ /* y */ // z", [], None),
        (" // x\n// y\n\n// z\n/* w */", "// x", ["// y", "// z"], "/* w */"),
        (", // x\n", "// x", [], None),
        (" // x\n, ", "// x", [], None),
        ("\n, // x\n", None, ["// x"], None),
    ],
)
def test_a_comment_stands_behind_alone_or_in_front(between, behind, own, front):
    assert remarks(between) == (behind, own, front)


def test_empty_lines_are_seen_and_single_line_ends_around_a_comma_are_none():
    def blank(between):
        text = f"a{between}b"
        return CommentFinder(Source(name="x", text=text), []).between(1, len(text) - 1).blank_after

    assert blank("\n\n") and blank("\n \t\r\n") and blank(",\n\n\n")
    assert not blank("\n,\n") and not blank("\n")
