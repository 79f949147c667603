"""Is this graph whole? Every promise that the stored bytes make is looked at, on every branch.

    refs, tags, lineage, schemas -> tables -> files -> rows -> [findings]

Nothing is changed. A finding says what is wrong, where, and what to do about it. Tables that
several states share are looked at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.errors import OmnigraphError
from omnigraph.housekeeping.mirror import type_name
from omnigraph.manifest.refs import branch_names, find_branch, find_tag, tag_names
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot, TablePin
from omnigraph.schema.catalog import EdgeType
from omnigraph.storage.mirror import MirrorState, mirror_head, mirror_path
from omnigraph.storage.names import TableVersion
from omnigraph.storage.reach import table_files
from omnigraph.storage.tables import Table
from omnigraph.upkeep.ancestry import States
from omnigraph.upkeep.index_check import foreign_indexes
from omnigraph.upkeep.name_check import name_faults
from omnigraph.upkeep.recovery import IntentState, pending_intents, quarantined
from omnigraph.upkeep.retention import whole_states
from omnigraph.upkeep.row_check import check_counts, check_rules

RESTORE = "restore it from a copy of the graph"
CORRECT = "correct the rows with 'omnigraph mutate' or a load with --mode merge"
HARMLESS = (
    "reads are right, only the counts of this commit are wrong; "
    "'omnigraph cleanup --keep N --confirm' gives that past up"
)
PAST = f"{RESTORE}, or give that past up: 'omnigraph cleanup --keep N --confirm'"
MOVE_TAG = "run 'omnigraph repair --confirm', and make the tag again on the commit that it makes"
EXAMPLES_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    code: str
    """name, ref, tag, lineage, schema, table, file, count, read, duplicate_id, endpoint, rule,
    drift, mirror, intent or index"""
    where: str
    message: str
    remedy: str

    def to_dict(self) -> dict[str, Any]:
        """As ``check --json`` shows it."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a check has looked at, and what it found."""

    findings: tuple[Finding, ...] = ()
    branches: int = 0
    tags: int = 0
    commits: int = 0
    tables: int = 0
    files: int = 0
    rows: int = 0
    states: int = 0
    """Of the past, if that was asked for."""

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """As ``check --json`` shows it."""
        counts = asdict(self) | {"findings": [finding.to_dict() for finding in self.findings]}
        return {"ok": self.ok} | counts


Progress = Callable[[int, int], None]
"""Tables done, and how many there are so far."""


def check(
    repository: Repository,
    *,
    full: bool = False,
    history: bool = False,
    progress: Progress | None = None,
) -> CheckReport:
    """Look at everything that branches and tags lead to.

    Ids and endpoints are always read; with ``full`` every column is, every rule of the schema is
    checked as for a load, and every commit is compared with its parent. With ``history`` every
    state of the past that is kept is looked at, too: its tables open, and their files are there.
    """
    run = _Check(repository, full=full)
    run.everything(progress)
    if history:
        run.history(progress)
    return CheckReport(findings=tuple(run.findings), **run.counts)


