"""Object-store requests of the change feed: they follow what is delivered, not the history."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph.testing.measure import measure
from omnigraph.testing.proxy import CountingProxy

SCHEMA = "node Person { name: String @key }"


def add(graph: omnigraph.Graph, name: str) -> str:
    made = graph.load([{"type": "Person", "data": {"name": name}}]).commit
    assert made is not None
    return made.id


def test_a_reader_far_behind_pays_for_what_it_gets(
    s3_proxied_root: str, s3_proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A history of this length is then as deep as one of fifteen hundred commits.
    for module in ("manifest.codec", "branch.feed.line"):
        monkeypatch.setattr(f"omnigraph.{module}.COMMITS_MAX", 3)
    counts: list[int] = []
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        for i in range(6):
            add(graph, f"a{i}")
        cursor = graph.changes.poll(start="beginning", max_commits=2).cursor
        for length in (10, 80):
            for i in range(length):
                add(graph, f"{length}-{i}")
            graph.settle()
            with omnigraph.open(s3_proxied_root) as reader, measure(s3_proxy) as io:
                page = reader.changes.poll(cursor=cursor, max_commits=2)
            assert len(page.blocks) == 2
            counts.append(io.count())
    assert counts[1] <= counts[0], counts


def test_a_poll_that_finds_nothing_is_one_request(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        add(graph, "a")
        graph.settle()
        cursor = graph.changes.poll().cursor
        with measure(s3_proxy) as io:
            assert graph.changes.poll(cursor=cursor).blocks == ()
        assert io.count() == 1
