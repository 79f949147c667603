"""The change feed as people use it: ``graph.changes``.

    graph -> [changes] -> branch/feed, view (the baseline)

    for block in graph.changes.follow(start="beginning", until_caught_up=True):
        for change in block.changes: …

Delivery is at least once, in order, in whole commits. Nothing is kept for a reader: a reader that
stores the cursor after the work is done goes on there, in any process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from omnigraph.api.view import SnapshotView, binary_out
from omnigraph.branch.feed.blocks import ChangeBlock, PageSize
from omnigraph.branch.feed.reader import ChangePage, FeedReader, PollRequest
from omnigraph.branch.feed.tokens import NamedFilter
from omnigraph.errors import UsageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN
from omnigraph.schema.json_text import write_all

INTERVAL_S = 1.0
"""How long a follower waits before it asks again."""

Words = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A state that was written, and the cursor that goes on from it."""

    commit_id: str
    cursor: str
    rows: int
    """Entities that were written."""

    def to_dict(self) -> dict[str, Any]:
        """The record behind the entities."""
        return {"snapshot_commit_id": self.commit_id, "resume_cursor": self.cursor}


class Changes:
    """What changed in a graph: by commit, or along a branch.

    ``kinds`` (``node``, ``edge``), ``types`` (names) and ``ops`` (``insert``, ``update``,
    ``delete``) choose some of the changes; none of them means all. A page holds ``max_changes``
    (1000, at most 8192) changes and ``max_bytes`` (4 MiB, at most 32 MiB) of them as JSON; one that
    is larger comes alone.
    """

    def __init__(self, opened: Callable[[], Repository]) -> None:
        self._opened = opened
        self._reader: FeedReader | None = None

    def commit(
        self,
        commit_id: str,
        *,
        branch: str | None = None,
        kinds: Words = (),
        types: Words = (),
        ops: Words = (),
        page_token: str | None = None,
        max_changes: int | None = None,
        max_bytes: int | None = None,
    ) -> ChangeBlock:
        """What one commit changed against its first parent.

        The beginning of an id is enough; it is looked for on ``branch``, else on main and then on
        all others. If the block has a ``next_page_token``, ask again with it for the rest.
        """
        return self._feed.commit(
            commit_id,
            NamedFilter.of(kinds, types, ops),
            PageSize.of(max_changes, max_bytes),
            branch=branch,
            page_token=page_token,
        )

    def poll(
        self,
        *,
        branch: str = MAIN,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Words = (),
        types: Words = (),
        ops: Words = (),
        max_commits: int | None = None,
        max_changes: int | None = None,
        max_bytes: int | None = None,
    ) -> ChangePage:
        """What happened on a branch: a page of blocks, one per commit along first parents.

        Begin with ``start``: ``now`` (the default), ``beginning`` or ``after:<commit>``. While a
        page has a ``next_page_token``, ask with it for the next one. The last page has a
        ``cursor``, which the next poll is given, and says whether the branch had no more.

        A poll looks at ``max_commits`` (128, at most 512). With a filter, commits that changed
        nothing of it are passed over. Raises ``UsageError`` of the kind ``change_cursor_rejected``
        for a cursor of another graph, branch or filter, and ``NotFoundError`` of the kind
        ``change_feed_gap`` if that part of the history was reclaimed.
        """
        request = PollRequest(
            branch=branch,
            start=start,
            cursor=cursor,
            page_token=page_token,
            asked=NamedFilter.of(kinds, types, ops),
            max_commits=max_commits,
            size=PageSize.of(max_changes, max_bytes),
        )
        return self._feed.poll(request)

    def follow(
        self,
        *,
        branch: str = MAIN,
        start: str | None = None,
        cursor: str | None = None,
        kinds: Words = (),
        types: Words = (),
        ops: Words = (),
        until_caught_up: bool = False,
        interval_s: float = INTERVAL_S,
        wait: Callable[[float], None] | None = None,
        max_commits: int | None = None,
        max_changes: int | None = None,
        max_bytes: int | None = None,
    ) -> Follow:
        """An endless iterator over blocks, that polls again and again.

        It begins at the moment of this call, or where ``start`` or ``cursor`` say. With
        ``until_caught_up`` it ends when there is no more; else it waits: ``wait`` is called with
        ``interval_s`` and may return earlier, or raise to end it.
        """
        if isinstance(interval_s, bool) or not isinstance(interval_s, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"interval_s is {interval_s!r}", hint="it is a number of seconds")
        if not 0 <= interval_s < float("inf"):
            raise UsageError(f"interval_s is {interval_s!r}", hint="it is zero or more seconds")

        def request(cursor: str | None, page_token: str | None, start: str | None) -> PollRequest:
            return PollRequest(
                branch=branch,
                start=start,
                cursor=cursor,
                page_token=page_token,
                asked=NamedFilter.of(kinds, types, ops),
                max_commits=None if page_token is not None else max_commits,
                size=PageSize.of(max_changes, max_bytes),
            )

        begin = self._feed.begin(request(cursor, None, start))
        return Follow(
            begin,
            lambda cursor, token: self._feed.poll(request(cursor, token, None)),
            pause=None
            if until_caught_up
            else lambda: (wait or self._feed.repository.clock.sleep)(interval_s),
        )

    def baseline(
        self,
        out: BinaryIO | str | os.PathLike[str],
        *,
        branch: str = MAIN,
        kinds: Words = (),
        types: Words = (),
        ops: Words = (),
        progress: Callable[[int], None] | None = None,
    ) -> Baseline:
        """Write the newest state of a branch as JSONL, and then the cursor that goes on from it.

        The entities are what ``export`` writes. The last line is ``{"baseline":
        {"snapshot_commit_id": …, "resume_cursor": …}}``: a reader that finds it has the whole
        state. ``kinds`` and ``types`` choose what is written; the cursor keeps the filter.
        """
        asked = NamedFilter.of(kinds, types, ops)
        with binary_out(out) as file:
            snapshot, chosen, cursor = self._feed.captured(branch, asked)
            view = SnapshotView(self._feed.repository, snapshot)
            names = [t.name for t in view.catalog.types() if chosen.wants(t)]
            # No names at all would mean all types.
            rows = view.export(file, types=names, progress=progress) if names else 0
            made = Baseline(commit_id=snapshot.head.id, cursor=cursor, rows=rows)
            line = json.dumps({"baseline": made.to_dict()}, separators=(",", ":")) + "\n"
            write_all(file, memoryview(line.encode()))
        return made

    @property
    def _feed(self) -> FeedReader:
        repository = self._opened()
        if self._reader is None or self._reader.repository is not repository:
            self._reader = FeedReader(repository)
        return self._reader


