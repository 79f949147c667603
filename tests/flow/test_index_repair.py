"""Graphs that were really damaged, as older releases did it: `check` reports, `repair` repairs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from two_lineages import (
    HISTORIES,
    SCHEMA,
    STEP,
    ask_indexes,
    content,
    index_main,
    one_session_for_all,
    rows,
    table_of,
    write_on,
    wrong_answers,
)

import omnigraph
from omnigraph.storage.indexing import IndexKind, table_indexes
from omnigraph.storage.namespace import listed_segments
from omnigraph.upkeep.check import Finding
from omnigraph.upkeep.index_check import REPAIRER

DAMAGING = ("branch", "branch first", "rename", "reset", "adoption")
"""Those of the histories in which older releases went on from one version twice in one session."""
ALL_KINDS = 6
"""Of ids, keys, colours, words, parts and vectors."""


@pytest.fixture(scope="module", params=DAMAGING)
def damage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("damage") / "g"
    with pytest.MonkeyPatch.context() as patch:
        ask_indexes(patch)
        one_session_for_all(patch)
        with omnigraph.init(place, SCHEMA) as graph:
            HISTORIES[request.param](graph)
    return place


@pytest.fixture
def damaged(damage: Path, tmp_path: Path) -> Path:
    """A copy: repairs change it."""
    return Path(shutil.copytree(damage, tmp_path / "g", ignore=shutil.ignore_patterns("tables")))


def told(graph: omnigraph.Graph) -> list[Finding]:
    report = graph.upkeep.check(full=True)
    assert {finding.code for finding in report.findings} <= {"index"}, report.findings
    return list(report.findings)


def victims(graph: omnigraph.Graph) -> list[str]:
    """Branches on which some index gives wrong answers, by asking Lance itself."""
    return [
        name
        for name in ("main", "b")
        if any(wrong_answers(table_of(graph, name), kind) for kind in IndexKind)
    ]


def test_check_names_every_foreign_index_and_repair_replaces_it(damaged: Path) -> None:
    with omnigraph.open(damaged) as graph:
        (victim,) = victims(graph)
        (owner,) = {"main", "b"} - {victim}
        findings = told(graph)
        assert {finding.where for finding in findings} == {f"branch {victim} node:N"}
        named = {index.name for index in table_indexes(table_of(graph, victim))}
        assert len(findings) == len(named) == ALL_KINDS
        assert all(any(name in f.message for f in findings) for name in named)
        assert {finding.remedy for finding in findings} == {"run 'omnigraph repair --confirm'"}

        untouched = listed_segments(table_of(graph, owner).dataset)
        before = content(table_of(graph, victim))
        preview = graph.upkeep.repair()
        assert {(i.branch, i.action) for i in preview.indexes} == {(victim, "preview")}
        assert not preview.commits
        assert victims(graph) == [victim]

        report = graph.upkeep.repair(confirm=True)
        assert {(i.branch, i.action) for i in report.indexes} == {(victim, "rebuilt")}
        assert {i.index for i in report.indexes} == named
        assert [(c.branch, c.actor, c.kind) for c in report.commits] == [
            (victim, REPAIRER, "repair")
        ]
        assert told(graph) == []
        assert victims(graph) == []
        assert content(table_of(graph, victim)) == before
        assert len(table_indexes(table_of(graph, victim))) == ALL_KINDS
        assert listed_segments(table_of(graph, owner).dataset) == untouched
        again = graph.upkeep.repair(confirm=True)
        assert (again.indexes, again.commits) == ((), ())
    with omnigraph.open(damaged) as fresh:
        assert told(fresh) == []
        write_on(fresh, victim, "w", commits=2)
        fresh.optimize(branch=victim)
        assert victims(fresh) == []


def test_histories_of_this_release_have_no_findings(tmp_path: Path) -> None:
    """Two lineages with indexes of the same numbers, names and columns, joined and extended."""
    with pytest.MonkeyPatch.context() as patch:
        ask_indexes(patch)
        for number, make in enumerate(HISTORIES.values()):
            with omnigraph.init(tmp_path / f"g{number}", SCHEMA) as graph:
                make(graph)
                for name in ("main", "b"):
                    graph.load({"N": rows("x", 5, 9)["N"]}, mode="merge", branch=name)
                    graph.mutate('delete N where k = "x11"', branch=name)
                    assert told(graph) == []
                    graph.optimize(branch=name)
                    graph.build_indexes(branch=name)
                    assert told(graph) == []


def test_two_lineages_may_compact_the_files_of_one_index(tmp_path: Path) -> None:
    """An index knows rows: both have it afterwards over files of one number, which differ."""
    with pytest.MonkeyPatch.context() as patch, omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        ask_indexes(patch)
        for start in (0, 20):
            graph.load(rows("x", start, start + 20))
        graph.build_indexes()
        graph.branches.create("b")
        for name in ("main", "b"):
            graph.mutate(f'delete N where k = "x{5 if name == "b" else 25}"', branch=name)
            graph.optimize(branch=name)
        assert told(graph) == []


def test_an_index_over_files_that_are_still_to_come(tmp_path: Path) -> None:
    """Nothing is answered wrongly yet: the next files would get the numbers that it claims."""
    with pytest.MonkeyPatch.context() as patch:
        one_session_for_all(patch)
        with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
            graph.load(rows("x", 0, 40))
            graph.branches.create("b")
            index_main(graph)
            for number in range(6):
                graph.mutate(f'delete N where k = "x{number}"', branch="b")
    with omnigraph.open(tmp_path / "g") as graph:
        assert victims(graph) == []
        findings = told(graph)
        assert {f.where for f in findings} == {"branch b node:N"}
        assert {"never had" in f.message for f in findings} == {True}
        graph.upkeep.repair(confirm=True)
        assert told(graph) == []
        write_on(graph, "b", "b", commits=4)
        assert victims(graph) == []


def test_the_same_keys_at_the_same_places_with_other_values(tmp_path: Path) -> None:
    """Ids and keys happen to be answered rightly; colours, words, parts and vectors are not."""
    with pytest.MonkeyPatch.context() as patch:
        ask_indexes(patch)
        one_session_for_all(patch)
        with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
            graph.load(rows("x", 0, 260))
            graph.branches.create("b")
            graph.load(rows("y", 0, STEP))
            graph.build_indexes()
            for number in range(3):
                other = rows("y", number * STEP, (number + 1) * STEP)["N"]
                for row in other:
                    row |= {"color": "blue", "text": "else", "place": [9.0, 9.0, 9.0, 9.0]}
                graph.load({"N": other}, branch="b")
    with omnigraph.open(tmp_path / "g") as graph:
        found = {i.kind: i.name for i in table_indexes(table_of(graph, "b"))}
        findings = told(graph)
        assert {f.where for f in findings} == {"branch b node:N"}
        for kind in (IndexKind.BITMAP, IndexKind.NGRAM, IndexKind.TEXT, IndexKind.VECTOR):
            assert any(found[kind] in f.message for f in findings), kind
        graph.upkeep.repair(confirm=True)
        assert told(graph) == []


def test_only_the_types_that_were_named_are_repaired(damaged: Path) -> None:
    with omnigraph.open(damaged) as graph:
        (victim,) = victims(graph)
        assert graph.upkeep.repair(types=["N"]).indexes
        graph.tags.create("wrong", victim)
        assert "tag wrong node:N" in {f.where for f in told(graph)}
        assert any("make the tag again" in f.remedy for f in told(graph))


def test_writes_go_on_while_a_graph_is_damaged(damaged: Path) -> None:
    """What a version inherits is not looked into: it stops no write."""
    with omnigraph.open(damaged) as graph:
        (victim,) = victims(graph)
        write_on(graph, victim, "w", commits=2)
        assert victims(graph) == [victim]
        graph.upkeep.repair(confirm=True)
        assert victims(graph) == []
