"""A graph at one moment, as a value that other processes read: for those without an open graph.

    repository, snapshot | place, branch, commit -> [pinned] -> PinnedGraph -> PinnedTable

Everything is named by its exact version, so every process that has the value reads the same rows,
also when a task is repeated while others publish.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.errors import CorruptionError, NotFoundError
from omnigraph.manifest.snapshot import MAIN, ManifestPlace, Snapshot, TablePin
from omnigraph.schema.catalog import Catalog, GraphType, type_named
from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion

if TYPE_CHECKING:  # Tasks read by these values and open no graph, as long as nothing is missing.
    from omnigraph.manifest.repository import Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedTable:
    """One type's table at the exact version that a snapshot shows."""

    location: Location
    type: GraphType
    name: TableVersion | None
    """None while nothing was ever written to the type."""
    row_count: int
    places: tuple[ManifestPlace, ...] = ()
    """Where the snapshot is found; without them it is not known whether a cleanup took it."""

    @contextmanager
    def reading(self) -> Generator[None]:
        """Report a snapshot as reclaimed if a cleanup has taken it since."""
        try:
            yield
        except CorruptionError as e:
            from omnigraph.manifest.kept import is_reclaimed, reclaimed

            with opened(self.location) as repository:
                if self.places and is_reclaimed(repository, self.places):
                    raise reclaimed(self.places[0]) from e
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedGraph:
    """A graph at one moment, as a value that can be sent to other processes.

    With a root in a bucket it holds the credentials that the driver has, if they are of a kind that
    can be sent; else each process finds its own.
    """

    location: Location = field(repr=False)
    branch: str
    version: int
    commit_id: str
    schema_hash: str
    catalog: Catalog = field(repr=False)
    pins: Mapping[str, TablePin] = field(repr=False)
    """By table key."""
    places: tuple[ManifestPlace, ...] = ()
    """Where the snapshot is found."""

    @staticmethod
    def of(repository: Repository, snapshot: Snapshot) -> PinnedGraph:
        """A snapshot of an open graph."""
        from omnigraph.manifest.kept import places_of

        return PinnedGraph(
            location=repository.location,
            branch=snapshot.branch,
            version=snapshot.version,
            commit_id=snapshot.head.id,
            schema_hash=snapshot.schema_hash,
            catalog=repository.schema(snapshot.schema_hash).catalog,
            pins=dict(snapshot.pins),
            places=places_of(snapshot),
        )

    def type(self, name: str) -> GraphType:
        """A type by its name; see ``type_named``."""
        return type_named(self.catalog, name)

    def table(self, graph_type: GraphType) -> PinnedTable:
        """The table of a type of this graph's schema."""
        pin = self.pins.get(graph_type.table_key)
        return PinnedTable(
            location=self.location,
            type=graph_type,
            name=pin.name if pin is not None else None,
            row_count=pin.row_count if pin is not None else 0,
            places=self.places,
        )


def pin_graph(
    location: Location, *, branch: str | None = None, commit: str | None = None
) -> PinnedGraph:
    """The newest state of a branch, or the state at one of its commits."""
    from omnigraph.manifest.targets import Target, resolve

    with opened(location) as repository:
        target = Target.of(branch=branch or MAIN, commit=commit)
        return PinnedGraph.of(repository, resolve(repository, target))


@contextmanager
def opened(location: Location) -> Generator[Repository]:
    """The graph at a place, closed at the end. Raises ``NotFoundError`` if there is none."""
    from omnigraph.manifest.repository import Repository

    folder = location.local_path
    if folder is not None and not folder.is_dir():
        # Spark asks from a process of its own, which need not be in the folder of the program.
        raise NotFoundError(
            f"no graph at {location.uri}: no such folder",
            hint=f"Spark looked for {folder}; give an absolute path",
        )
    repository = Repository(location)
    try:
        yield repository
    finally:
        repository.close()