class _Check:
    """One look at a graph."""

    def __init__(self, repository: Repository, *, full: bool) -> None:
        self._repository = repository
        self._full = full
        self._ids: dict[TableVersion, pa.ChunkedArray] = {}
        self._listed: dict[str, set[str]] = {}
        self._seen: set[object] = set()
        self.findings: list[Finding] = []
        self.counts: Counter[str] = Counter()

    def everything(self, progress: Progress | None) -> None:
        self._names()
        states = [*self._branches(), *self._tags()]
        self._lineage([state for _, state in states])
        steps = [(where, state, key) for where, state in states for key in state.pins]
        for done, (where, state, key) in enumerate(steps):
            if progress is not None:
                progress(done, len(steps))
            with self._reporting("table", f"{where} {key}", RESTORE):
                self._table(where, state, state.pins[key])
        for where, state in states:
            with self._reporting("schema", where, RESTORE):
                self._endpoints(where, state)
        if self._full:
            self._rules(states)
            self._indexes(states)
        self._intents()
        if progress is not None:
            progress(len(steps), len(steps))

    def history(self, progress: Progress | None) -> None:
        """Every state that is kept, each version of a table once; no rows are read."""
        states = States(self._repository)
        waiting: dict[TableVersion, tuple[str, int]] = {}
        with self._reporting("lineage", "history", "restore __manifest from a copy of the graph"):
            places = list(whole_states(self._repository))
            states.look_at(places)
            for state in filter(None, map(states.at, places)):
                self.counts["states"] += 1
                where = f"commit {state.commit_id}"
                if state.schema_hash not in self._seen:
                    self._seen.add(state.schema_hash)
                    with self._reporting("schema", where, PAST):
                        self._repository.schema(state.schema_hash)
                for name, key, rows in state.tables:
                    if name not in self._seen:
                        waiting.setdefault(name, (f"{where} {key}", rows))
        for done, (name, (where, rows)) in enumerate(waiting.items()):
            if progress is not None:
                progress(done, len(waiting))
            self._seen.add(name)
            try:
                table = self._repository.tables.open(name)
                self.counts["tables"] += 1
                if self._files(where, table, PAST) and table.row_count != rows:
                    message = f"it has {table.row_count} rows, the manifest says {rows}"
                    self._report("count", where, message, PAST)
            except OmnigraphError as e:
                self._report("table", where, e.message, PAST)
        if progress is not None:
            progress(len(waiting), len(waiting))

    @contextmanager
    def _reporting(self, code: str, where: str, remedy: str) -> Generator[None]:
        """An error is a finding, and the check goes on."""
        try:
            yield
        except OmnigraphError as e:
            self._report(code, where, e.message, e.hint or remedy)

    def _report(self, code: str, where: str, message: str, remedy: str) -> None:
        found = Finding(code=code, where=where, message=message, remedy=remedy)
        self.findings.append(found)

    # -- names -----------------------------------------------------------------------------------

    def _names(self) -> None:
        with self._reporting("name", "branches", RESTORE):
            for fault in name_faults(self._repository):
                self._report("name", f"branch {fault.name}", fault.message, fault.remedy)

    def _branches(self) -> Iterator[tuple[str, Snapshot]]:
        objects = self._repository.objects
        for name in (MAIN, *branch_names(objects)):
            where = f"branch {name}"
            with self._reporting("ref", where, RESTORE):
                if name == MAIN:
                    head = self._repository.head(MAIN).snapshot
                else:
                    ref = find_branch(objects, name)
                    if ref is None:
                        continue
                    head = self._repository.manifest(ref.manifest_path).head().snapshot
                    if head.deleted or head.branch != name:
                        continue  # Ended or renamed by a process that died before its ref said so.
                self.counts["branches"] += 1
                yield where, head

    def _tags(self) -> Iterator[tuple[str, Snapshot]]:
        for name in tag_names(self._repository.objects):
            where = f"tag {name}"
            with self._reporting("tag", where, f"delete the tag, or {RESTORE}"):
                tag = find_tag(self._repository.objects, name)
                if tag is None:
                    continue
                self.counts["tags"] += 1
                state = self._repository.lineage.snapshot(tag.place)
                if state.head.id != tag.commit_id:
                    message = (
                        f"it names commit {tag.commit_id}, but its place shows {state.head.id}"
                    )
                    self._report("tag", where, message, "make the tag again")
                yield where, state

    # -- lineage ---------------------------------------------------------------------------------

    def _lineage(self, states: list[Snapshot]) -> None:
        waiting: dict[str, list[GraphCommit]] = {}
        with self._reporting("lineage", "history", "restore __manifest from a copy of the graph"):
            for commit in self._repository.lineage.reachable(*states):
                self.counts["commits"] += 1
                if self._full:
                    self._counted(commit)
                for child in waiting.pop(commit.id, ()):
                    self._parent(child, commit)
                for parent in (commit.parent_id, commit.merged_parent_id):
                    if parent is not None:
                        waiting.setdefault(parent, []).append(commit)
        for state in states:
            if state.head.place == state.place and state.head.manifest_version != state.version:
                message = f"version {state.version} is named {state.head.manifest_version}"
                self._report("lineage", f"commit {state.head.id}", message, RESTORE)

    def _parent(self, child: GraphCommit, parent: GraphCommit) -> None:
        where = f"commit {child.id}"
        if child.generation <= parent.generation:
            message = f"its generation {child.generation} is not above its parent's"
            self._report("lineage", where, message, RESTORE)
        if child.created_at_us < parent.created_at_us:
            self._report("lineage", where, "it is older than its parent", RESTORE)
        later = child.manifest_version > parent.manifest_version
        together = child.place.whole == parent.place.whole and child.place.back < parent.place.back
        if child.path == parent.path and not (later or together):
            self._report("lineage", where, "it has no later version than its parent", RESTORE)

    # -- tables ----------------------------------------------------------------------------------

    def _table(self, where: str, state: Snapshot, pin: TablePin) -> None:
        if pin.name in self._seen:
            return
        self._seen.add(pin.name)
        place = f"{where} {pin.table_key}"
        if state.branch == MAIN and where == f"branch {MAIN}":
            self._drift(place, pin)
        table = self._repository.tables.open(pin.name)
        self.counts["tables"] += 1
        if not self._files(place, table):
            return
        if table.row_count != pin.row_count:
            message = f"it has {table.row_count} rows, the manifest says {pin.row_count}"
            self._report("count", place, message, RESTORE)
        self._rows(place, table, pin)

    def _files(self, where: str, table: Table, remedy: str = RESTORE) -> bool:
        """Whether all files of a version are there. One listing for all versions of a table."""
        path = table.name.path
        if path not in self._listed:
            names = set(self._repository.objects.names(path))
            self._listed[path] = names | {f"{n.rpartition('/')[0]}/" for n in names}
        needed = set(table_files(table))
        self.counts["files"] += len(needed)
        missing = sorted(needed - self._listed[path])
        for name in missing[:EXAMPLES_MAX]:
            index = "/_indices/" in name
            again = "run 'omnigraph optimize', which builds the index again"
            self._report("file", where, f"{name} is missing", again if index else remedy)
        return not missing

    def _rows(self, where: str, table: Table, pin: TablePin) -> None:
        columns = None if self._full else [n for n in ("id",) if n in table.dataset.schema.names]
        with self._reporting("read", where, RESTORE):
            ids: list[pa.Array] = []
            for batch in table.batches(columns):
                ids.append(batch.column("id"))
                self.counts["rows"] += batch.num_rows
            found = pa.chunked_array(ids, pa.string())
            self._ids[pin.name] = found
            distinct: int = pc.count_distinct(found).as_py()
            if distinct != len(found) or found.null_count:
                repeated = pc.value_counts(found)
                twice = [v["values"] for v in repeated.to_pylist() if v["counts"] > 1]
                shown = ", ".join(map(str, twice[:EXAMPLES_MAX]))
                message = f"{len(found) - distinct} ids are there more than once: {shown}"
                remedy = "load the rows again with --mode merge"
                self._report("duplicate_id", where, message, remedy)

    def _drift(self, where: str, pin: TablePin) -> None:
        path = mirror_path(type_name(pin.table_key))
        head = mirror_head(self._repository.location, path, pin.name)
        if head.state is MirrorState.DRIFTED:
            message = f"another program made version {head.version} of {path}"
            if head.version is None:
                message = f"{path} cannot be read"
            self._report("drift", where, message, "see 'omnigraph repair'")
        elif head.elsewhere is not None:
            message = f"{path} refers to {head.elsewhere}: the graph was moved or copied"
            self._report("mirror", where, message, "run 'omnigraph repair --confirm'")

    def _indexes(self, states: list[tuple[str, Snapshot]]) -> None:
        with self._reporting("index", "indexes", RESTORE):
            for index in foreign_indexes(self._repository, states):
                kept = index.where.startswith("tag ")
                remedy = MOVE_TAG if kept else "run 'omnigraph repair --confirm'"
                self._report("index", f"{index.where} {index.type_key}", index.message, remedy)

    # -- rows ------------------------------------------------------------------------------------

    def _counted(self, commit: GraphCommit) -> None:
        with self._reporting("count", f"commit {commit.id}", PAST):
            message = check_counts(self._repository, commit)
            if message is not None:
                self._report("count", f"commit {commit.id}", message, HARMLESS)

    def _rules(self, states: list[tuple[str, Snapshot]]) -> None:
        """Rows that a load would refuse, in every state that has a name."""
        for where, state in states:
            with self._reporting("rule", where, CORRECT):
                catalog = self._repository.schema(state.schema_hash).catalog
                for graph_type in catalog.types():
                    pin = state.pins.get(graph_type.table_key)
                    if pin is None or pin.name not in self._ids:
                        continue  # It could not be read, which was reported.
                    if (pin.name, state.schema_hash) in self._seen:
                        continue
                    self._seen.add((pin.name, state.schema_hash))
                    for message in check_rules(self._repository, state, graph_type):
                        place = f"{where} {graph_type.table_key}"
                        self._report("rule", place, message, CORRECT)

    def _endpoints(self, where: str, state: Snapshot) -> None:
        catalog = self._repository.schema(state.schema_hash).catalog
        declared = {t.table_key: t for t in catalog.types()}
        for key, pin in state.pins.items():
            kind = declared.get(key)
            if kind is None or pin.stable_id != kind.stable_id:
                message = f"the schema knows no table {pin.type_id:x}-{pin.incarnation:x}"
                self._report("schema", f"{where} {key}", message, RESTORE)
            elif isinstance(kind, EdgeType) and pin.name in self._ids:
                with self._reporting("read", f"{where} {key}", RESTORE):
                    self._ends(where, state, kind, pin)

    def _ends(self, where: str, state: Snapshot, edge: EdgeType, pin: TablePin) -> None:
        for column, node in (("src", edge.source), ("dst", edge.target)):
            ids = self._ids_of(state, f"node:{node}")
            known = (pin.name, column, ids[0])
            if known in self._seen:
                continue
            self._seen.add(known)
            dangling = 0
            example: str | None = None
            for batch in self._repository.tables.open(pin.name).batches(["id", column]):
                there = pc.is_in(batch.column(column), value_set=ids[1])
                lost = batch.filter(pc.invert(there))
                dangling += lost.num_rows
                if lost.num_rows and example is None:
                    example = f"{lost['id'][0].as_py()} leads to {lost[column][0].as_py()!r}"
            if dangling:
                message = f"{dangling} edges have no {column}: {example}"
                remedy = (
                    f"load the missing nodes of {node}, or delete the edges: 'omnigraph repair "
                    "--force --confirm' does"
                )
                self._report("endpoint", f"{where} {edge.table_key}", message, remedy)

    def _ids_of(self, state: Snapshot, key: str) -> tuple[TableVersion | None, pa.Array]:
        pin = state.pins.get(key)
        if pin is None:
            return None, pa.array([], pa.string())
        if pin.name not in self._ids:
            table = self._repository.tables.open(pin.name)
            chunks = [batch.column(0) for batch in table.batches(["id"])]
            self._ids[pin.name] = pa.chunked_array(chunks, pa.string())
        return pin.name, pa.concat_arrays([*self._ids[pin.name].chunks, pa.array([], pa.string())])

    def _intents(self) -> None:
        with self._reporting("intent", "__recovery", "run 'omnigraph recovery list'"):
            for item in pending_intents(self._repository):
                if item.state is IntentState.UNREADABLE:
                    message = f"it cannot be read: {item.reason}"
                    self._report("intent", item.name, message, "run 'omnigraph recovery run'")
            for name in quarantined(self._repository):
                message = "it could not be read and was put aside"
                self._report("intent", name, message, "look at it, then delete it")
