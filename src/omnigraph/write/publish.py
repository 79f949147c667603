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
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.errors import (
    CommitUnknownError,
    ConflictError,
    ConstraintError,
    CorruptionError,
    ErrorKind,
    FormatError,
    InputError,
    NotFoundError,
    OmnigraphError,
    QueryError,
    StorageError,
)
from omnigraph.failpoints import FailPoint, hit
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.codec import COMMITS_MAX
from omnigraph.manifest.repository import AcceptedSchema, Branch, Durability, Repository
from omnigraph.manifest.snapshot import GraphCommit, Snapshot, TableChange, TablePin
from omnigraph.manifest.store import Head
from omnigraph.storage.strict import LostRaceError, OutcomeUnknownError
from omnigraph.storage.tables import Table
from omnigraph.write.delta import Adoption, GraphDelta, TableDelta, WriteMode
from omnigraph.write.fence import Fence, outrun
from omnigraph.write.intents import Lease, intent_name
from omnigraph.write.lens import validated
from omnigraph.write.migrate.run import bring_up_to_date
from omnigraph.write.plan import (
    Action,
    Expectation,
    HeadIs,
    PublishPlan,
    TableUnchanged,
    check_lineage_text,
)
from omnigraph.write.settle import settle
from omnigraph.write.stage import (
    BulkChange,
    BulkWork,
    Staged,
    Stager,
    Work,
    changes_of,
    table_actions,
    work_of,
)
from omnigraph.write.txn import WriteTxn

ATTEMPTS_MAX = 64
BACKOFF_MIN_S = 0.01
BACKOFF_MAX_S = 1.0
UNKNOWN_OUTCOMES_MAX = 3
REVOKED_MAX = 64
"""Revocations that a snapshot carries. An older one is not needed for safety: whatever a cleanup
deletes, the write is told of it by the cleanup itself (``write/fence.py``)."""

