"""A library's manners: it logs under its own name and prints nothing; its words are types."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import pytest

import omnigraph
from omnigraph import choices
from omnigraph.api.engines import Engine
from omnigraph.branch.merge.threeway import Granularity
from omnigraph.manifest.repository import Durability
from omnigraph.rules.table_delta import WriteMode

SCHEMA = "node P { k: String @key }"
ROW = [{"type": "P", "data": {"k": "secret"}}]


def test_commits_are_logged_under_the_name_of_the_library(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "omnigraph")
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        commit = graph.load(ROW).commit
    with omnigraph.open(tmp_path / "g"):
        pass
    said = [(r.name, r.levelname, r.getMessage()) for r in caplog.records]
    assert commit is not None
    assert ("omnigraph.write", "INFO", f"published load {commit.id} on main") in said
    assert ("omnigraph.api", "DEBUG", f"opened {tmp_path / 'g'} at version 2") in said
    assert not [r for r in caplog.records if not r.name.startswith("omnigraph.")]
    assert "secret" not in caplog.text


def test_a_program_that_asks_for_no_logs_sees_none(tmp_path: Path) -> None:
    code = (
        "import logging, omnigraph\n"
        f"omnigraph.init({str(tmp_path / 'g')!r}, {SCHEMA!r}).close()\n"
        "logging.getLogger('omnigraph.manifest').warning('harmless')\n"
    )
    env = os.environ | {"PYTHONPATH": str(Path(omnigraph.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("words", "members"),
    [
        (choices.LoadModeWord, WriteMode),
        (choices.EngineWord, Engine),
        (choices.DurabilityWord, Durability),
        (choices.GranularityWord, Granularity),
    ],
)
def test_the_words_of_a_type_are_those_that_are_taken(words: Any, members: type[StrEnum]) -> None:
    assert set(get_args(words)) == {str(member) for member in members}


def test_a_checker_is_told_the_types() -> None:
    assert (Path(omnigraph.__file__).parent / "py.typed").is_file()
    hints = omnigraph.Graph.load.__annotations__
    assert (hints["mode"], hints["engine"]) == ("LoadModeWord", "AutoEngineWord")
    assert omnigraph.Graph.merge.__annotations__["prefer"] == "PreferWord | None"
    assert omnigraph.open.__annotations__["durability"] == "DurabilityWord"
    assert omnigraph.Graph.export.__annotations__["format"] == "ExportFormatWord"


def test_a_wrong_word_is_a_usage_error_at_run_time(tmp_path: Path) -> None:
    wrong: Any = "replace"
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        with pytest.raises(omnigraph.UsageError, match="unknown load mode 'replace'"):
            graph.load(ROW, mode=wrong)
        with pytest.raises(omnigraph.UsageError):
            graph.merge("main", prefer=wrong)
