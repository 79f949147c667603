"""Published tables for every Lance program: ``tables/<Type>.lance``.

    version of a table -> its list of files -> [mirror] -> a Lance dataset that refers to them

A mirror is a dataset of its own that holds no rows: each of its versions lists the files of one
published version of a table, by a base path. Its folder is apart from the table's, because Lance
rebases whatever is committed on a table onto the versions that it finds there (ADR 0017). So
another program that writes here can neither change the graph nor delete a file of it.

A version is staged as those of tables are and then created under Lance's own name, if that is free:
of many that try, one succeeds, and nothing is ever put over what another program made. A version of
ours says in its message what it shows. If the newest one does not, the mirror *drifts*: this leaves
it alone, and ``upkeep/repair.py`` decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from threading import Lock
from typing import Any

from lance import DatasetBasePath, LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import DeletionFile, FragmentMetadata

from omnigraph.errors import ErrorKind
from omnigraph.storage.faults import is_missing, translate, translated
from omnigraph.storage.location import Location
from omnigraph.storage.names import ManifestFile, TableVersion, manifest_name, version_of
from omnigraph.storage.namespace import StagingNamespace
from omnigraph.storage.objects import Objects
from omnigraph.storage.reach import transaction_base
from omnigraph.storage.records import open_newest
from omnigraph.storage.tables import Table

FOLDER = "tables"
VERSIONS_KEPT = 8
"""Versions of a mirror that stay for readers that opened one just before the next came."""
_BASE = 1
_MESSAGE = "__lance_commit_message"
_STAMP = "omnigraph shows "
_STAGED_NAME = re.compile(r"(\d{20}\.manifest)-.+")
_RACES_MAX = 8


class MirrorState(StrEnum):
    """What a plain reader of a table finds, compared with what the graph shows."""

    CURRENT = "current"
    LAGGING = "lagging"
    """Another version than the one that is shown, or none."""
    DRIFTED = "drifted"
    """A version that another program made, or that cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorHead:
    """The newest version that a plain reader of a table finds."""

    version: int | None
    """A number of the mirror's own; None if there is none, or it cannot be read."""
    state: MirrorState
    shown: TableVersion | None = None
    """What it shows; None if it is not one of ours."""
    elsewhere: str | None = None
    """The table that it refers to, if that is at another place: the graph was moved, or copied."""


def mirror_path(type_name: str) -> str:
    """Where the mirror of a type's table is, from the root."""
    return f"{FOLDER}/{type_name}.lance"


class _Unreadable(Exception):
    """The newest version of a mirror is damaged: the store answers, Lance cannot read it."""


def _read(location: Location, path: str) -> LanceDataset | None:
    """The newest version of a mirror; None without any."""
    try:
        return open_newest(location, path)
    except (OSError, ValueError) as e:
        if translate(e, f"opening {path}").kind is ErrorKind.STORAGE_UNKNOWN:
            raise _Unreadable from e
        raise


def shown_by(mirror: LanceDataset) -> TableVersion | None:
    """The version of a table that a version of a mirror shows; None if it is not one of ours."""
    try:
        transaction = mirror.read_transaction(mirror.version)
    except (OSError, ValueError) as e:
        if is_missing(e):
            return None
        raise
    properties = (transaction.transaction_properties if transaction is not None else None) or {}
    message = properties.get(_MESSAGE, "")
    if not message.startswith(_STAMP):
        return None
    try:
        return TableVersion(**json.loads(message.removeprefix(_STAMP)))
    except (ValueError, TypeError):
        return None


def mirror_head(location: Location, path: str, shown: TableVersion) -> MirrorHead:
    """What a plain reader finds of a table of which the graph shows this version."""
    with translated(f"looking at {path}"):
        try:
            mirror = _read(location, path)
        except _Unreadable:
            return MirrorHead(version=None, state=MirrorState.DRIFTED)
        if mirror is None:
            return MirrorHead(version=None, state=MirrorState.LAGGING)
        found = shown_by(mirror)
        if found is None:
            state = MirrorState.DRIFTED
        elif found == shown and _refers_to(mirror, location, shown.path):
            state = MirrorState.CURRENT
        else:
            state = MirrorState.LAGGING
        elsewhere = _elsewhere(mirror, location, found.path) if found is not None else None
        return MirrorHead(version=mirror.version, state=state, shown=found, elsewhere=elsewhere)


