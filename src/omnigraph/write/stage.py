"""Phase B: put a validated change into files and versions that are not seen yet.

    validate -> plan -> [stage] -> publish

All tables are staged in parallel, so a write over many tables takes as many serial steps as a write
over one. Data files are written once per operation: when a race is lost, only the small version on
top of them is made again, and only for tables whose base moved. A crash here leaves unreferenced
files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from omnigraph.errors import InternalError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.manifest.snapshot import Snapshot, TableChange, TablePin
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.changes import (
    Append,
    Change,
    Patch,
    Remove,
    Replace,
    Rework,
    StagedFiles,
    Upsert,
)
from omnigraph.storage.compact import Fold, worn_tail
from omnigraph.storage.objects import done
from omnigraph.storage.staged import StagedTable
from omnigraph.storage.tables import Table
from omnigraph.write.plan import Action, TableAction
from omnigraph.write.txn import GraphDelta, WriteTxn
from omnigraph.write.validate import TableOutcome, Validated

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWork:
    """One table's validated change with its type."""

    type: GraphType
    delta: TableDelta
    outcome: TableOutcome

    @property
    def actions(self) -> tuple[Action, ...]:
        """What will happen to the table, in order; empty when nothing will."""
        outcome, actions = self.outcome, list[Action]()
        if self.delta.adopt is not None:
            return (Action.ADOPT,)
        if self.delta.reshape is not None:
            actions.append(Action.REWORK)
        if self.delta.mode is WriteMode.OVERWRITE:
            actions.append(Action.REPLACE)
        elif outcome.rows.num_rows:
            actions.append(Action.UPSERT if len(outcome.matched) else Action.APPEND)
        if self.delta.mode is not WriteMode.OVERWRITE and len(outcome.removed):
            actions.append(Action.DELETE)
        return tuple(actions)

    @property
    def row_count(self) -> int:
        """Rows that are written."""
        return self.outcome.rows.num_rows

    @property
    def removed_count(self) -> int:
        """Rows that are deleted one by one."""
        return len(self.outcome.removed)

    @property
    def change(self) -> TableChange:
        """The counts for the lineage."""
        return TableChange(
            inserted=self.outcome.inserted_count,
            updated=self.outcome.updated_count + self.delta.refilled,
            deleted=self.outcome.deleted_count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkWork:
    """One table's change that other processes have validated and put into files already."""

    type: GraphType
    actions: tuple[Action, ...]
    change: TableChange
    staged: Append | Replace | Patch | tuple[Rework, ...]
    """For a patch: made on the version that the transaction pins. Reworks keep every row."""
    label: str = ""
    """Ends the name of the version that is made: what its maker wants to know it by."""

    @property
    def row_count(self) -> int:
        """Rows that are written."""
        return self.change.inserted + self.change.updated

    @property
    def removed_count(self) -> int:
        """Rows that are deleted one by one."""
        return 0


Work = TableWork | BulkWork


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkChange:
    """A change over all tables it touches, checked on one snapshot by its maker.

    What a ``GraphDelta`` is for rows in memory: the rules are the same, carried out elsewhere.
    """

    tables: Mapping[str, BulkWork]
    """By table key of the schema that is to come; only tables that really change."""
    unchanged: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())
    """By table key: rows that are committed as they are."""
    schema: AcceptedSchema | None = None
    """The schema from now on, if it changes. Tables follow their types by number: what it renames
    keeps its rows, what it does not name any more is no longer shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A staged table with the base it was staged on."""

    base: TablePin | None
    table: Table
    pinning: Future[None] | None
    """Completes when the version has its final name; None if it always had it."""
    appended: StagedFiles | None
    """The only new files, when these rows were added or made the whole content."""

    def new_files(self, base: Table | None) -> list[str]:
        """Everything a reader of this version needs and a reader of its base did not."""
        if self.pinning is None:
            return []
        if self.appended is not None:
            files = self.appended.names(self.table.name.path)
        else:
            files = self.table.files_since(base)
        return [*files, self.table.name.manifest]


def work_of(delta: GraphDelta, validated: Validated) -> dict[str, Work]:
    """The tables that really change."""
    found = {
        key: TableWork(type=table.type, delta=table, outcome=validated.tables[key])
        for key, table in delta.tables.items()
    }
    return {key: work for key, work in found.items() if work.actions and _has_effect(work)}


def _has_effect(work: TableWork) -> bool:
    # Overwriting an empty type with nothing is no change; any other replacement is.
    return work.change.total > 0 or work.delta.reshape is not None or work.delta.adopt is not None


