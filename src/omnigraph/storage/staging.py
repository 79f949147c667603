"""Opening tables, and staging new versions of them that no reader can see.

    plan -> [staging: write files, commit into the staging namespace, pin] -> publish

Staging gives a new ``Table`` that its maker can read at once (read-your-writes) and others never
find: its name becomes known only through a publish. Nothing here moves a dataset's HEAD.
"""

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import accumulate
from threading import BoundedSemaphore
from typing import Any

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from omnigraph.errors import InternalError
from omnigraph.failpoints import FailPoint, hit
from omnigraph.storage.changes import (
    Append,
    Change,
    Moves,
    Patch,
    Remove,
    Replace,
    Rework,
    StagedFiles,
    Upsert,
    files_of,
)
from omnigraph.storage.compact import Fold
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import FILE_FORMAT, Positions, physical_schema, physical_table
from omnigraph.storage.location import Location
from omnigraph.storage.moves import moves_of, row_operations
from omnigraph.storage.names import ManifestFile, TableVersion, final_name
from omnigraph.storage.namespace import StagingNamespace, access, own_session, verify_indexes
from omnigraph.storage.objects import Objects
from omnigraph.storage.row_changes import deletion, replacement_steps
from omnigraph.storage.rows import RowIds, listed_row_ids, row_ids
from omnigraph.storage.staged import StagedTable
from omnigraph.storage.staging_aside import AsideStore
from omnigraph.storage.table_memory import ColumnCache, seeded_columns
from omnigraph.storage.tables import Table

CACHE_BYTES_MAX = 256 << 20
BULK_BYTES_MIN = 4 << 20
REMOTE_CHAIN = 2
"""Versions that are made one after the other on a remote store, of those that could all be made
side by side."""
BULK_WRITERS_MAX = 2
"""Large files are written two at a time: each writer buffers pages of all its columns."""
FILE_ROWS = 1 << 20
"""Rows of a data file; what Lance takes by itself."""


