"""The change feed: what one commit changed, and what happened on a branch since a reader asked.

    start | cursor -> position -> the next commits -> blocks -> [reader] -> page, cursor

A poll is cut where the branch stands when it begins, or after so many commits. It comes in pages;
the cursor comes with the last one, when every commit before it was delivered as a whole. A reader
that stores the cursor after its own work is done sees everything at least once, and in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from omnigraph.branch.feed.blocks import BlockReader, Cause, ChangeBlock, PageSize, Room, within
from omnigraph.branch.feed.line import following, genesis, left_behind, reporting_gaps
from omnigraph.branch.feed.tokens import (
    BlockToken,
    ChangeFilter,
    CursorBinding,
    FeedCursor,
    NamedFilter,
    PollToken,
    Position,
    Reason,
    rejected,
)
from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.manifest.kept import ReportingReclaimed
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, ManifestPlace, Snapshot
from omnigraph.manifest.targets import Target, commit_named, find_commit
from omnigraph.schema.catalog import Catalog

EXAMINED, EXAMINED_MAX = 128, 512
"""How many commits one poll looks at."""
NOW, BEGINNING, AFTER = "now", "beginning", "after:"
_AHEAD_MAX = 16
"""Manifests that are read side by side before they are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollRequest:
    """What a reader asks for; at most one of start, cursor and page token."""

    branch: str
    start: str | None
    """``now`` (if nothing else is said), ``beginning`` or ``after:<commit>``."""
    cursor: str | None
    page_token: str | None
    asked: NamedFilter
    max_commits: int | None
    size: PageSize

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        ways = {"start": self.start, "cursor": self.cursor, "page_token": self.page_token}
        given = [name for name, value in ways.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} name two places", hint="give one of them")
        if self.page_token is not None and self.max_commits is not None:
            raise UsageError(
                "a page token says how many commits its poll has", hint="leave max_commits out"
            )
        _check_start(self.start)
        _ = self.commits  # Refuses a number that is none.

    @property
    def commits(self) -> int:
        """How many commits the poll looks at."""
        return within("max_commits", self.max_commits, EXAMINED, EXAMINED_MAX)


