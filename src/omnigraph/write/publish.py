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

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace

from omnigraph.errors import CommitUnknownError, CorruptionError, OmnigraphError, StorageError
from omnigraph.failpoints import FailPoint, hit
from omnigraph.housekeeping.intents import Lease, intent_name
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.invariants import check_invariants
from omnigraph.manifest.repository import Durability, Repository
from omnigraph.manifest.snapshot import GraphCommit, Snapshot
from omnigraph.manifest.store import Head
from omnigraph.storage.strict import LostRaceError, OutcomeUnknownError
from omnigraph.storage.tables import Table
from omnigraph.write import outcome
from omnigraph.write.migration import bring_up_to_date
from omnigraph.write.next_snapshot import next_snapshot
from omnigraph.write.outcome import Outcome, settle
from omnigraph.write.plan import PublishPlan, check_lineage_text
from omnigraph.write.preparation import Preparation, PreparedWrite
from omnigraph.write.request import Receipt, Requires, WriteRequest
from omnigraph.write.stage import Staged, Stager, Work, table_actions
from omnigraph.write.txn import WriteTxn


def publish(repository: Repository, request: WriteRequest) -> Receipt:
    """Carry a write out, atomically, whatever others do. Writes of one handle take turns."""
    check_lineage_text(request.actor, request.message)
    with repository.write_lock:
        return _Operation(repository, request).run()


def restate(
    repository: Repository, branch: Branch, change: Callable[[Snapshot], Snapshot | None]
) -> None:
    """Publish a version that shows the same graph and says something else about its branch.

    ``change`` gets the newest snapshot this process knows of, and a newer one as often as another
    write is published first; None means that there is nothing to say. Makes no commit.
    """
    with repository.write_lock:
        head = branch.recent()
        for attempt in range(1, outcome.ATTEMPTS_MAX + 1):
            wanted = change(head.snapshot)
            if wanted is None:
                return
            bring_up_to_date(repository, branch, head)
            wanted = replace(wanted, version=head.snapshot.version + 1, format=graph_format.FORMAT)
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


