"""Whether a past state is still whole, by what cleanups have recorded about it.

    place -> [kept] -> fine, or an error that says that it was reclaimed

A reader does not announce what it reads, so it may find files of its state gone in the middle of
a scan. Then the record of the newest cleanup decides: a state that it gave up was
reclaimed; any other one is damaged.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from types import TracebackType

from omnigraph.errors import (
    CorruptionError,
    ErrorKind,
    NotFoundError,
    OmnigraphError,
    StorageError,
)
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, ManifestPlace, Snapshot

_MISSING = (ErrorKind.CORRUPTION, ErrorKind.STORAGE_NOT_FOUND, ErrorKind.HISTORY_RECLAIMED)
"""How a missing object is reported, by whether the reader had reason to expect it."""


def check_kept(repository: Repository, place: ManifestPlace, swept: int) -> None:
    """Raise ``NotFoundError`` if the state at a place gave its tables up to a cleanup."""
    if not _is_kept(repository, place, swept):
        raise reclaimed(place)


def _is_kept(repository: Repository, place: ManifestPlace, swept: int) -> bool:
    record = repository.sweeps.record(swept) if swept else None
    if record is None:
        return True
    kept = record.keeps(place)
    # Made after that cleanup, or gone with one before it.
    return repository.manifest(place.path).exists(place.version) if kept is None else kept


def check_whole(repository: Repository, snapshot: Snapshot, swept: int) -> None:
    """The same for a snapshot. One that only says something else about a state is as good as that
    one, which may be kept although this version is not."""
    if not any(_is_kept(repository, place, swept) for place in places_of(snapshot)):
        raise reclaimed(snapshot.place)


def is_reclaimed(repository: Repository, places: Collection[ManifestPlace]) -> bool:
    """Whether an announced cleanup took a state that is found at these places; asked of the store,
    and only when something of it is missing. If the store does not answer, it is not known."""
    with suppress(OmnigraphError):
        swept = repository.head(MAIN).snapshot.swept
        return not any(_is_kept(repository, place, swept) for place in places)
    return False


class ReportingReclaimed:
    """Report a state as reclaimed if a cleanup has taken it since.

    What is missing of any other state is damage: a branch, a tag or a policy keeps it.
    """

    __slots__ = ("_repository", "_states")

    # Around every read: a class costs a third of what a generator does.

    def __init__(self, repository: Repository, *states: Snapshot) -> None:
        self._repository = repository
        self._states = states

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, trace: TracebackType | None
    ) -> None:
        if e is None or not isinstance(e, (CorruptionError, StorageError, NotFoundError)):
            return
        if e.kind not in _MISSING:
            return
        for state in self._states:
            if is_reclaimed(self._repository, places_of(state)):
                raise reclaimed(state.place) from e
        if e.kind is ErrorKind.HISTORY_RECLAIMED and isinstance(e.__cause__, CorruptionError):
            raise e.__cause__ from None


def places_of(state: Snapshot) -> tuple[ManifestPlace, ...]:
    """Where a state is found: its version, and the one of its commit if that is another."""
    return tuple(dict.fromkeys((state.place, state.head.place)))


def reclaimed(place: ManifestPlace) -> NotFoundError:
    """A state whose tables a cleanup took."""
    return NotFoundError(
        f"the state at version {place.version} of {place.path} was reclaimed",
        kind=ErrorKind.HISTORY_RECLAIMED,
        hint="choose a newer one; tags keep commits from being reclaimed",
        details={"path": place.path, "version": place.version},
    )
