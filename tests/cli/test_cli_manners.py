"""Small manners: swapped arguments, folders with other things in them, help for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import answer, ok, run

import omnigraph
from omnigraph.storage.faults import translate


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("branch", "create", "GRAPH", "june"), "branch create june GRAPH"),
        (("branch", "show", "GRAPH", "june"), "branch show june GRAPH"),
        (("tag", "create", "GRAPH", "v1"), "tag create v1 GRAPH"),
        (("changes", "show", "GRAPH", "01JZ"), "changes show 01JZ GRAPH"),
    ],
)
def test_swapped_arguments_are_recognised(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], meant: str
) -> None:
    monkeypatch.chdir(tmp_path)
    said = run(*(graph.name if word == "GRAPH" else word for word in words))
    assert said.exit_code == 1
    assert f"hint: did you mean: omnigraph {meant.replace('GRAPH', graph.name)}\n" in said.stderr


def test_a_graph_that_is_simply_not_there_gets_no_such_hint(graph: Path, tmp_path: Path) -> None:
    said = run("branch", "create", "june", tmp_path / "nowhere")
    assert "no such folder" in said.stderr and "did you mean" not in said.stderr


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("main@12", "version 12 of 'main'"),
        ("june@2026-11-15", "a moment of 'june'"),
        ("01KA5Z8Q8QJ0V7Y9W3T2M1N0PX", "the id of a commit"),
        ("01ka5z8q8qj0v7y9w3t2m1n0px", "the id of a commit"),
        ("tag:v1", "a tag called 'v1'"),
        ("commit:01", "a commit called '01'"),
    ],
)
def test_new_names_mean_nothing_else(graph: Path, name: str, meaning: str) -> None:
    ok("branch", "create", "june", graph)
    for words in (("branch", "create", name), ("branch", "rename", "june", name)):
        said = run(*words, graph)
        assert (said.exit_code, f"'{name}': that means {meaning}" in said.stderr) == (2, True)
    said = run("tag", "create", name, graph)
    assert (said.exit_code, f"'{name}': that means {meaning}" in said.stderr) == (2, True)


@pytest.mark.parametrize("name", ["a@b", "me@example.com", "x:y", "01ka5z", "feature/x@y", "@"])
def test_other_names_stay_possible(graph: Path, name: str) -> None:
    ok("branch", "create", name, graph)
    assert {"name": name} in answer("branch", "list", graph)["branches"]


def test_init_into_a_folder_with_other_things_needs_a_yes(
    tmp_path: Path, schema_file: Path
) -> None:
    place = tmp_path / "home"
    (place / "photos").mkdir(parents=True)
    init = ("init", place, "--schema", schema_file)
    said = run(*init)
    assert (said.exit_code, said.stderr.splitlines()) == (
        2,
        [f"error: a graph in {place} needs --yes", "  hint: the folder is not empty"],
    )
    assert [p.name for p in place.iterdir()] == ["photos"]
    ok(*init, "--yes")
    assert "there is a graph at" in run(*init).stderr


def test_init_asks_a_person(
    tmp_path: Path, schema_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.cli.settings.Settings.can_ask", lambda _: True)
    place = tmp_path / "home"
    (place / "photos").mkdir(parents=True)
    init = ("init", place, "--schema", schema_file)
    assert run(*init, stdin="n\n").exit_code == 1
    assert [p.name for p in place.iterdir()] == ["photos"]
    assert run(*init, stdin="y\n").exit_code == 0


def test_init_goes_into_an_empty_folder_and_goes_on_after_one_that_was_cut_off(
    tmp_path: Path, schema_file: Path
) -> None:
    (tmp_path / "empty").mkdir()
    ok("init", tmp_path / "empty", "--schema", schema_file)
    (tmp_path / "cut" / "_schema").mkdir(parents=True)
    ok("init", tmp_path / "cut", "--schema", schema_file)


@pytest.mark.parametrize(
    "words",
    [("--help", "--json"), ("load", "--json", "--help"), ("--json", "branch", "-h"), ("--version", "--json")],
)  # fmt: skip
def test_help_and_version_are_one_document_with_json(words: tuple[str, ...]) -> None:
    said = ok(*words)
    assert json.loads(said.stdout)["text"]
    assert said.stderr == ""


@pytest.mark.parametrize("words", [("--json",), ("branch", "--json"), ("--json", "commit")])
def test_no_command_is_an_error_document_with_json(words: tuple[str, ...]) -> None:
    said = run(*words)
    assert (said.exit_code, json.loads(said.stdout)["code"]) == (2, "usage")


def test_equal_findings_share_a_line(empty_graph: Path, tmp_path: Path) -> None:
    data = tmp_path / "in.jsonl"
    line = '{"type":"Port","data":{"code":"A%d","name":"x","berths":"%s"}}\n'
    data.write_text("".join(line % (i, "many" if i != 3 else "few") for i in range(9)))
    said = run("load", empty_graph, "--data", data, "--mode", "append").stderr
    assert said.splitlines() == [
        "error: 9 problems in the data; nothing was published",
        f'  {data}:1: Port.berths: expected U32, got "many" (also in lines 2, 3, 5, 6, 7 and 2 more)',
        f'  {data}:4: Port.berths: expected U32, got "few"',
    ]
    told = run("load", empty_graph, "--data", data, "--mode", "append", "--json").stdout
    assert len(json.loads(told)["problems"]) == 9


def test_a_snapshot_names_what_plain_lance_opens(graph: Path) -> None:
    import lance

    ok("repair", graph, "--confirm")
    shown = {d["type_name"]: d for d in answer("snapshot", graph)["datasets"]}
    port = shown["Port"]
    assert set(port) == {
        "entity_kind", "type_name", "dataset_path", "published_dataset_version", "entity_count",
    }  # fmt: skip
    assert port["dataset_path"] == "tables/Port.lance"
    assert lance.dataset(str(graph / port["dataset_path"])).count_rows() == port["entity_count"]
    assert shown["Feeds"]["dataset_path"] is None
    ok("branch", "create", "side", graph)
    other = answer("snapshot", graph, "--branch", "side")["datasets"]
    assert {d["dataset_path"] for d in other} == {None}


@pytest.mark.parametrize("timeout_s", ["x", True, [1], -1, float("nan")])
def test_a_timeout_that_is_none_is_told(graph: Path, timeout_s: object) -> None:
    with (
        omnigraph.open(graph) as opened,
        pytest.raises(omnigraph.UsageError, match="the timeout is"),
    ):
        opened.query("match { $p: Port } return { $p.name }", timeout_s=timeout_s)  # pyright: ignore
    with (
        omnigraph.open(graph) as opened,
        pytest.raises(omnigraph.UsageError, match="the memory limit is 'x'"),
    ):
        opened.query("match { $p: Port } return { $p.name }", memory_bytes="x")  # pyright: ignore


@pytest.mark.parametrize(
    ("error", "first"),
    [
        (OSError("IO error: Permission denied (os error 13)"), "check who owns the folder"),
        (PermissionError(13, "Permission denied"), "check who owns the folder"),
        (OSError("Read-only file system (os error 30)"), "check who owns the folder"),
        (OSError("status 403 Forbidden, code: 403"), "check the credentials"),
        (OSError("AccessDenied"), "check the credentials"),
    ],
)
def test_permissions_of_a_folder_are_not_told_as_keys_of_a_cloud(
    error: OSError, first: str
) -> None:
    told = translate(error, "writing")
    assert told.kind == omnigraph.ErrorKind.STORAGE_DENIED
    assert told.hint is not None and told.hint.startswith(first)
    assert ("AWS" in told.hint) is (first == "check the credentials")
