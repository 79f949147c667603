"""Every command on a local graph: what people read, what programs read, what is stored."""

from __future__ import annotations

import json
from pathlib import Path

from cli_support import DATA, SCHEMA, answer, commit_count, ok, run

import omnigraph

COMMIT_KEYS = {
    "graph_commit_id", "parent_commit_id", "merged_parent_commit_id", "graph_branch",
    "graph_manifest_version", "actor_id", "created_at", "kind", "message", "changes",
}  # fmt: skip


def test_init_makes_a_graph_and_says_what_is_next(tmp_path: Path, schema_file: Path) -> None:
    uri = tmp_path / "g"
    result = ok("init", uri, "--schema", schema_file, "--as", "alice")
    assert "2 node types and 2 edge types" in result.stdout
    assert "omnigraph load" in result.stdout
    with omnigraph.open(uri) as graph:
        assert graph.commits()[0].actor == "alice"
        assert graph.commits()[0].id in result.stdout


def test_init_json(tmp_path: Path, schema_file: Path) -> None:
    uri = tmp_path / "g"
    created = answer("init", uri, "--schema", schema_file, "--durability", "fsync")
    with omnigraph.open(uri) as graph:
        assert created == {
            "uri": str(uri),
            "graph_commit_id": graph.commits()[0].id,
            "schema_hash": graph.snapshot().schema_hash,
            "nodes": 2,
            "edges": 2,
            "actor_id": None,
        }


def test_load_says_what_it_did(empty_graph: Path, data_file: Path) -> None:
    result = ok("load", empty_graph, "--data", data_file, "--mode", "append")
    first, second = result.stdout.splitlines()
    assert first.startswith("Loaded 4 entities (2 Vessel, 1 Port, 1 CallsAt) into ")
    assert first.endswith(" s")
    head = answer("snapshot", empty_graph)["graph_commit_id"]
    assert second == f"commit {head} on main  +4"
    assert result.stderr == ""


def test_load_json_is_the_load_result(empty_graph: Path, data_file: Path) -> None:
    loaded = answer(
        "load", empty_graph, "--data", data_file, "--mode", "merge",
        "--as", "bob", "--message", "June", "--branch", "main", "--durability", "fsync",
    )  # fmt: skip
    commit = answer("commit", "list", empty_graph)["commits"][0]
    assert loaded == {
        "uri": str(empty_graph),
        "branch": "main",
        "mode": "merge",
        "base_branch": None,
        "branch_created": False,
        "nodes": [
            {"name": "Vessel", "entities_loaded": 2},
            {"name": "Port", "entities_loaded": 1},
        ],
        "edges": [{"name": "CallsAt", "entities_loaded": 1}],
        "total_entities": 4,
        "unchanged_entities": 0,
        "commit": commit,
    }
    assert (commit["actor_id"], commit["message"], commit["kind"]) == ("bob", "June", "load")


def test_load_takes_several_files_as_one_commit(empty_graph: Path, tmp_path: Path) -> None:
    files = []
    for number, line in enumerate(DATA.splitlines()):
        files.append(tmp_path / f"{number}.jsonl")
        files[-1].write_text(line, encoding="utf-8")
    args = [a for file in files for a in ("--data", file)]
    assert answer("load", empty_graph, *args, "--mode", "append")["total_entities"] == 4
    assert commit_count(empty_graph) == 2


def test_load_reads_stdin_together_with_files(empty_graph: Path, tmp_path: Path) -> None:
    lines = DATA.splitlines(keepends=True)
    file = tmp_path / "first.jsonl"
    file.write_text("".join(lines[:2]), encoding="utf-8")
    loaded = answer(
        "load", empty_graph, "--data", file, "--data", "-", "--mode", "append",
        stdin="".join(lines[2:]),
    )  # fmt: skip
    assert loaded["total_entities"] == 4


def test_load_names_stdin_in_findings(empty_graph: Path) -> None:
    result = run("load", empty_graph, "--data", "-", "--mode", "append", stdin="\n{]\n")
    assert result.exit_code == 1
    assert "<stdin>:2" in result.stderr


def test_load_of_nothing_makes_no_commit(empty_graph: Path) -> None:
    result = ok("load", empty_graph, "--data", "-", "--mode", "append", stdin="")
    assert "Nothing to load" in result.stdout
    assert commit_count(empty_graph) == 1


