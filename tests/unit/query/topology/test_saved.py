"""What one process saves of a topology serves another, which reads nothing of it again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from topology_support import BASE, SIDES, Topology, Versions, check, edge_rows, node_rows, reads

from omnigraph.query.topology import edge_parts
from omnigraph.query.topology.array_files import ArrayFiles
from omnigraph.query.topology.saved import TopologyFiles
from omnigraph.query.topology.vertices import VertexSpace
from omnigraph.storage.tables import Table

PEOPLE = sorted({end for _, *ends in BASE for end in ends})


@pytest.fixture(autouse=True)
def _every_edge_is_worth_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_parts, "SAVED_EDGES_MIN", 1)


class Process(Topology):
    """Knows nothing but what is on disk."""

    def __init__(self, folder: Path, graph: str = "graph") -> None:
        self.files = ArrayFiles(folder / "cache", 1 << 24)
        saved = TopologyFiles(self.files, graph)
        super().__init__(VertexSpace("nodes/n", saved), "edges/t", saved)

    @property
    def made(self) -> tuple[int, int, int]:
        return (*super().made, self.edges.loads)

    def names(self) -> set[str]:
        return {"-".join(n.split("-")[1:-1]) for n in self.files.newest("")}


class Graph:
    """A node and an edge table, and processes that use them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.node_versions = Versions(root / "g", "nodes/n")
        self.edge_versions = Versions(root / "g", "edges/t")
        self.nodes = self.node_versions.append(None, node_rows(PEOPLE))
        self.edges = self.edge_versions.append(None, edge_rows(BASE))

    def process(self, graph: str = "graph") -> tuple[Process, Table, Table]:
        nodes = self.node_versions.reopened(self.nodes)
        edges = self.edge_versions.reopened(self.edges)
        process = Process(self.root, graph)
        process.space.load(nodes)
        return process, nodes, edges

    def used(self) -> Process:
        """A process that has asked everything."""
        process, nodes, edges = self.process()
        process.space.rows(nodes)
        check(process, edges)
        return process


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return Graph(tmp_path)


def test_a_second_process_reads_nothing(graph: Graph) -> None:
    assert graph.used().made == (6, 0, 0)
    second, nodes, edges = graph.process()
    asked = [reads(nodes), reads(edges)]
    pinned = second.space.rows(nodes)
    assert pinned.row_count == len(PEOPLE)
    for side in SIDES:
        for per_edge in (False, True):
            assert second.edges.has(edges, side, per_edge=per_edge)
            second.edges.adjacency(edges, side, per_edge=per_edge)
    assert asked == [[], []]
    check(second, edges)
    assert second.made == (0, 0, 6)
    numbers = [second.space.number_of(p) for p in PEOPLE]
    assert pinned.rows(second.space.find(pa.array(PEOPLE))).tolist() == numbers
    assert second.space.number_of("nobody") == -1


def test_what_came_since_is_read_and_nothing_else(graph: Graph) -> None:
    graph.used()
    graph.nodes = graph.node_versions.append(graph.nodes, node_rows(["fresh"]))
    graph.edges = graph.edge_versions.append(graph.edges, edge_rows([("new", "p1", "fresh")]))
    graph.edges = graph.edge_versions.remove(graph.edges, ["e3", "e7"])
    second, nodes, edges = graph.process()
    asked = [reads(nodes), reads(edges)]
    second.space.rows(nodes)
    assert second.edges.has(edges, "out", per_edge=False), "but for one file"
    assert asked == [[1], []]
    second.edges.adjacency(edges, "out", per_edge=False)
    assert asked == [[1], [1]]
    check(second, edges)
    assert second.made == (0, 6, 6)


def test_many_small_files_of_a_remote_store_are_not_read_for_one_question(
    graph: Graph, monkeypatch
) -> None:
    graph.used()
    for step in range(2):
        rows = edge_rows([(f"new{step}", "p1", "q5")])
        graph.edges = graph.edge_versions.append(graph.edges, rows)
    second, _, edges = graph.process()
    assert second.edges.has(edges, "out", per_edge=False)
    monkeypatch.setattr(Table, "is_remote", True)
    assert not second.edges.has(edges, "out", per_edge=False)
    assert not second.edges.has(edges, "in", per_edge=True)


