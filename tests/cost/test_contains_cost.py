"""Object-store requests and bytes of `contains` on a handle just opened: an index of parts reads
little of a large column."""

from __future__ import annotations

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.query.exec import world
from omnigraph.testing.measure import Measured, measure
from omnigraph.testing.proxy import CountingProxy

SCHEMA = "node Doc { name: String @key  body: String @index }"
QUERY = "query q($part: String) { match { $d: Doc  $d.body contains $part } return { $d.name } }"
ROWS = 40_000
CONTAINS_REQUESTS_MAX = 30
"""Eight letters, one row found: the index and the pages that it names."""


@pytest.fixture
def root(s3_proxied_root: str) -> str:
    """Texts of some 200 bytes of few different words; one of them has a word of its own."""
    bodies = [
        " ".join(f"word{(i * 31 + k * 17) % 997} of{(i * 7 + k) % 89}" for k in range(16))
        for i in range(ROWS)
    ]
    bodies[777] += " Zanzibar"
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        graph.load({"Doc": pa.table({"name": [f"d{i}" for i in range(ROWS)], "body": bodies})})
        graph.build_indexes()
    return s3_proxied_root


def asked(root: str, proxy: CountingProxy) -> Measured:
    with omnigraph.open(root) as graph:
        graph.query('match { $d: Doc { name: "d1" } } return { $d.name }')
        with measure(proxy) as io:
            assert graph.query(QUERY, {"part": "Zanzibar"}).to_dicts() == [{"d.name": "d777"}]
    return io


def test_a_part_of_a_text_is_found_without_reading_the_column(
    root: str, s3_proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = asked(root, s3_proxy)
    assert not any("/_indices/" in r.path for r in column.requests), column.log()
    monkeypatch.setattr(world, "PARTS_ROWS_MIN", ROWS)
    index = asked(root, s3_proxy)
    assert any("/_indices/" in r.path for r in index.requests), index.log()
    assert index.count() <= CONTAINS_REQUESTS_MAX, index.log()
    assert index.bytes_received * 3 <= column.bytes_received, index.log()
