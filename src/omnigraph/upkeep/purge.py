"""A hard drop: right after the publish, what was dropped is deleted as far as nothing needs it.

    schema apply with data loss -> PUBLISH -> [purge] -> record, announcement, sweep of the tables

The safe way is that of a cleanup (``upkeep/cleanup.py``), for some tables alone and without a
grace window: dropping for good does not wait for readers. The states of the branch that show what
was dropped are given up. Other branches, tags and what merges need keep theirs, and so does a long
write that is running: then the report says where the data can still be read, and what to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.housekeeping.intents import LEASE_S
from omnigraph.manifest.refs import find_tag, tag_names
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import ManifestPlace, Snapshot
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.migrate import DropMode, SchemaPlan
from omnigraph.upkeep.ancestry import States
from omnigraph.upkeep.cleanup import forget_records, give_up, running_writes
from omnigraph.upkeep.retention import Retained, retained_without
from omnigraph.upkeep.sweep import Marks, Sweep, mark_here

AFTERWARDS = "omnigraph cleanup --keep 1 --confirm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A type or a property that was dropped for good."""

    name: str
    """``Type`` or ``Type.property``."""
    table_key: str
    path: str
    stable_id: tuple[int, int]
    property_id: int | None

    def is_shown(self, repository: Repository, snapshot: Snapshot) -> bool:
        """Whether a state has it, and a table where it may have values."""
        if all(pin.stable_id != self.stable_id for pin in snapshot.pins.values()):
            return False
        if self.property_id is None:
            return True
        catalog = repository.schema(snapshot.schema_hash).catalog
        return any(
            p.id == self.property_id
            for kind in catalog.types()
            if kind.stable_id == self.stable_id
            for p in kind.properties
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeReport:
    """What became of data that was dropped for good."""

    dropped: tuple[str, ...]
    bytes_removed: int = 0
    files_removed: int = 0
    still_in: tuple[str, ...] = ()
    """Where it can still be read: ``branch work``, ``tag v1``, ``history of branch work``."""
    too_young: int = 0
    """Objects that nothing needs, written in the very moment of the drop."""
    spared: tuple[str, ...] = ()
    """Long writes that are running: nothing of their time was removed."""
    error: str | None = None
    """Why it is not complete."""

    @property
    def complete(self) -> bool:
        """Whether nothing of it is left."""
        return not (self.still_in or self.too_young or self.spared or self.error)

    @property
    def next(self) -> str | None:
        """What to run; None if nothing is left."""
        return None if self.complete else AFTERWARDS

    def to_dict(self) -> dict[str, Any]:
        """As ``schema apply --json`` shows it."""
        return {
            "dropped": list(self.dropped),
            "complete": self.complete,
            "bytes_removed": self.bytes_removed,
            "files_removed": self.files_removed,
            "still_in": list(self.still_in),
            "too_young": self.too_young,
            "spared": list(self.spared),
            "error": self.error,
            "next": self.next,
        }


def hard_drops(plan: SchemaPlan, accepted: Catalog, before: Snapshot) -> tuple[Dropped, ...]:
    """What a plan drops for good and has a table; the plan was made on this state."""
    tables = {pin.stable_id for pin in before.pins.values()}
    kinds = {kind.id: kind for kind in accepted.types()}
    return tuple(
        Dropped(
            name=step.subject,
            table_key=kind.table_key,
            path=kind.table_path,
            stable_id=kind.stable_id,
            property_id=step.property_id,
        )
        for step in plan.destructive
        if step.mode is DropMode.HARD
        and (kind := kinds.get(step.type_id)) is not None
        and kind.stable_id in tables
    )


def purge(
    repository: Repository,
    dropped: Sequence[Dropped],
    at: ManifestPlace,
    *,
    lease_s: float = LEASE_S,
) -> PurgeReport:
    """Delete what the commit at a place has dropped. That is published: errors are reported."""
    names = tuple(item.name for item in dropped)
    try:
        return _purge(repository, dropped, at, names, lease_s)
    except OmnigraphError as e:
        return PurgeReport(dropped=names, error=e.message)


def _purge(
    repository: Repository,
    dropped: Sequence[Dropped],
    at: ManifestPlace,
    names: tuple[str, ...],
    lease_s: float,
) -> PurgeReport:
    def shows(snapshot: Snapshot) -> bool:
        return any(item.is_shown(repository, snapshot) for item in dropped)

    def left(kept: Retained) -> tuple[str, ...]:
        return _still_in(repository, kept, shows)

    spared = running_writes(repository, lease_s)
    look = partial(retained_without, repository, shows, at, states=States(repository))
    kept, written_us = give_up(repository, look, spared, purges=names, left=left)
    marks = Marks(mark_here(repository))
    sweep = Sweep(repository, kept, spared, marks, cut_us=written_us, removes=True)
    done = sweep.tables({item.path: item.table_key for item in dropped})
    forget_records(repository)
    errors = [place.error for place in done if place.error is not None]
    return PurgeReport(
        dropped=names,
        bytes_removed=sum(place.bytes_removed for place in done),
        files_removed=sum(place.files_removed for place in done),
        still_in=left(kept),
        too_young=0 if spared else sweep.too_young,
        spared=tuple(intent.operation_id for intent in spared),
        error=errors[0] if errors else None,
    )


def _still_in(
    repository: Repository, kept: Retained, shows: Callable[[Snapshot], bool]
) -> tuple[str, ...]:
    """Names of the states that are kept and show it."""
    named = {head.place: f"branch {name}" for name, head in kept.heads.items()}
    for name in tag_names(repository.objects):
        tag = find_tag(repository.objects, name)
        if tag is not None:
            named.setdefault(tag.place, f"tag {name}")
    found: set[str] = set()
    for path, versions in kept.whole.items():
        branch = kept.datasets[path].branch if path in kept.datasets else None
        history = f"history of branch {branch}" if branch is not None else "history"
        for version in versions:
            place = ManifestPlace(path=path, version=version)
            if shows(repository.lineage.snapshot(place)):
                found.add(named.get(place, history))
    return tuple(sorted(found))
