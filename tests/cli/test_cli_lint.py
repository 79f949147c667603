"""`omnigraph lint`: files of queries against a schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import answer, ok, process, run

GOOD = """\
query busy($min: I64) @description("Busy ports") {
  match { $v: Vessel $v callsAt $p }
  return { $p.code, count($v) as n, $p }
}
"""
DOUBTFUL = "query reset() { delete Vessel where imo = 1 }\n"
BAD = "query one() { match { $v: Vesel } return { $v } }\nquery two() { match { $p: Port } return { $p.nam } }\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    made: dict[str, Path] = {}
    for name, text in (("good", GOOD), ("doubtful", DOUBTFUL), ("bad", BAD)):
        made[name] = tmp_path / f"{name}.gq"
        made[name].write_text(text)
    return made


def test_against_a_schema_file_or_a_graph(
    graph: Path, schema_file: Path, files: dict[str, Path]
) -> None:
    said = ok("lint", "--schema", schema_file, "--query", files["bad"].with_name("good.gq"))
    assert said.stdout.splitlines()[-1] == f"{files['good']}: 1 valid query, 1 warning"
    assert "warning: " in said.stdout and "L203" in said.stdout
    assert ok("lint", graph, "--query", files["good"]).stdout == said.stdout
    env = {"OMNIGRAPH_STORE": str(graph)}
    assert ok("lint", "--query", files["good"], env=env).stdout == said.stdout
    ok("lint", "--schema", schema_file, "--query", files["good"], env=env)


def test_errors_make_the_exit_code_1(schema_file: Path, files: dict[str, Path]) -> None:
    said = run(
        "lint", "--schema", schema_file, "--query", files["bad"], "--query", files["doubtful"]
    )
    assert (said.exit_code, said.stderr) == (1, "")
    lines = said.stdout.splitlines()
    assert lines[0].startswith(f"error: {files['bad']}:1:27: Q101: ")
    assert "^^^^^" in lines[2]
    assert f"{files['bad']}: 0 valid queries, 2 errors" in lines
    assert lines[-1] == f"{files['doubtful']}: 1 valid query, 1 warning"
    quiet = run("lint", "--schema", schema_file, "--query", files["bad"], "-q").stdout
    assert quiet.count("error: ") == 2 and "valid" not in quiet


def test_warnings_do_not(schema_file: Path, files: dict[str, Path]) -> None:
    assert "L202" in ok("lint", "--schema", schema_file, "--query", files["doubtful"]).stdout


def test_describe(schema_file: Path, files: dict[str, Path]) -> None:
    said = ok("lint", "--schema", schema_file, "--query", files["good"], "--describe").stdout
    assert "busy  read\n" in said
    for line in (
        "about:        Busy ports",
        "takes:        min: bigint",
        "gives:        p.code: string, n: bigint, p: object",
        "reads:        edge CallsAt, node Port, node Vessel",
    ):
        assert line in said
    assert "writes:" not in said


def test_json(schema_file: Path, files: dict[str, Path]) -> None:
    args = ("lint", "--schema", schema_file, "--query", files["good"], "--query")
    told = answer(*args, files["doubtful"])
    assert told["status"] == "warning"
    assert [f["status"] for f in told["files"]] == ["warning", "warning"]
    busy = told["files"][0]["queries"][0]
    assert busy["result"][2] == {"name": "p", "kind": "object", "nullable": False}
    assert {"kind": "edge", "type_name": "CallsAt"} in busy["reads"]
    assert {"kind": "edge", "type_name": "CallsAt"} in told["files"][1]["queries"][0]["writes"]
    done = run(*args, files["bad"], "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["status"] == "error"
    assert [x["code"] for x in found["files"][1]["findings"]] == ["Q101", "Q103"]


def test_from_stdin(schema_file: Path) -> None:
    said = run("lint", "--schema", schema_file, "--query", "-", stdin="match {")
    assert said.exit_code == 1
    assert said.stdout.startswith("error: <stdin>:1:")


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["--query", "Q"], 2, "no schema is named"),
        (["--schema", "S"], 2, "--query"),
        (["G", "--schema", "S", "--query", "Q"], 2, "both given"),
        (["--store", "G", "--schema", "S", "--query", "Q"], 2, "both given"),
        (["--schema", "-", "--query", "-"], 2, "stdin is named twice"),
        (["--schema", "S", "--query", "nowhere.gq"], 1, "no query file"),
        (["--schema", "nowhere.pg", "--query", "Q"], 1, "no schema file"),
        (["--schema", "Q", "--query", "Q"], 1, "S013"),
        (["nowhere", "--query", "Q"], 1, "no graph at"),
    ],
)
def test_refusals(
    graph: Path,
    schema_file: Path,
    files: dict[str, Path],
    args: list[str],
    code: int,
    words: str,
) -> None:
    names = {"Q": files["good"], "S": schema_file, "G": graph}
    said = run("lint", *[names.get(a, a) for a in args])
    assert said.exit_code == code, said.stderr
    assert words in said.stderr


def test_with_a_schema_file_no_engine_is_loaded(schema_file: Path, files: dict[str, Path]) -> None:
    code = (
        "import sys\n"
        "from omnigraph.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'lance','obstore'} & set(sys.modules)))"
    )
    done = process("lint", "--schema", schema_file, "--query", files["good"], code=code)
    assert done.stdout.decode().splitlines()[-1] == "[]"
