"""What a branch showed at a moment, also where most of its past was reclaimed.

    branch, moment -> [moments] -> the state, or an error that says that it was reclaimed

The time of commits never decreases along the versions of a manifest, so the version is found by
halving. A cleanup leaves islands: states that tags, merges or a policy keep, and manifests for the
way back. The version before a gap was shown until the first commit after it, which the list of
commits tells: that is complete whatever became of the states. A branch that was made later showed
what the branch it was made from showed then.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from omnigraph.errors import ErrorKind, NotFoundError
from omnigraph.manifest.kept import reclaimed
from omnigraph.manifest.lineage import Lineage
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import ManifestPlace, Snapshot
from omnigraph.storage.names import version_of


def state_at(repository: Repository, newest: Snapshot, at_us: int) -> Snapshot:
    """What a branch showed at a moment. Raises ``NotFoundError`` if that was reclaimed."""
    if newest.head.created_at_us <= at_us:
        return newest
    top, path, before = newest, newest.path, newest.version
    while True:
        first = repository.lineage.snapshot(ManifestPlace(path=path, version=1))  # Always kept.
        if first.head.created_at_us <= at_us:
            return _MomentSearch(repository, path, at_us).below(before, top, first)
        if first.head.path == path:
            raise NotFoundError(
                f"the graph did not exist at {_text(at_us)}",
                kind=ErrorKind.COMMIT_NOT_FOUND,
                hint=f"it begins at {_text(first.head.created_at_us)}",
            )
        top, path, before = first, first.head.path, first.head.manifest_version


def left_behind(lineage: Lineage, head: Snapshot) -> Iterator[Snapshot]:
    """What a branch showed each time before it was set back, as far as that is known."""
    state = head
    while state.rewound_at > 1:
        before = ManifestPlace(path=state.path, version=state.rewound_at - 1)
        found = lineage.if_kept(before)
        if found is None:
            return
        state = found
        yield state


class _MomentSearch:
    """One look for a moment among the versions of one manifest."""

    def __init__(self, repository: Repository, path: str, at_us: int) -> None:
        self._repository = repository
        self._lineage = repository.lineage
        self._path = path
        self._at_us = at_us

    def below(self, before: int, top: Snapshot, first: Snapshot) -> Snapshot:
        """The state at the moment: not before ``first``, and before the version ``before``, which
        the line of ``top`` leads through."""
        low, high = first, before
        while high - low.version > 1:
            middle = (low.version + high) // 2
            found = self._at(middle)
            if found is None:
                return self._among_islands(low, high, top)
            if found.head.created_at_us <= self._at_us:
                low = found
            else:
                top, high = found, middle
        return low

    def _among_islands(self, low: Snapshot, high: int, top: Snapshot) -> Snapshot:
        """The same where versions are missing: one listing says which are there."""
        there = [v for v in self._there() if low.version < v < high]
        first, last = 0, len(there)  # Those before the first are not later than the moment.
        while first < last:
            middle = (first + last) // 2
            found = self._at(there[middle])
            if found is None:  # Gone since it was listed.
                del there[middle]
                last -= 1
            elif found.head.created_at_us <= self._at_us:
                low, first = found, middle + 1
            else:
                top, high, last = found, found.version, middle
        return self._unless_followed(low, high, top)

    def _unless_followed(self, low: Snapshot, high: int, top: Snapshot) -> Snapshot:
        """``low``, if nothing that is gone came after it and before the moment."""
        if high - low.version == 1:
            return low
        for commit in self._lineage.first_parents(top):
            if commit.path != self._path or commit.manifest_version <= low.version:
                break
            if commit.created_at_us <= self._at_us:
                raise reclaimed(commit.place)
            left_behind = commit.manifest_version - 1
            if commit.kind == "reset" and left_behind > low.version:
                # What the branch showed before is in no list any more.
                raise reclaimed(ManifestPlace(path=self._path, version=left_behind))
            if commit.kind == "reset":
                break
        return low

    def _at(self, version: int) -> Snapshot | None:
        return self._lineage.if_kept(ManifestPlace(path=self._path, version=version))

    def _there(self) -> list[int]:
        entries = self._repository.objects.entries(f"{self._path}/_versions")
        versions = (version_of(entry.name) for entry in entries if entry.size)
        return sorted(version for version in versions if version is not None)


def _text(at_us: int) -> str:
    moment = datetime.fromtimestamp(at_us / 1e6, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
