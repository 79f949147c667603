"""An index answers for the lineage that it was built on, and for no other of the same table."""

from __future__ import annotations

from pathlib import Path

import pytest
from two_lineages import (
    COLOR_QUERY,
    COLORS,
    HISTORIES,
    KEY_QUERY,
    PART_QUERY,
    SCHEMA,
    ask_indexes,
    content,
    table_of,
    wrong_answers,
)

import omnigraph
from omnigraph.errors import InternalError
from omnigraph.storage import namespace
from omnigraph.storage.indexing import IndexKind

KEYED = "node N { k: String @key }"


def keys(name: str, start: int, stop: int) -> dict[str, list[dict[str, str]]]:
    return {"N": [{"k": f"{name}{i}"} for i in range(start, stop)]}


def ask(graph: omnigraph.Graph, branch: str, key: str) -> list[str]:
    found = graph.query(KEY_QUERY, {"v": key}, branch=branch).to_dicts()
    return [row["n.k"] for row in found]


@pytest.mark.parametrize("count", [50, 20_000])
@pytest.mark.parametrize("loads", [1, 2, 3, 4, 5])
def test_a_branch_is_not_answered_by_an_index_of_main(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, loads: int
) -> None:
    """Main is indexed after the branch was made; then the branch is written to."""
    ask_indexes(monkeypatch)
    with omnigraph.init(tmp_path / "g", KEYED) as graph:
        graph.load(keys("x", 0, count))
        graph.branches.create("b")
        graph.load(keys("m", 0, count))
        graph.optimize()
        for number in range(loads):
            graph.load(keys("b", number * 10, number * 10 + 10), branch="b")
        held = [f"b{i}" for i in range(loads * 10)]
        for handle in (graph, omnigraph.open(tmp_path / "g")):
            assert [ask(handle, "b", key) for key in held] == [[key] for key in held]
            assert [ask(handle, "main", key) for key in held] == [[]] * len(held)
            for key in ("x0", f"x{count - 1}", "m0", f"m{count - 1}"):
                assert ask(handle, "main", key) == [key]
                assert ask(handle, "b", key) == ([key] if key.startswith("x") else [])


def test_main_is_not_answered_by_an_index_of_a_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other way round: the row that stands where the branch has another one is not given."""
    ask_indexes(monkeypatch)
    count = 20_000
    with omnigraph.init(tmp_path / "g", KEYED) as graph:
        graph.load(keys("x", 0, count))
        graph.branches.create("b")
        graph.load(keys("b", 0, count), branch="b")
        graph.optimize(branch="b")
        for number in range(4):
            graph.load(keys("m", number * count, (number + 1) * count))
        with omnigraph.open(tmp_path / "g") as fresh:
            for handle in (graph, fresh):
                assert ask(handle, "main", "b0") == []
                assert ask(handle, "main", f"m{count}") == [f"m{count}"]


@pytest.fixture(scope="module", params=list(HISTORIES))
def history(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[str]]:
    """A graph with two lineages, and what its own handle answered wrongly."""
    place = tmp_path_factory.mktemp("lineages") / "g"
    with pytest.MonkeyPatch.context() as patch:
        ask_indexes(patch)
        with omnigraph.init(place, SCHEMA) as graph:
            HISTORIES[request.param](graph)
            return place, wrongly_answered(graph)


def wrongly_answered(graph: omnigraph.Graph) -> list[str]:
    """Keys, colours and parts of texts by queries, on every branch."""
    wrong: list[str] = []
    for name in ("main", "b"):
        held = content(table_of(graph, name))
        for key in list(held)[::20]:
            for text, value in ((KEY_QUERY, key), (PART_QUERY, f"word{key} ")):
                wrong += differing(graph, name, text, value, {key})
        for color in COLORS:
            expected = {k for k, r in held.items() if r["color"] == color}
            wrong += differing(graph, name, COLOR_QUERY, color, expected)
    return wrong


def differing(
    graph: omnigraph.Graph, branch: str, text: str, value: str, expected: set[str]
) -> list[str]:
    try:
        found = {row["n.k"] for row in graph.query(text, {"v": value}, branch=branch).to_dicts()}
    except omnigraph.CorruptionError as e:  # Lance may notice an address that is not there.
        return [f"{branch} {value}: {e.message}"]
    return [] if found == expected else [f"{branch} {value}: {sorted(found)[:5]}"]


def test_queries_of_the_handle_that_made_both(history: tuple[Path, list[str]]) -> None:
    assert history[1] == []


def test_queries_of_a_fresh_handle(
    history: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_indexes(monkeypatch)
    with omnigraph.open(history[0]) as graph:
        assert wrongly_answered(graph) == []


@pytest.mark.parametrize("kind", list(IndexKind))
def test_every_kind_of_index_finds_the_rows_of_its_own_version(
    history: tuple[Path, list[str]], kind: IndexKind
) -> None:
    with omnigraph.open(history[0]) as graph:
        assert {name: wrong_answers(table_of(graph, name), kind) for name in ("main", "b")} == {
            "main": [],
            "b": [],
        }


def test_the_histories_build_every_kind_of_index(history: tuple[Path, list[str]]) -> None:
    """Else the others would show nothing: two by value, colours, words, parts and vectors."""
    assert len(list(history[0].glob("nodes/*/_indices/*"))) >= 6


def test_a_version_that_lists_foreign_indexes_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If Lance shared what it knows in a way that the rule does not cover, the write would fail."""
    monkeypatch.setattr(namespace.Succession, "claim", lambda _: True)
    with omnigraph.init(tmp_path / "g", KEYED) as graph:
        graph.load(keys("x", 0, 50))
        graph.branches.create("b")
        graph.load(keys("m", 0, 50))
        graph.optimize()
        graph.load(keys("b", 0, 10), branch="b")
        graph.load(keys("b", 10, 20), branch="b")
        before = graph.commits(branch="b", limit=1)[0].id
        with pytest.raises(InternalError, match="built for another one") as caught:
            graph.load(keys("b", 20, 30), branch="b")
        assert len(caught.value.details["segments"]) == 2
        assert graph.commits(branch="b", limit=1)[0].id == before
        # The failed write let go of what it had seen: the next one starts from a fresh open.
        monkeypatch.undo()
        graph.load(keys("b", 20, 30), branch="b")
        assert table_of(graph, "b").dataset.describe_indices() == []
