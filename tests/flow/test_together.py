"""Writes that wait on one handle are published together, each as if it had come by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint, armed
from omnigraph.manifest.snapshot import GraphCommit
from omnigraph.storage.objects import Objects
from omnigraph.write import outcome
from support.queueing import Ended, queued

SCHEMA = """
node Person { name: String @key  age: I32?  code: String? @unique }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person @card(0..2) { how: String? }
"""
KNOWS = "query q($n: String, $m: String) { insert Knows { from: $n, to: $m } }"
LIKES = "query q($n: String, $m: String) { insert Likes { from: $n, to: $m } }"


@pytest.fixture
def graph(store_root: str) -> Iterator[omnigraph.Graph]:
    """On every kind of store."""
    with omnigraph.init(store_root, SCHEMA) as made:
        made.load(
            [
                *people("a", "b", "c", "d", age=1),
                {"edge": "Knows", "from": "a", "to": "b"},
                {"edge": "Likes", "from": "a", "to": "b"},
            ]
        )
        yield made


@pytest.fixture
def local(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        made.load([*people("a", "b", "c", "d", age=1), {"edge": "Knows", "from": "a", "to": "b"}])
        yield made


def people(*names: str, **data: Any) -> list[dict[str, Any]]:
    return [{"type": "Person", "data": {"name": name, **data}} for name in names]


def knows(graph: omnigraph.Graph, n: str, m: str) -> Callable[[], Any]:
    return lambda: graph.mutate(KNOWS, params={"n": n, "m": m})


def likes(graph: omnigraph.Graph, n: str, m: str) -> Callable[[], Any]:
    return lambda: graph.mutate(LIKES, params={"n": n, "m": m})


def said(graph: omnigraph.Graph, text: str, **options: Any) -> Callable[[], Any]:
    return lambda: graph.mutate(f"query q() {{ {text} }}", **options)


def loaded(graph: omnigraph.Graph, lines: list[dict[str, Any]], **options: Any) -> Any:
    return lambda: graph.load(lines, **options)


def behind_a_city(graph: omnigraph.Graph, *writes: Callable[[], Any]) -> list[Ended]:
    """Let writes queue up behind one, in this order."""
    city = {"type": "City", "data": {"name": f"city {len(graph.commits())}"}}
    return queued(loaded(graph, [city]), writes)[0]


def made(ends: list[Ended]) -> list[GraphCommit]:
    for end in ends:
        assert end.error is None, end.error
    return [end.result.commit for end in ends]


def versions(ends: list[Ended]) -> list[int]:
    return [commit.manifest_version for commit in made(ends)]


def test_each_has_its_commit_in_one_version(graph: omnigraph.Graph) -> None:
    before = graph.commits()[0]
    names = ["a", "b", "c", "d"]
    ends = behind_a_city(graph, *(knows(graph, n, m) for n in names for m in "ab"))
    commits = made(ends)
    assert len({c.manifest_version for c in commits}) == 1
    line = [c.id for c in graph.commits()]
    assert line[: len(commits)] == [c.id for c in reversed(commits)]
    assert line[len(commits) + 1] == before.id
    assert [c.generation for c in commits] == list(
        range(commits[0].generation, commits[0].generation + len(commits))
    )
    # Each shows what it would have shown by itself, to this process and to others.
    for opened in (graph, omnigraph.open(graph.uri)):
        for number, commit in enumerate(commits, start=1):
            state = opened.at(f"commit:{commit.id}")
            assert state.count("Knows") == 1 + number
            pairs = [(r["src"], r["dst"]) for r in state.rows("Knows")]
            wanted = [("a", "b"), *((n, m) for n in names for m in "ab")][: number + 1]
            assert sorted(pairs) == sorted(wanted)
            change = [json.loads(line) for line in opened.changes.commit(commit.id).lines]
            assert [c["op"] for c in change] == ["insert"]
            assert opened.diff(f"commit:{commit.parent_id}", f"commit:{commit.id}").counts[
                "edge:Knows"
            ].inserted == 1  # fmt: skip
    assert graph.upkeep.check(full=True, history=True).ok


def test_updates_of_different_rows_and_several_tables_go_together(graph: omnigraph.Graph) -> None:
    ends = behind_a_city(
        graph,
        said(graph, 'update Person set { age: 5 } where name = "a"'),
        knows(graph, "c", "d"),
        said(graph, 'update Person set { age: 6 } where name = "b"'),
        loaded(graph, people("e", age=7)),
    )
    commits = made(ends)
    assert len(set(versions(ends))) == 1
    ages = [
        {r["name"]: r["age"] for r in graph.at(f"commit:{c.id}").rows("Person")} for c in commits
    ]
    start = dict.fromkeys("abcd", 1)
    assert ages == [
        start | {"a": 5},
        start | {"a": 5},
        start | {"a": 5, "b": 6},
        start | {"a": 5, "b": 6, "e": 7},
    ]
    assert [c.changes.keys() for c in commits] == [
        {"node:Person"}, {"edge:Knows"}, {"node:Person"}, {"node:Person"},
    ]  # fmt: skip
    assert graph.upkeep.check(full=True, history=True).ok
    graph.optimize()
    assert graph.snapshot().count("Knows") == 2


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        # What the second one looks for is what the first one brings.
        ('insert Person { name: "e", age: 1 }', "update Person set { age: 9 } where age = 1",
         {"a": 9, "b": 9, "c": 9, "d": 9, "e": 9}),
        ('update Person set { age: 3 } where name = "a"', "update Person set { age: 9 } where age = 3",
         {"a": 9, "b": 1, "c": 1, "d": 1}),
        # The same row twice: the later one is the one that stays.
        ('update Person set { age: 3 } where name = "a"', 'update Person set { age: 4 } where name = "a"',
         {"a": 4, "b": 1, "c": 1, "d": 1}),
        ('insert Person { name: "e", age: 3 }', 'update Person set { age: 4 } where name = "e"',
         {"a": 1, "b": 1, "c": 1, "d": 1, "e": 4}),
        ('insert Person { name: "e", age: 3 }', 'delete Person where name = "e"',
         {"a": 1, "b": 1, "c": 1, "d": 1}),
    ],
)  # fmt: skip
def test_what_concerns_another_one_comes_after_it(
    local: omnigraph.Graph, first: str, second: str, wanted: dict[str, int]
) -> None:
    ends = behind_a_city(local, said(local, first), said(local, second))
    one, two = versions(ends)
    assert two == one + 1
    assert {r["name"]: r["age"] for r in local.snapshot().rows("Person")} == wanted


def test_one_that_breaks_a_rule_harms_no_other(local: omnigraph.Graph) -> None:
    ends = behind_a_city(
        local,
        knows(local, "a", "c"),
        knows(local, "a", "nobody"),
        knows(local, "a", "d"),
        loaded(local, people("a"), mode="append"),
        knows(local, "b", "d"),
    )
    assert [type(e.error).__name__ for e in ends] == [
        "NoneType", "ConstraintError", "NoneType", "ConstraintError", "NoneType",
    ]  # fmt: skip
    assert ends[3].error.kind is ErrorKind.KEY_CONFLICT
    assert len({ends[n].result.commit.manifest_version for n in (0, 2, 4)}) == 1
    assert local.snapshot().count("Knows") == 4


@pytest.mark.parametrize(
    "writes",
    [
        # Only together they break a rule: the later one is refused.
        ('insert Person { name: "e", code: "z" }', 'insert Person { name: "f", code: "z" }'),
        ('insert Person { name: "e", code: "z" }', 'update Person set { code: "z" } where name = "a"'),
    ],
)  # fmt: skip
def test_of_two_that_break_a_rule_together_the_first_one_stays(
    local: omnigraph.Graph, writes: tuple[str, str]
) -> None:
    ends = behind_a_city(local, *(said(local, text) for text in writes))
    assert ends[0].error is None
    assert isinstance(ends[1].error, omnigraph.ConstraintError)
    assert [r["name"] for r in local.snapshot().rows("Person") if r["code"] == "z"] == ["e"]


def test_edges_that_are_counted_are_counted_together(local: omnigraph.Graph) -> None:
    local.load([{"edge": "Likes", "from": "b", "to": "a"}])
    ends = behind_a_city(local, *(likes(local, "a", to) for to in "bcd"))
    assert [end.error is None for end in ends] == [True, True, False]
    assert sorted(r["dst"] for r in local.snapshot().rows("Likes") if r["src"] == "a") == ["b", "c"]


def test_an_edge_does_not_rest_on_a_node_that_comes_later(local: omnigraph.Graph) -> None:
    ends = behind_a_city(local, knows(local, "a", "e"), loaded(local, people("e")))
    assert isinstance(ends[0].error, omnigraph.ConstraintError)
    assert ends[1].error is None
    ends = behind_a_city(local, loaded(local, people("f")), knows(local, "a", "f"))
    assert [end.error for end in ends] == [None, None]


def test_an_expected_commit_is_the_one_before(local: omnigraph.Graph) -> None:
    newest = local.commits()[0].id
    text = 'insert Person { name: "e" }'
    ends = behind_a_city(
        local, knows(local, "a", "c"), said(local, text, if_commit=newest), knows(local, "a", "d")
    )  # fmt: skip
    assert [end.error is None for end in ends] == [True, False, True]
    assert ends[1].error.kind is ErrorKind.PRECONDITION_FAILED


def test_a_lost_race_is_tried_again_together(local: omnigraph.Graph) -> None:
    with omnigraph.open(local.uri) as other:
        overtaking = [True]

        def overtake() -> None:
            if overtaking and overtaking.pop():
                other.load(people("z"))

        # The first write passes the point, then those behind it do, together.
        with armed(FailPoint.WRITE_ALL_STAGED, overtake, skip=1, times=1):
            ends = behind_a_city(
                local, *(knows(local, "a", to) for to in "cd"), knows(local, "b", "a")
            )
    assert len(set(versions(ends))) == 1
    assert {end.result.commit.manifest_version for end in ends} == {5}
    assert local.snapshot().count("Knows") == 4
    assert local.snapshot().count("Person") == 5


def test_races_that_are_lost_together_are_lost_a_bounded_number_of_times(
    local: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome, "ATTEMPTS_MAX", 3)
    with omnigraph.open(local.uri) as other:
        inside: list[bool] = []

        def overtake() -> None:
            if not inside:
                inside.append(True)
                monkeypatch.setattr(outcome, "ATTEMPTS_MAX", 64)
                other.load(people(f"z{len(other.commits())}"))
                monkeypatch.setattr(outcome, "ATTEMPTS_MAX", 3)
                inside.clear()

        # The write of the city passes the point once, before it is held.
        with armed(FailPoint.WRITE_ALL_STAGED, overtake, skip=1, times=None):
            ends = behind_a_city(local, knows(local, "a", "c"), knows(local, "a", "d"))
    assert [end.error.kind for end in ends if end.error] == [ErrorKind.CONTENTION] * 2
    assert local.snapshot().count("Knows") == 1


def test_a_failure_of_the_store_is_told_to_the_one_that_it_hits(local: omnigraph.Graph) -> None:
    def fails() -> None:
        raise omnigraph.StorageError("the disk is tired", kind=ErrorKind.STORAGE_UNKNOWN)

    with armed(FailPoint.WRITE_ALL_STAGED, fails, skip=1, times=2):
        ends = behind_a_city(local, knows(local, "a", "c"), knows(local, "a", "d"))
    assert isinstance(ends[0].error, omnigraph.StorageError)
    assert ends[1].error is None
    assert local.snapshot().count("Knows") == 2
    assert local.upkeep.check(full=True, history=True).ok


def test_a_writer_that_stops_after_the_commit_leaves_no_other_in_the_dark(
    local: omnigraph.Graph,
) -> None:
    def stops() -> None:
        raise KeyboardInterrupt

    with armed(FailPoint.PUBLISH_AFTER_COMMIT, stops, skip=1, times=1):
        ends = behind_a_city(local, *(knows(local, "a", to) for to in "bcd"))
    assert isinstance(ends[0].error, KeyboardInterrupt)
    for end in ends[1:]:
        assert isinstance(end.error, omnigraph.CommitUnknownError)
        operation = end.error.details["operation_id"]
        assert operation in {c.id for c in omnigraph.open(local.uri).commits()}


def test_a_writer_that_stops_before_the_commit_leaves_the_others_their_turn(
    local: omnigraph.Graph,
) -> None:
    def stops() -> None:
        raise KeyboardInterrupt

    with armed(FailPoint.WRITE_ALL_STAGED, stops, skip=1, times=1):
        ends = behind_a_city(local, *(knows(local, "a", to) for to in "bcd"))
    assert isinstance(ends[0].error, KeyboardInterrupt)
    assert [end.error for end in ends[1:]] == [None, None]
    assert local.snapshot().count("Knows") == 3


# States on the way


@pytest.fixture
def middle(local: omnigraph.Graph) -> GraphCommit:
    """The second of three commits of one version."""
    return made(behind_a_city(local, *(knows(local, "b", to) for to in "acd")))[1]


def test_a_branch_begins_at_a_state_on_the_way(local: omnigraph.Graph, middle: GraphCommit) -> None:
    local.branches.create("side", f"commit:{middle.id}")
    assert local.at("side").count("Knows") == 3
    local.load(people("s"), branch="side")
    assert [c.id for c in local.commits(branch="side", first_parent=True)][1] == middle.id
    local.merge("side")
    assert (local.snapshot().count("Knows"), local.snapshot().count("Person")) == (4, 5)
    page = local.changes.poll(branch="side", start=f"after:{middle.parent_id}")
    assert next(iter(page.blocks)).cause.commit_id == middle.id
    assert local.upkeep.check(full=True, history=True).ok


def test_a_tag_keeps_a_state_on_the_way(local: omnigraph.Graph, middle: GraphCommit) -> None:
    local.tags.create("t", f"commit:{middle.id}")
    for n in range(4):
        local.load(people(f"n{n}"))
    local.upkeep.cleanup(keep=1, older_than=None, confirm=True, grace=0)
    with omnigraph.open(local.uri) as other:
        assert other.at("t").count("Knows") == 3
        assert sorted(r["dst"] for r in other.at("t").rows("Knows")) == ["a", "b", "c"]
        assert other.upkeep.check(full=True, history=True).ok
        assert other.diff("t", "main").counts["edge:Knows"].inserted == 1


def test_a_branch_goes_back_to_a_state_on_the_way(
    local: omnigraph.Graph, middle: GraphCommit
) -> None:
    local.reset(f"commit:{middle.id}")
    assert local.snapshot().count("Knows") == 3
    local.revert(middle.id)
    assert sorted(r["dst"] for r in local.snapshot().rows("Knows")) == ["a", "b"]
    assert local.upkeep.check(full=True, history=True).ok


def test_the_feed_goes_on_from_every_state_on_the_way(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load(people("a", "b"))
        graph.load([{"edge": "Knows", "from": "a", "to": "b"}])
        for _ in range(3):
            behind_a_city(graph, *(knows(graph, "a", "b") for _ in range(40)))
        line = [c.id for c in graph.commits(first_parent=True)][::-1]
        assert len(line) == 3 + 3 * 41
        with omnigraph.open(graph.uri) as other:
            for number in range(0, len(line), 7):
                page = other.changes.poll(start=f"after:{line[number]}", max_commits=3)
                assert [b.cause.commit_id for b in page.blocks] == line[number + 1 : number + 4]
                rest = [b.cause.commit_id for b in page.blocks]
                while not page.caught_up:
                    page = other.changes.poll(cursor=page.cursor)
                    rest += [b.cause.commit_id for b in page.blocks]
                assert rest == line[number + 1 :]


def test_a_store_that_fails_while_a_write_waits_is_no_matter(
    local: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done ahead of its turn may fail: in its turn it is done again."""
    put, ahead, turns = Objects.put, [], local._repository.turns

    def puts(objects: Objects, name: str, content: bytes) -> None:
        # In its turn a write on a disk puts its intent there itself.
        if name.startswith("__recovery") and not turns.is_led_here:
            ahead.append(name)
            raise omnigraph.StorageError("the disk is tired", kind=ErrorKind.STORAGE_UNKNOWN)
        put(objects, name, content)

    monkeypatch.setattr(Objects, "put", puts)
    ends = behind_a_city(local, knows(local, "a", "c"), knows(local, "a", "d"))
    assert len(ahead) == 2
    assert len(set(versions(ends))) == 1
    assert local.snapshot().count("Knows") == 3


