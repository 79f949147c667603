"""Every command that reads does so in any state that can be named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import SCHEMA, answer, ok, run

import omnigraph
from omnigraph.testing.clock import ManualClock

NAMES = "match { $p: Port } return { $p.code } order { $p.code }"
START_US = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""


def port(code: str) -> dict[str, object]:
    return {"type": "Port", "data": {"code": code, "name": code, "berths": 1}}


@pytest.fixture
def past(tmp_path: Path) -> tuple[Path, list[str]]:
    """An hour between commits: a, b on main, then x on a branch from a, then c on main."""
    root, clock = tmp_path / "g", ManualClock(START_US)
    ids = []
    with omnigraph.init(root, SCHEMA, clock=clock) as graph:
        for code, branch in (("a", "main"), ("b", "main"), ("x", "side"), ("c", "main")):
            clock.advance(3600)
            if branch not in graph.branches:
                graph.branches.create(branch, "main@2")
            made = graph.load([port(code)], branch=branch, actor=code).commit
            assert made is not None
            ids.append(made.id)
        graph.tags.create("v1", "main@3")
    return root, ids


STATES = [
    (["--at", "main"], "abc"),
    (["--at", "branch:main"], "abc"),
    (["--at", "side"], "ax"),
    (["--at", "v1"], "ab"),
    (["--at", "tag:v1"], "ab"),
    (["--at", "main@1"], ""),
    (["--at", "main@2"], "a"),
    (["--at", "side@1"], "a"),
    (["--at", "main@2026-01-01"], ""),
    (["--at", "main@2026-01-01T01:00Z"], "a"),
    (["--at", "main@2026-01-01T01:59:59.999999"], "a"),
    (["--at", "main@2026-01-01T04:00:00+02:00"], "ab"),
    (["--at", "main@2199-01-01"], "abc"),
    (["--at", "side@2026-01-01T02:30Z"], "a"),
    (["--at", "side@2026-01-01T03:00Z"], "ax"),
    (["--at", "COMMIT 2"], "ax"),
    (["--commit", "COMMIT 2"], "ax"),
    (["--commit", "COMMIT 1"], "ab"),
    (["--branch", "side"], "ax"),
    (["--branch", "side", "--commit", "COMMIT 0"], "a"),
    ([], "abc"),
]


@pytest.mark.parametrize(
    ("args", "codes"), STATES, ids=[" ".join(a) or "newest" for a, _ in STATES]
)
def test_every_reading_command_reads_the_state(
    past: tuple[Path, list[str]], args: list[str], codes: str
) -> None:
    graph, ids = past
    words = [
        f"commit:{ids[int(a[-1])]}" if a.startswith("COMMIT") and "--at" in args
        else ids[int(a[-1])][:24].lower() if a.startswith("COMMIT")
        else a
        for a in args
    ]  # fmt: skip
    told = answer("query", graph, "-e", NAMES, *words)
    assert "".join(row["p.code"] for row in told["rows"]) == codes
    pinned = "--at" in args or "--commit" in args
    assert (told["target"]["commit"] == told["graph_commit_id"]) == pinned
    lines = ok("export", graph, *words).stdout.splitlines()
    assert "".join(json.loads(line)["data"]["code"] for line in lines) == codes
    view = answer("snapshot", graph, *words)
    assert view["graph_commit_id"] == told["graph_commit_id"]
    assert view["datasets"][1]["entity_count"] == len(codes)
    explained = answer("explain", graph, "-e", NAMES, "--analyze", *words)
    assert explained["row_count"] == len(codes)
    assert explained["target"] == told["target"]
    shown = answer("schema", "show", graph, *words)
    assert (shown["schema_source"], shown["graph_commit_id"]) == (SCHEMA, view["graph_commit_id"])


def test_a_lint_reads_the_schema_of_a_state(past: tuple[Path, list[str]], tmp_path: Path) -> None:
    graph, _ = past
    queries, schema = tmp_path / "q.gq", tmp_path / "s.pg"
    queries.write_text(f"query q() {{ {NAMES} }}")
    schema.write_text(SCHEMA)
    assert answer("lint", graph, "--query", queries, "--at", "v1")["status"] == "ok"
    assert answer("lint", graph, "--query", queries, "--branch", "side")["status"] == "ok"
    assert run("lint", graph, "--query", queries, "--at", "nope").exit_code == 1
    said = run("lint", "--schema", schema, "--query", queries, "--at", "v1")
    assert (said.exit_code, "both given" in said.stderr) == (2, True)


@pytest.mark.parametrize(
    ("args", "exit_code", "code", "words"),
    [
        (["--at", "nope"], 1, "branch_not_found", "no branch, tag or commit 'nope'"),
        (["--at", "branch:nope"], 1, "branch_not_found", "no branch 'nope'"),
        (["--at", "tag:nope"], 1, "tag_not_found", "no tag 'nope'"),
        (["--at", "commit:01ZZ"], 1, "commit_not_found", "no commit 01ZZ"),
        (["--at", "01ZZZZZZ"], 1, "commit_not_found", "no commit 01ZZZZZZ"),
        (["--at", "main@99"], 1, "commit_not_found", "1 to 4"),
        (["--at", "main@0"], 1, "commit_not_found", "1 to 4"),
        (["--at", "nope@1"], 1, "branch_not_found", "no branch 'nope'"),
        (["--at", "main@2025-12-31T23:59:59Z"], 1, "commit_not_found", "it begins at 2026-01-01"),
        (["--at", "main@2026-02-30"], 1, "branch_not_found", "behind @ stands a version"),
        (["--at", "2026-01-01"], 1, "branch_not_found", "main@2026-01-01"),
        (["--at", ""], 2, "usage", "must not be empty"),
        (["--at", "main", "--branch", "main"], 2, "usage", "--at and --branch"),
        (["--at", "main", "--commit", "01ZZ"], 2, "usage", "--at and --commit"),
        (["--commit", "01ZZ"], 1, "commit_not_found", "in this graph"),
        (["--branch", "side", "--commit", "COMMIT 3"], 1, "commit_not_found", "branch 'side'"),
    ],
)
@pytest.mark.parametrize("command", ["snapshot", "export"])
def test_states_that_are_not_there(
    past: tuple[Path, list[str]], command: str, args: list[str], exit_code: int, code: str, words: str
) -> None:  # fmt: skip
    graph, ids = past
    args = [ids[int(a[-1])] if a.startswith("COMMIT") else a for a in args]
    said = run(command, graph, *args)
    assert (said.exit_code, said.stdout) == (exit_code, "")
    assert words in said.stderr
    told = run("query", graph, "-e", NAMES, *args, "--json")
    assert (told.exit_code, json.loads(told.stdout)["code"]) == (exit_code, code)


def test_a_deleted_branch_is_gone_and_its_children_read_on(past: tuple[Path, list[str]]) -> None:
    graph, _ = past
    ok("branch", "create", "child", graph, "--from", "side")
    ok("branch", "delete", "side", graph)
    for target in ("side", "side@1", "side@2026-01-01T03:00Z"):
        assert run("snapshot", graph, "--at", target).exit_code == 1
    told = answer("query", graph, "-e", NAMES, "--at", "child@2026-01-01T03:00Z")
    assert [row["p.code"] for row in told["rows"]] == ["a", "x"]
