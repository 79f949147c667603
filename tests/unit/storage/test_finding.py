"""Rows by the values of a column, where the column is too large to be kept."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.storage import staging, tables
from omnigraph.storage.tables import Table

ROWS = 5_000


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """Many small batches, and a cache for none of them."""
    monkeypatch.setattr(staging, "CACHE_BYTES_MAX", 0)
    monkeypatch.setattr(tables, "PIECE_ROWS", 100)
    graph = omnigraph.init(tmp_path / "g", "node P { name: String @key  n: I64 }")
    for start in range(0, ROWS, 500):
        rows = [{"name": f"p{i}", "n": i} for i in range(start, start + 500)]
        graph.load({"P": rows})
    graph.close()
    reader = omnigraph.open(tmp_path / "g")._repository
    return reader.table(reader.head("main").snapshot.pins["node:P"])


@pytest.mark.parametrize("count", [1, 90, 1_100, ROWS])
def test_many_values_are_hashed_few_times(
    table: Table, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """For each piece the values are hashed anew: that must not cost more than the rows do."""
    hashed: list[int] = []
    among = tables.among
    monkeypatch.setattr(
        tables, "among", lambda column, values: hashed.append(len(values)) or among(column, values)
    )
    names = pa.array([f"p{i * 7 % ROWS}" for i in range(count)])
    found = table.lookup("id", names, ("id", "n"))
    assert sorted(found["id"].to_pylist()) == sorted(names.to_pylist())
    assert sum(hashed) <= 2 * ROWS
    hashed.clear()
    positions = table.positions("id", names)
    assert sorted(table.take(positions, ("id",))["id"].to_pylist()) == sorted(names.to_pylist())
    assert sum(hashed) <= 2 * ROWS
