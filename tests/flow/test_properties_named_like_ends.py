"""A node may have properties called ``src``, ``dst``, ``from`` and ``to``: they are plain values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph

SCHEMA = """
node Part { k: String @key  src: String?  dst: I32?  from: I32?  to: String? }
edge Uses: Part -> Part
"""
ROWS = [
    {"k": "a", "src": "x", "dst": 1, "from": 2, "to": "t"},
    {"k": "b", "src": None, "dst": None, "from": None, "to": None},
    {"k": "c", "src": "y", "dst": None, "from": 3, "to": "u"},
]
ARROW = pa.Table.from_pylist(ROWS)


def jsonl(path: Path) -> Path:
    path.write_text("".join(json.dumps({"type": "Part", "data": row}) + "\n" for row in ROWS))
    return path


def csv(path: Path, bad: str = "") -> Path:
    lines = [",".join("" if v is None else str(v) for v in row.values()) for row in ROWS]
    path.write_text("\n".join(["k,src,dst,from,to", *lines, bad]) + "\n")
    return path


def parquet(path: Path) -> Path:
    pq.write_table(ARROW, path)
    return path


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        yield made


def rows(graph: omnigraph.Graph) -> list[dict[str, Any]]:
    found = graph.snapshot().rows("Part").to_dicts()
    return sorted(({k: r[k] for k in ROWS[0]} for r in found), key=lambda r: r["k"])


@pytest.mark.parametrize(
    "given",
    [
        lambda folder: [{"type": "Part", "data": row} for row in ROWS],
        lambda folder: jsonl(folder / "p.jsonl"),
        lambda folder: csv(folder / "p.csv"),
        lambda folder: parquet(folder / "p.parquet"),
        lambda folder: ARROW,
    ],
    ids=["dicts", "jsonl", "csv", "parquet", "arrow"],
)
def test_every_input_takes_their_nulls(graph, given, tmp_path: Path) -> None:
    source = given(tmp_path)
    typed = not isinstance(source, list) and "jsonl" not in str(source)
    graph.load(source, **({"type": "Part"} if typed else {}))
    assert rows(graph) == ROWS


def test_cells_of_csv_one_by_one_take_them_too(graph, tmp_path: Path) -> None:
    """A record that is wrong makes the others go the slow way."""
    rejects = tmp_path / "rejects.jsonl"
    with pytest.raises(omnigraph.InputError) as caught:
        graph.load(csv(tmp_path / "p.csv", "d,,no number,,"), type="Part", rejects=rejects)
    assert "column 'dst'" in str(caught.value)
    assert len(rejects.read_text().splitlines()) == 1


def test_they_are_updated_upserted_and_deleted_by(graph) -> None:
    graph.load([{"type": "Part", "data": row} for row in ROWS])
    graph.mutate('update Part set { src: "z", dst: 7, from: null, to: "w" } where k = "a"')
    assert rows(graph)[0] == {"k": "a", "src": "z", "dst": 7, "from": None, "to": "w"}
    graph.mutate('upsert Part { k: "a", src: null }')
    assert rows(graph)[0]["src"] is None
    assert graph.mutate("delete Part where dst = 7").affected_nodes == 1
    assert [r["k"] for r in rows(graph)] == ["b", "c"]