def test_a_version_far_away_is_made_anew_and_saved(graph: Graph, monkeypatch) -> None:
    monkeypatch.setattr("omnigraph.query.topology.edges.SMALL_CHANGE_MIN", 0)
    graph.used()
    more = [(f"m{i}", f"p{i}", f"x{i}") for i in range(30)]
    graph.nodes = graph.node_versions.append(graph.nodes, node_rows(f"x{i}" for i in range(30)))
    graph.edges = graph.edge_versions.append(graph.edges, edge_rows(more))
    assert graph.used().made == (6, 0, 0)
    assert graph.used().made == (0, 0, 6)


def test_an_older_version_serves_beside_a_newer_one(graph: Graph, monkeypatch) -> None:
    monkeypatch.setattr("omnigraph.query.topology.edges.SMALL_CHANGE_MIN", 0)
    graph.used()
    older = graph.edges
    more = [(f"m{i}", f"p{i % 7}", f"q{i}x") for i in range(30)]
    graph.edges = graph.edge_versions.append(graph.edges, edge_rows(more))
    graph.used()
    graph.edges = older
    assert graph.used().made == (0, 0, 6)


def test_numbers_of_another_dictionary_are_not_used(graph: Graph) -> None:
    """A process that gave numbers of its own before it looked for those of others."""
    graph.used()
    own, nodes, edges = graph.process()
    own = Process(graph.root)
    own.space.intern(pa.array(["zz", *reversed(PEOPLE)]))
    check(own, edges)
    assert own.made[0] == 6
    assert own.made[2] == 0
    assert own.space.rows(nodes).row_count == len(PEOPLE)


def test_another_graph_finds_nothing(graph: Graph) -> None:
    graph.used()
    other, nodes, edges = graph.process("another graph")
    other.space.rows(nodes)
    check(other, edges)
    assert other.made == (6, 0, 0)


def test_damaged_files_are_made_again(graph: Graph) -> None:
    graph.used()
    folder = graph.root / "cache"
    for number, path in enumerate(sorted(folder.iterdir())):
        content = bytearray(path.read_bytes())
        content[number] ^= 1
        path.write_bytes(bytes(content))
    assert graph.used().made == (6, 0, 0)
    assert graph.used().made == (0, 0, 6)


def test_any_of_the_files_may_vanish_at_any_time(graph: Graph) -> None:
    process = graph.used()
    names = sorted((graph.root / "cache").iterdir())
    assert len(names) == 8
    for path in names:
        path.unlink()
        check(process, graph.edge_versions.reopened(graph.edges))
        graph.used()
        assert len(list((graph.root / "cache").iterdir())) >= 8


def test_few_edges_are_no_file(graph: Graph, monkeypatch) -> None:
    monkeypatch.setattr(edge_parts, "SAVED_EDGES_MIN", len(BASE) + 1)
    assert graph.used().names() == set()


def test_files_of_one_kind_stay_few(graph: Graph, monkeypatch) -> None:
    monkeypatch.setattr("omnigraph.query.topology.edges.SMALL_CHANGE_MIN", 0)
    for number in range(5):
        more = [(f"m{number}.{i}", f"p{i % 7}", f"q{i}") for i in range(30)]
        graph.edges = graph.edge_versions.append(graph.edges, edge_rows(more))
        graph.used()
    kinds = [n.split("-", 1)[1].rsplit("-", 1)[0] for n in graph.used().files.newest("")]
    assert max(kinds.count(kind) for kind in kinds) == 2


def test_the_edges_of_some_nodes_are_found_without_an_adjacency(graph: Graph) -> None:
    process = graph.used()
    graph.edges = graph.edge_versions.remove(graph.edges, ["e3"])
    graph.edges = graph.edge_versions.append(graph.edges, edge_rows([("loop", "p1", "p1")]))
    process.edges.adjacency(graph.edge_versions.reopened(graph.edges), "out", per_edge=True)
    table = graph.edge_versions.reopened(graph.edges)
    assert process.edges.knows_ends(table)
    for names in (["p1"], ["p3", "q5"], PEOPLE, ["nobody"]):
        numbers = process.space.find(pa.array(names))
        for side in SIDES:
            found = process.edges.edges_at(table, side, numbers[numbers >= 0])
            rows = zip(
                process.space.text(found.sources).to_pylist(),
                process.space.text(found.targets).to_pylist(),
                strict=True,
            )
            expected = [(a, b) for _, a, b in process.rows(table, side) if a in names]
            assert sorted(rows) == sorted(expected), (names, side)
