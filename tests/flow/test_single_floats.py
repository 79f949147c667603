"""A decimal number finds what an F32 column has stored for it: it is rounded as the column rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph

SCHEMA = """
node M { k: String @key  v: F32?  vs: [F32]?  w: F64? }
node K { v: F32 @key  n: I32? }
edge L: M -> M { v: F32? }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    with omnigraph.init(tmp_path_factory.mktemp("single") / "g", SCHEMA) as made:
        made.load(
            [
                {"type": "M", "data": {"k": "a", "v": 0.1, "vs": [0.1, 0.5], "w": 0.1}},
                {"type": "M", "data": {"k": "b", "v": 0.2, "vs": [], "w": 0.2}},
                {"type": "M", "data": {"k": "c", "v": 16777216}},
                {"edge": "L", "from": "a", "to": "b", "data": {"v": 0.3}},
            ]
        )
        yield made


@pytest.mark.parametrize(
    ("clauses", "found"),
    [
        ("$m: M  $m.v = 0.1", "a"),
        ("$m: M  0.1 = $m.v", "a"),
        ("$m: M { v: 0.1 }", "a"),
        ("$m: M  $m.v != 0.1", "bc"),
        ("$m: M  $m.v in [0.1, 0.7]", "a"),
        ("$m: M  $m.v not in [0.1]", "bc"),
        ("$m: M  $m.vs contains 0.1", "a"),
        ("$m: M  0.1 in $m.vs", "a"),
        ("$m: M { vs: 0.1 }", "a"),
        ("$m: M  $m.v <= 0.1", "a"),
        ("$m: M  $m.v < 0.1", ""),
        ("$m: M  $m.v >= 0.1  $m.v < 0.2", "a"),
        ("$m: M  $m.v > 0.1", "bc"),
        ("$m: M  $m.v < 1000000000000000000000000000000000000000000000.5", "abc"),
        ("$m: M  $m.v = 16777217", ""),  # A whole number is not rounded: none can be stored.
        ("$m: M  $m.v = 16777216", "c"),
        ("$m: M  $m.v = $m.w", ""),  # Two columns compare by their values.
        ("$m $e:l $n  $e.v = 0.3", "a"),
        ("$m: M  $m.v = $p", "a"),
        ("$m: M { v: $p }", "a"),
        ("$m: M  $m.v in $list", "ab"),
        ("$m: M  $m.v in [$p, 0.2]", "ab"),
        ("$m: M  $m.vs contains $p", "a"),
        ("$m: M  $m.v > $p", "bc"),
        ("$m: M  $m.w = $p", "a"),
    ],
)
def test_a_decimal_number_is_found(graph, clauses: str, found: str) -> None:
    text = f"query q($p: F64, $list: [F64]) {{ match {{ {clauses} }} return {{ $m.k as k }} }}"
    rows = graph.query(text, params={"p": 0.1, "list": [0.1, 0.2]}).to_dicts()
    assert "".join(sorted(row["k"] for row in rows)) == found


def test_an_f32_key_is_updated_and_deleted_by_its_literal(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load([{"type": "K", "data": {"v": v, "n": 1}} for v in (0.1, 0.2, 0.3)])
        assert graph.mutate("update K set { n: 2 } where v = 0.1").affected_nodes == 1
        assert graph.mutate("upsert K { v: 0.2, n: 3 }").affected_nodes == 1
        text = "query q($p: F64) { update K set { n: 4 } where v = $p }"
        assert graph.mutate(text, params={"p": 0.3}).affected_nodes == 1
        assert graph.mutate("delete K where v in [0.1]").affected_nodes == 1
        found = graph.query("match { $k: K { v: 0.2 } } return { $k.n as n }").to_dicts()
        assert found == [{"n": 3}]
        assert graph.snapshot().count("K") == 2