class Follow:
    """The feed of a branch as an iterator over blocks; see ``Changes.follow``.

        feed = graph.changes.follow(cursor=stored)
        for block in feed:
            work(block)
            store(feed.cursor)

    A commit of many changes comes in several blocks, of which all but the last are ``continued``.
    """

    def __init__(
        self,
        begin: str,
        poll: Callable[[str | None, str | None], ChangePage],
        *,
        pause: Callable[[], None] | None,
    ) -> None:
        self._cursor = begin
        self._poll = poll
        self._pause = pause

    @property
    def cursor(self) -> str:
        """Where to go on when everything that came so far is done: behind the last commit that was
        delivered as a whole."""
        return self._cursor

    def __iter__(self) -> Iterator[ChangeBlock]:
        for page in self._pages():
            for block in page.blocks:
                self._cursor = page.cursor_behind(block) or self._cursor
                yield block
            self._cursor = page.cursor or self._cursor

    def pages(self) -> Iterator[ChangePage]:
        """The same by pages; a page without blocks comes only if the cursor moved."""
        for page in self._pages():
            moved = page.cursor not in (None, self._cursor)
            self._cursor = page.cursor or self._cursor
            if page.blocks or moved:
                yield page

    def _pages(self) -> Iterator[ChangePage]:
        while True:
            token = None
            while True:
                page = self._poll(None, token) if token else self._poll(self._cursor, None)
                token = page.next_page_token
                yield page
                if token is None:
                    break
            if page.caught_up:
                if self._pause is None:
                    return
                self._pause()
