"""Small files are joined by ordinary writes: unseen, and whatever kind of write comes next."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.failpoints import FailPoint, FailPointError, armed
from omnigraph.storage import compact
from omnigraph.testing.clock import ManualClock

SCHEMA = """
node P { name: String @key  n: I32?  tags: [String]?  v: Vector(2)?  at: DateTime? }
node B { name: String @key  data: Blob? }
edge E: P -> P { w: F64? }
"""


@pytest.fixture(autouse=True)
def short_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "TAIL_MAX", 5)


def p(number: int, **more) -> dict:
    data = {"name": f"p{number:03}", "n": number, "tags": ["a", str(number)][: number % 3]}
    return {"type": "P", "data": data | {"at": "2026-01-01T00:00:00Z"} | more}


def fragments(graph: omnigraph.Graph, key: str = "node:P") -> list[int]:
    """Live rows of each fragment, in storage order."""
    pin = graph._repository.branch("main").head.snapshot.pins[key]
    return [f.live_rows for f in graph._repository.table(pin).layout.fragments]


def names(graph: omnigraph.Graph) -> list[str]:
    found = graph.query("match { $p: P } return { $p.name } order { $p.name }").to_dicts()
    return [row["p.name"] for row in found]


def test_the_number_of_files_stays_small_and_nothing_is_lost(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA, clock=ManualClock()) as graph:
        most = 0
        for i in range(60):
            graph.load([p(i)])
            most = max(most, len(fragments(graph)))
        assert most <= 9
        assert names(graph) == [f"p{i:03}" for i in range(60)]
        expected = {i: p(i)["data"]["tags"] for i in range(60)}
        rows = graph.query("match { $p: P } return { $p.n, $p.tags }").to_dicts()
        assert {r["p.n"]: r["p.tags"] for r in rows} == expected
    with omnigraph.open(tmp_path / "g") as cold:
        assert names(cold) == [f"p{i:03}" for i in range(60)]
        assert cold.query('match { $p: P { name: "p031" } } return { $p.n }').to_dicts() == [
            {"p.n": 31}
        ]


def test_every_commit_shows_what_it_did_and_nothing_else(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        commits = [graph.load([p(i)]).commit for i in range(12)]
        for number, commit in enumerate(commits):
            assert commit is not None
            block = graph.changes.commit(commit.id)
            assert [c.id for c in block.changes] == [f"p{number:03}"]
            shown = graph.snapshot(commit=commit.id)
            assert shown.count("P") == number + 1
        changes = list(graph.diff(commits[3].id, commits[8].id))
        assert sorted(c.id for c in changes) == [f"p{i:03}" for i in range(4, 9)]


@pytest.mark.parametrize("kind", ["append", "merge", "update", "delete", "both"])
def test_any_kind_of_write_may_find_a_long_tail(tmp_path: Path, kind: str) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(4):
            graph.load([p(i)])
        graph.mutate('delete P where name = "p001"')
        graph.load([p(5)])
        assert fragments(graph) == [1, 1, 1, 1]
        graph.load([p(6)])
        assert len(fragments(graph)) == 5
        left = {0: 0, 2: 2, 3: 3, 5: 5, 6: 6}
        match kind:
            case "append":
                graph.load([p(7)])
                left[7] = 7
            case "merge":
                graph.load([p(2, n=20), p(7)], mode="merge")
                left |= {2: 20, 7: 7}
            case "update":
                graph.mutate('update P set { n: 30 } where name = "p003"')
                left[3] = 30
            case "delete":
                graph.mutate('delete P where name = "p000"')
                del left[0]
            case _:
                graph.mutate(
                    'update P set { n: 30 } where name = "p003"\ninsert P { name: "p009", n: 9 }'
                )
                left[3], left[9] = 30, 9
        assert len(fragments(graph)) <= 3, fragments(graph)
        found = graph.query("match { $p: P } return { $p.name, $p.n }").to_dicts()
        assert {int(r["p.name"][1:]): r["p.n"] for r in found} == left
        graph.load([p(50)])
        assert len(names(graph)) == len(left) + 1
        knows_where_its_rows_lie(graph)


def knows_where_its_rows_lie(graph: omnigraph.Graph) -> None:
    """What a handle took over from version to version is what a fresh one reads."""
    repository = graph._repository
    for pin in repository.branch("main").head.snapshot.pins.values():
        own, fresh = repository.table(pin), repository.tables.open(pin.name)
        assert own is not fresh
        assert own.layout.fragments == fresh.layout.fragments
        assert own.layout.all_addresses().tolist() == fresh.layout.all_addresses().tolist()
        for column in own.dataset.schema.names:
            assert own.memory.column_id(column) == fresh.memory.column_id(column)
        with pytest.raises(omnigraph.ConstraintError):
            graph.load([p(50)])


def test_files_that_an_index_covers_are_left_alone(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(4):
            graph.load([p(i)])
        graph.optimize()
        for i in range(4, 10):
            graph.load([p(i)])
        assert fragments(graph) == [4, 5, 1]
        status = next(s for s in graph.indexes() if s.property_name == "id" and "P" in s.type_key)
        assert status.rows_indexed == 4
        graph.optimize()
        assert names(graph) == [f"p{i:03}" for i in range(10)]


def test_tables_with_blobs_are_left_to_optimize(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(8):
            graph.load([{"type": "B", "data": {"name": f"b{i}", "data": "base64:AAEC"}}])
        assert len(fragments(graph, "node:B")) == 8
        graph.optimize()
        assert len(fragments(graph, "node:B")) == 1


def test_large_files_are_left_to_optimize(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(compact, "TAIL_BYTES_MAX", 3_000)
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(8):
            graph.load([p(i)])
        assert len(fragments(graph)) == 8


def test_another_process_joins_what_it_did_not_write(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(5):
            graph.load([p(i, v=[i, 1])])
    with omnigraph.open(tmp_path / "g") as other:
        other.load([p(5)])
        assert fragments(other) == [5, 1]
        rows = other.query("match { $p: P } return { $p.name, $p.v } order { $p.name }").to_dicts()
        assert [row["p.v"] for row in rows] == [[i, 1.0] for i in range(5)] + [None]


def test_branches_join_on_their_own_and_merge_by_value(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(5):
            graph.load([p(i)])
        graph.branches.create("work")
        graph.load([p(10)])
        graph.load([p(11)], branch="work")
        graph.load([p(2, n=22)], mode="merge", branch="work")
        result = graph.merge("work")
        assert result.commit is not None
        assert names(graph) == ["p000", "p001", "p002", "p003", "p004", "p010", "p011"]
        assert graph.query('match { $p: P { name: "p002" } } return { $p.n }').to_dicts() == [
            {"p.n": 22}
        ]
        merged = graph.changes.commit(result.commit.id)
        assert sorted(c.id for c in merged.changes) == ["p002", "p011"]


def test_a_lost_race_joins_again_on_what_won(tmp_path: Path) -> None:
    with (
        omnigraph.init(tmp_path / "g", SCHEMA) as graph,
        omnigraph.open(tmp_path / "g") as other,
    ):
        for i in range(5):
            graph.load([p(i)])
        with armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: other.load([p(40)])):
            graph.load([p(5)])
        assert names(graph) == [*(f"p{i:03}" for i in range(6)), "p040"]
        assert sum(fragments(graph)) == 7


def test_a_write_that_fails_leaves_the_tail_as_it_was(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(5):
            graph.load([p(i)])
        with armed(FailPoint.WRITE_ALL_STAGED, "raise"), pytest.raises(FailPointError):
            graph.load([p(5)])
        assert fragments(graph) == [1] * 5
        graph.load([p(5)])
        assert fragments(graph) == [5, 1]
        assert names(graph) == [f"p{i:03}" for i in range(6)]


def test_synced_to_disk(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA, durability="fsync") as graph:
        for i in range(7):
            graph.load([p(i)])
        assert sum(fragments(graph)) == 7
        assert len(fragments(graph)) < 5
