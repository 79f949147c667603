"""Cleanup: what no kept state needs is deleted, and no write meanwhile is harmed.

    policy -> retention -> record -> announcement on every branch -> look again -> [sweep]

1. *Look*: which states are kept (``upkeep/retention.py``), and what is garbage then. A preview
   ends here, and so does a cleanup that finds nothing: it leaves no trace.
2. *Record*: one object says what this cleanup keeps and whose files it spares. Only what was
   written before it, by the store's own clock, is ever touched.
3. *Announcement*: a version of every branch that names the record. A writer that had files before
   it loses the race against it, sees the record, and writes its files again (``write/fence.py``).
   What gives an old state a name, or shows it again, reads the record, too.
4. *Look again*: what became visible or got a name before the announcement is kept.
5. *Sweep* (``upkeep/sweep.py``), place by place. A cleanup that dies is simply run again.

The object of a manifest version that goes is emptied, not deleted: its name stays taken, so that a
writer that slept through everything cannot commit there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from omnigraph.branch.history import branch_heads
from omnigraph.errors import (
    ConflictError,
    CorruptionError,
    ErrorKind,
    NotFoundError,
    OmnigraphError,
    StorageError,
)
from omnigraph.failpoints import FailPoint, hit
from omnigraph.housekeeping.intents import LEASE_S, Intent
from omnigraph.housekeeping.mirror import mirror_main
from omnigraph.housekeeping.projection import project
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, Snapshot
from omnigraph.manifest.sweeps import SweepRecord, numbers, record_object
from omnigraph.upkeep.ancestry import States
from omnigraph.upkeep.name_check import branch_at
from omnigraph.upkeep.recovery import IntentState, pending_intents, recover
from omnigraph.upkeep.retention import Policy, Retained, retained
from omnigraph.upkeep.sweep import Cleaned, Mark, Marks, Progress, Sweep, mark_here
from omnigraph.write.publish import restate

LOOKS_MAX = 64
RECORDS_KEPT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupReport:
    """What a cleanup did, or would do."""

    confirmed: bool
    places: tuple[Cleaned, ...]
    """Only those with something to report."""
    states_kept: int
    commits_given_up: int
    """States that cannot be read any more, newly or since earlier cleanups."""
    spared: tuple[str, ...] = ()
    """Long writes that are running: files of their time are left for the next cleanup."""

    @property
    def bytes_removed(self) -> int:
        return sum(place.bytes_removed for place in self.places)

    @property
    def files_removed(self) -> int:
        return sum(place.files_removed for place in self.places)

    @property
    def errors(self) -> tuple[Cleaned, ...]:
        """Places where something was refused."""
        return tuple(place for place in self.places if place.error is not None)

    def to_dict(self) -> dict[str, Any]:
        """As ``cleanup --json`` shows it."""
        return {
            "confirmed": self.confirmed,
            "bytes_removed": self.bytes_removed,
            "files_removed": self.files_removed,
            "states_kept": self.states_kept,
            "states_given_up": self.commits_given_up,
            "spared": list(self.spared),
            "tables": [place.to_dict() for place in self.places],
        }


def cleanup(
    repository: Repository,
    policy: Policy,
    *,
    confirm: bool = False,
    lease_s: float = LEASE_S,
    mark: Mark | None = None,
    progress: Progress | None = None,
) -> CleanupReport:
    """Remove what the policy does not keep; without ``confirm`` only say what that would be.

    ``mark`` finds the files that versions of a table need; without one this process does.
    """
    if confirm:
        recover(repository, lease_s=lease_s)
    spared = running_writes(repository, lease_s)
    marks = Marks(mark or mark_here(repository))
    look = partial(retained, repository, policy, states=States(repository))
    now_us = repository.clock.now_us()
    kept = look(store_now_us=now_us)
    preview = Sweep(repository, kept, spared, marks, cut_us=_cut(now_us, policy), removes=False)
    found = preview.run(progress)
    if not confirm or not any(place.files_removed for place in found):
        return _report(kept, found, spared, confirmed=confirm)
    kept, written_us = give_up(repository, look, spared)
    cut_us = _cut(written_us, policy)
    # A table that had nothing to remove has nothing now, unless a write came meanwhile.
    tables = [place.path for place in found if place.is_table and place.is_notable]
    sweep = Sweep(repository, kept, spared, marks, cut_us=cut_us, removes=True)
    done = sweep.run(progress, tables)
    forget_records(repository)
    return _report(kept, done, spared, confirmed=True)


class Look(Protocol):
    """What is kept of the graph as it is now."""

    def __call__(
        self,
        *,
        store_now_us: int,
        before: int | None = None,
        since: Mapping[str, int] | None = None,
    ) -> Retained:
        """See ``retention.retained``."""
        ...


def give_up(
    repository: Repository,
    look: Look,
    spared: Sequence[Intent],
    *,
    purges: Sequence[str] = (),
    left: Callable[[Retained], Sequence[str]] | None = None,
) -> tuple[Retained, int]:
    """Record, announce, look again: what is kept, and when by the store's clock that was recorded.

    From here on whatever was written before that moment and is not kept may be deleted. ``purges``
    and ``left`` are for readers of the record: what this is about, and where it can still be read.
    """
    record, kept = _record(repository, look, spared, purges, left)
    hit(FailPoint.CLEANUP_AFTER_RECORD)
    # Other programs see commits before they are gone, and no files that go.
    with suppress(OmnigraphError):
        project(repository, *kept.heads.values())
    with suppress(OmnigraphError):
        mirror_main(repository)
    _announce(repository, record.number, kept.heads)
    hit(FailPoint.CLEANUP_AFTER_ANNOUNCEMENT)
    # By the store's own clock, as files are dated: those of machines may differ from it.
    written = repository.objects.entry(record_object(record.number))
    if written is None:
        raise CorruptionError(f"the record of cleanup {record.number} has vanished")
    promised = {path: v.newest for path, v in kept.datasets.items() if v.branch is not None}
    kept = look(store_now_us=written.modified_us, before=record.number, since=promised)
    return kept, written.modified_us


def _cut(now_us: int, policy: Policy) -> int:
    return now_us - round(policy.grace_s * 1e6)


def _report(
    kept: Retained, found: Sequence[Cleaned], spared: Sequence[Intent], *, confirmed: bool
) -> CleanupReport:
    there = sum(len(versions.written) for versions in kept.datasets.values())
    whole = sum(len(versions) for versions in kept.whole.values())
    return CleanupReport(
        confirmed=confirmed,
        places=tuple(place for place in found if place.is_notable),
        states_kept=whole,
        commits_given_up=max(0, there - whole),
        spared=tuple(intent.operation_id for intent in spared),
    )


def running_writes(repository: Repository, lease_s: float) -> tuple[Intent, ...]:
    """Long writes that are running, or may be. Others write their files again if they have to."""
    found: list[Intent] = []
    for pending in pending_intents(repository, lease_s=lease_s):
        if pending.state not in (IntentState.RUNNING, IntentState.UNCLEAR):
            continue
        if pending.intent is None:
            raise StorageError(
                f"it is not known whose files to spare: {pending.reason}",
                hint="run it again when the store answers: nothing was removed",
            )
        if pending.intent.long:
            found.append(pending.intent)
    return tuple(found)


def _record(
    repository: Repository,
    look: Look,
    spared: Sequence[Intent],
    purges: Sequence[str],
    left: Callable[[Retained], Sequence[str]] | None,
) -> tuple[SweepRecord, Retained]:
    """Say what is kept. If another cleanup is faster, look again: it may give more up."""
    while True:
        number = repository.sweeps.newest_number() + 1
        now_us = repository.clock.now_us()
        kept = look(store_now_us=now_us, before=number)
        record = SweepRecord(
            number=number,
            at_us=now_us,
            kept=kept.ranges(),
            spared=frozenset(intent.operation_id for intent in spared),
            purges=tuple(purges),
            left=tuple(left(kept)) if left is not None else (),
        )
        if repository.sweeps.create(record):
            repository.sync([record_object(number)])
            return record, kept


def _announce(repository: Repository, number: int, heads: Mapping[str, Snapshot]) -> None:
    """Announce a cleanup on every branch, also on those that are made meanwhile."""
    done: set[str] = set()
    for _ in range(LOOKS_MAX):
        fresh = [head for head in heads.values() if head.path not in done]
        if not fresh:
            return
        for head in fresh:
            _announce_on(repository, number, head)
            done.add(head.path)
        heads = branch_heads(repository)
    raise _too_fast()


def _announce_on(repository: Repository, number: int, head: Snapshot) -> None:
    """Announce a cleanup on one branch, whatever it is called by now."""

    def announced(snapshot: Snapshot) -> Snapshot | None:
        return snapshot.saying(swept=number) if snapshot.swept < number else None

    known = repository.branches.known(head.branch)
    for _ in range(LOOKS_MAX):
        if known is None or known.gone or known.head.snapshot.path != head.path:
            known = branch_at(repository, head.path)
        branch = known
        if branch is None:
            return
        try:
            branch.refresh()  # A version that is made in vain leaves a file.
            restate(repository, branch, announced)
            return
        except NotFoundError as e:
            if e.kind is not ErrorKind.BRANCH_NOT_FOUND:
                raise  # Else it ended, or goes on under another name.
    raise _too_fast()


def _too_fast() -> ConflictError:
    return ConflictError(
        "branches are made and renamed faster than a cleanup can announce itself on them",
        kind=ErrorKind.CONTENTION,
        hint="run it again: nothing was removed",
    )


def forget_records(repository: Repository) -> None:
    """Drop the records of cleanups that are long over."""
    newest = repository.head(MAIN).snapshot.swept
    old = [n for n in numbers(repository.objects) if n <= newest - RECORDS_KEPT]
    repository.background.discard([record_object(n) for n in old])
