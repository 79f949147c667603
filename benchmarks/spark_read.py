"""Reading a graph from Spark against a bare reader: ratios measured in one interleaved run.

    python benchmarks/spark_read.py [--rows 5000000] [--rounds 7] [--quick] [--json FILE]

Every arm sums one column by another over all rows of one type (5M by default), in one warm session
with two cores. The bare arm is the least that Spark can do with Lance: a plain dataset, a function
for `mapInArrow`, two columns (it runs twice: the distance of the two is the machine's noise). Every
answer is checked. Times include making the DataFrame.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import omnigraph
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.spark.datasource import register
from omnigraph.spark.sessions import pipeline_session
from omnigraph.spark.tables import table_frame

sys.path.insert(0, str(Path(__file__).parent))
from timing import Report, interleaved
from timing import table as print_table

SCHEMA = """
node Sensor { id: String @key }
edge Reading: Sensor -> Sensor { kind: String  value: F64  at: DateTime }
"""
SENSORS = 1000
GOAL = 1.2


def readings(rows: int) -> pa.Table:
    rng = np.random.default_rng(7)
    sensors = pa.array([f"s{i}" for i in range(SENSORS)])
    kinds = pa.array([f"kind-{i}" for i in range(20)])
    return pa.table(
        {
            "id": pa.array([f"r{i}" for i in range(rows)]),
            "src": sensors.take(pa.array(rng.integers(0, SENSORS, rows))),
            "dst": sensors.take(pa.array(rng.integers(0, SENSORS, rows))),
            "kind": kinds.take(pa.array(rng.integers(0, 20, rows))),
            "value": pa.array(rng.integers(0, 1000, rows).astype(np.float64)),
            "at": pa.array(rng.integers(0, 10**12, rows), pa.timestamp("ms", tz="UTC")),
        }
    )


def bare_frame(spark, uri: str):
    dataset = lance.dataset(uri)
    version, count = dataset.version, len(dataset.get_fragments())

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import lance

        opened = lance.dataset(uri, version=version)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                fragment = opened.get_fragments()[number]
                yield from fragment.to_batches(columns=["kind", "value"], batch_size=1 << 16)

    return spark.range(0, count, 1, count).mapInArrow(read, "kind string, value double")


def total(frame) -> dict[str, float]:
    rows = frame.groupBy("kind").sum("value").collect()
    return {row[0]: row[1] for row in rows}


def measure(rows: int, rounds: int, report: Report) -> None:
    work = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    table = readings(rows)
    summed = table.group_by("kind").aggregate([("value", "sum")])
    expected = dict(zip(summed["kind"].to_pylist(), summed["value_sum"].to_pylist(), strict=True))
    bare, place = str(work / "bare.lance"), str(work / "graph")
    lance.write_dataset(table, bare, data_storage_version="2.2", enable_stable_row_ids=True)
    graph = omnigraph.init(place, SCHEMA)
    sensors = pa.table({"id": [f"s{i}" for i in range(SENSORS)]})
    graph.load({"Sensor": sensors, "Reading": table})
    view = graph.snapshot()
    pinned = PinnedGraph.of(graph._repository, view._snapshot)
    with pipeline_session(master="local[2]") as pipeline:
        spark = pipeline.spark
        register(spark)
        source = {"graph": place, "type": "Reading"}
        pair = ["kind", "value"]
        half = pc.field("value") < 500.0
        arms: dict[str, Callable[[], dict[str, float]]] = {
            "bare mapInArrow": lambda: total(bare_frame(spark, bare)),
            "bare again": lambda: total(bare_frame(spark, bare)),
            "table_frame": lambda: total(table_frame(spark, pinned, "edge:Reading", pair)),
            "format, columns": lambda: total(
                spark.read.format("omnigraph").options(**source, columns="kind, value").load()
            ),
            "format, all columns": lambda: total(
                spark.read.format("omnigraph").options(**source).load()
            ),
            "table_frame, half": lambda: total(
                table_frame(spark, pinned, "edge:Reading", pair, half)
            ),
            "format, half": lambda: total(
                spark.read.format("omnigraph")
                .options(**source, columns="kind, value", where="value < 500.0")
                .load()
            ),
        }

        def checked(name: str) -> None:
            answer = arms[name]()
            assert "half" in name or answer == expected, name

        timed = interleaved({name: partial(checked, name) for name in arms}, rounds, warm=2)
    graph.close()
    shutil.rmtree(work)
    base = timed["bare mapInArrow"].median
    told: list[list[str]] = []
    for name, found in timed.items():
        ratio, least = found.median / base, min(found.seconds)
        report.figures[name] = {"seconds": found.seconds, "ratio": ratio}
        told.append([name, f"{found.median:.3f} s", f"{least:.3f} s", f"{ratio:.2f}x"])
    print(f"{rows:,} rows, aggregate over 2 of 6 columns, median of {rounds} rounds")
    print_table(["", "median", "least", "of bare"], told)
    for name in ("table_frame", "format, columns"):
        report.goal(f"{name} / bare mapInArrow reader", timed[name].median / base, GOAL)


def main() -> None:
    parser = argparse.ArgumentParser(description="Reading a graph from Spark.")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="200,000 rows, two rounds")
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args()
    if asked.quick:
        asked.rows, asked.rounds = 200_000, 2
    report = Report()
    measure(asked.rows, asked.rounds, report)
    report.save(asked.json)


if __name__ == "__main__":
    main()
