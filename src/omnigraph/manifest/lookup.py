"""A commit by the name that somebody wrote, or an error that helps."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.manifest.snapshot import GraphCommit


def commit_named(history: Iterable[GraphCommit], commit_id: str, branch: str) -> GraphCommit:
    """The commit with this id, or whose id alone begins so. Raises ``NotFoundError``."""
    wanted = str(commit_id).strip().upper()
    found = [c for c in history if wanted and c.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{len(found)} commits begin with {wanted}", hint="give more of the id")
    raise NotFoundError(
        f"no commit {commit_id} on branch '{branch}'",
        kind=ErrorKind.COMMIT_NOT_FOUND,
        hint="'omnigraph commit list' shows the commits",
        details={"graph_commit_id": commit_id},
    )