BELIEVED_ON_THE_NEWEST = (
    ConstraintError,
    NotFoundError,
    InputError,
    QueryError,
    CorruptionError,
)
"""What is wrong with a write on one snapshot need not be wrong on a newer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """What is to be published."""

    kind: str
    branch: str
    prepare: Callable[[WriteTxn], GraphDelta | BulkChange | Adoption]
    """The change against a pinned snapshot. Called again only when the schema or the read set
    moved; an equal delta (the same object) keeps its data files."""
    actor: str | None = None
    message: str | None = None
    expected_commit: str | None = None
    on_newest: bool = False
    """Pin the newest head of all processes, not merely the newest this one knows of (one request).
    For writes that replace what they have seen; others find out when they publish."""
    decides_anew: bool = False
    """``prepare`` derives from the snapshot it is given whatever it removes. After a lost race it
    is simply asked again: what it then removes it has seen (ADR 0007). A delta that was fixed
    before instead expects its tables unchanged."""
    merged: GraphCommit | None = None
    """Recorded as the second parent."""
    even_if_empty: bool = False
    """Publish a commit although no table changes: for what it says about the lineage."""
    revokes: tuple[str, ...] = ()
    """Operations that may not publish on this branch from now on."""
    long: bool = False
    """Files are written while it is prepared, perhaps for hours, perhaps elsewhere: its intent is
    there from the beginning and is renewed, so that it is not taken for dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a write did."""

    commit: GraphCommit | None
    """None when nothing changed: then nothing was published."""
    changes: Mapping[str, TableChange]
    attempts: int


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
        for attempt in range(1, ATTEMPTS_MAX + 1):
            wanted = change(head.snapshot)
            if wanted is None:
                return
            bring_up_to_date(repository, branch, head)
            wanted = replace(wanted, version=head.snapshot.version + 1, format=graph_format.FORMAT)
            staged = branch.store.stage(head, wanted)
            repository.sync(branch.store.files_of(staged))
            try:
                made = branch.store.commit(head, staged)
            except (LostRaceError, OutcomeUnknownError) as failure:
                if isinstance(failure, OutcomeUnknownError) and failure.refused:
                    raise failure.cause from failure
                repository.clock.sleep(_back_off_s(repository, attempt, BACKOFF_MIN_S))
                head = branch.refresh()
                continue
            branch.advance(made)
            repository.sync([branch.store.manifest_name(made.snapshot.version)])
            return
        raise _contention(branch.name)


def _under(schema: AcceptedSchema, pins: Mapping[str, TablePin]) -> dict[str, TablePin]:
    """Tables as another schema calls them; those that it does not have are left out."""
    names = {(t.id, t.incarnation): t.table_key for t in schema.catalog.types()}
    return {
        key: replace(pin, table_key=key)
        for pin in pins.values()
        if (key := names.get((pin.type_id, pin.incarnation))) is not None
    }


def _contention(branch: str) -> ConflictError:
    return ConflictError(
        f"gave up after {ATTEMPTS_MAX} lost races on branch '{branch}'",
        kind=ErrorKind.CONTENTION,
        hint="many writers publish on this branch: repeat the command, or batch the writes",
        details={"attempts": ATTEMPTS_MAX},
    )


def _back_off_s(repository: Repository, attempt: int, attempt_s: float) -> float:
    """A random part of a window that grows with every loss, so that racers spread out."""
    window = max(BACKOFF_MIN_S, attempt_s / 2) * 2 ** min(attempt - 1, 6)
    return min(window, BACKOFF_MAX_S) * repository.ids.jitter()


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
        self._expectations: tuple[Expectation, ...] | None = None
        self._delta: GraphDelta | BulkChange | Adoption | None = None
        self._intent: Future[None] | None = None
        self._committing = False
        """A commit was sent, and its outcome is not known yet."""
        self._pending = False
        """A commit was sent, is not there, and could still arrive: its version is not taken."""
        self._unknown_outcomes = 0
        self._outrun = False
        """A cleanup came in between: what this write began with may be gone."""
        self._fence = Fence(repository, self._id)
        self._lease = Lease(repository.objects, self._id) if request.long else None

    def run(self) -> Receipt:
        """Publish, and leave nothing behind that is not needed."""
        try:
            receipt = self._run()
            if receipt.commit is None and self._lease is not None:
                self._end_lease()
                self._repository.discard([intent_name(self._id)])
            return receipt
        except Exception as e:
            # Running tasks may still write; what they wrote can only be dropped afterwards.
            self._stager.drain()
            may_land = self._committing or self._pending
            if (self._intent is not None or self._lease is not None) and not may_land:
                self._end_lease()
                wait([self._intent] if self._intent is not None else [])
                self._repository.discard([intent_name(self._id), *self._stager.leftovers])
            if may_land and isinstance(e, OmnigraphError) and not isinstance(e, CommitUnknownError):
                raise self._unknown(e) from e
            raise
        except BaseException:  # An interrupt waits for nothing; the intent stays as its trace.
            self._stager.forget_handles()
            raise
        finally:
            self._end_lease()

    def _end_lease(self) -> None:
        if self._lease is not None:
            self._lease.end()

    def _run(self) -> Receipt:
        request = self._request
        # A long write must not find out after hours that a cleanup ran before it began.
        newest = request.on_newest or request.long or request.expected_commit is not None
        head = self._branch.refresh() if newest else self._branch.recent()
        if self._lease is not None:
            txn = WriteTxn.begin(self._repository, self._branch, head)
            self._lease.hold(self._plan(txn, {}).encode())
        txn, work = self._prepare(head)
        for attempt in range(1, ATTEMPTS_MAX + 1):
            if not work and not self._must_commit and self._schema is None:
                head = self._branch.refresh() if txn.consulted else txn.head
                if txn.same_world(head.snapshot, txn.consulted):
                    return Receipt(commit=None, changes={}, attempts=attempt)
                # What is nothing to do on a stale snapshot may be something on the newest.
                txn, work = self._prepare(head)
                continue
            started = self._repository.clock.monotonic_s()
            try:
                head = self._attempt(txn, work)
            except (CorruptionError, StorageError):
                # Files that are missing because a cleanup came in between are written again.
                if self._committing or not self._fence.behind(self._branch.refresh().snapshot):
                    raise
                self._stager.drain()
                txn, work = self._again(txn, work, self._branch.head)
                continue
            except (LostRaceError, OutcomeUnknownError) as failure:
                head, landed = self._resolve(txn, failure)
                if not landed:
                    clock = self._repository.clock
                    took_s = clock.monotonic_s() - started
                    clock.sleep(_back_off_s(self._repository, attempt, took_s))
                    txn, work = self._again(txn, work, head)
                    continue
            return self._acknowledge(head, work, attempt)
        raise _contention(self._branch.name)

    @property
    def _must_commit(self) -> bool:
        return self._request.even_if_empty

    def _prepare(self, head: Head) -> tuple[WriteTxn, dict[str, Work]]:
        """Pin, prepare and validate. Bad news is believed only on the newest snapshot."""
        for _ in range(ATTEMPTS_MAX):
            self._check_not_revoked(head)
            self._mind_cleanups(head)
            if self._request.expected_commit is not None:
                # Whatever is wrong with the write on another commit, that one was not asked for.
                HeadIs(commit_id=self._request.expected_commit).check(head.snapshot)
            txn = WriteTxn.begin(self._repository, self._branch, head)
            try:
                delta = self._request.prepare(txn)
                self._expect(txn, delta)
                self._fence.check_shown_again(txn.snapshot, delta, self._branch)
                work = self._checked(txn, delta)
            except BELIEVED_ON_THE_NEWEST as e:
                head = self._branch.refresh()
                # Whether an input or a text can be read depends on the schema alone, rules on
                # everything.
                same_schema = head.snapshot.schema_hash == txn.snapshot.schema_hash
                # Not so what a cleanup took of a state that is not the newest any more.
                by_schema = isinstance(e, (NotFoundError, InputError, QueryError)) and (
                    e.kind is not ErrorKind.HISTORY_RECLAIMED
                )
                if head.snapshot.version == txn.snapshot.version or (same_schema and by_schema):
                    if isinstance(e, CorruptionError) and self._outrun:
                        raise outrun(self._id) from e
                    raise
                continue
            # Checking a large delta takes as much memory again; writing it will need the room.
            pa.default_memory_pool().release_unused()
            if delta is not self._delta:
                self._stager.start_over()
                self._delta = delta
            return txn, work
        raise _contention(self._branch.name)

    def _checked(self, txn: WriteTxn, delta: GraphDelta | BulkChange | Adoption) -> dict[str, Work]:
        """The tables that change, after the validator. A bulk change was checked where it is."""
        if isinstance(delta, Adoption):
            return {}
        if isinstance(delta, BulkChange):
            return dict(delta.tables)
        return work_of(delta, validated(txn, delta))

    def _expect(self, txn: WriteTxn, delta: GraphDelta | BulkChange | Adoption) -> None:
        """Fix the expectations on the first snapshot that was pinned; check them on later ones.

        Replacing a type's whole content, or removing rows by a list made earlier, is only safe
        against the content that was there when the write began: another writer's rows must not
        vanish unseen.
        """
        if self._expectations is None:
            expected: list[Expectation] = []
            if self._request.expected_commit is not None:
                expected.append(HeadIs(commit_id=self._request.expected_commit))
            tables = {} if isinstance(delta, Adoption) else delta.tables
            for key, table in tables.items():
                if self._replaces_unseen(table):
                    expected.append(TableUnchanged(table_key=key, pin=txn.pin(key)))
            self._expectations = tuple(expected)
        for expectation in self._expectations:
            expectation.check(txn.snapshot)

    def _replaces_unseen(self, table: TableDelta | BulkWork) -> bool:
        if isinstance(table, BulkWork):
            return Action.REPLACE in table.actions
        removes = bool(len(table.removed)) and not self._request.decides_anew
        return table.mode is WriteMode.OVERWRITE or removes

    def _again(
        self, txn: WriteTxn, work: dict[str, Work], head: Head
    ) -> tuple[WriteTxn, dict[str, Work]]:
        """After a lost race: keep everything if nothing this write rests on has moved."""
        self._check_not_revoked(head)
        if self._mind_cleanups(head):
            return self._prepare(head)
        for expectation in self._expectations or ():
            expectation.check(head.snapshot)
        moved = not txn.same_world(head.snapshot, txn.consulted | set(work))
        # What a merge has to bring depends on the lineage, too, and that has moved in any case.
        stale = moved or self._request.merged is not None
        if stale or isinstance(self._delta, Adoption) or self._schema is not None:
            return self._prepare(head)
        later = WriteTxn.begin(self._repository, self._branch, head)
        later.consulted.update(txn.consulted)
        return later, work

    def _mind_cleanups(self, head: Head) -> bool:
        """Whether everything must be put into files anew: a cleanup may have deleted them."""
        if not self._fence.crossed(head.snapshot):
            return False
        self._outrun = True
        self._stager.start_over()
        self._fence.check_shown_again(head.snapshot, self._delta, self._branch)
        bulk = self._delta.tables.values() if isinstance(self._delta, BulkChange) else ()
        if any(not isinstance(item.staged, tuple) for item in bulk):
            raise outrun(self._id)  # Files that executors made, and rely on.
        return True

    def _check_not_revoked(self, head: Head) -> None:
        if self._id in head.snapshot.revoked:
            raise ConflictError(
                f"the write {self._id} was given up by recovery: it had not moved for long",
                kind=ErrorKind.REVOKED,
                hint="nothing of it was published: repeat the command",
                details={"operation_id": self._id},
            )

    def _attempt(self, txn: WriteTxn, work: dict[str, Work]) -> Head:
        """Phases A to C, once."""
        pool, store = self._repository.pool, self._branch.store
        bring_up_to_date(self._repository, self._branch, txn.head)
        if self._intent is None:
            content, objects = self._plan(txn, work).encode(), self._repository.objects
            put = objects.put if self._lease is None else self._lease.renew
            self._intent = pool.submit(put, intent_name(self._id), content)
        staged = self._stager.stage(txn, work)
        # The version of the manifest and the final names of the tables are written side by side.
        next_head = store.stage(txn.head, self._next(txn, work, staged))
        for item in staged.values():
            if item.pinning is not None:
                item.pinning.result()
        self._intent.result()
        hit(FailPoint.WRITE_INTENT_WRITTEN)
        hit(FailPoint.WRITE_ALL_STAGED)
        if self._repository.durability is Durability.FSYNC:
            bases = {key: txn.table_of(item.type) for key, item in work.items()}
            self._sync_staged(bases, staged, store.files_of(next_head))
        hit(FailPoint.PUBLISH_BEFORE_COMMIT)
        self._committing = True
        head = store.commit(txn.head, next_head)
        hit(FailPoint.PUBLISH_AFTER_COMMIT)
        for key, item in staged.items():
            self._repository.keep_table(item.table, instead_of=txn.pin_of(work[key].type))
        return head

    def _resolve(
        self, txn: WriteTxn, failure: LostRaceError | OutcomeUnknownError
    ) -> tuple[Head, bool]:
        """What became of a commit that did not succeed plainly: the newest head, or our own.

        A conditional create that is retried by the network layer reports a conflict with itself,
        and a commit whose answer was lost may have landed: so our commit is looked for in the
        lineage back to the snapshot that this attempt replaced.
        """
        self._stager.forget_handles()
        lineage = self._repository.lineage
        try:
            newest = self._branch.refresh()
            for commit in lineage.first_parents(newest.snapshot):
                if commit.id == self._id:
                    at_head = commit.place == newest.snapshot.place
                    return (newest if at_head else lineage.head_at(commit.place)), True
                if commit.id == txn.snapshot.head.id:
                    break
        except FormatError as e:
            return self._before_newer_format(txn, e), True
        except OmnigraphError as e:
            if self._branch.gone:  # Wherever the commit is, it will not be seen.
                self._committing = self._pending = False
                raise
            raise self._unknown(e) from e
        # While the version after our base is not taken, a commit that was sent can still take it:
        # absent now is not absent for good. Once it is taken the condition keeps ours out.
        unknown = isinstance(failure, OutcomeUnknownError)
        refused = unknown and failure.refused
        taken = newest.snapshot.version > txn.snapshot.version
        self._pending = not taken and (self._pending or not refused)
        self._committing = False
        if unknown:
            self._unknown_outcomes += 1
            given_up = self._pending and self._unknown_outcomes > UNKNOWN_OUTCOMES_MAX
            if refused or given_up:
                raise failure.cause
        # Asking a store again that stumbled is safe: of two commits for one version one wins.
        return newest, False

    def _before_newer_format(self, txn: WriteTxn, newer: FormatError) -> Head:
        """Our own head, if it was published before a change to a format unknown here."""
        try:
            taken = self._branch.store.at(txn.snapshot.version + 1)
        except FormatError:
            taken = None  # Not ours: this release writes no such stamp.
        except OmnigraphError as e:
            raise self._unknown(e) from e
        self._committing = self._pending = False
        if taken is None or taken.snapshot.head.id != self._id:
            raise newer
        return taken

    def _unknown(self, cause: OmnigraphError) -> CommitUnknownError:
        return CommitUnknownError(
            f"the write {self._id} may or may not have been published: {cause.message}",
            hint=f"when the store answers again, look for commit {self._id} in 'commit list'",
            details={"operation_id": self._id},
        )

    def _plan(self, txn: WriteTxn, work: dict[str, Work]) -> PublishPlan:
        return PublishPlan(
            operation_id=self._id,
            kind=self._request.kind,
            branch=self._branch.name,
            manifest_path=txn.snapshot.path,
            long=self._request.long,
            actor=self._request.actor,
            message=self._request.message,
            base_commit=txn.snapshot.head.id,
            base_manifest_version=txn.snapshot.version,
            schema_hash=txn.snapshot.schema_hash,
            tables=table_actions(txn, work),
            expectations=self._expectations or (),
        )

    def _next(self, txn: WriteTxn, work: dict[str, Work], staged: dict[str, Staged]) -> Snapshot:
        """The snapshot that this write makes of the pinned one."""
        base, adopted = txn.snapshot, self._adoption
        line = adopted.snapshot if adopted is not None and adopted.rewinds else base
        merged = self._request.merged
        commit = GraphCommit(
            id=self._id,
            parent_id=line.head.id,
            merged_parent_id=merged.id if merged is not None else None,
            branch=base.branch,
            manifest_version=base.version + 1,
            kind=self._request.kind,
            actor=self._request.actor,
            message=self._request.message,
            # Lineage time never runs backwards, whatever the clocks of many machines say.
            created_at_us=max(
                self._repository.clock.now_us(),
                base.head.created_at_us,
                merged.created_at_us if merged is not None else 0,
            ),
            changes=self._changes(base, work),
            path=base.path,
            generation=1 + max(line.head.generation, merged.generation if merged else 0),
            merged_place=merged.place if merged is not None else None,
        )
        shown = base if adopted is None else adopted.snapshot
        schema = self._schema
        pins = {
            key: TablePin(
                table_key=key,
                type_id=work[key].type.id,
                incarnation=work[key].type.incarnation,
                name=item.table.name,
                row_count=item.table.row_count,
            )
            for key, item in staged.items()
        }
        return replace(
            base,
            version=base.version + 1,
            format=graph_format.FORMAT,
            schema_hash=schema.hash if schema is not None else shown.schema_hash,
            pins={**(_under(schema, shown.pins) if schema is not None else shown.pins), **pins},
            commits=(commit, *line.commits)[:COMMITS_MAX],
            rewound_at=base.version + 1 if line is not base else base.rewound_at,
            revoked=(*base.revoked, *self._request.revokes)[-REVOKED_MAX:],
        )

    @property
    def _adoption(self) -> Adoption | None:
        return self._delta if isinstance(self._delta, Adoption) else None

    @property
    def _schema(self) -> AcceptedSchema | None:
        """The schema from now on, if this write changes it."""
        delta = self._delta
        return delta.schema if isinstance(delta, (BulkChange, GraphDelta)) else None

    def _changes(self, base: Snapshot, work: dict[str, Work]) -> Mapping[str, TableChange]:
        """How the snapshot to come differs from the one that it replaces."""
        if self._adoption is not None:
            return self._adoption.changes
        return changes_of(work, base, self._schema)

    def _sync_staged(
        self, bases: Mapping[str, Table | None], staged: dict[str, Staged], names: list[str]
    ) -> None:
        files = list(names)
        for key, item in staged.items():
            files += item.new_files(bases[key])
        self._repository.sync(files)

    def _acknowledge(self, head: Head, work: dict[str, Work], attempts: int) -> Receipt:
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
        return Receipt(
            commit=head.snapshot.head,
            changes=head.snapshot.head.changes,
            attempts=attempts,
        )
