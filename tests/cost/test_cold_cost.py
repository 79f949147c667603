"""Requests and bytes of a handle just opened, on a small table and on one that indexes pay for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.testing.http1 import Operation, Request
from omnigraph.testing.measure import measure
from omnigraph.testing.proxy import CountingProxy

SCHEMA = "node Person { name: String @key  age: I64 }\nedge Knows: Person -> Person\n"
LOOKUP = "query q($n: String) { match { $a: Person { name: $n } } return { $a.age } }"
HOP = "query q($n: String) { match { $a: Person { name: $n }  $a knows $b } return { $b.name } }"
TWO = """
query q($n: String) {
  match { $a: Person { name: $n }  $a knows $b  $b knows $c } return { $c.name }
}
"""
DEGREE = 3
Work = Callable[[omnigraph.Graph], Any]
BUDGETS: dict[str, tuple[Work, int]] = {
    "lookup": (lambda g: g.query(LOOKUP, {"n": "p77"}).to_dicts(), 22),
    "one hop": (lambda g: g.query(HOP, {"n": "p77"}).to_dicts(), 34),
    "two hops": (lambda g: g.query(TWO, {"n": "p78"}).to_dicts(), 58),
    "insert an edge": (lambda g: g.mutate('insert Knows { from: "p5", to: "p9" }'), 30),
    "update": (lambda g: g.mutate('update Person set { age: 99 } where name = "p12"'), 30),
    "upsert": (lambda g: g.load({"Person": [{"name": "p13", "age": 5}]}, mode="merge"), 36),
    "insert a node": (lambda g: g.mutate('insert Person { name: "new", age: 3 }'), 24),
    "delete": (lambda g: g.mutate('delete Person where name = "p14"'), 85),
}
COLD_BYTES_MAX = 1_000_000
COLD_CLOSE_REQUESTS_MAX = 8


def _settles(request: Request) -> bool:
    """Whether a request is for what follows an answered write, and may come before the close."""
    hint = request.operation is Operation.PUT and request.path.endswith("/_head.json")
    return hint or "delete" in request.query or "__recovery" in request.query


@pytest.mark.parametrize("people", [20_000, 300_000])
def test_a_cold_handle_reads_what_it_touches(
    s3_proxied_root: str,
    s3_proxy: CountingProxy,
    beside_proxy: Callable[[], AbstractContextManager[None]],
    people: int,
) -> None:
    ids = pa.array([f"p{i}" for i in range(people)])
    dice = np.random.default_rng(1)
    ends = dice.permutation(np.tile(np.arange(people), DEGREE))
    with beside_proxy(), omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        sources = ids.take(pa.array(np.repeat(np.arange(people), DEGREE)))
        knows = pa.table({"src": sources, "dst": ids.take(pa.array(ends))})
        graph.load({"Person": pa.table({"name": ids, "age": dice.integers(0, 90, people)})})
        graph.load({"Knows": knows})
        graph.optimize()
    over: list[str] = []
    for name, (work, requests_max) in BUDGETS.items():
        with measure(s3_proxy) as io:
            graph = omnigraph.open(s3_proxied_root)
            work(graph)
        with measure(s3_proxy) as closing:
            graph.close()
        # A node's edges lie all over the table; three of each cost what they cost.
        bytes_max = COLD_BYTES_MAX if name != "delete" else 3 * COLD_BYTES_MAX
        settling = [request for request in io.requests if _settles(request)]
        if io.count() - len(settling) > requests_max or io.bytes_received > bytes_max:
            over.append(f"{name}: {io.log()}")
        if len(settling) + closing.count() > COLD_CLOSE_REQUESTS_MAX:
            over.append(f"closing after {name}: {closing.log()}")
    assert not over, "\n".join(over)
