"""Wrong input: each mistake is named at its place, exits non-zero and publishes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import answer, commit_count, ok, run

PORT = '{"type":"Port","data":{"code":"%s","name":"p","berths":1}}'
VESSEL = '{"type":"Vessel","data":{"imo":%s,"name":"v"%s}}'
CALL = '{"edge":"CallsAt","from":"100","to":"AAR","data":{"on":"2026-01-03"}}'

# What is wrong, the lines of the file, the line that is to be named, a part of the message, the code.
BAD_INPUT = [
    ("malformed JSON", [PORT % "X", '{"type":"Port",'], 2, "JSON", "input"),
    ("not an object", ["[1]"], 1, "object", "input"),
    ("unknown node type", ['{"type":"Prot","data":{}}'], 1, "did you mean 'Port'", "input"),
    ("unknown edge type", ['{"edge":"Nope","from":"1","to":"2"}'], 1, "Nope", "input"),
    ("unknown property", [PORT % "X", VESSEL % (5, ',"flga":"dk"')], 2, "flga", "input"),
    ("wrong type of value", [VESSEL % ('"x"', "")], 1, "imo", "input"),
    ("out of the type's range", ['{"type":"Port","data":{"code":"X","name":"p","berths":-1}}'], 1, "berths", "input"),
    ("missing required", ['{"type":"Port","data":{"code":"X","name":"p"}}'], 1, "berths", None),
    ("missing key", ['{"type":"Vessel","data":{"name":"v"}}'], 1, "imo", None),
    ("an id that exists, in append", [PORT % "AAR"], 1, "AAR", "key_conflict"),
    ("the same id twice, in append", [PORT % "X", PORT % "X"], 2, "X", None),
    ("dangling endpoint", ['{"edge":"CallsAt","from":"100","to":"ZZZ","data":{"on":"2026-01-01"}}'], 1, "ZZZ", "constraint"),
    ("unique value that exists", [VESSEL % (5, ',"call_sign":"OABC"')], 1, "OABC", "constraint"),
    ("unique value twice", [VESSEL % (5, ',"call_sign":"AAAA"'), VESSEL % (6, ',"call_sign":"AAAA"')], 2, "call_sign", "constraint"),
    ("range", [VESSEL % (10000000, "")], 1, "@range violation on Vessel.imo", "constraint"),
    ("check", [VESSEL % (5, ',"call_sign":"abc"')], 1, "call_sign", "constraint"),
    ("enum", [VESSEL % (5, ',"flag":"xx"')], 1, "flag", "constraint"),
    ("cardinality", [CALL, CALL], None, "card", "constraint"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "line", "words", "code"), [c[1:] for c in BAD_INPUT], ids=[c[0] for c in BAD_INPUT]
)
def test_bad_input_is_named_and_publishes_nothing(
    graph: Path, tmp_path: Path, lines: list[str], line: int | None, words: str, code: str | None
) -> None:
    before = ok("export", graph).stdout, commit_count(graph)
    file = tmp_path / "bad.jsonl"
    file.write_text("\n".join(lines) + "\n")
    args = ("load", graph, "--data", file, "--mode", "append")

    said = run(*args)
    assert said.exit_code == 1
    assert said.stdout == ""
    assert said.stderr.startswith("error: ")
    assert words.lower() in said.stderr.lower()
    assert (f"{file}:{line}" if line else str(file)) in said.stderr
    assert "Traceback" not in said.stderr
    assert said.stderr.splitlines()[0].endswith("; nothing was published")

    told = run(*args, "--json")
    envelope = json.loads(told.stdout)
    assert told.exit_code == 1
    assert envelope["code"] == code or (
        code is None and envelope["code"] in ("input", "constraint")
    )
    (found,) = envelope.get("problems") or envelope["violations"]
    assert found["source"] == str(file)
    assert found.get("line") == line or line is None
    assert told.stderr.count("\n") == 1
    assert told.stderr.endswith("; nothing was published\n")

    assert (ok("export", graph).stdout, commit_count(graph)) == before


def test_every_problem_is_told_at_once(graph: Path) -> None:
    text = "\n".join([VESSEL % (5, ',"flag":"xx"'), VESSEL % (10000000, ""), VESSEL % (6, "")])
    said = run("load", graph, "--data", "-", "--mode", "append", stdin=text)
    first, *rest = said.stderr.splitlines()
    assert first == "error: 2 violations of the schema in the data; nothing was published"
    assert [line.split(":")[1] for line in rest] == ["1", "2"]
    told = run("load", graph, "--data", "-", "--mode", "append", "--json", stdin=text)
    assert told.stderr.endswith("(and 1 more); nothing was published\n")


def test_missing_file(graph: Path, tmp_path: Path) -> None:
    file = tmp_path / "none.jsonl"
    said = run("load", graph, "--data", file, "--mode", "append", "--json")
    assert (said.exit_code, json.loads(said.stdout)["code"]) == (1, "file_not_found")
    assert str(file) in said.stderr


def test_a_directory_is_not_data(graph: Path, tmp_path: Path) -> None:
    said = run("load", graph, "--data", tmp_path, "--mode", "append")
    assert said.exit_code == 1
    assert "directory" in said.stderr


@pytest.mark.parametrize(
    "command", [["snapshot"], ["export"], ["commit", "list"], ["schema", "show"]]
)
@pytest.mark.parametrize("place", ["missing", "folder", "file"])
def test_not_a_graph(tmp_path: Path, command: list[str], place: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    said = run(*command, tmp_path / place)
    assert said.exit_code == 1
    assert said.stderr.startswith("error: ")
    assert "internal error" not in said.stderr
    assert str(tmp_path / place) in said.stderr


def test_reading_what_is_not_a_graph_leaves_no_trace(tmp_path: Path) -> None:
    run("snapshot", tmp_path / "g")
    run("load", tmp_path / "g", "--data", "-", "--mode", "append", stdin="")
    assert list(tmp_path.iterdir()) == []


def test_init_refuses_a_graph_that_is_there(graph: Path, schema_file: Path) -> None:
    before = ok("export", graph).stdout
    said = run("init", graph, "--schema", schema_file, "--json")
    assert (said.exit_code, json.loads(said.stdout)["code"]) == (1, "already_initialized")
    assert ok("export", graph).stdout == before


def test_init_shows_every_finding_in_the_schema_with_a_caret(tmp_path: Path) -> None:
    file = tmp_path / "bad.pg"
    file.write_text("node Vessel {\n  imo: I46 @key\n}\nedge At: Vessel -> Prot\n")
    said = run("init", tmp_path / "g", "--schema", file)
    assert said.exit_code == 1
    lines = said.stderr.splitlines()
    assert lines[0] == f"error: 2 problems in {file}"
    assert any(line.startswith(f"{file}:2:8: ") for line in lines)
    assert "      |        ^^^" in lines
    assert any(line.startswith(f"{file}:4:") for line in lines)
    assert not (tmp_path / "g").exists()

    told = json.loads(run("init", tmp_path / "g", "--schema", file, "--json").stdout)
    assert told["code"] == "schema"
    assert [d["line"] for d in told["diagnostics"]] == [2, 4]


def test_init_without_the_schema_file(tmp_path: Path) -> None:
    said = run("init", tmp_path / "g", "--schema", tmp_path / "none.pg")
    assert said.exit_code == 1
    assert "none.pg" in said.stderr
    assert "hint: give the path of a .pg file\n" in said.stderr
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize(
    "command",
    [
        ["snapshot"],
        ["export"],
        ["commit", "list"],
        ["load", "--data", "-", "--mode", "append"],
    ],
)
def test_unknown_branch(graph: Path, command: list[str]) -> None:
    said = run(*command, graph, "--branch", "nope")
    assert said.exit_code == 1
    assert "no branch 'nope'" in said.stderr


def test_unknown_commit_and_type(graph: Path) -> None:
    said = run("commit", "show", "01J", graph, "--json")
    assert (said.exit_code, json.loads(said.stdout)["code"]) == (1, "commit_not_found")
    said = run("export", graph, "--type", "Nope")
    assert said.exit_code == 1
    assert "Vessel, Port, CallsAt, Feeds" in said.stderr


def test_control_characters_in_data_do_not_reach_the_terminal(graph: Path) -> None:
    text = '{"type":"Port","data":{"code":"AAR","name":"p","berths":1,"\\u001b[2J":1}}'
    said = run("load", graph, "--data", "-", "--mode", "append", stdin=text)
    assert said.exit_code == 1
    assert "\x1b" not in said.stderr


def test_a_file_that_appears_to_be_read_but_is_not_utf8(graph: Path, tmp_path: Path) -> None:
    file = tmp_path / "latin.jsonl"
    file.write_bytes(b'{"type":"Port","data":{"code":"\xe5","name":"p","berths":1}}\n')
    said = run("load", graph, "--data", file, "--mode", "append")
    assert said.exit_code == 1
    assert f"{file}:1" in said.stderr
    assert answer("snapshot", graph)["datasets"][1]["entity_count"] == 1
