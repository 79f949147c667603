"""What the reference system gets wrong when it runs reads, and we must not: one test each."""

from __future__ import annotations

from pathlib import Path

import pytest
from query_support import SCHEMA, ask, club, knows, people, person

import omnigraph
from omnigraph.query.compile import compile_queries
from omnigraph.query.describe import describe
from omnigraph.testing.clock import ManualClock


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with people(tmp_path_factory.mktemp("quirks") / "g", clock=ManualClock()) as made:
        yield made


# ---------------------------------------------------------------- parameters and names


def test_quirk_a_missing_parameter_never_returns_everything(graph):
    text = "query q($n: String) { match { $p: Person { city: $n } } return { $p.name } }"
    for params in (None, {}):
        with pytest.raises(omnigraph.ParameterError):
            graph.query(text, params)
    assert ask(graph, text, {"n": "Rome"}) == ["cat"]


def test_quirk_a_null_parameter_matches_nothing_instead_of_vanishing(graph):
    text = "query q($n: String?) { match { $p: Person { city: $n } } return { $p.name } }"
    assert ask(graph, text) == ask(graph, text, {"n": None}) == []
    key = "query q($n: String?) { match { $p: Person { name: $n } } return { $p.name } }"
    assert ask(graph, key, {"n": None}) == []
    there = "query q($n: String?) { match { $a: Person  $a knows $p  $p.city = $n } return { $p.name } }"
    assert ask(graph, there, {"n": None}) == []


def test_quirk_unknown_parameters_are_refused(graph):
    text = "query q($n: String) { match { $p: Person { city: $n } } return { $p.name } }"
    with pytest.raises(omnigraph.ParameterError, match="'m'"):
        graph.query(text, {"n": "Rome", "m": 1})


def test_quirk_an_unknown_variable_in_an_inline_match_is_not_ignored(graph):
    for text in (
        "match { $p: Person { city: $nobody } } return { $p.name }",
        "match { $a: Person  $a knows $p  $p: Person { city: $nobody } } return { $p.name }",
    ):
        with pytest.raises(omnigraph.QueryError):
            graph.query(text)


def test_quirk_now_has_a_value_in_reads(graph):
    text = 'match { $p: Person { name: "ann" }  now() > datetime("2025-12-31T00:00:00Z") } return { now() as a, now() as b }'
    ((one, other),) = ask(graph, text)
    assert one == other
    assert one.isoformat() == "2026-01-01T00:00:00+00:00"


def test_quirk_an_unknown_order_key_is_found_before_running(graph):
    with pytest.raises(omnigraph.QueryError):
        graph.query("match { $p: Person } return { count($p) as n } order { m }")


# ---------------------------------------------------------------- expressions


def test_quirk_columns_of_two_types_are_compared_without_a_cast(graph):
    """A cast of 30.5 to an integer would make ann equal to ann and to cat."""
    text = "match { $a: Person  $b: Person  $a.age = $b.score } return { $a.name, $b.name }"
    assert ask(graph, text) == [("bob", "bob")]
    less = 'match { $a: Person  $b: Person { name: "ann" }  $a.age < $b.score } return { $a.name } order { $a.name }'
    assert ask(graph, less) == ["ann", "cat"]


def test_quirk_a_fraction_never_equals_an_integer_column(graph):
    assert ask(graph, "match { $p: Person  $p.age = 30.5 } return { $p.name }") == []
    assert ask(graph, "match { $p: Person  $p.age > 30.5 } return { $p.name }") == ["bob"]


def test_quirk_there_is_a_way_to_ask_for_null(graph):
    assert ask(graph, "match { $p: Person  $p.city is null } return { $p.name }") == ["dan"]
    assert ask(graph, 'match { $p: Person  not ($p.city = "Oslo") } return { $p.name }') == ["cat"]


# ---------------------------------------------------------------- traversal


def test_quirk_a_loop_on_the_way_is_not_a_second_arrival(graph):
    """cat knows itself: for bob it is one hop away, and not two as well."""
    text = (
        'match { $a: Person { name: "bob" }  $a knows{%s} $b } return { $b.name } order { $b.name }'
    )
    assert ask(graph, text % "1,3") == ["cat", "dan"]
    assert ask(graph, text % "2,3") == ["dan"]
    own = (
        'match { $a: Person { name: "cat" }  $a knows{%s} $b } return { $b.name } order { $b.name }'
    )
    assert ask(graph, own % "1,2") == ["cat", "dan"]
    assert ask(graph, own % "2,2") == []


# ---------------------------------------------------------------- results


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        ("$p.name", ["p.name"]),
        ("$p", ["p"]),
        ("$p.name as n, $p.age", ["n", "p.age"]),
        ("count($p), avg($p.age), count(distinct $p.city)", None),
        ("$p.city, sum($p.age)", None),
        ('"x", now()', None),
    ],
)
def test_quirk_descriptor_and_rows_have_the_same_names(graph, returned, names):
    text = f"match {{ $p: Person }} return {{ {returned} }}"
    (query,) = compile_queries(text, graph.catalog)
    described = [field.name for field in describe(query, graph.catalog).result]
    result = graph.query(text)
    assert result.columns == described
    assert list(result.to_dicts()[0]) == described
    assert names is None or described == names


