"""What writes have left that did not end well, and what to do about it.

    intents -> [recovery: classify -> roll forward | revoke -> audit -> drop] -> nothing is left

| an intent whose write …                      | is         | recovery                            |
|----------------------------------------------|------------|-------------------------------------|
| is in the history of its branch              | published  | drops it, if no other does          |
| is not, and was not heard of for a lease     | stalled    | revokes the write, then drops it    |
| is not, on a branch that has ended           | stalled    | drops it: no write can end there    |
| is not, and was heard of                     | running    | leaves it alone                     |
| cannot be read                               | unreadable | puts it aside                       |
| is not known: the store, or the branch,      | unclear    | reports why, and leaves it alone    |
| does not answer                              |            |                                     |

A revocation is a commit by ``omnigraph:recovery``. A writer that wakes up after it loses the race
against that commit and ends with ``revoked``; one that was faster is seen to be published. Files of
a revoked write belong to nothing any more; the next cleanup takes them. Nothing here is ever needed
to read or write the graph.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.errors import CorruptionError, ErrorKind, NotFoundError, OmnigraphError
from omnigraph.failpoints import FailPoint, hit
from omnigraph.housekeeping.audit import Recovered, RecoveryKind, record_recoveries
from omnigraph.housekeeping.intents import (
    FINISH_AFTER_S,
    LEASE_S,
    PREFIX,
    QUARANTINE,
    Intent,
    UnreadableIntent,
    published_as,
    read_intents,
    rolled_forward,
)
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, MAIN_PATH, GraphCommit, Snapshot
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.txn import Adoption, WriteTxn

RECOVERY_ACTOR = "omnigraph:recovery"


class IntentState(StrEnum):
    """What became of the write of an intent."""

    PUBLISHED = "published"
    STALLED = "stalled"
    RUNNING = "running"
    UNREADABLE = "unreadable"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingIntent:
    """An intent as people see it."""

    name: str
    state: IntentState
    renewed_us: int
    intent: Intent | None
    """None if it cannot be read, or was not handed out."""
    commit: GraphCommit | None = None
    """What it was published as."""
    branch: str | None = None
    """The branch as it is called now; None if it has ended."""
    reason: str | None = None
    """Why it cannot be read, or why its state is not known."""

    @property
    def operation_id(self) -> str:
        return self.name.rpartition("/")[2].removesuffix(".json")

    def to_dict(self) -> dict[str, Any]:
        """As ``recovery list --json`` shows it."""
        intent = self.intent
        return {
            "operation_id": self.operation_id,
            "state": str(self.state),
            "kind": intent.kind if intent else None,
            "branch": self.branch or (intent.branch if intent else None),
            "actor_id": intent.actor if intent else None,
            "message": intent.message if intent else None,
            "tables": list(intent.tables) if intent else [],
            "long": intent.long if intent else False,
            "renewed_at": self.renewed_us,
            "graph_commit_id": self.commit.id if self.commit else None,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryReport:
    """What one run of recovery did."""

    recovered: tuple[Recovered, ...]
    running: tuple[PendingIntent, ...]
    """Left alone."""
    failed: tuple[tuple[str, str], ...] = ()
    """Operations that could not be dealt with, and why; they are still there."""

    def to_dict(self) -> dict[str, Any]:
        """As ``recovery run --json`` shows it."""
        return {
            "recovered": [row.to_dict() for row in self.recovered],
            "running": [intent.to_dict() for intent in self.running],
            "failed": [{"operation_id": name, "error": error} for name, error in self.failed],
        }


def pending_intents(repository: Repository, *, lease_s: float = LEASE_S) -> list[PendingIntent]:
    """All intents there are, each with its state; changes nothing."""
    repository.background.wait()
    found: list[PendingIntent] = []
    for intent in read_intents(repository.objects):
        if isinstance(intent, UnreadableIntent):
            state = IntentState.UNCLEAR if intent.withheld else IntentState.UNREADABLE
            found.append(_unclassified(intent, state, intent.reason))
            continue
        try:
            found.append(_classified(repository, intent, lease_s))
        except OmnigraphError as e:  # Of its branch alone; the states of the others are known.
            found.append(_unclassified(intent, IntentState.UNCLEAR, e.message))
    return found


def _unclassified(
    intent: Intent | UnreadableIntent, state: IntentState, reason: str
) -> PendingIntent:
    return PendingIntent(
        name=intent.name,
        state=state,
        renewed_us=intent.renewed_us,
        intent=intent if isinstance(intent, Intent) else None,
        reason=reason,
    )


def quarantined(repository: Repository) -> list[str]:
    """Objects that were put aside because they could not be read."""
    return sorted(repository.objects.names(QUARANTINE))


def find_intent(
    repository: Repository, operation_id: str, *, lease_s: float = LEASE_S
) -> PendingIntent:
    """One intent by the id of its operation, or the beginning of it."""
    wanted = operation_id.strip().upper()
    found = [
        pending
        for pending in pending_intents(repository, lease_s=lease_s)
        if wanted and pending.operation_id.upper().startswith(wanted)
    ]
    if len(found) != 1:
        raise NotFoundError(
            f"{len(found) or 'no'} intents of an operation {operation_id}",
            kind=ErrorKind.OPERATION_NOT_FOUND,
            hint="'omnigraph recovery list' shows what is pending",
            details={"operation_id": operation_id},
        )
    return found[0]


def recover(
    repository: Repository, *, operation_id: str | None = None, lease_s: float = LEASE_S
) -> RecoveryReport:
    """Deal with everything that is pending, or with one operation. Can be repeated at any time."""
    if operation_id is None:
        pending = pending_intents(repository, lease_s=lease_s)
    else:
        pending = [find_intent(repository, operation_id, lease_s=lease_s)]
    recovered: list[Recovered] = []
    failed: list[tuple[str, str]] = []
    settled: list[tuple[PendingIntent, Recovered]] = []
    by_branch: dict[str | None, list[PendingIntent]] = {}
    for item in pending:
        if item.state is IntentState.STALLED:
            by_branch.setdefault(item.branch, []).append(item)
        elif item.state is IntentState.UNCLEAR:
            failed.append((item.operation_id, item.reason or "its state is not known"))
        else:
            with _going_on(failed, [item]):
                settled += _settled(repository, item)
    with _going_on(failed, [item for item, _ in settled]):
        recovered += _recorded(repository, settled)
    for branch, items in by_branch.items():
        with _going_on(failed, items):
            recovered += _given_up(repository, branch, items)
    return RecoveryReport(
        recovered=tuple(recovered),
        running=tuple(item for item in pending if item.state is IntentState.RUNNING),
        failed=tuple(failed),
    )


@contextmanager
def _going_on(failed: list[tuple[str, str]], items: Sequence[PendingIntent]) -> Generator[None]:
    """Note an error for the operations that it is about, and go on with the others."""
    try:
        yield
    except OmnigraphError as e:
        failed += [(item.operation_id, e.message) for item in items]


def _classified(repository: Repository, intent: Intent, lease_s: float) -> PendingIntent:
    head = _life(repository, intent.manifest_path)
    branch = head.branch if head is not None and not head.deleted else None
    commit = published_as(repository.lineage, head, intent) if head is not None else None
    age_us = repository.clock.now_us() - intent.renewed_us
    if commit is not None:
        # A young one is about to be dropped by the write itself.
        settling = age_us < FINISH_AFTER_S * 1_000_000
        state = IntentState.RUNNING if settling else IntentState.PUBLISHED
    elif branch is None or age_us >= lease_s * 1_000_000:
        state = IntentState.STALLED
    else:
        state = IntentState.RUNNING
    return PendingIntent(
        name=intent.name,
        state=state,
        renewed_us=intent.renewed_us,
        intent=intent,
        commit=commit,
        branch=branch,
    )


def _life(repository: Repository, path: str) -> Snapshot | None:
    """The newest state of one life of a branch; None if nothing of it is there."""
    if path == MAIN_PATH:
        return repository.head(MAIN).snapshot
    try:
        return repository.manifest(path).head().snapshot
    except (NotFoundError, CorruptionError):
        # With something left of it, it is damage, and a write may still be running there.
        if repository.objects.folders(path):
            raise
        return None


def _settled(repository: Repository, item: PendingIntent) -> list[tuple[PendingIntent, Recovered]]:
    """What is to be dropped: what was published, and what cannot be read, once it is put aside."""
    if item.state is IntentState.PUBLISHED and item.intent is not None and item.commit is not None:
        row = rolled_forward(repository, item.intent, item.commit)
        return [(item, row)]
    if item.state is IntentState.UNREADABLE:
        aside = f"{QUARANTINE}/{item.name.removeprefix(f'{PREFIX}/')}"
        try:
            repository.objects.copy(item.name, aside)
        except OmnigraphError:
            if repository.objects.exists(item.name):
                raise
            return []  # Another process did it.
        row = Recovered(
            operation_id=item.operation_id,
            recovery_kind=RecoveryKind.QUARANTINED,
            at=repository.clock.now_us(),
            outcome=f"it was put aside as {aside}: {item.reason}",
        )
        return [(item, row)]
    return []


class _PublishedMeanwhile(Exception):
    """A write that was about to be revoked has made it. Ends the revocation."""


class _RevokedMeanwhile(Exception):
    """Another recovery was faster. Ends the revocation."""


def _given_up(
    repository: Repository, branch: str | None, items: Sequence[PendingIntent]
) -> list[Recovered]:
    """Revoke stalled writes of one branch, in one commit, then drop their intents."""
    intents = [item.intent for item in items if item.intent is not None]
    try:
        revoked_by = _revoke(repository, branch, intents) if branch is not None else {}
    except _PublishedMeanwhile:
        again = {item.operation_id for item in items}
        fresh = [p for p in pending_intents(repository) if p.operation_id in again]
        done = _recorded(repository, [pair for p in fresh for pair in _settled(repository, p)])
        # A young one that was published is about to be dropped by the write itself.
        left = [p for p in fresh if p.intent is not None and p.commit is None]
        return [*done, *(_given_up(repository, branch, left) if left else [])]
    hit(FailPoint.RECOVERY_AFTER_REVOCATION)
    rows = [
        Recovered(
            operation_id=intent.operation_id,
            recovery_kind=RecoveryKind.ROLLED_BACK,
            operation_kind=intent.kind,
            recovery_for_actor=intent.actor,
            branch=branch or intent.branch,
            graph_commit_id=revoked_by.get(intent.operation_id),
            at=repository.clock.now_us(),
            outcome="it was not published and may not be any more"
            if branch is not None
            else "its branch has ended",
        )
        for intent in intents
    ]
    return _recorded(repository, list(zip(items, rows, strict=True)))


def _revoke(repository: Repository, branch: str, intents: Sequence[Intent]) -> dict[str, str]:
    """Make sure that writes cannot publish; each with the commit that says so.

    Those that an earlier run of recovery, or one at the same moment, has given up need no other
    commit.
    """
    revoked = repository.head(branch).snapshot.revoked
    fresh = [intent for intent in intents if intent.operation_id not in revoked]
    found: dict[str, str] = {}
    try:
        commit = _publish_revocation(repository, branch, fresh) if fresh else None
        found = {intent.operation_id: commit.id for intent in fresh if commit is not None}
    except _RevokedMeanwhile:
        pass
    head = repository.head(branch).snapshot
    for intent in intents:
        if intent.operation_id not in found:
            by = _revocation(repository, head, intent)
            found |= {intent.operation_id: by.id} if by is not None else {}
    return found


def _publish_revocation(
    repository: Repository, branch: str, intents: Sequence[Intent]
) -> GraphCommit | None:
    ids = tuple(intent.operation_id for intent in intents)

    def prepare(txn: WriteTxn) -> Adoption:
        if set(ids) <= set(txn.snapshot.revoked):
            raise _RevokedMeanwhile
        for intent in intents:
            if published_as(repository.lineage, txn.snapshot, intent) is not None:
                raise _PublishedMeanwhile
        return Adoption(snapshot=txn.snapshot, changes={})

    done = publish(
        repository,
        WriteRequest(
            kind="recovery",
            branch=branch,
            prepare=prepare,
            actor=RECOVERY_ACTOR,
            message=f"gave up {', '.join(ids)}"[:4000],
            revokes=ids,
            requires=Requires.NEWEST_HEAD | Requires.COMMIT,
        ),
    )
    repository.background.wait()  # The next look sees no intent of recovery itself.
    return done.commit


def _revocation(repository: Repository, head: Snapshot, intent: Intent) -> GraphCommit | None:
    """The commit by which an earlier run of recovery gave a write up, if it is to be found."""
    for commit in repository.lineage.first_parents(head):
        if commit.path != head.path or commit.manifest_version <= intent.base_manifest_version:
            return None
        if commit.actor == RECOVERY_ACTOR and intent.operation_id in (commit.message or ""):
            return commit
    return None


def _recorded(
    repository: Repository, done: Sequence[tuple[PendingIntent, Recovered]]
) -> list[Recovered]:
    """Write down what was done; only then the intents go, so that nothing is done unseen."""
    if not done:
        return []
    record_recoveries(repository, [row for _, row in done])
    hit(FailPoint.RECOVERY_BEFORE_DROP)
    repository.objects.delete([item.name for item, _ in done])
    return [row for _, row in done]
