"""A graph on ``gs://``: what is said to Google's store, against a server that answers as it does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cloud_life import create_once, live
from support.google_server import GoogleServer


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleServer]:
    for name in [name for name in os.environ if name.startswith("GOOGLE_")]:
        monkeypatch.delenv(name)
    with GoogleServer() as server:
        file = server.account(tmp_path / "account.json")
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(file))
        yield server


def test_the_life_of_a_graph(server: GoogleServer) -> None:
    live("gs://bucket")
    assert {name.partition("/")[0] for name in server.objects} == {"bucket"}
    assert any(name.startswith("bucket/of graphs/g/__manifest/") for name in server.objects)


def test_a_name_is_created_once(server: GoogleServer) -> None:
    create_once("gs://bucket/below")
    assert server.requests[0] == "PUT bucket/below/name"
