"""`omnigraph branch` and `load --from`: what is made, what is said, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import answer, commit_count, ok, run

import omnigraph

BRANCH_KEYS = {
    "name", "graph_commit_id", "graph_manifest_version", "parent", "fork_commit_id", "incarnation",
    "created_at", "actor_id", "description",
}  # fmt: skip
PORT = '{"type":"Port","data":{"code":"%s","name":"p","berths":1}}'


def names(graph: Path) -> list[str]:
    return [b["name"] for b in answer("branch", "list", graph)["branches"]]


def load(graph: Path, code: str, *args: str) -> str:
    told = answer("load", graph, "--data", "-", "--mode", "append", *args, stdin=PORT % code)
    return told["commit"]["graph_commit_id"]


def ports(graph: Path, *args: str) -> list[str]:
    text = "match { $p: Port } return { $p.code } order { $p.code }"
    return [row["p.code"] for row in answer("query", graph, "-e", text, *args)["rows"]]


def test_a_branch_is_made_listed_shown_and_ended(graph: Path) -> None:
    head = answer("snapshot", graph)["graph_commit_id"]
    said = ok("branch", "create", "june", graph).stdout
    assert said == f"Created branch june from main at commit {head}\n"
    assert ok("branch", "list", graph).stdout == "main\njune\n"
    shown = ok("branch", "show", "june", graph).stdout
    assert shown.startswith(f"branch june\ncommit:  {head}")
    assert f"\nfork:    {head}\n" in shown
    load(graph, "X", "--branch", "june")
    assert (ports(graph, "--branch", "june"), ports(graph)) == (["AAR", "X"], ["AAR"])
    said = ok("branch", "delete", "june", graph).stdout
    assert said.startswith("Deleted branch june; its newest commit was ")
    assert names(graph) == ["main"]
    assert run("query", graph, "-e", "match { $p: Port } return { $p }", "--branch", "june").exit_code == 1  # fmt: skip


def test_a_branch_as_json(graph: Path) -> None:
    head = answer("snapshot", graph)["graph_commit_id"]
    made = answer(
        "branch", "create", "a/b", graph, "--description", "For\nJune", "--as", "ann"
    )  # fmt: skip
    assert made.pop("outcome") == "created"
    assert set(made) == BRANCH_KEYS
    assert (made["name"], made["parent"], made["actor_id"]) == ("a/b", "main", "ann")
    assert (made["fork_commit_id"], made["graph_commit_id"]) == (head, head)
    assert answer("branch", "show", "a/b", graph) == made
    assert answer("branch", "list", graph) == {"branches": [{"name": "main"}, {"name": "a/b"}]}
    main, other = answer("branch", "list", graph, "--verbose")["branches"]
    assert (main["name"], main["parent"], other) == ("main", None, made)
    ended = answer("branch", "delete", "a/b", graph)
    assert (ended["outcome"], ended["name"]) == ("deleted", "a/b")


def test_a_verbose_list_has_a_line_for_each_branch(graph: Path) -> None:
    ok("branch", "create", "ünï", graph, "--description", "first\nsecond \x1b[2J")
    main, other = ok("branch", "list", graph, "-v").stdout.splitlines()
    assert main.split()[0] == "main"
    assert main.endswith("alice  -")
    assert other.split()[0] == "ünï"
    assert other.endswith("alice  from main  first …")
    assert main[6:32] == other[6:32] == answer("snapshot", graph)["graph_commit_id"]


@pytest.mark.parametrize("source", ["main", "old", "v1", "main@2", "COMMIT", "main@2199-01-01"])
def test_a_branch_starts_from_any_state(graph: Path, source: str) -> None:
    head = answer("snapshot", graph)["graph_commit_id"]
    ok("branch", "create", "old", graph)
    ok("tag", "create", "v1", graph)
    start = head[:20].lower() if source == "COMMIT" else source
    made = answer("branch", "create", "new", graph, "--from", start)
    assert made["fork_commit_id"] == head
    assert ports(graph, "--branch", "new") == ["AAR"]


def test_a_branch_gets_another_name_and_a_description(graph: Path) -> None:
    ok("branch", "create", "june", graph)
    assert ok("branch", "rename", "june", "july", graph).stdout == "Renamed branch june to july\n"
    assert names(graph) == ["main", "july"]
    told = answer("branch", "rename", "july", "june", graph)
    assert (told["outcome"], told["name"], told["former_name"]) == ("renamed", "june", "july")
    said = ok("branch", "describe", "june", "What it is for", graph).stdout
    assert said == "Described branch june: What it is for\n"
    assert "\n    What it is for\n" in ok("branch", "show", "june", graph).stdout
    store = {"OMNIGRAPH_STORE": str(graph)}
    assert answer("branch", "describe", "june", "Else", env=store)["description"] == "Else"
    assert answer("branch", "describe", "june", "--clear", env=store)["description"] is None
    assert answer("branch", "describe", "june", "--clear", graph)["description"] is None


def test_quiet_commands_say_nothing(graph: Path) -> None:
    for args in (
        ("create", "a"), ("rename", "a", "b"), ("describe", "b", "text"), ("delete", "b"),
    ):  # fmt: skip
        assert ok("branch", *args, graph, "--quiet").output == ""
    assert ok("branch", "list", graph, "--quiet").stdout == "main\n"


@pytest.mark.parametrize(
    ("args", "exit_code", "code", "words"),
    [
        (["create", "main"], 1, "branch_exists", "there is a branch 'main'"),
        (["create", "june"], 1, "branch_exists", "there is a branch 'june'"),
        (["create", " "], 2, "usage", "not a branch name"),
        (["create", "a\nb"], 2, "usage", "not a branch name"),
        (["create", "x" * 201], 2, "usage", "not a branch name"),
        (["create", "\udcff"], 2, "usage", "UTF-8"),
        (["create", "new", "--from", "nope"], 1, "branch_not_found", "'nope'"),
        (["create", "new", "--from", "tag:nope"], 1, "tag_not_found", "no tag 'nope'"),
        (["create", "new", "--from", "commit:01J"], 1, "commit_not_found", "no commit 01J"),
        (["create", "new", "--from", "main@99"], 1, "commit_not_found", "version 99"),
        (["create", "new", "--from", "main@1999-01-01"], 1, "commit_not_found", "did not exist"),
        (["create", "new", "--from", "main@2026-13-01"], 1, "branch_not_found", "behind @"),
        (["create", "new", "--from", " "], 2, "usage", "must not be empty"),
        (["create", "new", "--as", " "], 2, "usage", "must not be empty"),
        (["show", "nope"], 1, "branch_not_found", "no branch 'nope'"),
        (["delete", "nope"], 1, "branch_not_found", "no branch 'nope'"),
        (["delete", "main"], 2, "usage", "main cannot be deleted"),
        (["delete", "june", "--if-commit", "01JZ"], 4, "precondition_failed", "not at 01JZ"),
        (["rename", "nope", "new"], 1, "branch_not_found", "no branch 'nope'"),
        (["rename", "june", "other"], 1, "branch_exists", "there is a branch 'other'"),
        (["rename", "june", "main"], 2, "usage", "main keeps its name"),
        (["rename", "june", "june"], 2, "usage", "called 'june' already"),
        (["describe", "nope", "text"], 1, "branch_not_found", "no branch 'nope'"),
        (["describe", "main", "text"], 2, "usage", "main has no description"),
        (["describe", "june", "text", "--clear"], 2, "usage", "both given"),
    ],
)
def test_refusals_are_typed_and_change_nothing(
    graph: Path, args: list[str], exit_code: int, code: str, words: str
) -> None:
    ok("branch", "create", "june", graph)
    ok("branch", "create", "other", graph)
    before = answer("branch", "list", graph, "--verbose")
    said = run("branch", *args, graph)
    assert (said.exit_code, said.stdout) == (exit_code, "")
    assert words in said.stderr
    told = run("branch", *args, graph, "--json")
    assert (told.exit_code, json.loads(told.stdout)["code"]) == (exit_code, code)
    assert answer("branch", "list", graph, "--verbose") == before


def test_a_name_of_an_ended_branch_is_free_and_a_new_branch(graph: Path) -> None:
    ok("branch", "create", "june", graph)
    load(graph, "X", "--branch", "june")
    ok("branch", "delete", "june", graph)
    assert run("branch", "show", "june", graph).exit_code == 1
    ok("branch", "create", "june", graph)
    assert ports(graph, "--branch", "june") == ["AAR"]


def test_describe_needs_a_text(graph: Path) -> None:
    said = run("branch", "describe", "june", env={"OMNIGRAPH_STORE": str(graph)})
    assert (said.exit_code, "no description is given" in said.stderr) == (2, True)


# ---------------------------------------------------------------- asking before the end


@pytest.mark.parametrize(("typed", "code"), [("n\n", 1), ("y\n", 0), ("", 130)])
def test_a_person_is_asked_before_a_branch_ends(
    graph: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    ok("branch", "create", "june", graph)
    load(graph, "X", "--branch", "june")
    monkeypatch.setattr("omnigraph.cli.settings.is_terminal", lambda stream: True)
    said = run("branch", "delete", "june", graph, stdin=typed)
    assert said.exit_code == code
    assert f"Delete branch june of {graph}, 1 commit not on main?" in said.stderr
    monkeypatch.undo()
    assert names(graph) == (["main"] if code == 0 else ["main", "june"])


def test_nobody_is_asked_with_yes(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ok("branch", "create", "june", graph)
    monkeypatch.setattr("omnigraph.cli.settings.is_terminal", lambda stream: True)
    ok("branch", "delete", "june", graph, "--yes")


def test_what_was_shown_is_what_ends(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody writes while the question is on the screen."""
    ok("branch", "create", "june", graph)

    def answered_late(*args: object, **kwargs: object) -> bool:
        load(graph, "X", "--branch", "june")
        return True

    monkeypatch.setattr("omnigraph.cli.settings.is_terminal", lambda stream: True)
    monkeypatch.setattr("click.confirm", answered_late)
    assert run("branch", "delete", "june", graph).exit_code == 4
    assert names(graph) == ["main", "june"]


