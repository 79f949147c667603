"""The walk of a load on Spark is true, as far as the driver goes."""

from __future__ import annotations

import sys
from pathlib import Path

import omnigraph

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
from walking import calls_of, steps_of

IN_TASKS = {"input/threads.py::read_unit"}


def test_the_way_of_a_load_on_spark(spark, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name\na\n")
    with omnigraph.init(tmp_path / "graph", "node Person { name: String @key }") as graph:
        calls = calls_of(
            lambda: graph.load(tmp_path / "people.csv", type="Person", engine="spark", spark=spark)
        )
    rest = iter(calls)
    for step in steps_of("Load on Spark"):
        if step not in IN_TASKS:
            assert step in rest, f"{step} is not called, or not at this place"
