"""Graphs whose topology lies in files of the user: many processes, tight limits, right answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import LimitError
from omnigraph.query.exec import lookups, world
from omnigraph.query.topology import edge_parts, sorting, vertices
from omnigraph.storage.tables import Table
from omnigraph.testing.clock import ManualClock

SCHEMA = "node N { name: String @key  n: I64 }\nedge Next: N -> N\n"
LENGTH = 300
TWO = "match { $a: N  $a next $b  $b next $c } return { count($a) as n }"
HOP = "query q($n: String) { match { $a: N { name: $n }  $a next $b } return { $b.name, $b.n } }"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ring, and its cache."""
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(edge_parts, "SAVED_EDGES_MIN", 10)
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load({"N": [{"name": f"n{i}", "n": i} for i in range(LENGTH)]})
        for start in range(0, LENGTH, 100):
            ends = [(i, (i + 1) % LENGTH) for i in range(start, start + 100)]
            graph.load({"Next": [{"src": f"n{a}", "dst": f"n{b}"} for a, b in ends]})
    return tmp_path / "g"


def topology(graph: omnigraph.Graph):
    (found,) = graph._engine._caches._edges.values()
    return found


def ask(graph: omnigraph.Graph) -> list:
    hops = [graph.query(HOP, {"n": f"n{i}"}).to_dicts() for i in (0, 5, LENGTH - 1)]
    return [graph.query(TWO).to_dicts(), *hops]


EXPECTED = [
    [{"n": LENGTH}],
    [{"b.name": "n1", "b.n": 1}],
    [{"b.name": "n6", "b.n": 6}],
    [{"b.name": "n0", "b.n": 0}],
]


def test_a_second_handle_maps_what_the_first_has_made(place: Path) -> None:
    with omnigraph.open(place) as graph:
        assert ask(graph) == EXPECTED
        assert (topology(graph).builds, topology(graph).loads) == (1, 0)
    with omnigraph.open(place) as graph:
        assert ask(graph) == EXPECTED
        assert (topology(graph).builds, topology(graph).loads) == (0, 1)


def test_later_commits_are_put_on_top(place: Path) -> None:
    with omnigraph.open(place) as graph:
        ask(graph)
        graph.mutate('delete Next where src = "n5"')
        graph.mutate('insert N { name: "new", n: 7 }')
        graph.load({"Next": [{"src": "n5", "dst": "new"}]})
        before = graph.commits(limit=4)[3].id
    with omnigraph.open(place) as graph:
        assert graph.query(HOP, {"n": "n5"}).to_dicts() == [{"b.name": "new", "b.n": 7}]
        assert graph.query(TWO).to_dicts() == [{"n": LENGTH - 1}]
        assert topology(graph).builds == 0
        assert graph.query(HOP, {"n": "n5"}, commit=before).to_dicts() == EXPECTED[2]
        assert topology(graph).builds == 0


def test_nothing_is_kept_on_disk_where_that_is_not_wanted(place: Path, monkeypatch) -> None:
    for said in ("off", ""):
        monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", said)
        with omnigraph.open(place) as graph:
            assert ask(graph) == EXPECTED
    monkeypatch.setenv("OMNIGRAPH_CACHE_DIR", str(place.parent / "cache"))
    monkeypatch.setenv("OMNIGRAPH_DISK_CACHE_BYTES", "0")
    with omnigraph.open(place) as graph:
        assert ask(graph) == EXPECTED
    assert not (place.parent / "cache").exists()


