"""`omnigraph optimize` and `omnigraph index`."""

from __future__ import annotations

from pathlib import Path

from cli_support import answer, ok, run

PORT = '{"type":"Port","data":{"code":"%s","name":"p","berths":1}}'


def load(graph: Path, code: str) -> None:
    ok("load", graph, "--data", "-", "--mode", "append", stdin=PORT % code)


def test_optimize_says_what_it_did_and_then_that_nothing_is_left(graph: Path) -> None:
    for code in ("AA", "BB", "CC"):
        load(graph, code)
    said = ok("optimize", graph, "--as", "nightly", "--message", "tidy").stdout
    first, *rest = said.splitlines()
    assert first.startswith("Optimized main: commit ")
    assert any(line.startswith("  node:Port") and "joined into 1" in line for line in rest)
    assert ok("optimize", graph).stdout == "Nothing to do: main is in order\n"
    newest = answer("commit", "list", graph, "--limit", "1")["commits"][0]
    assert (newest["kind"], newest["actor_id"], newest["message"]) == (
        "optimize",
        "nightly",
        "tidy",
    )


def test_optimize_as_json(graph: Path) -> None:
    load(graph, "AA")
    done = answer("optimize", graph, "--type", "Port")
    (table,) = done["tables"]
    assert table["type_key"] == "node:Port"
    assert table["committed"] is True
    assert table["skipped"] is None
    assert set(table) == {
        "type_key",
        "fragments_removed",
        "fragments_added",
        "committed",
        "skipped",
        "published_dataset_version",
        "lance_head_version",
        "pending_indexes",
    }
    assert done["commit"]["kind"] == "optimize"
    again = answer("optimize", graph, "--type", "Port")
    assert again["commit"] is None
    assert again["tables"][0]["committed"] is False


def test_indexes_are_listed_and_built(graph: Path) -> None:
    load(graph, "AA")
    before = answer("index", "status", graph, "--type", "Port")["indexes"]
    assert {(i["property"], i["state"]) for i in before} >= {("id", "missing"), ("code", "missing")}
    said = ok("index", "build", graph).stdout
    assert said.startswith("Indexed main: commit ")
    after = answer("index", "status", graph, "--type", "Port")["indexes"]
    assert {i["state"] for i in after} == {"complete"}
    assert all(i["coverage"] == 1.0 for i in after)
    lines = ok("index", "status", graph).stdout.splitlines()
    assert any(line.startswith("node:Port.code ") and "complete" in line for line in lines)
    assert ok("index", "build", graph).stdout == "Nothing to do: main is in order\n"


def test_a_type_or_branch_that_is_not_there(graph: Path) -> None:
    for command in (("optimize",), ("index", "status"), ("index", "build")):
        failed = run(*command, graph, "--type", "Nobody")
        assert failed.exit_code == 1
        assert "no type 'Nobody'" in failed.stderr
        failed = run(*command, graph, "--branch", "gone")
        assert failed.exit_code == 1
        assert "gone" in failed.stderr


def test_quiet_says_nothing(graph: Path) -> None:
    load(graph, "AA")
    assert ok("optimize", graph, "--quiet").stdout == ""