def changes_of(
    work: Mapping[str, Work], base: Snapshot, schema: AcceptedSchema | None
) -> dict[str, TableChange]:
    """How the snapshot that work makes differs from its base, by table key."""
    found = {key: item.change for key, item in work.items()}
    if schema is None:
        return found
    # What the schema does not name any more goes with its rows.
    named = {t.stable_id for t in schema.catalog.types()}
    for key, pin in base.pins.items():
        if pin.stable_id not in named and pin.row_count:
            other = found.get(key, TableChange())
            found[key] = replace(other, deleted=other.deleted + pin.row_count)
    return {key: change for key, change in found.items() if change.total}


def pins_of(work: Mapping[str, Work], staged: Mapping[str, Staged]) -> dict[str, TablePin]:
    """What a snapshot shows of staged tables."""
    return {key: _pin(key, work[key], item) for key, item in staged.items()}


def _pin(table_key: str, work: Work, staged: Staged) -> TablePin:
    return TablePin(
        table_key=table_key,
        type_id=work.type.id,
        incarnation=work.type.incarnation,
        name=staged.table.name,
        row_count=staged.table.row_count,
    )


def _is_one_change_of_rows(work: Work) -> bool:
    """Whether staging makes one step of it, or those of a replacement."""
    if not isinstance(work, TableWork) or work.delta.reshape is not None:
        return False
    return work.actions in ((Action.APPEND,), (Action.DELETE,)) or Action.UPSERT in work.actions


def table_actions(txn: WriteTxn, work: Mapping[str, Work]) -> tuple[TableAction, ...]:
    """The plan's view of the work."""
    actions: list[TableAction] = []
    for key, item in work.items():
        pin = txn.pin_of(item.type)
        actions.append(
            TableAction(
                table_key=key,
                path=item.type.table_path,
                actions=item.actions if pin is not None else (Action.CREATE,),
                base_version=pin.name.version if pin is not None else None,
                rows=item.row_count,
                removed=item.removed_count,
            )
        )
    return tuple(actions)


