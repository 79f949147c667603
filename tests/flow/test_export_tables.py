"""Exports to CSV and Parquet by one process: they load back exactly."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import omnigraph

SCHEMA = """
node Person {
  name: String @key
  nick: String?
  age: U64?
  score: F64?
  tags: [String]?
  face: Vector(2)?
  born: Date?
  seen: DateTime?
  photo: Blob?
  tier: enum(gold, silver)?
  ok: Bool?
}
node Empty { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
ODD = 'a "quoted", line\r\nwith ☃'
RECORDS = [
    {
        "type": "Person",
        "data": {
            "name": ODD,
            "nick": "",
            "age": 2**64 - 1,
            "score": 0.1,
            "tags": ["x", 'y"', ""],
            "face": [0.5, -1.25],
            "born": "0001-01-01",
            "seen": "2024-01-01T00:00:00.250Z",
            "photo": "base64:aGVsbG8=",
            "tier": "gold",
            "ok": False,
        },
    },
    {"type": "Person", "data": {"name": "Bob", "tags": []}},
    {"edge": "Knows", "from": ODD, "to": "Bob", "data": {"id": "k1", "since": 3}},
]


def lines(graph: omnigraph.Graph) -> list[str]:
    out = io.BytesIO()
    graph.export(out)
    return sorted(out.getvalue().decode().splitlines())


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_load_back_exactly(tmp_path: Path, form: str):
    with (
        omnigraph.init(tmp_path / "a", SCHEMA) as graph,
        omnigraph.init(tmp_path / "b", SCHEMA) as other,
    ):
        graph.load(RECORDS)
        seen: list[int] = []
        assert graph.export(tmp_path / "out", format=form, progress=seen.append) == 3
        assert seen[-1] == 3
        told = json.loads((tmp_path / "out" / "_export.json").read_text())
        assert (told["rows"], told["format"]) == (3, form)
        files = {t["type"]: tmp_path / "out" / t["files"][0] for t in told["types"]}
        assert set(files) == {"Person", "Empty", "Knows"}
        other.load(files)
        assert lines(other) == lines(graph)
        assert other.load(files, mode="merge").commit is None


def test_an_export_needs_an_empty_folder_and_leaves_nothing_behind(tmp_path: Path):
    with omnigraph.init(tmp_path / "a", SCHEMA) as graph:
        graph.load(RECORDS)

        def stop(_rows: int) -> None:
            raise RuntimeError("stopped")

        with pytest.raises(RuntimeError):
            graph.export(tmp_path / "out", format="csv", progress=stop)
        assert [p for p in (tmp_path / "out").rglob("*") if p.is_file()] == []
        assert graph.export(tmp_path / "out", format="csv", types=["Person"]) == 2
        with pytest.raises(omnigraph.UsageError, match="is not empty"):
            graph.export(tmp_path / "out", format="csv")
        with pytest.raises(omnigraph.UsageError, match="is a folder"):
            graph.export(io.BytesIO(), format="parquet")
        with pytest.raises(omnigraph.UsageError, match="unknown format"):
            graph.export(tmp_path / "x", format="xml")
