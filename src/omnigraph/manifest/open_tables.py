"""Versions of tables that are open: opened once, kept for the next reader, up to a number.

pin -> [open tables] -> table
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from threading import Lock

from omnigraph.errors import CorruptionError, ErrorKind, NotFoundError, OmnigraphError
from omnigraph.manifest.branches import OpenBranches
from omnigraph.manifest.snapshot import TablePin
from omnigraph.storage.names import TableVersion
from omnigraph.storage.objects import Objects
from omnigraph.storage.staging import TableStore
from omnigraph.storage.tables import Table

TABLES_OPEN_MAX = 256


class OpenTables:
    """A cache of opened versions, the least recently used first."""

    def __init__(self, store: TableStore, objects: Objects, branches: OpenBranches) -> None:
        self._store = store
        self._objects = objects
        self._branches = branches
        self._open: OrderedDict[TableVersion, Table] = OrderedDict()
        self._begun: dict[TableVersion, Future[Table]] = {}
        """Versions that are being opened: a thread that asks for one of them waits."""
        self._lock = Lock()

    def __iter__(self) -> Iterator[TableVersion]:
        with self._lock:
            return iter(list(self._open))

    def has(self, pin: TablePin) -> bool:
        """Whether a version is open, or being opened."""
        with self._lock:
            return pin.name in self._open or pin.name in self._begun

    def begin(self, pin: TablePin) -> None:
        """Begin to open a version that will be asked for."""

        def opened() -> None:
            with suppress(OmnigraphError):  # The read that needs it says so.
                self.get(pin)

        if not self.has(pin):
            self._objects.beside(opened)

    def get(self, pin: TablePin) -> Table:
        """The table at exactly this version; two requests unless it is open already."""
        with self._lock:
            table = self._open.get(pin.name)
            if table is not None:
                self._open.move_to_end(pin.name)
                return table
            begun, mine = self._begun.get(pin.name), Future[Table]()
            if begun is None:
                self._begun[pin.name] = mine
        if begun is not None:
            try:
                return begun.result()
            except CancelledError:
                return self._opened(pin)
        try:
            table = self._opened(pin)
            mine.set_result(table)
        except Exception as e:
            mine.set_exception(e)
            raise
        except BaseException:
            mine.cancel()  # The others were not interrupted.
            raise
        finally:
            with self._lock:
                del self._begun[pin.name]
        return table

    def _opened(self, pin: TablePin) -> Table:
        try:
            table = self._store.open(pin.name)
        except CorruptionError as e:
            if not self._may_be_reclaimed(pin):
                raise
            raise NotFoundError(
                f"version {pin.name.version} of {pin.table_key} was reclaimed",
                kind=ErrorKind.HISTORY_RECLAIMED,
                hint="choose a newer state; tags keep commits from being reclaimed",
                details={"table_key": pin.table_key, "version": pin.name.version},
            ) from e
        self.keep(table)
        return table

    def keep(self, table: Table, *, instead_of: TablePin | None = None) -> None:
        """Keep an open table for the next reader of the same version.

        A writer's own older version makes room, unless another branch still shows it: its readers,
        if any, hold it themselves.
        """
        is_shared = instead_of is not None and self._is_shared(instead_of)
        with self._lock:
            if instead_of is not None and not is_shared:
                self._open.pop(instead_of.name, None)
            self._open[table.name] = table
            while len(self._open) > TABLES_OPEN_MAX:
                self._open.popitem(last=False)

    def forget(self, path: str) -> None:
        """Drop open versions of a table whose Lance sessions saw what was never published."""
        with self._lock:
            for name in [n for n in self._open if n.path == path]:
                del self._open[name]

    def _is_shared(self, pin: TablePin) -> bool:
        heads = [branch.head.snapshot for branch in self._branches.living()]
        return sum(head.pins.get(pin.table_key) == pin for head in heads) > 1

    def _may_be_reclaimed(self, pin: TablePin) -> bool:
        """Whether a table that is not there may have gone with a cleanup: its manifest is missing,
        there was one, and no branch shows it."""
        with suppress(OmnigraphError):
            if self._objects.exists(pin.name.manifest):
                return False
            for branch in self._branches.living():
                branch.refresh()
            heads = [branch.head.snapshot for branch in self._branches.living()]
            shown = any(pin.name in (p.name for p in head.pins.values()) for head in heads)
            return not shown and any(head.swept for head in heads)
        return False