def test_quirk_two_columns_of_one_name_are_an_error(graph):
    with pytest.raises(omnigraph.QueryError):
        graph.query("match { $p: Person } return { $p.name as n, $p.age as n }")


def test_quirk_a_node_is_returned_whole(graph):
    (row,) = graph.query('match { $p: Person { name: "cat" } } return { $p }').to_dicts()
    assert row == {
        "p": {
            "@id": "cat",
            "name": "cat",
            "age": 30,
            "score": None,
            "city": "Rome",
            "bio": "Fox and hound",
            "nicks": ["c"],
        }
    }


def test_quirk_order_is_total(graph):
    """Equal keys are ordered by the ids of all variables, sorted by their names."""
    text = "match { $z: Person  $a: Club } return { $z.name, $a.title } order { $z.city }"
    found = ask(graph, text)
    assert found == [
        (z, a)
        for _, a, z in sorted(
            (city or "", a, z)
            for a in ("chess", "ski")
            for z, city in (("ann", "Oslo"), ("bob", "Oslo"), ("cat", "Rome"), ("dan", None))
        )
    ]


def test_quirk_pages_are_parts_of_one_order(graph):
    text = "query q($n: I64, $o: I64) { match { $a: Person  $a $e:knows $b } return { $a.name, $b.name, $e.since } limit $n offset $o }"
    pages = [ask(graph, text, {"n": 2, "o": o}) for o in range(0, 8, 2)]
    whole = ask(graph, text, {"n": 100, "o": 0})
    assert [row for page in pages for row in page] == whole
    assert len(whole) == 5


@pytest.mark.parametrize("bad", [-1, None, 1.5, "x", True])
def test_quirk_the_limit_can_be_a_parameter_and_is_checked(graph, bad):
    text = "query q($n: I64) { match { $p: Person } return { $p.name } order { $p.name } limit $n }"
    assert ask(graph, text, {"n": 2}) == ["ann", "bob"]
    assert ask(graph, text, {"n": 0}) == []
    with pytest.raises(omnigraph.ParameterError):
        graph.query(text, {"n": bad})


# ---------------------------------------------------------------- search


def test_quirk_match_text_is_a_phrase(graph):
    text = 'match { $p: Person  match_text($p.bio, "red fox") } return { $p.name }'
    assert ask(graph, text) == ["ann"]


def test_quirk_search_folds_case_without_any_index(graph):
    """A flat scan that compares bytes would miss the capital."""
    text = 'match { $p: Person  search($p.bio, "FOX") } return { $p.name } order { $p.name }'
    assert ask(graph, text) == ["ann", "bob", "cat"]


def test_quirk_search_sees_rows_of_the_newest_commit(tmp_path):
    with people(tmp_path / "g") as graph:
        text = 'match { $p: Person  search($p.bio, "zebra") } return { $p.name } order { $p.name }'
        assert ask(graph, text) == []
        graph.load([person("eve", bio="a zebra")])
        assert ask(graph, text) == ["eve"]
        graph.load([person("ann", bio="two zebra")], mode="merge")
        assert ask(graph, text) == ["ann", "eve"]
        graph.mutate('delete Person where name = "eve"')
        assert ask(graph, text) == ["ann"]
        assert ask(graph, 'match { $p: Person  search($p.bio, "quick") } return { $p.name }') == [
            "bob"
        ]


def test_quirk_the_worst_first_is_refused_not_ignored(graph):
    text = "match { $p: Person } return { $p.name } order { %s } limit 5"
    for best, worst in (
        ('bm25($p.bio, "fox")%s', " asc"),
        ("nearest($p.place, [3.0, 0.0])%s", " desc"),
    ):
        with pytest.raises(omnigraph.QueryError, match="the best come first"):
            graph.query(text % (best % worst))
        word = " desc" if worst == " asc" else " asc"
        assert ask(graph, text % (best % word)) == ask(graph, text % (best % "")) != []


def test_quirk_the_end_of_a_traversal_can_be_ranked(graph):
    text = (
        'match { $a: Person { name: "cat" }  $a knows $b } return { $b.name } order { %s } limit 5'
    )
    assert ask(graph, text % "nearest($b.place, [3.0, 0.0])") == ["dan", "cat"]
    assert ask(graph, text % 'bm25($b.bio, "slow hound")') == ["dan", "cat"]


def test_quirk_a_limit_counts_rows_after_the_join(tmp_path):
    """The nearest hundred are in no club: cutting candidates first would leave nothing."""
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load(
            [person(f"p{i:03}", place=[float(i), 0.0]) for i in range(120)]
            + [club("c")]
            + [{"edge": "MemberOf", "from": f"p{i:03}", "to": "c"} for i in range(100, 120)]
        )
        text = "match { $p: Person  $p memberOf $c } return { $p.name } order { nearest($p.place, [0.0, 0.0]) } limit 3"
        assert ask(graph, text) == ["p100", "p101", "p102"]


