"""Reading a graph from Spark against a bare reader: ratios measured in one interleaved run.

    python benchmarks/spark_read.py [rows] [rounds]

Every arm sums one column by another over all rows of one type (5M by default), in one warm session
with two cores. The bare arm is the least that Spark can do with Lance: a plain dataset, a function
for `mapInArrow`, two columns (it runs twice: the distance of the two is the machine's noise). Every
answer is checked. Times include making the DataFrame.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import omnigraph
from omnigraph.pipeline.datasource import register
from omnigraph.pipeline.session import pipeline_session
from omnigraph.pipeline.tables import PinnedGraph, table_frame

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


def main(rows: int, rounds: int) -> None:
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
        seconds: dict[str, list[float]] = {name: [] for name in arms}
        order = random.Random(1)
        for turn in range(rounds + 2):
            for name in order.sample(list(arms), len(arms)):
                started = time.perf_counter()
                answer = arms[name]()
                if turn > 1:  # The first rounds warm the JVM and the workers.
                    seconds[name].append(time.perf_counter() - started)
                assert "half" in name or answer == expected, name
    shutil.rmtree(work)
    best = {name: statistics.median(values) for name, values in seconds.items()}
    base = best["bare mapInArrow"]
    print(f"{rows:,} rows, aggregate over 2 of 6 columns, median of {rounds} rounds")
    for name, value in best.items():
        print(
            f"  {name:20} {value:7.3f} s  {value / base:5.2f}x   (least {min(seconds[name]):.3f})"
        )
    for name in ("table_frame", "format, columns"):
        print(f"  {name:20} {best[name] / base:5.2f}x of bare   goal <= {GOAL}x")


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["5000000"])[0]), int((sys.argv[2:] or ["7"])[0]))
