"""One-row merges at two sizes, and against a single mutation: median milliseconds, one run.

    python benchmarks/merge.py [rounds]

Two graphs, 10,000 nodes / 50,000 edges and 200,000 / 1,000,000, are changed in turns, all arms in
random order. Before each merge (untimed) the branch takes over main, then one row changes on the
branch and another one on main, so that it is a true merge and no fast forward:

    mutation      an update of one node on main
    merge node    one updated node on each side: rows of one table come together
    merge edge    one new edge on each side
    merge adopt   a node on the branch, an edge on main: the table of the branch is taken over
    cold merge    as "merge node", by a handle that has just been opened
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa

import omnigraph
from omnigraph.branch.merge.three_way import merge

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  bio: String? }
edge Knows: Person -> Person { since: I32?  note: String? }
"""
SIZES = {"small": (10_000, 50_000), "large": (200_000, 1_000_000)}
WARM_RUNS = 3


def build(root: Path, nodes: int, edges: int) -> omnigraph.Graph:
    order = random.Random(1)
    graph = omnigraph.init(root, SCHEMA)
    people = pa.table(
        {
            "name": [f"person-{i}" for i in range(nodes)],
            "age": pa.array([i % 90 for i in range(nodes)], "int32"),
            "city": [f"city-{i % 500}" for i in range(nodes)],
            "bio": [f"likes the number {i} and nothing else" for i in range(nodes)],
        }
    )
    knows = pa.table(
        {
            "src": [f"person-{order.randrange(nodes)}" for _ in range(edges)],
            "dst": [f"person-{order.randrange(nodes)}" for _ in range(edges)],
            "since": pa.array([i % 30 for i in range(edges)], "int32"),
            "note": [f"note {i}" for i in range(edges)],
        }
    )
    graph.load({"Person": people, "Knows": knows})
    graph.branches.create("work")
    return graph


class Bench:
    """One graph and what is done to it."""

    def __init__(self, root: Path, nodes: int, edges: int) -> None:
        self.root = root
        self.nodes = nodes
        self.graph = build(root, nodes, edges)
        self._turn = count(1)
        self.arms: dict[str, Callable[[], float]] = {
            "mutation": self.mutation,
            "merge node": lambda: self.merged(self.node, self.node),
            "merge edge": lambda: self.merged(self.edge, self.edge),
            "merge adopt": lambda: self.merged(self.node, self.edge),
            "cold merge": lambda: self.merged(self.node, self.node, cold=True),
        }

    def node(self, branch: str) -> None:
        """Another node each time: the branches never meet in one row."""
        turn = next(self._turn)
        person = f"person-{(turn * 7919) % self.nodes}"
        text = f'update Person set {{ age: {1000 + turn} }} where name = "{person}"'
        assert self.graph.mutate(text, branch=branch).commit is not None

    def edge(self, branch: str) -> None:
        turn = next(self._turn)
        ends = f'from: "person-{turn % self.nodes}", to: "person-{turn * 31 % self.nodes}"'
        self.graph.mutate(f"insert Knows {{ {ends}, since: {turn} }}", branch=branch)

    def mutation(self) -> float:
        started = time.perf_counter()
        self.node("main")
        return time.perf_counter() - started

    def merged(
        self, theirs: Callable[[str], None], ours: Callable[[str], None], *, cold: bool = False
    ) -> float:
        merge(self.graph._repository, "main", into="work")
        theirs("work")
        ours("main")
        self.graph.settle()
        if cold:
            with omnigraph.open(self.root) as other:
                started = time.perf_counter()
                result = merge(other._repository, "work")
                took = time.perf_counter() - started
        else:
            started = time.perf_counter()
            result = merge(self.graph._repository, "work")
            took = time.perf_counter() - started
        assert result.outcome == "merged"
        assert sum(c.total for c in result.changes.values()) == 1
        return took


def main(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as work:
        benches = {name: Bench(Path(work) / name, *size) for name, size in SIZES.items()}
        times: dict[tuple[str, str], list[float]] = {
            (arm, size): [] for arm in benches["small"].arms for size in SIZES
        }
        order = random.Random(1)
        for _ in range(rounds + WARM_RUNS):
            for arm, size in order.sample(list(times), len(times)):
                times[arm, size].append(benches[size].arms[arm]() * 1e3)
                benches[size].graph.settle()
        medians = {key: statistics.median(taken[WARM_RUNS:]) for key, taken in times.items()}
        print("median ms       10k/50k  200k/1M   large/small  large/mutation")
        for arm in benches["small"].arms:
            small, large = medians[arm, "small"], medians[arm, "large"]
            ratio = large / medians["mutation", "large"]
            print(f"  {arm:12} {small:8.1f} {large:8.1f} {large / small:12.2f}x {ratio:12.2f}x")
        for bench in benches.values():
            bench.graph.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
