"""Which writes that wait can be published together, and their tables staged side by side.

    writes that wait, head -> [together] -> those that do not concern each other, checked as one
    their tables -> [together] -> a version after each of them, all on the same base

The outcome is exactly that of one write after the other, in the order of the queue:

- each was valid by itself, on a state from which nothing has gone since, and all of them are valid
  together: rules that more rows can break are kept by all, so by the first ones too, and rules that
  more rows cannot break were kept by each;
- one that only inserts rows with new ids need not be checked by itself: among the rules that more
  rows cannot break it is the ends of its edges that count, and none of those is a node that another
  one brings;
- none decides by what another one changes, none touches a row that another one touches;
- what takes rows away, replaces a table, changes the schema or begins a table goes alone, and so
  does what expects a certain state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import pyarrow as pa

from omnigraph.errors import InternalError, OmnigraphError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import Head
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Cardinality, EdgeType
from omnigraph.storage.changes import Change
from omnigraph.storage.compact import worn_tail
from omnigraph.storage.objects import done
from omnigraph.storage.staged import StagedTable
from omnigraph.write.next_snapshot import StagedWrite
from omnigraph.write.pending import PendingWrite
from omnigraph.write.plan import Action
from omnigraph.write.preparation import PreparedWrite
from omnigraph.write.schema_view import validated
from omnigraph.write.stage import Staged, TableWork
from omnigraph.write.txn import GraphDelta, WriteTxn

MEMBERS_MAX = 64
ROWS_MAX = 1_000
"""Rows of a write that joins others: it is small, or they would wait for it."""


def gathered(
    members: Sequence[PendingWrite], head: Head
) -> list[tuple[PendingWrite, PreparedWrite]]:
    """The first write and those after it that can be published with it, each prepared on ``head``.

    Empty if the first one cannot be published together with others.
    """
    txn = WriteTxn.begin(members[0].repository, members[0].branch, head)
    found = _apart(members, txn, each_checked=False)
    if len(found) > 1 and not _valid_together(txn, found):
        # One of them is at fault, or two together. Each by itself first; then half of them may do.
        found = _apart(members, txn, each_checked=True)
        while len(found) > 1 and not _valid_together(txn, found):
            found = found[: len(found) // 2]
    return found if len(found) > 1 else []


def _apart(
    members: Sequence[PendingWrite], txn: WriteTxn, *, each_checked: bool
) -> list[tuple[PendingWrite, PreparedWrite]]:
    """The first write and those after it that do not concern it or each other."""
    found: list[tuple[PendingWrite, PreparedWrite]] = []
    touched = _Touched()
    for member in members:
        prepared = _on(member, txn.head, checked=each_checked)
        if prepared is None or touched.by(prepared):
            if not found:
                return []
            continue
        touched.add(prepared)
        found.append((member, replace(prepared, txn=txn)))
        if len(found) == MEMBERS_MAX:
            break
    return found


def _on(member: PendingWrite, head: Head, *, checked: bool) -> PreparedWrite | None:
    """A write's change if it holds on ``head`` and can be published together with others."""
    if member.alone or not member.request.joins or member.request.expects:
        return None
    prepared = member.ahead
    stale = prepared is None or not _still_holds(prepared, head.snapshot, member.id)
    if prepared is None or stale or (checked and not prepared.checked):
        try:
            prepared = member.prepared(head)
        except OmnigraphError:
            member.alone = True  # In its own turn it will be heard.
            return None
        if prepared.txn.snapshot.place != head.snapshot.place:
            return None  # Something newer was seen on the way.
    return prepared if _is_joinable(prepared) and not member.preparation.expectations else None


def _still_holds(prepared: PreparedWrite, now: Snapshot, operation_id: str) -> bool:
    """Whether a change that was checked on an earlier state needs no look at the rows of this one,
    but for what all the writes come to together."""
    before = prepared.txn.snapshot
    if before.place == now.place:
        return True
    if (before.schema_hash, before.path) != (now.schema_hash, now.path):
        return False
    if before.swept != now.swept or operation_id in now.revoked:
        return False
    searched = {read.table_key for read in prepared.reads if read.ids is None}
    if not prepared.txn.same_world(now, searched):
        return False
    # What was checked, or read, rests on rows of then; new rows that nothing was read for do not.
    rests = prepared.checked or bool(prepared.reads)
    return not rests or _only_gained(before, now)


def _only_gained(before: Snapshot, now: Snapshot) -> bool:
    """Whether every commit since then did nothing but insert rows."""
    for commit in now.commits:
        if commit.id == before.head.id:
            return before.rewound_at == now.rewound_at
        if any(change.updated or change.deleted for change in commit.changes.values()):
            return False
    return False


def _is_joinable(prepared: PreparedWrite) -> bool:
    change = prepared.change
    if not isinstance(change, GraphDelta) or change.schema is not None or not prepared.work:
        return False
    if sum(table.rows.num_rows for table in change.tables.values()) > ROWS_MAX:
        return False
    return all(table.only_writes for table in change.tables.values()) and all(
        isinstance(work, TableWork)
        and work.actions in ((Action.APPEND,), (Action.UPSERT,))
        and prepared.txn.pin_of(work.type) is not None
        and not (_is_counted(work) and len(work.outcome.matched))
        for work in prepared.work.values()
    )


def _is_counted(work: TableWork) -> bool:
    """Whether a rule counts the edges of this type: one that moves makes room for another."""
    return isinstance(work.type, EdgeType) and work.type.cardinality != Cardinality()


