"""Releases of pyarrow that cannot tell Lance about parts of texts: the same answers, found by us."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.query.exec import pushdown
from omnigraph.query.search.analyzer import analyse
from omnigraph.storage import index_answers

SCHEMA = "node Doc { id: String @key  body: String @index }"
QUERY = 'match { $d: Doc  $d.body contains "it\'s" } return { $d.id } order { $d.id }'


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pushdown, index_answers):
        monkeypatch.setattr(module, "text_tests_travel", lambda: False)


def test_parts_of_texts_are_found_and_their_indexes_checked(older: None, tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        rows = {"id": ["a", "b", "c"], "body": ["it's here", "nothing", "so it's 'quoted'"]}
        graph.load(pa.table(rows), type="Doc")
        assert graph.query(QUERY).to_dicts() == [{"d.id": "a"}, {"d.id": "c"}]
        graph.optimize()
        assert graph.query(QUERY).to_dicts() == [{"d.id": "a"}, {"d.id": "c"}]
        assert graph.upkeep.check().ok


def test_a_column_without_words_has_no_terms() -> None:
    analysed = analyse(pa.chunked_array([["", None, "..."]], pa.string()))
    assert (list(analysed.terms), len(analysed.words)) == ([], 0)
    assert (analysed.lengths.tolist(), analysed.documents) == ([0, 0, 0], 2)