def test_the_folder_of_the_user_is_the_default(place: Path, monkeypatch) -> None:
    monkeypatch.delenv("OMNIGRAPH_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place.parent / "own"))
    with omnigraph.open(place) as graph:
        ask(graph)
    folder = place.parent / "own" / "omnigraph" / "topology"
    assert folder.stat().st_mode & 0o077 == 0
    assert len(list(folder.iterdir())) == 3


PROCESS = """
import sys, omnigraph
from omnigraph.query.topology import edge_parts
edge_parts.SAVED_EDGES_MIN = 10
sys.stdin.readline()
with omnigraph.open(sys.argv[1]) as graph:
    for _ in range(3):
        print(graph.query(sys.argv[2]).to_dicts())
"""


def test_processes_that_make_it_at_the_same_time(place: Path) -> None:
    command = [sys.executable, "-c", PROCESS, str(place), TWO]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = []
    for process in running:  # All have imported what they need, or nearly.
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        answers += process.communicate(timeout=120)[0].splitlines()
        assert process.returncode == 0
    assert answers == [str(EXPECTED[0])] * 9
    left = [p.suffix for p in (place.parent / "cache" / "topology").iterdir()]
    assert set(left) == {".arrays"}
    with omnigraph.open(place) as graph:
        assert ask(graph) == EXPECTED
        assert topology(graph).builds == 0


class _Ticking(ManualClock):
    """A second goes by whenever it is looked at."""

    def monotonic_s(self) -> float:
        self.advance(1)
        return super().monotonic_s()


@pytest.mark.parametrize("saved", [True, False])
def test_time_is_looked_at_inside_long_steps(place: Path, monkeypatch, saved) -> None:
    """With every piece small, each of the many pieces is a place to stop."""
    if not saved:
        monkeypatch.setattr(edge_parts, "SAVED_EDGES_MIN", 10**9)
        monkeypatch.setattr("omnigraph.query.topology.edges.PIECEWISE_MIN", 0)
    monkeypatch.setattr(vertices, "GROUP_ROWS", 1)
    monkeypatch.setattr(sorting, "BUCKET_EDGES", 1)
    stopped = set()
    for limit in range(3, 60, 4):
        with omnigraph.open(place, clock=_Ticking()) as graph:
            try:
                graph.query(TWO, timeout_s=limit)
            except LimitError as e:
                stopped.add(e.details["step"])
            else:
                break
    assert {"reading edges", "sorting edges"} <= stopped
    folder = place.parent / "cache" / "topology"
    assert not folder.exists() or {p.suffix for p in folder.iterdir()} <= {".arrays"}
    with omnigraph.open(place) as graph:
        assert ask(graph) == EXPECTED


THREE = (
    "query q($n: String) { match { $a: N { name: $n }  $a next $b  $b next $c  $c next $d } "
    "return { $d.name } }"
)


@pytest.mark.parametrize(("question", "hops"), [(THREE, 3), (HOP, 1)])
def test_edges_without_an_index_are_scanned_once(place: Path, monkeypatch, question, hops) -> None:
    """Whatever the guess about degrees was, the second question has all edges made ready."""
    monkeypatch.setattr(world, "SCANNED_EDGES_MIN", 0)
    monkeypatch.setattr(world, "LOOKUP_COST", 0)
    monkeypatch.setattr(world, "LOOKUP_START_COST", 0)
    scanned: list[str] = []
    find_edges = lookups.find_edges

    def noted(table: Table, column: str, *given: object) -> object:
        scanned.append(column)
        return find_edges(table, column, *given)

    monkeypatch.setattr(lookups, "find_edges", noted)
    with omnigraph.open(place) as graph:
        for start in range(4):
            (row,) = graph.query(question, {"n": f"n{start}"}).to_dicts()
            assert next(iter(row.values())) == f"n{start + hops}"
        assert scanned == ["src"]
        assert topology(graph).builds == 1


@pytest.mark.parametrize("indexed", [True, False])
def test_no_more_is_looked_up_than_reading_all_would_cost(
    place: Path, monkeypatch, indexed
) -> None:
    """A whole-graph question with a cache for nothing: a handful of scans, not one a batch."""
    monkeypatch.setenv("OMNIGRAPH_CACHE_BYTES", "100")
    monkeypatch.setattr(lookups, "LOOKUP_BATCH", 1)
    monkeypatch.setattr(world, "SCANNED_EDGES_MIN", 0)
    columns = {"id", "src", "dst"} if indexed else set()
    monkeypatch.setattr(Table, "indexed_columns", frozenset(columns))
    asked = []
    among = Table.among
    monkeypatch.setattr(
        Table, "among", lambda self, *given: asked.append(len(given[1])) or among(self, *given)
    )
    with omnigraph.open(place) as graph:
        assert graph.query(TWO).to_dicts() == EXPECTED[0]
        texts = graph.query("match { $a: N  $a next $b } return { $b.name }").to_dicts()
        assert len(texts) == LENGTH
    assert len(asked) <= 5
