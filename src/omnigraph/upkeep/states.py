"""What states of the past show, read once: a cleanup looks at them several times.

    places -> [states] -> tables, schema and files of each

A manifest version never changes, so what was read stays true. Only what cleanup and check need is
kept, because a long history does not fit into memory as snapshots. Several are read at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.errors import ErrorKind, NotFoundError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import ManifestPlace
from omnigraph.storage.names import TableVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class PastState:
    """One state, as far as its files are concerned."""

    place: ManifestPlace
    commit_id: str
    tables: tuple[tuple[TableVersion, str, int], ...]
    """With the key and the rows of each."""
    schema_hash: str
    restated: bool
    """It says something else about a state which an earlier version shows."""
    files: tuple[str, ...]
    """Of the manifest version itself."""


class States:
    """The states of one graph that were looked at."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._known: dict[ManifestPlace, PastState | None] = {}
        self._names: dict[TableVersion, TableVersion] = {}

    def at(self, place: ManifestPlace) -> PastState | None:
        """The state at a place; None if it was reclaimed."""
        if place not in self._known:
            self._known[place] = self._read(place)
        return self._known[place]

    def look_at(self, places: Iterable[ManifestPlace]) -> None:
        """Read all that are not known yet."""
        fresh = [place for place in places if place not in self._known]
        self._known.update(
            zip(fresh, self._repository.background.pool.map(self._read, fresh), strict=True)
        )

    def _read(self, place: ManifestPlace) -> PastState | None:
        try:
            head = self._repository.lineage.head_at(place)
        except NotFoundError as e:
            if e.kind is not ErrorKind.HISTORY_RECLAIMED:
                raise
            return None
        snapshot, names = head.snapshot, self._names
        return PastState(
            place=place,
            commit_id=snapshot.head.id,
            # Most states share most of their tables: one object for all of them.
            tables=tuple(
                (names.setdefault(pin.name, pin.name), key, pin.row_count)
                for key, pin in snapshot.pins.items()
            ),
            schema_hash=snapshot.schema_hash,
            restated=snapshot.head.place != snapshot.place,
            files=tuple(self._repository.manifest(place.path).files(head)),
        )
