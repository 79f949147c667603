"""The commit graph as people look at it: commits with the names that branches and tags give them.

    heads of branches -> lineage -> [history] -> commit log

Every branch head and every tag is read once, several at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from omnigraph.branch.control import BranchInfo, branch_info
from omnigraph.branch.tags import list_tags
from omnigraph.clock import Clock
from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.manifest.branches import lives_as
from omnigraph.manifest.refs import branch_names, find_branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot
from omnigraph.manifest.targets import moment_us


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCommit:
    """A commit, and what stands at it."""

    commit: GraphCommit
    parents: tuple[str, ...]
    """The ids of those parents that the log follows, the first parent first."""
    branches: tuple[str, ...] = ()
    """Branches whose newest commit it is."""
    tags: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As ``commit log --json`` shows it."""
        return self.commit.to_dict() | {"branches": list(self.branches), "tags": list(self.tags)}


def read_log(
    repository: Repository,
    *,
    branch: str | None = MAIN,
    limit: int | None = None,
    first_parent: bool = False,
) -> tuple[LoggedCommit, ...]:
    """What went into a branch, or into any branch (None), each commit before its parents."""
    lineage = repository.lineage
    start = repository.head(branch).snapshot if branch is not None else None
    heads = branch_heads(repository)
    if start is None:
        commits = lineage.reachable(*heads.values())
    else:
        commits = lineage.first_parents(start) if first_parent else lineage.reachable(start)
    at_branch = _by_commit((snapshot.head.id, name) for name, snapshot in heads.items())
    at_tag = _by_commit((tag.commit_id, tag.name) for tag in list_tags(repository))
    return tuple(
        LoggedCommit(
            commit=commit,
            parents=_parents(commit, first_parent=first_parent),
            branches=at_branch.get(commit.id, ()),
            tags=at_tag.get(commit.id, ()),
        )
        for commit in islice(commits, limit)
    )


def branch_heads(repository: Repository) -> dict[str, Snapshot]:
    """The newest state of every branch, main first."""
    names = branch_names(repository.objects)
    reads = [repository.background.pool.submit(_newest, repository, name) for name in names]
    found = {MAIN: repository.head(MAIN).snapshot}
    for name, read in zip(names, reads, strict=True):
        if (snapshot := read.result()) is not None:
            found[name] = snapshot
    return found


def branch_infos(repository: Repository) -> list[BranchInfo]:
    """What is known about every branch, main first."""
    names = [MAIN, *branch_names(repository.objects)]
    reads = [repository.background.pool.submit(_info_if_there, repository, name) for name in names]
    return [info for read in reads if (info := read.result()) is not None]


def _newest(repository: Repository, name: str) -> Snapshot | None:
    """The newest state of a branch; None if it ended, or got another name, since it was listed."""
    # Not by way of the open branches: those are opened one after the other.
    ref = find_branch(repository.objects, name)
    snapshot = repository.manifest(ref.manifest_path).head().snapshot if ref is not None else None
    return snapshot if snapshot is not None and lives_as(snapshot, name) else None


def _info_if_there(repository: Repository, name: str) -> BranchInfo | None:
    try:
        return branch_info(repository, name)
    except NotFoundError as missing:
        if missing.kind is not ErrorKind.BRANCH_NOT_FOUND:
            raise
        return None  # It ended since it was listed.


def _parents(commit: GraphCommit, *, first_parent: bool) -> tuple[str, ...]:
    merged = None if first_parent else commit.merged_parent_id
    return tuple(p for p in (commit.parent_id, merged) if p is not None)


def _by_commit(names: Iterable[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for commit_id, name in names:
        found[commit_id] = (*found.get(commit_id, ()), name)
    return found


# -- filters ---------------------------------------------------------------------------------------
# Which commits are shown.


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFilter:
    """Conditions on commits; what is None does not matter."""

    limit: int | None = None
    actor: str | None = None
    kind: str | None = None
    type_name: str | None = None
    since_us: int | None = None
    until_us: int | None = None

    @staticmethod
    def of(
        *,
        limit: int | None = None,
        actor: str | None = None,
        kind: str | None = None,
        type_name: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        clock: Clock | None = None,
    ) -> CommitFilter:
        """A filter from what a user wrote."""
        if limit is not None and (not isinstance(limit, int) or limit < 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"limit is {limit!r}", hint="a limit counts commits: 0 or more")
        return CommitFilter(
            limit=limit,
            actor=actor,
            kind=kind,
            type_name=type_name,
            since_us=moment_us(since, clock) if since is not None else None,
            until_us=moment_us(until, clock) if until is not None else None,
        )

    def select(self, commits: Iterable[GraphCommit]) -> Iterator[GraphCommit]:
        """Those that are wanted, in order; nothing is read beyond the last of them."""
        return islice(filter(self._wants, commits), self.limit)

    def _wants(self, commit: GraphCommit) -> bool:
        moment = commit.created_at_us
        return (
            (self.actor is None or commit.actor == self.actor)
            and (self.kind is None or commit.kind == self.kind)
            and (self.since_us is None or moment >= self.since_us)
            and (self.until_us is None or moment <= self.until_us)
            and (self.type_name is None or self._touches(commit, self.type_name))
        )

    def _touches(self, commit: GraphCommit, type_name: str) -> bool:
        return any(key.partition(":")[2] == type_name for key in commit.changes)
