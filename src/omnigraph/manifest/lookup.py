"""A commit by the name that was given, or an error that helps."""

from __future__ import annotations

import re
from collections.abc import Iterable

from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.manifest.snapshot import GraphCommit

COMMIT_ID_LENGTH = 26
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{3,25}", re.IGNORECASE)
"""128 bits in base 32: the first digit is at most 7."""


def looks_like_commit(text: str) -> bool:
    """Whether a text could be the id of a commit, or the beginning of one."""
    return _ULID.fullmatch(text) is not None


def commit_named(history: Iterable[GraphCommit], commit_id: str, branch: str | None) -> GraphCommit:
    """The commit with this id, or whose id alone begins so. Raises ``NotFoundError``, which names
    the branch if it was looked for on one only."""
    wanted = str(commit_id).strip().upper()
    found: list[GraphCommit] = []
    for commit in history:
        if wanted and commit.id.startswith(wanted):
            found.append(commit)
            if len(wanted) == COMMIT_ID_LENGTH:
                break
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} commits begin with {wanted}", hint="give more of the id")
    raise commit_not_found(commit_id, branch)


def commit_not_found(commit_id: str, branch: str | None) -> NotFoundError:
    """There is no such commit."""
    where = f"on branch '{branch}'" if branch is not None else "in this graph"
    return NotFoundError(
        f"no commit {commit_id} {where}",
        kind=ErrorKind.COMMIT_NOT_FOUND,
        hint="'omnigraph commit list' shows the commits",
        details={"graph_commit_id": commit_id},
    )
