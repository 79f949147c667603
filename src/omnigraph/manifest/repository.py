"""An open graph: its objects, tables, schemas and branch heads, shared by readers and writers.

It resolves names to values (a branch to its head, a hash to a schema, a pin to a table) and keeps
what it resolved. It decides nothing and publishes nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from threading import Lock, RLock
from typing import Any

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import CorruptionError, ErrorKind, NotFoundError, OmnigraphError
from omnigraph.ids import IdSource, SystemIds
from omnigraph.manifest.lineage import Lineage
from omnigraph.manifest.refs import (
    BranchRef,
    branch_not_found,
    check_branch_name,
    find_branch,
    first_life,
)
from omnigraph.manifest.snapshot import MAIN, MAIN_PATH, Snapshot, TablePin
from omnigraph.manifest.store import Head, ManifestStore
from omnigraph.manifest.sweeps import Sweeps
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.ir import from_ir, schema_hash
from omnigraph.storage.location import Location
from omnigraph.storage.mirror import Mirror
from omnigraph.storage.names import TableVersion
from omnigraph.storage.objects import Objects
from omnigraph.storage.staging import TableStore
from omnigraph.storage.sync import sync_files, sync_root
from omnigraph.storage.tables import Table

TABLES_OPEN_MAX = 256
THREADS = 8
UNDELETED_MAX = 256
"""Objects that a handle remembers because the store did not delete them; cleanup finds the rest."""
LOOK_AGAIN_US = 1_800_000_000
"""After half an hour a writer looks for newer versions first. A cleanup empties no version that is
younger than its grace window, an hour: who looked since does not run into an emptied name, which
Lance would examine three times, with pauses, before it reports anything."""


class Durability(StrEnum):
    """What an acknowledged write survives (docs/guide/durability.md)."""

    PROCESS = "process"
    """A crash of the process. The operating system writes the files out in its own time."""
    FSYNC = "fsync"
    """A crash of the machine: everything is synced before the write is acknowledged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedSchema:
    """A schema as a graph accepted it."""

    hash: str
    source: str
    """The `.pg` text."""
    catalog: Catalog


def schema_object(digest: str, suffix: str = "json") -> str:
    """The name of a schema's object."""
    return f"_schema/{digest}.{suffix}"


class Branch:
    """One life of a branch as this process last saw it."""

    def __init__(
        self,
        name: str,
        store: ManifestStore,
        head: Head,
        ref: BranchRef | None = None,
        *,
        clock: Clock,
    ) -> None:
        self.name = name
        self.store = store
        self.ref = ref
        """None for main."""
        self.gone = False
        """This life ended, or goes on under another name."""
        self._head = head
        self._clock = clock
        # The wall clock: a machine that is asleep stops the other one.
        self._looked_us = clock.now_us()
        self._lock = Lock()

    @property
    def head(self) -> Head:
        """The newest head this process knows of."""
        with self._lock:
            return self._head

    def recent(self) -> Head:
        """The same for a write that will replace it: after a long pause it is read anew."""
        with self._lock:
            slept = abs(self._clock.now_us() - self._looked_us) >= LOOK_AGAIN_US
        return self.refresh() if slept else self.head

    def advance(self, head: Head) -> None:
        """Learn of a newer head; an older one is ignored."""
        with self._lock:
            if head.snapshot.version > self._head.snapshot.version:
                self._head = head
                self._looked_us = self._clock.now_us()

    def refresh(self) -> Head:
        """Look for a newer version; one HEAD request when there is none.

        Raises ``NotFoundError`` when the branch was deleted or has another name now: both are
        versions of its manifest, so no holder can miss that.
        """
        looked_us = self._clock.now_us()
        newer = self.store.newer(self.head)
        with self._lock:
            self._looked_us = looked_us
        if newer is not None:
            if not lives_as(newer.snapshot, self.name):
                self.gone = True
                raise branch_not_found(self.name, self.store.where)
            self.advance(newer)
        return self.head


def lives_as(snapshot: Snapshot, name: str) -> bool:
    """Whether a branch lives and has this name: its manifest decides, in one place for both."""
    return snapshot.branch == name and not snapshot.deleted


