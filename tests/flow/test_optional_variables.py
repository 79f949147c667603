"""A variable of an optional block that found nothing: what tests and inner blocks make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph

SCHEMA = """
node Vessel { name: String @key }
node Port { code: String @key  name: String @index }
edge CallsAt: Vessel -> Port
"""


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    graph = omnigraph.init(tmp_path / "g", SCHEMA)
    graph.load(
        [
            {"type": "Vessel", "data": {"name": "Alba"}},
            {"type": "Vessel", "data": {"name": "Cora"}},
            {"type": "Port", "data": {"code": "AAR", "name": "Aarhus"}},
            {"edge": "CallsAt", "from": "Alba", "to": "AAR"},
        ]
    )
    return graph


def names(graph: omnigraph.Graph, condition: str) -> list[str]:
    text = f"match {{ $v: Vessel  optional {{ $v callsAt $p }}  {condition} }} return {{ $v.name }}"
    return sorted(row["v.name"] for row in graph.query(text))


def test_binding_a_null_variable_again_in_a_block_finds_nothing(graph: omnigraph.Graph) -> None:
    assert names(graph, "not { $p: Port }") == ["Cora"]
    assert names(graph, 'exists { $p: Port { code: "AAR" } }') == ["Alba"]
    assert names(graph, "count { $p: Port } = 0") == ["Cora"]


def test_a_text_test_on_a_null_variable_is_false_and_not_unknown(graph: omnigraph.Graph) -> None:
    assert names(graph, 'search($p.name, "aarhus")') == ["Alba"]
    assert names(graph, 'not search($p.name, "aarhus")') == ["Cora"]
    assert names(graph, 'not match_text($p.name, "aarhus")') == ["Cora"]
    assert names(graph, 'not fuzzy($p.name, "aarhus")') == ["Cora"]
