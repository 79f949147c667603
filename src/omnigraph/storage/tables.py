"""Tables: reading a pinned version, and staging a new one that nobody can see.

    plan -> [tables: write files, commit into the staging namespace, pin] -> publish

A ``Table`` is one version of one Lance dataset, opened by the exact path of its manifest. Staging
gives a new ``Table`` that its maker can read at once (read-your-writes) and others never find: its
name becomes known only through a publish. Nothing here moves a dataset's HEAD.
"""

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
from omnigraph.storage.columns import ColumnCache, ColumnPart, among, few_chunks, seeded_columns
from omnigraph.storage.faults import translated
from omnigraph.storage.files import data_files, index_folders
from omnigraph.storage.layout import Fragment, Layout, Offsets, Positions
from omnigraph.storage.location import Location
from omnigraph.storage.names import TABLE_ID, ManifestFile, TableVersion
from omnigraph.storage.objects import Objects
from omnigraph.storage.physical import FILE_FORMAT, physical_schema, physical_table
from omnigraph.storage.removal import deletion, live_offsets
from omnigraph.storage.replacing import identify, match, replacement, row_ids
from omnigraph.storage.rows import is_blob, read_rows
from omnigraph.storage.sessions import Succession, in_own_session, own_session, verify_indexes

if TYPE_CHECKING:
    from omnigraph.storage.namespace import StagingNamespace

FOUND_VALUES_MAX = 10_000
"""Up to so many values are looked up in an index; for more the whole column is read."""
CACHE_BYTES_MAX = 256 << 20
SEED_ROWS_MAX = 10_000
"""Rows of a write up to which its key columns are put into the column cache right away."""
REMOVED_KNOWN_MAX = 16
"""Up to so many removed rows are cut out of known columns; else columns are narrowed on demand."""
BULK_BYTES_MIN = 4 << 20
BULK_WRITERS_MAX = 2
"""Large tables are written two at a time: each writer buffers pages of all its columns."""


