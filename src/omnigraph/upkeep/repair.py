"""Repair: what another program did to the mirror of a table is taken over, or put back.

    mirror of every table -> foreign commits -> classification -> rows (PUBLISH) | put back | refuse

Any Lance program can open the mirrors of main's tables, and so can one that writes. What it commits
is not part of the graph: it blocks nothing, but the mirror drifts. Here its commits are read one by
one:

| classification         | its commits                       | --confirm | --force | --discard |
|------------------------|-----------------------------------|-----------|---------|-----------|
| `verified_maintenance` | joined files, and changed no row  | healed    | healed  | discarded |
| `suspicious`           | did anything else                 | refused   | forced  | discarded |
| `unverifiable`         | cannot be read                    | refused   | refused | discarded |

Where no row changed there is nothing to take over: the mirror shows the graph's own files again.
What is forced becomes a write like any other: the rows that differ go through the validator and the
one door, on top of what the graph has written since, unless both changed the same row.

Indexes of another lineage, which older releases left behind, are replaced on every branch
(``upkeep/index_check.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrow.sets import among
from omnigraph.branch.delta import differs, table_delta
from omnigraph.branch.history import branch_heads
from omnigraph.branch.types import ColumnPair, ComparedTypes
from omnigraph.errors import ConflictError, ErrorKind, OmnigraphError, UsageError
from omnigraph.housekeeping.mirror import mirror_main, shown_now, type_name
from omnigraph.input.loaded_rows import settle_ids
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, TablePin
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.foreign import (
    ForeignCommit,
    ForeignHistory,
    foreign_history,
    foreign_rows,
)
from omnigraph.storage.layout import Positions
from omnigraph.storage.mirror import MirrorState, columns_of, mirror_head, mirror_path
from omnigraph.storage.tables import Table
from omnigraph.upkeep.edge_repair import EdgeRepair, repair_edges
from omnigraph.upkeep.index_check import IndexRepair, repair_indexes
from omnigraph.upkeep.indexes import named_types
from omnigraph.upkeep.name_check import NameAction, NameRepair, repair_names
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.txn import GraphDelta, WriteTxn

FORCER = "omnigraph:repair:force"
EXAMPLES_MAX = 5
_BY_HAND = "discard the foreign change, and bring the rows with 'omnigraph load'"


class DriftKind(StrEnum):
    """What another program's commits come to."""

    NO_DRIFT = "no_drift"
    VERIFIED = "verified_maintenance"
    SUSPICIOUS = "suspicious"
    UNVERIFIABLE = "unverifiable"


