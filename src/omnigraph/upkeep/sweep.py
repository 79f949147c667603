"""The second half of a cleanup: what no kept state needs is found, and deleted.

    retained states -> mark: files that they reach -> [sweep] -> a row for every place

Place by place, each on its own: what one table's store refuses does not stop the others. Manifests
go before tables, so that a state which is going to lose its tables is not found any more. In a
table manifests go before files: nothing that can be found leads to something that is gone. Every
folder is listed once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from omnigraph.errors import ConflictError, CorruptionError, ErrorKind, OmnigraphError
from omnigraph.failpoints import FailPoint, hit
from omnigraph.housekeeping.intents import Intent
from omnigraph.housekeeping.mirror import type_name
from omnigraph.manifest.refs import BRANCHES, superseded
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, MAIN_PATH, ManifestPlace
from omnigraph.storage.mirror import MirrorState, mirror_head, mirror_path
from omnigraph.storage.names import TableVersion, version_of
from omnigraph.storage.objects import StoredObject
from omnigraph.storage.reach import table_files, transaction_base
from omnigraph.storage.streams import PARTS
from omnigraph.upkeep.retention import Retained

DELETE_BATCH = 500
OPEN_BATCH = 64
CLOCKS_APART_MAX_US = 86_400_000_000
"""By so much the clock of a machine and that of the store may differ."""
UNFINISHED_AGE_US = 600_000_000
"""A branch that is not finished after so long never will be."""
SCHEMAS = "_schema"
ABANDONED_AGE_US = 86_400_000_000
"""Rows of a DataFrame that were not loaded after so long never will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What was, or would be, removed in one place."""

    type_key: str
    """A table, or the manifest of a branch, or ``refs``, or ``schemas``, or ``parts``."""
    path: str
    bytes_removed: int = 0
    files_removed: int = 0
    old_versions_removed: int = 0
    error: str | None = None

    @property
    def is_table(self) -> bool:
        return self.path.startswith(("nodes/", "edges/"))

    @property
    def is_notable(self) -> bool:
        """Whether there is something to report."""
        return self.files_removed > 0 or self.error is not None

    def to_dict(self) -> dict[str, Any]:
        """As ``cleanup --json`` shows it."""
        facts: dict[str, Any] = {
            "type_key": self.type_key,
            "path": self.path,
            "bytes_removed": self.bytes_removed,
            "files_removed": self.files_removed,
            "old_versions_removed": self.old_versions_removed,
        }
        return facts | ({"error": self.error} if self.error is not None else {})

    def and_then(self, other: Cleaned) -> Cleaned:
        """Both together."""
        return replace(
            self,
            bytes_removed=self.bytes_removed + other.bytes_removed,
            files_removed=self.files_removed + other.files_removed,
            old_versions_removed=self.old_versions_removed + other.old_versions_removed,
        )


Progress = Callable[[int, int], None]
"""Places done, and how many there are."""

Mark = Callable[[Sequence[TableVersion]], Iterable[str]]
"""The files that versions of one table need, from the root."""


def mark_here(repository: Repository) -> Mark:
    """Mark in this process; several versions are opened at a time."""

    def files(name: TableVersion) -> list[str]:
        return list(table_files(repository.tables.open(name)))

    def mark(versions: Sequence[TableVersion]) -> Iterator[str]:
        waiting = iter(versions)
        while some := list(islice(waiting, OPEN_BATCH)):
            for task in [repository.background.pool.submit(files, name) for name in some]:
                yield from task.result()

    return mark


class Marks:
    """What tables need, found once for all passes of one cleanup."""

    def __init__(self, mark: Mark) -> None:
        self._mark = mark
        self._known: dict[str, tuple[frozenset[TableVersion], frozenset[str]]] = {}

    def needed(self, path: str, versions: Collection[TableVersion]) -> frozenset[str]:
        """The files of these versions of a table."""
        wanted = frozenset(versions)
        marked, files = self._known.get(path, (frozenset[TableVersion](), frozenset[str]()))
        if not marked <= wanted:  # A state was given up in between: what it needed counts no more.
            marked, files = frozenset[TableVersion](), frozenset[str]()
        if fresh := sorted(wanted - marked, key=lambda name: name.manifest):
            files = files.union(self._mark(fresh))
        self._known[path] = (wanted, files)
        return files


@dataclass(slots=True)
class _Found:
    """What lies in the folder of one table."""

    manifests: list[StoredObject] = field(default_factory=list[StoredObject])
    files: list[StoredObject] = field(default_factory=list[StoredObject])
    """Both: what goes."""


class Sweep:
    """One pass over everything that lies below the root, or over some tables alone."""

    def __init__(
        self,
        repository: Repository,
        kept: Retained,
        spared: Sequence[Intent],
        marks: Marks,
        *,
        cut_us: int,
        removes: bool,
    ) -> None:
        self._repository = repository
        self._objects = repository.objects
        self._kept = kept
        self._marks = marks
        self._cut_us = cut_us
        self._removes = removes
        self._spared_from_us = min(
            (intent.began_us - CLOCKS_APART_MAX_US for intent in spared), default=None
        )
        self._schemas: set[str] | None = set()
        """Schemas of all manifests that stay; None if one could not be read."""
        self.too_young = 0
        """Objects of tables that nothing needs, and that are left because they are young."""

    def run(self, progress: Progress | None, tables: Sequence[str] | None = None) -> list[Cleaned]:
        """Everything, or of all tables only some. Manifests first: see above."""
        if tables is None:
            tables = [path for kind in ("nodes", "edges") for path in self._objects.folders(kind)]
        steps: list[tuple[str, str, Callable[[str], Cleaned]]] = [
            *((self._branch_key(path), path, self._manifests) for path in self._kept.datasets),
            ("refs", BRANCHES, self._refs),
            ("schemas", SCHEMAS, self._unused_schemas),
            ("parts", PARTS, self._abandoned_parts),
            *((self._table_key(path), path, self._table) for path in tables),
        ]
        return self._run(steps, progress)

    def tables(self, keys: Mapping[str, str], progress: Progress | None = None) -> list[Cleaned]:
        """Some tables alone, by folder, with what to call them."""
        return self._run([(key, path, self._table) for path, key in keys.items()], progress)

    def _run(
        self,
        steps: Sequence[tuple[str, str, Callable[[str], Cleaned]]],
        progress: Progress | None,
    ) -> list[Cleaned]:
        found: list[Cleaned] = []
        for done, (key, path, step) in enumerate(steps):
            if progress is not None:
                progress(done, len(steps))
            try:
                found.append(replace(step(path), type_key=key))
            except OmnigraphError as e:
                found.append(Cleaned(type_key=key, path=path, error=e.message))
                if path in self._kept.datasets:
                    self._schemas = None
        if progress is not None:
            progress(len(steps), len(steps))
        return found

    def _table_key(self, path: str) -> str:
        """The newest name of a table; its folder if no state names it any more."""
        shown = self._kept.tables.get(path, {})
        return next(reversed(list(shown.values())), path)

    def _branch_key(self, path: str) -> str:
        name = self._kept.datasets[path].branch
        return path if path == MAIN_PATH or name is None else f"branch:{name}"

    # -- tables ----------------------------------------------------------------------------------

    def _table(self, path: str) -> Cleaned:
        found = self._look_at(path)
        if found.manifests or found.files:
            self._check_no_drift(path)
        # A version that can still be found has all its files, also if this process dies now.
        first = self._delete(path, found.manifests)
        hit(FailPoint.CLEANUP_BETWEEN_FILES)
        return first.and_then(self._delete(path, found.files))

    def _check_no_drift(self, path: str) -> None:
        """Raise ``ConflictError`` if another program changed a mirror that refers to this table.

        What it has made may rest on files that no state of the graph needs any more.
        """
        main = self._kept.heads.get(MAIN)
        pins = main.pins.values() if main is not None else ()
        for pin in pins:
            if pin.name.path == path:
                mirror = mirror_path(type_name(pin.table_key))
                head = mirror_head(self._repository.location, mirror, pin.name)
                if head.state is MirrorState.DRIFTED:
                    raise ConflictError(
                        f"drift_needs_repair: another program changed {mirror}, and nothing was "
                        "removed; run 'omnigraph repair'",
                        kind=ErrorKind.READ_SET_CONFLICT,
                    )

    def _look_at(self, path: str) -> _Found:
        """Everything in the folder of a table, in one listing.

        Raises ``CorruptionError`` if another program has made a version in it: what that needs is
        not known.
        """
        shown = self._kept.tables.get(path, {})
        needed = self._marks.needed(path, shown)
        versions = {name.version for name in shown}
        found = _Found()
        for entry in self._objects.entries(path):
            folder, _, file = entry.name.removeprefix(f"{path}/").partition("/")
            if folder == "_versions" and (version := version_of(file)) is not None:
                raise CorruptionError(
                    f"another program made version {version} in the folder of this table, and "
                    f"nothing was removed from it: look at {entry.name}, then delete it"
                )
            needless = not _is_needed(path, folder, file, needed, versions)
            goes = needless and self._may_go(entry)
            self.too_young += needless and not goes
            if goes:
                (found.manifests if folder == "_graph" else found.files).append(entry)
        return found

    # -- manifests -------------------------------------------------------------------------------

    def _manifests(self, path: str) -> Cleaned:
        versions = self._kept.datasets[path]
        if versions.branch is None and self._is_unfinished(path):
            return self._delete(path, self._objects.entries(path))
        keep = self._kept.kept_manifests(path, self._cut_us)
        needed: set[str] = set()
        places = [ManifestPlace(path=path, version=v) for v in sorted(keep & set(versions.written))]
        self._kept.states.look_at(places)
        for place in places:
            state = self._kept.states.at(place)
            if state is None:
                continue  # Another cleanup was faster.
            needed.update(state.files)
            if self._schemas is not None:
                self._schemas.add(state.schema_hash)
        rest: list[StoredObject] = []
        empty: list[StoredObject] = []
        for entry in self._objects.entries(path):
            if not self._may_go(entry):
                continue
            folder, _, file = entry.name.removeprefix(f"{path}/").partition("/")
            version = version_of(file) if folder == "_versions" else None
            if version is not None:
                if version not in keep and entry.size > 0:
                    empty.append(entry)
            elif folder == "data":
                if entry.name not in needed:
                    rest.append(entry)
            elif folder == "_transactions":
                base = transaction_base(file)
                if base is not None and base + 1 not in keep:
                    rest.append(entry)
        emptied = self._empty(path, empty)
        hit(FailPoint.CLEANUP_BETWEEN_FILES)
        return emptied.and_then(self._delete(path, rest))

    def _empty(self, path: str, versions: Sequence[StoredObject]) -> Cleaned:
        """Reduce versions that go to their names; several at a time."""
        # A free name would let a writer that slept through the cleanup commit there.
        if self._removes:
            puts = [
                self._repository.background.pool.submit(self._objects.put, e.name, b"")
                for e in versions
            ]
            for task in puts:
                task.result()
        return Cleaned(
            type_key=path,
            path=path,
            bytes_removed=sum(entry.size for entry in versions),
            files_removed=len(versions),
            old_versions_removed=len(versions),
        )

    def _is_unfinished(self, path: str) -> bool:
        """Whether a branch was never finished: nothing leads to it, and it was not ended."""
        newest = self._kept.datasets[path].last_written_us
        if not newest or newest >= self._cut_us - UNFINISHED_AGE_US:
            return False
        place = ManifestPlace(path=path, version=self._kept.datasets[path].newest)
        snapshot = self._repository.lineage.snapshot(place)
        return not snapshot.deleted and snapshot.version == 1

    def _refs(self, path: str) -> Cleaned:
        """Lives of a name before its last one, but for what keeps their numbers taken."""
        there = {entry.name: entry for entry in self._objects.entries(path)}
        over = (there[name] for name in superseded(there))
        return self._delete(path, (entry for entry in over if self._may_go(entry)))

    def _unused_schemas(self, path: str) -> Cleaned:
        """Schemas that no manifest names. A write that brings one back writes its objects anew."""
        named = self._schemas
        if named is None:  # A manifest that could not be read may name any of them.
            return Cleaned(type_key=path, path=path)

        def unused() -> Iterator[StoredObject]:
            for entry in self._objects.entries(path):
                digest, _, suffix = entry.name.removeprefix(f"{path}/").partition(".")
                if suffix in ("json", "pg") and digest not in named and self._may_go(entry):
                    yield entry

        return self._delete(path, unused())

    def _abandoned_parts(self, path: str) -> Cleaned:
        """Rows that executors wrote for a write of a DataFrame that has ended or died."""
        before_us = self._cut_us - ABANDONED_AGE_US
        entries = self._objects.entries(path)
        return self._delete(path, (entry for entry in entries if entry.modified_us < before_us))

    # -- files -----------------------------------------------------------------------------------

    def _may_go(self, entry: StoredObject) -> bool:
        """Whether a file is from before the announcement, and not of a long write."""
        if entry.modified_us >= self._cut_us:
            return False
        return self._spared_from_us is None or entry.modified_us < self._spared_from_us

    def _delete(self, path: str, garbage: Iterable[StoredObject]) -> Cleaned:
        """In this order."""
        size = count = versions = 0
        waiting = iter(garbage)
        while some := list(islice(waiting, DELETE_BATCH)):
            if self._removes:
                self._objects.delete([entry.name for entry in some])
            size += sum(entry.size for entry in some)
            count += len(some)
            versions += sum("/_graph/" in entry.name for entry in some)
        return Cleaned(
            type_key=path,
            path=path,
            bytes_removed=size,
            files_removed=count,
            old_versions_removed=versions,
        )


def _is_needed(
    path: str, folder: str, file: str, needed: Collection[str], versions: Collection[int]
) -> bool:
    """Whether a kept version of a table needs a file, or it is of a kind that is not known."""
    if f"{path}/{folder}/{file}" in needed:
        return True
    match folder:
        case "data":  # Blobs lie in a folder of the name of their data file.
            return f"{path}/data/{file.partition('/')[0]}.lance" in needed
        case "_indices":
            return f"{path}/_indices/{file.partition('/')[0]}/" in needed
        case "_transactions":
            base = transaction_base(file)
            return base is not None and base + 1 in versions
        case "_versions":
            return file == "latest_version_hint.json" and bool(versions)
        case _:
            return folder not in ("_graph", "_deletions")
