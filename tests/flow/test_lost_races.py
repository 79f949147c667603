"""What a writer does when somebody is faster, step by step: another handle commits in between."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint, armed
from support.racers import SCHEMA

KEYED = SCHEMA + "edge Likes: Person -> Person @card(0..1) { weight: I32? @unique }\n"


def person(*names: str) -> list[dict]:
    return [{"type": "Person", "data": {"name": n}} for n in names]


@pytest.fixture
def graphs(tmp_path: Path) -> tuple[omnigraph.Graph, omnigraph.Graph]:
    mine = omnigraph.init(tmp_path / "graph", KEYED)
    mine.load(person("a", "b"))
    return mine, omnigraph.open(tmp_path / "graph")


def overtaken(load) -> armed:
    """Run ``load`` when the next write is about to publish."""
    return armed(FailPoint.PUBLISH_BEFORE_COMMIT, load)


def not_within_itself(load):
    """The interfering writer passes the same failpoint: let it through."""
    inside = False

    def act() -> None:
        nonlocal inside
        if not inside:
            inside = True
            load()
            inside = False

    return act


def names(graph: omnigraph.Graph) -> list[str]:
    return sorted(graph.snapshot().rows("Person").to_arrow()["name"].to_pylist())


def test_an_append_to_the_same_table_goes_on_top(graphs) -> None:
    mine, other = graphs
    with overtaken(lambda: other.load(person("c"))):
        result = mine.load(person("d"))
    assert result.commit is not None
    assert result.commit.parent_id == other.commits()[1].id
    assert names(mine) == names(other) == ["a", "b", "c", "d"]


def test_data_files_are_written_once_however_often_a_race_is_lost(graphs) -> None:
    mine, other = graphs
    extra = iter(range(100))
    with (
        armed(
            FailPoint.PUBLISH_BEFORE_COMMIT,
            not_within_itself(lambda: other.load(person(f"x{next(extra)}"))),
            times=6,
        ),
        armed(FailPoint.STAGE_AFTER_FILES, lambda: None, times=None) as files,
    ):
        mine.load(person("d"))
    assert names(mine) == ["a", "b", "d", "x0", "x1", "x2"]
    assert files.hits == 4, "three of the other writer, one of ours"


def test_both_create_the_table_at_once(graphs) -> None:
    mine, other = graphs
    with overtaken(lambda: other.load([{"type": "City", "data": {"name": "x"}}])):
        mine.load([{"type": "City", "data": {"name": "y"}}])
    assert sorted(r["name"] for r in mine.snapshot().rows("City")) == ["x", "y"]


def test_the_same_key_from_both_is_a_conflict_and_nothing_is_published(graphs) -> None:
    mine, other = graphs
    with (
        overtaken(lambda: other.load(person("c"))),
        pytest.raises(omnigraph.ConstraintError) as caught,
    ):
        mine.load(person("c"))
    assert caught.value.kind is ErrorKind.KEY_CONFLICT
    assert names(mine) == ["a", "b", "c"]
    assert len(mine.commits()) == 3


def test_an_upsert_of_the_same_key_is_redone_on_the_new_row(graphs) -> None:
    mine, other = graphs
    with overtaken(lambda: other.load(person("c"))):
        result = mine.load(person("c", "d"), mode="merge")
    assert result.changes["node:Person"].inserted == 1
    assert dict(result.unchanged) == {"node:Person": 1}
    assert names(mine) == ["a", "b", "c", "d"]


def test_cardinality_is_checked_again(graphs) -> None:
    mine, other = graphs
    edge = [{"edge": "Likes", "from": "a", "to": "b"}]
    with (
        overtaken(lambda: other.load(edge)),
        pytest.raises(omnigraph.ConstraintError, match="@card violation"),
    ):
        mine.load(edge)
    assert mine.snapshot().count("Likes") == 1


def test_uniqueness_is_checked_again(graphs) -> None:
    mine, other = graphs
    with (
        overtaken(
            lambda: other.load([{"edge": "Likes", "from": "a", "to": "b", "data": {"weight": 7}}])
        ),
        pytest.raises(omnigraph.ConstraintError, match="@unique violation"),
    ):
        mine.load([{"edge": "Likes", "from": "b", "to": "a", "data": {"weight": 7}}])


def test_an_edge_to_a_node_that_vanished_is_refused(graphs) -> None:
    mine, other = graphs
    with (
        overtaken(lambda: other.load(person("a"), mode="overwrite")),
        pytest.raises(omnigraph.ConstraintError, match="dst 'b' not found in Person"),
    ):
        mine.load([{"edge": "Knows", "from": "a", "to": "b"}])


def test_an_overwrite_that_would_strand_a_new_edge_is_refused(graphs) -> None:
    mine, other = graphs
    with (
        overtaken(lambda: other.load([{"edge": "Knows", "from": "a", "to": "b"}])),
        pytest.raises(omnigraph.ConstraintError, match="dst 'b' not found in Person"),
    ):
        mine.load(person("a"), mode="overwrite")
    assert names(mine) == ["a", "b"]


def test_an_overwrite_does_not_swallow_rows_it_never_saw(graphs) -> None:
    mine, other = graphs
    with (
        overtaken(lambda: other.load(person("c"))),
        pytest.raises(omnigraph.ConflictError) as caught,
    ):
        mine.load(person("z"), mode="overwrite")
    assert caught.value.kind is ErrorKind.VERSION_MISMATCH
    assert caught.value.details["table_key"] == "node:Person"
    assert names(mine) == ["a", "b", "c"]


def test_an_overwrite_starts_from_the_newest_state(graphs) -> None:
    mine, other = graphs
    other.load(person("c"))
    mine.load(person("z"), mode="overwrite")
    assert names(other) == ["z"]


def test_a_stale_handle_believes_bad_news_only_on_the_newest_snapshot(graphs) -> None:
    mine, other = graphs
    other.load(person("late"))
    result = mine.load([{"edge": "Knows", "from": "a", "to": "late"}])
    assert result.commit is not None


def test_writers_that_never_win_give_up_with_a_typed_error(graphs, monkeypatch) -> None:
    from omnigraph.write import outcome

    mine, other = graphs
    monkeypatch.setattr(outcome, "ATTEMPTS_MAX", 3)
    extra = iter(range(100))
    with (
        armed(
            FailPoint.PUBLISH_BEFORE_COMMIT,
            not_within_itself(lambda: other.load(person(f"x{next(extra)}"))),
            times=None,
        ),
        pytest.raises(omnigraph.ConflictError) as caught,
    ):
        mine.load(person("d"))
    assert caught.value.kind is ErrorKind.CONTENTION
    assert "d" not in names(mine)
