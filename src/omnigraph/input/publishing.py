"""A load by this process, from what was given to a published commit.

    given -> rows by type (threads) -> delta -> [publish]

The input is read once. If another process changes the schema meanwhile the write machine asks again
and the input is read anew against the new schema, as far as it can be read twice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import (
    ConflictError,
    ConstraintError,
    ErrorKind,
    InternalError,
    OmnigraphError,
    Violation,
)
from omnigraph.input.loaded_rows import LoadedRows
from omnigraph.input.phases import TellPhase
from omnigraph.input.rejects import RejectFile
from omnigraph.input.sources import Given
from omnigraph.input.threads import read_input
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import GraphCommit, TableChange
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.catalog import Catalog
from omnigraph.write.publish import publish
from omnigraph.write.request import Receipt, Requires, WriteRequest
from omnigraph.write.stage import work_of
from omnigraph.write.txn import GraphDelta, WriteTxn
from omnigraph.write.validate import validate

ReadInput = Callable[[Catalog], Mapping[str, LoadedRows]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """What is to be loaded, and how."""

    given: Given
    mode: WriteMode
    branch: str
    actor: str | None = None
    message: str | None = None
    progress: Callable[[int], None] | None = None
    phases: TellPhase | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDone:
    """What a load did; of a dry run: what it would have done."""

    commit: GraphCommit | None
    rows: Mapping[str, int]
    """Rows of the input by table key."""
    changes: Mapping[str, TableChange]
    unchanged: Mapping[str, int]
    """By table key: entities that the graph held already, exactly so."""


def load_locally(repository: Repository, load: LoadRequest, rejects: RejectFile) -> LoadDone:
    """Carry a load out in this process."""

    def read(catalog: Catalog) -> Mapping[str, LoadedRows]:
        rejects.start_over()
        return read_input(
            load.given, catalog, repository.ids, progress=load.progress, rejects=rejects
        )

    mode, branch, repeatable = load.mode, load.branch, load.given.repeatable
    try:
        if load.dry_run:
            checked, rows = check_rows(repository, read, mode=mode, branch=branch)
            return LoadDone(
                commit=None,
                rows=_counts(rows),
                changes=checked.changes,
                unchanged=checked.unchanged,
            )
        receipt, rows = load_rows(
            repository,
            read,
            mode=mode,
            branch=branch,
            actor=load.actor,
            message=load.message,
            repeatable=repeatable,
        )
    except ConstraintError as error:
        if rejects.wanted:
            with rejects.telling():
                rejects.violations(_all_violations(repository, load, read, error))
        raise
    return LoadDone(
        commit=receipt.commit,
        rows=_counts(rows),
        changes=receipt.changes,
        unchanged=receipt.unchanged,
    )


def _counts(rows: Mapping[str, LoadedRows]) -> dict[str, int]:
    return {key: loaded.rows.num_rows for key, loaded in rows.items()}


def _all_violations(
    repository: Repository, load: LoadRequest, read: ReadInput, error: ConstraintError
) -> Sequence[Violation]:
    """Everything that breaks a rule: an error only has the first ones."""
    if error.total > len(error.violations) and load.given.repeatable:
        try:
            check_rows(repository, read, mode=load.mode, branch=load.branch)
        except ConstraintError as everything:
            return everything.violations
    return error.violations


def load_rows(
    repository: Repository,
    read: ReadInput,
    *,
    mode: WriteMode,
    branch: str,
    actor: str | None,
    message: str | None,
    repeatable: bool,
) -> tuple[Receipt, Mapping[str, LoadedRows]]:
    """Publish everything that ``read`` gives as one commit."""
    source = _Input(read, mode, repeatable=repeatable)
    receipt = publish(
        repository,
        WriteRequest(
            kind="load",
            branch=branch,
            prepare=source.delta,
            actor=actor,
            message=message,
            requires=Requires.NEWEST_HEAD if mode is WriteMode.OVERWRITE else Requires.NOTHING,
            joins=mode is not WriteMode.OVERWRITE,
        ),
    )
    return receipt, source.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRows:
    """What a load would do to each table, and what it would leave as it is."""

    changes: Mapping[str, TableChange]
    unchanged: Mapping[str, int]


def check_rows(
    repository: Repository, read: ReadInput, *, mode: WriteMode, branch: str
) -> tuple[CheckedRows, Mapping[str, LoadedRows]]:
    """What a load would do to each table, on the newest state of a branch; nothing is written.

    Raises what the load would raise, a ``ConstraintError`` with every violation.
    """
    known = repository.branch(branch)
    txn = WriteTxn.begin(repository, known, known.refresh())
    source = _Input(read, mode, repeatable=False)
    delta = source.delta(txn)
    validated = validate(txn.schema.catalog, delta, txn, violations_max=sys.maxsize)
    work = work_of(delta, validated)
    changes = {key: item.change for key, item in work.items()}
    return CheckedRows(changes=changes, unchanged=validated.unchanged), source.rows


class _Input:
    """An input and what reading it gave: rows or an error, for one schema."""

    def __init__(self, read: ReadInput, mode: WriteMode, *, repeatable: bool) -> None:
        self._read = read
        self._mode = mode
        self._repeatable = repeatable
        self._schema: str | None = None
        self._delta: GraphDelta | None = None
        self._error: OmnigraphError | None = None
        self.rows: Mapping[str, LoadedRows] = {}

    def delta(self, txn: WriteTxn) -> GraphDelta:
        """The input as a delta. It is read once per schema; a stream is read once at all.

        The write machine asks again on a newer snapshot, also after a refusal: an input that could
        not be read must then fail again and not look empty because its stream is at the end.
        """
        if self._schema != txn.schema.hash:
            self._read_for(txn)
        if self._error is not None:
            raise self._error
        if self._delta is None:
            raise InternalError("an input was read to neither rows nor an error")
        return self._delta

    def _read_for(self, txn: WriteTxn) -> None:
        if self._schema is not None and not self._repeatable:
            self._error = self._error or ConflictError(
                "the schema changed while the input was being loaded",
                kind=ErrorKind.READ_SET_CONFLICT,
                hint="repeat the load: a stream cannot be read twice",
            )
            return
        self._schema, self._delta, self._error = txn.schema.hash, None, None
        try:
            self.rows = self._read(txn.schema.catalog)
        except OmnigraphError as e:
            self._error = e
            return
        # Parsing leaves freed blocks with the allocator; the checks to come need the room.
        pa.default_memory_pool().release_unused()
        self._delta = _delta(self.rows, self._mode)


def _delta(rows: Mapping[str, LoadedRows], mode: WriteMode) -> GraphDelta:
    return GraphDelta(
        tables={
            key: TableDelta(
                type=loaded.type,
                mode=mode,
                rows=loaded.rows,
                origins=loaded.origins,
                may_repeat=mode is WriteMode.MERGE and not loaded.ids_fresh,
                ids_fresh=loaded.ids_fresh,
            )
            for key, loaded in rows.items()
        }
    )
