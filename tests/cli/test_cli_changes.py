"""`omnigraph changes`: JSON lines for programs, text for people, a baseline that is safely there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_support import answer, environment, ok, process, run

from support.children import ended


def lines(*args: object) -> list[dict[str, Any]]:
    """The JSON lines of a command that must succeed."""
    return [json.loads(line) for line in ok("changes", *args, "--json").stdout.splitlines()]


def failure(*args: object) -> tuple[dict[str, Any], int]:
    result = run("changes", *args, "--json")
    return json.loads(result.stdout), result.exit_code


def change(graph: Path, text: str) -> None:
    ok("mutate", graph, "-e", text)


def test_poll_prints_a_line_a_commit_and_the_cursor(graph: Path) -> None:
    change(graph, 'update Vessel set { name: "Alba II" } where imo = 100')
    first, second, last = lines("poll", graph, "--start", "beginning")
    assert first["cause"]["actor_id"] == "alice"
    assert [c["op"] for c in first["changes"]] == ["insert"] * 4
    assert second["cause"]["parent_commit_id"] == first["cause"]["graph_commit_id"]
    [updated] = second["changes"]
    assert (updated["before"]["properties"]["name"], updated["changed"]) == ("Alba", ["name"])
    assert last["caught_up"] is True
    change(graph, "delete Vessel where imo = 200")
    [block, again] = lines("poll", graph, "--cursor", last["cursor"])
    assert [c["op"] for c in block["changes"]] == ["delete"]
    assert lines("poll", graph, "--cursor", again["cursor"]) == [again]
    assert lines("poll", graph) == [again]


def test_pages(graph: Path) -> None:
    found, token, pages = [], None, 0
    while True:
        start = ("--page-token", token) if token else ("--start", "beginning")
        *blocks, last = lines("poll", graph, *start, "--max-changes", 3)
        found += [c["id"] for block in blocks for c in block["changes"]]
        pages += 1
        token = last.get("next_page_token")
        if token is None:
            break
        assert "cursor" not in last
        assert blocks[-1]["continued"] is True
    [whole, _] = lines("poll", graph, "--start", "beginning")
    assert found == [c["id"] for c in whole["changes"]]
    assert pages == 2
    commit = whole["cause"]["graph_commit_id"]
    [part] = lines("show", commit, graph, "--max-changes", 3)
    [rest] = lines("show", commit, graph, "--page-token", part["next_page_token"])
    assert [*part["changes"], *rest["changes"]] == whole["changes"]
    assert "next_page_token" not in rest


def test_people_read_text(graph: Path) -> None:
    change(graph, 'update Vessel set { name: "Alba II" } where imo = 100')
    commit = answer("commit", "list", graph)["commits"][0]["graph_commit_id"]
    shown = ok("changes", "show", commit[:12], graph).stdout
    assert shown.startswith(f"commit {commit} on main")
    assert '~ Vessel 100\n      name  "Alba" → "Alba II"' in shown
    polled = ok("changes", "poll", graph, "--start", "beginning", "--op", "update").stdout
    assert polled.startswith(shown)
    assert "caught up; cursor: c" in polled
    page = ok("changes", "poll", graph, "--start", "beginning", "--max-changes", 1).stdout
    assert "(more on the next page)" in page
    assert "next page: p" in page
    more = ok("changes", "poll", graph, "--start", "beginning", "--max-commits", 1).stdout
    assert "there is more; cursor: c" in more


def test_text_from_data_cannot_steer_a_terminal(graph: Path) -> None:
    line = {"type": "Vessel", "data": {"imo": 100, "name": "\x1b[31m"}}
    ok("load", graph, "--data", "-", "--mode", "merge", stdin=json.dumps(line))
    shown = ok("changes", "poll", graph, "--start", "beginning").stdout
    assert "\x1b" not in shown


def test_filters_and_branches(graph: Path) -> None:
    ok("branch", "create", "side", graph)
    change_on_side = ("mutate", graph, "-e", "delete Vessel where imo = 200", "--branch", "side")
    ok(*change_on_side)
    [first, second, _] = lines("poll", graph, "--branch", "side", "--start", "beginning")
    assert second["cause"]["authored_branch"] == "side"
    start = ("--branch", "side", "--start", f"after:{first['cause']['graph_commit_id'][:14]}")
    assert len(lines("poll", graph, *start)) == 2
    wish = ("--kind", "node", "--type", "Vessel", "--type", "Port", "--op", "insert")
    [block, _] = lines("poll", graph, "--start", "beginning", *wish)
    assert {c["type"]["name"] for c in block["changes"]} == {"Vessel", "Port"}


def test_follow_streams_until_it_is_caught_up(graph: Path) -> None:
    change(graph, "delete Vessel where imo = 200")
    found = lines("follow", graph, "--start", "beginning", "--until-caught-up", "--max-changes", 3)
    assert [line.get("continued", False) for line in found if "cause" in line] == [
        True,
        False,
        False,
    ]
    assert found[-1]["caught_up"] is True
    assert [line for line in found if "next_page_token" in line] == []
    said = ok("changes", "follow", graph, "--start", "beginning", "--until-caught-up")
    assert said.stdout.count("commit ") == 2
    assert said.stderr == f"caught up; go on with --cursor {found[-1]['cursor']}\n"
    quiet = ok(
        "changes", "follow", graph, "--cursor", found[-1]["cursor"], "--until-caught-up", "-q"
    )
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_follow_sees_new_commits_and_ctrl_c_tells_the_cursor(graph: Path) -> None:
    code = "from omnigraph.cli.main import main; main()"
    words = [
        "changes",
        "follow",
        str(graph),
        "--start",
        "beginning",
        "--interval",
        "0.01",
        "--json",
    ]
    program = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    with ended(program) as child:
        assert child.stdout is not None
        first, cursor = (json.loads(child.stdout.readline()) for _ in range(2))
        assert "cause" in first
        change(graph, "delete Vessel where imo = 200")
        second, last = (json.loads(child.stdout.readline()) for _ in range(2))
        assert [c["op"] for c in second["changes"]] == ["delete"]
        assert last["cursor"] != cursor["cursor"]
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert json.loads(out)["code"] == "interrupted"
    assert b"Traceback" not in err
    assert len(lines("poll", graph, "--cursor", last["cursor"])) == 1


def test_a_baseline_file_is_complete_and_the_cursor_is_the_answer(
    graph: Path, tmp_path: Path
) -> None:
    file = tmp_path / "base.jsonl"
    said = ok("changes", "baseline", graph, "--output", file)
    cursor = said.stdout.strip()
    *rows, last = file.read_bytes().splitlines(keepends=True)
    assert b"".join(rows) == ok("export", graph).stdout_bytes
    assert json.loads(last)["baseline"]["resume_cursor"] == cursor
    assert "4 entities" in said.stderr
    [document] = lines("baseline", graph, "--output", file)
    commit = answer("commit", "list", graph)["commits"][0]["graph_commit_id"]
    assert document == {
        "output": str(file), "rows": 4, "snapshot_commit_id": commit, "resume_cursor": cursor,
    }  # fmt: skip
    assert lines("poll", graph, "--cursor", cursor)[-1]["caught_up"] is True
    assert ok("changes", "baseline", graph).stdout_bytes == file.read_bytes()


def test_a_baseline_that_fails_leaves_the_old_file_and_prints_no_cursor(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "base.jsonl"
    file.write_text("old")
    synced: list[int] = []

    def no_sync(descriptor: int) -> None:
        synced.append(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_sync)
    result = run("changes", "baseline", graph, "--output", file)
    assert synced
    assert (result.exit_code, result.stdout) == (1, "")
    assert file.read_text() == "old"
    assert list(folder.iterdir()) == [file]


def test_the_file_and_its_folder_are_synced_before_the_cursor_is_told(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "base.jsonl"
    seen: list[tuple[bool, bool]] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        is_folder = os.path.samestat(os.fstat(descriptor), tmp_path.stat())
        seen.append((is_folder, file.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    ok("changes", "baseline", graph, "--output", file)
    # The content before the file has its name, the folder after.
    assert seen == [(False, False), (True, True)]


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (["poll", "--cursor", "nonsense"], "change_cursor_rejected", 1),
        (["poll", "--page-token", "c" * 5000], "change_cursor_rejected", 1),
        (["poll", "--start", "yesterday"], "usage", 2),
        (["poll", "--start", "now", "--cursor", "x"], "usage", 2),
        (["poll", "--type", "Boat"], "type_not_found", 1),
        (["poll", "--branch", "nowhere"], "branch_not_found", 1),
        (["poll", "--max-commits", "513"], "usage", 2),
        (["poll", "--max-changes", "0"], "usage", 2),
        (["poll", "--kind", "vertex"], "usage", 2),
        (["follow", "--cursor", "nonsense"], "change_cursor_rejected", 1),
        (["follow", "--start", "after:ZZZZ"], "commit_not_found", 1),
        (["baseline"], "usage", 2),
        (["baseline", "--type", "Boat", "--output", "x"], "type_not_found", 1),
        (["show", "ZZZZ"], "commit_not_found", 1),
        (["show", " "], "usage", 2),
    ],
)
def test_what_is_wrong_is_told_as_data(
    graph: Path,
    words: list[str],
    code: str,
    exit_code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    found, said = failure(*words, "--store", graph)
    assert (found["code"], said) == (code, exit_code)
    assert set(tmp_path.iterdir()) == before


def test_the_first_commit_and_a_cursor_of_another_filter(graph: Path) -> None:
    first = answer("commit", "list", graph)["commits"][-1]["graph_commit_id"]
    assert failure("show", first, graph)[0]["code"] == "parentless_commit"
    cursor = lines("poll", graph, "--type", "Port")[-1]["cursor"]
    found, _ = failure("poll", graph, "--cursor", cursor)
    assert found["error"] == "change cursor rejected: it was made with another filter"
    assert found["reason"] == "other_filter"


def test_a_forgotten_command_is_suggested(graph: Path) -> None:
    found, code = failure(graph)
    assert code == 2
    assert "changes poll" in found["hint"]


def test_a_reader_that_goes_away_is_no_failure(graph: Path) -> None:
    done = process(
        "changes", "poll", graph, "--start", "beginning", "--json",
        code="import os, sys; os.close(1); from omnigraph.cli.main import main; main()",
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
