"""Whether a past state is still whole, by what cleanups have said about it.

place -> [kept] -> fine, or an error that says that it was reclaimed
"""

from __future__ import annotations

from omnigraph.errors import ErrorKind, NotFoundError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import ManifestPlace, Snapshot


def check_kept(repository: Repository, place: ManifestPlace, swept: int) -> None:
    """Raise ``NotFoundError`` if the state at a place gave its tables up to a cleanup."""
    record = repository.sweeps.record(swept) if swept else None
    if record is None:
        return
    kept = record.keeps(place)
    if kept is None:  # Made after that cleanup, or gone with one before it.
        kept = repository.manifest(place.path).exists(place.version)
    if not kept:
        raise reclaimed(place)


def check_whole(repository: Repository, snapshot: Snapshot, swept: int) -> None:
    """The same for a snapshot. One that only says something else about a state is as good as that
    one, which may be kept although this version is not."""
    try:
        check_kept(repository, snapshot.place, swept)
    except NotFoundError:
        if snapshot.head.place == snapshot.place:
            raise
        check_kept(repository, snapshot.head.place, swept)


def reclaimed(place: ManifestPlace) -> NotFoundError:
    """A state whose tables a cleanup took."""
    return NotFoundError(
        f"the state at version {place.version} of {place.path} was reclaimed",
        kind=ErrorKind.HISTORY_RECLAIMED,
        hint="choose a newer one; tags keep commits from being reclaimed",
        details={"path": place.path, "version": place.version},
    )
