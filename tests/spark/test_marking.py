"""A cleanup whose marking runs on Spark keeps and removes exactly what one in this process does."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import omnigraph
from omnigraph.api import engines as loading
from omnigraph.errors import CorruptionError, UsageError
from omnigraph.spark import marking
from omnigraph.spark.marking import mark_on_spark
from omnigraph.upkeep.sweep import mark_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person { name: String @key  age: I64? @index  text: Blob? }
edge Knows: Person -> Person
"""


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A past of all kinds of changes: rows, branches, tags, columns, indexes, joined files."""
    place = tmp_path_factory.mktemp("marking") / "g"
    chance = random.Random(7)
    with omnigraph.init(place, SCHEMA) as graph:
        for step in range(40):
            names = chance.sample("abcdefgh", 3)
            people = [{"type": "Person", "data": {"name": n, "age": step}} for n in names]
            mode = chance.choice(["merge", "merge", "merge", "overwrite"])
            branch = "work" if step > 10 and chance.random() < 0.3 else "main"
            graph.load(people, mode=mode if step % 9 else "merge", branch=branch)
            if step == 10:
                graph.branches.create("work")
            if step % 7 == 3:
                graph.optimize()
            if step == 20:
                graph.tags.create("v1")
            if step == 25:
                text = SCHEMA.replace("age: I64?", 'years: I64? @rename_from("age")')
                graph.schema_apply(text + "node Pet { name: String @key }", confirm=True)
                break
    return place


@pytest.fixture
def copies(history: Path, tmp_path: Path) -> Iterator[tuple[omnigraph.Graph, omnigraph.Graph]]:
    places = [tmp_path / "one", tmp_path / "other"]
    for place in places:
        shutil.copytree(history, place)
    with omnigraph.open(places[0]) as one, omnigraph.open(places[1]) as other:
        yield one, other


def left(graph: omnigraph.Graph) -> set[str]:
    """Names below the root; those that a cleanup makes itself are drawn at random."""
    root = Path(graph.uri)
    names = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
    return {n for n in names if n.startswith(("nodes/", "edges/", "_schema/"))}


def told(report: Any) -> list[tuple[Any, ...]]:
    return [
        (p.type_key, p.files_removed, p.bytes_removed, p.error) for p in report.places if p.is_table
    ]


def test_the_same_is_kept_and_removed(
    spark: SparkSession, copies: tuple[omnigraph.Graph, omnigraph.Graph]
) -> None:
    here, there = copies
    local = here.upkeep.cleanup(keep=3, grace=0, confirm=True, engine="local")
    tasks = there.upkeep.cleanup(keep=3, grace=0, confirm=True, engine="spark", spark=spark)
    assert local.files_removed > 0
    assert told(tasks) == told(local)
    assert left(there) == left(here)
    with omnigraph.open(there.uri) as fresh:
        assert fresh.upkeep.check(full=True, history=True).ok
        assert fresh.upkeep.cleanup(keep=3, grace=0).places == ()


def test_the_files_of_versions(
    spark: SparkSession, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marking, "VERSIONS_PER_TASK", 3)
    with omnigraph.open(history) as graph:
        repository = graph._repository
        states = [repository.lineage.snapshot(c.place) for c in graph.commits()]
        versions = list({s.pins["node:Person"].name for s in states if s.pins})
        assert len(versions) > 10
        found = list(mark_on_spark(spark, repository.location, versions))
        assert set(found) == set(mark_here(repository)(versions))
        assert len(found) == len(set(found))
        assert list(mark_on_spark(spark, repository.location, [])) == []


def test_many_versions_are_left_to_spark(
    spark: SparkSession,
    copies: tuple[omnigraph.Graph, omnigraph.Graph],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, _ = copies
    asked: list[int] = []
    real = marking.mark_on_spark

    def counted(*arguments: Any) -> Any:
        asked.append(len(arguments[-1]))
        return real(*arguments)

    monkeypatch.setattr(marking, "mark_on_spark", counted)
    graph.upkeep.cleanup(keep=9, grace=0)
    assert asked == []
    monkeypatch.setattr(loading, "AUTO_VERSIONS", 4)
    graph.upkeep.cleanup(keep=9, grace=0)
    assert asked
    assert min(asked) >= 4


def test_damage_that_a_task_finds_comes_home(
    spark: SparkSession, copies: tuple[omnigraph.Graph, omnigraph.Graph]
) -> None:
    graph, _ = copies
    pin = graph._repository.head("work").snapshot.pins["node:Person"].name
    (Path(graph.uri) / pin.manifest).unlink()
    with pytest.raises(CorruptionError):
        list(mark_on_spark(spark, graph._repository.location, [pin]))
    report = graph.upkeep.cleanup(keep=1, grace=0, confirm=True, engine="spark", spark=spark)
    assert [e.type_key for e in report.errors] == ["node:Person"]


def test_an_engine_that_there_is_not(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph, pytest.raises(UsageError):
        graph.upkeep.cleanup(keep=1, engine="steam")
