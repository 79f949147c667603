"""One write on its way to the door: what was asked, what was prepared, what it leaves behind.

request -> [member] -> alone, or together with others -> publish
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, wait
from contextlib import suppress

from omnigraph.housekeeping.intents import Lease, intent_name
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.store import Head
from omnigraph.storage.objects import done
from omnigraph.write.plan import PublishPlan
from omnigraph.write.preparation import Preparation, PreparedWrite
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.stage import Stager, Work, table_actions
from omnigraph.write.txn import WriteTxn


class PendingWrite:
    """One write, whichever thread carries it out."""

    def __init__(self, repository: Repository, request: WriteRequest) -> None:
        self.repository = repository
        self.request = request
        self.branch: Branch = repository.branch(request.branch)
        self.id = repository.ids.ulid()
        self.stager = Stager(repository, self.id)
        self.preparation = Preparation(repository, self.branch, request, self.id, self.stager)
        self.ahead: PreparedWrite | None = None
        """What was prepared while others published."""
        self.attempts = 0
        self.alone = False
        """Together with others it failed: by itself it will be known what is wrong."""
        self.landed: bool | None = False
        """Whether it was published; None if that is not known."""
        self._intent: Future[None] | None = None
        leased = Requires.LEASE in request.requires
        self._lease = Lease(repository.objects, self.id) if leased else None

    def prepare_ahead(self) -> None:
        """Prepare, and write what does not depend on others, while another write is published.

        What goes wrong here is forgotten: if it is still wrong in its turn, it counts.
        """
        if not self.request.joins:
            return
        with suppress(Exception):
            with self.repository.turns.ahead:
                self.ahead = self.preparation.on(self.branch.recent(), together=True)
            if self.ahead.work:
                # In this thread: it has nothing else to do, and the others are for what is urgent.
                content = self._plan(self.ahead.txn, self.ahead.work).encode()
                writing = done(self.repository.objects.put, intent_name(self.id), content)
                writing.result()
                self._intent = writing
                self.stager.write_ahead(self.ahead.txn, self.ahead.work)

    def prepared(self, head: Head) -> PreparedWrite:
        """The change on a head, or on a newer one if only that settles what is wrong with it."""
        if self.ahead is None or not self.ahead.checked:
            self.ahead = self.preparation.on(head)
        else:
            self.ahead = self.preparation.again(self.ahead, head)
        return self.ahead

    # -- intent ----------------------------------------------------------------------------------

    def announce(self, head: Head) -> None:
        """Say of a long write that it runs, before its plan is known."""
        if self._lease is not None:
            # Files come before the plan is known: only the intent tells a cleanup to spare them.
            txn = WriteTxn.begin(self.repository, self.branch, head)
            self._lease.hold(self._plan(txn, {}).encode())

    def write_intent(self, txn: WriteTxn, work: Mapping[str, Work]) -> None:
        """Phase A, beside phase B: once, whatever later attempts change about it."""
        if self._intent is None:
            put = self.repository.objects.put if self._lease is None else self._lease.renew
            content = self._plan(txn, work).encode()
            self._intent = self.repository.background.request(put, intent_name(self.id), content)

    def await_intent(self) -> None:
        if self._intent is not None:
            self._intent.result()

    @property
    def traces(self) -> list[str]:
        """Objects that have served when the write is over."""
        return [intent_name(self.id), *self.stager.leftovers]

    def drop_traces(self) -> None:
        """Nothing of this write will ever be seen: its intent and its files can go."""
        if self._intent is None and self._lease is None:
            return
        self.end_lease()
        wait([self._intent] if self._intent is not None else [])
        self.repository.background.discard(self.traces)

    def end_lease(self) -> None:
        if self._lease is not None:
            self._lease.end()

    @property
    def is_leased(self) -> bool:
        return self._lease is not None

    def _plan(self, txn: WriteTxn, work: Mapping[str, Work]) -> PublishPlan:
        return PublishPlan(
            operation_id=self.id,
            kind=self.request.kind,
            branch=self.branch.name,
            manifest_path=txn.snapshot.path,
            long=self._lease is not None,
            actor=self.request.actor,
            message=self.request.message,
            base_commit=txn.snapshot.head.id,
            base_manifest_version=txn.snapshot.version,
            schema_hash=txn.snapshot.schema_hash,
            tables=table_actions(txn, work),
            expectations=self.preparation.expectations,
        )
