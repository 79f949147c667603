"""The command line on a graph of format 1: commands that read write nothing, and the stamp is
shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import answer, ok, run

from omnigraph.manifest.format import FORMAT
from support.releases import release_of_format

QUERY = "match { $v: Vessel } return { $v.imo }"
READING = [
    ["query", "{graph}", "-e", QUERY],
    ["explain", "{graph}", "-e", QUERY],
    ["export", "{graph}"],
    ["snapshot", "{graph}"],
    ["snapshot", "{graph}", "--at", "v1.0"],
    ["branch", "list", "{graph}"],
    ["branch", "show", "review", "{graph}"],
    ["tag", "list", "{graph}"],
    ["commit", "list", "{graph}"],
    ["diff", "v1.0", "main", "{graph}"],
    ["schema", "show", "{graph}"],
    ["schema", "plan", "{graph}", "--schema", "{schema}"],
    ["schema", "apply", "{graph}", "--schema", "{schema}", "--dry-run"],
    ["load", "{graph}", "--data", "{data}", "--mode", "append", "--dry-run"],
    ["merge", "review", "{graph}", "--ours", "--dry-run"],
    ["index", "status", "{graph}"],
    ["status", "{graph}"],
    ["check", "{graph}", "--full"],
    ["cleanup", "{graph}", "--keep", "1", "--grace", "0s"],
    ["repair", "{graph}"],
    ["recovery", "list", "{graph}"],
]


def listing(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        p.as_posix(): (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
        for p in root.rglob("*")
    }


@pytest.fixture
def places(graph_v1: Path, tmp_path: Path) -> dict[str, Path]:
    schema, data = tmp_path / "more.pg", tmp_path / "more.jsonl"
    schema.write_text(ok("schema", "show", graph_v1).stdout + "\nnode More { k: String @key }\n")
    data.write_text('{"type":"Log","data":{"text":"more"}}\n')
    return {"graph": graph_v1, "schema": schema, "data": data}


@pytest.mark.parametrize("command", READING, ids=lambda c: " ".join(c[:2]).replace("{graph}", ""))
def test_commands_that_read_write_nothing(places: dict[str, Path], command: list[str]) -> None:
    before = listing(places["graph"])
    ok(*(word.format(**places) if word != QUERY else word for word in command))
    assert listing(places["graph"]) == before


def test_the_stamp_is_shown(places: dict[str, Path]) -> None:
    graph = places["graph"]
    assert f"format:   1, {FORMAT} with the next write\n" in ok("status", graph).stdout
    assert answer("status", graph)["format"] == 1
    assert answer("snapshot", graph)["internal_schema_version"] == 1
    ok("load", graph, "--data", places["data"], "--mode", "append")
    assert f"format:   {FORMAT}\n" in ok("status", graph).stdout
    assert answer("status", graph)["format"] == FORMAT
    assert answer("status", graph, "--branch", "review")["format"] == 1
    assert answer("snapshot", graph, "--at", "v1.0")["internal_schema_version"] == 1
    with release_of_format(1):
        refused = run("status", graph)
    assert refused.exit_code == 1
    assert "upgrade omnigraph first" in refused.stderr