class Repository:
    """Everything opened from one root."""

    def __init__(
        self,
        location: Location,
        *,
        durability: Durability = Durability.PROCESS,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        create: bool = False,
    ) -> None:
        self.location = location
        self.durability = durability
        self.clock = clock or SystemClock()
        self.ids = ids or SystemIds(self.clock)
        self.objects = Objects(location, create=create)
        self.tables = TableStore(location, self.objects)
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="omnigraph")
        self.write_lock = RLock()
        self._settling: list[Future[Any]] = []
        self._turns: set[str] = set()
        self._last: dict[str, Callable[[], None]] = {}
        self._undeleted: list[str] = []
        self.lineage = Lineage(self.manifest)
        self.sweeps = Sweeps(self.objects)
        self.mirror = Mirror(location, self.objects)
        self._manifests: dict[str, ManifestStore] = {}
        self._branches: dict[str, Branch] = {}
        self._schemas: dict[str, AcceptedSchema] = {}
        self._open: OrderedDict[TableVersion, Table] = OrderedDict()
        self._lock = RLock()
        # Apart from the other lock, because it is held while the store is asked.
        self._opening = RLock()

    def manifest(self, path: str) -> ManifestStore:
        """The manifest dataset of one life of a branch."""
        with self._lock:
            if path not in self._manifests:
                self._manifests[path] = ManifestStore(self.objects, path)
            return self._manifests[path]

    def branch(self, name: str) -> Branch:
        """A branch by name; opened once, then kept."""
        with self._opening:
            return self._kept(name) or self._open_branch(check_branch_name(name))

    def head(self, name: str) -> Head:
        """The newest head of a branch, whatever became of its name."""
        with self._opening:
            known = self._kept(name)
            if known is None:
                return self._open_branch(check_branch_name(name)).head
        try:
            return known.refresh()
        except NotFoundError:
            if not known.gone:
                raise
            return self.branch(name).head

    def known_branch(self, name: str) -> Branch | None:
        """A branch that is open already and lives, as far as this process knows."""
        with self._opening:
            return self._kept(name)

    def _kept(self, name: str) -> Branch | None:
        known = self._branches.get(check_branch_name(name))
        return known if known is not None and not known.gone else None

    def _open_branch(self, name: str) -> Branch:
        if name == MAIN:
            store = self.manifest(MAIN_PATH)
            opened = Branch(name, store, store.head(), clock=self.clock)
        else:
            opened = self._open_life(name)
        self._branches[name] = opened
        return opened

    def _open_life(self, name: str) -> Branch:
        return self.branch_of(*self.life(name, ManifestStore.head))

    def life(self, name: str, read: Callable[[ManifestStore], Head]) -> tuple[BranchRef, Head]:
        """The ref and the newest head of a living branch, read anew.

        A ref without a manifest that lives under its name was left by who died on the way.
        """
        for find in (first_life, find_branch):
            ref = find(self.objects, name)
            if ref is not None:
                head = read(self.manifest(ref.manifest_path))
                if lives_as(head.snapshot, name):
                    return ref, head
        raise branch_not_found(name, self.location.uri)

    def branch_of(self, ref: BranchRef, head: Head) -> Branch:
        """A branch whose ref and head are known."""
        return Branch(ref.name, self.manifest(ref.manifest_path), head, ref, clock=self.clock)

    def adopt(self, branch: Branch) -> None:
        """Keep a branch that was just created."""
        with self._opening:
            self._branches[branch.name] = branch

    def schema(self, digest: str) -> AcceptedSchema:
        """A schema by its hash; read once, verified against its name."""
        with self._opening:
            if digest not in self._schemas:
                content = self.objects.get(schema_object(digest), referenced=True) or b""
                if schema_hash(content) != digest:
                    raise CorruptionError(
                        f"the schema object {schema_object(digest)} does not match its name",
                        hint="restore it from a copy of the graph",
                    )
                catalog, source = from_ir(content)
                self.keep_schema(AcceptedSchema(hash=digest, source=source, catalog=catalog))
            return self._schemas[digest]

    def keep_schema(self, schema: AcceptedSchema) -> None:
        """Remember a schema so that it is not read again."""
        with self._opening:
            self._schemas[schema.hash] = schema

    def table(self, pin: TablePin) -> Table:
        """The table at exactly this version; two requests unless it is open already."""
        with self._lock:
            table = self._open.get(pin.name)
            if table is not None:
                self._open.move_to_end(pin.name)
                return table
        try:
            table = self.tables.open(pin.name)
        except CorruptionError as e:
            if not self._may_be_reclaimed(pin):
                raise
            raise NotFoundError(
                f"version {pin.name.version} of {pin.table_key} was reclaimed",
                kind=ErrorKind.HISTORY_RECLAIMED,
                hint="choose a newer state; tags keep commits from being reclaimed",
                details={"table_key": pin.table_key, "version": pin.name.version},
            ) from e
        self.keep_table(table)
        return table

    def _may_be_reclaimed(self, pin: TablePin) -> bool:
        """Whether a table that is not there may have gone with a cleanup: its manifest is missing,
        there was one, and no branch shows it."""
        with suppress(OmnigraphError):
            if self.objects.exists(pin.name.manifest):
                return False
            for branch in [*self._branches.values()]:
                if not branch.gone:
                    branch.refresh()
            heads = [b.head.snapshot for b in self._branches.values() if not b.gone]
            shown = any(pin.name in (p.name for p in head.pins.values()) for head in heads)
            return not shown and any(head.swept for head in heads)
        return False

    def keep_table(self, table: Table, *, instead_of: TablePin | None = None) -> None:
        """Keep an open table for the next reader of the same version.

        A writer's own older version makes room, unless another branch still shows it: its readers,
        if any, hold it themselves.
        """
        with self._lock:
            if instead_of is not None and not self._is_shared(instead_of):
                self._open.pop(instead_of.name, None)
            self._open[table.name] = table
            while len(self._open) > TABLES_OPEN_MAX:
                self._open.popitem(last=False)

    def _is_shared(self, pin: TablePin) -> bool:
        heads = [branch.head.snapshot for branch in list(self._branches.values())]
        return sum(head.pins.get(pin.table_key) == pin for head in heads) > 1

    def forget_table(self, path: str) -> None:
        """Drop open versions of a table whose Lance sessions saw what was never published."""
        with self._lock:
            for name in [n for n in self._open if n.path == path]:
                del self._open[name]

    def sync(self, names: list[str]) -> None:
        """Force files to disk when this graph promises that; else nothing."""
        root = self.location.local_path
        if self.durability is Durability.FSYNC and root is not None:
            sync_files(root, names)

    def sync_root(self) -> None:
        """Make the root's own name durable; for the moment after it was created."""
        root = self.location.local_path
        if self.durability is Durability.FSYNC and root is not None:
            sync_root(root)

    def discard(self, names: Sequence[str]) -> None:
        """Delete objects that nothing refers to. What fails is tried again with the next ones."""
        with self._lock:
            names, self._undeleted = [*self._undeleted, *names], []
        try:
            self.objects.delete(names)
        except OmnigraphError:
            with self._lock:
                self._undeleted = [*self._undeleted, *names][-UNDELETED_MAX:]

    def take_turn(self, what: str) -> bool:
        """Whether this is the first time for something that is done once per handle."""
        with self._lock:
            first = what not in self._turns
            self._turns.add(what)
            return first

    def later(self, work: Callable[[], None]) -> None:
        """Do housekeeping off the acknowledgement path; not at all when this is being closed."""
        with suppress(RuntimeError):
            task = self.pool.submit(work)
            with self._lock:
                self._settling = [t for t in self._settling if not t.done()] + [task]

    def settle(self) -> None:
        """Wait for work that runs off the acknowledgement path; its failures are harmless."""
        with self._lock:
            tasks, self._settling = self._settling, []
        for task in tasks:
            task.exception()

    def before_close(self, what: str, work: Callable[[], None]) -> None:
        """Do something once, at the end; for what need not be done after every write."""
        with self._lock:
            self._last[what] = work

    def close(self) -> None:
        """Finish running writes and housekeeping, and stop the threads."""
        with self.write_lock:
            with self._lock:
                last, self._last = self._last, {}
            for work in last.values():
                self.later(work)
            self.settle()
            self.pool.shutdown(wait=True)
