"""The commits of a branch in the order in which they were made, from any of them on.

    head, position -> [line] -> the next commits

A branch's line is read from its newest commit backwards, but a reader goes forwards, perhaps far
behind. The versions of a manifest help: as long as a branch was not set back, each of its versions
adds its commits to those before, one as a rule, and carries the newest fifty. So the line consists
of *stretches*, runs of versions of one manifest; a stretch begins where a branch was made or set
back. Within one, the commits after a version are found by opening the manifest a few versions
later; fewer, where versions made several commits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from omnigraph.branch.feed.tokens import Position, Reason, rejected
from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.manifest.codec import COMMITS_MAX
from omnigraph.manifest.lineage import Lineage, unless_reclaimed
from omnigraph.manifest.snapshot import MAIN_PATH, GraphCommit, ManifestPlace, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """Versions of one manifest that follow each other without a step back."""

    first: int
    last: Snapshot

    def has(self, place: ManifestPlace) -> bool:
        return place.path == self.last.path and self.first <= place.version <= self.last.version


def _order(place: ManifestPlace) -> tuple[int, int]:
    """Places of one manifest, ascending as their commits were made."""
    return place.version, -place.back


def following(lineage: Lineage, head: Snapshot, after: Position, limit: int) -> list[GraphCommit]:
    """The commits after a position in the line of ``head``, oldest first, at most ``limit``.

    Refuses a position that is not in this line.
    """
    for number, commit in enumerate(head.commits):
        if commit.id == after.commit_id and commit.place == after.place:
            return list(reversed(head.commits[:number]))[:limit]
    if all(c.parent_id is not None for c in head.commits):
        commits = islice(_far(lineage, head, after), limit)
        return list(commits)
    raise left_behind(after)  # The head carries its whole line.


def genesis(lineage: Lineage, head: Snapshot) -> GraphCommit:
    """The first commit of every line. It shows an empty graph."""
    oldest = head.commits[-1]
    if oldest.parent_id is None:
        return oldest
    return lineage.snapshot(ManifestPlace(path=MAIN_PATH, version=1)).head


def left_behind(position: Position) -> UsageError:
    """A position that the line does not have, or no longer has."""
    return rejected(
        Reason.LEFT_BEHIND,
        f"commit {position.commit_id} is not in the line of the branch, which was reset",
    )


def _far(lineage: Lineage, head: Snapshot, after: Position) -> Iterator[GraphCommit]:
    stretches: list[_Stretch] = []
    for stretch in _stretches(lineage, head):
        stretches.append(stretch)
        if stretch.has(after.place):
            break
    else:
        raise left_behind(after)
    found = stretches.pop()

    def shows_position(seen: Snapshot) -> bool:
        return any(c.id == after.commit_id and c.place == after.place for c in seen.commits)

    # One version fewer than a snapshot carries commits, so that the position itself is seen, too.
    seen = _window(lineage, found, after.place.version, COMMITS_MAX - 1, shows_position)
    if not shows_position(seen):
        raise left_behind(after)
    yield from _commits(seen, after.place)
    yield from _rest(lineage, found, seen.version)
    for stretch in reversed(stretches):
        yield from _rest(lineage, stretch, stretch.first - 1)


def _stretches(lineage: Lineage, head: Snapshot) -> Iterator[_Stretch]:
    """All stretches of a line, the newest first; each costs a manifest or two."""
    last = head
    while True:
        yield _Stretch(first=max(last.rewound_at, 1), last=last)
        if last.rewound_at:
            # The commit that set the branch back, and the one it was set back to.
            border = lineage.snapshot(ManifestPlace(path=last.path, version=last.rewound_at))
            parent = border.commits[1]
        elif last.path != MAIN_PATH:
            # The first version shows the commit that the branch was made from.
            parent = lineage.snapshot(ManifestPlace(path=last.path, version=1)).head
        else:
            return
        last = lineage.snapshot(parent.place)


def _rest(lineage: Lineage, stretch: _Stretch, version: int) -> Iterator[GraphCommit]:
    """The commits of a stretch after a version."""
    while version < stretch.last.version:
        done = ManifestPlace(path=stretch.last.path, version=version)

        def reaches(seen: Snapshot, done: ManifestPlace = done) -> bool:
            oldest = seen.commits[-1]
            joins = oldest.parent_id is None or oldest.path != seen.path
            return joins or oldest.manifest_version <= done.version

        # The next version shows all that it made and fifty before: one step always reaches.
        seen = _window(lineage, stretch, version, COMMITS_MAX - 1, reaches)
        yield from _commits(seen, done)
        version = seen.version


def _window(
    lineage: Lineage,
    stretch: _Stretch,
    version: int,
    versions: int,
    enough: Callable[[Snapshot], bool],
) -> Snapshot:
    """The manifest some versions later, or the last one of the stretch: as late as it can be and
    still show ``enough``."""
    while True:
        if version + versions >= stretch.last.version:
            seen = stretch.last
        else:
            place = ManifestPlace(path=stretch.last.path, version=version + versions)
            seen = lineage.snapshot(place)
        if not versions or enough(seen):
            return seen
        versions = min(versions, stretch.last.version - version) // 2


def _commits(seen: Snapshot, after: ManifestPlace) -> Iterator[GraphCommit]:
    """What a manifest says about its own versions after a place, oldest first.

    A version that only renames the branch has no commit.
    """
    for commit in reversed(seen.commits):
        if commit.path == seen.path and _order(commit.place) > _order(after):
            yield commit


# -- gaps ------------------------------------------------------------------------------------------
# A reader that comes too late: the history it wants was reclaimed.


@contextmanager
def reporting_gaps(
    lineage: Lineage,
    *,
    cursor: str | None = None,
    head: Snapshot | None = None,
    commit: GraphCommit | None = None,
) -> Generator[None]:
    """Report reclaimed history as a gap in the feed.

    ``commit`` is the one being read. Else it is the oldest one in the line of ``head`` that is
    still known by name, but not readable.
    """
    try:
        yield
    except NotFoundError as error:
        if error.kind is not ErrorKind.HISTORY_RECLAIMED:
            raise
        found = commit or (_oldest_known(lineage, head) if head is not None else None)
        raise _gap(cursor, found) from error


def _oldest_known(lineage: Lineage, head: Snapshot) -> GraphCommit:
    """Where the way back ends; asked only when something is missing."""
    oldest = head.head
    with unless_reclaimed():
        for commit in lineage.first_parents(head):
            oldest = commit
    return oldest


def _gap(cursor: str | None, commit: GraphCommit | None) -> NotFoundError:
    details = {
        "cursor": cursor,
        "first_unreadable_commit_id": commit.id if commit is not None else None,
    }
    at = f" at commit {commit.id}" if commit is not None else ""
    return NotFoundError(
        f"the change feed has a gap{at}: this part of the history was reclaimed",
        kind=ErrorKind.FEED_GAP,
        hint="read a new baseline and go on from its cursor; tags keep commits from being "
        "reclaimed",
        details={name: value for name, value in details.items() if value is not None},
    )
