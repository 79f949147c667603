"""One line stays one line, whatever data, names and messages hold; and long lists stay short."""

from __future__ import annotations

import json
from pathlib import Path

from cli_support import answer, ok, run

PORT = '{"type":"Port","data":{"code":"%s","name":"p","berths":1}}'
LOAD = ("--data", "-", "--mode", "append")


def test_actors_and_messages_in_the_history(graph: Path) -> None:
    ok("load", graph, *LOAD, "--as", "a\nb\tc\x1b", "--message", "\tone\ttab\rx\r\nmore",
       stdin=PORT % "X")  # fmt: skip
    head = answer("snapshot", graph)["graph_commit_id"]
    first, *rest = ok("commit", "list", graph).stdout.splitlines()
    assert first.startswith(head)
    assert r"  a\nb\tc\x1b  load  +1  one\ttab\rx …" in first
    assert len(rest) == 2
    assert r"actor:   a\nb\tc\x1b" in ok("commit", "show", head, graph).stdout.splitlines()
    assert r"by a\nb\tc\x1b" in ok("snapshot", graph).stdout.splitlines()[1]


def test_the_lines_of_a_message_are_shown_with_the_commit(graph: Path) -> None:
    ok("load", graph, *LOAD, "--message", "one\ntwo\x1b", stdin=PORT % "X")
    head = answer("snapshot", graph)["graph_commit_id"]
    assert "\n    one\n    two\\x1b\n" in ok("commit", "show", head, graph).stdout


def test_ids_in_findings(graph: Path) -> None:
    ok("load", graph, *LOAD, stdin=PORT % r"A\nB\tC")
    said = run("load", graph, *LOAD, stdin=PORT % r"A\nB\tC")
    first, second = said.stderr.splitlines()
    assert r"'A\nB\tC' exists already; nothing was published" in first
    assert second.startswith("  hint: ")
    told = run("load", graph, *LOAD, "--json", stdin=PORT % r"A\nB\tC")
    assert told.stderr.count("\n") == 1
    assert json.loads(told.stdout)["violations"][0]["entity_id"] == "A\nB\tC"

    two = "\n".join([PORT % r"A\nB\tC", PORT % "AAR"])
    lines = run("load", graph, *LOAD, stdin=two).stderr.splitlines()
    assert len(lines) == 4
    assert r"'A\nB\tC' exists" in lines[1]


def test_values_in_several_problems(graph: Path) -> None:
    line = '{"type":"Port","data":{"code":"X","name":"p","berths":"x\\ny","b\\nc":1}}'
    said = run("load", graph, *LOAD, stdin=f"{line}\n{line}")
    first, *rest = said.stderr.splitlines()
    assert first == "error: 4 problems in the data; nothing was published"
    assert len(rest) == 2
    assert all(text.startswith("  <stdin>:1: ") for text in rest)
    assert all(text.endswith(" (also in line 2)") for text in rest)


def test_names_of_files_and_graphs(graph: Path, tmp_path: Path) -> None:
    data, schema, place = tmp_path / "a\nb.jsonl", tmp_path / "a\nb.pg", tmp_path / "g\nh"
    data.write_text("{]\n")
    schema.write_text("node X { a: Strng }\n")
    said = run("load", graph, "--data", data, "--mode", "append").stderr.splitlines()
    assert r"a\nb.jsonl:1" in said[0]
    said = run("init", tmp_path / "g", "--schema", schema).stderr.splitlines()
    assert r"a\nb.pg:1:" in said[0]
    said = run("snapshot", place).stderr.splitlines()
    assert r"g\nh" in said[0]
    assert all(line.startswith("  hint: ") for line in said[1:])
    dump = tmp_path / "d\nump"
    assert ok("export", graph, "--output", dump).stderr.count("\n") == 1


def test_arguments_in_usage_errors(graph: Path) -> None:
    said = run("snapshot", graph, "ex\ntra").stderr.splitlines()
    assert r"ex\ntra" in said[0]
    said = run("load", graph, "--data", "-").stderr.splitlines()
    assert said[0].endswith("Choose from: append, merge, overwrite")


def test_a_load_names_five_types(tmp_path: Path) -> None:
    names = [f"T{n}" for n in range(40)]
    schema = tmp_path / "many.pg"
    schema.write_text("".join(f"node {name} {{ a: String @key }}\n" for name in names))
    ok("init", tmp_path / "g", "--schema", schema)
    lines = "\n".join(f'{{"type":"{name}","data":{{"a":"x"}}}}' for name in names)
    said = ok("load", tmp_path / "g", *LOAD, stdin=lines).stdout
    assert said.startswith("Loaded 40 entities (1 T0, 1 T1, 1 T2, 1 T3, 1 T4, and 35 more types) ")


def test_counts_of_violations_are_grouped(graph: Path) -> None:
    lines = "\n".join(PORT % "AAR" for _ in range(1_500))
    said = run("load", graph, *LOAD, stdin=lines).stderr.splitlines()
    assert said[0].startswith("error: 1,5")
    assert said[0].endswith(" violations of the schema in the data; nothing was published")
    assert any(line.startswith("  … and 1,4") and line.endswith(" more") for line in said)
    told = run("load", graph, *LOAD, "--json", stdin=lines).stderr
    assert "(and 1," in told
