"""An open graph: its objects, tables, schemas and branch heads, shared by readers and writers.

It resolves names to values (a branch to its head, a hash to a schema, a pin to a table); what was
resolved is kept by ``branches``, ``schemas`` and ``open_tables``. It decides nothing and publishes
nothing.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Any

from omnigraph.clock import Clock, SystemClock
from omnigraph.ids import IdSource, SystemIds
from omnigraph.manifest.background import Background
from omnigraph.manifest.branches import Branch, OpenBranches
from omnigraph.manifest.lineage import Lineage
from omnigraph.manifest.open_tables import OpenTables
from omnigraph.manifest.schemas import AcceptedSchema, Schemas
from omnigraph.manifest.snapshot import MAIN, TablePin
from omnigraph.manifest.store import Head, ManifestStore
from omnigraph.manifest.sweeps import Sweeps
from omnigraph.manifest.turns import Turns
from omnigraph.storage.location import Location
from omnigraph.storage.mirror import Mirror
from omnigraph.storage.objects import Objects, sync_files, sync_root
from omnigraph.storage.staging import TableStore
from omnigraph.storage.tables import Table


class Durability(StrEnum):
    """What an acknowledged write survives (docs/guide/durability.md)."""

    PROCESS = "process"
    """A crash of the process. The operating system writes the files out in its own time."""
    FSYNC = "fsync"
    """A crash of the machine: everything is synced before the write is acknowledged."""


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
        self.schemas = Schemas(self.objects)
        self.branches = OpenBranches(
            self.objects,
            location.uri,
            self.clock,
            ahead=lambda snapshot: self.schemas.get(snapshot.schema_hash),
        )
        self.open_tables = OpenTables(self.tables, self.objects, self.branches)
        self.lineage = Lineage(self.branches.manifest)
        self.background = Background(self.objects)
        self.turns = Turns[Any, Any]()
        """The writes of this handle that wait; ``write/publish.py`` says what they are."""

    @property
    def seems_moved(self) -> bool:
        """Whether mirrors were made at another place, by the hint that was read at opening."""
        place = self.branch(MAIN).store.mirrors_at
        return place is not None and not self.location.is_at(place)

    @cached_property
    def sweeps(self) -> Sweeps:
        """What cleanups have recorded."""
        return Sweeps(self.objects)

    @cached_property
    def mirror(self) -> Mirror:
        """Makes versions that other programs read."""
        return Mirror(self.location, self.objects)

    def manifest(self, path: str) -> ManifestStore:
        """The manifest dataset of one life of a branch."""
        return self.branches.manifest(path)

    def branch(self, name: str) -> Branch:
        """A branch by name."""
        return self.branches.open(name)

    def head(self, name: str) -> Head:
        """The newest head of a branch, whatever became of its name."""
        return self.branches.head(name)

    def schema(self, digest: str) -> AcceptedSchema:
        """A schema by its hash."""
        return self.schemas.get(digest)

    def accept(self, schema: AcceptedSchema) -> None:
        """Write a schema's objects; they do no harm if nothing follows."""
        objects = schema.objects()
        writing = [self.background.pool.submit(self.objects.put, *o) for o in objects.items()]
        for task in writing:
            task.result()
        self.sync(list(objects))
        self.schemas.keep(schema)

    def table(self, pin: TablePin) -> Table:
        """A table at exactly the version of a pin."""
        return self.open_tables.get(pin)

    def table_if(self, pin: TablePin | None) -> Table | None:
        """The same where there may be no table."""
        return self.open_tables.get(pin) if pin is not None else None

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

    def close(self) -> None:
        """Finish running writes and work beside them, and stop the threads."""
        with self.turns.held:
            self.background.close()
            self.objects.close()
