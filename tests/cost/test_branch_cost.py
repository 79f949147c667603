"""Object-store requests of branches: the same for one type and for two hundred, for any rows."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph.testing.measure import measure
from omnigraph.testing.proxy import CountingProxy

BRANCH_REQUESTS_MAX = 8
BRANCHES = 500
COLD_BRANCH_REQUESTS_MAX = 6
"""As many as opening the graph; main's own requests come on top for who opens both."""


def schema(types: int) -> str:
    return "edge Knows: T0 -> T0\n" + "".join(
        f"node T{i} {{ name: String @key  size: I64? }}\n" for i in range(types)
    )


def rows(types: int, count: int) -> list[dict[str, object]]:
    return [
        {"type": f"T{t}", "data": {"name": f"n{i}"}} for t in range(types) for i in range(count)
    ]


@pytest.mark.parametrize(("types", "count"), [(1, 1), (1, 20_000), (200, 1)])
def test_branches_cost_the_same_at_any_size(
    types: int, count: int, s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(s3_proxied_root, schema(types)) as graph:
        graph.load(rows(types, count))
        graph.load([{"edge": "Knows", "from": "n0", "to": "n0"}])
        graph.settle()
        with measure(s3_proxy) as io:
            graph.branches.create("work")
        assert io.count() == 8 <= BRANCH_REQUESTS_MAX, io.log()
        costs = {}
        for branch in ("main", "work"):
            with measure(s3_proxy) as io:
                graph.load([{"edge": "Knows", "from": "n0", "to": "n0"}], branch=branch)
                graph.settle()
            costs[branch] = io.count()
        assert costs["main"] == costs["work"], costs
        with measure(s3_proxy) as io:
            graph.branches.rename("work", "done")
        assert io.count() == 8 <= BRANCH_REQUESTS_MAX, io.log()
        with measure(s3_proxy) as io:
            graph.branches.delete("done")
        assert io.count() == 5 <= BRANCH_REQUESTS_MAX, io.log()
        graph.branches.create("again")
    with omnigraph.open(s3_proxied_root) as graph:
        with measure(s3_proxy) as io:
            graph.branches.delete("again")
        assert io.count() == 8 <= BRANCH_REQUESTS_MAX, io.log()


def test_five_hundred_branches_are_listed_and_opened_as_one(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    names = [f"b{i:03}" for i in range(BRANCHES)]
    with omnigraph.init(s3_proxied_root, schema(1)) as graph:
        graph.load(rows(1, 1))
        for name in names:
            graph.branches.create(name)
            graph.load([{"type": "T0", "data": {"name": name}}], branch=name)
    with omnigraph.open(s3_proxied_root) as graph:
        with measure(s3_proxy) as io:
            assert graph.branches.list() == ["main", *names]
        assert io.count() == 1, io.log()
        for name in (names[0], names[250], names[-1]):
            with measure(s3_proxy) as io:
                graph.snapshot(name)
            assert io.count() <= COLD_BRANCH_REQUESTS_MAX, io.log()
            assert io.bytes_received <= 64 << 10, io.log()
