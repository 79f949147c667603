"""Broken texts: every mistake is reported once, at its place, with a way out."""

from __future__ import annotations

import pytest

from omnigraph.errors import QueryError
from omnigraph.lang.source import FINDINGS_MAX, Source
from omnigraph.query.parse import parse_queries

REST = " } return { $v } }"


def diagnostics(text):
    with pytest.raises(QueryError) as caught:
        parse_queries(Source(name="q.gq", text=text))
    return caught.value.diagnostics


def places(text):
    return [(d.code, d.line, d.column) for d in diagnostics(text)]


# ---------------------------------------------------------------- hints


@pytest.mark.parametrize(
    ("clause", "code", "hint"),
    [
        ("$v.a == 1", "Q020", "write `=`"),
        ("$v.a <> 1", "Q020", "write `!=`"),
        ("$v.a && $v.b", "Q020", "write `and`"),
        ("$v.a || $v.b", "Q020", "write `or`"),
        ("!$v.a", "Q020", "write `not`"),
        ("$v.a AND $v.b", "Q020", "write `and`"),
        ("$v.a = NULL", "Q020", "write `null`"),
        ('$v.a like "x"', "Q020", "write `contains` or `starts_with`"),
        ("$v.a = 'x'", "Q001", 'write "x"'),
        ("$v: V;", "Q001", "leave the semicolon out"),
        ("$V.a = 1", "Q001", "lower-case letter: `$v`"),
        ("$v: V # note", "Q001", "comments are written `// …`"),
        ("where $v.a = 1", "Q027", "without `where`"),
        ("$v knows{3} $w", "Q021", "write `{3,3}`"),
        ("$v knows{1..3} $w", "Q021", "write `{1,3}`"),
        ("$v knows*2..4 $w", "Q021", "`knows{2,4}`"),
        ("v: V", "Q030", "write `$v`"),
        ("v knows $w", "Q030", "write `$v`"),
        ("$v knows w", "Q030", "write `$w`"),
        ("v.a = 1", "Q030", "write `$v`"),
        ("$v Knows $w", "Q012", "write `knows`"),
        ("$v: vessel", "Q011", "write `Vessel`"),
        ("$v.a = 1 + 2", "Q024", "queries do not calculate"),
        ("$v.a = 2026-01-02", "Q024", 'write `date("2026-01-02")`'),
        ("$v -> $w", "Q020", "by its word: `$v knows $w`"),
        ("$v --> $w", "Q020", "by its word: `$v knows $w`"),
        ("$v -- $w", "Q020", "by its word: `$v <knows> $w`"),
        ("$v -k-> $w", "Q020", "write `$v k $w`"),
        ("$v <-k- $w", "Q020", "write `$w k $v`"),
        ("$v -k- $w", "Q020", "write `$v <k> $w`"),
        ("$v-[:KNOWS]->$w", "Q020", "write `$v knows $w`"),
        ("$v -[e:Knows]-> $w", "Q020", "write `$v $e:knows $w`"),
        ("$v <-[:KNOWS*1..3]- $w", "Q020", "write `$w knows{1,3} $v`"),
        ("$v -[:A|B]-> $w", "Q020", "write `$v a $w`"),
        ("$v -k->", "Q020", "follow an edge by its word: `$a knows $b`"),
        ("$v -[:K]->(w:Port)", "Q020", "write `$a: Person` for a node"),
        ("(v:Person)-[:KNOWS]->(w:Person)", "Q020", "write `$a: Person` for a node"),
        ("($v)-[:KNOWS]->($w)", "Q020", "write `$a: Person` for a node"),
        ("$v.NAME = 1", "Q012", "write `name`"),
        ("$v KNOWS $w", "Q012", "write `knows`"),
        ("$v.a in (1, 2)", "Q010", "in brackets: `[1, 2]`"),
        ("1 < $v.a < 3", "Q023", "join two comparisons"),
        ("$v.a = 1e3", "Q026", None),
        ("$v.a = 1_000", "Q026", "write `1000`"),
        ("$v.a or not { $v: V }", "Q010", "write `not exists { … }`"),
        ("optional match { $v: V }", "Q010", "without `match`"),
        ("$v: V { a = 1 }", "Q010", "write `a: …`"),
        ('$v: V { "a": 1 }', "Q010", "without quotes"),
        ("$v.a.b = 1", "Q010", "`a` has no properties"),
        ("$v.day = date(2026)", "Q010", "a parameter is used as it is"),
    ],
)
def test_a_mistake_in_a_clause_is_one_report_with_a_way_out(clause, code, hint):
    for text in (
        f"query q() {{ match {{ {clause}{REST}",
        f"query q() {{ match {{ $v: V\n{clause}\n$v.x = 1{REST}",
        f"query q() {{ match {{ not {{ {clause}\n}}{REST}",
    ):
        if "#" in clause and "\n" not in text:
            continue
        (found,) = diagnostics(text)
        assert found.code == code
        assert hint is None or hint in found.hint


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("match { $v: V } return { count(*) }", "Q031", "`count($v)`"),
        ("match { $v: V } return { $v.* }", "Q031", "`$v` for the whole node"),
        ("match { $v: V } return $v.name", "Q010", "`return { $v.name, $v.age }`"),
        ("match { $v: V } return { distinct $v.a }", "Q017", "`return distinct { … }`"),
        ("match { $v: V } return { n: $v.a }", "Q010", "`… as n`"),
        ("match { $v: V } return { $v.a as 'n' }", "Q001", 'write "n"'),
        ("match { $v: V } return { $v } limit 3 order { $v.a }", "Q017", "match, return, order"),
        ("match { $v: V } return { $v } order by { $v.a }", "Q010", "`order { $v.name desc }`"),
        ("match { $v: V } return { $v } order { $v.a DESC }", "Q020", "write `desc`"),
        ("match { $v: V } return { $v } limit 3, 4", "Q010", "`limit 10 offset 20`"),
        ("match { $v: V } return { $v } limit n", "Q030", "write `$n`"),
        ("match { $v: V } return { $v } limit -1", "Q010", "`limit 10` or `limit $n`"),
        ("match { $v: V } return { $v } skip 3", "Q010", "write `offset`"),
        ("match { $v: V } return { $v } group by $v.a", "Q010", "leave `group by` out"),
        ("match { $v: V } where $v.a return { $v }", "Q027", "into `match { … }`"),
        ("match { $v: V }", "Q019", None),
        ("match { $v: V } }\nreturn { $v }", "Q010", "closes nothing"),
        ("match { } return { $v }", "Q016", None),
        ("return { 1 }", "Q010", None),
        ("delete V", "Q028", "say which rows"),
        ("delete from V where true", "Q010", "leave `from` out"),
        ("insert into V { a: 1 }", "Q010", "leave `into` out"),
        ("update V { a: 1 } where true", "Q010", "`update V set { … } where …`"),
        ("update V set a: 1 where true", "Q010", "in braces"),
        ("insert V { a: 1 } match { $v: V } return { $v }", "Q025", "two queries"),
        ("query q { match { $v: V } return { $v } }", "Q010", "`query q() { … }`"),
        ("query q(a: I64) { match { $v: V } return { $v } }", "Q030", "write `$a`"),
        ("query q($a) { match { $v: V } return { $v } }", "Q010", "`$a: String`"),
        ("query q($a: I64 = 3) { match { $v: V } return { $v } }", "Q010", "no default"),
        ("query q($a: enum(x)) { match { $v: V } return { $v } }", "Q010", "`String`"),
        ("query q($a: [I64?]) { match { $v: V } return { $v } }", "Q010", "`[I64]?`"),
        ("query q($a: Vector) { match { $v: V } return { $v } }", "Q010", "`Vector(8)`"),
        ('query q() @descripton("x") { match { $v: V } return { $v } }', "Q029", "@description"),
        ("qurey q() { match { $v: V } return { $v } }", "Q014", "did you mean `query`?"),
        ("query q() { mach { $v: V } return { $v } }", "Q010", "did you mean `match`?"),
        ("match { $v: V } retrun { $v }", "Q010", "did you mean `return`?"),
        ("match { $v: V, } return { $v }", "Q010", "leave the comma out"),
        ("mtach { $v: V } return { $v }", "Q014", "did you mean `match`?"),
        ("", "Q013", "`query name()"),
        (" \n// only this\n", "Q013", "`query name()"),
    ],
)
def test_a_mistake_in_a_body_is_one_report_with_a_way_out(text, code, hint):
    (found,) = diagnostics(text)
    assert found.code == code
    assert hint is None or hint in found.hint


