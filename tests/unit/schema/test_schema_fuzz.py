"""Whatever the text is: a catalog comes out, or a SchemaError with places inside the text."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from schema_texts import schema_texts

from omnigraph.errors import SchemaError
from omnigraph.schema.codes import SchemaCode
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.ir import from_ir, to_ir
from support.examples import examples

WORDS = """
    node edge interface implements A B Cc a b id src enum Vector String I32 U64 F32 Blob [ ] ( ) { }
    @key @unique @index @range @check @card @embed @description @instruction @rename_from @uniqe
    @src @dst , : ? -> .. - = 0 1 9 1.5 2xx "x" "(" "" // /* */ $a true @ ; é \\
"""
PIECES = [*WORDS.split(), "\n"]


def compile_or_refuse(text):
    try:
        catalog = compile_schema(text)
    except SchemaError as error:
        lines = text.split("\n")
        for d in error.diagnostics:
            assert d.code in set(SchemaCode)
            assert 1 <= d.line <= len(lines)
            assert 1 <= d.column <= len(lines[d.line - 1]) + 1
        str(error).encode()
    else:
        assert from_ir(to_ir(catalog, text))[0] == catalog


@settings(deadline=None, max_examples=examples(100))
@given(st.text(st.characters()))
@example("\ufeff")
@example('node A @d("\ud800") {}')
def test_any_text(text):
    compile_or_refuse(text)


@settings(deadline=None, max_examples=examples(170))
@given(st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join))
def test_any_sequence_of_tokens(text):
    compile_or_refuse(text)


@settings(deadline=None, max_examples=examples(100))
@given(schema_texts(), st.data())
def test_mutations_of_valid_schemas(text, data):
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 10)))
        text = text[:start] + data.draw(st.sampled_from(["", *PIECES])) + text[end:]
    compile_or_refuse(text)


@settings(deadline=None, max_examples=examples(30))
@given(st.text('()[]{}?*+|^$\\.a-z0,:=!<>PiLux"', max_size=12))
def test_any_pattern(pattern):
    quoted = pattern.replace("\\", "\\\\").replace('"', '\\"')
    compile_or_refuse(f'node A {{ a: String @check(a, "{quoted}") }}')


def test_deep_nesting_is_no_recursion():
    compile_or_refuse("node A { a: " + "[" * 100_000)
    compile_or_refuse("node A { @key" + "(" * 100_000)
    compile_or_refuse(f'node A {{ a: String @check(a, "{"(" * 5_000}{")" * 5_000}") }}')
