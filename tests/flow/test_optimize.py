"""Optimize: what it does to tables, and that nobody can tell from an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint, FailPointError, armed
from omnigraph.storage.indexing import table_indexes
from omnigraph.upkeep import indexes
from omnigraph.upkeep import optimize as optimizing
from omnigraph.upkeep.indexes import IndexState

SCHEMA = """
node Person {
    name: String @key
    bio: String? @index
    level: enum(low, high)? @index
    age: I32? @index
    mail: String? @unique
    taste: Vector(4)? @index
    photo: Blob?
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? @index }
edge LivesIn: Person -> City
"""


def person(number: int, **more: Any) -> dict[str, Any]:
    data = {
        "name": f"p{number}",
        "bio": f"word{number % 5} everywhere",
        "level": ("low", "high")[number % 2],
        "age": number,
        "mail": f"m{number}@x",
        "photo": "base64:AAEC",
    }
    return {"type": "Person", "data": data | more}


def knows(source: int, target: int) -> dict[str, Any]:
    return {"edge": "Knows", "from": f"p{source}", "to": f"p{target}"}


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load([person(i) for i in range(60)])
        graph.load([knows(i, (7 * i) % 60) for i in range(60)])
        for i in range(60, 70):
            graph.load([person(i), knows(i, 0)])
        yield graph


def content(graph: omnigraph.Graph, place: Path, **state: Any) -> list[str]:
    graph.export(place, **state)
    return sorted(place.read_text().splitlines())


def fragment_count(graph: omnigraph.Graph, type_name: str) -> int:
    pins = graph._repository.branch("main").head.snapshot.pins
    key = next(k for k in pins if k.endswith(f":{type_name}"))
    return len(graph._repository.table(pins[key]).layout.fragments)


def states(graph: omnigraph.Graph) -> dict[str, str]:
    """Of all but the indexes of parts, which small tables do without."""
    return {
        f"{s.type_key}.{s.property_name}": str(s.state)
        for s in graph.indexes()
        if s.kind != "ngram"
    }


def parts(graph: omnigraph.Graph) -> tuple[str, int]:
    """The one index of parts: its state and the rows it covers."""
    (status,) = (s for s in graph.indexes() if s.kind == "ngram")
    assert (status.type_key, status.property_name) == ("node:Person", "bio")
    return str(status.state), status.rows_indexed


def test_optimize_joins_files_and_builds_every_declared_index(graph) -> None:
    done = graph.optimize(actor="alice", message="nightly")
    assert done.commit is not None
    assert (done.commit.kind, done.commit.actor) == ("optimize", "alice")
    rows = {t.type_key: t for t in done.tables}
    assert set(rows) == {"node:Person", "edge:Knows"}, "City and LivesIn have no rows"
    assert (rows["node:Person"].fragments_removed, rows["node:Person"].fragments_added) == (10, 1)
    assert fragment_count(graph, "Person") == 2
    found = states(graph)
    pending = found.pop("node:Person.taste")
    assert pending == IndexState.PENDING
    assert set(found.values()) == {IndexState.COMPLETE}
    kinds: dict[str, list[str]] = {}
    for status in graph.indexes():
        kinds.setdefault(f"{status.type_key}.{status.property_name}", []).append(str(status.kind))
    assert kinds["node:Person.name"] == ["btree"], "an equality index on a text key"
    assert kinds["node:Person.bio"] == ["text", "ngram"]
    assert kinds["node:Person.level"] == ["bitmap"]
    assert kinds["edge:Knows.src"] == kinds["edge:Knows.dst"] == ["btree"]
    assert [(p.type_key, p.property_name) for t in done.tables for p in t.pending_indexes] == [
        ("node:Person", "taste")
    ]
    assert json.loads(json.dumps(done.to_dict()))["tables"][0]["committed"] is True


def test_a_second_run_changes_nothing_and_commits_nothing(graph, tmp_path: Path) -> None:
    graph.optimize()
    head = graph.snapshot().commit.id
    again = graph.optimize()
    assert again.commit is None
    assert not any(t.committed or t.fragments_removed for t in again.tables)
    assert [p.property_name for t in again.tables for p in t.pending_indexes] == ["taste"]
    with omnigraph.open(tmp_path / "g") as other:
        assert other.optimize().commit is None
    assert graph.snapshot().commit.id == head


def test_no_row_and_no_past_state_changes(graph, tmp_path: Path) -> None:
    graph.mutate('delete Person where name = "p3"')
    graph.load([person(5, age=99), person(6, bio=None)], mode="merge")
    before = content(graph, tmp_path / "before.jsonl")
    old = graph.snapshot()
    graph.optimize()
    assert content(graph, tmp_path / "after.jsonl") == before
    assert content(graph, tmp_path / "old.jsonl", commit=old.commit.id) == before
    old.export(tmp_path / "held.jsonl")
    assert sorted((tmp_path / "held.jsonl").read_text().splitlines()) == before


def test_diff_and_feed_show_no_change(graph) -> None:
    before = graph.snapshot().commit.id
    commit = graph.optimize().commit
    assert commit is not None
    assert not list(graph.diff(before, "main"))
    assert not any(c.total for c in commit.changes.values())
    assert graph.changes.commit(commit.id).changes == ()


def test_rows_written_later_are_found_and_covered_by_the_next_run(graph) -> None:
    graph.optimize()
    graph.load([person(100), person(101), knows(100, 101)])
    graph.load([person(7, age=777, level="low")], mode="merge")
    assert states(graph)["node:Person.id"] == IndexState.PARTIAL
    assert names(graph, "$p.age >= 100") == ["p100", "p101", "p7"]
    graph.optimize()
    assert states(graph)["node:Person.id"] == IndexState.COMPLETE
    assert names(graph, "$p.age >= 100") == ["p100", "p101", "p7"]
    assert names(graph, "$p.age = 7") == []
    assert names(graph, '$p.level = "low" and $p.age > 60')[-1] == "p7"


def names(graph: omnigraph.Graph, condition: str) -> list[str]:
    query = f"match {{ $p: Person  {condition} }} return {{ $p.name }} order {{ $p.name }}"
    return [row["p.name"] for row in graph.query(query).to_arrow().to_pylist()]


def test_an_index_by_identity_is_built_anew_when_much_came_or_on_demand(graph) -> None:
    graph.optimize()
    graph.load([person(200)])
    graph.optimize()
    assert states(graph)["node:Person.bio"] == IndexState.PARTIAL
    built = graph.build_indexes()
    assert built.commit is not None
    assert built.commit.kind == "index"
    assert states(graph)["node:Person.bio"] == IndexState.COMPLETE
    assert graph.build_indexes().commit is None
    graph.load([person(i) for i in range(300, 360)])
    graph.optimize()
    assert states(graph)["node:Person.bio"] == IndexState.COMPLETE


def test_parts_of_texts_are_indexed_on_demand_where_few_do_without(graph) -> None:
    done = graph.optimize()
    assert parts(graph) == (IndexState.PENDING, 0)
    (status,) = (s for s in graph.indexes() if s.kind == "ngram")
    assert status.reason == "fewer than 100,000 texts are looked through; 'index build' builds it"
    assert {p.property_name for t in done.tables for p in t.pending_indexes} == {"taste"}
    built = graph.build_indexes()
    assert built.commit is not None
    assert parts(graph) == (IndexState.COMPLETE, 70)
    assert graph.build_indexes().commit is None
    assert graph.optimize().commit is None, "what was asked for stays"
    graph.load([person(200)])
    graph.optimize()
    assert parts(graph) == (IndexState.PARTIAL, 70)
    graph.load([person(i) for i in range(300, 360)])
    graph.optimize()
    assert parts(graph) == (IndexState.COMPLETE, 131), "and is built anew like the others"


def test_a_table_that_was_in_order_gets_an_index_of_parts_when_that_is_due(
    graph, monkeypatch
) -> None:
    """As with a graph that an older version optimized: the name of its version says so."""
    graph.schema_apply(SCHEMA.replace("taste: Vector(4)? @index", "taste: Vector(4)?"))
    graph.optimize()
    assert graph.optimize().commit is None
    monkeypatch.setattr(indexes, "PARTS_ROWS_MIN", 70)
    assert parts(graph) == (IndexState.MISSING, 0)
    assert [t.committed for t in graph.optimize().tables] == [True, False]
    assert parts(graph) == (IndexState.COMPLETE, 70)
    name = index_name(graph)
    assert graph.optimize().commit is None
    graph.load([person(i) for i in range(300, 360)])
    graph.optimize()
    assert parts(graph) == (IndexState.COMPLETE, 130)
    assert index_name(graph) == name


def index_name(graph: omnigraph.Graph) -> str:
    pin = graph._repository.branch("main").head.snapshot.pins["node:Person"]
    built = table_indexes(graph._repository.table(pin))
    (name,) = (i.name for i in built if i.kind == "ngram")
    return name


def test_a_small_graph_that_does_without_costs_no_look(graph, monkeypatch) -> None:
    graph.schema_apply(SCHEMA.replace("taste: Vector(4)? @index", "taste: Vector(4)?"))
    graph.optimize()
    monkeypatch.setattr(optimizing, "table_state", None)
    assert graph.optimize().commit is None, "nothing is opened"


def test_vectors_are_indexed_once_they_can_train(graph) -> None:
    graph.load([person(i, taste=[i, 1, 2, 3]) for i in range(1000, 1300)])
    done = graph.optimize()
    assert not any(t.pending_indexes for t in done.tables)
    status = next(s for s in graph.indexes() if s.property_name == "taste")
    assert (status.state, status.rows_indexed) == (IndexState.COMPLETE, 370)


def test_types_are_optimized_apart(graph) -> None:
    done = graph.optimize(types=["Knows"])
    assert [t.type_key for t in done.tables] == ["edge:Knows"]
    assert states(graph)["node:Person.id"] == IndexState.MISSING
    assert [t.committed for t in graph.optimize().tables] == [True, False]
    for command in (graph.optimize, graph.build_indexes, graph.indexes, graph.upkeep.repair):
        with pytest.raises(omnigraph.NotFoundError, match="no type 'Nobody'") as refused:
            command(types=["Nobody"])
        assert refused.value.kind is ErrorKind.TYPE_NOT_FOUND
        assert refused.value.details == {"type_name": "Nobody"}


def test_a_branch_is_optimized_apart(graph, tmp_path: Path) -> None:
    graph.branches.create("work")
    graph.load([person(500)], branch="work")
    done = graph.optimize(branch="work")
    assert done.branch == "work"
    assert fragment_count(graph, "Person") > 2, "main is as it was"
    graph.load([person(501)])
    graph.merge("work")
    assert names(graph, "$p.age >= 500") == ["p500", "p501"]


def test_an_index_that_the_schema_gave_up_is_taken_away(graph) -> None:
    graph.optimize()
    graph.schema_apply(SCHEMA.replace("age: I32? @index", "age: I32?"))
    done = graph.optimize()
    assert done.commit is not None
    assert "node:Person.age" not in states(graph)
    pin = graph._repository.branch("main").head.snapshot.pins["node:Person"]
    assert "age" not in graph._repository.table(pin).indexed_columns
    graph.schema_apply(SCHEMA)
    assert states(graph)["node:Person.age"] == IndexState.MISSING
    graph.optimize()
    assert states(graph)["node:Person.age"] == IndexState.COMPLETE


class Overtaker:
    """Somebody else, who publishes whenever this process is about to."""

    def __init__(self, graph: omnigraph.Graph, numbers: Iterable[int]) -> None:
        self._graph = graph
        self._numbers = iter(numbers)
        self._busy = False

    def __call__(self) -> None:
        number = None if self._busy else next(self._numbers, None)
        if number is not None:
            self._busy = True
            self._graph.load([person(number)])
            self._busy = False


def test_writers_meanwhile_lose_nothing(graph, tmp_path: Path) -> None:
    """Between staging and publishing: their table is planned again, others are not."""
    with omnigraph.open(tmp_path / "g") as other:
        overtaker = Overtaker(other, [800, 801])
        with (
            armed(FailPoint.PUBLISH_BEFORE_COMMIT, overtaker, times=None),
            armed(FailPoint.STAGE_AFTER_FILES, "raise", skip=2) as written,
        ):
            done = graph.optimize()
    assert written.hits == 2, "the files of the two overtaking loads"
    assert all(t.committed for t in done.tables)
    assert names(graph, "$p.age >= 800") == ["p800", "p801"]
    assert states(graph)["node:Person.id"] == IndexState.COMPLETE


def test_a_table_that_never_stands_still_is_left_for_the_next_time(graph, tmp_path: Path) -> None:
    with omnigraph.open(tmp_path / "g") as other:
        overtaker = Overtaker(other, range(900, 901 + optimizing.REPLANS_MAX))
        with armed(FailPoint.PUBLISH_BEFORE_COMMIT, overtaker, times=None):
            done = graph.optimize()
    rows = {t.type_key: t for t in done.tables}
    assert (rows["node:Person"].skipped, rows["node:Person"].committed) == ("busy", False)
    assert rows["edge:Knows"].committed
    assert len(names(graph, "$p.age >= 900")) == 1 + optimizing.REPLANS_MAX
    assert graph.optimize().commit is not None
    assert states(graph)["node:Person.id"] == IndexState.COMPLETE


@pytest.mark.parametrize(
    "point",
    [
        FailPoint.STAGE_AFTER_COMMIT,
        FailPoint.STAGE_AFTER_PIN,
        FailPoint.WRITE_ALL_STAGED,
        FailPoint.PUBLISH_BEFORE_COMMIT,
    ],
)
def test_a_failure_on_the_way_changes_nothing(graph, tmp_path: Path, point: FailPoint) -> None:
    before = content(graph, tmp_path / "before.jsonl")
    head = graph.snapshot().commit.id
    with armed(point, "raise"), pytest.raises(FailPointError):
        graph.optimize()
    assert graph.snapshot().commit.id == head
    graph.load([{"type": "City", "data": {"name": "x"}}])
    assert graph.optimize().commit is not None
    after = content(graph, tmp_path / "after.jsonl")
    assert [line for line in after if '"City"' not in line] == before


def test_synced_to_disk(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA, durability="fsync") as graph:
        graph.load([person(i) for i in range(3)])
        graph.load([person(i) for i in range(3, 6)])
        assert graph.optimize().commit is not None


def test_the_number_of_workers_is_checked(graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "1")
    assert graph.optimize().commit is not None
    for wrong in ("0", "many", "-1"):
        monkeypatch.setenv("OMNIGRAPH_MAINTENANCE_CONCURRENCY", wrong)
        with pytest.raises(omnigraph.UsageError, match="not a number of tables"):
            graph.optimize()
