"""Documents: groups break as a whole, and only when they have to."""

from __future__ import annotations

from omnigraph.lang.layout import (
    WIDTH,
    Comment,
    Concat,
    Hard,
    Headed,
    LayoutGroup,
    Line,
    Nest,
    Suffix,
    Text,
    render,
)


def brackets(*words, broken=False):
    inside = []
    for word in words:
        inside += [Text(","), Line(" ")] if inside else [Line("")]
        inside.append(Text(word) if isinstance(word, str) else word)
    return LayoutGroup(
        Concat([Text("["), Nest(Concat(inside)), Line(""), Text("]")]), broken=broken
    )


def test_a_group_that_fits_stays_on_one_line():
    assert render(brackets("a", "b")) == "[a, b]"


def test_a_group_breaks_at_all_its_places():
    assert render(brackets("a", "b", broken=True)) == "[\n    a,\n    b\n]"
    wide = "w" * WIDTH
    assert render(brackets("a", wide)) == f"[\n    a,\n    {wide}\n]"


def test_the_width_is_the_last_column_that_may_be_used():
    room = WIDTH - len("[a, ]")
    assert "\n" not in render(brackets("a", "w" * room))
    assert "\n" in render(brackets("a", "w" * (room + 1)))


def test_what_follows_a_group_on_its_line_counts():
    room = WIDTH - len("[a, ]")
    doc = Concat([brackets("a", "w" * room), Text(";")])
    assert "\n" in render(doc)


def test_an_inner_group_may_stay_on_one_line_where_the_outer_breaks():
    inner = brackets("a", "b")
    assert render(brackets(inner, "w" * WIDTH)).startswith("[\n    [a, b],\n")


def test_a_line_end_inside_breaks_every_group_around_it():
    inner = LayoutGroup(Concat([Text("a"), Hard(), Text("b")]))
    assert render(brackets(inner)) == "[\n    a\n    b\n]"
    assert render(brackets("a\nb")) == "[\n    a\nb\n]"


def test_an_empty_line_has_no_indent_of_its_own():
    assert render(Nest(Concat([Text("a"), Hard(blank=True), Text("b")]))) == "a\n\n    b"


def test_a_comment_at_the_end_of_a_line_has_no_width():
    long = Suffix(Text(" // " + "c" * WIDTH))
    assert "\n" not in render(Concat([brackets("a", "b"), long]))


def test_further_lines_of_a_comment_move_with_the_first():
    comment = Comment("/* a\n     b\n\n  c */", 2)
    assert (
        render(Nest(Nest(Concat([Hard(), comment]))))
        == "\n        /* a\n           b\n\n        c */"
    )
    assert render(comment) == "/* a\n   b\n\nc */"


def test_a_block_breaks_with_its_header():
    def headed(word):
        return Headed(
            Concat([Text(word), Nest(Concat([Line(" "), Text("@x")])), Line(" ")]), brackets("a")
        )

    assert render(headed("node")) == "node @x [a]"
    assert render(headed("w" * WIDTH)) == "w" * WIDTH + "\n    @x\n[\n    a\n]"
