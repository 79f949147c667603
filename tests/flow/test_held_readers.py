"""Who holds a state while a cleanup takes it is answered as before, or told that it is gone; what
is missing of a state that is kept is damage."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.query.pinned_scan import PinnedScan
from omnigraph.upkeep.cleanup import cleanup
from omnigraph.upkeep.retention import Policy

SCHEMA = """
node Person { name: String @key  age: I64 @index  bio: String? @index  pic: Blob? }
edge Knows: Person -> Person { since: I64? }
"""
BIG = "base64:" + "AAAA" * 30_000
PEOPLE = 40


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        for age in range(3):
            write(made, age)
        yield made


def write(graph: omnigraph.Graph, age: int) -> str:
    """Other rows, in files of their own."""
    people = [
        {"name": f"p{i}", "age": age, "bio": f"likes {age}"} | ({"pic": BIG} if i < 4 else {})
        for i in range(PEOPLE)
    ]
    rows: list[dict[str, Any]] = [{"type": "Person", "data": row} for row in people]
    rows += [{"edge": "Knows", "from": "p0", "to": f"p{i}"} for i in range(1, 9)]
    made = graph.load(rows, mode="overwrite").commit
    graph.settle()
    assert made is not None
    return made.id


def take(graph: omnigraph.Graph) -> None:
    """Another handle writes, and cleans up."""
    with omnigraph.open(graph.uri) as other:
        for age in (7, 8, 9):
            write(other, age)
        assert cleanup(other._repository, Policy(keep=1), confirm=True).files_removed


def exported(view: Any) -> bytes:
    out = io.BytesIO()
    view.export(out)
    return out.getvalue()


def asked(view: Any, text: str) -> Any:
    return view.query(text).to_dicts()


READS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda v: v.rows("Person").to_dicts(),
    "columns": lambda v: v.rows("Knows", columns=["src"]).to_dicts(),
    "export": exported,
    "count": lambda v: v.count("Person"),
    "scan": lambda v: asked(v, "match { $p: Person } return { $p.name, $p.age } order { $p.name }"),
    "key": lambda v: asked(v, 'match { $p: Person { name: "p3" } } return { $p.age, $p.bio }'),
    "filter": lambda v: asked(v, "match { $p: Person $p.age >= 0 } return { count($p) as n }"),
    "hop": lambda v: asked(
        v, 'match { $p: Person { name: "p0" } $p knows $q } return { $q.name } order { $q.name }'
    ),
    "search": lambda v: asked(v, 'match { $p: Person search($p.bio, "likes") } return { $p.name }'),
    "explain": lambda v: bool(
        str(v.explain("match { $p: Person } return { $p.bio }", analyze=True))
    ),
    "blob": lambda v: [len(r["pic"] or b"") for r in v.rows("Person", columns=["pic"])],
}


def answer(read: Callable[[], Any]) -> Any:
    """What was read, or None if it is told to be gone."""
    try:
        return read()
    except omnigraph.NotFoundError as e:
        assert e.kind is ErrorKind.HISTORY_RECLAIMED
        assert "reclaimed" in e.message
        return None


@pytest.mark.parametrize("reads", READS, ids=str)
@pytest.mark.parametrize("before", ["nothing", "another", "the same"])
def test_a_view_that_is_held(graph: omnigraph.Graph, reads: str, before: str) -> None:
    with omnigraph.open(graph.uri) as other:
        expected = READS[reads](other.snapshot())
    reader = omnigraph.open(graph.uri)  # Who wrote has much of it in memory.
    held, read = reader.snapshot(), READS[reads]
    if before == "another":
        READS["columns" if reads != "columns" else "key"](held)
    if before == "the same":
        assert read(held) == expected
    take(graph)
    for _ in range(2):
        assert answer(lambda: read(held)) in (None, expected)
    if before == "nothing" and reads != "count":
        assert answer(lambda: read(held)) is None
    assert read(reader.snapshot()) is not None
    reader.close()


def test_an_iterator_that_is_half_consumed(graph: omnigraph.Graph) -> None:
    for age in range(4):  # Several files, so that not all is in memory.
        graph.load(
            [{"type": "Person", "data": {"name": f"q{age}{i}", "age": age}} for i in range(50)]
        )
    held = graph.snapshot()
    total = held.count("Person")
    batches = held._batches(held.catalog.nodes["Person"], ["name", "pic"])
    seen = next(iter(batches)).num_rows
    take(graph)
    try:
        seen += sum(batch.num_rows for batch in batches)
    except omnigraph.NotFoundError as e:
        assert e.kind is ErrorKind.HISTORY_RECLAIMED
    else:
        assert seen == total


def test_a_difference_that_is_held(graph: omnigraph.Graph) -> None:
    commits = [c.id for c in graph.commits(limit=2)]
    with omnigraph.open(graph.uri) as other:
        made = other.diff(commits[1], commits[0])
        counts, changes = made.counts, [c.to_dict() for c in made]
    unread, counted = (graph.diff(commits[1], commits[0]) for _ in range(2))
    assert counted.counts == counts
    begun = iter(graph.diff(commits[1], commits[0]).changes())
    first = next(begun).to_dict()
    assert first in changes
    take(graph)
    assert answer(lambda: unread.counts) is None
    assert answer(lambda: [c.to_dict() for c in unread]) is None
    assert answer(lambda: [c.to_dict() for c in counted]) in (None, changes)
    assert answer(lambda: [first, *(c.to_dict() for c in begun)]) in (None, changes)


@pytest.mark.parametrize("warm", [False, True])
def test_a_feed_that_stays_open(graph: omnigraph.Graph, warm: bool) -> None:
    start = graph.changes.poll(start="beginning", max_commits=1)
    cursor = start.cursor
    assert cursor is not None
    first = graph.changes.poll(cursor=cursor, max_changes=5)
    following = graph.changes.follow(cursor=cursor, until_caught_up=True, max_changes=5)
    blocks = iter(following)
    next(blocks)
    commit = graph.commits(limit=1)[0].id
    if warm:  # Manifests are in memory, tables are open.
        assert graph.changes.poll(cursor=cursor).blocks
        assert graph.changes.commit(commit, max_changes=3).next_page_token is not None
    take(graph)
    page = first.next_page_token
    assert page is not None
    for poll in (
        lambda: graph.changes.poll(cursor=cursor),
        lambda: graph.changes.poll(page_token=page),
        lambda: graph.changes.poll(start=f"after:{commit}"),
        lambda: graph.changes.commit(commit),
        lambda: list(blocks),
    ):
        with pytest.raises(omnigraph.NotFoundError) as gap:
            poll()
        assert gap.value.kind is ErrorKind.FEED_GAP
    with omnigraph.open(graph.uri) as fresh, pytest.raises(omnigraph.NotFoundError) as gap:
        fresh.changes.poll(cursor=cursor)
    assert gap.value.kind is ErrorKind.FEED_GAP
    assert gap.value.details["cursor"] == cursor
    assert graph.changes.poll(start="now").caught_up


def test_a_scan_that_tasks_hold(graph: omnigraph.Graph) -> None:
    """As Spark reads: by the names of table versions, in other processes."""
    state = graph.snapshot()._snapshot
    pinned = PinnedGraph.of(graph._repository, state)
    scan = PinnedScan(table=pinned.table(pinned.type("Person")), columns=("name",))
    pieces = scan.pieces()
    assert sum(batch.num_rows for piece in pieces for batch in scan.batches(piece)) == PEOPLE
    take(graph)
    with pytest.raises(omnigraph.NotFoundError) as gone:
        [list(scan.batches(piece)) for piece in pieces]
    assert gone.value.kind is ErrorKind.HISTORY_RECLAIMED


def test_a_state_that_has_another_name_is_still_read(graph: omnigraph.Graph) -> None:
    """News are versions: who holds one of them holds the state that they tell of."""
    graph.branches.create("b")
    held = graph.snapshot("b")
    graph.tags.create("t")
    expected = {name: read(graph.snapshot()) for name, read in READS.items()}
    graph.branches.delete("b")
    take(graph)
    for name, read in READS.items():
        assert read(held) == expected[name], name


def test_a_writer_that_holds_a_state_goes_on_with_the_newest(graph: omnigraph.Graph) -> None:
    with omnigraph.open(graph.uri) as stale:
        take(graph)
        stale.load([{"type": "Person", "data": {"name": "late", "age": 1}}], mode="merge")
        assert stale.snapshot().count("Person") == PEOPLE + 1
        assert {r["age"] for r in stale.snapshot().rows("Person")} == {1, 9}


@pytest.mark.parametrize("kept", ["branch", "tag", "policy"])
@pytest.mark.parametrize("lost", ["data", "_graph"])
def test_what_is_missing_of_a_state_that_is_kept_is_damage(
    graph: omnigraph.Graph, kept: str, lost: str
) -> None:
    graph.tags.create("t")
    for age in (7, 8, 9):
        write(graph, age)
    assert cleanup(graph._repository, Policy(keep=2), confirm=True).files_removed
    name = {"branch": "main", "tag": "t", "policy": f"commit:{graph.commits(limit=2)[1].id}"}[kept]
    with omnigraph.open(graph.uri) as fresh:
        held = fresh.at(name)
        pin = held._snapshot.pins["node:Person"].name
        if lost == "data":
            files = graph._repository.tables.open(pin).files_since(None)
            (Path(graph.uri) / next(f for f in files if "/data/" in f)).unlink()
        else:
            (Path(graph.uri) / pin.manifest).unlink()
        for read in (READS["rows"], READS["export"], READS["scan"], READS["key"]):
            with pytest.raises(omnigraph.CorruptionError):
                read(held)
        before = graph.commits(limit=1)[0].parent_id if kept == "branch" else "main"
        with pytest.raises(omnigraph.CorruptionError):
            list(fresh.diff(str(before), name))
        if kept != "tag":
            with pytest.raises(omnigraph.CorruptionError):
                fresh.changes.commit(graph.commits(limit=1)[0].id)
