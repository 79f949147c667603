"""Where an input of the shell ends, at a prompt and in a pipe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cli.shell.reading import inputs, is_complete, is_empty, styled

READ = "match { $v: Vessel } return { $v.name }"


@pytest.mark.parametrize(
    "text",
    [
        READ,
        f"{READ} limit 3",
        "query a() { " + READ + " }",
        'insert Port { code: "X" }',
        "delete Port where code = 1",
        "nonsense",
        "match { $v: Vessel } return { $v.name } }",
        ":help",
        ':params {"a": 1}',
        ":explain",
        f":explain {READ}",
        "",
        "// only a comment",
    ],
)
def test_complete(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    [
        "match {",
        "match { $v: Vessel }",
        "match { $v: Vessel } return",
        "match { $v: Vessel } return {",
        f"{READ} limit",
        "query a() {",
        "query a() { " + READ,
        "insert",
        "insert Port",
        "update Port set { name: 1 }",
        "delete Port",
        "delete Port where",
        "delete Port where code =",
        "delete Port where code = 1 and",
        'match { $v: Vessel { name: "a',
        "match /* not closed",
        ":explain match {",
        ':params {"a":',
    ],
)
def test_incomplete(text: str) -> None:
    assert not is_complete(text)


def test_a_pipe_is_cut_where_inputs_begin() -> None:
    lines = [
        "",
        "match { $v: Vessel }",
        "return { $v.name }",
        "order { $v.name }",
        "limit 2",
        'insert Port { code: "X" }',
        "delete Port",
        "  where code = 1",
        "  and name = 2",
        ":params {",
        '  "a": 1 }',
        "query a() {",
        "  match { $v: Vessel }",
        "",
        "  return { $v } }",
        ":quit",
    ]
    assert list(inputs(lines)) == [
        "match { $v: Vessel }\nreturn { $v.name }\norder { $v.name }\nlimit 2",
        'insert Port { code: "X" }',
        "delete Port\n  where code = 1\n  and name = 2",
        ':params {\n  "a": 1 }',
        "query a() {\n  match { $v: Vessel }\n\n  return { $v } }",
        ":quit",
    ]


def test_a_blank_line_ends_what_is_not_complete() -> None:
    assert list(inputs(["match { $v: Vessel }", "", READ])) == ["match { $v: Vessel }", READ]


def test_statements_on_one_line_stay_together() -> None:
    both = 'insert Port { code: "X" } insert Port { code: "Y" }'
    assert list(inputs([both])) == [both]


def test_empty() -> None:
    assert is_empty(" \n// x\n/* y */")
    assert not is_empty("/* y")
    assert not is_empty("x")


@given(st.lists(st.text(alphabet='match{}$v:V return"insert/*\n ', max_size=20), max_size=8))
def test_no_line_is_lost(lines: list[str]) -> None:
    lines = [line.replace("\n", " ") for line in lines]
    kept = "\n".join(inputs(lines)).split()
    assert kept == "\n".join(lines).split()


@given(st.text(max_size=80))
def test_colours_change_no_text(text: str) -> None:
    assert "".join(piece for _, piece in styled(text)) == text


def test_colours() -> None:
    assert styled('match "x" // c') == [
        ("bold", "match"), ("", " "), ("ansigreen", '"x"'), ("", " "), ("ansibrightblack", "// c"),
    ]  # fmt: skip
