"""Large graphs: the topology on disk, whole-graph steps, time limits and reads over deletions.

    python benchmarks/topology.py [--nodes 1e6] [--edges 1e7] [--keep FOLDER]

Each figure comes from a process of its own that has imported everything and asked a small graph
before, so that no import is part of it. *Raw* is the least that a program without the topology on
disk has to do before its first hop: scan ids and ends with pylance, number them, sort them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import omnigraph
from omnigraph.errors import LimitError

SCHEMA = "node Person {\n name: String @key\n age: I64\n}\nedge Knows: Person -> Person\n"
HOP = "query q($n: String) { match { $a: Person { name: $n }  $a knows $b } return { $b.name } }"
AGES = "query q($n: String) { match { $a: Person { name: $n }  $b knows $a } return { $b.age } }"
PATHS = "match { $a: Person  $a knows $b  $b knows $c } return { count($a) as n }"
BATCH = 10_000_000
UPDATES = 20


def main() -> None:
    """Make the graph, then one process a figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=float, default=1e6)
    parser.add_argument("--edges", type=float, default=1e7)
    parser.add_argument("--keep", type=Path, help="where the graph stays, to be used again")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--small", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        print(json.dumps(FIGURES[asked.only](asked.keep, asked.small)))
        return
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small"
        make(small, 1_000, 5_000)
        large = asked.keep or Path(folder) / "large"
        if not large.exists():
            seconds = make(large, int(asked.nodes), int(asked.edges))
            print(f"load: {asked.edges / seconds / 1e6:.2f} M edges/s")
        cache = {**os.environ, "OMNIGRAPH_CACHE_DIR": folder}
        for name in FIGURES:
            command = [sys.executable, __file__, "--only", name, "--keep", str(large)]
            done = subprocess.run(
                [*command, "--small", str(small)], env=cache, capture_output=True, check=True
            )
            figures = json.loads(done.stdout)
            print(f"{name}: " + ", ".join(f"{k} {v}" for k, v in figures.items()), flush=True)


def make(place: Path, nodes: int, edges: int) -> float:
    """A graph with few very popular people; the seconds that its edges took."""
    dice = np.random.default_rng(1)
    ids = pa.array([f"p{i}" for i in range(nodes)])
    with omnigraph.init(place, SCHEMA) as graph:
        graph.load({"Person": pa.table({"name": ids, "age": dice.integers(0, 90, nodes)})})
        seconds = 0.0
        for start in range(0, edges, BATCH):
            count = min(BATCH, edges - start)
            sources = dice.integers(0, nodes, count)
            targets = (dice.pareto(1.2, count) * nodes / 100).astype(np.int64) % nodes
            ends = {"src": ids.take(pa.array(sources)), "dst": ids.take(pa.array(targets))}
            started = time.perf_counter()
            graph.load({"Knows": pa.table(ends)})
            seconds += time.perf_counter() - started
    return seconds


def timed(work: Callable[[], Any]) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    work()
    return round((time.perf_counter() - started) * 1e3, 1)


def memory() -> dict[str, int]:
    """Megabytes of this process: its own, and all that is resident."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "own MB": int(status["RssAnon"].split()[0]) // 1024,
        "resident MB": int(status["VmRSS"].split()[0]) // 1024,
    }


def warmed(small: Path) -> None:
    with omnigraph.open(small) as graph:
        for text in (HOP, AGES):
            graph.query(text, {"n": "p7"}).to_arrow()
        graph.query(PATHS).to_arrow()


def raw(large: Path, small: Path) -> dict[str, Any]:
    """Scan, number and sort with pylance and NumPy."""
    warmed(small)
    with omnigraph.open(large) as graph:
        head = graph._repository.head("main").snapshot
        nodes = graph._repository.table(head.pins["node:Person"]).dataset
        edges = graph._repository.table(head.pins["edge:Knows"]).dataset

        def build() -> None:
            ids = nodes.to_table(columns=["id"])["id"].combine_chunks()
            ends = edges.to_table(columns=["src", "dst"])
            found = [pc.index_in(ends[c], value_set=ids).combine_chunks() for c in ("src", "dst")]
            sources, targets = (f.to_numpy(zero_copy_only=False) for f in found)
            order = np.argsort(sources, kind="stable")
            _ = np.cumsum(np.bincount(sources, minlength=len(ids))), targets[order]

        return {"ms": timed(build), **memory()}


def limited(large: Path, small: Path) -> dict[str, Any]:
    """How late a limit of half a second is noticed while everything has to be made."""
    warmed(small)
    os.environ["OMNIGRAPH_CACHE_DIR"] = "off"
    with omnigraph.open(large) as graph:

        def ask() -> None:
            try:
                graph.query(PATHS, timeout_s=0.5)
            except LimitError:
                return

        return {"ms too late": round(timed(ask) - 500, 1)}


def first(large: Path, small: Path) -> dict[str, Any]:
    """All two-hop paths, by a process that finds nothing on disk."""
    warmed(small)
    with omnigraph.open(large) as graph:
        return {"ms": timed(lambda: graph.query(PATHS).to_arrow()), **memory()}


def second(large: Path, small: Path) -> dict[str, Any]:
    """Open and take one hop, then all paths, by the next process."""
    warmed(small)
    started = time.perf_counter()
    with omnigraph.open(large) as graph:
        graph.query(HOP, {"n": "p77"}).to_arrow()
        opened = round((time.perf_counter() - started) * 1e3, 1)
        hops = [timed(lambda i=i: graph.query(HOP, {"n": f"p{i}"}).to_arrow()) for i in range(200)]
        after = memory()
        paths = [timed(lambda: graph.query(PATHS).to_arrow()) for _ in range(2)]
    return {
        "open and first hop ms": opened,
        "hop ms": float(np.median(hops)),
        **after,
        "all paths ms": paths[0],
        "again": paths[1],
    }


def deleted(large: Path, small: Path) -> dict[str, Any]:
    """A property of all who know a popular person, before and after some updates."""
    warmed(small)
    with omnigraph.open(large) as graph:
        found = graph.query(AGES, {"n": "p3000"}).to_arrow().num_rows
        before = timed(lambda: graph.query(AGES, {"n": "p3000"}).to_arrow())
        for number in range(UPDATES):
            graph.mutate(f'update Person set {{ age: {number + 100} }} where name = "p{number}"')
        graph.query(AGES, {"n": "p3000"})
        after = timed(lambda: graph.query(AGES, {"n": "p3000"}).to_arrow())
    return {"rows": found, "ms": before, f"after {UPDATES} updates": after}


FIGURES: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
    "raw": raw,
    "limited": limited,
    "first": first,
    "second": second,
    "deleted": deleted,
}

if __name__ == "__main__":
    main()
