"""The change feed: blocks, pages, cursors, gaps and the baseline, rule by rule."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO, StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.branch.changes import EntityChange
from omnigraph.branch.feed.blocks import ChangeBlock
from omnigraph.branch.feed.reader import ChangePage
from omnigraph.branch.feed.tokens import FeedCursor, Position
from omnigraph.branch.merge.three_way import merge
from omnigraph.errors import ErrorKind
from omnigraph.manifest.lineage import Lineage
from omnigraph.manifest.snapshot import ManifestPlace
from omnigraph.testing.clock import ManualClock

SCHEMA = """
node P { code: String @key  n: I32?  text: String? }
node Q { code: String @key }
edge E: P -> P { w: F32? }
edge F: P -> Q { @key(@src, @dst) }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA, clock=ManualClock()) as graph:
        yield graph


def p(*codes: str, **data: Any) -> list[dict[str, Any]]:
    return [{"type": "P", "data": {"code": code, **data}} for code in codes]


def add(graph: omnigraph.Graph, *codes: str, branch: str = "main", **data: Any) -> str:
    """Insert or replace nodes; returns the commit."""
    made = graph.load(p(*codes, **data), mode="merge", branch=branch).commit
    assert made is not None
    return made.id


def remove(graph: omnigraph.Graph, code: str, branch: str = "main") -> str:
    made = graph.mutate(f'query m() {{ delete P where code = "{code}" }}', branch=branch).commit
    assert made is not None
    return made.id


def poll_all(graph: omnigraph.Graph, **options: Any) -> tuple[list[ChangePage], str]:
    """All pages of one poll, and its cursor."""
    pages = [graph.changes.poll(**options)]
    kept = {n: v for n, v in options.items() if n not in ("start", "cursor", "max_commits")}
    while (token := pages[-1].next_page_token) is not None:
        assert pages[-1].cursor is None
        assert pages[-1].caught_up is None
        pages.append(graph.changes.poll(page_token=token, **kept))
    assert pages[-1].cursor is not None
    assert pages[-1].caught_up is not None
    return pages, pages[-1].cursor


def commits(*pages: ChangePage) -> list[str]:
    return [block.cause.commit_id for page in pages for block in page.blocks]


def seen(*blocks: ChangeBlock) -> list[tuple[str, str, str]]:
    return [(c.type_name, c.id, c.op) for block in blocks for c in block.changes]


def rejection(found: pytest.ExceptionInfo[omnigraph.UsageError]) -> str:
    assert found.value.kind is ErrorKind.CURSOR_REJECTED
    assert found.value.message.startswith("change cursor rejected: ")
    return found.value.details["reason"]


# One commit


def test_a_block_tells_the_commit_and_exact_images(graph: omnigraph.Graph) -> None:
    first = add(graph, "a", n=1)
    graph.load(
        [
            *p("a", n=2, text=""),
            {"edge": "E", "from": "a", "to": "a", "data": {"id": "e", "w": 0.1}},
        ],
        mode="merge",
        actor="ann",
    )
    made = graph.commits()[0]
    block = graph.changes.commit(made.id)
    assert block.to_dict() == {
        "cause": {
            "graph_commit_id": made.id,
            "parent_commit_id": first,
            "authored_branch": "main",
            "actor_id": "ann",
            "authored_at": made.created_at_us,
        },
        "changes": [
            {
                "kind": "node",
                "type": {"id": f"{graph.catalog.nodes['P'].id:016x}", "name": "P"},
                "id": "a",
                "op": "update",
                "changed": ["n", "text"],
                "before": {"properties": {"code": "a", "n": 1}},
                "after": {"properties": {"code": "a", "n": 2, "text": ""}},
            },
            {
                "kind": "edge",
                "type": {"id": f"{graph.catalog.edges['E'].id:016x}", "name": "E"},
                "id": "e",
                "op": "insert",
                "after": {"properties": {"w": 0.1}, "endpoints": {"from": "a", "to": "a"}},
            },
        ],
    }
    assert json.loads(block.to_json()) == block.to_dict()
    gone = graph.changes.commit(remove(graph, "a"))
    assert [(c.op, c.after) for c in gone.changes] == [("delete", None)] * 2
    assert gone.changes[0].before == block.changes[0].after
    assert gone.changes[1].before == block.changes[1].after


def test_a_commit_is_found_by_the_beginning_of_its_id_on_any_branch(graph: omnigraph.Graph) -> None:
    graph.branches.create("side")
    made = add(graph, "a", branch="side")
    assert seen(graph.changes.commit(made)) == [("P", "a", "insert")]
    assert graph.changes.commit(made.lower(), branch="side").cause.branch == "side"
    with pytest.raises(omnigraph.NotFoundError) as found:
        graph.changes.commit(made, branch="main")
    assert found.value.kind is ErrorKind.COMMIT_NOT_FOUND


