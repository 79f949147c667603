"""A graph on the local disk, made by the command line itself."""

from __future__ import annotations

import shutil
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


@pytest.fixture(scope="session")
def graphs_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The graphs below, made once: a graph may be copied to another place."""
    folder = tmp_path_factory.mktemp("graphs")
    (folder / "fleet.pg").write_text(SCHEMA)
    (folder / "fleet.jsonl").write_text(DATA, encoding="utf-8")
    ok("init", folder / "empty", "--schema", folder / "fleet.pg")
    shutil.copytree(folder / "empty", folder / "full")
    data = ("--data", folder / "fleet.jsonl", "--mode", "append", "--as", "alice")
    ok("load", folder / "full", *data)
    return folder


@pytest.fixture
def empty_graph(tmp_path: Path, schema_file: Path, graphs_once: Path) -> Path:
    return _copied(graphs_once / "empty", tmp_path / "graph")


@pytest.fixture
def graph(tmp_path: Path, schema_file: Path, data_file: Path, graphs_once: Path) -> Path:
    return _copied(graphs_once / "full", tmp_path / "graph")


def _copied(graph: Path, place: Path) -> Path:
    """A copy without mirrors, which would refer to the graph that was copied."""
    return Path(shutil.copytree(graph, place, ignore=shutil.ignore_patterns("tables")))
