"""A reader that comes too late: the history it wants was reclaimed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from omnigraph.errors import ErrorKind, NotFoundError
from omnigraph.manifest.lineage import Lineage
from omnigraph.manifest.snapshot import GraphCommit, Snapshot


@contextmanager
def telling_gaps(
    lineage: Lineage,
    *,
    cursor: str | None = None,
    head: Snapshot | None = None,
    commit: GraphCommit | None = None,
) -> Generator[None]:
    """Tell reclaimed history as a gap in the feed.

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
    try:
        for commit in lineage.first_parents(head):
            oldest = commit
    except NotFoundError as error:
        if error.kind is not ErrorKind.HISTORY_RECLAIMED:
            raise
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
