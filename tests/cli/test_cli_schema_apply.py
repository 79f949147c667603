"""`schema plan` and `schema apply`: what they say, what they ask, how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import SCHEMA, answer, ok, run

import omnigraph
from omnigraph.cli.settings import Settings

MORE = SCHEMA.replace("berths: U32 }", 'berths: U32  country: String @backfill("dk") }')
LESS = SCHEMA.replace("  call_sign: String? @unique\n", "").replace(
    '  @check(call_sign, "^[A-Z]{4}$")\n', ""
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "next.pg"


def head(uri: object) -> str:
    with omnigraph.open(str(uri)) as opened:
        return opened.snapshot().commit.id


def test_a_plan_for_people_and_for_programs(graph: Path, file: Path) -> None:
    file.write_text(MORE)
    before = head(graph)
    said = ok("schema", "plan", graph, "--schema", file)
    assert said.stdout == ('+ add node Port.country: String\n    existing rows get "dk"\n1 step\n')
    told = answer("schema", "plan", graph, "--schema", file)
    assert (told["supported"], told["step_count"]) == (True, 1)
    assert told["steps"][0]["kind"] == "add_property"
    assert head(graph) == before


def test_an_impossible_plan_exits_with_a_failure(graph: Path, file: Path) -> None:
    file.write_text(SCHEMA.replace("berths: U32", "berths: String"))
    said = run("schema", "plan", graph, "--schema", file)
    assert said.exit_code == 1
    assert "! type of node Port.berths: U32 → String" in said.stdout
    assert "1 step, 1 not possible" in said.stdout
    refused = run("schema", "apply", graph, "--schema", file, "--json")
    assert refused.exit_code == 1
    envelope = json.loads(refused.stdout)
    assert envelope["code"] == "migration"
    assert envelope["steps"][0]["code"] == "OG-MF-106"


def test_apply_says_the_steps_and_the_commit(graph: Path, file: Path) -> None:
    file.write_text(MORE)
    dry = ok("schema", "apply", graph, "--schema", file, "--dry-run")
    assert dry.stdout.endswith("Nothing was changed: this was a dry run, and it would succeed\n")
    said = ok("schema", "apply", graph, "--schema", file, "--as", "eve", "--message", "ports")
    assert said.stdout.splitlines()[-1] == f"Applied: commit {head(graph)} on main"
    assert ok("schema", "show", graph).stdout == MORE
    again = ok("schema", "apply", graph, "--schema", file)
    assert again.stdout.endswith("nothing to change\n")
    assert "warning: line 11: `country` is in the graph already" in again.stdout
    with omnigraph.open(graph) as opened:
        commit = opened.snapshot().commit
        assert (commit.kind, commit.actor, commit.message) == ("schema_apply", "eve", "ports")


def test_a_schema_from_stdin_on_a_branch(graph: Path) -> None:
    ok("branch", "create", "dev", graph)
    told = answer("schema", "apply", graph, "--schema", "-", "--branch", "dev", stdin=MORE)
    assert (told["applied"], told["branch"], told["commit"]["graph_branch"]) == (True, "dev", "dev")
    assert ok("schema", "show", graph).stdout == SCHEMA
    assert ok("schema", "show", graph, "--branch", "dev").stdout == MORE


def test_drops_are_confirmed(graph: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(LESS)
    before = head(graph)
    refused = run("schema", "apply", graph, "--schema", file)
    assert refused.exit_code == 2
    assert "must be confirmed: [OG-DS-104] drop node Vessel.call_sign" in refused.stderr
    assert "--yes" in refused.stderr
    monkeypatch.setattr(Settings, "can_ask", lambda settings: True)
    no = run("schema", "apply", graph, "--schema", file, stdin="n\n")
    assert no.exit_code == 1
    assert "DESTRUCTIVE [OG-DS-104]" in no.stdout
    assert head(graph) == before
    yes = ok("schema", "apply", graph, "--schema", file, stdin="y\n")
    assert "Applied: commit" in yes.stdout


def test_yes_and_data_loss_confirm(graph: Path, file: Path) -> None:
    file.write_text(LESS)
    hard = answer("schema", "plan", graph, "--schema", file, "--allow-data-loss")
    assert hard["steps"][0]["mode"] == "hard"
    dry = ok("schema", "apply", graph, "--schema", file, "--allow-data-loss", "--dry-run")
    assert "deleted at once where nothing else needs them" in dry.stdout
    told = answer("schema", "apply", graph, "--schema", file, "--yes")
    assert told["applied"]
    assert [s["kind"] for s in told["steps"] if s["destructive"]] == ["drop_property"]


def test_data_loss_deletes_at_once(graph: Path, file: Path) -> None:
    file.write_text(LESS)
    said = ok("schema", "apply", graph, "--schema", file, "--allow-data-loss")
    assert said.stdout.splitlines()[-1].startswith("Purged Vessel.call_sign: ")
    assert ok("status", graph).stdout.rstrip().endswith("nothing to do")


def test_data_loss_names_where_data_is_left(graph: Path, file: Path) -> None:
    ok("tag", "create", "v1", graph)
    file.write_text(LESS)
    said = ok("schema", "apply", graph, "--schema", file, "--allow-data-loss")
    *_, where, following = said.stdout.splitlines()
    assert where == "  still readable in tag v1"
    assert following.endswith(f": omnigraph cleanup {graph} --keep 1 --confirm")
    assert "Vessel.call_sign: dropped for good" in ok("status", graph).stdout
    ok("tag", "delete", "v1", graph)
    ok("cleanup", graph, "--keep", "1", "--grace", "0s", "--confirm")
    assert "dropped for good" not in ok("status", graph).stdout


def test_data_loss_as_json(graph: Path, file: Path) -> None:
    file.write_text(LESS)
    told = answer("schema", "apply", graph, "--schema", file, "--allow-data-loss")
    assert told["purged"]["complete"] is True
    assert told["purged"]["dropped"] == ["Vessel.call_sign"]


def test_rows_in_the_way_are_named(graph: Path, file: Path) -> None:
    file.write_text(SCHEMA.replace("@range(imo, 1..9999999)", "@range(imo, 1..150)"))
    said = run("schema", "apply", graph, "--schema", file)
    assert said.exit_code == 1
    assert said.stderr.splitlines()[:3] == [
        "error: 1 row is in the way of the new schema; nothing was changed",
        "  [OG-MF-107] rule of node Vessel: @range(imo, 1..150)",
        "  @range violation on Vessel.imo: value 200 not in 1..150",
    ]


def test_a_precondition(graph: Path, file: Path) -> None:
    file.write_text(MORE)
    old = "01JZ8Y6N2D3V5K7M9P1R3T5V7X"
    said = run("schema", "apply", graph, "--schema", file, "--if-commit", old)
    assert said.exit_code == 4


def test_findings_are_told_at_their_place(graph: Path, file: Path) -> None:
    file.write_text(MORE.replace("country: String", 'country: String @rename_from("land")'))
    said = run("schema", "plan", graph, "--schema", file)
    assert said.exit_code == 1
    assert "next.pg:11:" in said.stderr
    assert "M101" in said.stderr
