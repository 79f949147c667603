"""Upkeep of a graph from Python: ``graph.upkeep``.

graph -> [upkeep] -> upkeep/status, check, recovery, cleanup, repair

Methods import what they delegate to, as those of a graph do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from omnigraph.choices import AutoEngineWord
from omnigraph.errors import UsageError
from omnigraph.housekeeping.intents import LEASE_S
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN
from omnigraph.manifest.sweeps import GRACE_S

if TYPE_CHECKING:
    from omnigraph.housekeeping.audit import Recovered
    from omnigraph.upkeep.check import CheckReport
    from omnigraph.upkeep.cleanup import CleanupReport
    from omnigraph.upkeep.recovery import PendingIntent, RecoveryReport
    from omnigraph.upkeep.repair import RepairReport
    from omnigraph.upkeep.status import GraphStatus

Span = timedelta | float
"""A length of time; a number is seconds."""


class Recovery:
    """What writes have left that did not end well. Nothing here is needed to read or write."""

    def __init__(self, opened: Callable[[], Repository]) -> None:
        self._opened = opened

    def list(self) -> tuple[PendingIntent, ...]:
        """The writes that are pending, each with its state; changes nothing."""
        from omnigraph.upkeep.recovery import pending_intents

        return tuple(pending_intents(self._opened()))

    def show(self, operation_id: str) -> PendingIntent:
        """One of them, by its id or the beginning of it."""
        from omnigraph.upkeep.recovery import find_intent

        return find_intent(self._opened(), operation_id)

    def run(
        self, operation_id: str | None = None, *, stalled_after: Span = LEASE_S
    ) -> RecoveryReport:
        """Finish what was published and give up what stalled, or only one operation.

        A write counts as stalled if it gave no sign of life for ``stalled_after``. If it goes on
        after that it fails with ``revoked`` and can be repeated.
        """
        from omnigraph.upkeep.recovery import recover

        return recover(self._opened(), operation_id=operation_id, lease_s=_seconds(stalled_after))

    def put_aside(self) -> tuple[str, ...]:
        """Objects that could not be read and were put aside, by their names below the root."""
        from omnigraph.upkeep.recovery import quarantined

        return tuple(quarantined(self._opened()))

    def audit(self) -> tuple[Recovered, ...]:
        """Everything that was recovered so far, oldest first."""
        from omnigraph.housekeeping.audit import recoveries

        return tuple(recoveries(self._opened()))


class Upkeep:
    """Status, check, recovery, cleanup and repair of one graph."""

    def __init__(self, opened: Callable[[], Repository]) -> None:
        self._opened = opened
        self.recovery = Recovery(opened)

    def status(self, branch: str = MAIN) -> GraphStatus:
        """How the graph is doing, and what to run next. Reads no rows."""
        from omnigraph.upkeep.status import status

        return status(self._opened(), branch)

    def moved_from(self) -> str | None:
        """Where the graph was before it was moved or copied, if other programs still find it there.

        The graph itself is whole at any place. What plain Lance opens (``tables/T.lance``) names
        the old one until the next write or ``repair(confirm=True)``. Opening logs a warning.
        """
        repository = self._opened()
        if not repository.seems_moved:
            return None
        from omnigraph.housekeeping.mirror import moved_from

        return moved_from(repository)

    def check(
        self,
        *,
        full: bool = False,
        history: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> CheckReport:
        """Whether everything that branches and tags lead to is whole; ``full`` reads all columns
        and asks all indexes, ``history`` looks at every state of the past that is kept.

        ``report.ok`` says whether nothing was found.
        """
        from omnigraph.upkeep.check import check

        return check(self._opened(), full=full, history=history, progress=progress)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: Span | None = None,
        confirm: bool = False,
        grace: Span = GRACE_S,
        engine: AutoEngineWord = "auto",
        spark: Any = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> CleanupReport:
        """Remove the past beyond the newest ``keep`` commits of each branch and whatever was not
        shown within ``older_than``; with both, only what both give up.

        Without ``confirm`` nothing is removed and the report says what would be. Branches, tags and
        what merges need are always kept, and so is what was written or shown within ``grace``.

        ``engine`` says what finds the files that kept versions need: ``local`` is this process,
        ``spark`` tasks on the session ``spark``, or on one that is made; ``auto`` leaves tables of
        which very many versions are kept to Spark. The outcome is the same.
        """
        from omnigraph.api.engines import marking
        from omnigraph.upkeep.cleanup import cleanup
        from omnigraph.upkeep.retention import Policy
        from omnigraph.upkeep.sweep import mark_here

        repository = self._opened()
        policy = Policy(
            keep=keep,
            older_than_s=None if older_than is None else _seconds(older_than),
            grace_s=_seconds(grace),
        )
        with marking(repository.location, mark_here(repository), engine, spark) as mark:
            return cleanup(repository, policy, confirm=confirm, mark=mark, progress=progress)

    def mirror(self) -> dict[str, str]:
        """Let other Lance programs find what main shows now, in ``tables/<Type>.lance``, and the
        history of all branches, in ``_graph_commits.lance``.

        This happens by itself when a graph that was written is closed, and with every 32nd commit:
        ask for it where a handle stays open. Returns the types that were looked at, each with
        ``current``, ``lagging`` or ``drifted``: the last one was changed by another program.
        """
        from omnigraph.branch.history import branch_heads
        from omnigraph.housekeeping.mirror import mirror_main
        from omnigraph.housekeeping.projection import project

        repository = self._opened()
        project(repository, *branch_heads(repository).values())
        return {name: str(head.state) for name, head in mirror_main(repository).items()}

    def repair(
        self,
        *,
        types: Sequence[str] = (),
        confirm: bool = False,
        force: bool = False,
        discard: bool = False,
        message: str | None = None,
    ) -> RepairReport:
        """Find what other programs did to tables of main; with ``confirm`` repair it.

        Where files were only joined, the mirror is put back. Anything else is refused, unless
        ``force`` adopts it, as far as the schema allows, or ``discard`` puts the tables back to
        what the graph shows.
        Indexes that belong to another lineage are found on every branch and built again.
        """
        from omnigraph.upkeep.repair import repair

        return repair(
            self._opened(),
            types=types,
            confirm=confirm,
            force=force,
            discard=discard,
            message=message,
        )


def _seconds(span: Span) -> float:
    if isinstance(span, timedelta):
        return span.total_seconds()
    if isinstance(span, bool) or not isinstance(span, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"not a length of time: {span!r}", hint="give a timedelta, or seconds")
    return float(span)
