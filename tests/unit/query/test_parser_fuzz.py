"""Whatever the text is: a tree or a layout comes out, or an error with places inside the text."""

from __future__ import annotations

import pytest
from ast_strategy import query_texts
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.errors import QueryError, SchemaError
from omnigraph.lang.source import Source
from omnigraph.query.format import format_queries
from omnigraph.query.parse import SyntaxCode, parse_queries
from omnigraph.schema.format import format_schema
from support.examples import examples

QUERY_WORDS = """
    query match return order limit offset insert upsert update delete set where and or not in is
    null true false exists count optional distinct as asc desc contains starts_with date ( ) { } [ ]
    $v $w $_ V W a b from : , . .. -> - = == != < > <= >= <> ? @ @description 0 1 9 1.5 1e3 2xx "x"
    "(" "" '"' // /* */ & && | ! ; ' # $ * + é \\ LIKE between AND
"""
SCHEMA_WORDS = """
    node edge interface implements A B Cc a b id src enum Vector String I32 [ ] ( ) { } @key @unique
    @index @range @check @card @embed @description @src , : ? -> .. - = 0 1 1.5 2xx "x" // /* */ @ ;
"""
QUERY_PIECES = [*QUERY_WORDS.split(), "\n", " // c\n", "/* c */", "match {", "} return {", "not {"]
SCHEMA_PIECES = [*SCHEMA_WORDS.split(), "\n", " // c\n", "/* c */", "node A {", "}"]


def check_places(text, error, codes=None):
    lines = text.split("\n")
    assert error.diagnostics
    for d in error.diagnostics:
        assert codes is None or d.code in codes
        assert 1 <= d.line <= len(lines)
        assert 1 <= d.column <= len(lines[d.line - 1]) + 1
    str(error).encode()


def read_or_refuse(text):
    try:
        parse_queries(Source(name="q.gq", text=text))
    except QueryError as error:
        check_places(text, error, set(SyntaxCode))
        with pytest.raises(QueryError):
            format_queries(text)
    else:
        layout = format_queries(text)
        assert format_queries(layout) == layout


def format_schema_or_refuse(text):
    try:
        layout = format_schema(text)
    except SchemaError as error:
        check_places(text, error)
    else:
        assert format_schema(layout) == layout


@settings(max_examples=examples(100))
@given(st.text(st.characters()))
@example("\ufeff")
@example("\x00")
@example('match { $v: V { a: "\ud800" } } return { $v }')
@example("match { $v: V } return { $v }\r")
@example("match { $v: V } // \r\u2028\x85\nreturn { $v } /* \x0b\x0c */")
def test_any_text(text):
    read_or_refuse(text)
    format_schema_or_refuse(text)


@settings(max_examples=examples(170))
@given(st.lists(st.sampled_from(QUERY_PIECES), max_size=40).map(" ".join))
@example("match { $a = $b } return { [1] }")
def test_any_sequence_of_query_tokens(text):
    read_or_refuse(text)


@settings(max_examples=examples(100))
@given(st.lists(st.sampled_from(SCHEMA_PIECES), max_size=30).map(" ".join))
def test_any_sequence_of_schema_tokens(text):
    format_schema_or_refuse(text)


@settings(max_examples=examples(100))
@given(query_texts(), st.data())
def test_mutations_of_valid_queries(text, data):
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 10)))
        text = text[:start] + data.draw(st.sampled_from(["", *QUERY_PIECES])) + text[end:]
    read_or_refuse(text)


@settings(max_examples=examples(30))
@given(query_texts(), st.data())
def test_every_beginning_of_a_valid_text(text, data):
    read_or_refuse(text[: data.draw(st.integers(0, len(text)))])
