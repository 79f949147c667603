"""Where ``engine="auto"`` should go over to Spark: one process against Spark at several sizes.

    python benchmarks/spark_auto.py [--rows 500000,2000000,8000000,16000000] [--quick] [--json FILE]

The same JSONL (`spark_data`), all checks, into an empty graph. Each load runs in a fresh process.
*Cold* includes the start of a session, as a command on a terminal meets it; *warm* is the second
load of the same process. Memory is the most that the process and all below it had resident.
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
from omnigraph.spark.sessions import pipeline_session

sys.path.insert(0, str(Path(__file__).parent))
from processes import Tree
from spark_data import SCHEMA, LoadInput, make_input
from spark_load import KEPT
from timing import Report, table

_GIB = float(1 << 30)


def load(given: LoadInput, root: Path, engine: str) -> float:
    started = time.perf_counter()
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load(given.jsonl, engine=engine)
        count = sum(d.entity_count for d in graph.snapshot().datasets)
    assert count == given.rows, (count, given.rows)
    return time.perf_counter() - started


def drive(engine: str, folder: str, people: int, knows: int) -> None:
    """The life of one process: a load, and on Spark a second one in the session that is there."""
    given = LoadInput(people=people, knows=knows, folder=Path(folder))
    root = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    try:
        if engine == "local":
            found = {"seconds": load(given, root / "one", engine)}
        else:
            started = time.perf_counter()
            with pipeline_session():
                load(given, root / "one", engine)
                cold = time.perf_counter() - started
                shutil.rmtree(root / "one")
                found = {"seconds": cold, "warm": load(given, root / "two", engine)}
        print(json.dumps(found))
    finally:
        shutil.rmtree(root, ignore_errors=True)


def run(engine: str, given: LoadInput) -> dict[str, Any]:
    order = {"engine": engine, "people": given.people, "knows": given.knows}
    order["folder"] = str(given.folder)
    child = subprocess.Popen(
        [sys.executable, __file__, "--drive", json.dumps(order)],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    tree, stop = Tree(child.pid), threading.Event()
    watcher = threading.Thread(target=tree.watch, args=(stop,), daemon=True)
    watcher.start()
    out, _ = child.communicate()
    stop.set()
    watcher.join()
    if child.returncode:
        raise SystemExit(f"the load with {engine} failed")
    return json.loads(out.splitlines()[-1]) | {"memory": tree.peak}


def measure(sizes: list[int], report: Report) -> None:
    rows: list[list[str]] = []
    for size in sizes:
        given = make_input(KEPT, size, jsonl=True)
        text = sum(Path(path).stat().st_size for path in given.jsonl)
        local, spark = run("local", given), run("spark", given)
        report.figures[str(size)] = {"bytes": text, "local": local, "spark": spark}
        rows.append(
            [
                f"{size:,} rows",
                f"{text / _GIB:.2f} GiB",
                f"{local['seconds']:.1f} s",
                f"{spark['warm']:.1f} s",
                f"{spark['seconds']:.1f} s",
                f"{local['memory'] / _GIB:.2f} GiB",
                f"{local['memory'] / text:.1f}x",
                f"{spark['memory'] / _GIB:.2f} GiB",
            ]
        )
        print(f"  {size:,} rows done", file=sys.stderr)
    head = ["", "JSONL", "local", "Spark, warm", "Spark, cold"]
    table([*head, "local memory", "of the text", "Spark memory"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="One process against Spark by size.")
    parser.add_argument("--rows", default="500000,2000000,8000000,16000000")
    parser.add_argument("--quick", action="store_true", help="100,000 rows")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--drive", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.drive:
        drive(**json.loads(asked.drive))
        return
    report = Report()
    sizes = [100_000] if asked.quick else [int(size) for size in asked.rows.split(",")]
    measure(sizes, report)
    report.save(asked.json)


if __name__ == "__main__":
    main()
