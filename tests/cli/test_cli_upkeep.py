"""`omnigraph status`, `check`, `cleanup` and `recovery`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cli_support import answer, ok, run

import omnigraph
from omnigraph.failpoints import FailPoint, armed

PORT = '{"type":"Port","data":{"code":"%s","name":"%s","berths":1}}'


def load(graph: Path, code: str, name: str = "p") -> None:
    ok("load", graph, "--data", "-", "--mode", "merge", stdin=PORT % (code, name))


def left_behind(graph: Path, point: FailPoint) -> str:
    """A write that died, and was last heard of two hours ago."""

    def die() -> None:
        raise SystemExit

    with (
        omnigraph.open(graph) as handle,
        armed(point, die),
        pytest.raises(SystemExit),
    ):
        handle.load(
            [{"type": "Port", "data": {"code": "Z", "name": "z", "berths": 1}}], actor="ann"
        )
    (intent,) = (graph / "__recovery").glob("*.json")
    os.utime(intent, (intent.stat().st_atime - 7200, intent.stat().st_mtime - 7200))
    return intent.stem


def test_status_is_one_screen(graph: Path) -> None:
    load(graph, "X")
    text = ok("status", graph).stdout
    assert "node:Port" in text
    assert text.rstrip().endswith("next:     nothing to do")
    shown = answer("status", graph)
    assert shown["branches"] == ["main"]
    assert {t["type_key"] for t in shown["types"]} >= {"node:Port"}
    left_behind(graph, FailPoint.PUBLISH_BEFORE_COMMIT)
    assert "omnigraph recovery run" in ok("status", graph).stdout


def test_check_finds_nothing_in_a_whole_graph(graph: Path) -> None:
    load(graph, "X")
    ok("branch", "create", "b", graph)
    ok("tag", "create", "t", graph)
    assert ok("check", graph).stdout.startswith("Whole: 2 branches, 1 tag, ")
    assert answer("check", graph, "--full")["ok"] is True


def test_check_looks_at_the_past(graph: Path) -> None:
    load(graph, "X")
    load(graph, "X", "q")
    assert "states of the past" in ok("check", graph, "--history").stdout
    assert answer("check", graph, "--history")["states"] >= 3


def test_check_names_what_is_missing_and_what_to_do(graph: Path) -> None:
    load(graph, "X")
    for file in (graph / "nodes").rglob("data/*.lance"):
        file.unlink()
    result = run("check", graph)
    assert result.exit_code == 1
    assert "is missing" in result.stdout
    assert "restore it from a copy of the graph" in result.stdout
    found = json.loads(run("check", graph, "--json").stdout)
    assert {f["code"] for f in found["findings"]} >= {"file"}


def test_cleanup_previews_then_removes(graph: Path) -> None:
    for name in "abcde":
        load(graph, "X", name)
    preview = ok("cleanup", graph, "--keep", "1", "--grace", "0s").stdout
    assert "Would remove" in preview
    assert preview.rstrip().endswith("add --confirm")
    assert "Removed" in ok("cleanup", graph, "--keep", "1", "--grace", "0s", "--confirm").stdout
    again = answer("cleanup", graph, "--keep", "1", "--grace", "0s", "--confirm")
    assert again["files_removed"] == 0
    assert run("snapshot", graph, "--at", "main@3").exit_code == 1
    assert ok("check", graph).stdout.startswith("Whole")


@pytest.mark.parametrize(
    "options", [(), ("--keep", "0"), ("--older-than", "soon"), ("--keep", "x")]
)
def test_cleanup_refuses_what_makes_no_sense(graph: Path, options: tuple[str, ...]) -> None:
    assert run("cleanup", graph, *options, "--confirm").exit_code == 2


def test_cleanup_far_away_needs_yes() -> None:
    result = run("cleanup", "s3://nowhere/graph", "--keep", "1", "--confirm")
    assert result.exit_code == 2
    assert "--yes" in result.stderr


def test_recovery_lists_shows_and_runs(graph: Path) -> None:
    assert ok("recovery", "list", graph).stdout == "No writes are pending.\n"
    operation = left_behind(graph, FailPoint.PUBLISH_BEFORE_COMMIT)
    listed = ok("recovery", "list", graph).stdout
    assert f"{operation}  stalled  load on main by ann" in listed
    assert listed.endswith("To deal with them: omnigraph recovery run\n")
    assert "To deal with" not in ok("recovery", "list", graph, "--quiet").stdout
    (item,) = answer("recovery", "list", graph)["intents"]
    assert (item["state"], item["kind"], item["actor_id"]) == ("stalled", "load", "ann")
    assert answer("recovery", "show", operation, graph) == item
    assert "kind: load" in ok("recovery", "show", operation[:10], graph).stdout
    said = ok("recovery", "run", graph).stdout
    assert f"{operation}  rolled_back  load on main by ann: it was not published" in said
    assert said.endswith("Recovered 1 write\n")
    assert answer("recovery", "list", graph) == {"intents": [], "put_aside": []}
    (commit,) = answer("commit", "list", graph, "--filter", "actor=omnigraph:recovery")["commits"]
    assert commit["kind"] == "recovery"
    assert run("recovery", "show", operation, graph).exit_code == 1


def test_recovery_tells_what_it_could_not_read(graph: Path) -> None:
    (graph / "__recovery").mkdir(exist_ok=True)
    (graph / "__recovery" / "01ODD.json").write_text("{")
    load(graph, "X")
    assert "01ODD  unreadable  " in ok("recovery", "list", graph).stdout
    assert "01ODD  unreadable  " in ok("recovery", "show", "01ODD", graph).stdout
    (row,) = answer("recovery", "run", graph)["recovered"]
    assert row["recovery_kind"] == "quarantined"
    name = "__recovery/unreadable/01ODD.json"
    listed = ok("recovery", "list", graph).stdout
    assert listed == (f"No writes are pending.\nPut aside, to be looked at and deleted: {name}\n")
    assert answer("recovery", "list", graph) == {"intents": [], "put_aside": [name]}


def test_recovery_tells_what_it_could_not_judge(graph: Path) -> None:
    ok("branch", "create", "b", graph)
    operation = left_behind(graph, FailPoint.PUBLISH_BEFORE_COMMIT)
    intent = graph / "__recovery" / f"{operation}.json"
    (branch,) = (graph / "_branches").iterdir()
    body = json.loads(intent.read_text()) | {"manifest_path": f"_branches/{branch.name}"}
    intent.write_text(json.dumps(body))
    for file in (branch / "_versions").glob("*.manifest"):
        file.write_bytes(b"damaged")
    assert f"{operation}  unclear  load on main by ann: " in ok("recovery", "list", graph).stdout
    result = run("recovery", "run", graph)
    assert result.exit_code == 1
    assert result.stdout.endswith("1 write left as before: run it again\n")
    (failed,) = json.loads(run("recovery", "run", graph, "--json").stdout)["failed"]
    assert failed["operation_id"] == operation
    load(graph, "Y")


def test_recovery_finishes_what_was_published(graph: Path) -> None:
    left_behind(graph, FailPoint.PUBLISH_AFTER_COMMIT)
    assert "rolled_forward" in ok("recovery", "run", graph).stdout
    assert ok("recovery", "run", graph).stdout == "Nothing to do\n"