def test_changes_are_ordered_by_kind_type_and_id(graph: omnigraph.Graph) -> None:
    graph.load(
        [
            {"edge": "F", "from": "b", "to": "q", "data": {}},
            {"edge": "E", "from": "b", "to": "a", "data": {"id": "2"}},
            {"edge": "E", "from": "a", "to": "b", "data": {"id": "1"}},
            {"type": "Q", "data": {"code": "q"}},
            *p("\uffee", "\U0001f600", "b", "a"),
        ]
    )
    block = graph.changes.commit(graph.commits()[0].id)
    order = [(c.kind != "node", c.type_id, c.id.encode()) for c in block.changes]
    assert order == sorted(order)
    assert [c.id for c in block.changes][:4] == ["a", "b", "\uffee", "\U0001f600"]


def test_a_merge_is_compared_with_its_first_parent(graph: omnigraph.Graph) -> None:
    add(graph, "a", n=1)
    graph.branches.create("side")
    theirs = add(graph, "s", branch="side")
    ours = add(graph, "m")
    done = merge(graph._repository, "side")
    assert done.commit is not None
    block = graph.changes.commit(done.commit.id)
    assert (block.cause.parent_commit_id, block.cause.merged_parent_commit_id) == (ours, theirs)
    assert seen(block) == [("P", "s", "insert")]
    # The merged commit itself is not in the line of main: its change came with the merge.
    [page], _ = poll_all(graph, start="beginning")
    assert theirs not in commits(page)
    assert seen(*page.blocks) == [("P", "a", "insert"), ("P", "m", "insert"), ("P", "s", "insert")]


def test_a_commit_that_changes_nothing_is_an_empty_block(graph: omnigraph.Graph) -> None:
    add(graph, "a", n=1)
    before = graph.changes.poll().cursor
    add(graph, "a", n=2)
    graph.reset(graph.commits()[1].id)
    graph.branches.create("side")
    # A merge of what came to nothing: it only says something about the lineage.
    add(graph, "x", branch="side")
    remove(graph, "x", branch="side")
    add(graph, "b")
    done = merge(graph._repository, "side")
    assert done.commit is not None
    assert graph.changes.commit(done.commit.id).changes == ()
    page = graph.changes.poll(cursor=before)
    assert [len(block) for block in page.blocks] == [0, 1, 0]
    assert page.blocks[0].cause.parent_commit_id == FeedCursor.decode(before).position.commit_id


def test_the_first_commit_has_no_parent(graph: omnigraph.Graph) -> None:
    with pytest.raises(omnigraph.UsageError, match="no parent") as found:
        graph.changes.commit(graph.commits()[-1].id)
    assert found.value.kind is ErrorKind.PARENTLESS_COMMIT


# Filters


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({"kinds": ["edge"]}, {"E", "F"}),
        ({"types": ["P", "e"]}, {"P", "E"}),
        ({"types": ["P"], "kinds": ["edge"]}, set()),
        ({"types": ["Q"], "ops": ["insert"]}, {"Q"}),
        ({"ops": ["update"]}, set()),
    ],
)
def test_filters_choose_kinds_types_and_operations(
    graph: omnigraph.Graph, wish: dict[str, Any], expected: set[str]
) -> None:
    graph.load(
        [
            *p("a"),
            {"type": "Q", "data": {"code": "q"}},
            {"edge": "E", "from": "a", "to": "a", "data": {}},
            {"edge": "F", "from": "a", "to": "q", "data": {}},
        ]
    )
    block = graph.changes.commit(graph.commits()[0].id, **wish)
    assert {c.type_name for c in block.changes} == expected
    page = graph.changes.poll(start="beginning", **wish)
    assert page.caught_up
    assert {c.type_name for block in page.blocks for c in block.changes} == expected


def test_with_a_filter_commits_without_such_changes_are_passed_over(graph: omnigraph.Graph) -> None:
    add(graph, "a")
    graph.load([{"type": "Q", "data": {"code": "q"}}])
    add(graph, "b")
    page = graph.changes.poll(start="beginning", types=["Q"])
    assert seen(*page.blocks) == [("Q", "q", "insert")]
    assert FeedCursor.decode(page.cursor).position.commit_id == graph.commits()[0].id