class TableStore:
    """Opens and stages the tables of one graph."""

    def __init__(self, location: Location, objects: Objects) -> None:
        self._location = location
        self._objects = objects
        self._cache = ColumnCache(CACHE_BYTES_MAX)
        self._aside = AsideStore(location, objects, self._cache)
        self._bulk = BoundedSemaphore(BULK_WRITERS_MAX)

    def open(self, name: TableVersion) -> Table:
        """A published version: one request."""
        manifest = ManifestFile(
            path=self._location.absolute(name.manifest), size=name.manifest_size
        )
        space = self._space(name.path, {name.version: manifest})
        with translated(f"opening {name.path} version {name.version}", referenced=True):
            # A session of its own: only the lineage of this version continues in it.
            dataset = space.opened(name.version, session=own_session())
        return Table(name, dataset, space, self._cache, self._objects)

    def write_files(self, path: str, rows: pa.Table, base: Table | None) -> StagedFiles:
        """Write rows as data files of a table; they belong to no version yet."""
        if self._aside.writes(rows, base):
            files = self._aside.write_files(path, rows, base)
            hit(FailPoint.STAGE_AFTER_FILES)
            return files
        count = rows.num_rows
        if count <= FILE_ROWS:
            fragments = self._written(path, rows, base)
        else:
            # Lance writes one file after the other, and hardly more than one core has work.
            pieces = [rows.slice(start, FILE_ROWS) for start in range(0, count, FILE_ROWS)]
            with ThreadPoolExecutor(min(len(pieces), BULK_WRITERS_MAX)) as pool:
                written = list(pool.map(lambda piece: self._written(path, piece, base), pieces))
            fragments = [fragment for some in written for fragment in some]
        hit(FailPoint.STAGE_AFTER_FILES)
        return StagedFiles(fragments=tuple(fragments), rows=rows)

    def _written(self, path: str, rows: pa.Table, base: Table | None) -> list[Any]:
        """The fragments of some rows; one, unless they are very large."""
        physical = physical_table(rows)
        bulk = self._bulk if rows.nbytes > BULK_BYTES_MIN else nullcontext()
        with bulk, translated(f"writing data files of {path}"):
            return write_fragments(
                physical,
                self._location.table_uri(path) if base is None else base.dataset,
                schema=physical.schema,
                mode="create" if base is None else "append",
                max_rows_per_file=FILE_ROWS,
                data_storage_version=FILE_FORMAT,
                **access(self._location, path),
            )

    def stage(
        self,
        path: str,
        base: Table | None,
        changes: Sequence[Change],
        schema: pa.Schema,
        name: str,
        *,
        first: Rework | None = None,
    ) -> StagedTable:
        """Commit changes in order on top of ``base``, where no reader can see it.

        ``first`` lays the files of the base out in another way; rows stay in their order.
        """
        if self._aside.stages(base, changes, first):
            if base is None and isinstance(changes[0], Append):
                return self._aside.begin(path, changes[0], schema, name)
            moves = self._moves(path, base, changes) if base is not None else None
            if base and moves is not None and (first is None or isinstance(first, Fold)):
                return self._aside.stage(path, base, moves, schema, name, first)
        base = origin = self._continued(base) if base is not None else None
        # A namespace of its own: if this attempt is lost, the base's lineage never saw it.
        space = base.space.fork() if base is not None else self._space(path, {})
        start = base.since if base is not None else 0
        if base is not None and first is not None:
            base = self._laid_out(base, space, first)
        current = _begun_on(base, changes) if base is not None else None
        moves = self._moves(path, base, changes) if base is not None else None
        with translated(f"staging {path}"):
            if base is not None and moves is not None and moves.replaces:
                current = base.dataset
                in_two = self._location.is_local
                for operation in row_operations(current, base.layout, moves, in_two=in_two):
                    current = space.commit(current, operation)
            else:
                for change in changes:
                    current = self._commit(path, space, current, change, schema, base, moves)
            if current is None or current.version == start:
                # The manifest of the base would be taken for one that is no longer needed.
                raise InternalError(f"nothing to stage on {path}")
            verify_indexes(path, origin.facts if origin else None, current, space.indexes_built)
        staged = self._named(path, name, current, space, start)
        table = staged.table
        for files in files_of(changes) if moves is None else moves.added:
            table.memory.seed(files, seeded_columns(files.rows, schema))
        if moves is not None and base is not None:
            table.memory.follow(base.memory, moves.gone, moves.added)
        return staged

    def foreseen(
        self, base: Table, name: str, *, replaces: bool, first: Rework | None
    ) -> TableVersion:
        """The version that staging a change of single rows will make, but for its size."""
        steps = replacement_steps(base.layout, in_two=self._location.is_local) if replaces else 1
        return TableVersion(
            path=base.name.path,
            version=base.name.version + steps + (first is not None),
            manifest=final_name(base.name.path, name),
            manifest_size=None,
        )

    def stage_each(
        self,
        path: str,
        base: Table,
        writes: Sequence[tuple[str, Sequence[Change]]],
        schema: pa.Schema,
        pool: Executor,
        *,
        first: Rework | None = None,
    ) -> list[StagedTable]:
        """A version after each of some writes, given with the names of their versions.

        Each changes single rows, and no two the same. So what the first ones come to together can
        be said without the versions between them, and versions are made side by side in the threads
        of ``pool``. What a commit costs grows with the files it is given, what a chain of commits
        takes with the latency of the store: chains are long on a disk and short on a remote store.
        """
        found = list(pool.map(lambda write: self._moves(path, base, write[1]), writes))
        each = [moves for moves in found if moves is not None]
        if len(each) < len(writes):
            raise InternalError(f"changes of {path} that are not changes of single rows")
        if all(self._aside.stages(base, changes, first) for _, changes in writes) and (
            first is None or isinstance(first, Fold)
        ):
            names = [name for name, _ in writes]
            done = list(zip(names, each, strict=True))
            return self._aside.stage_each(path, base, done, schema, pool, first)
        base = self._continued(base)
        together = list(accumulate(each, Moves.and_then))

        def between(numbers: Sequence[int]) -> list[StagedTable]:
            """Versions that no write will go on from: a chain in a session of its own, which
            begins with all that the writes before it come to."""
            space = base.space.fork()
            with translated(f"opening {path}", referenced=True):
                current = space.in_own_session(base.facts)
            made: list[StagedTable] = []
            for number in numbers:
                moves = each[number] if made else together[number]
                current = self._moved(path, base, base, current, moves, space)
                made.append(self._named(path, writes[number][0], current, space.fork(), base.since))
            return made

        def newest() -> StagedTable:
            """The version that goes on; its rows keep their order if its files are joined."""
            space, moves = base.space.fork(), together[-1]
            on = self._laid_out(base, space, first) if first is not None else base
            current = self._moved(path, base, on, on.dataset, moves, space)
            staged = self._named(path, writes[-1][0], current, space, base.since)
            for files in moves.added:
                staged.table.memory.seed(files, seeded_columns(files.rows, schema))
            staged.table.memory.follow(on.memory, moves.gone, moves.added)
            return staged

        length = len(writes) if self._location.is_local else REMOTE_CHAIN
        numbers = range(len(writes) - 1)
        chains = [numbers[n : n + length] for n in numbers[::length]]
        last = pool.submit(newest)
        return [*(made for chain in pool.map(between, chains) for made in chain), last.result()]

    def _moved(
        self,
        path: str,
        base: Table,
        on: Table,
        current: LanceDataset,
        moves: Moves,
        space: StagingNamespace,
    ) -> LanceDataset:
        """The version after ``current`` with some moves, whose places are those of ``on``."""
        with translated(f"staging {path}"):
            in_two = self._location.is_local
            for operation in row_operations(current, on.layout, moves, in_two=in_two):
                current = space.commit(current, operation)
            verify_indexes(path, base.dataset, current, space.indexes_built)
        return current

    def _named(
        self, path: str, name: str, current: LanceDataset, space: StagingNamespace, start: int
    ) -> StagedTable:
        """A version that was made after ``start``, with the name that it will have."""
        hit(FailPoint.STAGE_AFTER_COMMIT)
        made = space.staged(current.version)
        version = TableVersion(
            path=path,
            version=current.version,
            manifest=final_name(path, name),
            manifest_size=made.size,
        )
        pinned = ManifestFile(path=self._location.absolute(version.manifest), size=made.size)
        on_the_way = space.settle(version.version, pinned, since=start)
        return StagedTable(
            table=Table(version, current, space, self._cache, self._objects),
            source=self._location.relative(made.path),
            passed=tuple(self._location.relative(manifest.path) for manifest in on_the_way),
        )

    def reshaped(self, base: Table, how: Rework) -> Table:
        """A table in other columns, to write rows on; known to the staging write alone."""
        space = base.space.fork()
        with translated(f"reshaping {base.name.path}"):
            dataset = how.commit(base.dataset, space)
        name = replace(base.name, version=dataset.version)
        return Table(name, dataset, space, self._cache, self._objects, since=base.name.version)

    def _continued(self, base: Table) -> Table:
        """A version as the next one of a lineage may be made on it: in a session that no other
        lineage goes on in. The first one takes that of the version itself.
        """
        if base.succession.claim():
            return base
        space = base.space.fork()
        with translated(f"opening {base.name.path} version {base.name.version}", referenced=True):
            dataset = space.in_own_session(base.facts)
        table = Table(base.name, dataset, space, self._cache, self._objects, since=base.since)
        table.memory.share(base.memory)
        return table

    def _laid_out(self, base: Table, space: StagingNamespace, how: Rework) -> Table:
        """The same rows in other files; known to the staging write alone."""
        with translated(f"joining files of {base.name.path}"):
            dataset = how.commit(base.dataset, space)
        name = replace(base.name, version=dataset.version)
        table = Table(name, dataset, space, self._cache, self._objects)
        table.memory.follow_files(base.memory)
        return table

    def pin(self, staged: StagedTable) -> None:
        """Give a staged version its unique final name.

        Opening a version by a path that does not end in ".manifest" makes Lance copy it to the
        canonical name, which would move the table's HEAD: so the publish names this copy.
        """
        if staged.source is None:
            self._aside.pin(staged)
        else:
            self._objects.copy(staged.source, staged.table.name.manifest)
        hit(FailPoint.STAGE_AFTER_PIN)

    def _commit(
        self,
        path: str,
        space: StagingNamespace,
        current: LanceDataset | None,
        change: Change,
        schema: pa.Schema,
        base: Table | None,
        moves: Moves | None,
    ) -> LanceDataset:
        if current is None:
            if not isinstance(change, (Append, Replace)):
                raise InternalError("the first change of a table must bring rows")
            return space.commit(
                self._location.table_uri(path),
                LanceOperation.Overwrite(physical_schema(schema), list(change.files.fragments)),
                enable_stable_row_ids=True,
            )
        if isinstance(change, Rework):
            return change.commit(current, space)
        match change:
            case Append(files=files):
                operation: Any = LanceOperation.Append(list(files.fragments))
            case Replace(files=files):
                # The files know columns by the numbers of this table, in whatever order those are.
                operation = LanceOperation.Overwrite(current.lance_schema, list(files.fragments))
            case Upsert():
                raise InternalError("rows of a table that has none cannot be replaced")
            case Patch():
                operation = LanceOperation.Update(
                    removed_fragment_ids=list(change.gone),
                    updated_fragments=list(change.marked),
                    new_fragments=list(change.added),
                )
            case Remove():
                if base is None or moves is None:
                    raise InternalError("rows of a table that has none cannot be removed")
                # Other changes of this write leave rows that go where they are: the addresses hold.
                operation = deletion(current, base.layout.addresses_at(moves.gone))
        return space.commit(current, operation)

    def _moves(self, path: str, base: Table, changes: Sequence[Change]) -> Moves | None:
        """What changes of single rows come to; None for any other change."""

        def write(rows: pa.Table) -> StagedFiles:
            return self.write_files(path, rows, base)

        def identities(places: Positions) -> RowIds:
            with translated(f"reading {path}", referenced=True):
                if base.is_remote:
                    return listed_row_ids(base.facts, base.layout.addresses_at(places))
                return row_ids(base.dataset, base.layout, places)

        return moves_of(base, changes, write, identities)

    def _space(self, path: str, versions: dict[int, ManifestFile]) -> StagingNamespace:
        location = self._location
        return StagingNamespace(location.table_uri(path), versions, location)


def _begun_on(base: Table, changes: Sequence[Change]) -> LanceDataset:
    """What the first change of a version is given: one that opens it anew does not need it open."""
    anew = bool(changes) and isinstance(changes[0], Rework) and changes[0].opens
    return base.facts if anew else base.dataset
