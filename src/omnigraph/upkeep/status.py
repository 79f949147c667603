"""One look at a graph: how large it is, how its tables lie, what is pending, what to run next.

    listing, newest state, intents -> [status] -> one screen

Everything is counted by listings and from metadata; no rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph.housekeeping.mirror import MirrorAge, mirror_age
from omnigraph.manifest.refs import branch_names, tag_names
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot
from omnigraph.storage.names import version_of
from omnigraph.upkeep.indexes import IndexState, IndexStatus, index_status
from omnigraph.upkeep.recovery import IntentState, PendingIntent, pending_intents, quarantined

FRAGMENTS_MANY = 64
VERSIONS_MANY = 200
INDEX_ROWS_MIN = 10_000
"""Smaller tables are looked through as fast as an index is."""
COVERAGE_MIN = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeStatus:
    """One type."""

    type_key: str
    rows: int
    fragments: int
    deleted_rows: int
    """Rows that files still hold although they are gone."""
    bytes: int
    """All files of its table, also those that only the past needs."""
    indexes: int
    index_coverage: float | None
    """Of the least covered index; None if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphStatus:
    """A graph on one screen."""

    uri: str
    snapshot: Snapshot
    """The newest state of the branch."""
    types: tuple[TypeStatus, ...]
    bytes: int
    """Everything below the root."""
    objects: int
    branches: tuple[str, ...]
    tags: tuple[str, ...]
    versions: int
    """Manifest versions of the branch that are there."""
    pending: tuple[PendingIntent, ...]
    put_aside: tuple[str, ...]
    mirror: MirrorAge
    """How far the tables that other Lance programs open are behind main."""
    advice: tuple[str, ...]
    """What to run next; empty if nothing needs to be done."""

    @property
    def branch(self) -> str:
        """The branch that was looked at."""
        return self.snapshot.branch

    @property
    def commit(self) -> GraphCommit:
        """Its newest commit."""
        return self.snapshot.head

    @property
    def format(self) -> int:
        """The stamp of the branch; an older one than this release writes changes with a write."""
        return self.snapshot.format

    @property
    def history_depth(self) -> int:
        """The longest way back from the newest commit."""
        return self.snapshot.head.generation

    @property
    def cleanups(self) -> int:
        """The number of the newest cleanup that the branch knows of."""
        return self.snapshot.swept

    def to_dict(self) -> dict[str, Any]:
        """As ``status --json`` shows it."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "graph_commit_id": self.commit.id,
            "created_at": self.commit.created_at_us,
            "format": self.format,
            "bytes": self.bytes,
            "objects": self.objects,
            "types": [asdict(status) for status in self.types],
            "branches": list(self.branches),
            "tags": list(self.tags),
            "history_depth": self.history_depth,
            "manifest_versions": self.versions,
            "cleanups": self.cleanups,
            "pending": [intent.to_dict() for intent in self.pending],
            "put_aside": list(self.put_aside),
            "mirror": {
                "behind": list(self.mirror.behind),
                "as_of": self.mirror.as_of_us,
                "made_at": self.mirror.made_at,
            },
            "advice": list(self.advice),
        }


def status(repository: Repository, branch: str = MAIN) -> GraphStatus:
    """How a graph is doing, as a branch shows it."""
    snapshot = repository.head(branch).snapshot
    sizes: dict[str, int] = {}
    versions = objects = 0
    for entry in repository.objects.entries(""):
        folder, _, rest = entry.name.partition("/")
        key = f"{folder}/{rest.partition('/')[0]}" if folder in ("nodes", "edges") else folder
        sizes[key] = sizes.get(key, 0) + entry.size
        objects += 1
        if entry.size and entry.name.startswith(f"{snapshot.path}/_versions/"):
            versions += version_of(entry.name) is not None
    types = _types(repository, snapshot, sizes)
    pending = tuple(pending_intents(repository))
    put_aside = tuple(quarantined(repository))
    mirror = mirror_age(repository)
    return GraphStatus(
        uri=repository.location.uri,
        snapshot=snapshot,
        types=types,
        bytes=sum(sizes.values()),
        objects=objects,
        branches=(MAIN, *branch_names(repository.objects)),
        tags=tuple(tag_names(repository.objects)),
        versions=versions,
        pending=pending,
        put_aside=put_aside,
        mirror=mirror,
        advice=(
            *_moved(mirror),
            *_left_behind(repository, snapshot),
            *_advice(types, versions, pending, put_aside),
        ),
    )


def _types(
    repository: Repository, snapshot: Snapshot, sizes: dict[str, int]
) -> tuple[TypeStatus, ...]:
    indexes: dict[str, list[IndexStatus]] = {}
    for index in index_status(repository, snapshot):
        indexes.setdefault(index.type_key, []).append(index)
    catalog = repository.schema(snapshot.schema_hash).catalog
    found: list[TypeStatus] = []
    for graph_type in catalog.types():
        key = graph_type.table_key
        pin = snapshot.pins.get(key)
        fragments = repository.table(pin).layout.fragments if pin is not None else ()
        built = [i for i in indexes.get(key, []) if i.state is not IndexState.PENDING]
        found.append(
            TypeStatus(
                type_key=key,
                rows=snapshot.row_count(key),
                fragments=len(fragments),
                deleted_rows=sum(f.physical_rows - f.live_rows for f in fragments),
                bytes=sizes.get(graph_type.table_path, 0),
                indexes=len(built),
                index_coverage=min((i.coverage for i in built), default=None),
            )
        )
    return tuple(found)


def _moved(mirror: MirrorAge) -> list[str]:
    if mirror.made_at is None:
        return []
    return ["omnigraph repair --confirm  other programs find the tables of the old place"]


def _left_behind(repository: Repository, snapshot: Snapshot) -> list[str]:
    """What a hard drop could not delete, if no cleanup came after it."""
    swept = snapshot.swept
    if snapshot.branch != MAIN:
        swept = max(swept, repository.head(MAIN).snapshot.swept)
    record = repository.sweeps.record(swept) if swept else None
    if record is None or not record.left:
        return []
    what, where = ", ".join(record.purges), ", ".join(record.left)
    return [f"omnigraph cleanup --keep 1 {what}: dropped for good, and still in {where}"]


def _advice(
    types: Sequence[TypeStatus],
    versions: int,
    pending: Sequence[PendingIntent],
    put_aside: Sequence[str],
) -> list[str]:
    found: list[str] = []
    stuck = [item for item in pending if item.state is not IntentState.RUNNING]
    if stuck:
        found.append(f"omnigraph recovery run      {len(stuck)} writes did not end well")
    if put_aside:
        found.append(f"look at {put_aside[0]}, then delete it: it could not be read")
    scattered = [t.type_key for t in types if t.fragments > FRAGMENTS_MANY]
    uncovered = [
        t.type_key
        for t in types
        if t.rows >= INDEX_ROWS_MIN and (t.index_coverage or 0.0) < COVERAGE_MIN
    ]
    if scattered:
        found.append(f"omnigraph optimize          {scattered[0]} lies in many small files")
    elif uncovered:
        found.append(f"omnigraph optimize          indexes of {uncovered[0]} do not cover its rows")
    if versions > VERSIONS_MANY:
        found.append(f"omnigraph cleanup --keep 50 {versions:,} versions of the past are kept")
    return found