class _Operation:
    """One write, through as many attempts as it takes.

    The branch's head is a cell that every thread of the process advances; it is read at the start
    and after a lost race, and from there on the head is a value that is passed along.
    """

    def __init__(self, repository: Repository, request: WriteRequest) -> None:
        self._repository = repository
        self._request = request
        self._branch: Branch = repository.branch(request.branch)
        self._id = repository.ids.ulid()
        self._stager = Stager(repository, self._id)
        self._preparation = Preparation(repository, self._branch, request, self._id, self._stager)
        self._outcome = Outcome(self._branch, repository.lineage, self._id)
        self._intent: Future[None] | None = None
        leased = Requires.LEASE in request.requires
        self._lease = Lease(repository.objects, self._id) if leased else None

    def run(self) -> Receipt:
        """Publish, and leave nothing behind that is not needed."""
        try:
            receipt = self._run()
            if receipt.commit is None and self._lease is not None:
                self._end_lease()
                self._repository.background.discard([intent_name(self._id)])
            return receipt
        except Exception as e:
            # Running tasks may still write; what they wrote can only be dropped afterwards.
            self._stager.drain()
            may_land = self._outcome.may_land
            if not may_land:
                self._drop_traces()
            if may_land and isinstance(e, OmnigraphError) and not isinstance(e, CommitUnknownError):
                raise self._outcome.unknown(e) from e
            raise
        except BaseException:  # An interrupt waits for nothing; the intent stays as its trace.
            self._stager.forget_handles()
            raise
        finally:
            self._end_lease()

    def _drop_traces(self) -> None:
        """Nothing of this write will ever be seen: its intent and its files can go."""
        if self._intent is None and self._lease is None:
            return
        self._end_lease()
        wait([self._intent] if self._intent is not None else [])
        self._repository.background.discard([intent_name(self._id), *self._stager.leftovers])

    def _end_lease(self) -> None:
        if self._lease is not None:
            self._lease.end()

    def _run(self) -> Receipt:
        branch, clock = self._branch, self._repository.clock
        head = branch.refresh() if self._request.begins_on_newest else branch.recent()
        if self._lease is not None:
            # Files come before the plan is known: only the intent tells a cleanup to spare them.
            txn = WriteTxn.begin(self._repository, branch, head)
            self._lease.hold(self._plan(txn, {}).encode())
        prepared = self._preparation.on(head)
        for attempt in range(1, outcome.ATTEMPTS_MAX + 1):
            if not self._has_something_to_publish(prepared):
                txn = prepared.txn
                head = branch.refresh() if txn.consulted else txn.head
                if txn.same_world(head.snapshot, txn.consulted):
                    return _receipt(None, prepared, attempt)
                # What is nothing to do on a stale snapshot may be something on the newest.
                prepared = self._preparation.on(head)
                continue
            started_s = clock.monotonic_s()
            try:
                head = self._attempt(prepared)
            except (CorruptionError, StorageError):
                # Files that are missing because a cleanup came in between are written again.
                if self._outcome.is_open or not self._preparation.is_behind(branch.refresh()):
                    raise
                self._stager.drain()
                prepared = self._preparation.again(prepared, branch.head)
                continue
            except (LostRaceError, OutcomeUnknownError) as failure:
                self._stager.forget_handles()
                head, landed = self._outcome.resolve(prepared.txn.snapshot, failure)
                if not landed:
                    outcome.back_off(self._repository, attempt, clock.monotonic_s() - started_s)
                    prepared = self._preparation.again(prepared, head)
                    continue
            self._acknowledge(head)
            return _receipt(head.snapshot.head, prepared, attempt)
        raise outcome.contention(branch.name)

    def _has_something_to_publish(self, prepared: PreparedWrite) -> bool:
        must = Requires.COMMIT in self._request.requires
        return bool(prepared.work) or must or prepared.schema is not None

    def _attempt(self, prepared: PreparedWrite) -> Head:
        """Phases A to C, once."""
        txn, work, store = prepared.txn, prepared.work, self._branch.store
        bring_up_to_date(self._repository, self._branch, txn.head)
        self._write_intent(txn, work)
        staged = self._stager.stage(txn, work)
        # The version of the manifest and the final names of the tables are written side by side.
        now_us = self._repository.clock.now_us()
        shown = next_snapshot(self._request, self._id, prepared, staged, now_us)
        next_head = store.stage(txn.head, shown)
        # The commit names these versions: a reader that sees it looks for them at once.
        for item in staged.values():
            if item.pinning is not None:
                item.pinning.result()
        if self._intent is not None:
            self._intent.result()
        hit(FailPoint.WRITE_INTENT_WRITTEN)
        hit(FailPoint.WRITE_ALL_STAGED)
        if self._repository.durability is Durability.FSYNC:
            bases = {key: txn.table_of(item.type) for key, item in work.items()}
            self._sync_staged(bases, staged, store.files_of(next_head))
        schema = prepared.schema or self._repository.schema(shown.schema_hash)
        check_invariants(txn.snapshot, shown, schema.catalog)
        hit(FailPoint.PUBLISH_BEFORE_COMMIT)
        # From here on an error proves nothing: the commit may have arrived.
        self._outcome.sending()
        head = store.commit(txn.head, next_head)
        hit(FailPoint.PUBLISH_AFTER_COMMIT)
        for key, item in staged.items():
            self._repository.open_tables.keep(item.table, instead_of=txn.pin_of(work[key].type))
        return head

    def _write_intent(self, txn: WriteTxn, work: Mapping[str, Work]) -> None:
        """Phase A, beside phase B: once, whatever later attempts change about it."""
        if self._intent is None:
            put = self._repository.objects.put if self._lease is None else self._lease.renew
            content = self._plan(txn, work).encode()
            self._intent = self._repository.background.pool.submit(
                put, intent_name(self._id), content
            )

    def _plan(self, txn: WriteTxn, work: Mapping[str, Work]) -> PublishPlan:
        return PublishPlan(
            operation_id=self._id,
            kind=self._request.kind,
            branch=self._branch.name,
            manifest_path=txn.snapshot.path,
            long=self._lease is not None,
            actor=self._request.actor,
            message=self._request.message,
            base_commit=txn.snapshot.head.id,
            base_manifest_version=txn.snapshot.version,
            schema_hash=txn.snapshot.schema_hash,
            tables=table_actions(txn, work),
            expectations=self._preparation.expectations,
        )

    def _sync_staged(
        self, bases: Mapping[str, Table | None], staged: dict[str, Staged], names: list[str]
    ) -> None:
        files = list(names)
        for key, item in staged.items():
            files += item.new_files(bases[key])
        self._repository.sync(files)

    def _acknowledge(self, head: Head) -> None:
        """The write is visible. From here on nothing may say that it is not."""
        self._branch.advance(head)
        try:
            manifest = self._branch.store.manifest_name(head.snapshot.version)
            self._repository.sync([manifest])
        except StorageError as e:
            raise CommitUnknownError(
                f"commit {self._id} is published, but may not survive a power cut: {e.message}",
                hint=e.hint,
                details={"operation_id": self._id},
            ) from e
        self._end_lease()
        gone = [intent_name(self._id), *self._stager.leftovers]
        settle(self._repository, self._branch, head.snapshot, gone)


def _receipt(commit: GraphCommit | None, prepared: PreparedWrite, attempts: int) -> Receipt:
    return Receipt(
        commit=commit,
        changes=commit.changes if commit is not None else {},
        attempts=attempts,
        unchanged=prepared.unchanged,
    )
