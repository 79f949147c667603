"""A graph on ``az://``, against Azurite."""

from __future__ import annotations

import base64
import hmac
import http.client
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from omnigraph.testing.s3 import free_ports
from support.cloud_life import create_once, live

ACCOUNT = "devstoreaccount1"
# Azurite's own, as its documentation has it.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
START_MAX_S = 60


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    (port,) = free_ports(1)
    log = tmp_path_factory.mktemp("azurite") / "log"
    command = [
        *("node", str(Path(os.environ["AZURITE"]) / "node_modules/.bin/azurite-blob")),
        *("--inMemoryPersistence", "--disableTelemetry", "--silent"),
        *("--blobHost", "127.0.0.1", "--blobPort", str(port)),
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    try:
        end = time.monotonic() + START_MAX_S
        while True:
            try:
                make_container(port, "tests")
                break
            except ConnectionError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < end, log.read_text()
                os.sched_yield()
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def make_container(port: int, name: str) -> None:
    """obstore cannot."""
    date = formatdate(usegmt=True)
    text = (
        f"PUT{chr(10) * 12}x-ms-date:{date}\nx-ms-version:2021-08-06\n"
        f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    )
    signature = base64.b64encode(hmac.digest(base64.b64decode(KEY), text.encode(), "sha256"))
    headers = {
        "x-ms-date": date,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey {ACCOUNT}:{signature.decode()}",
        "Content-Length": "0",
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("PUT", f"/{ACCOUNT}/{name}?restype=container", headers=headers)
        assert connection.getresponse().status == 201
    finally:
        connection.close()


@pytest.fixture
def root(port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://127.0.0.1:{port}/{ACCOUNT}")
    return "az://tests"


def test_the_life_of_a_graph(root: str) -> None:
    live(root)


def test_a_name_is_created_once(root: str) -> None:
    create_once(f"{root}/below")