class Mirror:
    """Makes versions of mirrors."""

    def __init__(self, location: Location, objects: Objects) -> None:
        self._location = location
        self._objects = objects
        self.turn = Lock()
        """Held while mirroring: more than one at a time would only get into each other's way."""

    def make(self, path: str, now: Callable[[], Table | None]) -> MirrorHead:
        """Let a plain reader find what the graph shows, unless another program has been there.

        ``now`` opens that, or says that there is none. It is called once it is known what a reader
        finds: so what is put in its place is never older.
        """
        with translated(f"mirroring {path}"):
            for _ in range(_RACES_MAX):
                try:
                    mirror = _read(self._location, path)
                except _Unreadable:
                    return MirrorHead(version=None, state=MirrorState.DRIFTED)
                found = shown_by(mirror) if mirror is not None else None
                if mirror is not None and found is None:
                    return MirrorHead(version=mirror.version, state=MirrorState.DRIFTED)
                shown = now()
                if shown is None:
                    if self._remove(path, mirror):
                        return MirrorHead(version=None, state=MirrorState.CURRENT)
                    continue
                version = mirror.version if mirror is not None else None
                if mirror is None or found != shown.name or not self._is_of(mirror, shown):
                    version = self._next(path, mirror, shown)
                if version is not None:
                    return MirrorHead(version=version, state=MirrorState.CURRENT, shown=shown.name)
        return MirrorHead(version=None, state=MirrorState.LAGGING)

    def put_back(self, path: str, version: int | None, shown: Table) -> bool:
        """Show the graph's version again instead of one that another program made.

        None stands for one that cannot be read. False if that one is not the newest any more.
        """
        with translated(f"mirroring {path}"):
            try:
                mirror = _read(self._location, path)
            except _Unreadable:
                if version is not None:
                    return False
                self._delete(list(self._objects.names(path)))
                return self._next(path, None, shown) is not None
            if mirror is None or mirror.version != version:
                return False
            return self._next(path, mirror, shown) is not None

    def _remove(self, path: str, seen: LanceDataset | None) -> bool:
        """Take a mirror away, unless there is a newer version than was seen.

        What comes after this has looked stays: only names that it saw are deleted.
        """
        names = list(self._objects.names(path))
        if _newest(names) != (seen.version if seen is not None else 0):
            return False
        self._delete(names)
        return True

    def _delete(self, names: list[str]) -> None:
        """Newest versions first: a reader finds an older one, or none."""
        self._objects.delete(sorted(names, key=lambda name: ("/_versions/" not in name, name)))

    def _is_of(self, mirror: LanceDataset, shown: Table) -> bool:
        return _refers_to(mirror, self._location, shown.name.path)

    def _next(self, path: str, mirror: LanceDataset | None, shown: Table) -> int | None:
        """Make the next version; its number, or None if another process was faster."""
        if mirror is not None and not (self._is_of(mirror, shown) and _can_follow(mirror, shown)):
            if not self._remove(path, mirror):
                return None
            mirror = None
        last = mirror.version if mirror is not None else 0
        space = self._space(path, last)
        try:
            current = space.opened(last) if last else self._begun(path, space, shown)
            made = space.commit(
                current,
                _replacing(current, _referring(shown.dataset)),
                commit_message=_STAMP + json.dumps(asdict(shown.name), separators=(",", ":")),
            )
        except (CommitConflictError, OSError, ValueError):
            if _newest(self._objects.names(f"{path}/_versions")) != last:
                return None
            raise
        staged = [self._location.relative(manifest.path) for manifest in space.made_since(last)]
        # Rebased onto a version that came in between, or simply too late.
        in_time = made.version == current.version + 1
        done = in_time and self._create(path, made.version, staged[-1])
        self._objects.delete([*staged, *(self._outdated(path, made.version) if done else ())])
        return made.version if done else None

    def _begun(self, path: str, space: StagingNamespace, shown: Table) -> LanceDataset:
        """A version without rows. It is made twice: the first one numbers its columns anew."""
        base = self._location.table_uri(shown.name.path)
        known = DatasetBasePath(base, name="graph", is_dataset_root=True, id=_BASE)
        columns = shown.dataset.lance_schema
        first = space.commit(
            self._location.table_uri(path),
            LanceOperation.Overwrite(columns, [], initial_bases=[known]),
        )
        return space.commit(first, LanceOperation.Overwrite(columns, []))

    def _create(self, path: str, version: int, staged: str) -> bool:
        content = self._objects.get(staged, referenced=True) or b""
        return self._objects.create(manifest_name(path, version), content)

    def _outdated(self, path: str, newest: int) -> list[str]:
        """Versions that are not needed any more, with what was written for them."""
        first, gone = newest + 1 - VERSIONS_KEPT, list[str]()
        for name in self._objects.names(path):
            base = transaction_base(name)
            # A process that died before its version was created, or lost it to another, leaves one.
            version = version_of(_STAGED_NAME.sub(r"\1", name)) if base is None else base + 1
            if version is not None and version < first:
                gone.append(name)
        return gone

    def _space(self, path: str, last: int) -> StagingNamespace:
        """Where the version after the last one is staged."""
        location, versions = self._location, dict[int, ManifestFile]()
        if last:
            name = location.absolute(manifest_name(path, last))
            versions[last] = ManifestFile(path=name, size=None)
        return StagingNamespace(location.table_uri(path), versions, location)


