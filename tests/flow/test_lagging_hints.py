"""The hint may lag or be damaged: a cold reader shows the newest state all the same."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects

HINT = "__manifest/_head.json"


def names(graph: omnigraph.Graph) -> list[str]:
    found = graph.query("match { $p: P } return { $p.name as name } order { name }")
    return [row["name"] for row in found.to_dicts()]


@pytest.fixture
def hints(store_root: str) -> Iterator[tuple[Objects, bytes]]:
    """A graph with two commits after the one that the given hint was written for."""
    with omnigraph.init(store_root, "node P { name: String @key }") as graph:
        objects = Objects(locate(store_root))
        for number, name in enumerate("abc"):
            graph.load([{"type": "P", "data": {"name": name}}])
            graph.settle()
            if number == 0:
                old = objects.get(HINT)
    assert old is not None
    yield objects, old
    objects.close()


def test_a_hint_that_lags_shows_the_newest_state(
    hints: tuple[Objects, bytes], store_root: str
) -> None:
    objects, old = hints
    assert ("rows" in json.loads(old)) == store_root.startswith("s3://")
    objects.put(HINT, old)
    with omnigraph.open(store_root) as graph:
        assert len(graph._repository.branch("main").head.snapshot.commits) == 4, "as it was opened"
        assert names(graph) == ["a", "b", "c"]
        graph.load([{"type": "P", "data": {"name": "d"}}])
        assert names(graph) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"version":3,"rows":"!","sha256":"x"}'])
def test_a_damaged_hint_costs_requests_and_no_answer(
    hints: tuple[Objects, bytes], store_root: str, content: bytes
) -> None:
    hints[0].put(HINT, content)
    with omnigraph.open(store_root) as graph:
        assert names(graph) == ["a", "b", "c"]


def test_rows_under_a_wrong_sum_are_read_from_the_version(
    hints: tuple[Objects, bytes], store_root: str
) -> None:
    objects, old = hints
    newest = json.loads(objects.get(HINT) or b"{}")
    objects.put(HINT, json.dumps({**json.loads(old), "sha256": "0" * 64}).encode())
    with omnigraph.open(store_root) as graph:
        assert names(graph) == ["a", "b", "c"]
    if "rows" in newest:
        other = json.loads(old)["rows"]
        objects.put(HINT, json.dumps({**newest, "rows": other}).encode())
        with omnigraph.open(store_root) as graph:
            assert names(graph) == ["a", "b", "c"]
