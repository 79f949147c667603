"""Large tables are written by several threads, file by file: the same files, in the same order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import StorageError
from omnigraph.storage import staging

SCHEMA = "node P { code: String @key  n: I32  photo: Blob? }\nedge E: P -> P"
FILE_ROWS = 100


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> omnigraph.Graph:
    monkeypatch.setattr(staging, "FILE_ROWS", FILE_ROWS)
    monkeypatch.setattr(staging, "BULK_BYTES_MIN", 0)
    return omnigraph.init(tmp_path / "g", SCHEMA)


def people(numbers: range) -> pa.Table:
    photos = pa.array([str(n).encode() * 3 if n % 3 else None for n in numbers], pa.large_binary())
    return pa.table({"code": [f"p{n}" for n in numbers], "n": list(numbers), "photo": photos})


def stored(graph: omnigraph.Graph) -> tuple[list[int], list[str | None], list[int]]:
    """Values in the order of the files, and the rows of each file."""
    repository = graph._repository
    pin = repository.head("main").snapshot.pins["node:P"]
    table = repository.table(pin)
    rows = pa.Table.from_batches(table.batches(("n", "photo")))
    photos = [None if p is None else p.decode() for p in rows["photo"].to_pylist()]
    return rows["n"].to_pylist(), photos, [f.physical_rows for f in table.layout.fragments]


def test_rows_keep_their_order_over_files(graph: omnigraph.Graph) -> None:
    graph.load({"P": people(range(950))})
    graph.load({"P": people(range(950, 1_200))}, mode="append")
    numbers, photos, files = stored(graph)
    assert numbers == list(range(1_200))
    assert photos == [str(n) * 3 if n % 3 else None for n in numbers]
    assert files == [100] * 9 + [50] + [100, 100, 50]


def test_many_replaced_rows_keep_their_values(graph: omnigraph.Graph) -> None:
    graph.load({"P": people(range(500))})
    again = people(range(250, 900)).set_column(1, "n", pa.array(range(10_250, 10_900)))
    graph.load({"P": again}, mode="merge")
    numbers, photos, _ = stored(graph)
    assert sorted(numbers) == [*range(250), *range(10_250, 10_900)]
    assert photos == [str(n % 10_000) * 3 if n % 10_000 % 3 else None for n in numbers]


def test_a_file_that_fails_publishes_nothing(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.load({"P": people(range(50))})
    before, write, calls = graph.snapshot(), staging.write_fragments, list[int]()

    def failing(rows: pa.Table, *arguments: Any, **options: Any) -> Any:
        calls.append(rows.num_rows)
        if rows.num_rows != FILE_ROWS:
            raise OSError(28, "No space left on device")
        return write(rows, *arguments, **options)

    monkeypatch.setattr(staging, "write_fragments", failing)
    with pytest.raises(StorageError):
        graph.load({"P": people(range(50, 430))}, mode="append")
    assert sorted(calls) == [80, 100, 100, 100]
    assert graph.snapshot().commit == before.commit
    monkeypatch.setattr(staging, "write_fragments", write)
    graph.load({"P": people(range(50, 430))}, mode="append")
    assert stored(graph)[0] == list(range(430))
    assert graph.upkeep.check(full=True).ok
