"""The history as a table for other programs: every commit, once."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.housekeeping.projection import COMMITS_PER_TURN, PROJECTION_PATH, is_due, project
from omnigraph.manifest.snapshot import MAIN, MAIN_PATH, GraphCommit, ManifestPlace, Snapshot
from omnigraph.storage.records import Records, add_missing

SCHEMA = "node Person { name: String @key }"


def person(name: str) -> dict:
    return {"type": "Person", "data": {"name": name}}


def told(root: Path) -> list[dict]:
    return lance.dataset(str(root / PROJECTION_PATH)).to_table().to_pylist()


def test_commits_of_all_branches_are_told_once(tmp_path: Path) -> None:
    root = tmp_path / "g"
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load([person("a")], actor="ada", message="first")
        graph.branches.create("work")
        graph.load([person("b")], branch="work")
        graph.load([person("c")])
        graph.merge("work")
        graph.load([person("d")], branch="work")
        known = {c.id for c in graph.commits()}
        known |= {c.id for c in graph.commits(branch="work")}
    rows = told(root)
    assert sorted(row["graph_commit_id"] for row in rows) == sorted(known)
    by_kind = {row["kind"]: row for row in rows}
    assert set(by_kind) == {"init", "load", "merge"}
    assert by_kind["merge"]["merged_parent_commit_id"] in known
    first = next(row for row in rows if row["message"] == "first")
    assert (first["actor_id"], first["changes"]) == ("ada", '{"node:Person":[1,0,0]}')
    assert {row["graph_branch"] for row in rows} == {"main", "work"}


def test_a_handle_that_stays_open_tells_it_when_it_is_asked_to(tmp_path: Path) -> None:
    root = tmp_path / "g"
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load([person("a")])
        graph.branches.create("work")
        graph.load([person("b")], branch="work")
        assert graph.upkeep.mirror() == {"Person": "current"}
        known = {c.id for c in graph.commits(branch="work")}
        assert {row["graph_commit_id"] for row in told(root)} == known
        graph.load([person("c")])
        graph.upkeep.mirror()
        assert {row["graph_commit_id"] for row in told(root)} == known | {graph.commits()[0].id}


def test_it_can_be_made_anew(tmp_path: Path) -> None:
    root = tmp_path / "g"
    with omnigraph.init(root, SCHEMA) as graph:
        for i in range(COMMITS_PER_TURN + 40):  # More than one snapshot tells of.
            graph.load([person(f"p{i}")])
    everything = {row["graph_commit_id"] for row in told(root)}
    assert len(everything) == COMMITS_PER_TURN + 41
    shutil.rmtree(root / PROJECTION_PATH)
    with omnigraph.open(root) as graph:
        graph.load([person("more")])
    assert len({row["graph_commit_id"] for row in told(root)} - everything) == 1
    assert len(told(root)) == COMMITS_PER_TURN + 42


def test_many_that_write_it_at_once_write_each_commit_once(tmp_path: Path) -> None:
    root = tmp_path / "g"
    with omnigraph.init(root, SCHEMA) as graph:
        for i in range(20):
            graph.load([person(f"p{i}")])
        graph.settle()

        def tell(_: int) -> int:
            with omnigraph.open(root) as own:
                repository = own._repository
                return project(repository, repository.head("main").snapshot)

        with ThreadPoolExecutor(4) as pool:
            counts = list(pool.map(tell, range(8)))
        assert sum(counts) == 21
    ids = [row["graph_commit_id"] for row in told(root)]
    assert len(ids) == len(set(ids)) == 21


@pytest.mark.parametrize("there", [[], ["z"]])
def test_who_comes_second_looks_again(tmp_path: Path, there: list[str]) -> None:
    """Rows are added after one looked, and before that one writes; also the very first ones."""
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        location, looks = graph._repository.location, list[int]()
        add_missing(location, "r.lance", lambda _: pa.table({"id": pa.array(there, pa.string())}))

        def missing(records: Records) -> pa.Table:
            known = records.values("id")
            looks.append(len(known))
            if len(looks) == 1:
                add_missing(location, "r.lance", lambda _: pa.table({"id": ["a"]}))
            return pa.table({"id": pa.array(sorted({"a", "b"} - known), pa.string())})

        assert add_missing(location, "r.lance", missing) == 1
        assert looks == [len(there), len(there) + 1]
    found = lance.dataset(str(tmp_path / "g" / "r.lance")).to_table()["id"].to_pylist()
    assert sorted(found) == ["a", "b", *there]


def test_many_files_become_one(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("omnigraph.storage.records._FILES_MAX", 3)
    root = tmp_path / "g"
    with omnigraph.init(root, SCHEMA) as graph:
        for i in range(10):
            graph.load([person(f"p{i}")])
            project(graph._repository, graph._repository.head("main").snapshot)
    found = lance.dataset(str(root / PROJECTION_PATH))
    assert len(found.get_fragments()) <= 4
    assert found.count_rows() == 11
    files = [p for p in (root / PROJECTION_PATH).rglob("*") if p.is_file()]
    assert len(files) <= 3 * 4 + 1, "what earlier versions needed is gone"


def _made(version: int, generations: range) -> Snapshot:
    """A version that made commits of these generations, on one of the generation before them."""
    places = [
        ManifestPlace(path=MAIN_PATH, version=version, back=back)
        for back in reversed(range(len(generations)))
    ]
    before = ManifestPlace(path=MAIN_PATH, version=version - 1)
    commits = [
        GraphCommit(
            id=f"c{generation}",
            parent_id=None,
            merged_parent_id=None,
            branch=MAIN,
            place=place,
            kind="mutate",
            actor=None,
            message=None,
            created_at_us=0,
            changes={},
            generation=generation,
        )
        for generation, place in zip(
            (generations[0] - 1, *generations), (before, *places), strict=True
        )
    ]
    return Snapshot(
        graph_id="g",
        branch=MAIN,
        version=version,
        schema_hash="",
        pins={},
        commits=tuple(reversed(commits)),
    )


def test_of_commits_made_together_every_32nd_version_tells() -> None:
    turn = COMMITS_PER_TURN
    alone = [
        generation
        for generation in range(2, 200)
        if is_due(_made(generation + 7, range(generation, generation + 1)))
    ]
    assert alone == [turn * n for n in range(1, 7) if turn * n < 200]
    together = [
        version
        for version in range(2, 200)
        if is_due(_made(version, range(version * 40, version * 40 + 40)))
    ]
    assert together == alone
