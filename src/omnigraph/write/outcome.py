"""What became of a commit that did not succeed plainly.

    commit sent -> lost race, or no answer -> [outcome] -> ours is there, or the newest head

A conditional create that is retried by the network layer reports a conflict with itself, and a
commit whose answer was lost may have landed. So the write looks for its own commit in the lineage,
back to the snapshot that the attempt replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from omnigraph.errors import (
    CommitUnknownError,
    ConflictError,
    ErrorKind,
    FormatError,
    OmnigraphError,
)
from omnigraph.failpoints import FailPoint, hit
from omnigraph.housekeeping.intents import finish_published_once
from omnigraph.housekeeping.mirror import mirror_main
from omnigraph.housekeeping.projection import is_due, project
from omnigraph.interrupts import InterruptGate
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.lineage import Lineage
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, Snapshot
from omnigraph.manifest.store import Head
from omnigraph.storage.strict import LostRaceError, OutcomeUnknownError

UNKNOWN_OUTCOMES_MAX = 3


class Outcome:
    """What one write knows of the commits it sent."""

    def __init__(
        self,
        branch: Branch,
        lineage: Lineage,
        operation_id: str,
        gate: InterruptGate | None = None,
    ) -> None:
        self._branch = branch
        self._gate = gate or InterruptGate()
        self._landed = False
        self._lineage = lineage
        self._id = operation_id
        self._sent = False
        """A commit was sent, and its outcome is not known yet."""
        self._pending = False
        """A commit was sent, is not there, and could still arrive: its version is not taken."""
        self._unknown_count = 0

    @property
    def may_land(self) -> bool:
        """Whether the write may be published although nothing says so."""
        return self._sent or self._pending

    @property
    def is_open(self) -> bool:
        """Whether a commit is on its way."""
        return self._sent

    def sending(self) -> None:
        """From here on the commit may be there."""
        self._gate.hold()
        self._sent = True

    def landed(self) -> None:
        """The commit is there."""
        self._landed = True

    def told(self) -> None:
        """If it is known what became of the commit, an interrupt that waited for that comes now."""
        if self._landed or not self._pending:
            self._gate.release()

    def resolve(
        self, base: Snapshot, failure: LostRaceError | OutcomeUnknownError
    ) -> tuple[Head, bool]:
        """The newest head, or our own and True if it landed."""
        try:
            newest = self._branch.refresh()
            landed = self._own(newest, base)
        except FormatError as e:
            return self._before_newer_format(base, e), True
        except OmnigraphError as e:
            if self._branch.gone:  # Wherever the commit is, it will not be seen.
                self._sent = self._pending = False
                raise
            raise self.unknown(e) from e
        if landed is not None:
            self._landed = True
            return landed, True
        # While the version after our base is not taken, a commit that was sent can still take it:
        # absent now is not absent for good. Once it is taken the condition keeps ours out.
        unknown = isinstance(failure, OutcomeUnknownError)
        refused = unknown and failure.refused
        taken = newest.snapshot.version > base.version
        self._pending = not taken and (self._pending or not refused)
        self._sent = False
        if unknown:
            self._unknown_count += 1
            given_up = self._pending and self._unknown_count > UNKNOWN_OUTCOMES_MAX
            if refused or given_up:
                raise failure.cause
        # Asking a store again that stumbled is safe: of two commits for one version one wins.
        return newest, False

    def _own(self, newest: Head, base: Snapshot) -> Head | None:
        """Our commit in the lineage above the snapshot that it was to replace."""
        for commit in self._lineage.first_parents(newest.snapshot):
            if commit.id == self._id:
                at_head = commit.place == newest.snapshot.place
                return newest if at_head else self._lineage.head_at(commit.place)
            if commit.id == base.head.id:
                break
        return None

    def _before_newer_format(self, base: Snapshot, newer: FormatError) -> Head:
        """Our own head, if it was published before a change to a format unknown here."""
        try:
            taken = self._branch.store.at(base.version + 1)
        except FormatError:
            taken = None  # Not ours: this release writes no such stamp.
        except OmnigraphError as e:
            raise self.unknown(e) from e
        self._sent = self._pending = False
        if taken is None or taken.snapshot.head.id != self._id:
            raise newer
        return taken

    def unknown(self, cause: OmnigraphError) -> CommitUnknownError:
        """The error of a write that may or may not be there."""
        return CommitUnknownError(
            f"the write {self._id} may or may not have been published: {cause.message}",
            hint=f"when the store answers again, look for commit {self._id} in 'commit list'",
            details={"operation_id": self._id},
        )


# -- races -----------------------------------------------------------------------------------------
# Lost races: how often a write tries, and how long it waits in between.


ATTEMPTS_MAX = 64
BACKOFF_MIN_S = 0.01
BACKOFF_MAX_S = 1.0


def back_off(repository: Repository, attempt: int, attempt_s: float = BACKOFF_MIN_S) -> None:
    """Wait a random part of a window that grows with every loss, so that racers spread out."""
    window_s = max(BACKOFF_MIN_S, attempt_s / 2) * 2 ** min(attempt - 1, 6)
    repository.clock.sleep(min(window_s, BACKOFF_MAX_S) * repository.ids.jitter())


def contention(branch: str) -> ConflictError:
    """Too many races were lost."""
    return ConflictError(
        f"gave up after {ATTEMPTS_MAX} lost races on branch '{branch}'",
        kind=ErrorKind.CONTENTION,
        hint="many writers publish on this branch: repeat the command, or batch the writes",
        details={"attempts": ATTEMPTS_MAX},
    )


# -- settle ----------------------------------------------------------------------------------------
# Phase D: housekeeping after a write was acknowledged.
#
#     publish -> acknowledged -> [hint, intent]; now and then, and at last: [mirror, history]
#
# Nothing here can lose or change data, so failures are swallowed: a hint that lags costs a reader
# one listing, a mirror that lags shows other programs an earlier state, an intent that stays is
# found by recovery, which sees that its commit is in the lineage.
#
# On a remote store, many short processes write a few rows each; telling others costs each of them
# more requests than its write did. So there few rows wait for the commit whose turn it is.


TOLD_ROWS_MIN = 1_000
"""A handle that closes tells others of a write on a remote store if it changed so many rows."""


def settle(repository: Repository, branch: Branch, shown: Snapshot, gone: Sequence[str]) -> None:
    """Start the housekeeping of one published write; ``gone`` are objects that have served."""
    if repository.location.is_local or _is_worth_telling(shown):
        repository.background.before_close(branch.name, lambda: tell_others(repository, branch))
    repository.background.later(lambda: _settle(repository, branch, shown, gone))


def _is_worth_telling(shown: Snapshot) -> bool:
    """Whether a commit changed much, the schema, or a table that was empty."""
    changes = shown.head.changes
    if any(0 < c.inserted == shown.row_count(key) for key, c in changes.items()):
        return True
    return not 0 < sum(change.total for change in changes.values()) < TOLD_ROWS_MIN


def tell_others(repository: Repository, branch: Branch) -> None:
    """Bring up to date what other programs see of a branch: its history, and main's tables."""
    hit(FailPoint.SETTLE_BEFORE_MIRROR)
    with suppress(OmnigraphError):
        project(repository, branch.head.snapshot)
    if branch.name == MAIN:
        with suppress(OmnigraphError):
            mirror_main(repository)


def _settle(repository: Repository, branch: Branch, shown: Snapshot, gone: Sequence[str]) -> None:
    hit(FailPoint.SETTLE_BEFORE_HINT)
    # A later write of this process will say more; let it.
    newest = branch.head
    if newest.snapshot.version == shown.version:
        with suppress(OmnigraphError):
            branch.store.write_hint(newest)
    hit(FailPoint.SETTLE_BEFORE_INTENT_DROP)
    repository.background.discard(gone)
    finish_published_once(repository)
    if is_due(shown):
        tell_others(repository, branch)
