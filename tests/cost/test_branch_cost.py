"""Object-store requests of branches: the same for one type and for two hundred, for any rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.testing.measure import measure
from omnigraph.testing.proxy import CountingProxy

BRANCH_REQUESTS_MAX = 8
FORK_REQUESTS = 1
"""What a handle asks for more when a second lineage goes on from a version with indexes."""
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
    types: int,
    count: int,
    tmp_path: Path,
    copied_to_s3: Callable[[Path], str],
    s3_proxy: CountingProxy,
) -> None:
    with omnigraph.init(tmp_path / "g", schema(types)) as graph:
        graph.load(rows(types, count))
    place = copied_to_s3(tmp_path / "g")
    with omnigraph.open(place) as graph:
        graph.load([{"edge": "Knows", "from": "n0", "to": "n0"}])
        graph.settle()
        with measure(s3_proxy) as io:
            graph.branches.create("work")
        assert io.count() == 8 <= BRANCH_REQUESTS_MAX, io.log()
        costs: dict[str, list[int]] = {"main": [], "work": []}
        for branch in ("main", "work") * 2:
            with measure(s3_proxy) as io:
                graph.load([{"edge": "Knows", "from": "n0", "to": "n0"}], branch=branch)
                graph.settle()
            costs[branch].append(io.count())
        # A branch that was just made has a manifest that this handle has not read, once.
        assert costs == {"main": [7, 7], "work": [7 + FORK_REQUESTS, 7]}, costs
        with measure(s3_proxy) as io:
            graph.branches.rename("work", "done")
        assert io.count() == 7 <= BRANCH_REQUESTS_MAX, io.log()
        with measure(s3_proxy) as io:
            graph.branches.delete("done")
        assert io.count() == 4 <= BRANCH_REQUESTS_MAX, io.log()
        graph.branches.create("again")
    with omnigraph.open(place) as graph:
        with measure(s3_proxy) as io:
            graph.branches.delete("again")
        assert io.count() == 8 <= BRANCH_REQUESTS_MAX, io.log()


def test_the_first_write_of_a_second_lineage_reads_a_manifest_once(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(s3_proxied_root, schema(1)) as graph:
        graph.load(rows(1, 50))
        graph.optimize()
        names = ("main", "one", "two")
        for name in names[1:]:
            graph.branches.create(name)
        costs: dict[str, list[int]] = {name: [] for name in names}
        for number, name in enumerate(names * 2):
            with measure(s3_proxy) as io:
                graph.load([{"type": "T0", "data": {"name": f"new{number}"}}], branch=name)
                graph.settle()
            costs[name].append(io.count())
    # Of main that of the table, which Lance wrote; of the others those of their branches.
    first = 7 + FORK_REQUESTS
    assert costs == {name: [first, 7] for name in names}, costs


def test_five_hundred_branches_are_listed_and_opened_as_one(
    tmp_path: Path, copied_to_s3: Callable[[Path], str], s3_proxy: CountingProxy
) -> None:
    names = [f"b{i:03}" for i in range(BRANCHES)]
    opened = (names[0], names[BRANCHES // 2], names[-1])
    with omnigraph.init(tmp_path / "g", schema(1)) as graph:
        graph.load(rows(1, 1))
        for name in names:
            graph.branches.create(name)
        for name in opened:
            graph.load([{"type": "T0", "data": {"name": name}}], branch=name)
    with omnigraph.open(copied_to_s3(tmp_path / "g")) as graph:
        with measure(s3_proxy) as io:
            assert graph.branches.list() == ["main", *names]
        assert io.count() == 1, io.log()
        for name in opened:
            with measure(s3_proxy) as io:
                graph.snapshot(name)
            assert io.count() <= COLD_BRANCH_REQUESTS_MAX, io.log()
            assert io.bytes_received <= 64 << 10, io.log()
