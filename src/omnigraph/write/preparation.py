"""Before anything is put into files: pin a snapshot, ask for the change, check it.

    request, head -> [preparation] -> transaction, work on tables -> stage -> publish

After a lost race it says what of that still holds on the newer head.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.errors import (
    ConflictError,
    ConstraintError,
    CorruptionError,
    ErrorKind,
    InputError,
    NotFoundError,
    OmnigraphError,
    QueryError,
)
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.manifest.snapshot import TablePin
from omnigraph.manifest.store import Head
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.rules.unique import unique_groups
from omnigraph.write import outcome
from omnigraph.write.fence import Fence, outrun
from omnigraph.write.plan import Action, Expectation, TableUnchanged
from omnigraph.write.request import Change, Requires, WriteRequest
from omnigraph.write.schema_view import validated
from omnigraph.write.stage import BulkChange, BulkWork, Stager, TableWork, Work, work_of
from omnigraph.write.txn import Adoption, GraphDelta, TableRead, WriteTxn
from omnigraph.write.validate import TableOutcome

FINAL_ON_THE_NEWEST = (
    ConstraintError,
    NotFoundError,
    InputError,
    QueryError,
    CorruptionError,
)
"""What is wrong with a write on one snapshot need not be wrong on a newer one."""


@dataclass(frozen=True, kw_only=True)
class PreparedWrite:
    """A change that was checked on a pinned snapshot."""

    txn: WriteTxn
    change: Change
    work: dict[str, Work]
    """By table key; only tables that change."""
    unchanged: Mapping[str, int]
    """By table key: rows that are committed as they are, and are not written."""
    reads: tuple[TableRead, ...] = ()
    """What the change itself rests on; its rules rest on more."""
    checked: bool = True
    """Against the rules, by itself."""

    @property
    def adoption(self) -> Adoption | None:
        return self.change if isinstance(self.change, Adoption) else None

    @property
    def schema(self) -> AcceptedSchema | None:
        """The schema from now on, if this write changes it."""
        return self.change.schema if isinstance(self.change, (BulkChange, GraphDelta)) else None


class Preparation:
    """The checked change of one write, made anew as often as others make it stale."""

    def __init__(
        self,
        repository: Repository,
        branch: Branch,
        request: WriteRequest,
        operation_id: str,
        stager: Stager,
    ) -> None:
        self._repository = repository
        self._branch = branch
        self._request = request
        self._id = operation_id
        self._stager = stager
        self._fence = Fence(repository, operation_id)
        self._change: Change | None = None
        self._outrun = False
        """A cleanup came in between: what this write began with may be gone."""
        self._fixed: tuple[Expectation, ...] | None = None

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """What must hold of the state that is replaced."""
        return self._request.expects if self._fixed is None else self._fixed

    def on(self, head: Head, *, together: bool = False) -> PreparedWrite:
        """Pin, prepare and validate. Errors are final only on the newest snapshot.

        A write that is to be checked ``together`` with others is not checked by itself where that
        is as good: if all that it does is to insert rows that nothing else can have written.
        """
        for _ in range(outcome.ATTEMPTS_MAX):
            self._check_not_revoked(head)
            self._cleaned_meanwhile(head)
            for expected in self._request.expects:
                # Whatever is wrong with the write on another commit, that one was not asked for.
                expected.check(head.snapshot)
            txn = WriteTxn.begin(self._repository, self._branch, head)
            try:
                change = self._request.prepare(txn)
                reads = tuple(txn.reads)
                self._expect(txn, change)
                self._fence.check_shown_again(txn.snapshot, change, self._branch)
                drafted = _drafted(txn, change) if together else None
                work, unchanged = (drafted, {}) if drafted else _checked(txn, change)
            except FINAL_ON_THE_NEWEST as e:
                head = self._branch.refresh()
                if self._is_final(e, txn, head):
                    if isinstance(e, CorruptionError) and self._outrun:
                        raise outrun(self._id) from e
                    raise
                continue
            # Checking a large delta takes as much memory again; writing it will need the room.
            pa.default_memory_pool().release_unused()
            if change is not self._change:
                self._stager.start_over()
                self._change = change
            return PreparedWrite(
                txn=txn,
                change=change,
                work=work,
                unchanged=unchanged,
                reads=reads,
                checked=not drafted,
            )
        raise outcome.contention(self._branch.name)

    def again(self, before: PreparedWrite, head: Head) -> PreparedWrite:
        """After a lost race: keep everything if nothing this write rests on has moved."""
        self._check_not_revoked(head)
        if self._cleaned_meanwhile(head):
            return self.on(head)
        for expectation in self.expectations:
            expectation.check(head.snapshot)
        txn = before.txn
        moved = not txn.same_world(head.snapshot, txn.consulted | set(before.work))
        # What a merge has to bring depends on the lineage, too, and that has moved in any case.
        stale = moved or self._request.merged is not None
        if stale or before.adoption is not None or before.schema is not None:
            return self.on(head)
        later = WriteTxn.begin(self._repository, self._branch, head)
        later.consulted.update(txn.consulted)
        return replace(before, txn=later)

    def is_behind(self, head: Head) -> bool:
        """Whether a cleanup ran that this write has not seen yet."""
        return self._fence.behind(head.snapshot)

    def _is_final(self, error: OmnigraphError, txn: WriteTxn, head: Head) -> bool:
        """Whether what was wrong on one snapshot is also wrong on the newest."""
        if head.snapshot.version == txn.snapshot.version:
            return True
        # Whether an input or a text can be read depends on the schema alone, rules on everything.
        # Not so what a cleanup took of a state that is not the newest any more.
        by_schema = isinstance(error, (NotFoundError, InputError, QueryError)) and (
            error.kind is not ErrorKind.HISTORY_RECLAIMED
        )
        return by_schema and head.snapshot.schema_hash == txn.snapshot.schema_hash

    def _expect(self, txn: WriteTxn, change: Change) -> None:
        """Fix the expectations on the first snapshot that was pinned; check them on later ones.

        Replacing a type's whole content, or removing rows by a list made earlier, is only safe
        against the content that was there when the write began: another writer's rows must not
        vanish unseen.
        """
        if self._fixed is None:
            tables = {} if isinstance(change, Adoption) else change.tables
            unseen = [key for key, table in tables.items() if self._replaces_unseen(table)]
            unchanged = [TableUnchanged(table_key=key, pin=txn.pin(key)) for key in unseen]
            self._fixed = (*self._request.expects, *unchanged)
        for expectation in self._fixed:
            expectation.check(txn.snapshot)

    def _replaces_unseen(self, table: TableDelta | BulkWork) -> bool:
        if isinstance(table, BulkWork):
            return Action.REPLACE in table.actions
        fixed = Requires.OWN_DECISION not in self._request.requires
        return table.mode is WriteMode.OVERWRITE or (fixed and len(table.removed) > 0)

    def _cleaned_meanwhile(self, head: Head) -> bool:
        """Whether everything must be put into files anew: a cleanup may have deleted them."""
        if not self._fence.crossed(head.snapshot):
            return False
        self._outrun = True
        self._stager.start_over()
        self._fence.check_shown_again(head.snapshot, self._change, self._branch)
        bulk = self._change.tables.values() if isinstance(self._change, BulkChange) else ()
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


def _drafted(txn: WriteTxn, change: Change) -> dict[str, Work] | None:
    """The tables that gain rows, if a change does nothing else and its ids were drawn for it.

    None where what others do could make it valid: a rule asks for edges of a node that is new, or
    for values that no other row has.
    """
    if not isinstance(change, GraphDelta) or change.schema is not None:
        return None
    tables = change.tables
    if not all(t.is_fresh and not unique_groups(t.type) for t in tables.values()):
        return None
    asks = any(edge.cardinality.low for edge in txn.schema.catalog.edges.values())
    if asks and any(table.type.kind == "node" for table in tables.values()):
        return None
    return {
        key: TableWork(type=table.type, delta=table, outcome=TableOutcome.of_new(table.rows))
        for key, table in tables.items()
        if table.rows.num_rows
    }


def _checked(txn: WriteTxn, change: Change) -> tuple[dict[str, Work], Mapping[str, int]]:
    """The tables that change, after the validator, and the rows that do not, by table.

    A bulk change was checked where it is.
    """
    if isinstance(change, Adoption):
        return {}, {}
    if isinstance(change, BulkChange):
        return dict(change.tables), change.unchanged
    _expect_changes(txn, change)
    found = validated(txn, change)
    return work_of(change, found), found.unchanged


def _expect_changes(txn: WriteTxn, change: GraphDelta) -> None:
    """Open the tables that will be changed while the change is checked, where that takes time. A
    handle that has them open changes nothing for a write that is refused."""
    repository = txn.repository

    def opened(pin: TablePin) -> None:
        with suppress(OmnigraphError):  # Is said when it is staged.
            repository.table(pin).expect_change()

    for delta in () if repository.location.is_local else change.tables.values():
        pin = txn.pin_of(delta.type)
        if delta.adopt is None and pin is not None and not repository.open_tables.has(pin):
            repository.background.pool.submit(opened, pin)
