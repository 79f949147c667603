"""A graph by its place, branch and commit, pinned: for who has no open graph at hand.

options of a data source -> [pinning] -> PinnedGraph
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from omnigraph.errors import NotFoundError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN
from omnigraph.manifest.targets import Target, resolve
from omnigraph.spark.tables import PinnedGraph
from omnigraph.storage.location import Location


@contextmanager
def opened(location: Location) -> Generator[Repository]:
    """The graph at a place, closed at the end. Raises ``NotFoundError`` if there is none."""
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


def pin_graph(
    location: Location, *, branch: str | None = None, commit: str | None = None
) -> PinnedGraph:
    """The newest state of a branch, or the state at one of its commits."""
    with opened(location) as repository:
        target = Target.of(branch=branch or MAIN, commit=commit)
        return PinnedGraph.of(repository, resolve(repository, target))
