"""Files of every kind and place into a graph, by this process."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import InputError, NotFoundError
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        yield graph


def names(graph: omnigraph.Graph) -> list[str]:
    return sorted(row["name"] for row in graph.snapshot().rows("Person").to_dicts())


def test_files_of_a_bucket(graph: omnigraph.Graph, s3_root: str) -> None:
    objects = Objects(locate(s3_root))
    parquet = io.BytesIO()
    pq.write_table(pa.table({"name": ["par"], "age": [3]}), parquet)
    line = json.dumps({"type": "Person", "data": {"name": "json"}}).encode() + b"\n"
    objects.put("in/a.csv", b"name,age\nann,1\nbob,\n")
    objects.put("in/b.csv.gz", gzip.compress(b"name\ncarl\n"))
    objects.put("in/_SUCCESS", b"")
    objects.put("other/c.parquet", parquet.getvalue())
    objects.put("other/d.jsonl.gz", gzip.compress(line))
    assert graph.load(f"{s3_root}/in/", type="Person").total_entities == 3
    assert graph.load(f"{s3_root}/other/*.parquet", type="Person").total_entities == 1
    assert graph.load(f"{s3_root}/other/d.jsonl.gz").total_entities == 1
    assert names(graph) == ["ann", "bob", "carl", "json", "par"]
    objects.put("in/bad.csv", b"name,age\nx,y\n")
    with pytest.raises(InputError) as caught:
        graph.load(f"{s3_root}/in/bad.csv", type="Person")
    assert caught.value.message == f"{s3_root}/in/bad.csv:2: column 'age': expected I32, got \"y\""
    with pytest.raises(NotFoundError, match="no such file"):
        graph.load(f"{s3_root}/nothing/", type="Person")
    assert len(names(graph)) == 5


def test_a_large_file_of_a_bucket_is_read_in_few_requests(
    graph: omnigraph.Graph, s3_proxied_root: str, s3_proxy
) -> None:
    text = "name,age\n" + "".join(f"{i:030},{i}\n" for i in range(500_000))
    assert len(text) > 18 << 20
    Objects(locate(s3_proxied_root)).put("a.csv", text.encode())
    s3_proxy.reset()
    assert graph.load(f"{s3_proxied_root}/a.csv", type="Person").total_entities == 500_000
    # It is found, looked at (its first bytes, its header), and read in two windows.
    asked = [f"{r.operation} {r.range}" for r in s3_proxy.requests]
    assert len(asked) <= 5, asked


def test_a_csv_file_without_rows_replaces_everything(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("name\nann\n")
    (tmp_path / "none.csv").write_text("name\n")
    graph.load(tmp_path / "a.csv", type="Person")
    graph.load(tmp_path / "none.csv", type="Person", mode="overwrite")
    assert names(graph) == []


def test_nodes_and_edges_of_two_files_are_one_commit(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("name,age\nann,1\nbob,2\n")
    (tmp_path / "knows.tsv").write_text("from\tto\tsince\nann\tbob\t1999\n")
    result = graph.load({"Person": tmp_path / "people.csv", "Knows": tmp_path / "knows.tsv"})
    assert result.total_entities == 3
    assert len(graph.commits()) == 2
    (tmp_path / "bad.csv").write_text("src,dst\nann,nix\n")
    with pytest.raises(omnigraph.ConstraintError) as caught:
        graph.load(tmp_path / "bad.csv", type="Knows")
    (violation,) = caught.value.violations
    assert (violation.source, violation.line) == (str(tmp_path / "bad.csv"), 2)


def test_integer_columns_name_the_ends_of_edges(tmp_path: Path):
    schema = "node P { n: I64 @key }\nedge E: P -> P { @key(@src, @dst) }"
    ends = pa.table({"src": pa.array([1, 2], pa.int64()), "dst": pa.array([2, 3], pa.int32())})
    pq.write_table(ends, tmp_path / "e.parquet")
    with omnigraph.init(tmp_path / "g", schema) as graph:
        graph.load(pa.table({"n": [1, 2, 3]}), type="P")
        assert graph.load(ends, type="E").total_entities == 2
        again = graph.load(tmp_path / "e.parquet", type="E", mode="merge")
        assert (again.commit, again.unchanged_entities) == (None, 2)
        assert graph.load(ends.to_pandas(), type="E", mode="merge").commit is None
