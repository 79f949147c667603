"""Stores that cannot be used: each gives one typed error that says what to check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ErrorKind
from support.racers import SCHEMA

ROW = [{"type": "Person", "data": {"name": "a"}}]


@pytest.mark.parametrize("call", [omnigraph.open, lambda uri: omnigraph.init(uri, SCHEMA)])
@pytest.mark.parametrize(
    ("environment", "bucket", "kind"),
    [
        ({}, "no-such-bucket", ErrorKind.STORAGE_NOT_FOUND),
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, None, ErrorKind.STORAGE_DENIED),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, None, ErrorKind.STORAGE_DENIED),
        ({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}, None, ErrorKind.STORAGE_TRANSIENT),
        ({"AWS_ENDPOINT_URL_S3": "nonsense"}, None, ErrorKind.USAGE),
    ],
    ids=["no bucket", "wrong secret", "wrong key", "nobody listens", "not an address"],
)
def test_s3_that_cannot_be_used(
    s3_root: str, monkeypatch: pytest.MonkeyPatch, environment, bucket, kind, call
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(omnigraph.OmnigraphError) as caught:
        call(f"s3://{bucket}/graph" if bucket else s3_root)
    assert caught.value.kind is kind
    assert caught.value.hint
    assert "Traceback" not in str(caught.value)
    assert "<?xml" not in str(caught.value)


@pytest.mark.parametrize("uri", ["", "http://host/graph", "gopher://x", "s3://", "file://host/x"])
def test_a_uri_that_is_none(uri: str) -> None:
    with pytest.raises(omnigraph.UsageError) as caught:
        omnigraph.open(uri)
    assert caught.value.hint


def test_not_a_graph(store_root: str) -> None:
    with pytest.raises(omnigraph.NotFoundError) as caught:
        omnigraph.open(store_root)
    assert caught.value.kind is ErrorKind.NOT_A_GRAPH
    assert "omnigraph init" in (caught.value.hint or "")


def test_a_folder_without_a_graph(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a graph")
    with pytest.raises(omnigraph.NotFoundError):
        omnigraph.open(tmp_path)


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("occupied")
    with pytest.raises(omnigraph.NotFoundError):
        omnigraph.open(place)
    with pytest.raises(omnigraph.StorageError):
        omnigraph.init(place, SCHEMA)


def test_a_graph_that_is_there_already(store_root: str) -> None:
    omnigraph.init(store_root, SCHEMA).close()
    with pytest.raises(omnigraph.AlreadyExistsError) as caught:
        omnigraph.init(store_root, SCHEMA)
    assert caught.value.kind is ErrorKind.ALREADY_INITIALIZED


def test_a_disk_that_is_full_publishes_nothing(tmp_path: Path) -> None:
    """The device takes no more bytes in the middle of a load."""
    root = tmp_path / "graph"
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load(ROW)
    script = (
        "import resource, sys, omnigraph\n"
        # A limit on file sizes stands in for a full device: both refuse the write itself.
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "graph = omnigraph.open(sys.argv[1])\n"
        "rows = [{'type': 'Person', 'data': {'name': f'p{i}' * 50}} for i in range(5000)]\n"
        "try:\n    graph.load(rows)\n"
        "except omnigraph.StorageError as e:\n    print(e.kind, '|', e.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(root)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("storage_full | free space"), done
    with omnigraph.open(root) as graph:
        assert graph.snapshot().count("Person") == 1
        graph.load([{"type": "Person", "data": {"name": "b"}}])
        assert graph.snapshot().count("Person") == 2