class Stager:
    """Stages one operation's tables, attempt after attempt, without writing a file twice."""

    def __init__(self, repository: Repository, operation_id: str) -> None:
        self._repository = repository
        self._operation_id = operation_id
        self._files: dict[str, StagedFiles] = {}
        self._partial: set[str] = set()
        """Tables whose files leave out rows that were committed as they are."""
        self._staged: dict[str, Staged] = {}
        self._attempts = 0
        self._tasks: list[Future[Any]] = []
        self._paths: set[str] = set()
        self._laid_out: set[str] = set()
        """Tables whose older files were joined, too."""
        self._tails: dict[str, Fold | None] = {}
        """Files that the next attempt joins, as far as that was looked up."""
        self.leftovers: list[str] = []
        """Staging names that have served: the final names are copies of them."""

    def stage(self, txn: WriteTxn, work: Mapping[str, Work]) -> dict[str, Staged]:
        """Stage every table on the transaction's pins; tables staged on the same pin are kept."""
        name = self.next_name()
        stale = {
            key: item
            for key, item in work.items()
            if key not in self._staged or self._staged[key].base != txn.pin_of(item.type)
        }
        running: dict[str, Future[StagedTable]] = {}
        for left, (key, item) in zip(reversed(range(len(stale))), stale.items(), strict=True):
            if isinstance(item, TableWork) and item.delta.adopt is not None:
                table = self._repository.table(item.delta.adopt)
                self._staged[key] = Staged(
                    base=txn.pin_of(item.type), table=table, pinning=None, appended=None
                )
            else:
                label = item.label if isinstance(item, BulkWork) else ""
                # The last one in this thread: it would only wait for the others.
                start = self._submit if left else done
                running[key] = start(self._stage_table, txn, key, item, name + label)
        for key, task in running.items():
            staged = task.result()
            # Then these files are all that is new, and a durable commit need not compare versions.
            appended = work[key].actions in ((Action.APPEND,), (Action.REPLACE,))
            appended = appended and key not in self._laid_out
            self._staged[key] = Staged(
                base=txn.pin_of(work[key].type),
                appended=self._files.get(key) if appended else None,
                table=staged.table,
                pinning=self._pin(staged),
            )
        return {key: self._staged[key] for key in work}

    def foreseen(self, txn: WriteTxn, work: Mapping[str, Work]) -> dict[str, TablePin] | None:
        """What the next attempt will pin, but for sizes; None where only staging shows it.

        On a disk: there the next version of the manifest is written while tables are staged. To a
        remote store a size that a reader does not know is a request.
        """
        if not self._repository.location.is_local:
            return None
        name, found = self._name(self._attempts + 1), dict[str, TablePin]()
        for key, item in work.items():
            base, pin, kept = txn.table_of(item.type), txn.pin_of(item.type), self._staged.get(key)
            if kept is not None and kept.base == pin:
                found[key] = _pin(key, item, kept)
                continue
            if base is None or pin is None or not _is_one_change_of_rows(item):
                return None
            first = self._tails[key] = worn_tail(base)
            replaces = Action.UPSERT in item.actions
            found[key] = replace(
                pin,
                table_key=key,
                name=self._repository.tables.foreseen(base, name, replaces=replaces, first=first),
                row_count=pin.row_count + item.change.inserted - item.change.deleted,
            )
        return found

    def next_name(self) -> str:
        """What the versions of the next attempt are called."""
        self._attempts += 1
        return self._name(self._attempts)

    def _name(self, attempt: int) -> str:
        return f"{self._operation_id}-{attempt}"

    def begin(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Do something beside staging; what goes wrong with the write waits for its end."""
        return self._submit(function, *arguments)

    def write_ahead(self, txn: WriteTxn, work: Mapping[str, Work]) -> None:
        """Write the rows of tables that only gain some: their files go with any later version."""
        for key, item in work.items():
            base = txn.table_of(item.type)
            if isinstance(item, TableWork) and item.actions == (Action.APPEND,) and base:
                self._write_files(key, item, base)

    def row_changes(self, key: str, item: TableWork, base: Table) -> list[Change]:
        """The changes of one table for a version that is staged together with others."""
        self._paths.add(item.type.table_path)
        return self._changes(key, item, base)

    def staged_together(
        self, key: str, base: TablePin | None, made: StagedTable, pinning: Future[None], alike: bool
    ) -> Staged:
        """A version of this write that was staged together with others; ``alike``: all its new
        files hold rows of these writes."""
        self.leftovers += made.leftovers
        return Staged(
            base=base,
            table=made.table,
            pinning=pinning,
            appended=self._files.get(key) if alike else None,
        )

    def start_over(self) -> None:
        """Forget everything: a new delta's rows are not the ones that were written."""
        self._files.clear()
        self._partial.clear()
        self._staged.clear()

    def drain(self) -> None:
        """After a failure: let running tasks end, and keep what they touched from readers."""
        wait(self._tasks)
        self.forget_handles()

    def forget_handles(self) -> None:
        """Sessions that saw our unpublished versions must not serve readers."""
        for path in self._paths:
            self._repository.open_tables.forget(path)

    def _pin(self, staged: StagedTable) -> Future[None]:
        task = self._repository.background.request(self._repository.tables.pin, staged)
        self._tasks.append(task)
        return task

    def _submit(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        task = self._repository.background.pool.submit(function, *arguments)
        self._tasks.append(task)
        return task

    def _stage_table(self, txn: WriteTxn, key: str, item: Work, name: str) -> StagedTable:
        base = txn.table_of(item.type)
        path, schema = item.type.table_path, table_schema(item.type)
        self._paths.add(path)
        first = None
        if isinstance(item, BulkWork):
            made = item.staged
            changes: list[Change] = list(made) if isinstance(made, tuple) else [made]
        else:
            reshape = item.delta.reshape
            if reshape is not None and base is not None and item.actions != (Action.REWORK,):
                # Rows are written in the columns that are to come.
                base = self._repository.tables.reshaped(base, reshape)
                reshape = None
            changes = [] if reshape is None else [reshape]
            changes += self._changes(key, item, base)
            # Without this every version would list one small file more than the one before it.
            if base is not None and item.delta.reshape is None:
                first = self._tails.pop(key) if key in self._tails else worn_tail(base)
        if first is not None:
            self._laid_out.add(key)
        staged = self._repository.tables.stage(path, base, changes, schema, name, first=first)
        self.leftovers += staged.leftovers
        return staged

    def _changes(self, key: str, item: TableWork, base: Table | None) -> list[Change]:
        changes: list[Change] = []
        for action in item.actions:
            match action:
                case Action.CREATE:  # What the plan calls the first rows of a table.
                    raise InternalError("a table is created by appending to nothing")
                case Action.ADOPT:
                    raise InternalError("a version that is not made of rows")
                case Action.REWORK:
                    pass  # Is done before any row is written.
                case Action.UPSERT:
                    changes.append(Upsert(rows=item.outcome.rows))
                case Action.DELETE:
                    changes.append(Remove(ids=item.outcome.removed))
                case Action.REPLACE:
                    changes.append(Replace(files=self._write_files(key, item, base)))
                case Action.APPEND:
                    changes.append(Append(files=self._write_files(key, item, base)))
        return changes

    def _write_files(self, key: str, item: TableWork, base: Table | None) -> StagedFiles:
        # Which rows are committed as they are depends on the version: files without some of them
        # fit that version alone.
        partial = item.outcome.unchanged_count > 0
        if key in self._files and (partial or key in self._partial):
            self.leftovers += self._files.pop(key).names(item.type.table_path)
        if key not in self._files:
            self._files[key] = self._repository.tables.write_files(
                item.type.table_path, item.outcome.rows, base
            )
            (self._partial.add if partial else self._partial.discard)(key)
        return self._files[key]