def test_a_remote_branch_ends_only_with_a_yes(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ok("branch", "create", "june", graph)
    local = omnigraph.open
    monkeypatch.setattr(
        "omnigraph.api.opening.open", lambda uri, **options: local(graph, **options)
    )
    monkeypatch.setattr("omnigraph.api.graph.Graph.uri", "s3://bucket/g")
    said = run("branch", "delete", "june", "s3://bucket/g")
    assert (said.exit_code, "needs --yes" in said.stderr) == (2, True)
    ok("branch", "delete", "june", "s3://bucket/g", "--yes")


# ---------------------------------------------------------------- load --from


def test_load_makes_the_branch_that_it_loads_into(graph: Path) -> None:
    args = ("load", graph, "--data", "-", "--mode", "append", "--branch", "june", "--from")
    said = ok(*args, "main", stdin=PORT % "X").stdout.splitlines()
    assert said[0] == "Created branch june from main"
    assert said[1].startswith("Loaded 1 entity (1 Port)")
    assert "on june  +1" in said[2]
    told = answer(*args, "main@1", stdin=PORT % "Y")
    assert (told["branch"], told["base_branch"], told["branch_created"]) == ("june", None, False)
    assert (ports(graph, "--branch", "june"), ports(graph)) == (["AAR", "X", "Y"], ["AAR"])
    told = answer(*args[:-2], "may", "--from", "main@1", stdin=PORT % "Z")
    assert (told["branch"], told["base_branch"], told["branch_created"]) == ("may", "main", True)
    assert ports(graph, "--branch", "may") == ["Z"]


def test_a_refused_load_takes_its_branch_back(graph: Path, tmp_path: Path) -> None:
    load_june = ("load", graph, "--mode", "append", "--branch", "june", "--from", "main", "--data")
    assert run(*load_june, "-", stdin=PORT % "AAR").exit_code == 1
    assert run(*load_june, "-", stdin="{").exit_code == 1
    assert run(*load_june, tmp_path / "nowhere.jsonl").exit_code == 1
    assert names(graph) == ["main"]
    # A branch that was there before stays.
    ok("branch", "create", "june", graph)
    assert run(*load_june, "-", stdin="{").exit_code == 1
    assert names(graph) == ["main", "june"]


def test_a_dry_run_makes_no_branch(graph: Path) -> None:
    dry = ("load", graph, "--data", "-", "--mode", "append", "--branch", "june", "--dry-run")
    said = ok(*dry, "--from", "main", stdin=PORT % "X").stdout
    assert "nothing was published; it would be +1" in said
    assert run(*dry, "--from", "main", stdin=PORT % "AAR").exit_code == 1
    said = run(*dry, "--from", "main@1", stdin=PORT % "AAR")
    assert (said.exit_code, "no branch shows it" in said.stderr) == (2, True)
    assert names(graph) == ["main"]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--from", "main"], 2),
        (["--from", "main", "--branch", " main "], 2),
        (["--from", " ", "--branch", "june"], 2),
        (["--from", "nope", "--branch", "june"], 1),
        (["--from", "main", "--branch", "a\nb"], 2),
    ],
)
def test_a_wrong_from_changes_nothing(graph: Path, args: list[str], code: int) -> None:
    said = run("load", graph, "--data", "-", "--mode", "append", *args, stdin=PORT % "X")
    assert said.exit_code == code
    assert (names(graph), commit_count(graph)) == (["main"], 2)
