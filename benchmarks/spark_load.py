"""Bulk load on Spark against raw pylance: ratios measured in one interleaved run, warm session.

    python benchmarks/spark_load.py [--rows 5000000] [--rounds 5] [--quick] [--json FILE]

The same files go into every arm: people and who knows whom (`spark_data`), as Parquet and as JSONL.

    raw        lance.write_dataset of the same rows (twice: their distance is the machine's noise)
    unchecked  parse, stage, publish by the machinery of a load; rules are not asked. Users have no
               such switch: it is a private call that exists here alone
    checked    graph.load(…, engine="spark"): key, unique, range, both ends of edges, cardinality

All write into an empty graph on local disk, in one session with two cores. Every arm's rows are
counted: a wrong number voids the run.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

import omnigraph
from omnigraph.input.sources import sort_out
from omnigraph.manifest.snapshot import TableChange
from omnigraph.rules.table_delta import WriteMode
from omnigraph.spark.input import parse_input
from omnigraph.spark.sessions import Pipeline, pipeline_session
from omnigraph.spark.staging import Incoming, LoadFiles
from omnigraph.write.publish import publish
from omnigraph.write.request import WriteRequest
from omnigraph.write.stage import BulkChange
from omnigraph.write.txn import WriteTxn

sys.path.insert(0, str(Path(__file__).parent))
from spark_data import SCHEMA, LoadInput, make_input
from timing import Report, interleaved, table

UNCHECKED_MAX, CHECKED_MAX = 2.5, 4.0
KEPT = Path(__file__).parent.parent / ".bench" / "spark"
"""Inputs are the same on every run and stay here."""


def raw_parquet(given: LoadInput, root: Path) -> int:
    return sum(_write(pq.read_table(path), root / name) for name, path in given.parquet.items())


def raw_jsonl(given: LoadInput, root: Path) -> int:
    written = 0
    for path in given.jsonl:
        parsed = pyarrow.json.read_json(path)
        data = parsed["data"].combine_chunks()
        data = data.chunk(0) if isinstance(data, pa.ChunkedArray) else data
        flat = pa.Table.from_arrays(data.flatten(), names=[f.name for f in data.type])
        if "from" in parsed.column_names:
            flat = flat.append_column("src", parsed["from"]).append_column("dst", parsed["to"])
        written += _write(flat, root / Path(path).stem)
    return written


def _write(rows: pa.Table, place: Path) -> int:
    options: dict[str, Any] = {"data_storage_version": "2.2", "enable_stable_row_ids": True}
    return lance.write_dataset(rows, str(place), **options).count_rows()


def checked(pipeline: Pipeline, source: Any, root: Path) -> int:
    with omnigraph.init(root / "graph", SCHEMA) as graph:
        graph.load(source, engine="spark", spark=pipeline.spark)
        return _count(graph)


def unchecked(pipeline: Pipeline, source: Any, root: Path) -> int:
    with omnigraph.init(root / "graph", SCHEMA) as graph:
        publish_unchecked(graph, pipeline, source)
        return _count(graph)


def publish_unchecked(graph: omnigraph.Graph, pipeline: Pipeline, source: Any) -> None:
    """What a load does, without the question whether the rows keep the rules."""
    repository = graph._repository
    files = LoadFiles(repository, pipeline.spark)

    def prepare(txn: WriteTxn) -> BulkChange:
        run_id = repository.ids.ulid()
        parsed = parse_input(pipeline, sort_out(source), txn.schema.catalog, run_id=run_id)
        try:
            rows = {key: parsed.row_count(key) for key in parsed.keys}
            changes = {k: TableChange(inserted=n, updated=0, deleted=0) for k, n in rows.items()}
            incoming = Incoming(
                intake=parsed.intake(), mode=WriteMode.APPEND, rows=rows, superseded={}
            )
            return BulkChange(tables=files.stage(txn, incoming, changes))
        finally:
            parsed.unpersist()

    publish(repository, WriteRequest(kind="load", branch="main", prepare=prepare))


def _count(graph: omnigraph.Graph) -> int:
    return sum(d.entity_count for d in graph.snapshot().datasets)


def measure(rows: int, rounds: int, report: Report) -> None:
    given = make_input(KEPT, rows, jsonl=True)
    work = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))

    def fresh(arm: Callable[[Path], int]) -> None:
        root = work / "arm"
        root.mkdir()
        count = arm(root)
        assert count == given.rows, (arm, count)
        shutil.rmtree(root)

    try:
        with pipeline_session(master="local[2]", app="bench") as pipeline:
            arms: dict[str, Callable[[Path], int]] = {
                "Parquet, raw": partial(raw_parquet, given),
                "Parquet, raw again": partial(raw_parquet, given),
                "Parquet, unchecked": partial(unchecked, pipeline, given.parquet),
                "Parquet, checked": partial(checked, pipeline, given.parquet),
                "JSONL, raw": partial(raw_jsonl, given),
                "JSONL, unchecked": partial(unchecked, pipeline, given.jsonl),
                "JSONL, checked": partial(checked, pipeline, given.jsonl),
            }
            timed = interleaved({n: partial(fresh, a) for n, a in arms.items()}, rounds, warm=2)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    told: list[list[str]] = []
    for name, found in timed.items():
        base = timed[f"{name.split(',')[0]}, raw"].median
        ratio, least = found.median / base, min(found.seconds)
        report.figures[name] = {"seconds": found.seconds, "ratio": ratio}
        speed = given.rows / found.median / 1e6
        told.append(
            [name, f"{found.median:.2f} s", f"{least:.2f} s", f"{speed:.2f}", f"{ratio:.2f}x"]
        )
    print(f"bulk load of {given.rows:,} rows ({given.people:,} people), median of {rounds} rounds")
    table(["", "median", "least", "M rows/s", "of raw"], told)
    for kind in ("Parquet", "JSONL"):
        raw = timed[f"{kind}, raw"].median
        unchecked_s, checked_s = (timed[f"{kind}, {w}"].median for w in ("unchecked", "checked"))
        report.goal(f"{kind}, no checks / raw pylance", unchecked_s / raw, UNCHECKED_MAX)
        report.goal(f"{kind}, all checks / raw pylance", checked_s / raw, CHECKED_MAX)


def main() -> None:
    parser = argparse.ArgumentParser(description="Bulk load on Spark against raw pylance.")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="200,000 rows, two rounds")
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args()
    report = Report()
    if asked.quick:
        asked.rows, asked.rounds = 200_000, 2
    measure(asked.rows, asked.rounds, report)
    report.save(asked.json)


if __name__ == "__main__":
    main()
