"""Memory of a bulk load on a real cluster: the driver's does not grow, and 20M edges fit in 4 GiB.

    python benchmarks/spark_memory.py [--small 1000000] [--large 10000000] [--edges 20000000]
                                      [--quick] [--json FILE]

A standalone cluster (a master, two workers with one core each) runs the executors in processes of
their own, so that the driver's memory is the driver's alone. Each load runs in a fresh driver
process, all checks on, from Parquet. Who has used how much is asked of the kernel: the resident set
of every process, and its high-water mark, so that no peak falls between two looks.

    driver     the Python process that calls graph.load, and its JVM
    executor   a JVM and the Python workers below it; the two largest are told

The heaps are limited (`HEAP`); the Python processes have no limit and are measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.spark import jvm
from omnigraph.spark.sessions import pipeline_session
from omnigraph.testing.cluster import SparkCluster, run_spark_cluster

sys.path.insert(0, str(Path(__file__).parent))
from processes import Peaks, high_water
from spark_data import SCHEMA, LoadInput, make_input
from spark_load import KEPT
from timing import Report, table

HEAP = "1g"
GROWTH_MAX, LIMIT_GIB = 1.3, 4.0
PEOPLE_OF_EDGES = 2_000_000
_GIB = float(1 << 30)


def drive(master: str, conf: dict[str, str], folder: str, rows: int, people: int) -> None:
    """The driver's life, in a process of its own: one load, then what it took."""
    given = LoadInput(people=people, knows=rows - people, folder=Path(folder))
    root = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    try:
        with pipeline_session(master=master, conf=conf) as pipeline:
            started = time.perf_counter()
            with omnigraph.init(root / "graph", SCHEMA) as graph:
                graph.load(given.parquet, engine="spark", spark=pipeline.spark)
                count = sum(d.entity_count for d in graph.snapshot().datasets)
            assert count == rows, (count, rows)
            seconds = time.perf_counter() - started
            process = jvm.running_pid()
            found = {
                "seconds": seconds,
                "python": high_water(os.getpid()),
                "jvm": high_water(process) if process is not None else 0,
            }
            print(json.dumps(found))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def load_on(cluster: SparkCluster, given: LoadInput) -> dict[str, Any]:
    """One load by a fresh driver, watched; bytes by process kind."""
    conf = cluster.conf() | {"spark.driver.memory": HEAP, "spark.executor.memory": HEAP}
    master = conf.pop("spark.master")
    order = {"master": master, "conf": conf, "folder": str(given.folder), "rows": given.rows}
    command = [sys.executable, __file__, "--drive", json.dumps(order | {"people": given.people})]
    environment = os.environ | {"PYSPARK_PYTHON": str(cluster.python)}
    peaks = Peaks(cluster.processes())
    stop = threading.Event()
    watcher = threading.Thread(target=peaks.watch, args=(stop,), daemon=True)
    watcher.start()
    try:
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
    finally:
        stop.set()
        watcher.join()
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"driver": found["python"] + found["jvm"], "executors": peaks.executors()}


def measure(small: int, large: int, edges: int, report: Report) -> None:
    people = min(PEOPLE_OF_EDGES, edges // 4)
    inputs = {
        f"{small:,} rows": make_input(KEPT, small, jsonl=False),
        f"{large:,} rows": make_input(KEPT, large, jsonl=False),
        f"{edges:,} edges": make_input(KEPT, edges + people, people=people, jsonl=False),
    }
    found: dict[str, dict[str, Any]] = {}
    with run_spark_cluster() as cluster:
        for name, given in inputs.items():
            found[name] = load_on(cluster, given)
            report.figures[name] = found[name]
            print(f"  {name}: {found[name]['seconds']:.0f} s", file=sys.stderr)
    print(f"peak memory of a load with all checks, heaps of {HEAP}, two executors with one core")
    rows: list[list[str]] = []
    for name, one in found.items():
        parts = [one["python"], one["jvm"], one["driver"], *one["executors"][:2]]
        rows.append([name, f"{one['seconds']:.0f} s", *(f"{p / _GIB:.2f} GiB" for p in parts)])
    head = ["", "time", "driver Python", "driver JVM", "driver", "executor 1", "executor 2"]
    table(head, rows)
    first, second, third = found.values()
    for part in ("python", "jvm", "driver"):
        what = f"driver{'' if part == 'driver' else ' ' + part}, {large:,} rows / {small:,} rows"
        report.goal(what, second[part] / first[part], GROWTH_MAX)
    report.goal(f"{edges:,} edges: driver", third["driver"] / _GIB, LIMIT_GIB, " GiB")
    report.goal(f"{edges:,} edges: executor", third["executors"][0] / _GIB, LIMIT_GIB, " GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of bulk loads on a cluster.")
    parser.add_argument("--small", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=10_000_000)
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--quick", action="store_true", help="100,000, 400,000 and 400,000 edges")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--drive", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drive:
        drive(**json.loads(asked.drive))
        return
    if asked.quick:
        asked.small, asked.large, asked.edges = 100_000, 400_000, 400_000
    report = Report()
    measure(asked.small, asked.large, asked.edges, report)
    report.save(asked.json)


if __name__ == "__main__":
    main()
