"""`branch merge` and `commit revert`: what is said, what is answered, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from cli_support import ok
from click.testing import CliRunner, Result

import omnigraph
from omnigraph.cli.boundary import App
from omnigraph.cli.commands.merge import merge_command, revert_command

root = App("omnigraph")
for command in (merge_command, revert_command):
    root.add_command(command)

SCHEMA = """
node Vessel { imo: I64 @key  name: String?  flag: String? }
node Port { code: String @key }
edge CallsAt: Vessel -> Port { on: Date? }
"""


def run(*args: object, stdin: str | None = None) -> Result:
    clean = {"OMNIGRAPH_STORE": None, "OMNIGRAPH_ACTOR": None, "OMNIGRAPH_TRACEBACK": None}
    return CliRunner().invoke(root, [str(a) for a in args], input=stdin, env=clean)


def vessel(imo: int, **data: Any) -> dict[str, Any]:
    return {"type": "Vessel", "data": {"imo": imo, **data}}


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    place = tmp_path / "fleet"
    with omnigraph.init(place, SCHEMA) as graph:
        graph.load([vessel(100, name="Alba", flag="dk"), {"type": "Port", "data": {"code": "AAR"}}])
        graph.branches.create("june")
    return place


def put(place: Path, branch: str, *records: dict[str, Any]) -> str:
    with omnigraph.open(place) as graph:
        commit = graph.load(list(records), mode="merge", branch=branch).commit
        assert commit is not None
        return commit.id


def head(place: Path, branch: str = "main") -> str:
    with omnigraph.open(place) as graph:
        return graph.snapshot(branch).commit.id


def conflict(place: Path) -> None:
    put(place, "main", vessel(100, name="Alba", flag="no"))
    put(place, "june", vessel(100, name="Alba", flag="pa"))


def test_a_merge_tells_what_it_did(fleet: Path) -> None:
    base = head(fleet)
    put(fleet, "main", vessel(100, name="Alba", flag="no"))
    put(fleet, "june", vessel(100, name="Brisa", flag="dk"), vessel(200, name="Cora"))
    seen = run("merge", "june", fleet, "--dry-run")
    assert seen.exit_code == 0
    assert seen.stdout.splitlines() == [
        "Would merge june into main; nothing was published",
        "  Vessel  +1 ~1",
        f"base {base}",
    ]
    done = run("merge", "june", fleet, "--as", "ann", "--message", "ready")
    assert done.exit_code == 0, done.stderr
    commit = head(fleet)
    assert done.stdout.splitlines() == [
        "Merged june into main",
        f"commit {commit} on main  +1 ~1",
        "  Vessel  +1 ~1",
        f"base {base}",
    ]
    with omnigraph.open(fleet) as graph:
        made = graph.commit(commit)
        assert (made.kind, made.actor, made.message) == ("merge", "ann", "ready")
    again = run("merge", "june", fleet)
    assert again.stdout == "Already up to date: main has everything of june\n"


def test_a_fast_forward(fleet: Path) -> None:
    put(fleet, "june", vessel(200))
    assert run("merge", "june", fleet, "--dry-run").stdout.startswith(
        "Would merge june into main (fast forward); nothing was published\n"
    )
    done = run("merge", "june", fleet, "--delete-branch")
    assert done.stdout.startswith("Fast-forwarded main to june\n")
    assert done.stdout.endswith("Deleted branch june\n")
    with omnigraph.open(fleet) as graph:
        assert graph.branches.list() == ["main"]


def test_conflicts_are_shown_by_type_with_all_values(fleet: Path) -> None:
    conflict(fleet)
    before = head(fleet)
    refused = run("merge", "june", fleet)
    assert refused.exit_code == 1
    assert refused.stdout == ""
    assert refused.stderr.splitlines()[:3] == [
        "Vessel: 1 conflict",
        "  100  changed on both sides",
        '    flag    base "dk"    main "no"    june "pa"',
    ]
    assert '{"node": "Vessel", "id": "100", "take": "theirs"}' in refused.stderr
    assert "error: 1 conflict between 'main' and 'june'; nothing was published" in refused.stderr
    seen = run("merge", "june", fleet, "--dry-run")
    assert seen.exit_code == 1
    assert seen.stdout.splitlines()[0] == "Would not merge june into main; nothing was published"
    assert '    flag    base "dk"    main "no"    june "pa"' in seen.stdout
    assert head(fleet) == before


def test_conflicts_as_json(fleet: Path) -> None:
    conflict(fleet)
    refused = run("merge", "june", fleet, "--json")
    assert refused.exit_code == 1
    told = json.loads(refused.stdout)
    assert told["code"] == "merge_conflict"
    (found,) = told["merge_conflicts"]
    assert found["kind"] == "divergent_update"
    assert found["properties"] == [{"name": "flag", "base": "dk", "ours": "no", "theirs": "pa"}]
    assert found["theirs"]["properties"]["flag"] == "pa"
    seen = run("merge", "june", fleet, "--dry-run", "--json")
    assert seen.exit_code == 1
    document = json.loads(seen.stdout)
    assert (document["outcome"], document["dry_run"]) == ("conflicts", True)
    assert document["merge_conflicts"] == told["merge_conflicts"]


@pytest.mark.parametrize(
    ("option", "flag"), [("--ours", "no"), ("--theirs", "pa"), ("file", "x"), ("-", "x")]
)
def test_conflicts_are_decided(fleet: Path, tmp_path: Path, option: str, flag: str) -> None:
    conflict(fleet)
    line = '{"node": "Vessel", "id": "100", "properties": {"flag": {"value": "x"}}}\n'
    args, stdin = [option], None
    if option == "file":
        (tmp_path / "decided.jsonl").write_text(line)
        args = ["--resolutions", str(tmp_path / "decided.jsonl")]
    elif option == "-":
        args, stdin = ["--resolutions", "-"], line
    done = run("merge", "june", fleet, *args, "--json", stdin=stdin)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["outcome"] == "merged"
    assert document["commit"]["merged_parent_commit_id"] == head(fleet, "june")
    with omnigraph.open(fleet) as graph:
        assert [r["flag"] for r in graph.snapshot().rows("Vessel")] == [flag]


def test_a_branch_that_cannot_be_deleted_is_merged_all_the_same(fleet: Path) -> None:
    put(fleet, "main", vessel(300))
    done = run("merge", "main", fleet, "--into", "june", "--delete-branch", "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    assert document["outcome"] == "fast_forward"
    assert document["branch_deleted"] is False
    assert "main cannot be deleted" in document["branch_delete_error"]


def test_broken_rules_in_words(fleet: Path) -> None:
    put(fleet, "june", {"edge": "CallsAt", "from": "100", "to": "AAR", "data": {"id": "e"}})
    with omnigraph.open(fleet) as graph:
        graph.mutate('delete Port where code = "AAR"')
    refused = run("merge", "june", fleet)
    assert refused.exit_code == 1
    assert "CallsAt: 1 conflict\n  e  an edge without its node\n" in refused.stderr
    assert "Port 'AAR' is not there" in refused.stderr


def test_many_conflicts_are_cut(fleet: Path) -> None:
    put(fleet, "main", *(vessel(i, name="m") for i in range(1000, 1030)))
    put(fleet, "june", *(vessel(i, name="j") for i in range(1000, 1030)))
    refused = run("merge", "june", fleet)
    assert "Vessel: 30 conflicts" in refused.stderr
    assert "… and 10 more (--json shows all)" in refused.stderr
    assert len(json.loads(run("merge", "june", fleet, "--json").stdout)["merge_conflicts"]) == 30


def test_data_cannot_steer_the_terminal(fleet: Path) -> None:
    put(fleet, "main", vessel(100, name="\x1b[31mred\nline"))
    put(fleet, "june", vessel(100, name="\x1b[0m"))
    refused = run("merge", "june", fleet)
    assert "\x1b" not in refused.stderr
    assert '"\\u001b[31mred\\nline"' in refused.stderr


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--ours", "--theirs"), 2, "exclude each other"),
        (("--into", "nowhere"), 1, "nowhere"),
        (("--into", "june"), 2, "itself"),
        (("--resolutions", "nothing.jsonl"), 1, "no resolution file"),
        (("--resolutions", "."), 2, "cannot read"),
        (("--granularity", "cell"), 2, "cell"),
        (("--into", " "), 2, "empty"),
    ],
)
def test_wrong_command_lines(fleet: Path, args: tuple[str, ...], code: int, words: str) -> None:
    put(fleet, "june", vessel(200))
    before = head(fleet)
    refused = run("merge", "june", fleet, *args)
    assert refused.exit_code == code, refused.output
    assert words in refused.stderr
    assert head(fleet) == before


def test_a_resolution_file_with_a_mistake_names_its_place(fleet: Path, tmp_path: Path) -> None:
    conflict(fleet)
    file = tmp_path / "decided.jsonl"
    file.write_text('\n{"node": "Vessel", "id": "999", "take": "ours"}\n')
    refused = run("merge", "june", fleet, "--resolutions", file)
    assert refused.exit_code == 1
    assert "decided.jsonl:2: Vessel '999' is not in conflict" in refused.stderr


def test_a_revert(fleet: Path) -> None:
    commit = put(fleet, "main", vessel(100, name="Alba", flag="no"), vessel(200))
    seen = run("revert", commit[:20], fleet, "--dry-run")
    assert seen.stdout.splitlines() == [
        "Would revert commit on main; nothing was published",
        "  Vessel  ~1 -1",
    ]
    done = run("revert", commit, fleet, "--as", "ann")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[0] == "Reverted commit on main"
    with omnigraph.open(fleet) as graph:
        assert [r["flag"] for r in graph.snapshot().rows("Vessel")] == ["dk"]
        assert graph.commits()[0].message == f"revert {commit}"
    again = run("revert", commit, fleet)
    assert again.stdout == "Nothing to revert: main has none of it any more\n"


def test_a_revert_with_a_conflict(fleet: Path) -> None:
    commit = put(fleet, "main", vessel(100, name="Alba", flag="no"))
    put(fleet, "main", vessel(100, name="Alba", flag="pa"))
    refused = run("revert", commit, fleet)
    assert refused.exit_code == 1
    assert 'base "no"    main "pa"' in refused.stderr
    assert run("revert", commit, fleet, "--theirs", "--quiet").stdout == ""
    with omnigraph.open(fleet) as graph:
        assert [r["flag"] for r in graph.snapshot().rows("Vessel")] == ["dk"]


@pytest.mark.parametrize("command", [merge_command, revert_command])
def test_the_commands_are_explained(command: click.Command) -> None:
    assert command.help
    assert all(p.help for p in command.params if isinstance(p, click.Option))
    assert ok("version").stdout
