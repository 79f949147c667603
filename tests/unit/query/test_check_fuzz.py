"""Whatever the text is: typed queries come out, or a QueryError with places inside the text."""

from __future__ import annotations

from check_support import CATALOG, GOLDEN, WORKED
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnigraph.errors import QueryError
from omnigraph.query.codes import QueryCode
from omnigraph.query.compile import compile_queries
from omnigraph.query.describe import describe
from omnigraph.query.lint import lint
from omnigraph.query.parse.codes import SyntaxCode
from support.dump import dump
from support.examples import examples

TEXTS = [(case / "query.gq").read_text() for case in sorted(GOLDEN.iterdir())]
"""Valid and invalid ones: both have mistakes one edit away that nobody thought of."""
WORKED_TEXTS = [
    "match { $v: Vessel  $v callsAt $p } return { $v.name, $p.code }",
    "match { $v: Vessel  $v $c:callsAt $p } return { $v.name, $c.on }",
    'match { $p: Port { code: "AAR" }  $p feeds{1,2} $q } return { $q.code }',
    'match { $p: Port { code: "AAR" }  $p <feeds> $q } return { $q.code }',
    "match { $v: Vessel  not { $v callsAt $_ } } return { $v.name }",
    'match { $v: Vessel  $v.flag != "dk" } return { $v.name }',
    "match { $v: Vessel  optional { $v callsAt $p } $p is null } return distinct { $v.name as n } order { n }",
    "match { $v: Vessel  $v callsAt $p } return { $p.code, count($v) as n } order { n desc, $p.code } limit 3",
    'insert CallsAt { from: "100", to: "BGO", on: date("2026-03-01") }',
    'update Vessel set { flag: "dk" } where imo in [100, 200] and not (built is null)',
    'delete Port where code = "AAR"',
]
WORDS = """
    $v $w $p $_ $c $q v.name .name .imo .tags .shape .photo .id .from : = != < <= > >= contains in is
    not and or null true false 1 2.5 -3 "x" "dk" date("2026-01-02") datetime("x") now() [ ] [1] ( )
    { } {1,2} {0,} , callsAt feeds <feeds> Vessel Port Log CallsAt optional exists count count( sum(
    min( distinct search( bm25( nearest( rrf( fuzzy( as n order limit offset desc match return query
    insert upsert update delete set where id: from: imo: name: String I64 Vector(3) [I64]? $n
"""
PIECES = WORDS.split()


def check(text, catalog):
    try:
        queries = compile_queries(text, catalog)
    except QueryError as error:
        lines = text.split("\n")
        assert error.diagnostics
        for d in error.diagnostics:
            assert d.code in {*map(str, QueryCode), *map(str, SyntaxCode)}
            assert 1 <= d.line <= len(lines)
            assert 1 <= d.column <= len(lines[d.line - 1]) + 1
        str(error).encode()
        assert lint(text, catalog).status == "error"
    else:
        for query in queries:
            assert dump(query) == dump(query)
            describe(query, catalog)
        assert lint(text, catalog).status != "error"


def mutated(text, data):
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(st.sampled_from(["", " ", *PIECES])) + text[end:]
    return text


@settings(deadline=None, max_examples=examples(130))
@given(st.sampled_from(TEXTS), st.data())
def test_mutated_queries(text, data):
    check(mutated(text, data), CATALOG)


@settings(deadline=None, max_examples=examples(130))
@given(st.sampled_from(WORKED_TEXTS), st.data())
def test_mutated_queries_on_the_worked_example(text, data):
    check(mutated(text, data), WORKED)


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join))
@example("$v: Vessel $v: Vessel { }")
def test_any_clauses(clauses):
    check(f"match {{ $v: Vessel {clauses} }} return {{ $v.name }}", CATALOG)


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=15).map(" ".join), st.booleans())
def test_any_results(projections, optional):
    extra = "optional { $v $c:callsAt $p }" if optional else "$v $c:callsAt $p"
    check(f"match {{ $v: Vessel {extra} }} return {{ {projections} }}", CATALOG)


@settings(deadline=None, max_examples=examples(70))
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map(" ".join))
def test_any_condition(condition):
    check(f"delete Vessel where {condition}", CATALOG)


@settings(deadline=None, max_examples=examples(30))
@given(st.permutations(list(range(len(WORKED_TEXTS)))), st.integers(1, 6))
def test_words_of_several_queries_mixed(order, count):
    words = [WORKED_TEXTS[i].split() for i in order[:count]]
    check(" ".join(w for parts in zip(*words, strict=False) for w in parts), WORKED)
