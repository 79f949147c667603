"""Sums and averages of floats near the end of their range."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph

LARGE = 1.5e308
ROWS = {
    "over and back": [LARGE, LARGE, -LARGE],
    "only the average": [LARGE, LARGE],
    "small beside": [1e-300, 2e-300],
    "out of range": [LARGE, LARGE, LARGE],
    "plain": [1.0, 2.0, 4.5],
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    schema = "node N { g: String  x: F64 }\nedge E: N -> N"
    with omnigraph.init(tmp_path_factory.mktemp("large") / "g", schema) as made:
        made.load(
            [
                {"type": "N", "data": {"g": group, "x": x}}
                for group, numbers in ROWS.items()
                for x in numbers
            ]
        )
        yield made


def sums(graph: omnigraph.Graph, outputs: str, **options: str) -> dict[str, tuple[float, float]]:
    text = f"match {{ $n: N }} return {{ $n.g as g, {outputs} }}"
    return {r["g"]: (r["s"], r["a"]) for r in graph.query(text, **options).to_dicts()}


EXPECTED = {
    "over and back": (LARGE, pytest.approx(LARGE / 3)),
    "only the average": (float("inf"), LARGE),
    "small beside": (3e-300, 1.5e-300),
    "out of range": (float("inf"), LARGE),
    "plain": (7.5, 2.5),
}


def test_a_sum_is_out_of_range_only_if_its_end_is(graph) -> None:
    assert sums(graph, "sum($n.x) as s, avg($n.x) as a") == EXPECTED
    distinct = sums(graph, "sum(distinct $n.x) as s, avg(distinct $n.x) as a")
    assert distinct["over and back"] == (0.0, 0.0) and distinct["only the average"][0] == LARGE


def test_rows_that_stand_for_many_count_as_many(graph, tmp_path: Path) -> None:
    text = 'match { $n: N  $m: N  $n.g = "only the average"  $m.g = "plain" } return { avg($n.x) as a }'
    assert graph.query(text).to_dicts() == [{"a": LARGE}]
