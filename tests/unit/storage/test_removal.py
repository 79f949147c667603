"""Deleting rows by place: the rows that were meant, in whatever fragment, and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import InternalError
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.changes import Append, Remove, Upsert
from omnigraph.storage.staging import TableStore
from omnigraph.storage.tables import Table

SCHEMA = "node P { code: String @key  n: I32?  photo: Blob? }"


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    return omnigraph.init(tmp_path / "g", SCHEMA)


def rows(graph: omnigraph.Graph, codes: range, n: int) -> pa.Table:
    some = [{"id": f"p{i}", "code": f"p{i}", "n": n, "photo": bytes([i % 256]) * i} for i in codes]
    return pa.Table.from_pylist(some, schema=table_schema(graph.catalog.nodes["P"]))


def stage(graph: omnigraph.Graph, base: Table | None, *changes: object) -> Table:
    kind = graph.catalog.nodes["P"]
    store: TableStore = graph._repository.tables
    made = [
        Append(files=store.write_files(kind.table_path, c, base)) if isinstance(c, pa.Table) else c
        for c in changes
    ]
    number = 0 if base is None else base.name.version
    staged = store.stage(kind.table_path, base, made, table_schema(kind), f"v{number}")
    store.pin(staged)
    return staged.table


def ids(*codes: int) -> Remove:
    return Remove(ids=pa.array([f"p{c}" for c in codes], pa.string()))


def scanned(table: Table) -> list[str]:
    return table.dataset.to_table(columns=["id"])["id"].to_pylist()


def test_rows_go_from_every_fragment_version_after_version(graph: omnigraph.Graph) -> None:
    table = stage(graph, None, rows(graph, range(40), 0))
    for start in (40, 80):
        table = stage(graph, table, rows(graph, range(start, start + 40), start))
    left = [f"p{i}" for i in range(120)]
    chosen = random.Random(1)
    for turn in range(12):
        table.columns(("id", "n"))  # A warm reader's knowledge is carried from version to version.
        gone = chosen.sample(left, 3 if turn % 2 else 9)
        table = stage(graph, table, Remove(ids=pa.array(gone, pa.string())))
        left = [i for i in left if i not in gone]
        assert scanned(table) == left
        assert table.columns(("id", "n"))["id"].to_pylist() == left
        assert table.row_count == len(left)
        some = sorted(chosen.sample(range(len(left)), 5))
        found = table.take(some, ("id", "photo", "n"))
        assert found["id"].to_pylist() == [left[i] for i in some]
        numbers = [int(left[i][1:]) for i in some]
        assert found["photo"].to_pylist() == [bytes([i % 256]) * i for i in numbers]
        wanted = pa.array([left[i] for i in some])
        assert table.positions("id", wanted).tolist() == some
        fresh = graph._repository.tables.open(table.name)
        assert fresh.columns(("id",))["id"].to_pylist() == left
        assert np.array_equal(fresh.layout.all_addresses(), table.layout.all_addresses())


def test_a_fragment_may_go_entirely(graph: omnigraph.Graph) -> None:
    table = stage(graph, None, rows(graph, range(3), 0))
    table = stage(graph, table, rows(graph, range(3, 6), 1))
    table = stage(graph, table, ids(0, 1, 2, 4))
    assert scanned(table) == ["p3", "p5"]
    assert len(table.layout.fragments) == 1
    table = stage(graph, table, ids(3, 5))
    assert scanned(table) == [] and table.row_count == 0
    table = stage(graph, table, rows(graph, range(2), 7))
    assert scanned(table) == ["p0", "p1"]


def test_rows_are_replaced_added_and_removed_in_one_stage(graph: omnigraph.Graph) -> None:
    table = stage(graph, None, rows(graph, range(10), 0))
    table = stage(graph, table, ids(9))
    before = dict(zip(scanned(table), range(9), strict=True))
    assert before["p8"] == 8
    table = stage(graph, table, Upsert(rows=rows(graph, range(6, 9), 5)), ids(0, 3))
    found = {r["id"]: r["n"] for r in table.take(range(7), ("id", "n")).to_pylist()}
    assert found == {"p1": 0, "p2": 0, "p4": 0, "p5": 0, "p6": 5, "p7": 5, "p8": 5}
    table = stage(graph, table, rows(graph, range(20, 22), 1), ids(6, 1))
    assert sorted(scanned(table)) == ["p2", "p20", "p21", "p4", "p5", "p7", "p8"]


def test_what_is_not_there_is_not_removed_silently(graph: omnigraph.Graph) -> None:
    table = stage(graph, None, rows(graph, range(3), 0))
    with pytest.raises(InternalError):
        stage(graph, table, ids(0, 7))
