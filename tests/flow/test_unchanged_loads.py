"""A merge of what the graph holds already writes nothing, and says so; on both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.failpoints import FailPoint, armed

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  score: F64?
  tags: [String]?
  face: Vector(2)?
  born: Date?
  seen: DateTime?
  photo: Blob?
}
node Note { text: String }
edge Likes: Person -> Person @card(0..3) { since: I32?  @key(@src, @dst) }
edge Knows: Person -> Person
"""
ADA = {
    "type": "Person",
    "data": {
        "name": "Ada",
        "age": 36,
        "score": 0.1,
        "tags": ["x", "y"],
        "face": [0.5, 1.5],
        "born": "1815-12-10",
        "seen": "2024-01-01T00:00:00.250Z",
        "photo": "base64:aGVsbG8=",
    },
}
BOB = {"type": "Person", "data": {"name": "Bob"}}
LIKES = {"edge": "Likes", "from": "Ada", "to": "Bob", "data": {"since": 1}}
PEOPLE = [ADA, BOB, LIKES]


def changed(record: dict[str, Any], **values: Any) -> dict[str, Any]:
    return record | {"data": record["data"] | values}


def exported(graph: omnigraph.Graph) -> list[str]:
    return list(graph.snapshot().export())


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        made.load(PEOPLE)
        yield made


def test_a_merge_of_equal_rows_makes_no_commit(graph: omnigraph.Graph):
    before = graph.snapshot().commit
    result = graph.load(PEOPLE, mode="merge")
    assert result.commit is None
    assert dict(result.changes) == {}
    assert dict(result.unchanged) == {"node:Person": 2, "edge:Likes": 1}
    assert result.unchanged_entities == 3
    assert result.to_dict()["unchanged_entities"] == 3
    assert graph.snapshot().commit == before


@pytest.mark.parametrize(
    "values",
    [
        {"age": 37},
        {"age": None},
        {"score": 0.1000000001},
        {"tags": ["x"]},
        {"tags": []},
        {"tags": ["y", "x"]},
        {"face": [0.5, 1.25]},
        {"born": "1815-12-11"},
        {"seen": "2024-01-01T00:00:00.251Z"},
        {"photo": "base64:aGVsbG9v"},
        {"photo": None},
    ],
)
def test_what_differs_in_one_value_is_written_and_the_rest_is_not(
    graph: omnigraph.Graph, values: dict[str, Any]
):
    records = [changed(ADA, **values), BOB, LIKES]
    dry = graph.load(records, mode="merge", dry_run=True)
    result = graph.load(records, mode="merge")
    one = {"node:Person": omnigraph.TableChange(inserted=0, updated=1, deleted=0)}
    assert dict(result.changes) == dict(dry.changes) == one
    assert dict(result.unchanged) == dict(dry.unchanged) == {"node:Person": 1, "edge:Likes": 1}
    assert result.commit is not None
    assert dict(result.commit.changes) == one
    assert graph.load(records, mode="merge").commit is None


def test_new_rows_beside_equal_ones_are_only_inserted(graph: omnigraph.Graph):
    eve = {"type": "Person", "data": {"name": "Eve"}}
    liked = {"edge": "Likes", "from": "Eve", "to": "Bob"}
    result = graph.load([*PEOPLE, eve, liked], mode="merge")
    assert {k: c.inserted for k, c in result.changes.items()} == {"node:Person": 1, "edge:Likes": 1}
    assert sum(c.updated for c in result.changes.values()) == 0
    assert result.unchanged_entities == 3


def test_the_last_of_repeated_rows_decides(graph: omnigraph.Graph):
    one, two = ({"type": "Note", "data": {"id": "n", "text": text}} for text in ("one", "two"))
    graph.load([one])
    result = graph.load([two, one], mode="merge")
    assert (result.commit, dict(result.unchanged)) == (None, {"node:Note": 1})
    result = graph.load([one, two], mode="merge")
    assert (result.changes["node:Note"].updated, result.unchanged_entities) == (1, 0)


def test_an_equal_row_still_has_to_keep_the_rules_of_the_whole_input(graph: omnigraph.Graph):
    lost = {"edge": "Likes", "from": "Ada", "to": "Nobody"}
    with pytest.raises(omnigraph.ConstraintError, match="Nobody"):
        graph.load([*PEOPLE, lost], mode="merge")


def test_rows_without_an_id_are_new_each_time(graph: omnigraph.Graph):
    note = {"type": "Note", "data": {"text": "hello"}}
    assert graph.load([note], mode="merge").changes["node:Note"].inserted == 1
    assert graph.load([note], mode="merge").changes["node:Note"].inserted == 1


def test_a_diff_agrees_with_the_counts_of_the_commit(graph: omnigraph.Graph):
    before = graph.snapshot().commit.id
    graph.load([changed(ADA, age=40), BOB, LIKES], mode="merge")
    assert len(list(graph.diff(f"commit:{before}", "main"))) == 1


def test_another_writer_between_makes_an_equal_row_a_change(graph: omnigraph.Graph):
    other = omnigraph.open(graph.uri)
    graph.snapshot()
    other.load([changed(BOB, age=9)], mode="merge")
    other.close()
    result = graph.load([BOB], mode="merge")
    assert result.commit is not None
    assert result.changes["node:Person"].updated == 1


def test_mutations_that_change_nothing_make_no_commit(graph: omnigraph.Graph):
    before = graph.snapshot().commit
    for text in (
        'update Person set { age: 36 } where name = "Ada"',
        'upsert Person { name: "Ada", age: 36, tags: ["x", "y"] }',
        'upsert Likes { from: "Ada", to: "Bob", since: 1 }',
        'update Person set { age: 1 } where name = "Zoe"',
        'delete Person where name = "Zoe"',
    ):
        assert graph.mutate(text).commit is None, text
    assert graph.snapshot().commit == before


def test_rows_that_another_writer_brings_meanwhile_are_not_added_again(graph: omnigraph.Graph):
    """Files that were written before the race hold rows that are committed now."""
    eve, fay = ({"type": "Person", "data": {"name": name}} for name in ("Eve", "Fay"))

    def overtake() -> None:
        with omnigraph.open(graph.uri) as other:
            other.load([eve])

    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, overtake, times=1):
        result = graph.load([eve, fay], mode="merge")
    assert (result.changes["node:Person"].inserted, result.unchanged_entities) == (1, 1)
    assert sorted(graph.snapshot().rows("Person").to_arrow()["name"].to_pylist()) == [
        "Ada",
        "Bob",
        "Eve",
        "Fay",
    ]
    assert graph.upkeep.check(full=True).ok
