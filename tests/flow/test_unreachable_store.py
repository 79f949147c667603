"""Stores that cannot be used: each gives one typed error that says what to check."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ErrorKind, StorageError
from omnigraph.storage import contact
from omnigraph.storage.inputs import find_inputs
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects
from omnigraph.storage.settings import CONNECT_TIMEOUT_S, RETRIES_MAX
from omnigraph.testing.s3 import BUCKET
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


@pytest.mark.parametrize(
    ("uri", "environment"),
    [
        ("az://tests/g", {}),
        (
            "az://tests/g",
            {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_SAS_TOKEN": "nonsense"},
        ),
        ("gs://tests/g", {"GOOGLE_SERVICE_ACCOUNT": "nowhere.json"}),
        ("gs://tests/g", {"GOOGLE_SERVICE_ACCOUNT_KEY": "nonsense"}),
    ],
    ids=["no account", "SAS", "no file", "no key"],
)
def test_credentials_of_other_clouds_that_are_none(
    monkeypatch: pytest.MonkeyPatch, uri: str, environment: dict[str, str]
) -> None:
    for name in [name for name in os.environ if name.startswith(("AZURE_", "GOOGLE_"))]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StorageError) as caught:
        omnigraph.open(uri)
    assert caught.value.kind is ErrorKind.STORAGE_CONFIGURATION
    assert "AZURE_*" in (caught.value.hint or "")


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def swallowing() -> Iterator[str]:
    """A server that takes no connection any more, as one that is not there behind a firewall."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        waiting = [socket.socket() for _ in range(3)]
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for client in waiting:
            client.close()


DEAD_CALLS = {
    "open": omnigraph.open,
    "init": lambda uri: omnigraph.init(uri, SCHEMA),
    "input": lambda uri: find_inputs(f"{uri}/rows.jsonl"),
    "inputs": lambda uri: find_inputs(f"{uri}/*.jsonl"),
    "export": lambda uri: next(Objects(locate(uri)).names("")),
}


@pytest.mark.parametrize("call", DEAD_CALLS.values(), ids=DEAD_CALLS)
@pytest.mark.parametrize("endpoint", ["silent", "swallowing"])
def test_a_store_that_says_nothing_is_told_with_its_address(
    s3_root: str,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    endpoint: str,
    call: Callable[[str], object],
) -> None:
    address = request.getfixturevalue(endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", address)
    monkeypatch.setattr(contact, "ANSWER_MAX_S", 0.3)
    with pytest.raises(StorageError) as caught:
        call(s3_root)
    assert caught.value.kind is ErrorKind.STORAGE_TRANSIENT
    assert caught.value.message.startswith(f"the store does not answer: {address} was asked for ")
    assert caught.value.details == {"address": address, "bucket": BUCKET}


def test_a_store_without_a_listener_is_told_with_its_address_and_attempts(
    s3_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    with pytest.raises(StorageError) as caught:
        omnigraph.open(s3_root)
    attempts = RETRIES_MAX + 1
    assert f"http://127.0.0.1:9 was asked {attempts} times in " in caught.value.message


def test_what_is_tried_is_over_within_ten_seconds(s3_root: str) -> None:
    assert contact.ANSWER_MAX_S < 10
    assert (RETRIES_MAX + 1) * CONNECT_TIMEOUT_S < 10
    options = locate(s3_root).storage_options or {}
    assert options["connect_timeout"] == f"{CONNECT_TIMEOUT_S}s"
    assert options["client_max_retries"] == str(RETRIES_MAX)


def test_a_store_that_has_answered_is_waited_for(
    s3_root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be slow later on; its clients know how long to wait."""
    with omnigraph.init(s3_root, SCHEMA) as graph:
        monkeypatch.setattr(contact, "ANSWER_MAX_S", 0.0)
        graph.load(ROW)
        assert graph.snapshot().count("Person") == 1


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
