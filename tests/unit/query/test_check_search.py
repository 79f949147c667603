"""Text tests and rankings: their arguments, and where they may stand."""

from __future__ import annotations

import pytest
from check_support import codes, read, read_text

from omnigraph.query import typed

PAGE = "$p: Page"


def test_defaults_are_filled_in():
    (test,) = read(f'{PAGE} fuzzy($p.title, "x")', "$p.title").pattern.filters
    assert test.edits.value == 2
    order = read(
        PAGE, "$p.title", 'order { rrf(bm25($p.title, "x"), nearest($p.body, "x")) } limit 1'
    ).order
    assert order[0].value.k.value == 60


def test_text_tests_are_ordinary_conditions():
    (test,) = read(
        f'{PAGE} not (search($p.title, "x") or match_text($p.title, "y"))', "$p.title"
    ).pattern.filters
    kinds = [o.kind for o in test.operand.operands]
    assert kinds == ["search", "phrase"]
    body = read(PAGE, 'search($p.title, "x") as found')
    assert body.outputs[0].type.scalar == "Bool"


def test_a_key_is_indexed_too():
    assert codes('match { $p: Port search($p.code, "x") } return { $p.code }') == []


@pytest.mark.parametrize(
    ("query", "params"),
    [
        ("[0.5, 1]", ""),
        ("$x", "$x: Vector(2)"),
        ("$x", "$x: String"),
        ("$x", "$x: String?"),
        ('"text"', ""),
    ],
)
def test_what_nearest_compares_with(query, params):
    body = read(PAGE, "$p.title", f"order {{ nearest($p.body, {query}) }} limit 3", params)
    assert body.order[0].value.size == 2


@pytest.mark.parametrize(
    ("query", "params", "code"),
    [
        ("[1]", "", "Q221"),
        ("[]", "", "Q221"),
        ('["a", "b"]', "", "Q506"),
        ("$x", "$x: Vector(3)", "Q221"),
        ("$x", "$x: [F32]", "Q506"),
        ("7", "", "Q506"),
        ("$p.body", "", "Q506"),
        ("null", "", "Q211"),
    ],
)
def test_what_nearest_does_not_compare_with(query, params, code):
    text = read_text(PAGE, "$p.title", f"order {{ nearest($p.body, {query}) }} limit 3", params)
    assert codes(text) == [code]


def test_scores_may_be_returned_when_they_order():
    body = read(PAGE, 'bm25($p.title, "x") as s, $p.title', 'order { bm25($p.title, "x") }')
    assert body.outputs[0].value == body.order[0].value
    assert not body.outputs[0].type.nullable
    by_alias = read(PAGE, 'bm25($p.title, "x") as s, $p.title', "order { s, $p.title }")
    assert by_alias.order[0].value == body.order[0].value


@pytest.mark.parametrize(
    ("returned", "tail", "code"),
    [
        ('bm25($p.title, "x")', "", "Q510"),
        ('bm25($p.title, "x")', 'order { bm25($p.title, "y") }', "Q510"),
        ('bm25($p.title, "x") as s', "order { $p.title, s }", "Q509"),
        ('bm25($p.title, "x") as s', "order { s asc }", "Q512"),
        ("$p.title", 'order { nearest($p.body, "x") desc } limit 3', "Q512"),
        ("$p.title", 'order { rrf(bm25($p.title, "x"), bm25($p.title, "y")) }', "Q511"),
        ("$p.title", 'order { nearest($p.body, "x") }', "Q511"),
        ("count($p)", 'order { bm25($p.title, "x") }', "Q513"),
        ('bm25($p.title, "x") > 1 as good', "", "Q509"),
    ],
)
def test_where_scores_may_not_stand(returned, tail, code):
    assert code in codes(read_text(PAGE, returned, tail))


def test_scores_and_distinct():
    text = 'match { $p: Page } return distinct { $p.title } order { bm25($p.title, "x") }'
    assert codes(text) == ["Q513"]


def test_an_inner_block_has_no_scores():
    assert codes(
        read_text(f'{PAGE} exists {{ $q: Page $q = $p bm25($q.title, "x") > 1 }}', "$p.title")
    ) == ["Q509"]


def test_keys_behind_a_score_are_kept():
    body = read(PAGE, "$p.title", 'order { bm25($p.title, "x"), $p.title desc }')
    assert isinstance(body.order[1].value, typed.Prop)
