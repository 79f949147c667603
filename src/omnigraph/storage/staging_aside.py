"""Staging small changes of a table on a remote store: made aside, sent side by side.

    base, changes of rows -> [versions in a folder] -> data, deletions and manifests -> store

What a write changes is known here: the rows it brings, the places of those that go, and the
manifest of the version that it changes. So Lance makes the next version in a folder
(``aside.py``), and a write waits for the store once, however many files and tables it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from itertools import accumulate
from typing import Any

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.failpoints import FailPoint, hit
from omnigraph.storage.aside import Aside
from omnigraph.storage.changes import Append, Change, Moves, Remove, StagedFiles, Upsert
from omnigraph.storage.compact import Fold
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import FILE_FORMAT, physical_schema, physical_table
from omnigraph.storage.location import Location
from omnigraph.storage.moves import row_operations
from omnigraph.storage.names import ManifestFile, TableVersion, final_name
from omnigraph.storage.namespace import StagingNamespace, own_session, verify_indexes
from omnigraph.storage.objects import Objects
from omnigraph.storage.opened import MadeAside
from omnigraph.storage.staged import StagedTable
from omnigraph.storage.table_memory import ColumnCache, seeded_columns
from omnigraph.storage.tables import Table

SMALL_BYTES_MAX = 4 << 20
"""More is not written twice."""
CHAIN = 8
"""Versions that are made one after the other, of those that could all be made side by side."""
_FOLDERS = ("data", "_deletions")


class AsideStore:
    """Stages versions of tables on a remote store."""

    def __init__(self, location: Location, objects: Objects, cache: ColumnCache) -> None:
        self._location = location
        self._objects = objects
        self._cache = cache

    def writes(self, rows: pa.Table, base: Table | None) -> bool:
        """Whether rows are written here: few."""
        return self._goes_on(base) and rows.nbytes <= SMALL_BYTES_MAX

    def stages(
        self, base: Table | None, changes: Sequence[Change], first: object | None = None
    ) -> bool:
        """Whether a version is made here: all that happens to it are small changes of rows."""
        if not self._goes_on(base) or not changes:
            return False
        if base is None:
            return len(changes) == 1 and isinstance(changes[0], Append) and _is_small(changes[0])
        return isinstance(first, (Fold, type(None))) and all(map(_is_small, changes))

    def _goes_on(self, base: Table | None) -> bool:
        """Whether the store is remote, and has the version that is changed."""
        return not self._location.is_local and (base is None or not base.is_on_the_way)

    def write_files(self, path: str, rows: pa.Table, base: Table | None) -> StagedFiles:
        """Write rows as data files, which are on their way to the store."""
        with translated(f"writing data files of {path}"):
            aside = Aside()
            physical = physical_table(rows)
            fragments = write_fragments(
                physical,
                aside.uri if base is None else aside.open(base.name.version, base.manifest),
                schema=physical.schema,
                mode="create" if base is None else "append",
                data_storage_version=FILE_FORMAT,
            )
        sent = self._send(path, aside)
        return StagedFiles(fragments=tuple(fragments), rows=rows, sent=sent)

    def begin(self, path: str, change: Append, schema: pa.Schema, name: str) -> StagedTable:
        """The first version of a table."""
        files, aside = change.files, Aside()
        with translated(f"staging {path}"):
            current = aside.begin(
                LanceOperation.Overwrite(physical_schema(schema), list(files.fragments))
            )
        staged = self._named(path, aside, current, (files,), name, own_session())
        staged.table.memory.seed(files, seeded_columns(files.rows, schema))
        return staged

    def stage(
        self,
        path: str,
        base: Table,
        moves: Moves,
        schema: pa.Schema,
        name: str,
        first: Fold | None = None,
    ) -> StagedTable:
        """The version after ``base`` with some moves. ``first`` joins small files of the base."""
        aside, on = Aside(), base
        with translated(f"staging {path}"):
            opened = current = aside.open(base.name.version, base.manifest)
            if first is not None:
                fragments = [f for f in base.layout.fragments if f.id in set(first.group)]
                self._place_deletions(aside, base, [f.deletion for f in fragments])
                current = first.commit(current, aside)
                on = Table(base.name, current, base.space, self._cache, self._objects)
                on.memory.follow_files(base.memory)
            current = self._commit(aside, current, on, moves)
            verify_indexes(path, opened, current, frozenset())
        # One version goes on in the session of its base (docs/adr/0020).
        session = base.opened.session if base.succession.claim() else own_session()
        staged = self._named(path, aside, current, moves.added, name, session)
        for files in moves.added:
            staged.table.memory.seed(files, seeded_columns(files.rows, schema))
        staged.table.memory.follow(on.memory, moves.gone, moves.added)
        return staged

    def stage_each(
        self,
        path: str,
        base: Table,
        writes: Sequence[tuple[str, Moves]],
        schema: pa.Schema,
        pool: Executor,
        first: Fold | None = None,
    ) -> list[StagedTable]:
        """A version after each of some writes, of which no two touch the same row."""
        each = [moves for _, moves in writes]
        together = list(accumulate(each, Moves.and_then))

        def between(numbers: Sequence[int]) -> list[StagedTable]:
            """Versions that no write goes on from: a chain that begins with all before it."""
            aside, made = Aside(), list[StagedTable]()
            with translated(f"opening {path}"):
                opened = current = aside.open(base.name.version, base.manifest)
            for number in numbers:
                moves = each[number] if made else together[number]
                with translated(f"staging {path}"):
                    current = self._commit(aside, current, base, moves)
                    verify_indexes(path, opened, current, frozenset())
                name = writes[number][0]
                made.append(self._named(path, aside, current, moves.added, name, own_session()))
            return made

        numbers = range(len(writes) - 1)
        chains = [numbers[n : n + CHAIN] for n in numbers[::CHAIN]]
        last = pool.submit(self.stage, path, base, together[-1], schema, writes[-1][0], first=first)
        return [*(made for chain in pool.map(between, chains) for made in chain), last.result()]

    def pin(self, staged: StagedTable) -> None:
        """Put the manifest of a version under its name, and wait for its files."""
        if staged.manifest is not None:
            self._objects.put(staged.table.name.manifest, staged.manifest)
        for sent in staged.sent:
            sent.result()

    # -- one version -----------------------------------------------------------------------------

    def _commit(self, aside: Aside, current: LanceDataset, on: Table, moves: Moves) -> LanceDataset:
        touched = {f.deletion for f in on.layout.owners(moves.gone)}
        self._place_deletions(aside, on, list(touched))
        for operation in row_operations(current, on.layout, moves, in_two=False):
            current = aside.commit(current, operation)
        return current

    def _place_deletions(self, aside: Aside, base: Table, names: Sequence[str | None]) -> None:
        """Lance adds to the files that say what was deleted: those of the base have to be there."""
        for name in names:
            content = base.memory.deletions(name) if name is not None else None
            if name is not None and content is not None:
                aside.place(name, content)

    def _named(
        self,
        path: str,
        aside: Aside,
        current: LanceDataset,
        added: Sequence[StagedFiles],
        name: str,
        session: Any,
    ) -> StagedTable:
        hit(FailPoint.STAGE_AFTER_COMMIT)
        manifest = aside.manifest(current.version)
        version = TableVersion(
            path=path,
            version=current.version,
            manifest=final_name(path, name),
            manifest_size=len(manifest),
        )
        place = ManifestFile(path=self._location.absolute(version.manifest), size=len(manifest))
        space = StagingNamespace(
            self._location.table_uri(path),
            {version.version: place},
            self._location,
        )
        made = MadeAside(folder=aside, manifest=manifest, session=session)
        table = Table(version, current, space, self._cache, self._objects, aside=made)
        fresh = aside.take(*_FOLDERS)
        table.memory.know_deletions({n: c for n, c in fresh.items() if n.startswith("_deletions")})
        own = self._put(path, fresh)
        sent = [*own, *(task for files in added for task in files.sent)]
        return StagedTable(table=table, manifest=manifest, sent=tuple(sent))

    def _send(self, path: str, aside: Aside) -> tuple[Future[None], ...]:
        return self._put(path, aside.take(*_FOLDERS))

    def _put(self, path: str, files: dict[str, bytes]) -> tuple[Future[None], ...]:
        put: Callable[[str, bytes], None] = self._objects.put
        return tuple(
            self._objects.beside(partial(put, f"{path}/{name}", content))
            for name, content in files.items()
        )


def _is_small(change: Change) -> bool:
    match change:
        case Append(files=files):
            return files.rows is not None and files.rows.nbytes <= SMALL_BYTES_MAX
        case Upsert(rows=rows):
            return rows.nbytes <= SMALL_BYTES_MAX
        case Remove():
            return True
        case _:
            return False
