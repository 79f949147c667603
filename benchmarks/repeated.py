"""The same short question again and again on a handle just opened: rent or buy.

    python benchmarks/repeated.py [people] [edges] [hops] [rounds]

`auto` is what users get. It looks rows up in indexes (`indexed`) until that has cost as much as
reading everything once (`csr`), so its time should never be far above the lesser of these two.
`rows only` is the rule that counts found rows and not the lookups themselves. Without indexes,
before `optimize`, there is nothing to look up. All arms of a state take turns, and every answer is
compared with that of plain Python.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field

import pyarrow as pa

import omnigraph
from omnigraph.query.exec import world
from timing import table

SCHEMA = """
node Person { name: String @key  age: I64? }
edge Knows: Person -> Person
"""
HOP = "query hop($n: String) { match { $p: Person { name: $n }  $p knows $f } return { $f.name } }"
MODE = "OMNIGRAPH_TRAVERSAL_MODE"
MARKS = (1, 3, 10, 30, 100, 300, 1000, 3000)


@dataclass
class Arm:
    """One way to ask, in one state of the graph."""

    name: str
    mode: str
    start_cost: int = world.LOOKUP_START_COST
    runs: list[list[float]] = field(default_factory=list)

    def total(self, hops: int) -> float:
        """Seconds that the first hops took, open and all; the least of the rounds, because other
        work on the machine can only add to it."""
        return min(sum(run[:hops]) for run in self.runs)

    @property
    def last(self) -> float:
        """Seconds of a hop at the end."""
        return statistics.median(t for run in self.runs for t in run[-len(run) // 10 :])


def main(people: int, edges: int, hops: int, rounds: int) -> None:
    draw = random.Random(1)
    friends: dict[int, set[str]] = defaultdict(set)
    sources, targets = [], []
    for _ in range(edges):
        source, target = draw.randrange(people), draw.randrange(people)
        friends[source].add(f"p{target}")
        sources.append(f"p{source}")
        targets.append(f"p{target}")
    with tempfile.TemporaryDirectory() as root:
        with omnigraph.init(root, SCHEMA) as graph:
            names = [f"p{i}" for i in range(people)]
            graph.load({"Person": pa.table({"name": names})})
            graph.load({"Knows": pa.table({"src": sources, "dst": targets})})
        asked = [draw.randrange(people) for _ in range(hops)]
        print(f"{people:,} people, {edges:,} edges, {hops} hops, {rounds} rounds")
        show([run(root, friends, asked, rounds, [Arm("before optimize", "auto")])[0]], hops)
        with omnigraph.open(root) as graph:
            graph.optimize()
        arms = [Arm(f"optimized, {mode}", mode) for mode in ("auto", "indexed", "csr")]
        arms.append(Arm("optimized, rows only", "auto", start_cost=0))
        show(run(root, friends, asked, rounds, arms), hops)


def run(
    root: str, friends: dict[int, set[str]], asked: list[int], rounds: int, arms: list[Arm]
) -> list[Arm]:
    order = random.Random(2)
    for _ in range(rounds):
        for arm in order.sample(arms, len(arms)):
            os.environ[MODE] = arm.mode
            world.LOOKUP_START_COST = arm.start_cost
            arm.runs.append(one(root, friends, asked))
    del os.environ[MODE]
    return arms


def one(root: str, friends: dict[int, set[str]], asked: list[int]) -> list[float]:
    """Seconds of each hop; the first one opens the graph."""
    seconds: list[float] = []
    started = time.perf_counter()
    with omnigraph.open(root) as graph:
        for person in asked:
            found = graph.query(HOP, {"n": f"p{person}"}).to_arrow()
            seconds.append(time.perf_counter() - started)
            assert set(found.column(0).to_pylist()) == friends[person]
            started = time.perf_counter()
    return seconds


def show(arms: list[Arm], hops: int) -> None:
    marks = [m for m in MARKS if m <= hops]
    head = ["total ms of hops", *(f"{m:,}" for m in marks), "one hop at the end"]
    rows = [
        [arm.name, *(f"{arm.total(m) * 1e3:.0f}" for m in marks), f"{arm.last * 1e3:.2f}"]
        for arm in arms
    ]
    table(head, rows)


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:]]
    main(*(numbers + [200_000, 1_000_000, 1_000, 3][len(numbers) :]))
