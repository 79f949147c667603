"""The command line itself: which graph is meant, who acts, and what a wrong option says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import answer, commit_count, ok, run

PORT = '{"type":"Port","data":{"code":"X","name":"p","berths":1}}'


def test_the_graph_comes_from_argument_option_or_environment(graph: Path) -> None:
    head = answer("snapshot", graph)["graph_commit_id"]
    assert answer("snapshot", "--store", graph)["graph_commit_id"] == head
    assert answer("snapshot", env={"OMNIGRAPH_STORE": str(graph)})["graph_commit_id"] == head
    assert answer("commit", "show", head, env={"OMNIGRAPH_STORE": str(graph)})["kind"] == "load"


def test_argument_and_option_win_over_the_environment(graph: Path) -> None:
    elsewhere = {"OMNIGRAPH_STORE": str(graph) + "-elsewhere"}
    ok("snapshot", graph, env=elsewhere)
    ok("snapshot", "--store", graph, env=elsewhere)


def test_init_takes_its_place_from_the_environment(tmp_path: Path, schema_file: Path) -> None:
    env = {"OMNIGRAPH_STORE": str(tmp_path / "g"), "OMNIGRAPH_ACTOR": "carol"}
    assert answer("init", "--schema", schema_file, env=env)["actor_id"] == "carol"
    assert (tmp_path / "g").is_dir()


def test_two_different_graphs_are_refused(graph: Path) -> None:
    said = run("snapshot", graph, "--store", "./other")
    assert said.exit_code == 2
    assert "two graphs are named" in said.stderr
    ok("snapshot", graph, "--store", f"{graph}/")


def test_no_graph_named() -> None:
    said = run("snapshot", "--json")
    assert said.exit_code == 2
    envelope = json.loads(said.stdout)
    assert envelope["code"] == "usage"
    assert "OMNIGRAPH_STORE" in envelope["hint"]


def test_the_actor_comes_from_option_then_environment(empty_graph: Path) -> None:
    def load(*args: str, code: str, env: dict[str, str]) -> str | None:
        line = PORT.replace("X", code)
        result = answer(
            "load", empty_graph, "--data", "-", "--mode", "append", *args, stdin=line, env=env
        )
        return result["commit"]["actor_id"]

    env = {"OMNIGRAPH_ACTOR": "env"}
    assert load(code="a", env={}) is None
    assert load(code="b", env=env) == "env"
    assert load("--as", "me", code="c", env=env) == "me"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["load", "G", "--data", "-"], "--mode"),
        (["load", "G", "--mode", "append"], "--data"),
        (["load", "G", "--data", "-", "--mode", "replace"], "append"),
        (["load", "G", "--data", "-", "--data", "-", "--mode", "append"], "stdin is named twice"),
        (["load", "G", "--data", "-", "--mode", "append", "--as", " "], "must not be empty"),
        (["load", "G", "--data", "-", "--mode", "append", "--durability", "x"], "fsync"),
        (["load", "G", "--data", "-", "--mode", "append", "--message", "\udcff"], "UTF-8"),
        (["init", "G"], "--schema"),
        (["commit", "list", "G", "--limit", "0"], "limit"),
        (["commit", "list", "G", "--limit", "x"], "limit"),
        (["commit", "list", "G", "--filter", "kind=load"], "actor=NAME"),
        (["commit", "list", "G", "--filter", "actor="], "actor=NAME"),
        (["commit", "show"], "ID"),
        (["commit", "show", "", "G"], "the commit id is empty"),
        (["commit", "show", " ", "G"], "the commit id is empty"),
        (["commit", "./g"], "did you mean: omnigraph commit list ./g\n"),
        (["schema", "./my g"], "did you mean: omnigraph schema show './my g'\n"),
        (["schema", "shwo"], "did you mean: omnigraph schema show\n"),
        (["schema", "check"], "FILE"),
        (["snapshot", "G", "extra"], "extra"),
        (["snapshot", "G", "--wat"], "--wat"),
        (["snapshot", "http://example.org/x"], "server address"),
        (["snapshot", "gopher://x"], "gopher"),
        (["snapshot", ""], "no graph named"),
        (["nope"], "nope"),
        (["--wat"], "--wat"),
    ],
)
def test_wrong_command_lines_exit_2(graph: Path, args: list[str], words: str) -> None:
    args = [str(graph) if a == "G" else a for a in args]
    said = run(*args, stdin=PORT)
    assert said.exit_code == 2
    assert said.stdout == ""
    assert said.stderr.startswith("error: ")
    assert words in said.stderr
    told = run(*args, "--json", stdin=PORT)
    assert (told.exit_code, json.loads(told.stdout)["code"]) == (2, "usage")
    assert commit_count(graph) == 2


def test_without_a_command_the_help_is_shown() -> None:
    said = run()
    assert said.exit_code == 2
    assert "Start:" in said.stderr
    assert run("commit").exit_code == 2


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help(flag: str) -> None:
    assert "Examples:" in ok(flag).stdout
    assert "--mode" in ok("load", flag).stdout
    assert "--limit" in ok("commit", "list", flag).stdout


def test_remote_overwrite_needs_a_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*args: object, **kwargs: object) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr("omnigraph.api.opening.open", reached)
    args = ("load", "s3://bucket/g", "--data", "file.jsonl", "--mode")
    said = run(*args, "overwrite")
    assert said.exit_code == 2
    assert "needs --yes" in said.stderr
    assert "opened" in run(*args, "overwrite", "--yes").stderr
    assert "opened" in run(*args, "append").stderr


@pytest.mark.parametrize(("typed", "code"), [("n\n", 1), ("y\n", 0), ("", 130)])
def test_remote_overwrite_asks_on_a_terminal(
    graph: Path, data_file: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    import omnigraph.api.opening

    local = omnigraph.api.opening.open
    monkeypatch.setattr("omnigraph.cli.settings.is_terminal", lambda stream: True)
    monkeypatch.setattr(
        "omnigraph.api.opening.open", lambda uri, **options: local(graph, **options)
    )
    said = run("load", "s3://bucket/g", "--data", data_file, "--mode", "overwrite", stdin=typed)
    assert said.exit_code == code
    assert "s3://bucket/g" in said.stderr
    assert commit_count(graph) == (3 if code == 0 else 2)


def test_local_overwrite_does_not_ask(graph: Path, data_file: Path) -> None:
    ok("load", graph, "--data", data_file, "--mode", "overwrite")
    ok("load", f"file://{graph}", "--data", data_file, "--mode", "overwrite")
