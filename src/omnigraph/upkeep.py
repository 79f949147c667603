"""Looking after a graph from Python: ``graph.upkeep``.

graph -> [upkeep] -> maintain/status, check, recovery, cleanup
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from omnigraph.errors import UsageError
from omnigraph.maintain.check import CheckReport, check
from omnigraph.maintain.cleanup import GRACE_S, CleanupReport, cleanup
from omnigraph.maintain.recovery import (
    PendingIntent,
    RecoveryReport,
    find_intent,
    pending_intents,
    recover,
)
from omnigraph.maintain.retention import Policy
from omnigraph.maintain.status import GraphStatus, status
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN
from omnigraph.write.audit import Recovered, recoveries
from omnigraph.write.intents import LEASE_S

Span = timedelta | float
"""A length of time; a number is seconds."""


class Recovery:
    """What writes have left that did not end well. Nothing here is needed to read or write."""

    def __init__(self, opened: Callable[[], Repository]) -> None:
        self._opened = opened

    def list(self) -> tuple[PendingIntent, ...]:
        """The writes that are pending, each with its state; changes nothing."""
        return tuple(pending_intents(self._opened()))

    def show(self, operation_id: str) -> PendingIntent:
        """One of them, by its id or the beginning of it."""
        return find_intent(self._opened(), operation_id)

    def run(
        self, operation_id: str | None = None, *, stalled_after: Span = LEASE_S
    ) -> RecoveryReport:
        """Finish what was published and give up what stalled, or only one operation.

        A write is taken for stalled if it was not heard of for ``stalled_after``. If it wakes up
        after that it fails with ``revoked`` and can be repeated.
        """
        return recover(self._opened(), operation_id=operation_id, lease_s=_seconds(stalled_after))

    def audit(self) -> tuple[Recovered, ...]:
        """Everything that was recovered so far, oldest first."""
        return tuple(recoveries(self._opened()))


class Upkeep:
    """Status, check, recovery and cleanup of one graph."""

    def __init__(self, opened: Callable[[], Repository]) -> None:
        self._opened = opened
        self.recovery = Recovery(opened)

    def status(self, branch: str = MAIN) -> GraphStatus:
        """How the graph is doing, and what to run next. Reads no rows."""
        return status(self._opened(), branch)

    def check(
        self, *, full: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> CheckReport:
        """Whether everything that branches and tags lead to is whole; ``full`` reads all columns.

        ``report.ok`` says whether nothing was found.
        """
        return check(self._opened(), full=full, progress=progress)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: Span | None = None,
        confirm: bool = False,
        grace: Span = GRACE_S,
        progress: Callable[[int, int], None] | None = None,
    ) -> CleanupReport:
        """Remove the past beyond the newest ``keep`` commits of each branch and whatever was not
        shown within ``older_than``; with both, only what both give up.

        Without ``confirm`` nothing is removed and the report says what would be. Branches, tags and
        what merges need are always kept, and so is what was written or shown within ``grace``.
        """
        policy = Policy(
            keep=keep,
            older_than_s=None if older_than is None else _seconds(older_than),
            grace_s=_seconds(grace),
        )
        return cleanup(self._opened(), policy, confirm=confirm, progress=progress)


def _seconds(span: Span) -> float:
    if isinstance(span, timedelta):
        return span.total_seconds()
    if isinstance(span, bool) or not isinstance(span, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"not a length of time: {span!r}", hint="give a timedelta, or seconds")
    return float(span)