# ---------------------------------------------------------------- several at once


def test_every_block_goes_on_behind_a_broken_item():
    text = """query a($x: , $y: I64) {
    match {
        $v: Vessel { name: , flag: "dk" }
        $v callsAt{3} $p
        not { $p feeds ) $q
              $q.x == 3 }
        $v.z =
        $w: Port
    }
    return { $v.name as , count( as n, $v.y }
    order { desc desc, , $v.name }
    limit
}
query b() {
    insert { a: 1 }
    update V set { a: } where x
    delete W wehre x
    delete W where x == 1
}
"""
    assert places(text) == [
        ("Q010", 1, 13),
        ("Q010", 3, 28),
        ("Q021", 4, 19),
        ("Q010", 5, 24),
        ("Q020", 6, 20),
        ("Q010", 8, 9),
        ("Q010", 10, 25),
        ("Q010", 10, 37),
        ("Q010", 11, 24),
        ("Q010", 13, 1),
        ("Q010", 15, 12),
        ("Q010", 16, 23),
        ("Q028", 17, 14),
        ("Q020", 18, 22),
    ]


def test_a_missing_brace_does_not_swallow_the_rest():
    text = """query a() {
    match {
        $v: Vessel { name: "x"
        not { $v callsAt $p
    return { $v.name }
    limit = 3
}
query b() { match { $v: Vessel } return { $v.x == 1 as y } }
"""
    assert [p[:2] for p in places(text)] == [
        ("Q015", 4), ("Q015", 5), ("Q010", 6), ("Q020", 8),
    ]  # fmt: skip