@pytest.mark.parametrize(
    ("wish", "kind"),
    [
        ({"types": ["R"]}, ErrorKind.TYPE_NOT_FOUND),
        ({"kinds": ["hyperedge"]}, ErrorKind.USAGE),
        ({"ops": ["rename"]}, ErrorKind.USAGE),
        ({"ops": "insert"}, ErrorKind.USAGE),
    ],
)
def test_an_unknown_name_in_a_filter_is_an_error(
    graph: omnigraph.Graph, wish: dict[str, Any], kind: ErrorKind
) -> None:
    made = add(graph, "a")
    calls = [
        lambda: graph.changes.commit(made, **wish),
        lambda: graph.changes.poll(**wish),
        lambda: graph.changes.follow(**wish),
        lambda: graph.changes.baseline(BytesIO(), **wish),
    ]
    for call in calls:
        with pytest.raises(omnigraph.OmnigraphError) as found:
            call()
        assert found.value.kind is kind


# Pages


def test_a_page_ends_after_so_many_changes_and_the_cursor_comes_with_the_last(
    graph: omnigraph.Graph,
) -> None:
    made = [add(graph, *"abcde"), add(graph, "f"), add(graph, *"ghi")]
    pages, cursor = poll_all(graph, start="beginning", max_changes=2)
    parts = [
        [(made.index(b.cause.commit_id), len(b), b.continued) for b in p.blocks] for p in pages
    ]
    assert parts == [
        [(0, 2, True)],
        [(0, 2, True)],
        [(0, 1, False), (1, 1, False)],
        [(2, 2, True)],
        [(2, 1, False)],
    ]
    whole, same = poll_all(graph, start="beginning")
    assert same == cursor
    assert [c for p in pages for b in p.blocks for c in b.changes] == [
        c for b in whole[0].blocks for c in b.changes
    ]


def test_changes_of_a_commit_come_in_pages(graph: omnigraph.Graph) -> None:
    made = add(graph, *"abcde")
    found: list[EntityChange] = []
    block = graph.changes.commit(made, max_changes=2)
    while True:
        found += block.changes
        if block.next_page_token is None:
            break
        assert len(block) == 2
        block = graph.changes.commit(made, max_changes=2, page_token=block.next_page_token)
    assert found == list(graph.changes.commit(made).changes)


def test_a_page_ends_before_it_is_too_large_and_a_huge_change_comes_alone(
    graph: omnigraph.Graph,
) -> None:
    graph.load([*p("a", "b"), *p("c", text="x" * 5_000), *p("d", "e", text="y" * 300)])
    pages, _ = poll_all(graph, start="beginning", max_bytes=1_000)
    assert [[c.id for c in page.blocks[0].changes] for page in pages] == [
        ["a", "b"], ["c"], ["d", "e"],
    ]  # fmt: skip
    for page in pages:
        lines = page.blocks[0].lines
        assert sum(len(line) + 1 for line in lines) <= 1_000 or len(lines) == 1


def test_the_usual_page_holds_a_thousand_changes(graph: omnigraph.Graph) -> None:
    graph.load(p(*(f"{i:05}" for i in range(2_300))))
    pages, _ = poll_all(graph, start="beginning")
    assert [len(page.blocks[0]) for page in pages] == [1_000, 1_000, 300]
    ids = [c.id for page in pages for block in page.blocks for c in block.changes]
    assert ids == [f"{i:05}" for i in range(2_300)]


def test_a_poll_is_cut_where_the_branch_stands_when_it_begins(graph: omnigraph.Graph) -> None:
    made = [add(graph, *"abc"), add(graph, *"def")]
    first = graph.changes.poll(start="beginning", max_changes=2)
    later = add(graph, "z")
    pages = [first]
    while (token := pages[-1].next_page_token) is not None:
        pages.append(graph.changes.poll(page_token=token, max_changes=2))
    assert list(dict.fromkeys(commits(*pages))) == made
    # It is caught up with the moment at which it began.
    assert pages[-1].caught_up
    assert commits(graph.changes.poll(cursor=pages[-1].cursor)) == [later]


def test_a_poll_goes_on_although_the_branch_is_reset_in_between(graph: omnigraph.Graph) -> None:
    made = [add(graph, *"abc"), add(graph, *"def")]
    first = graph.changes.poll(start="beginning", max_changes=2)
    graph.reset(made[0])
    pages = [first]
    while (token := pages[-1].next_page_token) is not None:
        pages.append(graph.changes.poll(page_token=token, max_changes=2))
    assert [c.id for page in pages for b in page.blocks for c in b.changes] == [*"abcdef"]
    with pytest.raises(omnigraph.UsageError) as found:
        graph.changes.poll(cursor=pages[-1].cursor)
    assert rejection(found) == "left_behind"