def test_quiet_load_and_init_say_nothing(
    tmp_path: Path, schema_file: Path, data_file: Path
) -> None:
    uri = tmp_path / "q"
    before = ok("--quiet", "init", uri, "--schema", schema_file)
    after = ok("load", uri, "--data", data_file, "--mode", "append", "--quiet")
    assert [r.stdout + r.stderr for r in (before, after)] == ["", ""]
    assert commit_count(uri) == 2


def test_snapshot_shows_types_totals_and_head(graph: Path) -> None:
    shown = ok("snapshot", graph).stdout
    rows = [line.split() for line in shown.splitlines()]
    assert ["Vessel", "node", "2", "1"] in rows
    assert ["Feeds", "edge", "0", "-"] in rows
    assert ["4", "types", "4"] in rows
    assert answer("snapshot", graph)["graph_commit_id"] in shown
    assert "by alice" in shown


def test_snapshot_json_is_the_snapshot(graph: Path) -> None:
    shown = answer("snapshot", graph, "--branch", "main")
    with omnigraph.open(graph) as opened:
        assert shown == opened.snapshot().to_dict()
    assert [d["entity_count"] for d in shown["datasets"]] == [2, 1, 1, 0]


def test_commit_list_is_newest_first_and_one_line_each(graph: Path) -> None:
    ok(
        "load", graph, "--data", "-", "--mode", "merge", "--message", "first line\nsecond \x1b[2J",
        stdin='{"type":"Port","data":{"code":"AAR","name":"Århus","berths":13}}',
    )  # fmt: skip
    commits = answer("commit", "list", graph)["commits"]
    lines = ok("commit", "list", graph).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [c["graph_commit_id"] for c in commits]
    assert [c["kind"] for c in commits] == ["load", "load", "init"]
    assert lines[0].endswith("load  ~1  first line …")
    assert "alice  load  +4" in lines[1]
    assert "\x1b" not in "".join(lines)
    assert all(set(c) == COMMIT_KEYS for c in commits)


def test_commit_list_limit_and_filters(graph: Path) -> None:
    for berths, actor in enumerate(("bob", "carol", "bob")):
        ok(
            "load", graph, "--data", "-", "--mode", "merge", "--as", actor,
            stdin=json.dumps({"type": "Port", "data": {"code": "CPH", "name": "C", "berths": berths}}),
        )  # fmt: skip

    def actors(*args: str) -> list[str | None]:
        return [c["actor_id"] for c in answer("commit", "list", graph, *args)["commits"]]

    assert actors() == ["bob", "carol", "bob", "alice", None]
    assert actors("--limit", "2") == ["bob", "carol"]
    assert actors("--filter", "actor=alice") == ["alice"]
    assert actors("--filter", "actor=bob", "--limit", "1") == ["bob"]
    two = ("--filter", "actor=bob", "--filter", "actor=alice")
    assert actors(*two) == ["bob", "bob", "alice"]
    assert actors(*two, "--limit", "2") == ["bob", "bob"]
    assert actors("--filter", "actor=nobody") == []
    assert ok("commit", "list", graph, "--filter", "actor=nobody").stdout == "No commits match.\n"


def test_commit_show(graph: Path) -> None:
    commit = answer("commit", "list", graph)["commits"][0]
    commit_id = commit["graph_commit_id"]
    assert answer("commit", "show", commit_id, graph) == commit
    shown = ok("commit", "show", commit_id, "--store", graph).stdout
    assert commit_id in shown
    assert commit["parent_commit_id"] in shown
    assert "actor:   alice" in shown
    assert "  Vessel   +2" in shown


def test_schema_show_is_the_text_as_given(graph: Path) -> None:
    assert ok("schema", "show", graph).stdout == SCHEMA
    shown = answer("schema", "show", graph)
    assert shown["schema_source"] == SCHEMA
    assert (shown["nodes"], shown["edges"]) == (["Vessel", "Port"], ["CallsAt", "Feeds"])
    assert set(shown) == {"graph_commit_id", "schema_hash", "schema_source", "nodes", "edges"}