def test_an_unclosed_text_is_reported_once_and_names_the_opening_line():
    (found,) = diagnostics("query a() {\n match {\n  not {\n   $v: V")
    assert (found.code, found.line) == ("Q015", 4)
    assert found.expected == "`}` that closes `not {` of line 3"


def test_names_like_keywords_do_not_stop_the_search_for_the_next_item():
    text = "match {\n $v.y = ) $a limit $b\n $v.x == 1\n} return { $v }"
    assert places(text) == [("Q010", 2, 9), ("Q020", 3, 7)]


def test_what_follows_an_unclosed_string_is_not_reported():
    assert places('match { $v: V { a: "x } }\nreturn { $v ===') == [("Q002", 1, 20)]


def test_a_skipped_character_is_the_only_report():
    assert places("match { $v: V \\ } return { $v }") == [("Q001", 1, 15)]
    assert places("match { $v.a = ~ } return { $v }") == [("Q001", 1, 16)]


def test_the_report_is_bounded():
    text = "match { $v: V\n" + "$v.a == 1\n" * 1000 + "} return { $v }"
    assert len(diagnostics(text)) == FINDINGS_MAX
    assert len(diagnostics("; " * 50_000)) == FINDINGS_MAX


# ---------------------------------------------------------------- depth and size


@pytest.mark.parametrize(
    "text",
    [
        "match { " + "(" * 10_000,
        "match { $v.a = " + "(" * 10_000 + "1" + ")" * 10_000 + " } return { $v }",
        "match { " + "not { " * 10_000,
        "match { " + "not { " * 10_000 + "$v: V" + " }" * 10_000 + " } return { $v }",
        "match { " + "optional { " * 10_000 + " }" * 10_000,
        "match { " + "exists { " * 10_000,
        "match { " + "count { $v: V count { " * 10_000,
        "match { $v: V } return { " + "[" * 10_000,
        "match { $v: V } return { " + "f(" * 10_000,
        "delete V where " + "not " * 10_000 + "x",
        "delete V where " + "(not " * 10_000 + "x" + ")" * 10_000,
        "query " * 10_000,
        "query a() { " * 10_000,
        "where " * 10_000,
        "match { " + "where " * 10_000 + "$v: V } return { $v }",
        "match " * 10_000,
        "{" * 10_000,
        "}" * 10_000,
        "(" * 10_000 + "}" * 10_000,
    ],
)
def test_depth_is_bounded_by_a_diagnostic_and_not_by_the_stack(text):
    assert 1 <= len(diagnostics(text)) <= FINDINGS_MAX


