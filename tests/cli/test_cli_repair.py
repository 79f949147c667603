"""`omnigraph repair` as a person and a program use it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import lance
import pytest
from cli_support import answer, ok, run

import omnigraph
from omnigraph.storage import namespace, staging

PORT = '{"type":"Port","data":{"code":"%s","name":"p","berths":1}}'


def mirror(graph: Path) -> lance.LanceDataset:
    return lance.dataset(str(graph / "tables" / "Port.lance"))


def test_nothing_to_do(graph: Path) -> None:
    ok("repair", graph, "--confirm")
    assert ok("repair", graph).stdout == "Nothing to do: no other program changed 3 tables\n"
    assert ok("repair", graph, "--confirm", "--quiet").stdout == ""


def test_refusals_exit_with_one_and_say_why(graph: Path) -> None:
    ok("load", graph, "--data", "-", "--mode", "append", stdin=PORT % "BB")
    mirror(graph).delete("code = 'BB'")
    shown = ok("repair", graph).stdout
    assert shown.startswith("node:Port  suspicious  rows changed: --force --confirm adopts that")
    assert shown.endswith("Delete\n")
    refused = run("repair", graph, "--confirm")
    assert refused.exit_code == 1
    assert "refused" in refused.stdout
    assert "it is not certain that no row changed" in refused.stdout
    unsure = run("repair", graph, "--force")
    assert unsure.exit_code != 0
    assert "--force needs --confirm" in unsure.stderr

    forced = answer("repair", graph, "--force", "--confirm")
    (table,) = [t for t in forced["tables"] if t["type_key"] == "node:Port"]
    assert (table["action"], table["classification"]) == ("forced", "suspicious")
    assert [done["operation"] for done in table["operations"]] == ["Delete"]
    assert [commit["actor_id"] for commit in forced["commits"]] == ["omnigraph:repair:force"]
    chosen = ("--filter", "actor=omnigraph:repair:force")
    assert len(answer("commit", "list", graph, *chosen)["commits"]) == 1
    assert mirror(graph).count_rows() == 1


def test_joined_files_are_healed_and_foreign_rows_discarded(graph: Path) -> None:
    ok("load", graph, "--data", "-", "--mode", "append", stdin=PORT % "BB")
    mirror(graph).optimize.compact_files()
    assert "no row changed: --confirm puts the mirror back" in ok("repair", graph).stdout
    assert "drift_needs_repair" in str(answer("optimize", graph))
    assert "healed: no row had changed" in ok("repair", graph, "--confirm").stdout
    mirror(graph).delete("true")
    said = ok("repair", graph, "--type", "Port", "--discard", "--confirm").stdout
    assert "put back to what the graph shows" in said
    assert "Nothing to do" in ok("repair", graph).stdout
    assert mirror(graph).count_rows() == 2


def test_indexes_of_another_lineage_are_told_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "g"
    with monkeypatch.context() as older:
        # What older releases did: the session of a version serves all that are made on it.
        older.setattr(namespace.Succession, "claim", lambda _: True)
        older.setattr(staging, "verify_indexes", lambda *_: None)
        with omnigraph.init(place, "node N { k: String @key }") as made:
            made.load({"N": [{"k": f"x{i}"} for i in range(40)]})
            made.branches.create("b")
            made.load({"N": [{"k": f"m{i}"} for i in range(40)]})
            made.optimize()
            for start in range(0, 40, 10):
                made.load({"N": [{"k": f"b{i}"} for i in range(start, start + 10)]}, branch="b")
    found = run("check", place, "--full")
    assert found.exit_code == 1
    assert "branch b node:N" in found.stdout
    assert "index omnigraph_btree_1 of k is not to be trusted" in found.stdout
    assert "omnigraph repair --confirm" in found.stdout
    preview = ok("repair", place).stdout
    assert preview.startswith("b node:N  index omnigraph_btree_0  --confirm replaces it\n")
    done = answer("repair", place, "--confirm")
    assert [(i["branch"], i["column"], i["action"]) for i in done["indexes"]] == [
        ("b", "id", "rebuilt"),
        ("b", "k", "rebuilt"),
    ]
    assert [commit["actor_id"] for commit in done["commits"]] == ["omnigraph:repair:indexes"]
    assert ok("repair", place).stdout.startswith("Nothing to do")
    assert ok("check", place, "--full").stdout.startswith("Whole: 2 branches")


def test_a_moved_graph_says_so_until_its_mirrors_are_made_anew(graph: Path, tmp_path: Path) -> None:
    ok("repair", graph, "--confirm")
    assert "mirrors:" in ok("status", graph).stdout
    assert answer("status", graph)["mirror"]["made_at"] is None
    moved = graph.rename(tmp_path / "moved")
    shown = answer("status", moved)["mirror"]
    assert (shown["made_at"], shown["behind"]) == (str(graph), ["CallsAt", "Port", "Vessel"])
    told = run("query", moved, "-e", "match { $p: Port } return { count($p) as n }")
    assert f"was moved or copied from {graph}: " in told.stderr
    assert "omnigraph repair --confirm" in told.stderr
    said = ok("status", moved).stdout
    assert f"refer to {graph}: the graph was moved or copied" in said
    assert "omnigraph repair --confirm" in said
    found = run("check", moved, "--json")
    codes = {f["code"] for f in json.loads(found.stdout)["findings"]}
    assert (found.exit_code, codes) == (1, {"mirror"})
    tables = "node:Vessel, node:Port, edge:CallsAt"
    assert ok("repair", moved).stdout == (
        f"--confirm makes anew 3 mirrors for other programs: {tables}\n"
    )
    assert ok("repair", moved, "--confirm").stdout == (
        f"Made anew 3 mirrors for other programs: {tables}\n"
    )
    assert lance.dataset(str(moved / "tables" / "Port.lance")).count_rows() == 1
    assert ok("repair", moved, "--confirm").stdout.startswith("Nothing to do")
    assert answer("status", moved)["mirror"]["made_at"] is None
    ok("check", moved)


def test_the_next_write_of_a_copy_makes_all_of_its_mirrors_anew(
    graph: Path, tmp_path: Path
) -> None:
    ok("repair", graph, "--confirm")
    copy = Path(shutil.copytree(graph, tmp_path / "copy"))
    ok("mutate", copy, "-e", 'update Port set { berths: 3 } where code = "AAR"')
    assert answer("status", copy)["mirror"]["behind"] == []
    shutil.rmtree(graph)
    for name in ("Vessel", "Port", "CallsAt"):
        lance.dataset(str(copy / "tables" / f"{name}.lance")).to_table()
    ok("check", copy)
