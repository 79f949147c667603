"""Lance refuses every condition on a table that has a list of unsigned numbers; we must not."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph

SCHEMA = """
node Sensor { code: String @key  readings: [U32]  limits: [U64]? }
edge Feeds: Sensor -> Sensor { weights: [U32]? }
"""


@pytest.mark.parametrize("mode", ["indexed", "csr", "auto"])
def test_lookups_and_traversals_on_tables_with_lists_of_unsigned(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load(
            [
                {"type": "Sensor", "data": {"code": "a", "readings": [1, 2]}},
                {"type": "Sensor", "data": {"code": "b", "readings": [4294967295]}},
                {"type": "Sensor", "data": {"code": "c", "readings": [], "limits": [2**64 - 1]}},
                {"edge": "Feeds", "from": "a", "to": "b", "data": {"weights": [7]}},
                {"edge": "Feeds", "from": "b", "to": "c"},
            ]
        )
        reached = graph.query(
            'match { $a: Sensor { code: "a" }  $a feeds{1,2} $b } return { $b.code } order { $b.code }'
        )
        assert [r["b.code"] for r in reached] == ["b", "c"]
        edge = graph.query(
            'match { $a: Sensor { code: "a" }  $a $e:feeds $b } return { $e.weights }'
        )
        assert edge.to_dicts() == [{"e.weights": [7]}]
        full = graph.query(
            "match { $a: Sensor  $a.readings contains 4294967295 } return { $a.code }"
        )
        assert full.to_dicts() == [{"a.code": "b"}]