@pytest.mark.parametrize(
    ("overtake", "refused"),
    [
        (lambda g: g.schema_apply(SCHEMA.replace("age: I32?", "age: I32?  note: String?")), 0),
        (lambda g: g.upkeep.cleanup(keep=1, older_than=None, confirm=True, grace=0), 0),
        (lambda g: g.mutate('query q() { delete Person where name = "b" }'), 1),
        (lambda g: g.optimize(), 0),
        (lambda g: g.reset(g.commits()[1].id), 0),
    ],
    ids=["schema", "cleanup", "delete", "optimize", "reset"],
)
def test_whatever_overtakes_them_they_are_made_again(
    local: omnigraph.Graph, overtake: Callable[[omnigraph.Graph], object], refused: int
) -> None:
    local.load([{"type": "City", "data": {"name": "x"}}])
    update = said(local, 'update Person set { age: 5 } where name = "a"')
    with omnigraph.open(local.uri) as other:
        first = [True]

        def once() -> None:
            if first and first.pop():
                overtake(other)

        with armed(FailPoint.WRITE_ALL_STAGED, once, skip=1, times=1):
            ends = behind_a_city(local, *(knows(local, n, "a") for n in "abcd"), update)
    errors = [end.error for end in ends if end.error is not None]
    assert len(errors) == refused
    assert all(isinstance(error, omnigraph.ConstraintError) for error in errors)
    state = local.snapshot()
    # With its node an edge goes that was there.
    assert state.count("Knows") == 5 - 2 * refused
    assert {r["name"]: r["age"] for r in state.rows("Person")}["a"] == 5
    assert local.upkeep.check(full=True, history=True).ok