class RepairAction(StrEnum):
    """What was done about a table."""

    NO_OP = "no_op"
    PREVIEW = "preview"
    HEALED = "healed"
    FORCED = "forced"
    DISCARDED = "discarded"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRepair:
    """What was found and done about one table."""

    type_key: str
    classification: DriftKind
    action: RepairAction
    published_dataset_version: int
    lance_head_version: int | None
    """The newest version of the mirror, by the mirror's own count; None if there is none."""
    operations: tuple[ForeignCommit, ...] = ()
    """What the other program did, as far as that is known."""
    overtaken: bool = False
    """Whether the graph has written the table since the other program looked at it."""
    reason: str | None = None
    """Why it was refused, or cannot be verified."""

    def to_dict(self) -> dict[str, Any]:
        """As ``repair --json`` shows it."""
        return asdict(self) | {
            "classification": str(self.classification),
            "action": str(self.action),
            "operations": [
                {"version": done.version, "operation": done.operation} for done in self.operations
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReport:
    """What a repair found and did."""

    uri: str
    confirmed: bool
    tables: tuple[TableRepair, ...]
    commits: tuple[GraphCommit, ...] = ()
    indexes: tuple[IndexRepair, ...] = ()
    """Indexes of another lineage, on any branch."""
    names: tuple[NameRepair, ...] = ()
    """Names of branches that did not say what they should."""
    edges: tuple[EdgeRepair, ...] = ()
    """Edges that lead nowhere, on any branch."""
    mirrors: tuple[str, ...] = ()
    """Tables whose mirrors were not what the graph shows, without another program's doing: they
    lagged, or referred to where the graph was. With ``confirm`` they were made anew."""

    @property
    def drifted(self) -> tuple[TableRepair, ...]:
        """The tables that another program has changed."""
        return tuple(t for t in self.tables if t.classification is not DriftKind.NO_DRIFT)

    @property
    def refused(self) -> tuple[TableRepair | NameRepair | EdgeRepair, ...]:
        """What nothing was done about although something has to be."""
        return (
            *(t for t in self.tables if t.action is RepairAction.REFUSED),
            *(n for n in self.names if n.action is NameAction.REFUSED),
            *(e for e in self.edges if e.action == "refused"),
        )

    def to_dict(self) -> dict[str, Any]:
        """As ``repair --json`` shows it."""
        parts = ("tables", "commits", "indexes", "names", "edges")
        listed = {part: [item.to_dict() for item in getattr(self, part)] for part in parts}
        mirrors = list(self.mirrors)
        return {"uri": self.uri, "confirmed": self.confirmed, **listed, "mirrors": mirrors}


def repair(
    repository: Repository,
    *,
    types: Sequence[str] = (),
    confirm: bool = False,
    force: bool = False,
    discard: bool = False,
    message: str | None = None,
) -> RepairReport:
    """Look at every table of main for what another program did, at the names of branches, and for
    indexes and edges that older releases left wrong; with ``confirm`` deal with it."""
    if force and discard:
        raise UsageError(
            "a foreign change is either forced into the graph or discarded",
            hint="leave --force or --discard out",
        )
    if (force or discard) and not confirm:
        raise UsageError(
            f"--{'force' if force else 'discard'} needs --confirm",
            hint="look at the preview first: leave both out",
        )
    found = _Repair(repository, types, force=force, discard=discard, message=message).run(confirm)
    edges, commits = repair_edges(
        repository,
        branch_heads(repository),
        types=types,
        confirm=confirm,
        force=force,
        message=message,
    )
    return replace(
        found,
        names=repair_names(repository, confirm=confirm, discard=discard),
        edges=tuple(edges),
        commits=(*found.commits, *commits),
    )


class _Repair:
    """One look at all tables, and what follows from it."""

    def __init__(
        self,
        repository: Repository,
        types: Sequence[str],
        *,
        force: bool,
        discard: bool,
        message: str | None,
    ) -> None:
        self._repository = repository
        self._force = force
        self._discard = discard
        self._message = message
        self._types = types
        self._histories: dict[str, ForeignHistory] = {}
        self._commits: list[GraphCommit] = []
        self._stale: list[str] = []

    def run(self, confirm: bool) -> RepairReport:
        snapshot = self._repository.head(MAIN).snapshot
        catalog = self._repository.schema(snapshot.schema_hash).catalog
        types = [t for t in named_types(catalog, self._types) if t.table_key in snapshot.pins]
        tables = [self._look(snapshot.pins[t.table_key]) for t in types]
        stale = tuple(self._stale)
        if confirm:
            found = list(zip(types, tables, strict=True))
            tables = [self._settled(*one) for one in found]
            if self._commits:
                # What was refused may be right now: edges are gone that led to deleted nodes.
                tables = [
                    self._settled(*one) if done.action is RepairAction.REFUSED else done
                    for one, done in zip(found, tables, strict=True)
                ]
            # Where no process has been it may lag, or refer to where the graph was copied from.
            with suppress(OmnigraphError):
                mirror_main(self._repository, all_tables=True)
        # On the newest state: rows that were forced in are part of it.
        indexes, commits = repair_indexes(
            self._repository, types=self._types, confirm=confirm, message=self._message
        )
        return RepairReport(
            uri=self._repository.location.uri,
            confirmed=confirm,
            tables=tuple(tables),
            commits=(*self._commits, *commits),
            indexes=tuple(indexes),
            mirrors=stale,
        )

    def _look(self, pin: TablePin) -> TableRepair:
        """What another program did to a mirror."""
        location, path = self._repository.location, _path(pin.table_key)
        head = mirror_head(location, path, pin.name)
        found = TableRepair(
            type_key=pin.table_key,
            classification=DriftKind.NO_DRIFT,
            action=RepairAction.NO_OP,
            published_dataset_version=pin.name.version,
            lance_head_version=head.version,
        )
        if head.state is not MirrorState.DRIFTED:
            if head.state is MirrorState.LAGGING:
                self._stale.append(pin.table_key)
            return found
        found = replace(found, classification=DriftKind.UNVERIFIABLE, action=RepairAction.PREVIEW)
        try:
            history = foreign_history(location, path)
        except OmnigraphError as e:
            return replace(found, reason=e.message)
        if history is None:
            return replace(found, reason="nothing shows what it was made on")
        self._histories[pin.table_key] = history
        harmless = all(commit.maintenance for commit in history.commits)
        return replace(
            found,
            classification=DriftKind.VERIFIED if harmless else DriftKind.SUSPICIOUS,
            lance_head_version=history.head,
            operations=history.commits,
            overtaken=history.shown != pin.name,
        )

    def _settled(self, graph_type: GraphType, found: TableRepair) -> TableRepair:
        """Deal with one table, and say so in its row."""
        if found.classification is DriftKind.NO_DRIFT:
            return found
        try:
            if self._discard:
                return self._put_back(found, RepairAction.DISCARDED)
            if found.classification is DriftKind.VERIFIED:
                return self._put_back(found, RepairAction.HEALED)
            if self._force:
                self._force_in(graph_type, found)
                return self._put_back(found, RepairAction.FORCED)
        except OmnigraphError as e:
            return replace(found, action=RepairAction.REFUSED, reason=e.message)
        why = found.reason or "it is not certain that no row changed"
        return replace(found, action=RepairAction.REFUSED, reason=why)

    def _put_back(self, found: TableRepair, action: RepairAction) -> TableRepair:
        """Let plain readers find again what the graph shows."""
        mirror, name = self._repository.mirror, type_name(found.type_key)
        with mirror.turn:
            shown = shown_now(self._repository, name)
            path, version = _path(found.type_key), found.lance_head_version
            if shown is None or not mirror.put_back(path, version, shown):
                raise ConflictError(
                    f"{found.type_key} was written while it was repaired",
                    kind=ErrorKind.READ_SET_CONFLICT,
                    hint="run repair again",
                    details={"table_key": found.type_key},
                )
        return replace(found, action=action)

    # -- what is forced --------------------------------------------------------------------------

    def _force_in(self, graph_type: GraphType, found: TableRepair) -> None:
        """Publish what another program did, as a write like any other."""
        history = self._histories.get(found.type_key)
        if history is None:
            raise UsageError(
                found.reason or "nothing shows what it was made on",
                hint=_BY_HAND,
            )
        location, path = self._repository.location, _path(found.type_key)
        change = _change(graph_type, *foreign_rows(location, path, history))
        if change is None:
            return

        def prepare(txn: WriteTxn) -> GraphDelta:
            self._check_apart(txn, change, history)
            return GraphDelta(tables={graph_type.table_key: change.delta})

        request = WriteRequest(
            kind="repair",
            branch=MAIN,
            prepare=prepare,
            actor=FORCER,
            message=self._message,
            requires=Requires.NEWEST_HEAD | Requires.OWN_DECISION,
        )
        commit = publish(self._repository, request).commit
        if commit is not None:
            self._commits.append(commit)

    def _check_apart(self, txn: WriteTxn, change: _Change, history: ForeignHistory) -> None:
        """Raise if the graph has rows that the other program could not see, or changed since."""
        graph_type = change.delta.type
        pin, table = txn.pin_of(graph_type), txn.table_of(graph_type)
        if pin is None or table is None or pin.name.path != history.shown.path:
            raise UsageError(
                f"it was made on another table than that of {graph_type.table_key} now",
                hint=_BY_HAND,
            )
        # Also of a table that was not written since: a program may append an id twice.
        places = table.positions("id", change.inserted)
        shared = set(table.ids_at(places).to_pylist())
        if pin.name != history.shown:
            before = self._repository.table(replace(pin, name=history.shown))
            if columns_of(before.dataset) != columns_of(table.dataset):
                raise UsageError(
                    f"the columns of {graph_type.table_key} have changed since", hint=_BY_HAND
                )
            since = table_delta(before, table, ComparedTypes.unchanged(graph_type)).ids
            touched = pa.concat_arrays([change.delta.rows["id"].combine_chunks(), change.gone])
            shared |= set(since.to_pylist()) & set(touched.to_pylist())
        # A process that died before the mirror was put back has published the same already.
        both = _unlike(table, change, sorted(shared)) if shared else []
        if both:
            names = _examples(both)
            raise ConflictError(
                f"{len(both)} rows of {graph_type.table_key} are in the graph differently: {names}",
                kind=ErrorKind.READ_SET_CONFLICT,
                hint=_BY_HAND,
                details={"table_key": graph_type.table_key},
            )


@dataclass(frozen=True, kw_only=True)
class _Change:
    """Rows that another program inserted, updated and deleted."""

    delta: TableDelta
    inserted: pa.StringArray
    gone: pa.StringArray


def _change(graph_type: GraphType, before: pa.Table, after: pa.Table) -> _Change | None:
    """The difference of two sets of rows as a write; None if there is none."""
    key = graph_type.table_key
    if [(f.name, f.type) for f in before.schema] != [(f.name, f.type) for f in after.schema]:
        raise UsageError(
            f"the columns of {key} are not those of the schema any more",
            hint="discard the change, and use 'omnigraph schema apply' for changes of columns",
        )
    schema = table_schema(graph_type)
    if set(schema.names) != set(before.column_names):
        raise UsageError(f"the columns of {key} have changed since", hint=_BY_HAND)
    before, after = (
        pa.table([rows[f.name].cast(f.type).combine_chunks() for f in schema], schema=schema)
        for rows in (before, after)
    )
    ids = after["id"].to_pylist()
    if len(set(ids)) != len(ids):
        twice = [str(entity) for entity, times in Counter(ids).items() if times > 1]
        raise UsageError(
            f"{len(twice)} ids of {key} are there more than once: {_examples(twice)}", hint=_BY_HAND
        )
    fresh, moved = _compared(before, after)
    written = np.sort(np.concatenate([fresh, moved]))
    gone: pa.StringArray = pa.array(sorted({*before["id"].to_pylist()} - {*ids}), pa.string())
    if not len(written) and not len(gone):
        return None
    rows = after.take(pa.array(written))
    _, wrong = settle_ids(graph_type, rows, mismatches_max=1)
    if wrong:
        raise UsageError(f"a row of {key} is not what its id says: {wrong[0][1]}", hint=_BY_HAND)
    delta = TableDelta(type=graph_type, mode=WriteMode.MERGE, rows=rows, removed=gone)
    inserted = after["id"].combine_chunks().take(pa.array(fresh)).drop_null()
    return _Change(delta=delta, inserted=inserted, gone=gone)


def _compared(before: pa.Table, after: pa.Table) -> tuple[Positions, Positions]:
    """Which rows of the second have an id that is new, and which are of other values."""
    old = {entity: row for row, entity in enumerate(before["id"].to_pylist())}
    places = np.array([old.get(entity, -1) for entity in after["id"].to_pylist()], np.int64)
    known = np.flatnonzero(places >= 0)
    pair = before.take(pa.array(places[known])), after.take(pa.array(known))
    moved = np.zeros(len(known), bool)
    for name in after.column_names:
        moved |= differs(ColumnPair(before=name, after=name), *pair)
    return np.flatnonzero(places < 0), known[moved]


def _unlike(table: Table, change: _Change, ids: Sequence[str]) -> list[str]:
    """Of these rows, those that the graph shows otherwise than the other program."""
    wanted, theirs = pa.array(ids, pa.string()), change.delta.rows
    theirs = theirs.filter(among(theirs["id"], wanted))
    ours = table.lookup("id", wanted, theirs.column_names).cast(theirs.schema)
    unlike = theirs["id"].take(pa.array(np.concatenate(_compared(ours, theirs)))).to_pylist()
    return sorted({*unlike} | ({*ours["id"].to_pylist()} - {*theirs["id"].to_pylist()}))


def _examples(ids: Sequence[Any]) -> str:
    return ", ".join(map(str, ids[:EXAMPLES_MAX]))


def _path(table_key: str) -> str:
    return mirror_path(type_name(table_key))