class _Touched:
    """What some writes change, row by row."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}
        self._ends: dict[str, set[str]] = {}
        """Nodes that edges of writes lead to which were not checked by themselves."""

    def by(self, prepared: PreparedWrite) -> bool:
        """Whether a write reads or changes any of it, or rests on it unseen."""
        if any(not self._ids.get(key, _NOTHING).isdisjoint(ids) for key, ids in _ends_of(prepared)):
            return True
        for read in prepared.reads:
            there = self._ids.get(read.table_key)
            if there and (read.ids is None or not there.isdisjoint(read.ids.to_pylist())):
                return True
        return any(
            not self._ids.get(key, _NOTHING).isdisjoint(ids)
            or not self._ends.get(key, _NOTHING).isdisjoint(ids)
            for key, ids in _ids_of(prepared)
        )

    def add(self, prepared: PreparedWrite) -> None:
        for key, ids in _ids_of(prepared):
            self._ids.setdefault(key, set()).update(ids)
        for key, ids in _ends_of(prepared):
            self._ends.setdefault(key, set()).update(ids)


_NOTHING: frozenset[str] = frozenset()


def _ids_of(prepared: PreparedWrite) -> Iterator[tuple[str, list[str]]]:
    for key, table in _tables(prepared).items():
        yield key, table.rows.column("id").to_pylist()


def _ends_of(prepared: PreparedWrite) -> Iterator[tuple[str, list[str]]]:
    """The nodes that edges lead to, of a write that was not checked by itself."""
    for table in () if prepared.checked else _tables(prepared).values():
        if isinstance(table.type, EdgeType):
            yield f"node:{table.type.source}", table.rows.column("src").to_pylist()
            yield f"node:{table.type.target}", table.rows.column("dst").to_pylist()


def _tables(prepared: PreparedWrite) -> Mapping[str, TableDelta]:
    return prepared.change.tables if isinstance(prepared.change, GraphDelta) else {}


def _valid_together(txn: WriteTxn, found: Sequence[tuple[PendingWrite, PreparedWrite]]) -> bool:
    """Whether the writes keep every rule together, and do together what each does by itself."""
    keys = dict.fromkeys(key for _, prepared in found for key in _tables(prepared))
    delta = GraphDelta(tables={key: _joined(key, found) for key in keys})
    try:
        outcomes = validated(txn, delta).tables
    except OmnigraphError:
        return False
    for key in keys:
        each = [p.work[key] for _, p in found if key in p.work]
        own = [work.outcome for work in each if isinstance(work, TableWork)]
        both = outcomes[key]
        if (both.inserted_count, both.updated_count, both.deleted_count) != (
            sum(outcome.inserted_count for outcome in own),
            sum(outcome.updated_count for outcome in own),
            0,
        ):
            return False
    return True


def _joined(key: str, found: Sequence[tuple[PendingWrite, PreparedWrite]]) -> TableDelta:
    tables = [table for _, p in found if (table := _tables(p).get(key)) is not None]
    merges = any(table.mode is WriteMode.MERGE for table in tables)
    return TableDelta(
        type=tables[0].type,
        mode=WriteMode.MERGE if merges else WriteMode.APPEND,
        rows=pa.concat_tables([table.rows for table in tables]),
        ids_fresh=all(table.ids_fresh for table in tables),
        may_repeat=any(table.may_repeat for table in tables),
    )


# -- staging ---------------------------------------------------------------------------------------


def staged_together(
    repository: Repository, found: Sequence[tuple[PendingWrite, PreparedWrite]], pool: Executor
) -> list[StagedWrite]:
    """The writes with their tables staged, each table after each of them."""
    txn = found[0][1].txn
    names = {member.id: member.stager.next_name() for member, _ in found}
    keys = dict.fromkeys(key for _, prepared in found for key in prepared.work)
    staged: dict[str, dict[str, Staged]] = {member.id: {} for member, _ in found}
    tasks = {
        key: repository.background.pool.submit(_stage_table, txn, key, found, names, pool)
        for key in keys
    }
    pin = done if repository.location.is_local else pool.submit
    for key, task in tasks.items():
        versions, laid_out = task.result()
        for (member, prepared), made in versions:
            work = prepared.work[key]
            staged[member.id][key] = member.stager.staged_together(
                key,
                txn.pin_of(work.type),
                made,
                pin(repository.tables.pin, made),
                alike=work.actions == (Action.APPEND,) and not laid_out,
            )
    return [
        StagedWrite.of(member.request, member.id, prepared, staged[member.id])
        for member, prepared in found
    ]


_Version = tuple[tuple[PendingWrite, PreparedWrite], StagedTable]


def _stage_table(
    txn: WriteTxn,
    key: str,
    found: Sequence[tuple[PendingWrite, PreparedWrite]],
    names: Mapping[str, str],
    pool: Executor,
) -> tuple[list[_Version], bool]:
    """The versions of one table, and whether older files were joined on the way."""
    concerned = [(member, prepared) for member, prepared in found if key in prepared.work]
    graph_type = concerned[0][1].work[key].type
    base = txn.table_of(graph_type)
    if base is None:
        raise InternalError("a table is begun by one write alone")

    def changes(one: tuple[PendingWrite, PreparedWrite]) -> tuple[str, Sequence[Change]]:
        member, prepared = one
        work = prepared.work[key]
        if not isinstance(work, TableWork):
            raise InternalError("only rows in memory are published together")
        return names[member.id], member.stager.row_changes(key, work, base)

    writes = list(pool.map(changes, concerned))
    first = worn_tail(base)
    made = txn.repository.tables.stage_each(
        graph_type.table_path, base, writes, table_schema(graph_type), pool, first=first
    )
    return list(zip(concerned, made, strict=True)), first is not None
