"""Writes of single rows to a small and a large graph in turns, and the hop after a commit.

    python benchmarks/large_writes.py [--rounds 80] [--keep FOLDER]

Two warm handles in one process, each write on the one and on the other in changing order: what
differs is the size of the tables. Beside the time of a call stands its processor time, which other
programs disturb less.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import omnigraph
import topology

SIZES = ((10_000, 50_000), (1_000_000, 10_000_000))
WARM_UP = 60
UPDATE = "query u($k: String, $a: I64) { update Person set { age: $a } where name = $k }"
INSERT = "query i($k: String) { insert Person { name: $k, age: 3 } }"
DELETE = "query d($k: String) { delete Person where name = $k }"
EDGE = "query e($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
Write = Callable[[omnigraph.Graph, int, int], object]


def upsert(graph: omnigraph.Graph, nodes: int, turn: int) -> object:
    row = {"name": some(nodes, turn), "age": 2000 + turn}
    return graph.load([{"type": "Person", "data": row}], mode="merge")


def some(nodes: int, turn: int) -> str:
    return f"p{(turn * 7919 + 13) % nodes}"


WRITES: dict[str, Write] = {
    "insert": lambda g, n, i: g.mutate(INSERT, {"k": f"new{i}"}),
    "update": lambda g, n, i: g.mutate(UPDATE, {"k": some(n, i), "a": 1000 + i}),
    "upsert": upsert,
    "delete": lambda g, n, i: g.mutate(DELETE, {"k": f"new{i}"}),
    "edge": lambda g, n, i: g.mutate(EDGE, {"a": f"p{i * 31 % n}", "b": f"p{i * 37 % n}"}),
}


def main() -> None:
    """Make both graphs or copy them, then write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=80)
    parser.add_argument("--keep", type=Path, help="where the graphs stay, to be used again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OMNIGRAPH_CACHE_DIR"] = f"{folder}/cache"
        graphs: dict[int, omnigraph.Graph] = {}
        for nodes, edges in SIZES:
            kept = (asked.keep or Path(folder) / "made") / f"g{nodes}"
            if not kept.exists():
                topology.make(kept, nodes, edges)
                with omnigraph.open(kept) as graph:
                    graph.optimize()
            shutil.copytree(kept, f"{folder}/g{nodes}")
            graphs[nodes] = omnigraph.open(f"{folder}/g{nodes}")
        for name, write in WRITES.items():
            show(name, measured(graphs, write, asked.rounds))
        print(f"hop after a commit of one edge: {hop_after(graphs[SIZES[-1][0]]):.2f} ms processor")
        for graph in graphs.values():
            graph.close()


def measured(
    graphs: dict[int, omnigraph.Graph], write: Write, rounds: int
) -> dict[int, list[tuple[float, float]]]:
    """Milliseconds of each call on each graph: processor time, time."""
    spent: dict[int, list[tuple[float, float]]] = {nodes: [] for nodes in graphs}
    for turn in range(WARM_UP + rounds):
        order = list(graphs.items())
        for nodes, graph in order if turn % 2 else reversed(order):
            processor, started = time.process_time(), time.perf_counter()
            write(graph, nodes, turn)
            elapsed = time.perf_counter() - started
            if turn >= WARM_UP:
                used = time.process_time() - processor
                spent[nodes].append((used * 1e3, elapsed * 1e3))
    return spent


def show(name: str, spent: dict[int, list[tuple[float, float]]]) -> None:
    means = [statistics.mean(used for used, _ in calls) for calls in spent.values()]
    medians = [statistics.median(whole for _, whole in calls) for calls in spent.values()]
    small, large = means
    print(
        f"{name:8} processor {small:6.2f} {large:6.2f} ms = {large / small:.2f}x   "
        f"call {medians[0]:6.2f} {medians[1]:6.2f} ms = {medians[1] / medians[0]:.2f}x",
        flush=True,
    )


def hop_after(graph: omnigraph.Graph) -> float:
    """Processor time of the hop after a commit, on a graph whose adjacency is known."""
    graph.query(topology.PATHS)
    spent: list[float] = []
    for turn in range(20):
        graph.mutate(EDGE, {"a": f"p{turn * 41}", "b": f"p{turn * 43}"})
        started = time.process_time()
        graph.query(topology.HOP, {"n": "p31"}).to_arrow()
        spent.append((time.process_time() - started) * 1e3)
    return statistics.median(spent)


if __name__ == "__main__":
    main()
