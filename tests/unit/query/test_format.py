"""The layout of both languages: laws on random texts, and golden cases.

Walks `tests/golden/format/<case>`: `input.gq` gives `expected.gq`, `input.pg` gives `expected.pg`.
`GOLDEN_UPDATE=1` rewrites the expected files; the diff is the thing to review.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from ast_dump import bare
from ast_strategy import laid_out, query_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import InternalError, QueryError, SchemaError
from omnigraph.lang.lexer import comments, tokenize
from omnigraph.lang.pretty import TextMarks, pretty
from omnigraph.lang.source import Source
from omnigraph.query.format import format_queries
from omnigraph.query.parse import parse_queries
from omnigraph.schema.codes import SchemaFindings
from omnigraph.schema.format import format_schema
from omnigraph.schema.parser import parse
from support.examples import examples

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "golden" / "format"
CASES = sorted(p.name for p in GOLDEN.iterdir() if p.is_dir())
SCHEMAS = sorted(p for p in (ROOT / "golden" / "schema").iterdir() if p.name.startswith("ok_"))
WIDTH = 100


def queries_of(text):
    return bare(parse_queries(Source(name="q", text=text)))


def schema_of(text):
    tree, complete = parse(SchemaFindings(Source(name="s", text=text)))
    assert complete
    return bare(tree)


def remarks_of(text):
    source = Source(name="x", text=text)
    return [source.text[c.start : c.end].split() for c in comments(source)]


def check_laws(text, layout, again, tree_of):
    assert again == layout, "laying out twice changes something"
    assert tree_of(layout) == tree_of(text)
    assert remarks_of(layout) == remarks_of(text)
    assert layout.endswith("\n") and not layout.endswith("\n\n")
    # A text may hold what it wants.
    assert "\n\n\n" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", layout, flags=re.DOTALL)


@settings(max_examples=examples(100))
@given(query_texts())
def test_laws_of_query_layouts(text):
    layout = format_queries(text)
    check_laws(text, layout, format_queries(layout), queries_of)


@settings(max_examples=examples(50))
@given(st.sampled_from(SCHEMAS), st.data())
def test_laws_of_schema_layouts(folder, data):
    source = Source(name="s", text=(folder / "in.pg").read_text())
    written, before = [], -1
    for token in tokenize(source)[0][:-1]:
        # The parts of a word such as `in-progress` have to touch.
        if (
            token.span.start == before
            and re.match(r"[\w-]", token.text)
            and written[-1][-1] not in "@(["
        ):
            written[-1] += source.text[token.span.start : token.span.end]
        else:
            written.append(source.text[token.span.start : token.span.end])
        before = token.span.end
    text = data.draw(laid_out(written))
    layout = format_schema(text)
    check_laws(text, layout, format_schema(layout), schema_of)


@pytest.mark.parametrize("case", CASES)
def test_golden_case(case):
    (given_file,) = (GOLDEN / case).glob("input.*")
    text = given_file.read_text()
    run, tree_of = {".gq": (format_queries, queries_of), ".pg": (format_schema, schema_of)}[
        given_file.suffix
    ]
    expected = given_file.with_name(f"expected{given_file.suffix}")
    actual = run(text)
    if os.environ.get("GOLDEN_UPDATE") == "1":
        expected.write_text(actual)
    assert actual == expected.read_text()
    check_laws(text, actual, run(actual), tree_of)


@pytest.mark.parametrize("case", [c for c in CASES if c.endswith("long_lines")])
def test_only_what_cannot_be_broken_is_longer_than_the_width(case):
    (expected,) = (GOLDEN / case).glob("expected.*")
    for line in expected.read_text().splitlines():
        assert len(line) <= WIDTH or '"' in line


def test_the_layout_of_the_source_decides_whether_a_block_is_one_line():
    assert format_queries("match { $v: V }return{ $v }") == "match { $v: V }\nreturn { $v }\n"
    broken = format_queries("match { $v:\nV } return { $v }")
    assert broken == "match {\n    $v: V\n}\nreturn { $v }\n"


def test_declarations_stand_apart_unless_they_are_short_and_stood_together():
    short = "node A {}\nnode B {}\n"
    assert format_schema(short) == short
    assert format_schema("node A {} node B {}") == short
    assert format_schema("node A {}\n\n\n\nnode B {}") == "node A {}\n\nnode B {}\n"
    assert format_schema("node A {\n}\nnode B { x: I64\n}") == (
        "node A {}\n\nnode B {\n    x: I64\n}\n"
    )


def test_lines_of_a_comment_move_with_it():
    text = "match {\n  /* one\n     two */\n  $v: V\n}\nreturn { $v }\n"
    assert "    /* one\n       two */\n" in format_queries(text)


def test_a_text_without_declarations_keeps_its_comments():
    assert format_schema("") == ""
    assert format_schema("\n\n// only this\n\n") == "// only this\n"


def test_windows_line_ends_and_byte_order_marks_go():
    text = "\ufeff// a\r\nmatch { $v: V } // b\r\nreturn { $v } /* c\r\n d */\r\n"
    assert format_queries(text) == ("// a\nmatch { $v: V } // b\nreturn { $v } /* c\n d */\n")


def test_what_cannot_be_read_is_refused():
    with pytest.raises(QueryError, match=r"ask\.gq:1:1: Q013"):
        format_queries("", name="ask.gq")
    with pytest.raises(SchemaError, match=r"mine\.pg:1:1: S013"):
        format_schema("nod A {}", name="mine.pg")


def test_a_layout_that_would_lose_something_is_never_given_out():
    nothing = frozenset[int]()
    marks = TextMarks(
        items=nothing, separators={}, glued=nothing, plain=nothing, breaks=(), declarations=True
    )
    with pytest.raises(InternalError, match="lose or change"):
        pretty(Source(name="x", text="node A {}"), marks)
