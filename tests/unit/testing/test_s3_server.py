"""The S3 server behaves as S3 does where our protocol leans on it, and dies when it should."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier
from urllib.parse import urlsplit

import obstore
import pytest
from obstore.exceptions import (
    AlreadyExistsError,
    GenericError,
    PermissionDeniedError,
    PreconditionError,
)
from obstore.store import S3Store

from omnigraph.errors import StorageError
from omnigraph.testing import s3
from omnigraph.testing.s3 import BUCKET, run_s3_server

RACERS = 16
CHILD = """
import signal
from omnigraph.testing.s3 import run_s3_server
with run_s3_server() as server:
    print(server.endpoint, flush=True)
    signal.pause()
"""


def open_store(server, bucket=BUCKET, **changes):
    options = {
        "endpoint": server.endpoint,
        "access_key_id": server.access_key,
        "secret_access_key": server.secret_key,
        "region": server.region,
        "client_options": {"allow_http": True},
        "retry_config": {"max_retries": 0},
    }
    return S3Store(bucket, **(options | changes))


def race(attempt):
    """Run ``attempt(number)`` on 16 threads at once; how many succeeded.

    The losers can take seconds: SeaweedFS retries a contested lock in steps of one second.
    """
    barrier = Barrier(RACERS)

    def run(number):
        barrier.wait()
        try:
            attempt(number)
        except (AlreadyExistsError, PreconditionError) as error:
            return error
        return None

    with ThreadPoolExecutor(RACERS) as pool:
        outcomes = list(pool.map(run, range(RACERS)))
    return outcomes.count(None)


def test_of_racing_creates_exactly_one_wins(s3_server):
    store = open_store(s3_server)
    assert race(lambda n: obstore.put(store, "race-create", b"%d" % n, mode="create")) == 1


def test_of_racing_updates_exactly_one_wins(s3_server):
    store = open_store(s3_server)
    tag = obstore.put(store, "race-update", b"base")["e_tag"]
    assert race(lambda n: obstore.put(store, "race-update", b"%d" % n, mode={"e_tag": tag})) == 1


def test_a_wrong_secret_is_refused(s3_server):
    with pytest.raises(PermissionDeniedError):
        obstore.put(open_store(s3_server, secret_access_key="wrong"), "refused", b"")
    # A refused LIST is not mapped by obstore: only the text tells.
    with pytest.raises(GenericError, match="403 Forbidden"):
        list(obstore.list(open_store(s3_server, secret_access_key="wrong")))


def test_an_unknown_user_and_nobody_are_refused(s3_server):
    with pytest.raises(PermissionDeniedError):
        obstore.put(open_store(s3_server, access_key_id="stranger"), "refused", b"")
    with pytest.raises(PermissionDeniedError):
        obstore.get(open_store(s3_server, skip_signature=True), "__ready")


def test_a_bucket_is_there_only_when_made(s3_server):
    store = open_store(s3_server, bucket="made-on-demand")
    with pytest.raises(FileNotFoundError):
        obstore.put(store, "x", b"1")
    assert s3_server.bucket("made-on-demand") == "made-on-demand"
    s3_server.bucket("made-on-demand")
    obstore.put(store, "x", b"1")


def test_a_bad_bucket_name_is_an_error(s3_server):
    with pytest.raises(StorageError, match="InvalidBucketName"):
        s3_server.bucket("b")


def test_the_environment_leads_obstore_and_lance_to_the_server(s3_root):
    import lance
    import pyarrow as pa

    lance.write_dataset(pa.table({"a": [1, 2]}), f"{s3_root}/table")
    assert lance.dataset(f"{s3_root}/table").count_rows() == 2
    found = [entry["path"] for batch in obstore.list(S3Store.from_url(s3_root)) for entry in batch]
    assert any(path.endswith(".manifest") for path in found)


def test_every_place_is_fresh(s3_root, s3_server):
    assert not list(obstore.list(S3Store.from_url(s3_root)))
    assert os.environ["AWS_ENDPOINT_URL_S3"] == s3_server.endpoint


def test_store_root_is_usable_as_it_is(store_root):
    import lance
    import pyarrow as pa

    lance.write_dataset(pa.table({"a": [1]}), f"{store_root}/table")
    assert lance.dataset(f"{store_root}/table").count_rows() == 1


def test_the_server_value_can_be_sent_to_another_process(s3_server):
    assert pickle.loads(pickle.dumps(s3_server)) == s3_server


def test_the_server_dies_with_a_killed_parent(tmp_path):
    folder = tmp_path / ("a" * 100)  # Longer than the path of a socket can be.
    folder.mkdir()
    parent = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    address = urlsplit(parent.stdout.readline().strip())
    connection = socket.create_connection((address.hostname, address.port), timeout=60)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    # The kernel closes the connection when the server is gone: no polling needed.
    with connection, suppress(ConnectionResetError):
        assert connection.recv(1) == b""
    # A dying process closes its connections and its listener one after the other: ask until both
    # are gone. Every answer on the way is another connection that the kernel closes.
    refused = False
    for _ in range(1000):
        try:
            with socket.create_connection((address.hostname, address.port), timeout=60) as late:
                late.recv(1)
        except ConnectionResetError:
            continue
        except ConnectionRefusedError:
            refused = True
            break
    assert refused


def test_a_server_that_does_not_start_shows_its_log(tmp_path, monkeypatch):
    broken = tmp_path / "weed"
    broken.write_text("#!/bin/sh\necho no such luck\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(s3, "_find_weed", lambda: broken)
    with pytest.raises(StorageError, match="no such luck"), run_s3_server():
        pytest.fail("must not start")
