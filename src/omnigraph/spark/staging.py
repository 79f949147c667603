"""The files of one load, kept from attempt to attempt.

    changes on a snapshot -> [staging] -> BulkWork by table -> publish

Rows that are only added lie in files that fit any later version, so they are written once. Rows
that replace others are matched with one version; when that has moved they are matched anew. What is
not needed any more is deleted, as far as it is known: a task that failed may have left more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.errors import InternalError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import TableChange, TablePin
from omnigraph.rules.table_delta import WriteMode
from omnigraph.spark.append import TableTarget, stage_rows
from omnigraph.spark.exchange import PinnedState
from omnigraph.spark.input import Intake
from omnigraph.spark.upsert import TableUpsert
from omnigraph.storage.bulk import deletion_names
from omnigraph.storage.changes import Append, Patch, Replace, StagedFiles
from omnigraph.storage.layout import file_names
from omnigraph.write.plan import Action
from omnigraph.write.stage import BulkWork
from omnigraph.write.txn import WriteTxn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """The rows of a load, checked."""

    intake: Intake
    mode: WriteMode
    rows: Mapping[str, int]
    """By table key."""
    superseded: Mapping[str, int]
    """By table key: rows that a later one of the same id replaces."""
    unchanged: Mapping[str, int]
    """By table key: rows that are committed as they are, and are not written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Patched:
    base: TablePin | None
    patch: Patch


class LoadFiles:
    """What the tasks of one load have written and the driver knows of."""

    def __init__(self, repository: Repository, spark: SparkSession) -> None:
        self._repository = repository
        self._spark = spark
        self._added: dict[str, tuple[str, StagedFiles]] = {}
        """By table key: where the table lies, and files that fit any version of it."""
        self._patches: dict[str, tuple[str, _Patched]] = {}

    def stage(
        self, txn: WriteTxn, incoming: Incoming, changes: Mapping[str, TableChange]
    ) -> dict[str, BulkWork]:
        """Put the changes of all tables into files, as far as they are not."""
        overwrites = incoming.mode is WriteMode.OVERWRITE
        # A row that is committed as it is must not be added again: it has to be looked for.
        patched = [key for key, c in changes.items() if c.updated or incoming.unchanged.get(key)]
        # What another write inserted meanwhile has to be replaced now, and the other way round.
        self.discard(added=set(patched), patches=self._patches.keys() - patched)
        self._add(txn, incoming, [key for key in changes if key not in patched])
        for key in patched:
            self._patch(txn, incoming, key, changes[key], overwrites=overwrites)
        return {
            key: self._work(txn, key, change, overwrites=overwrites)
            for key, change in changes.items()
        }

    def discard(self, *, added: Iterable[str], patches: Iterable[str]) -> None:
        """Delete files that will not be published; a failure only leaves them lying."""
        names: list[str] = []
        for key in list(added):
            if key in self._added:
                path, files = self._added.pop(key)
                names += files.names(path)
        for key in list(patches):
            if key in self._patches:
                path, found = self._patches.pop(key)
                names += file_names(path, found.patch.added)
                names += deletion_names(path, found.patch.marked)
        if names:
            self._repository.background.discard(names)

    def discard_all(self) -> None:
        """Nothing of this load will be published."""
        self.discard(added=self._added.keys(), patches=self._patches.keys())

    def _work(self, txn: WriteTxn, key: str, change: TableChange, *, overwrites: bool) -> BulkWork:
        staged: Append | Replace | Patch
        if key in self._patches:
            action = Action.REPLACE if overwrites else Action.UPSERT
            staged = self._patches[key][1].patch
        elif overwrites:
            action, staged = Action.REPLACE, Replace(files=self._added[key][1])
        else:
            action, staged = Action.APPEND, Append(files=self._added[key][1])
        graph_type = txn.schema.catalog.table(key)
        return BulkWork(type=graph_type, actions=(action,), change=change, staged=staged)

    def _add(self, txn: WriteTxn, incoming: Incoming, keys: list[str]) -> None:
        missing = [key for key in keys if key not in self._added]
        targets = {key: table_target(txn, key) for key in missing}
        plain = {key: t for key, t in targets.items() if not incoming.superseded.get(key)}
        location = self._repository.location
        if plain:
            rows = {key: incoming.rows[key] for key in plain}
            for key, files in stage_rows(incoming.intake, location, plain, rows).items():
                self._added[key] = (plain[key].type.table_path, files)
        for key in [key for key in missing if key not in plain]:
            written = self._upserted(incoming, targets[key], None, updated=0)
            files = StagedFiles(fragments=written.added, rows=None)
            self._added[key] = (targets[key].type.table_path, files)

    def _patch(
        self, txn: WriteTxn, incoming: Incoming, key: str, change: TableChange, *, overwrites: bool
    ) -> None:
        pin, known = txn.pin(key), self._patches.get(key)
        if known is not None and known[1].base == pin:
            return
        self.discard(added=(), patches=(key,))
        state = PinnedState(txn)
        target = table_target(txn, key)
        patch = self._upserted(incoming, target, state, updated=change.updated)
        path = target.type.table_path
        table = txn.table(key)
        if overwrites and table is not None:
            # Everything before goes, not only what is replaced.
            self._repository.background.discard(deletion_names(path, patch.marked))
            gone = tuple(fragment.id for fragment in table.layout.fragments)
            patch = Patch(marked=(), gone=gone, added=patch.added)
        self._patches[key] = (path, _Patched(base=pin, patch=patch))

    def _upserted(
        self, incoming: Incoming, target: TableTarget, state: PinnedState | None, *, updated: int
    ) -> Patch:
        key = target.type.table_key
        unchanged = incoming.unchanged.get(key, 0)
        found = TableUpsert(
            spark=self._spark,
            intake=incoming.intake,
            location=self._repository.location,
            target=target,
            state=state,
            rows=incoming.rows[key],
            compares=unchanged > 0,
        ).stage()
        expected = incoming.rows[key] - incoming.superseded.get(key, 0) - unchanged
        if (found.written, found.replaced) != (expected, updated):
            raise InternalError(
                f"{found.written} rows of {key} were written and {found.replaced} replaced, "
                f"not {expected} and {updated}"
            )
        return found.patch


def table_target(txn: WriteTxn, key: str) -> TableTarget:
    pin = txn.pin(key)
    base = pin.name if pin is not None else None
    return TableTarget(type=txn.schema.catalog.table(key), base=base)
