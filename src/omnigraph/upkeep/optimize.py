"""Optimize: join small files and bring indexes up to date, for all tables in one commit.

    tables that changed -> [plan each] -> joined files, built indexes, staged -> PUBLISH

What is to be done to a table follows from its own version alone. So when others write meanwhile,
only the tables that they wrote are planned again, and one that never stands still is left for the
next time. The name of a version says whether this made it, and for which indexes: a table that is
as it was left is not even opened.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from threading import BoundedSemaphore
from typing import Any

from omnigraph.errors import UsageError
from omnigraph.housekeeping.mirror import type_name
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, TableChange, TablePin
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.compact import plan_upkeep
from omnigraph.storage.mirror import MirrorState, mirror_head, mirror_path
from omnigraph.upkeep.indexes import (
    PendingIndex,
    TableIndexes,
    due_indexes,
    named_types,
    table_state,
    wanted_indexes,
)
from omnigraph.write.plan import Action
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.stage import BulkChange, BulkWork
from omnigraph.write.txn import WriteTxn

CONCURRENCY_ENV = "OMNIGRAPH_MAINTENANCE_CONCURRENCY"
CONCURRENCY = 8
REPLANS_MAX = 5
"""A table that others write so often while it is worked on is left for the next time."""
BUSY = "busy"
DRIFTED = "drift_needs_repair"
_RULES = "1"
"""Another value makes tables be looked at again that were in order by older rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptimized:
    """What became of one table."""

    type_key: str
    fragments_removed: int = 0
    fragments_added: int = 0
    committed: bool = False
    """Whether it has another version now."""
    skipped: str | None = None
    """Why nothing was done although something may be to do."""
    published_dataset_version: int | None = None
    """The version of the table that the graph shows."""
    lance_head_version: int | None = None
    """The version that a plain reader of the table finds, if it is another one."""
    pending_indexes: tuple[PendingIndex, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As ``optimize --json`` shows it."""
        return asdict(self) | {"pending_indexes": [p.to_dict() for p in self.pending_indexes]}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeResult:
    """What an optimize did."""

    uri: str
    branch: str
    tables: tuple[TableOptimized, ...]
    """One for each type that has rows."""
    commit: GraphCommit | None
    """None when nothing was to be done."""

    def to_dict(self) -> dict[str, Any]:
        """As ``optimize --json`` shows it."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "tables": [table.to_dict() for table in self.tables],
            "commit": self.commit.to_dict() if self.commit is not None else None,
        }


def optimize(
    repository: Repository,
    *,
    branch: str = MAIN,
    types: Sequence[str] = (),
    actor: str | None = None,
    message: str | None = None,
) -> OptimizeResult:
    """Join small files, leave deleted rows out, build and extend indexes. Changes no answer.

    A table of main that another program moved is left as it is.
    """
    work = _Optimize(types, join=True, whole=False, mirrored=branch == MAIN)
    return _run(repository, work, "optimize", branch, actor, message)


def build_indexes(
    repository: Repository,
    *,
    branch: str = MAIN,
    types: Sequence[str] = (),
    actor: str | None = None,
    message: str | None = None,
) -> OptimizeResult:
    """Make every index cover every row; files stay as they are."""
    work = _Optimize(types, join=False, whole=True, mirrored=branch == MAIN)
    return _run(repository, work, "index", branch, actor, message)


def concurrency() -> int:
    """How many tables are worked on at once."""
    text = os.environ.get(CONCURRENCY_ENV, "").strip() or str(CONCURRENCY)
    if not text.isdigit() or int(text) < 1:
        raise UsageError(
            f"{CONCURRENCY_ENV} is not a number of tables: '{text}'",
            hint="set it to 1 or more, or leave it out",
        )
    return int(text)


