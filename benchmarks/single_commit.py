"""One small commit against raw pylance: median milliseconds of interleaved arms in one run.

    python benchmarks/single_commit.py [commits]

The floor is two plain Lance appends (a node table and an edge table), which is what one graph write
of a node and an edge has to do physically, without any atomicity between the two. The same floor is
run twice: the distance of the two is the machine's noise.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

import omnigraph

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""


class RawTables:
    """Two Lance datasets that are appended to one after the other."""

    def __init__(self, root: Path) -> None:
        person = pa.table({"id": ["p"], "name": ["p"]})
        knows = pa.table({"id": ["e"], "src": ["p"], "dst": ["p"], "since": pa.array([1], "int32")})
        self.tables = [
            lance.write_dataset(table, root / name, data_storage_version="2.2")
            for name, table in (("person", person), ("knows", knows))
        ]
        self.rows = [person, knows]

    def commit(self, i: int) -> None:
        for n, (table, rows) in enumerate(zip(self.tables, self.rows, strict=True)):
            operation = LanceOperation.Append(write_fragments(rows, table))
            self.tables[n] = LanceDataset.commit(
                table, operation, read_version=table.version, max_retries=0
            )


class GraphTables:
    """A graph that gets a person and an edge in one commit."""

    def __init__(self, root: Path, durability: str = "process") -> None:
        self.graph = omnigraph.init(root, SCHEMA, durability=durability)

    def commit(self, i: int) -> None:
        self.graph.load(
            [
                {"type": "Person", "data": {"name": f"p{i}"}},
                {"edge": "Knows", "from": f"p{i}", "to": f"p{i}", "data": {"since": i}},
            ]
        )


def main(commits: int) -> None:
    work = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    arms = {
        "raw, two tables": RawTables(work / "raw1"),
        "raw, two tables again": RawTables(work / "raw2"),
        "graph": GraphTables(work / "graph"),
        "graph, fsync": GraphTables(work / "graph2", "fsync"),
    }
    times: dict[str, list[float]] = {name: [] for name in arms}
    order = random.Random(1)
    for i in range(commits):
        for name in order.sample(list(arms), len(arms)):
            started = time.perf_counter()
            arms[name].commit(i)
            times[name].append((time.perf_counter() - started) * 1e3)
    print(f"{commits} commits of one node and one edge, local disk, median ms")
    medians = {name: statistics.median(values[10:]) for name, values in times.items()}
    for name, value in medians.items():
        growth = statistics.median(times[name][-20:]) / statistics.median(times[name][10:30])
        print(f"  {name:24} {value:7.2f}   last 20 / first 20: {growth:4.2f}x")
    floor = medians["raw, two tables"]
    print(f"  A/A spread               {medians['raw, two tables again'] / floor:7.2f}x")
    print(f"  graph / raw              {medians['graph'] / floor:7.2f}x")
    assert arms["graph"].graph.snapshot().count("Knows") == commits


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["200"])[0]))
