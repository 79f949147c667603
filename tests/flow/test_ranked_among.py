"""A ranking is among what the conditions on its variable leave, however they are written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import omnigraph

SCHEMA = """
node D { k: String @key  text: String @index  v: Vector(2)?  ok: Bool }
edge Cites: D -> D
"""
RRF = 'rrf(bm25($d.text, "red"), nearest($d.v, [0, 1]))'
BM25 = 'bm25($d.text, "red fox")'
NEAREST = "nearest($d.v, [0, 1])"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path_factory.mktemp("ranked") / "g", SCHEMA) as made:
        words = [("red " * (i % 4) + "fox " * (i % 3)).strip() or "blue" for i in range(40)]
        made.load(
            {
                "D": [
                    {"k": f"d{i}", "text": words[i], "v": [i % 5, i % 7], "ok": i % 3 != 0}
                    for i in range(40)
                ]
            }
        )
        made.load({"Cites": [{"src": f"d{i}", "dst": f"d{i * 7 % 40}"} for i in range(0, 40, 2)]})
        yield made


def ranked(graph: omnigraph.Graph, condition: str, score: str, limit: int) -> list:
    text = f"match {{ $d: D  {condition} }} return {{ $d.k, {score} as s }}"
    return graph.query(f"{text} order {{ {score} }} limit {limit}").to_dicts()


@pytest.mark.parametrize("score", [RRF, BM25, NEAREST])
@pytest.mark.parametrize("limit", [3, 100])
@pytest.mark.parametrize(
    "same",
    [
        ("$d.ok = true", "not { $d.ok = false }", "exists { $d.ok = true }"),
        ("exists { $d cites $_ }", "count { $d cites $x } > 0", "not { not { $d cites $_ } }"),
        (
            "$d.ok = true  not { $_ cites $d }",
            "not { $_ cites $d }  not { $d.ok = false }",
            "exists { $d.ok = true } and not exists { $_ cites $d }",
        ),
    ],
    ids=["property", "edge", "both"],
)
def test_one_meaning_has_one_order(
    graph: omnigraph.Graph, same: tuple[str, ...], score: str, limit: int
) -> None:
    first, *others = (ranked(graph, condition, score, limit) for condition in same)
    assert first
    for other in others:
        assert other == first


def test_explain_shows_the_conditions_below_the_ranking(graph: omnigraph.Graph) -> None:
    condition = "not { $_ cites $d }  exists { $d.ok = true }"
    text = f"match {{ $d: D  {condition} }} return {{ $d.k }} order {{ {RRF} }} limit 3"
    steps = [step.text.split()[0] for step in graph.explain(text).steps]
    assert steps.index("rank") < min(steps.index("with"), steps.index("without"))
