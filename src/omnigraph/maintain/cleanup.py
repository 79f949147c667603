"""Cleanup: what no kept state needs is deleted, and nobody who writes meanwhile is harmed.

    policy -> retention -> record -> news on every branch -> look again -> [sweep]

1. *Look*: which states are kept (``maintain/retention.py``), and what is garbage then. A preview
   ends here, and so does a cleanup that finds nothing: it leaves no trace.
2. *Record*: one object says what this cleanup keeps and whose files it spares. Only what was
   written before it, by the store's own clock, is ever touched.
3. *News*: a version of every branch that names the record. A writer that had files before it loses
   the race against it, sees the record, and writes its files again (``write/fence.py``). Who gives
   an old state a name, or shows it again, looks at the record, too.
4. *Look again*: what became visible or got a name before the news is kept.
5. *Sweep*, table by table: first manifests, then files. What one table's store refuses does not
   stop the others. A cleanup that dies is simply run again.

The object of a manifest version that goes is emptied, not deleted: its name stays taken, so that a
writer that slept through everything cannot commit there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from omnigraph.branch.history import branch_heads
from omnigraph.errors import (
    ConflictError,
    CorruptionError,
    ErrorKind,
    NotFoundError,
    OmnigraphError,
)
from omnigraph.failpoints import FailPoint, hit
from omnigraph.maintain.recovery import IntentState, pending_intents, recover
from omnigraph.maintain.retention import Policy, Retained, retained
from omnigraph.manifest.refs import BRANCHES
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, MAIN_PATH, ManifestPlace, Snapshot
from omnigraph.manifest.sweeps import SweepRecord, numbers, record_object
from omnigraph.storage.names import TableVersion
from omnigraph.storage.objects import StoredObject
from omnigraph.storage.reach import table_files, transaction_base, version_of
from omnigraph.write.intents import LEASE_S, Intent
from omnigraph.write.publish import restate

GRACE_S = 3600.0
"""What was written or shown within an hour is not touched, whatever the policy says."""
DELETE_BATCH = 500
LOOKS_MAX = 64
RECORDS_KEPT = 16
CLOCKS_APART_MAX_US = 86_400_000_000
"""By so much the clock of a machine and that of the store may differ."""
UNFINISHED_AGE_US = 600_000_000
"""A branch that is not finished after so long never will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What was, or would be, removed in one place."""

    type_key: str
    """A table, or the manifest of a branch, or ``refs``."""
    path: str
    bytes_removed: int = 0
    files_removed: int = 0
    old_versions_removed: int = 0
    error: str | None = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupReport:
    """What a cleanup did, or would do."""

    confirmed: bool
    places: tuple[Cleaned, ...]
    """Only those where there is something to tell."""
    states_kept: int
    commits_given_up: int
    """States that cannot be read any more, newly or since earlier cleanups."""
    spared: tuple[str, ...] = ()
    """Long writes that are running: files of their time are left for the next cleanup."""

    @property
    def bytes_removed(self) -> int:
        return sum(place.bytes_removed for place in self.places)

    @property
    def files_removed(self) -> int:
        return sum(place.files_removed for place in self.places)

    @property
    def errors(self) -> tuple[Cleaned, ...]:
        """Places where something was refused."""
        return tuple(place for place in self.places if place.error is not None)

    def to_dict(self) -> dict[str, Any]:
        """As ``cleanup --json`` shows it."""
        return {
            "confirmed": self.confirmed,
            "bytes_removed": self.bytes_removed,
            "files_removed": self.files_removed,
            "states_kept": self.states_kept,
            "states_given_up": self.commits_given_up,
            "spared": list(self.spared),
            "tables": [place.to_dict() for place in self.places],
        }


Progress = Callable[[int, int], None]
"""Places done, and how many there are."""


def cleanup(
    repository: Repository,
    policy: Policy,
    *,
    confirm: bool = False,
    lease_s: float = LEASE_S,
    progress: Progress | None = None,
) -> CleanupReport:
    """Remove what the policy does not keep; without ``confirm`` only say what that would be."""
    if confirm:
        recover(repository, lease_s=lease_s)
    spared = _running(repository, lease_s)
    now_us = repository.clock.now_us()
    kept = retained(repository, policy, store_now_us=now_us)
    look = _Sweep(repository, kept, spared, cut_us=_cut(now_us, policy), removes=False)
    found = look.run(progress)
    if not confirm or not any(place.files_removed for place in found):
        return _report(kept, found, spared, confirmed=confirm)
    record, kept = _record(repository, policy, spared)
    hit(FailPoint.CLEANUP_AFTER_RECORD)
    _tell(repository, record.number)
    hit(FailPoint.CLEANUP_AFTER_NEWS)
    written = repository.objects.entry(record_object(record.number))
    if written is None:
        raise CorruptionError(f"the record of cleanup {record.number} has vanished")
    kept = retained(
        repository,
        policy,
        store_now_us=written.modified_us,
        before=record.number,
        since={path: v.newest for path, v in kept.datasets.items() if v.branch is not None},
    )
    cut_us = _cut(written.modified_us, policy)
    sweep = _Sweep(repository, kept, spared, cut_us=cut_us, removes=True)
    done = sweep.run(progress)
    _forget_records(repository)
    return _report(kept, done, spared, confirmed=True)


def _cut(now_us: int, policy: Policy) -> int:
    return now_us - round(policy.grace_s * 1e6)


def _report(
    kept: Retained, found: Sequence[Cleaned], spared: Sequence[Intent], *, confirmed: bool
) -> CleanupReport:
    there = sum(len(versions.written) for versions in kept.datasets.values())
    whole = sum(len(versions) for versions in kept.whole.values())
    told = tuple(place for place in found if place.files_removed or place.error is not None)
    return CleanupReport(
        confirmed=confirmed,
        places=told,
        states_kept=whole,
        commits_given_up=max(0, there - whole),
        spared=tuple(intent.operation_id for intent in spared),
    )


def _running(repository: Repository, lease_s: float) -> tuple[Intent, ...]:
    """Long writes that live. Others write their files again if they have to."""
    return tuple(
        pending.intent
        for pending in pending_intents(repository, lease_s=lease_s)
        if pending.state is IntentState.RUNNING
        and pending.intent is not None
        and pending.intent.long
    )


def _record(
    repository: Repository, policy: Policy, spared: Sequence[Intent]
) -> tuple[SweepRecord, Retained]:
    """Say what is kept. If another cleanup is faster, look again: it may give more up."""
    while True:
        number = repository.sweeps.newest_number() + 1
        now_us = repository.clock.now_us()
        kept = retained(repository, policy, store_now_us=now_us, before=number)
        record = SweepRecord(
            number=number,
            at_us=now_us,
            kept=kept.ranges(),
            spared=frozenset(intent.operation_id for intent in spared),
        )
        if repository.sweeps.create(record):
            repository.sync([record_object(number)])
            return record, kept


def _tell(repository: Repository, number: int) -> None:
    """Publish the news on every branch; on those, too, that are made meanwhile."""

    def told(snapshot: Snapshot) -> Snapshot | None:
        return replace(snapshot, swept=number) if snapshot.swept < number else None

    done: set[str] = set()
    for _ in range(LOOKS_MAX):
        fresh = {n: h for n, h in branch_heads(repository).items() if h.path not in done}
        if not fresh:
            return
        for name, head in fresh.items():
            try:
                branch = repository.branch(name)
                branch.refresh()  # A version that is made in vain leaves a file.
                restate(repository, branch, told)
                done.add(head.path)
            except NotFoundError as e:
                if e.kind is not ErrorKind.BRANCH_NOT_FOUND:
                    raise
                # It ended, or goes on under a name that the next look will show.
                if repository.manifest(head.path).head().snapshot.deleted:
                    done.add(head.path)
    raise ConflictError(
        "branches are made and renamed faster than a cleanup can tell them",
        kind=ErrorKind.CONTENTION,
        hint="run it again: nothing was removed",
    )


class _Sweep:
    """One pass over everything that lies below the root."""

    def __init__(
        self,
        repository: Repository,
        kept: Retained,
        spared: Sequence[Intent],
        *,
        cut_us: int,
        removes: bool,
    ) -> None:
        self._repository = repository
        self._objects = repository.objects
        self._kept = kept
        self._cut_us = cut_us
        self._removes = removes
        self._spared_from_us = min(
            (intent.began_us - CLOCKS_APART_MAX_US for intent in spared), default=None
        )

    def run(self, progress: Progress | None) -> list[Cleaned]:
        """Manifests first: a state that is going to lose its tables is not found any more."""
        tables = [path for kind in ("nodes", "edges") for path in self._objects.folders(kind)]
        steps: list[tuple[str, str, Callable[[str], Cleaned]]] = [
            *((self._branch_key(path), path, self._manifests) for path in self._kept.datasets),
            ("refs", BRANCHES, self._refs),
            *((self._table_key(path), path, self._table) for path in tables),
        ]
        found: list[Cleaned] = []
        for done, (key, path, step) in enumerate(steps):
            if progress is not None:
                progress(done, len(steps))
            try:
                found.append(replace(step(path), type_key=key))
            except OmnigraphError as e:
                found.append(Cleaned(type_key=key, path=path, error=e.message))
        if progress is not None:
            progress(len(steps), len(steps))
        return found

    def _table_key(self, path: str) -> str:
        """The newest name of a table; its folder if nobody names it any more."""
        shown = self._kept.tables.get(path, {})
        return next(reversed(list(shown.values())), path)

    def _branch_key(self, path: str) -> str:
        name = self._kept.datasets[path].branch
        return path if path == MAIN_PATH or name is None else f"branch:{name}"

    # -- tables ----------------------------------------------------------------------------------

    def _table(self, path: str) -> Cleaned:
        shown = self._kept.tables.get(path, {})
        needed = self._needed(shown)
        versions = {name.version for name in shown}
        self._check_no_drift(path)

        def is_garbage(entry: StoredObject) -> bool:
            return self._may_go(entry) and not self._is_of_table(path, entry, needed, versions)

        first = self._delete(
            path, (e for e in self._objects.entries(path) if _is_manifest(e) and is_garbage(e))
        )
        hit(FailPoint.CLEANUP_BETWEEN_FILES)
        rest = self._delete(
            path, (e for e in self._objects.entries(path) if not _is_manifest(e) and is_garbage(e))
        )
        return replace(
            first,
            bytes_removed=first.bytes_removed + rest.bytes_removed,
            files_removed=first.files_removed + rest.files_removed,
        )

    def _needed(self, shown: Iterable[TableVersion]) -> set[str]:
        """Files of all versions that are kept; several are opened at a time."""
        needed: set[str] = set()
        waiting = iter(shown)
        while some := list(islice(waiting, 64)):
            opened = [
                self._repository.pool.submit(
                    lambda name=name: list(table_files(self._repository.tables.open(name)))
                )
                for name in some
            ]
            for task in opened:
                needed.update(task.result())
        return needed

    def _is_of_table(
        self, path: str, entry: StoredObject, needed: set[str], versions: set[int]
    ) -> bool:
        """Whether a kept version of a table needs a file."""
        if entry.name in needed:
            return True
        folder, _, file = entry.name.removeprefix(f"{path}/").partition("/")
        match folder:
            case "data":  # Blobs lie in a folder of the name of their data file.
                return f"{path}/data/{file.partition('/')[0]}.lance" in needed
            case "_indices":
                return f"{path}/_indices/{file.partition('/')[0]}/" in needed
            case "_transactions":
                base = transaction_base(file)
                return base is not None and base + 1 in versions
            case "_versions":
                version = version_of(file)
                if version is None:
                    return file == "latest_version_hint.json" and bool(versions)
                # Other Lance programs see main's versions under these names.
                return version in self._kept.main_versions.get(path, set())
            case _:
                return folder not in ("_graph", "_deletions")

    def _check_no_drift(self, path: str) -> None:
        """Refuse a table that a foreign program has moved: its files are nobody's yet."""
        listed = (version_of(e.name) for e in self._objects.entries(f"{path}/_versions"))
        newest = max((v for v in listed if v is not None), default=None)
        published = max(self._kept.main_versions.get(path, {0}))
        if newest is not None and published and newest > published:
            raise CorruptionError(
                f"version {newest} of this table was made by another program; the graph shows "
                f"{published}: run 'omnigraph repair' first"
            )

    # -- manifests -------------------------------------------------------------------------------

    def _manifests(self, path: str) -> Cleaned:
        versions = self._kept.datasets[path]
        if versions.branch is None and self._is_unfinished(path):
            return self._delete(path, self._objects.entries(path))
        keep = self._kept.kept_manifests(path, self._cut_us)
        needed: set[str] = set()
        for version in sorted(keep & set(versions.written)):
            head = self._repository.lineage.head_at(ManifestPlace(path=path, version=version))
            needed.update(self._repository.manifest(path).files(head))
        emptied = self._empty(path, keep)
        hit(FailPoint.CLEANUP_BETWEEN_FILES)

        def is_garbage(entry: StoredObject) -> bool:
            folder, _, file = entry.name.removeprefix(f"{path}/").partition("/")
            if not self._may_go(entry):
                return False
            if folder == "data":
                return entry.name not in needed
            base = transaction_base(file) if folder == "_transactions" else None
            return base is not None and base + 1 not in keep

        rest = self._delete(path, (e for e in self._objects.entries(path) if is_garbage(e)))
        return replace(
            emptied,
            bytes_removed=emptied.bytes_removed + rest.bytes_removed,
            files_removed=emptied.files_removed + rest.files_removed,
        )

    def _empty(self, path: str, keep: set[int]) -> Cleaned:
        """Reduce versions that go to their names."""
        size = count = 0
        for entry in self._objects.entries(f"{path}/_versions"):
            version = version_of(entry.name)
            goes = version is not None and version not in keep and entry.size > 0
            if goes and self._may_go(entry):
                if self._removes:
                    self._objects.put(entry.name, b"")
                size, count = size + entry.size, count + 1
        return Cleaned(
            type_key=path,
            path=path,
            bytes_removed=size,
            files_removed=count,
            old_versions_removed=count,
        )

    def _is_unfinished(self, path: str) -> bool:
        """Whether a branch was never finished: nothing leads to it, and nobody ended it."""
        newest = self._kept.datasets[path].last_written_us
        if not newest or newest >= self._cut_us - UNFINISHED_AGE_US:
            return False
        place = ManifestPlace(path=path, version=self._kept.datasets[path].newest)
        snapshot = self._repository.lineage.snapshot(place)
        return not snapshot.deleted and snapshot.version == 1

    def _refs(self, path: str) -> Cleaned:
        """Lives of a name before its last one: that number is never given again."""
        lives: dict[str, list[tuple[int, StoredObject]]] = {}
        for entry in self._objects.entries(path):
            folder, _, file = entry.name.rpartition("/")
            number = file.partition(".")[0]
            if number.isdigit():
                lives.setdefault(folder, []).append((int(number), entry))

        def over() -> Iterator[StoredObject]:
            for found in lives.values():
                last = max(number for number, _ in found)
                yield from (e for number, e in found if number < last and self._may_go(e))

        return self._delete(path, over())

    # -- files -----------------------------------------------------------------------------------

    def _may_go(self, entry: StoredObject) -> bool:
        """Whether a file is old enough: written before the news, and not for a long write."""
        if entry.modified_us >= self._cut_us:
            return False
        return self._spared_from_us is None or entry.modified_us < self._spared_from_us

    def _delete(self, path: str, garbage: Iterable[StoredObject]) -> Cleaned:
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


def _is_manifest(entry: StoredObject) -> bool:
    return "/_graph/" in entry.name or "/_versions/" in entry.name


def _forget_records(repository: Repository) -> None:
    """Drop the records of cleanups that are long over."""
    told = repository.head(MAIN).snapshot.swept
    old = [n for n in numbers(repository.objects) if n <= told - RECORDS_KEPT]
    repository.discard([record_object(n) for n in old])