def test_quirk_filters_apply_before_a_ranking(graph):
    text = 'match { $p: Person  $p.city = "Rome" } return { $p.name } order { nearest($p.place, [0.0, 0.0]) } limit 1'
    assert ask(graph, text) == ["cat"]


def test_quirk_two_text_tests_on_one_variable_both_count(graph):
    text = 'match { $p: Person  search($p.bio, "fox")  search($p.bio, "hound") } return { $p.name }'
    assert ask(graph, text) == ["cat"]


def test_quirk_order_keys_behind_rrf_are_kept_and_ties_go_by_id(tmp_path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        # Each is first in one arm and absent from the other: the same fused score.
        graph.load(
            [
                person("b", bio="alpha", age=1),
                person("a", bio="beta", age=2),
                person("c", bio="none"),
            ]
        )
        score = 'rrf(bm25($p.bio, "alpha"), bm25($p.bio, "beta"))'
        text = f"match {{ $p: Person }} return {{ $p.name }} order {{ {score}%s }} limit 9"
        assert ask(graph, text % "") == ["a", "b"]
        assert ask(graph, text % ", $p.age") == ["b", "a"]
        assert ask(graph, text % ", $p.age desc") == ["a", "b"]


def test_quirk_a_score_can_be_returned(graph):
    text = "match { $p: Person } return { $p.name, nearest($p.place, [1.0, 0.0]) as d } order { nearest($p.place, [1.0, 0.0]) } limit 3"
    assert ask(graph, text) == [("bob", 0.0), ("ann", 1.0), ("cat", 1.0)]


def test_rows_of_a_ranked_node_share_its_rank(graph):
    text = "match { $p: Person  $p $e:knows $q } return { $p.name, $e.since, nearest($p.place, [0.0, 0.0]) as d } order { nearest($p.place, [0.0, 0.0]), $e.since } limit 3"
    assert ask(graph, text) == [("ann", 1, 0.0), ("ann", 2, 0.0), ("bob", None, 1.0)]


def test_quirk_a_text_query_is_embedded_by_the_model_of_the_schema(tmp_path):
    class Embedder:
        model = "m1"

        def embed(self, texts):
            return [[float(len(t)), 0.0] for t in texts]

    schema = 'node Doc { name: String @key  text: String  v: Vector(2)? @embed(text, model="m1") }'
    with omnigraph.init(tmp_path / "g", schema) as graph:
        graph.load(
            [
                {"type": "Doc", "data": {"name": n, "text": n, "v": [float(len(n)), 0.0]}}
                for n in ("a", "bbb")
            ]
        )
        text = 'match { $d: Doc } return { $d.name } order { nearest($d.v, "xyz") } limit 1'
        with pytest.raises(omnigraph.UsageError):
            graph.query(text)
    with omnigraph.open(tmp_path / "g", embedder=Embedder()) as graph:
        assert ask(graph, text) == ["bbb"]
    other = Embedder()
    other.model = "m2"
    with (
        omnigraph.open(tmp_path / "g", embedder=other) as graph,
        pytest.raises(omnigraph.UsageError),
    ):
        graph.query(text)


def test_quirk_parallel_edges_collapse_unless_the_edge_is_named(graph):
    one = 'match { $a: Person { name: "ann" }  $a knows $b } return { $b.name }'
    assert ask(graph, one) == ["bob"]
    each = 'match { $a: Person { name: "ann" }  $a $e:knows $b } return { $e.since } order { $e.since }'
    assert ask(graph, each) == [1, 2]
    assert ask(
        graph, 'match { $a: Person { name: "ann" }  $a knows $b } return { count($b) as n }'
    ) == [1]


def test_quirk_an_anti_join_walks_all_its_hops(tmp_path):
    with people(tmp_path / "g") as graph:
        graph.load([person("eve"), knows("eve", "ann")])
        text = 'match { $a: Person  not { $a knows{1,3} $b  $b.name = "dan" } } return { $a.name } order { $a.name }'
        assert ask(graph, text) == ["dan", "eve"]


def test_rows_of_one_ranked_node_stay_together_when_scores_tie(tmp_path: Path) -> None:
    schema = """
    node Doc { code: String @key  body: String @index }
    node Person { name: String @key }
    edge Mentions: Doc -> Person
    """
    with omnigraph.init(tmp_path / "ranked", schema) as graph:
        graph.load(
            [
                {"type": "Doc", "data": {"code": "d1", "body": "sea"}},
                {"type": "Doc", "data": {"code": "d2", "body": "sea"}},
                *({"type": "Person", "data": {"name": n}} for n in ("ann", "bob")),
                *(
                    {"edge": "Mentions", "from": d, "to": p}
                    for d in ("d1", "d2")
                    for p in ("ann", "bob")
                ),
            ]
        )
        # The variable of the people sorts before that of the documents.
        rows = graph.query(
            'match { $z: Doc  $z mentions $a } return { $z.code, $a.name } order { bm25($z.body, "sea") }'
        )
        assert [r["z.code"] for r in rows] == ["d1", "d1", "d2", "d2"]
