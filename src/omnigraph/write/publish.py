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
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.errors import (
    CommitUnknownError,
    ConflictError,
    ConstraintError,
    ErrorKind,
    InputError,
    NotFoundError,
    OmnigraphError,
)
from omnigraph.failpoints import FailPoint, hit
from omnigraph.manifest.repository import Branch, Durability, Repository
from omnigraph.manifest.snapshot import GraphCommit, Snapshot, TableChange, TablePin
from omnigraph.manifest.store import Head
from omnigraph.storage.strict import LostRaceError, OutcomeUnknownError
from omnigraph.write.delta import GraphDelta, WriteMode
from omnigraph.write.plan import (
    Expectation,
    HeadIs,
    PublishPlan,
    TableUnchanged,
    check_lineage_text,
)
from omnigraph.write.settle import intent_name, settle
from omnigraph.write.stage import Staged, Stager, TableWork, table_actions, work_of
from omnigraph.write.txn import WriteTxn
from omnigraph.write.validate import validate

ATTEMPTS_MAX = 64
BACKOFF_MIN_S = 0.01
BACKOFF_MAX_S = 1.0
UNKNOWN_OUTCOMES_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """What somebody wants to publish."""

    kind: str
    branch: str
    prepare: Callable[[WriteTxn], GraphDelta]
    """The change against a pinned snapshot. Called again only when the schema or the read set
    moved; an equal delta (the same object) keeps its data files."""
    actor: str | None = None
    message: str | None = None
    expected_commit: str | None = None
    on_newest: bool = False
    """Pin the newest head of all processes, not merely the newest this one knows of (one request).
    For writes that replace what they have seen; others find out when they publish."""


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


