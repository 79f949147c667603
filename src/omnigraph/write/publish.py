"""The one door: every change of a graph becomes visible here and nowhere else.

    request -> pin -> prepare -> validate -> stage -> [publish] -> settle

| phase     | what happens                                             | a crash leaves        |
|-----------|----------------------------------------------------------|-----------------------|
| A intent  | the plan is written, concurrently with staging           | an intent, no effect  |
| B stage   | files and invisible versions of all tables, in parallel  | unreferenced files    |
| C publish | one strict commit: pins, schema, lineage                 | old state or new state|
| D settle  | off the acknowledgement path: hint, drop the intent      | a lagging hint        |

A lost race is not an error: the writer looks at the new head, checks its constraints again if
anything it relied on moved, makes again only what is stale, and retries within a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import partial

from omnigraph.errors import (
    CommitUnknownError,
    CorruptionError,
    InternalError,
    OmnigraphError,
    StorageError,
    WriteInterrupted,
)
from omnigraph.failpoints import FailPoint, hit
from omnigraph.interrupts import InterruptGate
from omnigraph.logs import logger
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.invariants import check_invariants
from omnigraph.manifest.repository import Durability, Repository
from omnigraph.manifest.snapshot import GraphCommit, Snapshot
from omnigraph.manifest.store import Head, StagedHead
from omnigraph.manifest.turns import Turn
from omnigraph.storage.strict import LostRaceError, OutcomeUnknownError
from omnigraph.write import outcome
from omnigraph.write.migration import bring_up_to_date
from omnigraph.write.next_snapshot import ShownWrite, StagedWrite, next_snapshot
from omnigraph.write.outcome import Outcome, settle
from omnigraph.write.pending import PendingWrite
from omnigraph.write.plan import check_lineage_text
from omnigraph.write.preparation import PreparedWrite
from omnigraph.write.request import Receipt, Requires, WriteRequest
from omnigraph.write.together import gathered, staged_together

SIDE_BY_SIDE_MAX = 32
"""Threads that stage the tables of writes which are published together."""
_log = logger("write")


def publish(repository: Repository, request: WriteRequest) -> Receipt:
    """Carry a write out, atomically, whatever others do.

    Writes of one handle take turns. Those that wait and do not concern each other are published
    together, by the first of them; to each it is as if it had come after the one before it.
    """
    check_lineage_text(request.actor, request.message)
    member, turns = PendingWrite(repository, request), repository.turns
    try:
        with InterruptGate() as gate:
            if turns.is_led_here:  # A write on the way of another one cannot wait for it.
                return _Alone(member, gate).run()
            if turns.is_led:
                member.prepare_ahead()
            return turns.take(member, partial(_lead, repository, gate))
    except KeyboardInterrupt as e:
        if member.landed is False:
            # Files that are still being written are never seen, and a cleanup finds them.
            member.drop_traces()
        raise WriteInterrupted(member.id, published=member.landed) from e


def _lead(repository: Repository, gate: InterruptGate, turn: Turn[PendingWrite, Receipt]) -> None:
    """Settle a turn, together with others that wait if that is possible."""
    with repository.turns.held:
        while not turn.settled:
            if not _published_together(repository, gate, turn):
                turn.succeed(_Alone(turn.work, gate).run())


def restate(
    repository: Repository, branch: Branch, change: Callable[[Snapshot], Snapshot | None]
) -> None:
    """Publish a version that shows the same graph and says something else about its branch.

    ``change`` gets the newest snapshot this process knows of, and a newer one as often as another
    write is published first; None means that there is nothing to say. Makes no commit.
    """
    with repository.turns.held:
        head = branch.recent()
        for attempt in range(1, outcome.ATTEMPTS_MAX + 1):
            wanted = change(head.snapshot)
            if wanted is None:
                return
            bring_up_to_date(repository, branch, head)
            wanted = replace(
                wanted, version=head.snapshot.version + 1, format=graph_format.FORMAT, steps=()
            )
            staged = branch.store.stage(head, wanted)
            repository.sync(branch.store.files_of(staged))
            check_invariants(head.snapshot, wanted, repository.schema(wanted.schema_hash).catalog)
            try:
                made = branch.store.commit(head, staged)
            except (LostRaceError, OutcomeUnknownError) as failure:
                if isinstance(failure, OutcomeUnknownError) and failure.refused:
                    raise failure.cause from failure
                # Whether a commit without an answer landed shows on the newest head: ``change`` is
                # a function of it, or the refresh finds that the branch has ended.
                outcome.back_off(repository, attempt)
                head = branch.refresh()
                continue
            branch.advance(made)
            repository.sync([branch.store.manifest_name(made.snapshot.version)])
            return
        raise outcome.contention(branch.name)


class _Alone:
    """One write by itself, through as many attempts as it takes.

    The branch's head is a cell that every thread of the process advances; it is read at the start
    and after a lost race, and from there on the head is a value that is passed along.
    """

    def __init__(self, member: PendingWrite, gate: InterruptGate) -> None:
        self._member = member
        self._repository = member.repository
        self._branch = member.branch
        self._outcome = Outcome(member.branch, member.repository.lineage, member.id, gate)

    def run(self) -> Receipt:
        """Publish, and leave nothing behind that is not needed."""
        member = self._member
        try:
            receipt = self._run()
            self._outcome.told()
            if receipt.commit is None:
                member.drop_traces()
            return receipt
        except Exception as e:
            # Running tasks may still write; what they wrote can only be dropped afterwards.
            member.stager.drain()
            may_land = self._outcome.may_land
            if not may_land:
                member.drop_traces()
            if may_land and isinstance(e, OmnigraphError) and not isinstance(e, CommitUnknownError):
                raise self._outcome.unknown(e) from e
            raise
        except BaseException:
            # The end of the process waits for nothing, and the intent stays as its trace.
            member.stager.forget_handles()
            if self._outcome.may_land and not member.landed:
                member.landed = None
            raise
        finally:
            member.end_lease()

    def _run(self) -> Receipt:
        branch, member, clock = self._branch, self._member, self._repository.clock
        head = branch.refresh() if member.request.begins_on_newest else branch.recent()
        branch.store.expect_commit(head)
        member.announce(head)
        prepared = member.prepared(head)
        for attempt in range(member.attempts + 1, outcome.ATTEMPTS_MAX + 1):
            if not self._has_something_to_publish(prepared):
                txn = prepared.txn
                head = branch.refresh() if txn.consulted else txn.head
                if txn.same_world(head.snapshot, txn.consulted):
                    return _receipt(None, prepared, attempt)
                # What is nothing to do on a stale snapshot may be something on the newest.
                prepared = member.preparation.on(head)
                continue
            started_s = clock.monotonic_s()
            try:
                head = self._attempt(prepared)
            except (CorruptionError, StorageError):
                # Files that are missing because a cleanup came in between are written again.
                if self._outcome.is_open or not member.preparation.is_behind(branch.refresh()):
                    raise
                member.stager.drain()
                prepared = member.preparation.again(prepared, branch.head)
                continue
            except (LostRaceError, OutcomeUnknownError) as failure:
                member.stager.forget_handles()
                head, landed = self._outcome.resolve(prepared.txn.snapshot, failure)
                if not landed:
                    self._outcome.told()
                    _log.info("lost a race on %s, attempt %d", branch.name, attempt)
                    outcome.back_off(self._repository, attempt, clock.monotonic_s() - started_s)
                    prepared = member.preparation.again(prepared, head)
                    continue
            _acknowledge(self._repository, head, [member])
            return _receipt(head.snapshot.head, prepared, attempt)
        raise outcome.contention(branch.name)

    def _has_something_to_publish(self, prepared: PreparedWrite) -> bool:
        must = Requires.COMMIT in self._member.request.requires
        return bool(prepared.work) or must or prepared.schema is not None

    def _attempt(self, prepared: PreparedWrite) -> Head:
        """Phases A to C, once."""
        member, txn = self._member, prepared.txn
        bring_up_to_date(self._repository, self._branch, txn.head)
        member.write_intent(txn, prepared.work)
        now_us = self._repository.clock.now_us()
        ahead = self._begin_next_head(prepared, now_us)
        staged = member.stager.stage(txn, prepared.work)
        step = StagedWrite.of(member.request, member.id, prepared, staged)
        repository, of = self._repository, self._outcome
        return _commit(repository, txn.head, [member], [step], of, now_us=now_us, ahead=ahead)

    def _begin_next_head(self, prepared: PreparedWrite, now_us: int) -> Future[StagedHead] | None:
        """Write the next version of the manifest while tables are staged, if it can be said what
        that will show."""
        member, head = self._member, prepared.txn.head
        pins = member.stager.foreseen(prepared.txn, prepared.work)
        if pins is None:
            return None
        step = ShownWrite(
            request=member.request, operation_id=member.id, prepared=prepared, pins=pins
        )
        return member.stager.begin(self._branch.store.stage, head, next_snapshot([step], now_us))


def _published_together(
    repository: Repository, gate: InterruptGate, turn: Turn[PendingWrite, Receipt]
) -> bool:
    """Try once to publish a write with others that wait; False if it is to go alone.

    True says only that it was tried: a race may have been lost. What cannot be published together
    is left to its own turn, and so is what stands in the way of the others.
    """
    first = turn.work
    turns = repository.turns.waiting(lambda member: member.branch is first.branch)
    if not turns or first.attempts >= outcome.ATTEMPTS_MAX:
        repository.turns.put_back(turns)
        return False
    try:
        head = first.branch.recent()
        found = gathered([first, *(t.work for t in turns)], head)
        if not found:
            return False
        of_member = {t.work.id: t for t in (turn, *turns)}
        _Together(repository, head, found, [of_member[m.id] for m, _ in found], gate).run()
        return True
    finally:
        repository.turns.put_back([t for t in turns if not t.settled])


class _Together:
    """Several writes, once."""

    def __init__(
        self,
        repository: Repository,
        head: Head,
        found: Sequence[tuple[PendingWrite, PreparedWrite]],
        turns: Sequence[Turn[PendingWrite, Receipt]],
        gate: InterruptGate,
    ) -> None:
        self._repository = repository
        self._head = head
        self._found = found
        self._turns = turns
        self._members = [member for member, _ in found]
        newest = self._members[-1]
        # All of them land or none does: where the last one is, the others are.
        self._outcome = Outcome(newest.branch, repository.lineage, newest.id, gate)

    def run(self) -> None:
        """Settle all of the writes, or none where a race was lost or one of them fails."""
        try:
            head = self._attempt()
        except (LostRaceError, OutcomeUnknownError) as failure:
            self._forget_handles()
            self._resolve(failure)
        except BaseException as e:
            self._forget_handles()
            if self._outcome.may_land:
                self._fail(e)
            if not isinstance(e, Exception):
                raise
            for member in self._members:
                member.alone = True
        else:
            self._succeed(head)
            self._outcome.told()

    def _attempt(self) -> Head:
        members, repository = self._members, self._repository
        bring_up_to_date(repository, members[0].branch, self._head)
        with ThreadPoolExecutor(min(len(members), SIDE_BY_SIDE_MAX)) as pool:
            for member, prepared in self._found:
                member.attempts += 1
                member.write_intent(prepared.txn, prepared.work)
            steps = staged_together(repository, self._found, pool)
            now_us = repository.clock.now_us()
            return _commit(repository, self._head, members, steps, self._outcome, now_us=now_us)

    def _resolve(self, failure: LostRaceError | OutcomeUnknownError) -> None:
        try:
            head, landed = self._outcome.resolve(self._head.snapshot, failure)
        except BaseException as e:
            self._fail(e)
            if not isinstance(e, Exception):
                raise
            return
        if landed:
            self._succeed(head)
        self._outcome.told()
        if not landed:
            outcome.back_off(self._repository, self._members[0].attempts)

    def _succeed(self, head: Head) -> None:
        try:
            _acknowledge(self._repository, head, self._members)
        except CommitUnknownError as e:
            self._fail(e)
            return
        commits = {commit.id: commit for commit in head.snapshot.commits}
        for turn, (member, prepared) in zip(self._turns, self._found, strict=True):
            turn.succeed(_receipt(commits[member.id], prepared, member.attempts))

    def _fail(self, cause: BaseException) -> None:
        """Tell each of the writes what happened, in its own words."""
        for turn in self._turns:
            if self._outcome.may_land and not turn.work.landed:
                turn.work.landed = None
            own = Outcome(turn.work.branch, self._repository.lineage, turn.work.id)
            if isinstance(cause, OmnigraphError) and not self._outcome.may_land:
                turn.work.drop_traces()
                turn.fail(copy(cause))
            elif isinstance(cause, OmnigraphError):
                turn.fail(own.unknown(cause))
            else:
                turn.fail(own.unknown(InternalError(f"the writer was stopped: {cause!r}")))

    def _forget_handles(self) -> None:
        for member in self._members:
            member.stager.drain()


def _commit(
    repository: Repository,
    head: Head,
    members: Sequence[PendingWrite],
    steps: Sequence[StagedWrite],
    of: Outcome,
    *,
    now_us: int,
    ahead: Future[StagedHead] | None = None,
) -> Head:
    """Phase C: one strict commit that makes every one of these writes visible."""
    store, base = members[0].branch.store, head.snapshot
    # The version of the manifest and the final names of the tables are written side by side.
    shown = next_snapshot([write.step for write in steps], now_us)
    next_head = ahead.result() if ahead is not None else store.stage(head, shown)
    if next_head.snapshot != shown:  # It was foreseen that something else would be made.
        next_head = store.stage(head, shown)
    next_head = replace(next_head, snapshot=shown)
    # The commit names these versions: a reader that sees it looks for them at once.
    for item in (item for step in steps for item in step.staged.values()):
        if item.pinning is not None:
            item.pinning.result()
    for member in members:
        member.await_intent()
    hit(FailPoint.WRITE_INTENT_WRITTEN)
    hit(FailPoint.WRITE_ALL_STAGED)
    if repository.durability is Durability.FSYNC:
        _sync_staged(repository, steps, store.files_of(next_head))
    schema = steps[-1].prepared.schema or repository.schema(shown.schema_hash)
    check_invariants(base, shown, schema.catalog)
    hit(FailPoint.PUBLISH_BEFORE_COMMIT)
    # From here on an error proves nothing: the commit may have arrived.
    of.sending()
    made = store.commit(head, next_head)
    of.landed()
    for member in members:
        member.landed = True
    hit(FailPoint.PUBLISH_AFTER_COMMIT)
    for step in steps:
        for key, item in step.staged.items():
            if shown.pins[key].name == item.table.name:
                repository.open_tables.keep(item.table, instead_of=item.base)
    return made


def _receipt(commit: GraphCommit | None, prepared: PreparedWrite, attempts: int) -> Receipt:
    return Receipt(
        commit=commit,
        changes=commit.changes if commit is not None else {},
        attempts=attempts,
        unchanged=prepared.unchanged,
    )


def _sync_staged(repository: Repository, steps: Sequence[StagedWrite], names: list[str]) -> None:
    files = list(names)
    for step in steps:
        for key, item in step.staged.items():
            base = step.prepared.txn.table_of(step.prepared.work[key].type)
            files += item.new_files(base)
    repository.sync(list(dict.fromkeys(files)))


def _acknowledge(repository: Repository, head: Head, members: Sequence[PendingWrite]) -> None:
    """The writes are visible. From here on nothing may say that they are not."""
    branch = members[0].branch
    branch.advance(head)
    repository.branches.published = members[-1].id
    for member in members:
        member.landed = True
    try:
        repository.sync([branch.store.manifest_name(head.snapshot.version)])
    except StorageError as e:
        raise CommitUnknownError(
            f"commit {members[-1].id} is published, but may not survive a power cut: {e.message}",
            hint=e.hint,
            details={"operation_id": members[-1].id},
        ) from e
    for member in members:
        member.end_lease()
        _log.info("published %s %s on %s", member.request.kind, member.id, branch.name)
    gone = dict.fromkeys(name for member in members for name in member.traces)
    settle(repository, branch, head.snapshot, list(gone))
