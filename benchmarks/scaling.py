"""What each operation costs as a graph grows in rows, depth, types, branches and writers.

    python benchmarks/scaling.py [--quick] [--only rows,depth,types,branches,writers,memory]

The cost is processor time of the whole process, background work included, because that is what
other work on the machine disturbs least: the median of some rounds, in which the sizes take turns.
The exponent is the slope of log(cost) over log(size): 0 for a cost that does not grow, 1 for one
that grows as the size does. Counts of requests on an object store stand in
docs/dev/cost-budgets.md and are held by tests.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph
from timing import table

SCHEMA = "node Person { name: String @key  age: I64 }\nedge Knows: Person -> Person\n"
LOOKUP = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
HOP = "query q($n: String) { match { $a: Person { name: $n }  $a knows $b } return { $b.age } }"
TWO = """query q($n: String) {
    match { $a: Person { name: $n }  $a knows $b  $b knows $c } return { count($c) as n }
}"""
PATHS = "match { $a: Person  $a knows $b  $b knows $c } return { count($a) as n }"
GROUP = "match { $p: Person } return { $p.age, count($p) as n }"
ADD = "query add($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
SET = "query set($n: String, $v: I64) { update Person set { age: $v } where name = $n }"
PUT = "query put($n: String, $v: I64) { upsert Person { name: $n, age: $v } }"
NEW = "query new($n: String) { insert Person { name: $n, age: 1 } }"
DROP = "query drop($n: String) { delete Person where name = $n }"

Operation = Callable[[int], object]
"""One of many like it: the number makes each a different one."""


def graph_of(root: Path, nodes: int, edges: int) -> omnigraph.Graph:
    """People who know each other at random, indexed."""
    dice = np.random.default_rng(1)
    names = pa.array([f"p{i}" for i in range(nodes)])
    graph = omnigraph.init(root, SCHEMA)
    people = pa.table({"name": names, "age": dice.integers(0, 90, nodes)})
    ends = [names.take(pa.array(dice.integers(0, nodes, edges))) for _ in range(2)]
    graph.load({"Person": people, "Knows": pa.table({"src": ends[0], "dst": ends[1]})})
    graph.optimize()
    return graph


def cpu_ms(graph: omnigraph.Graph, work: Operation, number: int) -> float:
    """Processor time of one operation and of what it leaves to the background."""
    graph.settle()
    started = time.process_time()
    work(number)
    graph.settle()
    return (time.process_time() - started) * 1e3


def medians(
    graphs: Mapping[int, omnigraph.Graph],
    operations: Callable[[int, omnigraph.Graph], Mapping[str, Operation]],
    rounds: int,
) -> dict[str, dict[int, float]]:
    """The cost of each operation by size; two rounds are dropped."""
    works = {size: operations(size, graph) for size, graph in graphs.items()}
    found: dict[str, dict[int, float]] = {}
    for name in next(iter(works.values())):
        spent: dict[int, list[float]] = {size: [] for size in graphs}
        for turn in range(rounds + 2):
            for size, graph in graphs.items():
                cost = cpu_ms(graph, works[size][name], turn)
                spent[size] += [cost] if turn >= 2 else []
        found[name] = {size: statistics.median(costs) for size, costs in spent.items()}
    return found


def exponent(costs: Mapping[int, float]) -> float:
    """The slope of log(cost) over log(size)."""
    x = np.log([float(size) for size in costs])
    y = np.log([max(cost, 1e-3) for cost in costs.values()])
    return float(np.polyfit(x, y, 1)[0])


def show(title: str, found: Mapping[str, Mapping[int, float]]) -> None:
    sizes = list(next(iter(found.values())))
    print(f"\n{title}, ms of processor time")
    head = ["", *(f"{size:,}" for size in sizes), "exponent"]
    rows = [
        [name, *(f"{costs[size]:.2f}" for size in sizes), f"{exponent(costs):.2f}"]
        for name, costs in found.items()
    ]
    table(head, rows)
    sys.stdout.flush()


def row_operations(nodes: int, graph: omnigraph.Graph) -> Mapping[str, Operation]:
    """Reads and writes that name a few rows, and those that go through all."""

    def key(number: int) -> str:
        return f"p{number * 7919 % nodes}"

    def merge(number: int) -> None:
        theirs, ours = (f"p{nodes - 1 - 2 * number - side}" for side in (0, 1))
        graph.mutate(SET, params={"n": theirs, "v": 1000 + number}, branch="side")
        graph.mutate(SET, params={"n": ours, "v": 1000 + number})
        graph.merge("side")

    graph.branches.create("side")
    return {
        "lookup by key": lambda n: graph.query(LOOKUP, {"n": key(n)}).to_arrow(),
        "one hop": lambda n: graph.query(HOP, {"n": key(n)}).to_arrow(),
        "two hops, counted": lambda n: graph.query(TWO, {"n": key(n)}).to_arrow(),
        "insert of a node": lambda n: graph.mutate(NEW, params={"n": f"new{n}"}),
        "insert of an edge": lambda n: graph.mutate(ADD, params={"a": key(n), "b": key(n + 1)}),
        "update by key": lambda n: graph.mutate(SET, params={"n": key(n), "v": 100 + n}),
        "upsert by key": lambda n: graph.mutate(PUT, params={"n": key(n), "v": 300 + n}),
        "delete of a node": lambda n: graph.mutate(DROP, params={"n": key(n + 100)}),
        "update on both sides, and merge": merge,
        "group all": lambda n: graph.query(GROUP).to_arrow(),
        "count all two-hop paths": lambda n: graph.query(PATHS).to_arrow(),
    }


def by_rows(root: Path, quick: bool) -> None:
    sizes = (1_000, 10_000) if quick else (10_000, 100_000, 1_000_000)
    graph_of(root / "first", 10, 50).close()  # What is imported on the way is no cost of a size.
    started, loads = time.process_time(), dict[int, float]()
    graphs: dict[int, omnigraph.Graph] = {}
    for size in sizes:
        graphs[size] = graph_of(root / f"rows-{size}", size, 5 * size)
        loads[size], started = (time.process_time() - started) * 1e3, time.process_time()
    found = medians(graphs, row_operations, 3 if quick else 15)
    show("Nodes, with five edges each", {"load and optimize": loads, **found})
    for graph in graphs.values():
        graph.close()


def by_depth(root: Path, quick: bool) -> None:
    depths = (1, 30) if quick else (1, 30, 1_000)
    graphs: dict[int, omnigraph.Graph] = {}
    for depth in depths:
        graph = graphs[depth] = graph_of(root / f"depth-{depth}", 1_000, 5_000)
        for number in range(depth):
            graph.mutate(ADD, params={"a": "p1", "b": f"p{number % 1_000}"})

    def operations(depth: int, graph: omnigraph.Graph) -> Mapping[str, Operation]:
        def opened(number: int) -> None:
            with omnigraph.open(root / f"depth-{depth}") as again:
                again.query(LOOKUP, {"n": f"p{number}"}).to_arrow()

        return {
            "insert of an edge": lambda n: graph.mutate(ADD, params={"a": "p2", "b": f"p{n}"}),
            "one hop": lambda n: graph.query(HOP, {"n": f"p{n}"}).to_arrow(),
            "open, and lookup by key": opened,
        }

    show("Commits", medians(graphs, operations, 3 if quick else 15))
    for graph in graphs.values():
        graph.close()


def by_types(root: Path, quick: bool) -> None:
    graphs: dict[int, omnigraph.Graph] = {}
    for count in (1, 10) if quick else (1, 20, 200):
        schema = "\n".join(f"node T{i} {{ name: String @key }}" for i in range(count))
        graph = graphs[count] = omnigraph.init(root / f"types-{count}", schema)
        graph.load([{"type": f"T{i}", "data": {"name": "first"}} for i in range(count)])

    def operations(count: int, graph: omnigraph.Graph) -> Mapping[str, Operation]:
        def opened(number: int) -> None:
            with omnigraph.open(root / f"types-{count}") as again:
                again.query('match { $t: T0 { name: "first" } } return { $t.name }').to_arrow()

        return {
            "insert of a node": lambda n: graph.mutate(f'insert T0 {{ name: "n{n}" }}'),
            "open, and lookup by key": opened,
            "create a branch": lambda n: graph.branches.create(f"b{n}"),
        }

    show("Types with rows", medians(graphs, operations, 3 if quick else 15))
    for graph in graphs.values():
        graph.close()


def by_branches(root: Path, quick: bool) -> None:
    graphs: dict[int, omnigraph.Graph] = {}
    for count in (1, 10) if quick else (1, 30, 300):
        graph = graphs[count] = graph_of(root / f"branches-{count}", 1_000, 5_000)
        for number in range(count):
            graph.branches.create(f"b{number}")

    def operations(count: int, graph: omnigraph.Graph) -> Mapping[str, Operation]:
        ends = {"a": "p1", "b": "p2"}
        return {
            "create a branch": lambda n: graph.branches.create(f"more{n}"),
            "insert of an edge": lambda n: graph.mutate(ADD, params=ends),
            "the same on a branch": lambda n: graph.mutate(ADD, params=ends, branch="b0"),
            "list branches": lambda n: graph.branches.list(),
        }

    show("Branches", medians(graphs, operations, 3 if quick else 15))
    for graph in graphs.values():
        graph.close()


def by_writers(root: Path, quick: bool) -> None:
    writes = 64 if quick else 512
    cpu, wall = dict[int, float](), dict[int, float]()
    with graph_of(root / "writers", 1_000, 5_000) as graph:

        def add(number: int) -> None:
            ends = {"a": f"p{number % 1_000}", "b": f"p{(number + 1) % 1_000}"}
            graph.mutate(ADD, params=ends)

        for threads in (1, 4, 16, 64):
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(add, range(threads)))
                graph.settle()
                started, clock = time.process_time(), time.perf_counter()
                list(pool.map(add, range(writes)))
                wall[threads] = (time.perf_counter() - clock) * 1e3 / writes
                graph.settle()
                cpu[threads] = (time.process_time() - started) * 1e3 / writes
    show("Threads that write single edges through one handle", {"a write": cpu, "its time": wall})


def in_memory(root: Path, quick: bool) -> None:
    """Bytes of the topology on disk and of tables, by node and by edge: two sizes, two unknowns."""
    unit = 1_000 if quick else 100_000
    amounts = ((unit, 2 * unit), (unit, 10 * unit), (4 * unit, 10 * unit))
    held: list[list[float]] = []
    for number, (nodes, edges) in enumerate(amounts):
        folder = root / f"memory-{number}"
        os.environ["OMNIGRAPH_CACHE_DIR"] = str(folder / "cache")
        with graph_of(folder / "g", nodes, edges) as graph:
            stored = bytes_below(folder / "g" / "nodes") + bytes_below(folder / "g" / "edges")
            graph.query(PATHS).to_arrow()
            graph.settle()
        held.append([stored, bytes_below(folder / "cache")])
    of_each, *_ = np.linalg.lstsq(np.array(amounts, float), np.array(held), rcond=None)
    print("\nBytes on disk for each node and edge, keys of about eight letters")
    table(
        ["", "node", "edge"],
        [
            [name, *(f"{of_each[i][column]:.0f}" for i in (0, 1))]
            for column, name in enumerate(("tables and indexes", "topology, mapped into memory"))
        ],
    )


def bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


PARTS: dict[str, Callable[[Path, bool], None]] = {
    "rows": by_rows,
    "depth": by_depth,
    "types": by_types,
    "branches": by_branches,
    "writers": by_writers,
    "memory": in_memory,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--only", default=",".join(PARTS))
    asked: Any = parser.parse_args(arguments)
    for name in asked.only.split(","):
        with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
            os.environ["OMNIGRAPH_CACHE_DIR"] = str(Path(folder) / "cache")
            PARTS[name](Path(folder), asked.quick)


if __name__ == "__main__":
    assert math.isclose(exponent({1: 1.0, 10: 10.0}), 1.0)
    main()