class Table:
    """One immutable version of one table."""

    def __init__(
        self,
        name: TableVersion,
        dataset: LanceDataset,
        space: StagingNamespace,
        cache: ColumnCache,
        objects: Objects | None = None,
        *,
        since: int | None = None,
    ) -> None:
        self.name = name
        self.since = name.version if since is None else since
        """The version that staging began with; what came after it nobody has seen."""
        self.dataset = dataset
        self.space = space
        self._cache = cache
        self._objects = objects
        self.succession = Succession()
        self._known: dict[str, pa.ChunkedArray] = {}
        """Whole columns of this version, while they are small enough to keep."""
        self._live: dict[int, Offsets] = {}
        """Live rows of fragments that have deletions."""

    def files_since(self, base: Table | None) -> list[str]:
        """Data and deletion files and folders of indexes that this version has and ``base`` has
        not, from the root."""
        known = base.files_since(None) if base is not None else []
        path, dataset = self.name.path, self.dataset
        files = {*data_files(path, dataset), *index_folders(path, dataset)}
        return sorted(files - set(known))

    @property
    def row_count(self) -> int:
        """Live rows; from metadata alone."""
        with translated(f"counting rows of {self.name.path}", referenced=True):
            return self.dataset.count_rows()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Rows in storage order, blobs as plain bytes."""
        with translated(f"scanning {self.name.path}", referenced=True):
            yield from self.dataset.scanner(
                columns=list(columns) if columns is not None else None,
                blob_handling="all_binary",
                scan_in_order=True,
            ).to_batches()

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Whole columns: those this version knows already, others through the cache of files."""
        missing = [name for name in names if name not in self._known]
        known = self._known | (self._read_columns(missing) if missing else {})
        if missing and self._fits_cache(len(missing)):
            self._known = known
        schema = pa.schema([self.dataset.schema.field(n) for n in names])
        return pa.table([known[name] for name in names], schema=schema)

    def follow(self, base: Table | None, gone: Positions, added: Sequence[StagedFiles]) -> None:
        """Know what ``base`` knew without the rows that went and with those that came.

        So a warm writer reads nothing of its own back: its next check costs the same whatever the
        number of fragments.
        """
        if base is None:
            return
        if len(gone):
            self._live = base._live | base.layout.live_without(gone)
        tables = [files.rows for files in added]
        if len(gone) > REMOVED_KNOWN_MAX or any(rows is None for rows in tables):
            return
        edges = [-1, *gone.tolist(), base.row_count]
        for name, column in base._known.items():
            chunks: list[pa.Array] = []
            for before, after in pairwise(edges):
                chunks += column.slice(before + 1, after - before - 1).chunks
            for rows in tables:
                chunks += rows[name].chunks if rows is not None else []
            self._known[name] = few_chunks([c for c in chunks if len(c)], column.type)

    def knowing(self, same: Table) -> Table:
        """Know what another handle of the same version knows."""
        self._known, self._live = dict(same._known), dict(same._live)
        return self

    def column_id(self, name: str) -> str:
        """What a column is, whatever it is called: another may have its name in other versions."""
        return self._column_ids.get(name, name)

    @cached_property
    def _column_ids(self) -> Mapping[str, str]:
        fields = self.dataset.lance_schema.fields()
        return {f.name(): f"{f.id()} {self.dataset.schema.field(f.name()).type}" for f in fields}

    @cached_property
    def layout(self) -> Layout:
        """Where the rows lie; from metadata alone, but for files that say what was deleted."""
        fragments = [Fragment.of(f.metadata) for f in self.dataset.get_fragments()]
        return Layout(fragments, self._live_offsets)

    def _live_offsets(self, fragment: Fragment) -> Offsets:
        if fragment.id not in self._live:
            with translated(f"reading deletions of {self.name.path}", referenced=True):
                self._live[fragment.id] = live_offsets(self.dataset, fragment, self._deletions)
        return self._live[fragment.id]

    def _deletions(self, name: str) -> bytes | None:
        if self._objects is None:
            return None
        return self._objects.get(f"{self.name.path}/{name}", referenced=True)

    def take(self, positions: Sequence[int] | Positions, columns: Sequence[str]) -> pa.Table:
        """Some rows by their positions, read from the files; blobs as plain bytes."""
        with translated(f"reading rows of {self.name.path}", referenced=True):
            places = np.asarray(positions, np.int64)
            return read_rows(self.dataset, places, columns, self.row_count)

    def positions(self, column: str, values: pa.Array) -> Positions:
        """Where ``column`` is one of ``values``, ascending."""
        if not self._fits_cache(1) and self._finds(column, values):
            rows = self.where(pc.field(column).isin(values), (column,))
            addresses = rows["_rowaddr"].to_numpy().astype(np.int64)
            return np.sort(self.layout.positions(addresses))
        found, start = [np.empty(0, np.int64)], 0
        for part in self._column_parts(column):
            mask = among(part, values)
            found.append(np.flatnonzero(mask.to_numpy(zero_copy_only=False)) + start)
            start += len(part)
        return np.concatenate(found)

    def positions_of(self, ids: pa.StringArray) -> Positions:
        """Where the rows stand that have these ids; every one must exist."""
        positions = self.positions("id", ids)
        if len(positions) != len(ids):
            raise InternalError(f"rows of {self.name.path} that are to be removed are not there")
        return positions

    def ids_at(self, positions: Positions) -> pa.Array | pa.ChunkedArray:
        """The ids of some rows."""
        if self._fits_cache(1):
            return self.columns(("id",)).column(0).take(pa.array(positions))
        return self.take(positions, ("id",)).column(0)

    def _finds(self, column: str, values: pa.Array) -> bool:
        """Whether an index finds these values, and sooner than a look through the column."""
        few = len(values) <= FOUND_VALUES_MAX and not values.null_count
        kind = self.dataset.schema.field(column).type
        exact = pa.types.is_string(kind) or pa.types.is_signed_integer(kind)
        return few and exact and self.takes_conditions and column in self.indexed_columns

    def _column_parts(self, column: str) -> Iterable[pa.Array]:
        """A column piece by piece: what is kept already, or streamed when it is too large."""
        if self._fits_cache(1):
            return self.columns((column,)).column(0).chunks
        return (batch.column(0) for batch in self.batches((column,)))

    def where(
        self, condition: pc.Expression, columns: Sequence[str], *, fragments: Sequence[int] = ()
    ) -> pa.Table:
        """Rows that Lance finds for a typed condition, with their addresses in ``_rowaddr``."""
        with translated(f"searching {self.name.path}", referenced=True):
            some = [self.dataset.get_fragment(f) for f in fragments]
            return self.dataset.scanner(
                columns=list(columns),
                filter=condition,
                fragments=some or None,
                with_row_address=True,
                scan_in_order=True,
            ).to_table()

    def among(self, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Rows whose ``column`` is one of ``values``, with their addresses in ``_rowaddr``."""
        if self.takes_conditions:
            return self.where(pc.field(column).isin(values), columns)
        positions = self.positions(column, values)
        addresses = pa.array(self.layout.addresses_at(positions))
        return self.take(positions, columns).append_column("_rowaddr", addresses)

    @cached_property
    def takes_conditions(self) -> bool:
        """Whether Lance accepts conditions: it refuses all on a table with lists of unsigned."""
        return not any(
            pa.types.is_list(field.type) and pa.types.is_unsigned_integer(field.type.value_type)
            for field in self.dataset.schema
        )

    @cached_property
    def indexed_columns(self) -> frozenset[str]:
        """Columns with an index that finds single values."""
        with translated(f"reading indexes of {self.name.path}", referenced=True):
            return frozenset(
                name
                for index in self.dataset.describe_indices()
                if index.index_type.upper() == "BTREE"
                for name in index.field_names
            )

    @property
    def reads(self) -> int:
        """Requests that reading this version has taken so far."""
        return int(self.dataset.io_stats_snapshot().read_iops)

    def fragment_columns(
        self, fragments: Sequence[Fragment], names: Sequence[str]
    ) -> list[list[pa.ChunkedArray]]:
        """Columns of the live rows of some fragments; only files not seen before are read."""
        with translated(f"reading columns of {self.name.path}", referenced=True):
            found = {f.id: [self._cached(f, name) for name in names] for f in fragments}
            missing = [f for f in fragments if any(c is None for c in found[f.id])]
            found |= self._read_fragments(missing, names)
        return [found[f.id] for f in fragments]

    def _cached(self, fragment: Fragment, name: str) -> pa.ChunkedArray | None:
        part = self._cache.get(fragment.files, self.column_id(name))
        return part.narrowed(self.layout.offsets(fragment)) if part is not None else None

    def _read_columns(self, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        parts = self.fragment_columns(self.layout.fragments, names)
        return {
            name: pa.chunked_array(
                [chunk for part in parts for chunk in part[i].chunks],
                self.dataset.schema.field(name).type,
            )
            for i, name in enumerate(names)
        }

    def lookup(self, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Rows whose ``column`` is one of ``values``, projected on ``columns``; blobs as bytes."""
        wanted = list(dict.fromkeys([column, *columns]))
        if any(is_blob(self.dataset.schema.field(name)) for name in columns):
            return self.take(self.positions(column, values), columns)
        if self._fits_cache(len(wanted)):
            table = self.columns(wanted)
            return table.filter(among(table[column], values)).select(list(columns))
        if self._finds(column, values):
            return self.where(pc.field(column).isin(values), columns).select(list(columns))
        found = [
            batch.filter(among(batch[column], values)).select(list(columns))
            for batch in self.batches(wanted)
        ]
        return pa.Table.from_batches(found) if found else self._empty(columns)

    def seed_cache(self, files: StagedFiles, names: Sequence[str]) -> None:
        """Remember key columns of rows this process wrote itself, so nobody reads them back."""
        if files.rows is None or files.rows.num_rows > SEED_ROWS_MAX:
            return
        row = 0
        for fragment in files.fragments:
            part = files.rows.slice(row, fragment.physical_rows)
            row += fragment.physical_rows
            key = tuple(file.path for file in fragment.files)
            for name in names:
                column = self.column_id(name)
                self._cache.put(key, column, ColumnPart(values=part[name], offsets=None))

    def _read_fragments(
        self, fragments: Sequence[Fragment], names: Sequence[str]
    ) -> dict[int, list[pa.ChunkedArray]]:
        if not fragments:
            return {}
        table = self.dataset.scanner(
            columns=list(names),
            fragments=[self.dataset.get_fragment(f.id) for f in fragments],
            scan_in_order=True,
        ).to_table()
        columns: dict[int, list[pa.ChunkedArray]] = {}
        row = 0
        for fragment in fragments:
            part = table.slice(row, fragment.live_rows)
            row += part.num_rows
            columns[fragment.id] = list(part.columns)
            offsets = self.layout.offsets(fragment)
            for name, column in zip(names, part.columns, strict=True):
                kept = ColumnPart(values=column, offsets=offsets)
                self._cache.put(fragment.files, self.column_id(name), kept)
        return columns

    def _fits_cache(self, column_count: int) -> bool:
        # 64 bytes a value is generous for keys; a table beyond half the cache is streamed instead.
        return self.row_count * column_count * 64 <= self._cache.bytes_max // 2

    def _empty(self, names: Sequence[str]) -> pa.Table:
        return pa.schema([self.dataset.schema.field(n) for n in names]).empty_table()


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTable:
    """A committed but unpublished version; ``pin`` makes its final name."""

    table: Table
    source: str
    """The manifest under its staging name, relative to the root."""
    passed: tuple[str, ...] = ()
    """Such names of versions on the way to this one, which nobody will ask for."""


class TableStore:
    """Opens and stages the tables of one graph."""

    def __init__(self, location: Location, objects: Objects) -> None:
        self._location = location
        self._objects = objects
        self._cache = ColumnCache(CACHE_BYTES_MAX)
        self._bulk = BoundedSemaphore(BULK_WRITERS_MAX)

    def open(self, name: TableVersion) -> Table:
        """A published version: one request."""
        manifest = ManifestFile(
            path=self._location.absolute(name.manifest), size=name.manifest_size
        )
        uri = self._location.table_uri(name.path)
        space = _namespace(uri, {name.version: manifest})
        with translated(f"opening {name.path} version {name.version}", referenced=True):
            # A session of its own: whose version it is continues in it, and nobody else.
            dataset = lance.dataset(
                namespace_client=space,
                table_id=TABLE_ID,
                version=name.version,
                storage_options=self._options,
                session=own_session(),
            )
        return Table(name, dataset, space, self._cache, self._objects)

    def write_files(self, path: str, rows: pa.Table, base: Table | None) -> StagedFiles:
        """Write rows as data files of a table; they belong to no version yet."""
        physical = physical_table(rows)
        bulk = self._bulk if rows.nbytes > BULK_BYTES_MIN else nullcontext()
        with bulk, translated(f"writing data files of {path}"):
            fragments = write_fragments(
                physical,
                self._location.table_uri(path) if base is None else base.dataset,
                schema=physical.schema,
                mode="create" if base is None else "append",
                data_storage_version=FILE_FORMAT,
                storage_options=self._options,
            )
        hit(FailPoint.STAGE_AFTER_FILES)
        return StagedFiles(fragments=tuple(fragments), rows=rows)

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
        """Commit changes in order on top of ``base``, where nobody can see it.

        ``first`` lays the files of the base out in another way; rows stay in their order.
        """
        uri = self._location.table_uri(path)
        base = origin = self._continued(base) if base is not None else None
        # A namespace of its own: if this attempt is lost, the base's lineage never saw it.
        space = base.space.fork() if base is not None else _namespace(uri, {})
        start = base.since if base is not None else 0
        if base is not None and first is not None:
            base = self._laid_out(base, space, first)
        current = base.dataset if base is not None else None
        moves = self._moves(path, base, changes) if base is not None else None
        with translated(f"staging {path}"):
            if base is not None and moves is not None and moves.replaces:
                operation = replacement(base.dataset, base.layout, moves.gone, moves.added)
                current = LanceDataset.commit(
                    base.dataset, operation, **self._managed(space), read_version=base.name.version
                )
            else:
                for change in changes:
                    current = self._commit(uri, space, current, change, schema, base, moves)
            if current is None or current.version == start:
                # The manifest of the base would be taken for one that nobody needs any more.
                raise InternalError(f"nothing to stage on {path}")
            verify_indexes(path, origin.dataset if origin else None, current, space.indexes_built)
        hit(FailPoint.STAGE_AFTER_COMMIT)
        made = space.staged(current.version)
        version = TableVersion(
            path=path,
            version=current.version,
            manifest=f"{path}/_graph/{name}.manifest",
            manifest_size=made.size or 0,
        )
        pinned = ManifestFile(path=self._location.absolute(version.manifest), size=made.size)
        on_the_way = space.settle(version.version, pinned, since=start)
        table = Table(version, current, space, self._cache, self._objects)
        for files in files_of(changes) if moves is None else moves.added:
            table.seed_cache(files, seeded_columns(files.rows, schema))
        if moves is not None:
            table.follow(base, moves.gone, moves.added)
        return StagedTable(
            table=table,
            source=self._location.relative(made.path),
            passed=tuple(self._location.relative(manifest.path) for manifest in on_the_way),
        )

    def reshaped(self, base: Table, how: Rework) -> Table:
        """A table in other columns, to write rows on; known to who stages and to nobody else."""
        space = base.space.fork()
        with translated(f"reshaping {base.name.path}"):
            dataset = how.commit(base.dataset, self._managed(space))
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
            dataset = in_own_session(base.dataset, self._opened_by(space))
        return Table(
            base.name, dataset, space, self._cache, self._objects, since=base.since
        ).knowing(base)

    def _laid_out(self, base: Table, space: StagingNamespace, how: Rework) -> Table:
        """The same rows in other files; known to who stages and to nobody else."""
        with translated(f"joining files of {base.name.path}"):
            dataset = how.commit(base.dataset, self._managed(space))
        name = replace(base.name, version=dataset.version)
        table = Table(name, dataset, space, self._cache, self._objects)
        table.follow(base, np.empty(0, np.int64), ())
        return table

    def pin(self, staged: StagedTable) -> None:
        """Give a staged version its unique final name.

        Opening a version by a path that does not end in ".manifest" makes Lance copy it to the
        canonical name, which would move the table's HEAD: so the publish names this copy.
        """
        self._objects.copy(staged.source, staged.table.name.manifest)
        hit(FailPoint.STAGE_AFTER_PIN)

    def _commit(
        self,
        uri: str,
        space: StagingNamespace,
        current: LanceDataset | None,
        change: Change,
        schema: pa.Schema,
        base: Table | None,
        moves: Moves | None,
    ) -> LanceDataset:
        managed = self._managed(space)
        if current is None:
            if not isinstance(change, (Append, Replace)):
                raise InternalError("the first change of a table must bring rows")
            return LanceDataset.commit(
                uri,
                LanceOperation.Overwrite(physical_schema(schema), list(change.files.fragments)),
                enable_stable_row_ids=True,
                **managed,
            )
        if isinstance(change, Rework):
            return change.commit(current, managed)
        managed["read_version"] = current.version
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
        return LanceDataset.commit(current, operation, **managed)

    def _moves(self, path: str, base: Table, changes: Sequence[Change]) -> Moves | None:
        """What changes of single rows come to; None for any other change."""
        if not all(isinstance(change, (Append, Upsert, Remove)) for change in changes):
            return None
        removed = [change.ids for change in changes if isinstance(change, Remove)]
        gone = [base.positions_of(pa.concat_arrays(removed))] if removed else []
        added: list[StagedFiles] = []
        for change in changes:
            if isinstance(change, Append):
                added.append(change.files)
            elif isinstance(change, Upsert):
                places, files = self._replacing(path, base, change.rows)
                gone.append(places)
                added += files
        return Moves(
            gone=np.sort(np.concatenate([np.empty(0, np.int64), *gone])),
            added=tuple(added),
            replaces=any(isinstance(change, Upsert) for change in changes),
        )

    def _replacing(
        self, path: str, base: Table, rows: pa.Table
    ) -> tuple[Positions, list[StagedFiles]]:
        """Write the rows of an upsert: those that replace others, and those that are new."""
        places = base.positions("id", rows.column("id").combine_chunks())
        found = match(rows, places, base.ids_at(places))
        files: list[StagedFiles] = []
        if len(places):
            replacing = self.write_files(path, found.replacing, base)
            with translated(f"reading {path}", referenced=True):
                identify(replacing.fragments, row_ids(base.dataset, places, base.row_count))
            files.append(replacing)
        if found.new.num_rows:
            files.append(self.write_files(path, found.new, base))
        return places, files

    def _managed(self, space: StagingNamespace) -> dict[str, Any]:
        return {
            "namespace_client": space,
            "table_id": TABLE_ID,
            "namespace_client_managed_versioning": True,
            "storage_options": self._options,
            "max_retries": 0,
        }

    def _opened_by(self, space: StagingNamespace) -> dict[str, Any]:
        managed = self._managed(space)
        del managed["max_retries"]
        return managed

    @property
    def _options(self) -> dict[str, str] | None:
        return dict(self._location.options) or None


def _namespace(uri: str, versions: dict[int, ManifestFile]) -> StagingNamespace:
    from omnigraph.storage.namespace import StagingNamespace

    return StagingNamespace(uri, versions)
