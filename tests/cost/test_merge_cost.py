"""What a one-row merge asks of the store: the same at every size, and little more than a write."""

from __future__ import annotations

from itertools import count

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.branch.merge.conflicts import MergeResult
from omnigraph.branch.merge.three_way import merge
from omnigraph.testing.measure import measure
from omnigraph.testing.proxy import CountingProxy

SCHEMA = """
node Person { name: String @key  age: I32?  note: String? }
edge Knows: Person -> Person { since: I32? }
"""
SMALL, LARGE = 20_000, 100_000
"""Both too large for a file to be read as a whole."""
BUDGETS = {
    ("node", "node"): 50,
    ("edge", "edge"): 28,
    ("node", "edge"): 22,
    ("edge", "node"): 19,
    ("node", None): 19,
}
"""Requests of a merge on a warm handle, by what the branch and main changed; settled."""


class World:
    """A graph, a branch, and another row at each turn."""

    def __init__(self, root: str, size: int) -> None:
        self.graph = omnigraph.init(root, SCHEMA)
        names = [f"p{i}" for i in range(size)]
        ages = pa.array([i % 90 for i in range(size)], "int32")
        people = pa.table({"name": names, "age": ages, "note": [f"note {n}" for n in names]})
        knows = pa.table({"src": names[:-1], "dst": names[1:]})
        self.graph.load({"Person": people, "Knows": knows})
        self.graph.branches.create("work")
        self._turn = count(1)

    def change(self, what: str | None, branch: str) -> None:
        turn = next(self._turn)
        if what == "node":
            text = f'update Person set {{ age: {1000 + turn} }} where name = "p{turn}"'
        else:
            text = f'insert Knows {{ from: "p{turn}", to: "p0", since: {turn} }}'
        if what is not None:
            assert self.graph.mutate(text, branch=branch).commit is not None

    def merge(self) -> MergeResult:
        return merge(self.graph._repository, "work")


def requests(world: World, proxy: CountingProxy, theirs: str, ours: str | None) -> tuple[int, str]:
    """The most of several merges, each of one row on either side."""
    worst = (0, "")
    for _ in range(3):
        world.change(theirs, "work")
        world.change(ours, "main")
        world.graph.settle()
        with measure(proxy) as io:
            result = world.merge()
            world.graph.settle()
        assert result.outcome == ("merged" if ours else "fast_forward")
        assert sum(c.total for c in result.changes.values()) == 1
        worst = max(worst, (io.count(), io.log()))
        merge(world.graph._repository, "main", into="work")
    return worst


@pytest.mark.parametrize(("theirs", "ours"), list(BUDGETS))
def test_a_one_row_merge_costs_the_same_at_every_size(
    s3_proxied_root: str, s3_proxy: CountingProxy, theirs: str, ours: str | None
) -> None:
    found = [
        requests(World(f"{s3_proxied_root}/{size}", size), s3_proxy, theirs, ours)
        for size in (SMALL, LARGE)
    ]
    (small, _), (large, log) = found
    assert large <= 1.5 * small, log
    assert large <= BUDGETS[theirs, ours], log


def test_what_is_up_to_date_costs_a_look_at_both_branches(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    world = World(s3_proxied_root, SMALL)
    world.change("node", "work")
    world.merge()
    world.graph.settle()
    with measure(s3_proxy) as io:
        assert world.merge().outcome == "already_up_to_date"
    assert io.count() <= 6, io.log()
