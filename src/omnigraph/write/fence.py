"""What a cleanup that ran meanwhile means for a write.

    lost race -> [fence] -> go on as before, or put everything into files anew

A cleanup publishes a version of every branch before it deletes anything. So a write that began
before it loses the next race, and sees here that its files may be gone: unless the cleanup says
that it spared them. And a write that shows a past state again learns here whether it is still
whole.
"""

from __future__ import annotations

from omnigraph.errors import ConflictError, ErrorKind
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.kept import check_kept
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, ManifestPlace, Snapshot
from omnigraph.write.txn import Adoption, GraphDelta


class Fence:
    """The cleanups that one write has seen."""

    def __init__(self, repository: Repository, operation_id: str) -> None:
        self._repository = repository
        self._id = operation_id
        self._seen: int | None = None

    def crossed(self, snapshot: Snapshot) -> bool:
        """Whether files that this write made before it looked at ``snapshot`` may be gone."""
        # The first snapshot only sets the mark: the write has no files yet.
        before, self._seen = self._seen, snapshot.swept
        if before is None or snapshot.swept <= before:
            return False
        return not self._repository.sweeps.spared(self._id, before, snapshot.swept)

    def behind(self, snapshot: Snapshot) -> bool:
        """Whether a cleanup ran that this write has not seen yet."""
        return self._seen is not None and snapshot.swept > self._seen

    def check_shown_again(self, base: Snapshot, delta: object, branch: Branch) -> None:
        """Raise ``NotFoundError`` if the change shows tables of a state that was reclaimed."""
        place = _taken_from(base, delta)
        if place is None:
            return
        swept = base.swept
        if branch.name != MAIN:
            # A cleanup may have missed a branch that was made while it ran; never main.
            swept = max(swept, self._repository.head(MAIN).snapshot.swept)
        check_kept(self._repository, place, swept)


def check_still_kept(repository: Repository, snapshot: Snapshot) -> None:
    """Raise ``NotFoundError`` if a state that was just given a name had been given up already.

    To be asked once the name is there: a cleanup looks for names after its announcement on main,
    so either it sees the name or this sees the cleanup. The newest state of a branch is never
    given up.
    """
    known = repository.branches.known(snapshot.branch)
    if known is not None and known.head.snapshot.place == snapshot.place:
        return
    check_kept(repository, snapshot.place, repository.head(MAIN).snapshot.swept)


def outrun(operation_id: str) -> ConflictError:
    """A cleanup may have deleted files that executors made for this write."""
    return ConflictError(
        f"a cleanup may have removed files of the write {operation_id}, which had not moved for "
        "long",
        kind=ErrorKind.REVOKED,
        hint="nothing of it was published: repeat the command",
        details={"operation_id": operation_id},
    )


def _taken_from(base: Snapshot, delta: object) -> ManifestPlace | None:
    if isinstance(delta, Adoption):
        place = delta.snapshot.place
        return None if place == base.place else place
    if not isinstance(delta, GraphDelta):
        return None
    adopts = any(table.adopt is not None for table in delta.tables.values())
    return delta.adopts_from if adopts else None
