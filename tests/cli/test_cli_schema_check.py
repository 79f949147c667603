"""A schema as a file or from stdin: checked without a graph, or made into one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import SCHEMA, answer, ok, process, run

BAD = "node Vessel {\n  imo: I46 @key\n}\nedge At: Vessel -> Prot\n"


def test_a_valid_schema(schema_file: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    said = ok("schema", "check", schema_file)
    counts = "2 node types, 2 edge types, 1 interface"
    assert said.stdout == f"Valid: {schema_file} declares {counts}\n"
    assert answer("schema", "check", schema_file) == {
        "source": str(schema_file),
        "nodes": ["Vessel", "Port"],
        "edges": ["CallsAt", "Feeds"],
        "interfaces": ["Named"],
    }
    assert ok("schema", "check", schema_file, "--quiet").stdout == ""
    assert set(tmp_path.iterdir()) == before


def test_findings(tmp_path: Path) -> None:
    file = tmp_path / "bad.pg"
    file.write_text(BAD)
    said = run("schema", "check", file)
    assert (said.exit_code, said.stdout) == (1, "")
    assert said.stderr.splitlines()[0] == f"error: 2 problems in {file}"
    assert said.stderr == run("init", tmp_path / "g", "--schema", file).stderr
    told = run("schema", "check", file, "--json")
    assert told.exit_code == 1
    assert [d["line"] for d in json.loads(told.stdout)["diagnostics"]] == [2, 4]


@pytest.mark.parametrize("command", [["schema", "check"], ["init", "g", "--schema"]])
def test_files_that_cannot_be_read(tmp_path: Path, command: list[str]) -> None:
    missing, latin = tmp_path / "none.pg", tmp_path / "latin.pg"
    latin.write_bytes(b"// \xe5\n")
    said = run(*command, missing)
    assert said.exit_code == 1
    assert "schema text" not in said.stderr
    said = run(*command, latin)
    assert (said.exit_code, "it is not UTF-8 text" in said.stderr) == (2, True)
    assert run(*command, tmp_path).exit_code == 2


def test_from_stdin(tmp_path: Path) -> None:
    assert ok("schema", "check", "-", stdin=SCHEMA).stdout.startswith("Valid: <stdin> declares 2 ")
    ok("init", tmp_path / "g", "--schema", "-", stdin=SCHEMA)
    assert ok("schema", "show", tmp_path / "g").stdout == SCHEMA
    ok("init", tmp_path / "one", "--schema", "-", stdin="node A { a: String @key }")
    said = run("init", tmp_path / "h", "--schema", "-", stdin=BAD)
    assert "<stdin>:2:8: " in said.stderr


@pytest.mark.parametrize("text", ["", "// nothing yet", "node"])
def test_short_texts_are_no_paths(tmp_path: Path, text: str) -> None:
    file = tmp_path / "short.pg"
    file.write_text(text)
    checked = run("schema", "check", file)
    made = run("init", tmp_path / "g", "--schema", file)
    assert (checked.exit_code, checked.stderr) == (made.exit_code, made.stderr)


def test_checking_loads_no_engine(schema_file: Path) -> None:
    code = (
        "import sys\n"
        "from omnigraph.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'lance','obstore'} & set(sys.modules)))"
    )
    done = process("schema", "check", schema_file, code=code)
    assert done.stdout.decode().splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "words",
    [["--json", "commit", "list"], ["commit", "--json", "list"], ["commit", "list", "--json"]],
)
def test_json_may_stand_anywhere(graph: Path, words: list[str]) -> None:
    assert len(json.loads(ok(*words, graph).stdout)["commits"]) == 2
    failed = run(*words, graph, "--branch", "nope")
    assert json.loads(failed.stdout)["code"] == "branch_not_found"


def test_json_as_a_value_is_no_option(graph: Path) -> None:
    said = ok("load", graph, "--data", "-", "--mode", "append", "--message", "--json", stdin="")
    assert said.stdout.startswith("Nothing to load")


def test_quiet_may_stand_anywhere(schema_file: Path) -> None:
    assert ok("-q", "schema", "check", schema_file).stdout == ""
    assert ok("schema", "-q", "check", schema_file).stdout == ""


def test_a_commit_by_the_beginning_of_its_id(graph: Path) -> None:
    head = answer("snapshot", graph)["graph_commit_id"]
    assert answer("commit", "show", head[:-1].lower(), graph)["graph_commit_id"] == head
    assert "beginning of an id" in ok("commit", "show", "--help").stdout
