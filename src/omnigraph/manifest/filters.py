"""Which commits are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from omnigraph.errors import UsageError
from omnigraph.manifest.snapshot import GraphCommit
from omnigraph.manifest.targets import moment_us


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
    ) -> CommitFilter:
        """A filter from what a user wrote."""
        if limit is not None and (not isinstance(limit, int) or limit < 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"limit is {limit!r}", hint="a limit counts commits: 0 or more")
        return CommitFilter(
            limit=limit,
            actor=actor,
            kind=kind,
            type_name=type_name,
            since_us=moment_us(since) if since is not None else None,
            until_us=moment_us(until) if until is not None else None,
        )

    def select(self, commits: Iterable[GraphCommit]) -> Iterator[GraphCommit]:
        """Those that are wanted, in order; nothing is read beyond the last of them."""
        if self.limit == 0:
            return
        found = 0
        for commit in commits:
            if self._wants(commit):
                yield commit
                found += 1
                if found == self.limit:
                    return

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
