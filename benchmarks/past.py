"""A keyed read in the past against the same read at head: medians of interleaved arms in one run.

    python benchmarks/past.py [nodes] [commits]

The graph gets a base load and then many small commits. `head` asks the newest state; `past` asks
the state half of the commits ago, by commit id; `first` asks a state that was never asked before.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import omnigraph

SCHEMA = """
node Person { name: String @key  age: I64? }
edge Knows: Person -> Person
"""
LOOKUP = "query by_name($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
ROUNDS = 400


def main(nodes: int, commits: int) -> None:
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as root, omnigraph.init(root, SCHEMA) as graph:
        graph.load({"Person": [{"name": f"p{i}", "age": i} for i in range(nodes)]})
        made: list[str] = []
        for i in range(commits):
            result = graph.load({"Person": [{"name": f"q{i}", "age": i}]})
            assert result.commit is not None
            made.append(result.commit.id)
        past = made[commits // 2]
        unseen = iter(draw.sample(made[: commits // 2], min(50, commits // 2)))

        def ask(commit: str | None) -> None:
            name = f"p{draw.randrange(nodes)}"
            found = graph.query(LOOKUP, {"n": name}, commit=commit).to_dicts()
            assert [list(row.values()) for row in found] == [[int(name[1:])]]

        arms: dict[str, Callable[[], None]] = {
            "head": lambda: ask(None),
            "head again": lambda: ask(None),
            "past": lambda: ask(past),
        }
        times: dict[str, list[float]] = {name: [] for name in (*arms, "first")}
        for run in arms.values():
            run()
        for _ in range(ROUNDS):
            for name in draw.sample(list(arms), len(arms)):
                times[name].append(timed(arms[name]))
        for commit in unseen:
            times["first"].append(timed(lambda commit=commit: ask(commit)))
    base = statistics.median(times["head"])
    print(f"{nodes:,} nodes, {commits} commits")
    for name, taken in times.items():
        middle = statistics.median(taken)
        print(f"{name:>12}  {middle * 1000:8.3f} ms  {middle / base:6.2f}x")


def timed(run: Callable[[], None]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:]]
    main(*(numbers + [100_000, 200][len(numbers) :]))