def _run(
    repository: Repository,
    work: _Optimize,
    kind: str,
    branch: str,
    actor: str | None,
    message: str | None,
) -> OptimizeResult:
    request = WriteRequest(
        kind=kind,
        branch=branch,
        prepare=work.prepare,
        actor=actor,
        message=message,
        requires=Requires.NEWEST_HEAD,
    )
    commit = publish(repository, request).commit
    pins = repository.branch(branch).head.snapshot.pins
    tables = [
        replace(
            table,
            committed=table.committed and commit is not None,
            published_dataset_version=pins[key].name.version if key in pins else None,
        )
        for key, table in work.tables.items()
    ]
    return OptimizeResult(
        uri=repository.location.uri, branch=branch, tables=tuple(tables), commit=commit
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """What one version of a table needs."""

    pin: TablePin
    work: BulkWork | None
    outcome: TableOptimized


class _Optimize:
    """Maintenance as a function of the snapshot that it is carried out on."""

    def __init__(
        self,
        types: Sequence[str],
        *,
        join: bool,
        whole: bool,
        mirrored: bool,
    ) -> None:
        self._types = types
        self._join = join
        self._whole = whole
        self._mirrored = mirrored
        self._workers = concurrency()
        self._gate = BoundedSemaphore(self._workers)
        self._planned: dict[str, _Planned] = {}
        self._replans: dict[str, int] = {}
        # One change for all attempts: what was staged for tables that stand still is kept.
        self._work: dict[str, BulkWork] = {}
        self._change = BulkChange(tables=self._work)
        self.tables: dict[str, TableOptimized] = {}

    def prepare(self, txn: WriteTxn) -> BulkChange:
        """Plan the tables that this did not see yet as they are now."""
        types = named_types(txn.schema.catalog, self._types)
        found = [(t, pin) for t in types if (pin := txn.pin_of(t)) is not None]
        fresh = [(t, pin) for t, pin in found if not self._is_planned(t, pin)]
        with ThreadPoolExecutor(self._workers, thread_name_prefix="omnigraph-upkeep") as pool:
            plans = list(pool.map(lambda one: self._plan(txn, *one), fresh))
        for (graph_type, _), planned in zip(fresh, plans, strict=True):
            self._planned[graph_type.table_key] = planned
        keys = [t.table_key for t, _ in found]
        self.tables = {key: self._planned[key].outcome for key in keys}
        self._work.clear()
        for key in keys:
            work = self._planned[key].work
            if work is not None:
                self._work[key] = work
        return self._change

    def _is_planned(self, graph_type: GraphType, pin: TablePin) -> bool:
        known = self._planned.get(graph_type.table_key)
        if known is None or known.pin != pin:
            return False
        # A plan that was made before may speak of another declaration of the type.
        return known.work is None or known.work.type == graph_type

    def _plan(self, txn: WriteTxn, graph_type: GraphType, pin: TablePin) -> _Planned:
        key = graph_type.table_key
        if key in self._planned:
            self._replans[key] = self._replans.get(key, 0) + 1
            if self._replans[key] > REPLANS_MAX:
                outcome = TableOptimized(type_key=key, skipped=BUSY)
                return _Planned(pin=pin, work=None, outcome=outcome)
        label = _label(graph_type, pin)
        if self._join and pin.name.manifest.endswith(f"{label}.manifest"):
            return _Planned(pin=pin, work=None, outcome=TableOptimized(type_key=key))
        table = txn.repository.table(pin)
        state = table_state(graph_type, table, whole=self._whole)
        upkeep = plan_upkeep(
            table,
            state.wanted,
            declared=wanted_indexes(graph_type),
            join=self._join,
            whole=self._whole,
            gate=self._gate,
        )
        pending = _pending(graph_type, state)
        outcome = TableOptimized(type_key=key, pending_indexes=pending)
        if upkeep is None:
            return _Planned(pin=pin, work=None, outcome=outcome)
        if self._mirrored:
            path = mirror_path(type_name(key))
            head = mirror_head(txn.repository.location, path, pin.name)
            if head.state is MirrorState.DRIFTED:
                drifted = replace(outcome, skipped=DRIFTED, lance_head_version=head.version)
                return _Planned(pin=pin, work=None, outcome=drifted)
        return _Planned(
            pin=pin,
            work=BulkWork(
                type=graph_type,
                actions=(Action.REWORK,),
                change=TableChange(),
                staged=(upkeep,),
                label=label if self._join and not pending else "",
            ),
            outcome=replace(
                outcome,
                fragments_removed=upkeep.fragments_removed,
                fragments_added=upkeep.fragments_added,
                committed=True,
            ),
        )


def _pending(graph_type: GraphType, state: TableIndexes) -> tuple[PendingIndex, ...]:
    """Indexes that are to come. Not those that a table of this size does without."""
    due = due_indexes(graph_type, state.row_count)
    return tuple(
        PendingIndex(type_key=graph_type.table_key, property_name=spec.column, reason=reason)
        for spec, reason in state.pending.items()
        if spec in due
    )


def _label(graph_type: GraphType, pin: TablePin) -> str:
    """What the name of a version ends with that is in order, by these rules and these indexes."""
    due = due_indexes(graph_type, pin.row_count)
    wanted = sorted(f"{spec.column} {spec.kind}" for spec in due)
    digest = hashlib.sha256("\n".join([_RULES, *wanted]).encode()).hexdigest()
    return f"-o{digest[:12]}"
