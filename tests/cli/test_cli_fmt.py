"""`omnigraph fmt`: one layout, never a damaged file."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from cli_support import SCHEMA, answer, ok, process, run

QUERY = "// keep me\nquery  a( ) {match{$v:Vessel}return{$v.name}}"
BAD = "query a() { match {"


@pytest.fixture
def query_file(tmp_path: Path) -> Path:
    file = tmp_path / "a.gq"
    file.write_text(QUERY)
    return file


def test_files_are_formatted_in_place_once(query_file: Path, schema_file: Path) -> None:
    said = ok("fmt", query_file, schema_file)
    assert said.stdout == f"Formatted {query_file}\nFormatted {schema_file}\n"
    text = query_file.read_text()
    assert text.startswith("// keep me\nquery a() {")
    again = ok("fmt", query_file, schema_file)
    assert (again.stdout, again.stderr) == ("", "")
    assert query_file.read_text() == text
    ok("schema", "check", schema_file)


def test_what_is_in_order_is_not_written(query_file: Path) -> None:
    ok("fmt", query_file)
    before = query_file.stat()
    ok("fmt", query_file)
    after = query_file.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_check_lists_and_writes_nothing(query_file: Path, schema_file: Path) -> None:
    ok("fmt", schema_file)
    said = run("fmt", "--check", query_file, schema_file)
    assert (said.exit_code, said.stdout, said.stderr) == (1, f"{query_file}\n", "")
    assert query_file.read_text() == QUERY
    ok("fmt", query_file)
    assert ok("fmt", "--check", query_file, schema_file).stdout == ""


def test_diff_shows_and_writes_nothing(query_file: Path) -> None:
    said = ok("fmt", "--diff", query_file).stdout
    assert said.startswith(f"--- {query_file}\n+++ {query_file}\n@@ ")
    assert "\n+query a() {" in said
    assert "\\ No newline at end of file" in said
    assert query_file.read_text() == QUERY
    assert run("fmt", "--diff", "--check", query_file).exit_code == 1


def test_a_file_with_errors_is_left_alone(query_file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gq"
    bad.write_text(BAD)
    said = run("fmt", bad, query_file)
    assert said.exit_code == 1
    assert "Q015" in said.stderr and str(bad) in said.stderr
    assert bad.read_text() == BAD
    assert query_file.read_text() != QUERY
    told = json.loads(run("fmt", bad, query_file, "--json").stdout)
    assert [f["changed"] for f in told["files"]] == [False, False]
    assert told["files"][0]["diagnostics"]


def test_a_missing_file_changes_no_other(query_file: Path) -> None:
    said = run("fmt", query_file, query_file.with_name("none.gq"))
    assert (said.exit_code, "no query file" in said.stderr) == (1, True)
    assert query_file.read_text() == QUERY


def test_mode_and_links_are_kept(query_file: Path, tmp_path: Path) -> None:
    query_file.chmod(0o640)
    link = tmp_path / "link.gq"
    link.symlink_to(query_file)
    ok("fmt", link)
    assert link.is_symlink()
    assert query_file.read_text() != QUERY
    assert stat.S_IMODE(query_file.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a.gq", "link.gq"]


@pytest.mark.parametrize(("language", "text"), [("gq", QUERY), ("pg", SCHEMA)])
def test_stdin_is_answered_on_stdout(language: str, text: str) -> None:
    once = ok("fmt", "-", "--language", language, stdin=text).stdout
    assert once != text
    assert ok("fmt", "-", "--language", language, stdin=once).stdout == once
    assert run("fmt", "-", "--language", language, "--check", stdin=text).stdout == "<stdin>\n"
    assert run("fmt", "-", "--language", language, stdin="{").exit_code == 1


def test_json(query_file: Path) -> None:
    told = answer("fmt", "--diff", query_file)["files"][0]
    assert (told["name"], told["changed"]) == (str(query_file), True)
    assert told["diff"].startswith("--- ")
    assert answer("fmt", query_file) == {"files": [{"name": str(query_file), "changed": True}]}


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ([], 2, "FILE"),
        (["x.txt"], 2, "neither a .pg nor a .gq file"),
        (["-"], 2, "--language"),
        (["-", "-", "--language", "gq"], 2, "stdin is named twice"),
        (["a.gq", "--language", "sql"], 2, "sql"),
    ],
)
def test_wrong_command_lines(args: list[str], code: int, words: str) -> None:
    said = run("fmt", *args, stdin="")
    assert (said.exit_code, words in said.stderr) == (code, True)


def test_a_binary_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "x.gq"
    file.write_bytes(b"\xff\x00")
    said = run("fmt", file)
    assert (said.exit_code, "it is not UTF-8 text" in said.stderr) == (2, True)
    assert file.read_bytes() == b"\xff\x00"


def test_a_folder_that_cannot_be_written(query_file: Path) -> None:
    code = (
        "import pathlib\n"
        "def full(self, target): raise OSError(28, 'No space left on device')\n"
        "pathlib.Path.replace = full\n"
        "from omnigraph.cli.main import main; main()\n"
    )
    done = process("fmt", query_file, code=code)
    assert done.returncode == 1
    assert b"No space left" in done.stderr
    assert query_file.read_text() == QUERY
    assert [p.name for p in query_file.parent.iterdir()] == ["a.gq"]


def test_no_engine_is_loaded(query_file: Path) -> None:
    code = (
        "import sys\n"
        "from omnigraph.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'lance','obstore'} & set(sys.modules)))"
    )
    done = process("fmt", "--check", query_file, code=code)
    assert done.stdout.decode().splitlines()[-1] == "[]"