def test_a_poll_looks_at_so_many_commits(graph: omnigraph.Graph) -> None:
    made = [add(graph, f"{i}") for i in range(7)]
    page = graph.changes.poll(start="beginning", max_commits=3)
    assert commits(page) == made[:3]
    assert page.caught_up is False
    # Also those that a filter passes over are looked at.
    page = graph.changes.poll(start="beginning", max_commits=3, types=["Q"])
    assert (page.blocks, page.caught_up) == ((), False)
    for bad in (0, 513, "7"):
        with pytest.raises(omnigraph.UsageError, match="max_commits"):
            graph.changes.poll(max_commits=bad)


def test_reading_many_pages_of_a_commit_compares_it_once(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.branch.feed import blocks

    made: list[object] = []
    real = blocks.Diff
    monkeypatch.setattr(blocks, "Diff", lambda *a: made.append(a) or real(*a))
    add(graph, *(f"{i}" for i in range(20)))
    poll_all(graph, start="beginning", max_changes=3)
    assert len(made) == 1


# Where a feed begins, and cursors


def test_the_three_starts(graph: omnigraph.Graph) -> None:
    made = [add(graph, code) for code in "abc"]
    assert graph.changes.poll().blocks == graph.changes.poll(start="now").blocks == ()
    assert graph.changes.poll().caught_up
    assert commits(graph.changes.poll(start="beginning")) == made
    assert commits(graph.changes.poll(start=f"after:{made[0]}")) == made[1:]
    assert commits(graph.changes.poll(start=f"after:{made[0].lower()}")) == made[1:]
    first = graph.commits()[-1].id
    assert commits(graph.changes.poll(start=f"after:{first}")) == made


@pytest.mark.parametrize("start", ["", "after:", "later", "after", 12, "after:Z"])
def test_a_start_that_is_none_is_an_error(graph: omnigraph.Graph, start: Any) -> None:
    with pytest.raises(omnigraph.OmnigraphError) as found:
        graph.changes.poll(start=start)
    assert found.value.kind in (ErrorKind.USAGE, ErrorKind.COMMIT_NOT_FOUND)


def test_a_merged_commit_is_not_in_the_line(graph: omnigraph.Graph) -> None:
    graph.branches.create("side")
    theirs = add(graph, "s", branch="side")
    add(graph, "m")
    merge(graph._repository, "side")
    with pytest.raises(omnigraph.NotFoundError) as found:
        graph.changes.poll(start=f"after:{theirs}")
    assert found.value.kind is ErrorKind.COMMIT_NOT_FOUND


def test_only_one_of_start_cursor_and_page_token(graph: omnigraph.Graph) -> None:
    add(graph, *"ab")
    page = graph.changes.poll(start="beginning", max_changes=1)
    cursor, token = graph.changes.poll().cursor, page.next_page_token
    for given in (
        {"start": "now", "cursor": cursor},
        {"start": "now", "page_token": token},
        {"cursor": cursor, "page_token": token},
        {"page_token": token, "max_commits": 5},
    ):
        with pytest.raises(omnigraph.UsageError) as found:
            graph.changes.poll(**given)
        assert found.value.kind is ErrorKind.USAGE


def test_a_cursor_goes_on_in_any_process_and_may_be_used_again(graph: omnigraph.Graph) -> None:
    add(graph, "a")
    cursor = graph.changes.poll().cursor
    made = [add(graph, code) for code in "bc"]
    with omnigraph.open(graph.uri) as other:
        page = other.changes.poll(cursor=cursor)
    assert commits(page) == commits(graph.changes.poll(cursor=cursor)) == made
    again = graph.changes.poll(cursor=page.cursor)
    assert (again.blocks, again.cursor, again.caught_up) == ((), page.cursor, True)


def test_the_line_of_a_branch_begins_on_the_branch_it_was_made_from(graph: omnigraph.Graph) -> None:
    made = [add(graph, "a"), add(graph, "b")]
    graph.branches.create("side", made[0])
    made.insert(1, add(graph, "s", branch="side"))
    graph.branches.create("deep", "side")
    made.insert(2, add(graph, "d", branch="deep"))
    assert commits(graph.changes.poll(branch="deep", start="beginning")) == made[:3]
    cursor = graph.changes.poll(branch="deep", start=f"after:{made[0]}", max_commits=1).cursor
    assert commits(graph.changes.poll(branch="deep", cursor=cursor)) == made[2:3]
    # The parents may end: the line stays.
    graph.branches.delete("side")
    with omnigraph.open(graph.uri) as other:
        assert commits(other.changes.poll(branch="deep", start="beginning")) == made[:3]


def test_a_cursor_of_another_graph_is_refused(graph: omnigraph.Graph, tmp_path: Path) -> None:
    add(graph, *"ab")
    page = graph.changes.poll(start="beginning", max_changes=1)
    block = graph.changes.commit(graph.commits()[0].id, max_changes=1)
    with omnigraph.init(tmp_path / "other", SCHEMA) as other:
        for call in (
            lambda: other.changes.poll(cursor=graph.changes.poll().cursor),
            lambda: other.changes.poll(page_token=page.next_page_token),
            lambda: other.changes.commit(block.cause.commit_id, page_token=block.next_page_token),
        ):
            with pytest.raises(omnigraph.UsageError) as found:
                call()
            assert rejection(found) == "other_graph"


def test_a_cursor_of_another_branch_or_life_is_refused(graph: omnigraph.Graph) -> None:
    graph.branches.create("side")
    cursor = graph.changes.poll(branch="side").cursor
    with pytest.raises(omnigraph.UsageError) as found:
        graph.changes.poll(cursor=cursor)
    assert rejection(found) == "other_branch"
    graph.branches.delete("side")
    with pytest.raises(omnigraph.NotFoundError) as missing:
        graph.changes.poll(branch="side", cursor=cursor)
    assert missing.value.kind is ErrorKind.BRANCH_NOT_FOUND
    graph.branches.create("side")
    with pytest.raises(omnigraph.UsageError, match="earlier life") as found:
        graph.changes.poll(branch="side", cursor=cursor)
    assert rejection(found) == "other_branch"


def test_a_renamed_branch_is_the_same_branch(graph: omnigraph.Graph) -> None:
    graph.branches.create("side")
    first = add(graph, "a", branch="side")
    cursor = graph.changes.poll(branch="side").cursor
    graph.branches.rename("side", "aside")
    made = add(graph, "b", branch="aside")
    graph.branches.rename("aside", "beside")
    page = graph.changes.poll(branch="beside", cursor=cursor)
    assert commits(page) == [made]
    assert page.caught_up
    assert page.blocks[0].cause.branch == "aside"
    assert commits(graph.changes.poll(branch="beside", start="beginning")) == [first, made]


def test_a_cursor_of_another_filter_is_refused(graph: omnigraph.Graph) -> None:
    made = add(graph, *"abc")
    filtered = graph.changes.poll(types=["P"], ops=["insert", "delete"])
    assert graph.changes.poll(cursor=filtered.cursor, types=["P"], ops=["delete", "insert"])
    page = graph.changes.poll(start="beginning", types=["P"], max_changes=1)
    block = graph.changes.commit(made, types=["P"], max_changes=1)
    for call in (
        lambda: graph.changes.poll(cursor=filtered.cursor),
        lambda: graph.changes.poll(cursor=filtered.cursor, types=["P"]),
        lambda: graph.changes.poll(page_token=page.next_page_token),
        lambda: graph.changes.commit(made, page_token=block.next_page_token, kinds=["node"]),
        lambda: graph.changes.follow(cursor=filtered.cursor),
    ):
        with pytest.raises(omnigraph.UsageError) as found:
            call()
        assert rejection(found) == "other_filter"


def test_page_tokens_and_cursors_are_not_mixed_up(graph: omnigraph.Graph) -> None:
    made = [add(graph, *"abc"), add(graph, *"def")]
    cursor = graph.changes.poll().cursor
    page = graph.changes.poll(start="beginning", max_changes=1)
    block = graph.changes.commit(made[0], max_changes=1)
    for call, why in (
        (lambda: graph.changes.poll(cursor=page.next_page_token), "not_a_cursor"),
        (lambda: graph.changes.poll(cursor=block.next_page_token), "not_a_cursor"),
        (lambda: graph.changes.poll(page_token=cursor), "not_a_page_token"),
        (lambda: graph.changes.poll(page_token=block.next_page_token), "not_a_page_token"),
        (
            lambda: graph.changes.commit(made[0], page_token=page.next_page_token),
            "not_a_page_token",
        ),
        (lambda: graph.changes.commit(made[1], page_token=block.next_page_token), "other_commit"),
        (lambda: graph.changes.poll(cursor=cursor[:-3]), "damaged"),
        (lambda: graph.changes.poll(cursor=""), "damaged"),
        (lambda: graph.changes.poll(page_token="p" * 5_000), "too_long"),
    ):
        with pytest.raises(omnigraph.UsageError) as found:
            call()
        assert rejection(found) == why


def test_a_cursor_whose_commit_a_reset_left_behind_is_refused(graph: omnigraph.Graph) -> None:
    made = [add(graph, code) for code in "abc"]
    kept, lost = (
        graph.changes.poll(start=f"after:{made[i]}", max_commits=1).cursor for i in (0, 1)
    )
    old = graph.changes.poll(start="beginning", max_commits=1).cursor
    graph.reset(made[1])
    back = graph.commits()[0].id
    assert commits(graph.changes.poll(cursor=kept)) == [back]
    assert commits(graph.changes.poll(cursor=old)) == [made[1], back]
    with pytest.raises(omnigraph.UsageError, match="reset") as found:
        graph.changes.poll(cursor=lost)
    assert rejection(found) == "left_behind"


def test_a_forged_position_is_refused(graph: omnigraph.Graph) -> None:
    made = [add(graph, code) for code in "abc"]
    good = FeedCursor.decode(graph.changes.poll().cursor)
    for commit_id, version in ((made[2], 3), (made[0], 4), ("0" * 26, 2), (made[2], 99)):
        place = ManifestPlace(path=good.position.place.path, version=version)
        bad = FeedCursor(binding=good.binding, position=Position(commit_id=commit_id, place=place))
        with pytest.raises(omnigraph.UsageError) as found:
            graph.changes.poll(cursor=bad.encode())
        assert rejection(found) == "left_behind"


# Long histories


@pytest.fixture
def short_windows(monkeypatch: pytest.MonkeyPatch) -> int:
    """Snapshots carry few commits, so that a short history is a long one."""
    for module in ("manifest.codec", "branch.feed.line"):
        monkeypatch.setattr(f"omnigraph.{module}.COMMITS_MAX", 3)
    return 3


def test_a_cursor_far_behind_reads_forward_only(
    graph: omnigraph.Graph, short_windows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [add(graph, f"{i}") for i in range(40)]
    cursor = graph.changes.poll(start=f"after:{made[4]}", max_commits=1).cursor
    opened: set[int] = set()
    real = Lineage.head_at

    def head_at(lineage: Lineage, place: ManifestPlace) -> Any:
        opened.add(place.version)
        return real(lineage, place)

    monkeypatch.setattr(Lineage, "head_at", head_at)
    with omnigraph.open(graph.uri) as other:
        page = other.changes.poll(cursor=cursor, max_commits=2)
    assert commits(page) == made[6:8]
    assert opened
    assert max(opened) <= 8 + short_windows < 40


def test_every_cursor_of_a_line_with_all_kinds_of_borders_goes_on(
    graph: omnigraph.Graph, short_windows: int
) -> None:
    trunk = [add(graph, f"m{i}") for i in range(6)]
    graph.branches.create("side", trunk[3])
    for i in range(5):
        add(graph, f"s{i}", branch="side")
        graph.branches.rename("side", "x")
        graph.branches.rename("x", "side")
    graph.reset("side@4", branch="side")
    for i in range(4):
        add(graph, f"t{i}", branch="side")
    graph.reset(trunk[5], branch="side")
    for i in range(5):
        add(graph, f"u{i}", branch="side")
    graph.branches.rename("side", "last")
    line = [c.id for c in graph.commits(branch="last", first_parent=True)][::-1]
    with omnigraph.open(graph.uri) as other:
        for number, commit in enumerate(line):
            page = other.changes.poll(branch="last", start=f"after:{commit}", max_commits=2)
            assert commits(page) == line[number + 1 : number + 3]
            rest = other.changes.poll(branch="last", cursor=page.cursor)
            assert commits(rest) == line[number + 3 :]
        assert commits(other.changes.poll(branch="last", start="beginning")) == line[1:]


def test_forged_positions_are_refused_far_back_too(
    graph: omnigraph.Graph, short_windows: int
) -> None:
    made = [add(graph, f"{i}") for i in range(12)]
    good = FeedCursor.decode(graph.changes.poll().cursor)
    for commit_id, version in ((made[2], 3), ("0" * 26, 2), (made[2], 5), (made[5], 99)):
        place = ManifestPlace(path=good.position.place.path, version=version)
        bad = FeedCursor(binding=good.binding, position=Position(commit_id=commit_id, place=place))
        with pytest.raises(omnigraph.UsageError) as found:
            graph.changes.poll(cursor=bad.encode())
        assert rejection(found) == "left_behind"
    place = ManifestPlace(path=good.position.place.path, version=4)
    fine = FeedCursor(binding=good.binding, position=Position(commit_id=made[2], place=place))
    assert commits(graph.changes.poll(cursor=fine.encode())) == made[3:]


# Reclaimed history


def reclaim(graph: omnigraph.Graph, *versions: int) -> None:
    """Take manifests of main away, as a cleanup will."""
    repository = graph._repository
    store = repository.manifest("__manifest")
    root = repository.location.local_path
    assert root is not None
    for version in versions:
        (root / store.manifest_name(version)).unlink()


def test_reclaimed_history_is_a_gap(graph: omnigraph.Graph, short_windows: int) -> None:
    made = [add(graph, f"{i}") for i in range(12)]
    cursor = graph.changes.poll(start=f"after:{made[1]}", max_commits=1).cursor
    near = graph.changes.poll(start=f"after:{made[8]}", max_commits=1).cursor
    reclaim(graph, *range(1, 8))
    with omnigraph.open(graph.uri) as late:
        for options in ({"cursor": cursor}, {"start": "beginning"}, {"start": f"after:{made[0]}"}):
            with pytest.raises(omnigraph.NotFoundError) as found:
                late.changes.poll(**options)
            assert found.value.kind is ErrorKind.FEED_GAP
            assert found.value.details.get("cursor") == options.get("cursor")
            assert found.value.details["first_unreadable_commit_id"] in made[:7]
        for branch in (None, "main"):
            with pytest.raises(omnigraph.NotFoundError) as found:
                late.changes.commit(made[1], branch=branch)
            assert found.value.kind is ErrorKind.FEED_GAP
            assert found.value.details["first_unreadable_commit_id"] in made[:7]
        # Whoever is not behind is not bothered, and a baseline is always there.
        assert commits(late.changes.poll(cursor=near)) == made[10:]
        made.append(add(late, "z"))
        resumed = late.changes.baseline(BytesIO()).cursor
        assert late.changes.poll(cursor=resumed).caught_up


def test_a_gap_names_the_commit_that_cannot_be_read(graph: omnigraph.Graph) -> None:
    made = [add(graph, f"{i}") for i in range(6)]
    cursor = graph.changes.poll(start=f"after:{made[0]}", max_commits=1).cursor
    reclaim(graph, 4)
    with omnigraph.open(graph.uri) as late:
        with pytest.raises(omnigraph.NotFoundError) as found:
            late.changes.poll(cursor=cursor)
        assert found.value.kind is ErrorKind.FEED_GAP
        assert found.value.details == {"cursor": cursor, "first_unreadable_commit_id": made[2]}
        for lost in made[2:4]:
            with pytest.raises(omnigraph.NotFoundError) as found:
                late.changes.commit(lost)
            assert found.value.details == {"first_unreadable_commit_id": lost}
        assert seen(late.changes.commit(made[4])) == [("P", "4", "insert")]


# The baseline


def test_a_baseline_is_an_export_and_the_cursor_behind_it(graph: omnigraph.Graph) -> None:
    add(graph, *"ab")
    graph.load([{"edge": "E", "from": "a", "to": "b", "data": {"w": 0.5}}])
    exported, out = BytesIO(), BytesIO()
    graph.export(exported)
    made = graph.changes.baseline(out)
    *rows, last = out.getvalue().splitlines(keepends=True)
    assert b"".join(rows) == exported.getvalue()
    assert json.loads(last) == {
        "baseline": {"snapshot_commit_id": graph.commits()[0].id, "resume_cursor": made.cursor}
    }
    assert made.rows == len(rows) == 3
    later = add(graph, "c")
    assert commits(graph.changes.poll(cursor=made.cursor)) == [later]


def test_a_baseline_of_some_types_resumes_with_that_filter(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    graph.load([*p("a"), {"type": "Q", "data": {"code": "q"}}])
    made = graph.changes.baseline(tmp_path / "q.jsonl", types=["Q"])
    lines = (tmp_path / "q.jsonl").read_text().splitlines()
    assert [json.loads(line).get("type") for line in lines] == ["Q", None]
    add(graph, "b")
    assert graph.changes.poll(cursor=made.cursor, types=["Q"]).blocks == ()
    with pytest.raises(omnigraph.UsageError):
        graph.changes.poll(cursor=made.cursor)
    nothing = graph.changes.baseline(BytesIO(), types=["Q"], kinds=["edge"])
    assert nothing.rows == 0


def test_a_baseline_is_of_one_moment(graph: omnigraph.Graph) -> None:
    add(graph, *"ab")

    class Slow(BytesIO):
        def write(self, content: Any) -> int:
            if not self.getvalue():
                add(graph, "late")
            return super().write(content)

    out = Slow()
    made = graph.changes.baseline(out)
    assert b"late" not in out.getvalue()
    assert seen(*graph.changes.poll(cursor=made.cursor).blocks) == [("P", "late", "insert")]


def test_a_baseline_that_cannot_be_written_is_an_error(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    for out in (StringIO(), tmp_path):
        with pytest.raises(omnigraph.UsageError):
            graph.changes.baseline(out)


# Following


def test_following_delivers_whole_commits_and_a_cursor_behind_each(graph: omnigraph.Graph) -> None:
    made = [add(graph, *"abc"), add(graph, "d"), add(graph, *"ef")]
    feed = graph.changes.follow(start="beginning", until_caught_up=True, max_changes=2)
    cursors = [feed.cursor]
    found: list[str] = []
    for block in feed:
        found.append(block.cause.commit_id)
        cursors.append(feed.cursor)
        if block.continued:
            assert feed.cursor == cursors[-2]
    assert found == [made[0], made[0], made[1], made[2]]
    rest = [commits(graph.changes.poll(cursor=c)) for c in dict.fromkeys(cursors)]
    assert rest == [made, made[1:], made[2:], []]


def test_following_waits_and_sees_what_others_publish(graph: omnigraph.Graph) -> None:
    waits: list[float] = []

    class Stop(Exception):
        pass

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 4:
            raise Stop
        if len(waits) != 2:
            with omnigraph.open(graph.uri) as other:
                add(other, f"w{len(waits)}")

    add(graph, "before")
    feed = graph.changes.follow(interval_s=2.5, wait=wait)
    add(graph, "soon")
    found: list[tuple[str, str, str]] = []
    with pytest.raises(Stop):
        for block in feed:
            found += seen(block)
    assert [id for _, id, _ in found] == ["soon", "w1", "w3"]
    assert waits == [2.5] * 4
    assert graph.changes.poll(cursor=feed.cursor).blocks == ()


def test_following_waits_on_the_clock_of_the_graph(tmp_path: Path) -> None:
    class Alarm(ManualClock):
        def sleep(self, seconds: float) -> None:
            raise TimeoutError(seconds)

    with omnigraph.init(tmp_path, SCHEMA, clock=Alarm()) as graph, pytest.raises(TimeoutError):
        list(graph.changes.follow())


def test_a_follower_that_stops_inside_a_commit_gets_all_of_it_again(graph: omnigraph.Graph) -> None:
    made = add(graph, *"abcd")
    feed = graph.changes.follow(start="beginning", until_caught_up=True, max_changes=3)
    for block in feed:
        assert block.continued
        break
    again = graph.changes.follow(cursor=feed.cursor, until_caught_up=True)
    assert [(b.cause.commit_id, len(b)) for b in again] == [(made, 4)]


def test_following_by_pages_moves_the_cursor_over_commits_that_are_passed_over(
    graph: omnigraph.Graph,
) -> None:
    feed = graph.changes.follow(until_caught_up=True, types=["Q"])
    assert list(feed.pages()) == []
    begin = feed.cursor
    add(graph, "a")
    [page] = list(feed.pages())
    assert page.blocks == ()
    assert page.cursor == feed.cursor != begin
    assert list(feed.pages()) == []


@pytest.mark.parametrize("interval", [-1, float("nan"), float("inf"), "1", True])
def test_an_interval_that_is_none_is_refused(graph: omnigraph.Graph, interval: Any) -> None:
    with pytest.raises(omnigraph.UsageError, match="interval_s"):
        graph.changes.follow(interval_s=interval)


def test_following_ends_with_an_error_when_it_cannot_go_on(graph: omnigraph.Graph) -> None:
    graph.branches.create("side")
    feed = graph.changes.follow(branch="side", wait=lambda _: graph.branches.delete("side"))
    with pytest.raises(omnigraph.NotFoundError) as found:
        list(feed)
    assert found.value.kind is ErrorKind.BRANCH_NOT_FOUND


def test_a_closed_graph_has_no_feed(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path, SCHEMA)
    graph.changes.poll()
    graph.close()
    with pytest.raises(omnigraph.UsageError, match="closed"):
        graph.changes.poll()


def test_polling_is_ordered_and_without_holes(graph: omnigraph.Graph) -> None:
    for i in range(9):
        add(graph, f"{i}")
    cursor, blocks = None, list[ChangeBlock]()
    while True:
        start = {"cursor": cursor} if cursor else {"start": "beginning"}
        pages, cursor = poll_all(graph, max_commits=2, **start)
        blocks += [b for page in pages for b in page.blocks]
        if pages[-1].caught_up:
            break
    for before, after in pairwise(blocks):
        assert after.cause.parent_commit_id == before.cause.commit_id
