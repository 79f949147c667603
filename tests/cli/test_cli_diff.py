"""``omnigraph diff``: what people read, what programs read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from cli_support import ok, run

import omnigraph
from omnigraph.branch.changes import EntityChange, Image
from omnigraph.cli.lines import TextLook, plain
from omnigraph.cli.texts.changes import change_lines

NEWER = """\
{"type":"Vessel","data":{"imo":100,"name":"Alba II","tags":["a","b"],"call_sign":"OABC"}}
{"type":"Vessel","data":{"imo":300,"name":"Carl"}}
{"type":"Port","data":{"code":"AAR","name":"Aarhus","berths":12}}
"""


@pytest.fixture
def changed(graph: Path) -> Path:
    """Version 2 holds the data; 3 changes, inserts and rewrites; 4 deletes."""
    ok("load", graph, "--data", "-", "--mode", "merge", stdin=NEWER)
    ok("mutate", graph, "-e", 'delete CallsAt where on < date("2027-01-01")')
    return graph


def lines(*args: object) -> list[dict]:
    return [json.loads(line) for line in ok("diff", *args, "--json").stdout.splitlines()]


def test_people_see_the_counts_then_the_entities(changed: Path) -> None:
    result = ok("diff", "main@2", "main", changed)
    head, counts, *entities = result.stdout.split("\n\n")
    assert [line.split()[:2] for line in head.splitlines()] == [
        ["from", "main@2"],
        ["to", "main@4"],
    ]
    assert counts == "  Vessel   +1 ~1\n  CallsAt  -1"
    [text] = entities
    edge = text.splitlines()[6]
    assert edge.startswith("- CallsAt ") and edge.endswith("  100 → AAR")
    assert text == (
        "~ Vessel 100\n"
        '    flag  "dk" → null\n'
        '    name  "Alba" → "Alba II"\n'
        "+ Vessel 300\n"
        "    imo   300\n"
        '    name  "Carl"\n'
        f"{edge}\n"
        '    on  "2026-01-02"\n'
    )
    assert result.stderr == ""


def test_the_other_way_round_everything_is_undone(changed: Path) -> None:
    text = ok("diff", "main", "main@2", changed).stdout
    assert "  Vessel   ~1 -1\n  CallsAt  +1\n" in text
    assert '    name  "Alba II" → "Alba"\n' in text


def test_stat_shows_only_counts(changed: Path) -> None:
    text = ok("diff", "main@2", "main", changed, "--stat").stdout
    assert text.endswith("\n\n  Vessel   +1 ~1\n  CallsAt  -1\n")
    [facts] = lines("main@2", "main", changed, "--stat")
    assert facts["kind"] == "metadata"
    assert facts["counts"]["node:Vessel"] == {"inserted": 1, "updated": 1, "deleted": 0}


def test_programs_get_a_line_with_the_facts_and_a_line_an_entity(changed: Path) -> None:
    facts, update, insert, delete = lines("main@2", "main", changed)
    assert facts["from"]["graph_manifest_version"] == 2
    assert facts["to"]["graph_manifest_version"] == 4
    assert facts["counts"] == {
        "node:Vessel": {"inserted": 1, "updated": 1, "deleted": 0},
        "edge:CallsAt": {"inserted": 0, "updated": 0, "deleted": 1},
    }
    before = {"imo": 100, "flag": "dk", "tags": ["a", "b"], "call_sign": "OABC", "name": "Alba"}
    after = {"imo": 100, "tags": ["a", "b"], "call_sign": "OABC", "name": "Alba II"}
    number = update["type"]["id"]
    assert update == {
        "kind": "node",
        "type": {"id": number, "name": "Vessel"},
        "id": "100",
        "op": "update",
        "changed": ["flag", "name"],
        "before": {"properties": before},
        "after": {"properties": after},
    }
    assert insert == {
        "kind": "node",
        "type": {"id": number, "name": "Vessel"},
        "id": "300",
        "op": "insert",
        "after": {"properties": {"imo": 300, "name": "Carl"}},
    }
    assert delete["kind"] == "edge" and delete["op"] == "delete" and "after" not in delete
    assert delete["before"] == {
        "properties": {"on": "2026-01-02"},
        "endpoints": {"from": "100", "to": "AAR"},
    }


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (("--type", "Vessel"), ["100", "300"]),
        (("--type", "Port"), []),
        (("--kind", "node", "--op", "insert"), ["300"]),
        (("--op", "insert", "--op", "update"), ["100", "300"]),
        (("--limit", "1"), ["100"]),
    ],
)
def test_some_of_the_changes(changed: Path, options: tuple[str, ...], ids: list[str]) -> None:
    facts, *found = lines("main@2", "main", changed, *options)
    assert [change["id"] for change in found] == ids
    if "--limit" not in options:
        assert sum(sum(c.values()) for c in facts["counts"].values()) == len(ids)
    text = ok("diff", "main@2", "main", changed, *options)
    assert ("No changes." in text.stdout) == (not ids)
    assert text.stderr == (
        "1 of 3 changes are shown: --limit shows more\n" if "--limit" in options else ""
    )


def test_an_arrow_file(changed: Path, tmp_path: Path) -> None:
    file = tmp_path / "changes.arrow"
    result = ok("diff", "main@2", "main", changed, "--arrow", file)
    assert result.stdout == "" and "3 entities" in result.stderr
    rows = pa.ipc.open_stream(file.read_bytes()).read_all().to_pylist()
    assert [(r["type"], r["op"]) for r in rows] == [
        ("Vessel", "update"),
        ("Vessel", "insert"),
        ("CallsAt", "delete"),
    ]
    assert rows[0]["changed"] == ["flag", "name"]
    assert json.loads(rows[1]["after"]) == {"properties": {"imo": 300, "name": "Carl"}}
    told = json.loads(ok("diff", "main@2", "main", changed, "--arrow", file, "--json").stdout)
    assert told["rows"] == 3 and told["output"] == str(file)


def test_nothing_changed(changed: Path) -> None:
    assert ok("diff", "main", "main@4", changed).stdout.endswith("\n\nNo changes.\n")
    [facts] = lines("main", "main", changed)
    assert facts["counts"] == {}


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("main", "nowhere"), "branch_not_found"),
        (("main@99", "main"), "commit_not_found"),
        (("main", "main@2", "--type", "Boat"), "type_not_found"),
        (("main", "main@2", "--stat", "--arrow", "x.arrow"), "usage"),
    ],
)
def test_refusals(changed: Path, args: tuple[str, ...], code: str) -> None:
    result = run("diff", *args[:2], changed, *args[2:], "--json")
    assert result.exit_code != 0
    assert json.loads(result.stdout)["code"] == code


def test_colours_are_only_for_terminals(changed: Path) -> None:
    assert "\x1b" not in ok("diff", "main@2", "main", changed).stdout
    coloured = ok(
        "diff", "main@2", "main", changed, env={"FORCE_COLOR": "1", "TERM": "xterm"}
    ).stdout
    assert '\x1b[31m"Alba"\x1b[0m' in coloured and '\x1b[32m"Alba II"\x1b[0m' in coloured


def test_on_a_terminal_long_values_are_cut_and_nothing_steers_it() -> None:
    change = EntityChange(
        kind="node",
        type_id=1,
        type_name="T",
        id="a\x1b[2J",
        op="update",
        before=Image(properties={"text": "x" * 500}),
        after=Image(properties={"text": "\u202e" + "y" * 500}),
        properties=("text",),
    )
    shown = [plain(line) for line in change_lines(change, TextLook(width=60))]
    assert shown[0] == "~ T a\\x1b[2J"
    assert len(shown[1]) <= 60 and shown[1].count("…") == 2 and "\\u202e" in shown[1]
    whole = [plain(line) for line in change_lines(change, TextLook())]
    assert len(whole[1]) > 1000


def test_a_moved_edge_shows_both_its_ends() -> None:
    change = EntityChange(
        kind="edge",
        type_id=1,
        type_name="E",
        id="e",
        op="update",
        before=Image(properties={}, endpoints=("a", "b")),
        after=Image(properties={}, endpoints=("a", "c")),
        properties=("dst",),
    )
    shown = [plain(line) for line in change_lines(change, TextLook(ascii_only=True))]
    assert shown == ["~ E e  a -> c", '    to  "b" -> "c"']


def test_properties_of_nodes_that_are_named_like_ends_keep_their_names(tmp_path: Path) -> None:
    with omnigraph.init(
        tmp_path / "g", "node P { k: String @key  src: String?  dst: I32? }"
    ) as graph:
        graph.load([{"type": "P", "data": {"k": "a", "src": "x", "dst": 1}}])
        graph.mutate('update P set { src: "y", dst: 2 } where k = "a"')
    shown = ok("diff", "main@2", "main", tmp_path / "g").stdout
    assert 'src  "x" → "y"' in shown and "dst  1 → 2" in shown