class _Operation:
    """One write, through as many attempts as it takes."""

    def __init__(self, repository: Repository, request: WriteRequest) -> None:
        self._repository = repository
        self._request = request
        self._branch: Branch = repository.branch(request.branch)
        self._id = repository.ids.ulid()
        self._stager = Stager(repository, self._id)
        self._expectations: tuple[Expectation, ...] | None = None
        self._delta: GraphDelta | None = None
        self._intent_written = False
        self._unknown_outcomes = 0

    def run(self) -> Receipt:
        try:
            return self._run()
        except CommitUnknownError:
            raise  # The intent stays: it is the trace of a write whose fate must be looked up.
        except BaseException:
            if self._intent_written:
                self._repository.discard([intent_name(self._id), *self._stager.leftovers])
            raise

    def _run(self) -> Receipt:
        if self._request.on_newest or self._request.expected_commit is not None:
            self._branch.refresh()
        txn, work = self._prepare()
        for attempt in range(1, ATTEMPTS_MAX + 1):
            if not work:
                return Receipt(commit=None, changes={}, attempts=attempt)
            started = self._repository.clock.monotonic_s()
            try:
                head = self._attempt(txn, work)
            except LostRaceError:
                pass
            except OutcomeUnknownError as e:
                self._check_retryable(e)
            else:
                return self._acknowledge(head, work, attempt)
            self._stager.forget_handles()
            landed = self._refresh_and_find_own()
            if landed is not None:
                return self._acknowledge(landed, work, attempt)
            self._back_off(attempt, self._repository.clock.monotonic_s() - started)
            txn, work = self._again(txn, work)
        raise self._contention()

    def _contention(self) -> ConflictError:
        return ConflictError(
            f"gave up after {ATTEMPTS_MAX} lost races on branch '{self._branch.name}'",
            kind=ErrorKind.CONTENTION,
            hint="many writers publish on this branch: repeat the command, or batch the writes",
            details={"attempts": ATTEMPTS_MAX},
        )

    def _prepare(self) -> tuple[WriteTxn, dict[str, TableWork]]:
        """Pin, prepare and validate. Bad news is believed only on the newest snapshot."""
        for _ in range(ATTEMPTS_MAX):
            txn = WriteTxn.begin(self._repository, self._branch)
            try:
                delta = self._request.prepare(txn)
                self._expect(txn, delta)
                work = work_of(delta, validate(txn.schema.catalog, delta, txn))
            except (ConstraintError, NotFoundError, InputError):
                if self._branch.refresh().snapshot.version == txn.snapshot.version:
                    raise
                continue
            # Checking a large delta takes as much memory again; writing it will need the room.
            pa.default_memory_pool().release_unused()
            if delta is not self._delta:
                self._stager.forget_files()
                self._delta = delta
            return txn, work
        raise self._contention()

    def _expect(self, txn: WriteTxn, delta: GraphDelta) -> None:
        """Fix the expectations on the first snapshot that was pinned; check them on later ones.

        Replacing a type's whole content is only safe against the content that was there when the
        write began: another writer's rows must not vanish unseen.
        """
        if self._expectations is None:
            expected: list[Expectation] = []
            if self._request.expected_commit is not None:
                expected.append(HeadIs(commit_id=self._request.expected_commit))
            for key, table in delta.tables.items():
                if table.mode is WriteMode.OVERWRITE or len(table.removed):
                    pin = txn.pin(key)
                    version = pin.name.version if pin is not None else None
                    expected.append(TableUnchanged(table_key=key, version=version))
            self._expectations = tuple(expected)
        for expectation in self._expectations:
            expectation.check(txn.snapshot)

    def _again(
        self, txn: WriteTxn, work: dict[str, TableWork]
    ) -> tuple[WriteTxn, dict[str, TableWork]]:
        """After a lost race: keep everything if nothing this write rests on has moved."""
        newest = self._branch.head.snapshot
        for expectation in self._expectations or ():
            expectation.check(newest)
        if not txn.same_world(newest, txn.consulted | set(work)):
            return self._prepare()
        moved = WriteTxn.begin(self._repository, self._branch)
        moved.consulted.update(txn.consulted)
        return moved, work

    def _attempt(self, txn: WriteTxn, work: dict[str, TableWork]) -> Head:
        """Phases A to C, once."""
        plan = self._plan(txn, work)
        pool, store = self._repository.pool, self._branch.store
        intent = None
        if not self._intent_written:
            self._intent_written = True
            intent = pool.submit(self._repository.objects.put, intent_name(self._id), plan.encode())
        staged = self._stager.stage(txn, work)
        snapshot = self._next(txn, work, staged)
        # The version of the manifest and the final names of the tables are written side by side.
        next_head = store.stage(txn.head, snapshot)
        for item in staged.values():
            item.pinning.result()
        if intent is not None:
            intent.result()
            hit(FailPoint.WRITE_INTENT_WRITTEN)
        hit(FailPoint.WRITE_ALL_STAGED)
        if self._repository.durability is Durability.FSYNC:
            self._sync_staged(txn, staged, store.files_of(next_head))
        hit(FailPoint.PUBLISH_BEFORE_COMMIT)
        head = store.commit(txn.head, next_head)
        hit(FailPoint.PUBLISH_AFTER_COMMIT)
        self._repository.sync([store.manifest_name(head.snapshot.version)])
        for item in staged.values():
            self._repository.keep_table(item.table)
        return head

    def _plan(self, txn: WriteTxn, work: dict[str, TableWork]) -> PublishPlan:
        return PublishPlan(
            operation_id=self._id,
            kind=self._request.kind,
            branch=self._branch.name,
            actor=self._request.actor,
            message=self._request.message,
            base_commit=txn.snapshot.head.id,
            base_manifest_version=txn.snapshot.version,
            schema_hash=txn.snapshot.schema_hash,
            tables=table_actions(txn, work),
            expectations=self._expectations or (),
        )

    def _next(
        self, txn: WriteTxn, work: dict[str, TableWork], staged: dict[str, Staged]
    ) -> Snapshot:
        """The snapshot that this write makes of the pinned one."""
        base = txn.snapshot
        commit = GraphCommit(
            id=self._id,
            parent_id=base.head.id,
            merged_parent_id=None,
            branch=base.branch,
            manifest_version=base.version + 1,
            kind=self._request.kind,
            actor=self._request.actor,
            message=self._request.message,
            # Lineage time never runs backwards, whatever the clocks of many machines say.
            created_at_us=max(self._repository.clock.now_us(), base.head.created_at_us),
            changes={key: item.change for key, item in work.items()},
        )
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
            pins={**base.pins, **pins},
            commits=(commit, *base.commits),
        )

    def _sync_staged(self, txn: WriteTxn, staged: dict[str, Staged], names: list[str]) -> None:
        files = list(names)
        for key, item in staged.items():
            files += [*item.table.files_since(txn.table(key)), item.table.name.manifest]
        self._repository.sync(files)

    def _acknowledge(self, head: Head, work: dict[str, TableWork], attempts: int) -> Receipt:
        self._branch.advance(head)
        settle(self._repository, self._branch, self._id, self._stager.leftovers)
        commit = next(c for c in head.snapshot.commits if c.id == self._id)
        return Receipt(
            commit=commit,
            changes={key: item.change for key, item in work.items()},
            attempts=attempts,
        )

    def _refresh_and_find_own(self) -> Head | None:
        """Learn the newest head; if our own commit is in its lineage the write has landed.

        A conditional create that is retried by the network layer reports a conflict with itself.
        """
        before = self._branch.head.snapshot.version
        try:
            head = self._branch.refresh()
        except OmnigraphError as e:
            raise CommitUnknownError(
                f"the write {self._id} may or may not have been published: {e.message}",
                hint=f"when the store answers again, look for commit {self._id} in 'commit list'",
                details={"operation_id": self._id},
            ) from e
        for commit in self._branch.store.history(head):
            if commit.id == self._id:
                return self._branch.store.at(commit.manifest_version)
            if commit.manifest_version <= before:
                return None
        return None

    def _check_retryable(self, error: OutcomeUnknownError) -> None:
        """A store that fails for good is reported, one that stumbled is asked again."""
        self._unknown_outcomes += 1
        transient = error.cause.kind is ErrorKind.STORAGE_TRANSIENT
        if transient and self._unknown_outcomes <= UNKNOWN_OUTCOMES_MAX:
            return
        if self._refresh_and_find_own() is None:
            raise error.cause

    def _back_off(self, attempt: int, attempt_s: float) -> None:
        """Wait a random part of a window that grows with every loss, so that racers spread out."""
        window = max(BACKOFF_MIN_S, attempt_s / 2) * 2 ** min(attempt - 1, 6)
        self._repository.clock.sleep(min(window, BACKOFF_MAX_S) * self._repository.ids.jitter())
