"""Output that cannot be written: the reason is told, and so is what was published all the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import answer, environment, ok

FULL = "cannot write the output: No space left on device"
PORT = b'{"type":"Port","data":{"code":"X","name":"p","berths":1}}'


def _full(*args: object, stdin: bytes = b"", stderr: str | None = None) -> tuple[int, str]:
    """The exit code and stderr of a command whose stdout is a full disk."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "omnigraph.cli.main", *(str(a) for a in args)],
            input=stdin, stdout=full, stderr=full if stderr else subprocess.PIPE,
            env=environment(), timeout=60, check=False,
        )  # fmt: skip
    return done.returncode, (done.stderr or b"").decode()


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_load_that_was_published_says_so(empty_graph: Path, json: list[str]) -> None:
    code, said = _full("load", empty_graph, "--data", "-", "--mode", "append", *json, stdin=PORT)
    head = answer("snapshot", empty_graph)["graph_commit_id"]
    assert (code, said) == (1, f"error: {FULL}; commit {head} was published\n")


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_an_init_that_was_published_says_so(
    tmp_path: Path, schema_file: Path, json: list[str]
) -> None:
    code, said = _full("init", tmp_path / "g", "--schema", schema_file, *json)
    head = answer("snapshot", tmp_path / "g")["graph_commit_id"]
    assert (code, said) == (1, f"error: {FULL}; commit {head} was published\n")


@pytest.mark.parametrize(
    "command",
    [
        ["snapshot"],
        ["snapshot", "--json"],
        ["commit", "list"],
        ["commit", "list", "--json"],
        ["schema", "show"],
        ["export"],
    ],
)
def test_a_reading_command_says_why(graph: Path, command: list[str]) -> None:
    assert _full(*command, graph) == (1, f"error: {FULL}\n")


READ = "match { $v: Vessel } return { $v.name }"


@pytest.mark.parametrize("form", ["table", "kv", "csv", "jsonl", "json", "arrow"])
def test_rows_that_cannot_be_written(graph: Path, form: str) -> None:
    assert _full("query", graph, "-e", READ, "--format", form) == (1, f"error: {FULL}\n")


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_mutation_that_was_published_says_so(graph: Path, json: list[str]) -> None:
    code, said = _full("mutate", graph, "-e", "delete Vessel where imo = 200", *json)
    head = answer("snapshot", graph)["graph_commit_id"]
    assert (code, said) == (1, f"error: {FULL}; commit {head} was published\n")


@pytest.mark.parametrize("form", ["table", "kv", "csv", "jsonl", "json", "arrow"])
def test_a_reader_of_rows_that_goes_away_is_no_error(empty_graph: Path, form: str) -> None:
    lines = "".join(
        f'{{"type":"Port","data":{{"code":"{n}","name":"{"p" * 100}","berths":1}}}}\n'
        for n in range(5_000)
    )
    ok("load", empty_graph, "--data", "-", "--mode", "append", stdin=lines)
    child = subprocess.Popen(
        [sys.executable, "-m", "omnigraph.cli.main", "query", str(empty_graph), "-e",
         "match { $p: Port } return { $p }", "--format", form],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.read(2)
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait(60) == 141


@pytest.mark.parametrize("args", [["--help"], ["load", "--help"], ["--version"]])
def test_help_too(args: list[str]) -> None:
    assert _full(*args) == (1, f"error: {FULL}\n")


def test_an_error_that_cannot_be_written_to_stdout_is_still_on_stderr(tmp_path: Path) -> None:
    code, said = _full("snapshot", tmp_path / "none", "--json")
    assert code == 1
    assert said.startswith("error: no graph at ")


def test_the_exit_code_stays_when_stderr_is_full_as_well(graph: Path) -> None:
    assert _full("snapshot", graph, stderr="full")[0] == 1
    assert _full("snapshot", stderr="full")[0] == 2


def test_a_load_that_changed_nothing_claims_no_commit(empty_graph: Path) -> None:
    assert _full("load", empty_graph, "--data", "-", "--mode", "append") == (1, f"error: {FULL}\n")
    ok("snapshot", empty_graph)
