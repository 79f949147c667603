"""No word is reserved: types, edges, properties, variables, parameters and columns have any name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import omnigraph

WORDS = [
    "in",
    "is",
    "and",
    "or",
    "not",
    "null",
    "true",
    "false",
    "exists",
    "count",
    "optional",
    "match",
    "return",
    "order",
    "limit",
    "contains",
    "starts_with",
    "where",
    "set",
    "insert",
    "update",
    "delete",
    "upsert",
    "query",
    "as",
    "desc",
    "asc",
    "distinct",
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.Graph]:
    """Two nodes and, for each word, an edge between them."""
    properties = "  ".join(f"{word}: I32?" for word in WORDS)
    edges = "\n".join(f"edge {word.capitalize()}: P -> P {{ {word}: I32? }}" for word in WORDS)
    schema = f"node P {{ k: String @key  {properties} }}\n{edges}\n"
    with omnigraph.init(tmp_path_factory.mktemp("words") / "g", schema) as made:
        made.load({"P": [{"k": "a", **dict.fromkeys(WORDS, 1)}, {"k": "b"}]})
        made.load({w.capitalize(): [{"src": "a", "dst": "b", w: 2}] for w in WORDS})
        yield made


READS = (
    "match {{ $a {0} $b }} return {{ $a.k as k }}",
    "match {{ $a: P  $a {0} $b }} return {{ $a.k as k }}",
    "match {{ $a $e:{0} $b  $e.{0} = 2 }} return {{ $a.k as k }}",
    'match {{ $a: P {{ k: "a" }}  $a <{0}> $b }} return {{ $a.k as k }}',
    "match {{ $a: P  $a {0}{{1,2}} $b }} return {{ $a.k as k }}",
    "match {{ $a: P  not {{ $b {0} $a }} }} return {{ $a.k as k }}",
    "match {{ $a: P  exists {{ $a {0} $_ }} }} return {{ $a.k as k }}",
    "match {{ $a: P  $a {0} $b  $a.{0} is not null and not $a.{0} in [3] }} return {{ $a.k as k }}",
    "match {{ $a: P {{ {0}: 1 }} }} return {{ $a.k as k }}",
    "match {{ ${0}: P  ${0}.{0} = 1 }} return {{ ${0}.k as k }}",
)
CONDITIONS = (
    "{0} = 1",
    "{0} is not null",
    "not {0} is null",
    "{0} in [1]",
    "{0} not in [2]",
    "not {0} != 1 and {0} in [1]",
    'k = "a" and ({0} = 1 or {0} is null)',
)


@pytest.mark.parametrize("word", WORDS)
def test_in_a_read(graph: omnigraph.Graph, word: str) -> None:
    for text in READS:
        assert graph.query(text.format(word)).to_dicts() == [{"k": "a"}], text.format(word)


@pytest.mark.parametrize("word", WORDS)
def test_as_a_column_and_a_parameter(graph: omnigraph.Graph, word: str) -> None:
    text = f"""
    query {word}(${word}: I32) {{
      match {{ $a: P  $a.{word} = ${word} }} return {{ $a.{word} as {word} }} order {{ {word} desc }}
    }}
    """
    assert graph.query(text, {word: 1}).to_dicts() == [{word: 1}]


@pytest.mark.parametrize("word", WORDS)
def test_in_the_condition_of_a_mutation(graph: omnigraph.Graph, word: str) -> None:
    for condition in CONDITIONS:
        text = f"update P set {{ {word}: 1 }} where {condition.format(word)}"
        assert graph.mutate(text).affected_nodes == 1, text


def test_a_literal_to_the_right_stays_one(tmp_path) -> None:
    with omnigraph.init(tmp_path / "g", "node P { k: String @key  true: Bool?  done: Bool? }") as g:
        g.load({"P": [{"k": "a", "true": False, "done": True}, {"k": "b", "true": True}]})
        assert g.mutate("update P set { done: true } where done = true").affected_nodes == 1
        assert g.mutate("delete P where true = true").affected_nodes == 1
        assert g.query("match { $p: P } return { $p.k }").to_dicts() == [{"p.k": "a"}]