def _newest(names: Iterable[str]) -> int:
    return max((v for v in map(version_of, names) if v is not None), default=0)


def _elsewhere(mirror: LanceDataset, location: Location, path: str) -> str | None:
    """What a mirror refers to, if that is not below the root of the graph."""
    found = mirror.base_paths().get(_BASE)
    return None if found is None or _is_below(found.path, location, path) else found.path


def _refers_to(mirror: LanceDataset, location: Location, path: str) -> bool:
    """Whether a mirror refers to the table that is meant; a graph may have been moved, or copied.

    A base path cannot be changed once it is registered.
    """
    found = mirror.base_paths().get(_BASE)
    return found is not None and _is_below(found.path, location, path)


def _is_below(base: str, location: Location, path: str) -> bool:
    """Whether a base path is that of a table of a graph, by whichever way to its root."""
    base, table = base.rstrip("/"), f"/{path}"
    return base.endswith(table) and location.is_at(base.removesuffix(table))


def _can_follow(mirror: LanceDataset, shown: Table) -> bool:
    """Whether the next version of a mirror can show this; else it begins anew.

    Columns are changed by other operations than rows, and a part that had the number 0 would get
    another one, by which its deleted rows are not found.
    """
    if columns_of(mirror) != columns_of(shown.dataset):
        return False
    old = {part.fragment_id for part in mirror.get_fragments()}
    return 0 in old or all(part.fragment_id != 0 for part in shown.dataset.get_fragments())


def columns_of(dataset: LanceDataset) -> list[Any]:
    """Columns with their numbers: one of the same name may have come instead of another."""
    return [_column(field) for field in dataset.lance_schema.fields()]


def _column(field: Any) -> tuple[Any, ...]:
    children = [_column(child) for child in field.children()]
    return field.id(), field.name(), str(field.to_arrow()), children


def _referring(table: LanceDataset) -> list[FragmentMetadata]:
    """The files of a table as those of another dataset that refers to them."""
    found = [part.metadata for part in table.get_fragments()]
    for part in found:
        for file in part.files:
            file.base_id = _BASE
        gone: Any = part.deletion_file
        if gone is not None:
            part.deletion_file = DeletionFile(
                gone.read_version, gone.id, gone.file_type, gone.num_deleted_rows, _BASE
            )
        part.row_id_meta = None
        part.created_at_version_meta = None
        part.last_updated_at_version_meta = None
    return found


def _replacing(mirror: LanceDataset, parts: list[FragmentMetadata]) -> LanceOperation.Update:
    """The change that makes these the parts of a mirror; their numbers stay what they are."""
    old = {part.fragment_id for part in mirror.get_fragments()}
    return LanceOperation.Update(
        removed_fragment_ids=sorted(old - {part.id for part in parts}),
        updated_fragments=[part for part in parts if part.id in old],
        new_fragments=[part for part in parts if part.id not in old],
    )
