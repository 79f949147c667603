"""A graph on the local disk, made by the command line itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import DATA, SCHEMA, ok


@pytest.fixture
def schema_file(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.pg"
    file.write_text(SCHEMA)
    return file


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.jsonl"
    file.write_text(DATA, encoding="utf-8")
    return file


@pytest.fixture
def empty_graph(tmp_path: Path, schema_file: Path) -> Path:
    uri = tmp_path / "graph"
    ok("init", uri, "--schema", schema_file)
    return uri


@pytest.fixture
def graph(empty_graph: Path, data_file: Path) -> Path:
    ok("load", empty_graph, "--data", data_file, "--mode", "append", "--as", "alice")
    return empty_graph