def test_version() -> None:
    release, formats = ok("version").stdout.splitlines()
    assert release == f"omnigraph {omnigraph.__version__}"
    assert formats == "graph formats: reads 1, 2, 3; writes 3"
    assert ok("--version").stdout == f"omnigraph {omnigraph.__version__}\n"
    shown = answer("version")
    assert (shown["formats_read"], shown["format_written"]) == ([1, 2, 3], 3)
    assert {"version", "python", "pylance", "pyarrow"} < set(shown)


def test_export_writes_nodes_first_and_some_types_on_request(graph: Path) -> None:
    lines = [json.loads(line) for line in ok("export", graph).stdout.splitlines()]
    assert [next(iter(line.items())) for line in lines] == [
        ("type", "Vessel"), ("type", "Vessel"), ("type", "Port"), ("edge", "CallsAt"),
    ]  # fmt: skip
    chosen = ok("export", graph, "--type", "CallsAt", "--type", "Port", "--type", "callsat").stdout
    assert [next(iter(json.loads(line).values())) for line in chosen.splitlines()] == [
        "Port", "CallsAt",
    ]  # fmt: skip


def test_export_loads_back_to_the_same_bytes(graph: Path, tmp_path: Path) -> None:
    dump, schema, copy = tmp_path / "dump.jsonl", tmp_path / "copy.pg", tmp_path / "copy"
    assert "Exported 4 entities" in ok("export", graph, "--output", dump).stderr
    schema.write_text(ok("schema", "show", graph).stdout)
    ok("init", copy, "--schema", schema)
    ok("load", copy, "--data", dump, "--mode", "overwrite")
    again = ok("export", copy)
    assert again.stdout_bytes == dump.read_bytes() == ok("export", graph).stdout_bytes


def test_wide_content_is_not_cut_in_a_pipe(graph: Path) -> None:
    message = "m" * 4000
    ok("load", graph, "--data", "-", "--mode", "append", "--message", message, "--as", "a" * 200,
       stdin='{"type":"Port","data":{"code":"X","name":"X","berths":1}}')  # fmt: skip
    line = ok("commit", "list", graph).stdout.splitlines()[0]
    assert message in line
    assert "a" * 200 in line


def test_a_dry_run_says_what_a_load_would_do(empty_graph: Path, data_file: Path) -> None:
    load = ("load", empty_graph, "--data", data_file, "--mode", "append")
    result = ok(*load, "--dry-run")
    assert "Checked 4 entities" in result.stdout
    assert "nothing was published; it would be +4" in result.stdout
    assert answer(*load, "--dry-run")["dry_run"] is True
    assert len(answer("commit", "list", empty_graph)["commits"]) == 1
    ok(*load)
    assert "it would be +1, 3 unchanged" in ok(*load[:-1], "merge", "--dry-run").stdout


def test_everything_that_is_wrong_goes_into_the_reject_file(
    empty_graph: Path, tmp_path: Path
) -> None:
    data, rejects = tmp_path / "in.jsonl", tmp_path / "rejects.jsonl"
    edge = {"edge": "CallsAt", "from": "1", "to": "X"}
    data.write_text("".join(json.dumps(edge) + "\n" for _ in range(30)))
    load = ("load", empty_graph, "--data", data, "--mode", "append", "--rejects", rejects)
    assert "and 71 more" in run(*load).stderr
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [t["reject"] for t in told] == ["violation"] * 91
    assert (told[31]["line"], told[31]["message"]) == (1, "dst 'X' not found in Port")
    data.write_text("[]\n")
    run(*load)
    (told,) = rejects.read_text().splitlines()
    assert json.loads(told)["reject"] == "problem"
    result = run(*load[:-1], tmp_path / "nowhere" / "r.jsonl")
    assert "cannot write rejects" in result.stderr


def test_a_merge_of_what_is_there_is_nothing_to_commit(graph: Path, data_file: Path) -> None:
    keyed = [line for line in data_file.read_text().splitlines() if "CallsAt" not in line]
    data_file.write_text("\n".join(keyed))
    before = answer("commit", "list", graph)["commits"]
    load = ("load", graph, "--data", data_file, "--mode", "merge")
    said = ok(*load).stdout
    assert said.startswith("Nothing to commit, 3 unchanged: 3 entities (2 Vessel, 1 Port) into ")
    assert len(said.splitlines()) == 1
    told = answer(*load)
    assert (told["commit"], told["total_entities"], told["unchanged_entities"]) == (None, 3, 3)
    assert answer("commit", "list", graph)["commits"] == before
