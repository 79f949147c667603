"""The history: filters of the list, the drawing of the graph, and going back in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import answer, ok, process, run

from omnigraph.cli.texts.history import draw

PORT = '{"type":"Port","data":{"code":"%s","name":"p","berths":1}}'

DRAWN = {
    "linear": (
        "c:b b:a a",
        """
        * c
        * b
        * a
        """,
    ),
    "fork": (
        "d:c e:b c:b b:a a",
        """
        * d
        │ * e
        * │ c
        ├─╯
        * b
        * a
        """,
    ),
    "three from one": (
        "h3:a h2:a h1:a a:r r",
        """
        * h3
        │ * h2
        ├─╯
        │ * h1
        ├─╯
        * a
        * r
        """,
    ),
    "merge": (
        "n:m m:b,c c:a b:a a",
        """
        * n
        * m
        ├─╮
        │ * c
        * │ b
        ├─╯
        * a
        """,
    ),
    "a merge of what goes on elsewhere": (
        "m:a,c d:c c:a a",
        """
        * m
        ├─╮
        │ │ * d
        │ ├─╯
        │ * c
        ├─╯
        * a
        """,
    ),
    "criss-cross": (
        "y:m,n x:n,m m:a,b n:b,a b:r a:r r",
        """
        * y
        ├─╮
        │ │ * x
        ├─┼─┤
        │ ├─╯
        * │ m
        ├─┼─╮
        │ * │ n
        ├─┤ │
        │ ├─╯
        │ * b
        * │ a
        ├─╯
        * r
        """,
    ),
    "an empty column is used again": (
        "m3:m2,t m2:m1,s m1:a,r s:a u:t t:a r:a a",
        """
        * m3
        ├─╮
        * │ m2
        ├─┼─╮
        * │ │ m1
        ├─┼─┼─╮
        │ │ * │ s
        ├─┼─╯ │
        │ │ * │ u
        │ ├─╯ │
        │ *   │ t
        ├─╯   │
        │     * r
        ├─────╯
        * a
        """,
    ),
    "cut off": (
        "m:b,c d:b",
        """
        * m
        ├─╮
        │ │ * d
        ├─┼─╯
        """,
    ),
    "nothing": ("", ""),
    "two beginnings": (
        "b:x c a:x x",
        """
        * b
        │ * c
        │ * a
        ├─╯
        * x
        """,
    ),
}


def history(text: str) -> list[tuple[str, list[str]]]:
    words = [word.partition(":") for word in text.split()]
    return [(commit, [p for p in parents.split(",") if p]) for commit, _, parents in words]


def drawing(text: str, **options: bool) -> list[str]:
    rows = draw(history(text), **options)
    return [f"{row.text} {row.commit_id or ''}".rstrip() for row in rows]


@pytest.mark.parametrize(("text", "shown"), DRAWN.values(), ids=DRAWN.keys())
def test_histories_are_drawn_as_lanes(text: str, shown: str) -> None:
    assert drawing(text) == [line.strip() for line in shown.strip().splitlines()]


def test_a_drawing_without_special_characters() -> None:
    assert drawing("m:b,c d:b c:a b:a a", ascii_only=True) == [
        "* m", r"+-\ ".strip(), "| | * d", "+-+-/", "| * c", "* | b", "+-/", "* a",
    ]  # fmt: skip


def test_a_lane_keeps_its_colour() -> None:
    rows = draw(history("m:b,c c:a b:a a"))
    assert [row.colours for row in rows] == [
        (0,), (0, 1, 1), (0, -1, 1), (0, -1, 1), (0, 1, 1), (0,),
    ]  # fmt: skip
    assert all(len(row.text) == len(row.colours) for row in rows)


# ---------------------------------------------------------------- commit log


def load(graph: Path, code: str, *args: str) -> str:
    told = answer("load", graph, "--data", "-", "--mode", "append", *args, stdin=PORT % code)
    return told["commit"]["graph_commit_id"]


@pytest.fixture
def forked(graph: Path) -> tuple[Path, list[str]]:
    """Main with two commits more than june, which has one of its own."""
    second, first = (c["graph_commit_id"] for c in answer("commit", "list", graph)["commits"])
    ok("branch", "create", "june", graph)
    ok("tag", "create", "v1", graph)
    june = load(graph, "J", "--branch", "june", "--as", "jo")
    third = load(graph, "M", "--as", "mo", "--message", "One\nmore \x1b[2J")
    fourth = load(graph, "N")
    return graph, [first, second, june, third, fourth]


def test_the_graph_of_all_branches(forked: tuple[Path, list[str]]) -> None:
    graph, (first, second, june, third, fourth) = forked
    lines = ok("commit", "log", graph, "--all", "--graph").stdout.splitlines()
    starts = [
        f"* {fourth} (main)  ", f"* {third}  ", f"│ * {june} (june)  ", "├─╯",
        f"* {second} (tag: v1)  ", f"* {first}  ",
    ]  # fmt: skip
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True)), lines
    assert lines[1].endswith("Z  mo  load  +1  One …")
    assert lines[-1].endswith("Z  init")


def test_a_log_of_one_branch_has_a_line_for_each_commit(forked: tuple[Path, list[str]]) -> None:
    graph, (first, second, june, third, fourth) = forked

    def ids(*args: str) -> list[str]:
        return [line.split()[0] for line in ok("commit", "log", graph, *args).stdout.splitlines()]

    assert ids() == ids("--first-parent") == [fourth, third, second, first]
    assert ids("--branch", "june") == [june, second, first]
    assert ids("--all") == [fourth, third, june, second, first]
    assert ids("--limit", "2") == [fourth, third]
    assert ok("commit", "log", graph, "--graph", "--limit", "1").stdout.startswith(f"* {fourth}")


def test_a_log_as_json(forked: tuple[Path, list[str]]) -> None:
    graph, (first, second, june, third, fourth) = forked
    log = answer("commit", "log", graph, "--all", "--graph")["commits"]
    named = {c["graph_commit_id"]: (c["branches"], c["tags"]) for c in log}
    assert named == {
        fourth: (["main"], []), third: ([], []), june: (["june"], []),
        second: ([], ["v1"]), first: ([], []),
    }  # fmt: skip
    parents = {c["graph_commit_id"]: c["parent_commit_id"] for c in log}
    assert parents[june] == parents[third] == second
    (shown,) = answer("commit", "log", graph, "--limit", "1")["commits"]
    named_so = {"branches": ["main"], "tags": []}
    assert shown == answer("commit", "show", fourth, graph) | named_so


def test_a_stream_without_the_characters_gets_others(graph: Path) -> None:
    ok("branch", "create", "june", graph)
    load(graph, "J", "--branch", "june")
    load(graph, "M")
    done = process(
        "commit", "log", graph, "--all", "--graph", env={"PYTHONIOENCODING": "ascii"}
    )  # fmt: skip
    assert b"\n+-/\n" in done.stdout
    assert done.stdout.isascii()


def test_colours_on_a_terminal(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.cli.output.is_terminal", lambda stream: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    said = ok("commit", "log", graph, "--graph").stdout
    assert said.startswith("\x1b[31m*\x1b[0m ")
    assert "\x1b[1;32mmain\x1b[0m" in said


# ---------------------------------------------------------------- commit list and show


def test_a_list_is_filtered(forked: tuple[Path, list[str]]) -> None:
    graph, (first, second, june, third, fourth) = forked

    def ids(*args: object) -> list[str]:
        found = answer("commit", "list", graph, *args)["commits"]
        return [c["graph_commit_id"] for c in found]

    assert ids("--branch", "june") == [june, second, first]
    assert ids("--actor", "mo") == ids("--filter", "actor=mo") == [third]
    assert ids("--actor", "mo", "--filter", "actor=alice") == [third, second]
    assert ids("--actor", "mo", "--actor", "alice", "--limit", "1") == [third]
    assert ids("--kind", "init") == [first]
    assert ids("--kind", "nope") == []
    assert ids("--type", "Vessel") == [second]
    assert ids("--type", "Port", "--limit", "2") == [fourth, third]
    assert ids("--since", "2199-01-01") == []
    assert ids("--until", "1999-01-01") == []
    assert len(ids("--since", "1999-01-01", "--until", "2199-01-01T00:00:00+02:00")) == 4
    assert ids("--first-parent", "--branch", "june") == [june, second, first]
    assert ids("--branch", "june", "--not-in", "main") == [june]
    assert ids("--not-in", "v1") == [fourth, third]
    assert ids("--not-in", "main") == []


@pytest.mark.parametrize(
    ("args", "exit_code", "code", "words"),
    [
        (["list", "--since", "soon"], 2, "usage", "not a moment: 'soon'"),
        (["list", "--until", "2026-13-01"], 2, "usage", "not a moment"),
        (["list", "--not-in", "nope"], 1, "branch_not_found", "'nope'"),
        (["list", "--not-in", "main", "--first-parent"], 2, "usage", "cannot be combined"),
        (["list", "--branch", "nope"], 1, "branch_not_found", "no branch 'nope'"),
        (["log", "--branch", "nope"], 1, "branch_not_found", "no branch 'nope'"),
        (["log", "--branch", "main", "--all"], 2, "usage", "--all"),
        (["log", "--first-parent", "--all"], 2, "usage", "--all"),
        (["log", "--limit", "0"], 2, "usage", "limit"),
        (["show", "01ZZZZ"], 1, "commit_not_found", "no commit 01ZZZZ in this graph"),
        (["show", "0", "--branch", "main"], 2, "usage", "2 commits begin with 0"),
        (["show", "01ZZ", "--branch", "nope"], 1, "branch_not_found", "no branch 'nope'"),
        (["reset", "nope", "--yes"], 1, "branch_not_found", "'nope'"),
        (["reset", "main@9", "--yes"], 1, "commit_not_found", "1 to 2"),
        (["reset", "main@1", "--branch", "nope", "--yes"], 1, "branch_not_found", "'nope'"),
        (["reset", "main@1"], 2, "usage", "needs --yes"),
        (["reset", "main@1", "--yes", "--if-commit", "01ZZ"], 4, "precondition_failed", "01ZZ"),
    ],
)
def test_refusals_are_typed_and_change_nothing(
    graph: Path, args: list[str], exit_code: int, code: str, words: str
) -> None:
    before = answer("commit", "list", graph)
    word, *rest = args
    said = run("commit", word, *rest, "--store", graph)
    assert (said.exit_code, said.stdout) == (exit_code, "")
    assert words in said.stderr
    told = run("commit", word, *rest, "--store", graph, "--json")
    assert (told.exit_code, json.loads(told.stdout)["code"]) == (exit_code, code)
    assert answer("commit", "list", graph) == before


def test_a_commit_is_found_on_any_branch(forked: tuple[Path, list[str]]) -> None:
    graph, (_, _, june, third, _) = forked
    assert answer("commit", "show", june.lower(), graph)["graph_branch"] == "june"
    assert run("commit", "show", june, graph, "--branch", "main").exit_code == 1
    assert run("commit", "show", third, graph, "--branch", "june").exit_code == 1


# ---------------------------------------------------------------- commit reset


def test_a_branch_is_set_back(forked: tuple[Path, list[str]]) -> None:
    graph, (_, second, _, third, fourth) = forked
    said = ok("commit", "reset", "v1", graph, "--yes", "--as", "ann", "--message", "why").stdout
    first_line, last_line = said.splitlines()
    assert first_line == f"Reset main to commit {second}; 2 commits are left behind"
    made = answer("snapshot", graph)["graph_commit_id"]
    assert last_line == f"commit {made} on main  -2"
    commit = answer("commit", "show", made, graph)
    assert (commit["kind"], commit["actor_id"], commit["message"]) == ("reset", "ann", "why")
    assert commit["parent_commit_id"] == second
    # What is left behind is there all the same.
    assert answer("snapshot", graph, "--at", fourth)["graph_commit_id"] == fourth
    assert answer("commit", "show", third[:22], graph)["message"].startswith("One")
    again = answer("commit", "reset", fourth, graph, "--yes")
    assert (again["target_commit_id"], again["previous_commit_id"]) == (fourth, made)
    assert (again["commits_left_behind"], again["branch"]) == (1, "main")
    assert again["commit"]["parent_commit_id"] == fourth


def test_a_reset_to_where_a_branch_stands_does_nothing(graph: Path) -> None:
    head = answer("snapshot", graph)["graph_commit_id"]
    assert ok("commit", "reset", "main", graph).stdout == f"No change: main is at commit {head} already\n"  # fmt: skip
    told = answer("commit", "reset", head, graph)
    assert (told["commit"], told["commits_left_behind"]) == (None, 0)


def test_a_branch_takes_over_what_another_shows(forked: tuple[Path, list[str]]) -> None:
    graph, (*_, fourth) = forked
    told = answer("commit", "reset", "main", graph, "--branch", "june", "--yes")
    assert (told["target_commit_id"], told["commits_left_behind"]) == (fourth, 1)
    exports = [ok("export", graph, "--branch", b).stdout for b in ("main", "june")]
    assert exports[0] == exports[1]


@pytest.mark.parametrize(("typed", "code"), [("n\n", 1), ("y\n", 0), ("", 130)])
def test_a_person_is_told_what_is_left_behind(
    forked: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    graph, (_, second, *_, fourth) = forked
    monkeypatch.setattr("omnigraph.cli.settings.is_terminal", lambda stream: True)
    said = run("commit", "reset", "v1", graph, stdin=typed)
    assert said.exit_code == code
    assert f"to commit {second}, and leave 2 commits behind?" in said.stderr
    head = answer("snapshot", graph)["graph_commit_id"]
    assert (head == fourth) == (code != 0)


def test_a_reset_loses_against_somebody_who_writes(
    forked: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, _ = forked

    def answered_late(*args: object, **kwargs: object) -> bool:
        load(graph, "LATE")
        return True

    monkeypatch.setattr("omnigraph.cli.settings.is_terminal", lambda stream: True)
    monkeypatch.setattr("click.confirm", answered_late)
    assert run("commit", "reset", "v1", graph).exit_code == 4
    assert "LATE" in ok("export", graph).stdout