@dataclass(frozen=True, kw_only=True)
class ChangePage:
    """A page of a poll."""

    branch: str
    blocks: tuple[ChangeBlock, ...]
    next_page_token: str | None = None
    """The poll goes on with it; None on its last page."""
    cursor: str | None = None
    """Only on the last page: where the next poll begins."""
    caught_up: bool | None = None
    """Only on the last page: whether the branch had no more commits when the poll began."""
    binding: CursorBinding = field(repr=False)

    def cursor_behind(self, block: ChangeBlock) -> str | None:
        """Where a reader goes on that is done with everything up to this block of the page.

        None if the block's commit goes on behind it.
        """
        if block.continued:
            return None
        position = Position(commit_id=block.cause.commit_id, place=block.place)
        return FeedCursor(binding=self.binding, position=position).encode()

    def ending(self) -> dict[str, Any]:
        """What comes after the blocks."""
        if self.next_page_token is not None:
            return {"next_page_token": self.next_page_token}
        return {"cursor": self.cursor, "caught_up": self.caught_up}

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        blocks = [block.to_dict() for block in self.blocks]
        return {"branch": self.branch, "blocks": blocks, **self.ending()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a request stands."""

    position: Position
    binding: CursorBinding | None = None
    """What its token was made for."""
    token: PollToken | None = None
    """Inside of a poll."""


@dataclass(frozen=True, kw_only=True)
class _Span:
    """The part of a line that a page is about."""

    head: Snapshot
    """A snapshot whose line has all of it."""
    position: Position
    """What was delivered before."""
    offset: int
    commits: Sequence[GraphCommit]
    end: Position
    caught_up: bool


class FeedReader:
    """Reads the changes of one open graph. Keeps nothing that a reader needs."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._lineage = repository.lineage
        self._blocks = BlockReader(repository)

    def commit(
        self,
        commit_id: str,
        asked: NamedFilter,
        size: PageSize,
        *,
        branch: str | None = None,
        page_token: str | None = None,
    ) -> ChangeBlock:
        """What a commit changed against its first parent, or a page of that."""
        token = BlockToken.decode(page_token) if page_token is not None else None
        head = self.repository.branch(branch if branch is not None else MAIN).head.snapshot
        with reporting_gaps(self._lineage, head=head):
            commit = self._commit(head, commit_id, branch, token)
        if commit.parent_id is None:
            raise UsageError(
                f"commit {commit.id} is the first one and has no parent to compare with",
                kind=ErrorKind.PARENTLESS_COMMIT,
                hint="it shows an empty graph; the feed begins after it",
                details={"graph_commit_id": commit.id},
            )
        with reporting_gaps(self._lineage, commit=commit):
            after = self._lineage.snapshot(commit.place)
            before = self._lineage.snapshot(self._lineage.parents(commit)[0].place)
        chosen = asked.on(self._schema(after), self._schema(before))
        binding = CursorBinding(graph_id=after.graph_id, path=commit.path, filter=chosen.digest)
        if token is not None:
            binding.check(token.binding)
        room, offset = Room(size), token.offset if token is not None else 0
        with (
            reporting_gaps(self._lineage, commit=commit),
            ReportingReclaimed(self.repository, before, after),
        ):
            lines, is_last = self._blocks.lines(before, after, chosen, offset, room)
        following = BlockToken(
            binding=binding, commit=Position.at(commit), offset=offset + len(lines)
        )
        return ChangeBlock(
            cause=Cause.of(commit),
            lines=tuple(lines),
            place=commit.place,
            schema=self._blocks.schema(before, after, chosen, offset),
            next_page_token=None if is_last else following.encode(),
        )

    def poll(self, request: PollRequest) -> ChangePage:
        """The next page of a branch's feed."""
        head = self.repository.head(request.branch).snapshot
        with reporting_gaps(self._lineage, cursor=request.cursor, head=head):
            place = self._place(head, request)
            binding, chosen = self._bound(head, request.asked, place.position)
            if place.binding is not None:
                binding.check(place.binding)
            if place.token is not None:
                span = self._later_page(place.token)
            else:
                span = self._first_page(head, place.position, request.commits)
        return self._page(request, span, chosen, binding)

    def begin(self, request: PollRequest) -> str:
        """The cursor with which a feed begins; nothing is read of it yet."""
        head = self.repository.head(request.branch).snapshot
        with reporting_gaps(self._lineage, cursor=request.cursor, head=head):
            place = self._place(head, request)
            binding, _ = self._bound(head, request.asked, place.position)
        if place.binding is not None:
            binding.check(place.binding)
        return FeedCursor(binding=binding, position=place.position).encode()

    def captured(self, branch: str, asked: NamedFilter) -> tuple[Snapshot, ChangeFilter, str]:
        """The head of a branch, the filter on it, and the cursor that goes on from there."""
        head = self.repository.head(branch).snapshot
        position = Position.at(head.head)
        binding, chosen = self._bound(head, asked, position)
        return head, chosen, FeedCursor(binding=binding, position=position).encode()

    def _commit(
        self, head: Snapshot, commit_id: str, branch: str | None, token: BlockToken | None
    ) -> GraphCommit:
        if token is None:
            return self._found(head, commit_id, branch)
        if not token.commit.commit_id.startswith(str(commit_id).strip().upper()):
            raise rejected(Reason.OTHER_COMMIT, "it is a page token of another commit")
        if token.binding.graph_id != head.graph_id:
            raise rejected(Reason.OTHER_GRAPH, "it belongs to another graph")
        commit = self._lineage.snapshot(token.commit.place).head
        if commit.id != token.commit.commit_id:
            raise rejected(Reason.DAMAGED, "its commit is not where it says")
        return commit

    def _found(self, head: Snapshot, commit_id: str, branch: str | None) -> GraphCommit:
        try:
            return find_commit(self.repository, Target(branch=branch, commit=str(commit_id)))
        except NotFoundError as error:
            if branch is None and error.kind is ErrorKind.COMMIT_NOT_FOUND:
                # Nowhere. If the way back along main ends early, that is why: the walk raises it.
                deque(self._lineage.first_parents(head), maxlen=0)
            raise

    def _place(self, head: Snapshot, request: PollRequest) -> _Place:
        """Where a request stands; a token must belong to this life of this branch."""
        if request.page_token is not None:
            token = PollToken.decode(request.page_token)
            self._check_branch(head, token.binding)
            return _Place(position=token.position, binding=token.binding, token=token)
        if request.cursor is not None:
            cursor = FeedCursor.decode(request.cursor)
            self._check_branch(head, cursor.binding)
            return _Place(position=cursor.position, binding=cursor.binding)
        start = request.start or NOW
        if start == NOW:
            return _Place(position=Position.at(head.head))
        if start == BEGINNING:
            return _Place(position=Position.at(genesis(self._lineage, head)))
        line = self._lineage.first_parents(head)
        commit = commit_named(line, start.removeprefix(AFTER), request.branch)
        return _Place(position=Position.at(commit))

    def _check_branch(self, head: Snapshot, given: CursorBinding) -> None:
        """Whose token it is, before anything is looked for. The filter is compared later."""
        own = CursorBinding(graph_id=head.graph_id, path=head.path, filter=given.filter)
        own.check(given)

    def _bound(
        self, head: Snapshot, asked: NamedFilter, position: Position
    ) -> tuple[CursorBinding, ChangeFilter]:
        """The filter, and what tokens of this request belong to."""

        def earlier() -> Catalog:
            # A type may have been dropped since; its changes are still in the history.
            return self._schema(self._lineage.snapshot(position.place))()

        chosen = asked.on(self._schema(head), earlier)
        return CursorBinding(graph_id=head.graph_id, path=head.path, filter=chosen.digest), chosen

    def _first_page(self, head: Snapshot, position: Position, limit: int) -> _Span:
        commits = following(self._lineage, head, position, limit)
        end = Position.at(commits[-1]) if commits else position
        return _Span(
            head=head,
            position=position,
            offset=0,
            commits=commits,
            end=end,
            caught_up=end.commit_id == head.head.id,
        )

    def _later_page(self, token: PollToken) -> _Span:
        # The cut is the end that the first page fixed, whatever became of the branch since.
        end = self._lineage.snapshot(token.end.place)
        if end.head.id != token.end.commit_id:
            raise left_behind(token.end)
        return _Span(
            head=end,
            position=token.position,
            offset=token.offset,
            commits=following(self._lineage, end, token.position, EXAMINED_MAX),
            end=token.end,
            caught_up=token.caught_up,
        )

    def _schema(self, snapshot: Snapshot) -> Callable[[], Catalog]:
        def read() -> Catalog:
            with ReportingReclaimed(self.repository, snapshot):
                return self.repository.schema(snapshot.schema_hash).catalog

        return read

    def _page(
        self, request: PollRequest, span: _Span, chosen: ChangeFilter, binding: CursorBinding
    ) -> ChangePage:
        room = Room(request.size)
        blocks: list[ChangeBlock] = []
        position, offset = span.position, span.offset
        for commit, before, after in self._snapshots(span, request.cursor):
            if room.is_full:
                break
            with (
                reporting_gaps(self._lineage, cursor=request.cursor, commit=commit),
                ReportingReclaimed(self.repository, before, after),
            ):
                lines, is_last = self._blocks.lines(before, after, chosen, offset, room)
                schema = self._blocks.schema(before, after, chosen, offset)
            # With a filter, commits that changed nothing of it are passed over.
            if lines or (is_last and (schema is not None or chosen.is_everything)):
                block = ChangeBlock(
                    cause=Cause.of(commit),
                    lines=tuple(lines),
                    place=commit.place,
                    schema=schema,
                    continued=not is_last,
                )
                blocks.append(block)
            if not is_last:
                offset += len(lines)
                break
            position, offset = Position.at(commit), 0
        made = partial(ChangePage, branch=request.branch, blocks=tuple(blocks), binding=binding)
        if position == span.end:
            cursor = FeedCursor(binding=binding, position=position)
            return made(cursor=cursor.encode(), caught_up=span.caught_up)
        token = PollToken(
            binding=binding,
            position=position,
            offset=offset,
            end=span.end,
            caught_up=span.caught_up,
        )
        return made(next_page_token=token.encode())

    def _snapshots(
        self, span: _Span, cursor: str | None
    ) -> Iterator[tuple[GraphCommit, Snapshot, Snapshot]]:
        """Each commit with the snapshots before and after it; some are read ahead of time."""
        waiting = deque([span.position.place, *(c.place for c in span.commits)])
        reads: deque[Future[Snapshot]] = deque()
        ahead = 2
        before: Snapshot | None = None
        for commit in span.commits:
            while waiting and len(reads) < ahead:
                reads.append(
                    self.repository.background.pool.submit(self._snapshot, span, waiting.popleft())
                )
            ahead = min(2 * ahead, _AHEAD_MAX)
            with reporting_gaps(self._lineage, cursor=cursor, commit=commit):
                before = before or reads.popleft().result()
                after = reads.popleft().result()
            yield commit, before, after
            before = after

    def _snapshot(self, span: _Span, place: ManifestPlace) -> Snapshot:
        return span.head if place == span.head.place else self._lineage.snapshot(place)


def _check_start(start: object) -> None:
    if start is None or start in (NOW, BEGINNING):
        return
    if not isinstance(start, str) or not start.startswith(AFTER) or start == AFTER:
        raise UsageError(f"not a start: {start!r}", hint="say now, beginning or after:COMMIT")