def test_long_flat_texts_are_fine():
    many = " or ".join(["$v.a = 1"] * 5_000)
    parsed = parse_queries(
        Source(name="q", text=f"match {{ $v: V {many} }} return {{ {'$v.a ' * 5_000} }}")
    )
    assert len(parsed.queries[0].body.clauses[1].condition.operands) == 5_000
    assert len(parsed.queries[0].body.projections) == 5_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("match { $v: V } return { $v.a AS b }", ["AS"]),
        ("match { $v: V } return { $v.a As b }", ["As"]),
        ("MATCH { $v: V } RETURN DISTINCT { $v.a }", ["MATCH", "RETURN", "DISTINCT"]),
        ("match { $v: V OPTIONAL { $v k $w } NOT { $v k $w } } return { $v }", ["OPTIONAL", "NOT"]),
        ("match { $v: V EXISTS { $v k $w } } return { COUNT($v) as n }", ["EXISTS", "COUNT"]),
        ('match { $v: V { a: NULL } $v.a CONTAINS "x" } return { $v }', ["NULL", "CONTAINS"]),
        ("match { $v: V } return { $v } ORDER { $v.a DESC } LIMIT 3", ["ORDER", "DESC", "LIMIT"]),
        ('UPDATE V SET { a: TRUE } WHERE b = "x"', ["UPDATE", "SET", "TRUE", "WHERE"]),
        ("QUERY q() { DELETE V where a = 1 }", ["QUERY", "DELETE"]),
    ],
)
def test_words_in_capitals_are_told_by_their_spelling_and_nothing_else_is(text, words):
    found = diagnostics(text)
    assert [d.code for d in found] == ["Q020"] * len(words)
    assert [d.source_line[d.column - 1 :][: d.length] for d in found] == words
    assert [d.hint for d in found] == [f"write `{word.lower()}`" for word in words]


@pytest.mark.parametrize(
    "text",
    [
        "match { $v: Order { a: 1 } $w: Limit $v k $w } return { $v }",
        "query q() { insert Set { a: 1 } upsert As { a: 1 } update Where set { a: 1 } where a = 1 }",
        "delete Match where a = 1",
    ],
)
def test_types_are_called_like_words_of_the_language(text):
    assert parse_queries(Source(name="q", text=text)).queries


def test_a_star_outside_an_arrow_is_never_passed_over():
    (found,) = diagnostics('match { $v: V $v.a = "-[" $v.b = 1 * 2 } return { $v }')
    assert (found.code, found.column) == ("Q024", 36)


@pytest.mark.parametrize("text", ["\0", "\ud800", 'match { $v: V { a: "\ud800" } } return { $v }'])
def test_characters_that_are_none(text):
    assert diagnostics(text)[0].code == "Q001"
    with pytest.raises(QueryError) as caught:
        parse_queries(Source(name="q", text=text))
    str(caught.value).encode()
