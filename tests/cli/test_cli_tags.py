"""`omnigraph tag`: names for commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import answer, ok, run

PORT = '{"type":"Port","data":{"code":"%s","name":"p","berths":1}}'


def head(graph: Path, *args: str) -> str:
    return answer("snapshot", graph, *args)["graph_commit_id"]


def load(graph: Path, code: str, *args: str) -> None:
    ok("load", graph, "--data", "-", "--mode", "append", *args, stdin=PORT % code)


def test_a_tag_is_made_listed_shown_and_deleted(graph: Path) -> None:
    commit = head(graph)
    assert ok("tag", "list", graph).stdout == "No tags.\n"
    said = ok("tag", "create", "v1", graph, "--message", "As shown\nin May", "--as", "ann").stdout
    assert said == f"Created tag v1 at commit {commit}\n"
    load(graph, "X")
    assert head(graph, "--at", "v1") == commit
    (line,) = ok("tag", "list", graph).stdout.splitlines()
    assert line.startswith(f"v1  {commit}  ")
    assert line.endswith("Z  ann  As shown …")
    shown = ok("tag", "show", "v1", graph).stdout
    assert shown.startswith(f"tag v1\ncommit:  {commit}\ncreated: ")
    assert shown.endswith("\nactor:   ann\n\n    As shown\n    in May\n")
    said = ok("tag", "delete", "v1", graph).stdout
    assert said == f"Deleted tag v1; it named commit {commit}\n"
    assert answer("tag", "list", graph) == {"tags": []}


def test_tags_as_json(graph: Path) -> None:
    commit = head(graph)
    made = answer("tag", "create", "v/1", graph, "--message", "m", "--as", "ann")
    assert made.pop("outcome") == "created"
    assert made == {
        "name": "v/1",
        "graph_commit_id": commit,
        "created_at": made["created_at"],
        "actor_id": "ann",
        "message": "m",
    }
    assert answer("tag", "show", "v/1", graph) == made
    assert answer("tag", "list", graph) == {"tags": [made]}
    assert answer("tag", "delete", "v/1", graph) == {"outcome": "deleted"} | made


def test_the_target_stands_in_front_of_the_graph(graph: Path) -> None:
    ok("branch", "create", "june", graph)
    load(graph, "X", "--branch", "june")
    store = {"OMNIGRAPH_STORE": str(graph)}
    june, main = head(graph, "--branch", "june"), head(graph)

    def tagged(*args: object, **kwargs: object) -> str:
        name = f"t{len(answer('tag', 'list', graph)['tags'])}"
        return answer("tag", "create", name, *args, **kwargs)["graph_commit_id"]

    assert tagged("june", graph) == june
    assert tagged("june", "--store", graph) == june
    assert tagged("june", env=store) == june
    assert tagged("june@1", graph) == main
    assert tagged(june[:20].lower(), graph) == june
    assert tagged("t0", graph) == june
    assert tagged(graph) == tagged("--store", graph) == tagged(env=store) == main
    assert tagged(graph, env={"OMNIGRAPH_STORE": "./elsewhere"}) == main
    assert run("tag", "create", "t", "june", graph, "--store", "./other").exit_code == 2


@pytest.mark.parametrize(
    ("args", "exit_code", "code", "words"),
    [
        (["create", "v1", "main"], 1, "tag_exists", "there is a tag 'v1'"),
        (["create", " ", "main"], 2, "usage", "not a tag name"),
        (["create", "a\tb", "main"], 2, "usage", "not a tag name"),
        (["create", "v2", "nope"], 1, "branch_not_found", "'nope'"),
        (["create", "v2", ""], 2, "usage", "not a branch, tag or commit"),
        (["create", "v2", "main@7"], 1, "commit_not_found", "1 to 2"),
        (["show", "nope"], 1, "tag_not_found", "no tag 'nope'"),
        (["show", " "], 2, "usage", "not a tag name"),
        (["delete", "nope"], 1, "tag_not_found", "no tag 'nope'"),
    ],
)
def test_refusals_are_typed_and_change_nothing(
    graph: Path, args: list[str], exit_code: int, code: str, words: str
) -> None:
    ok("tag", "create", "v1", graph)
    before = answer("tag", "list", graph)
    said = run("tag", *args, graph)
    assert (said.exit_code, said.stdout) == (exit_code, "")
    assert words in said.stderr
    told = run("tag", *args, graph, "--json")
    assert (told.exit_code, json.loads(told.stdout)["code"]) == (exit_code, code)
    assert answer("tag", "list", graph) == before


def test_a_tag_keeps_what_its_branch_left_behind_or_lost(graph: Path) -> None:
    ok("branch", "create", "june", graph)
    load(graph, "X", "--branch", "june")
    commit = head(graph, "--branch", "june")
    ok("tag", "create", "kept", "june", graph)
    ok("branch", "delete", "june", graph)
    assert head(graph, "--at", "kept") == head(graph, "--at", commit) == commit
    assert answer("commit", "show", commit[:24], graph)["graph_branch"] == "june"
    ok("tag", "create", "again", "kept", graph)
    assert "X" in ok("export", graph, "--at", "again", "--type", "Port").stdout
