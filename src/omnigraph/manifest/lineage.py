"""The commits behind a snapshot: walking back, across branches, and where two lines met.

    snapshot -> [lineage] -> commits, their snapshots, merge bases

A snapshot carries the newest commits of its own line; an older one is found in the manifest version
that it made, which again carries the ones before it. So a walk opens one manifest in fifty commits,
on whatever branch they were made, also on one that is long gone. Commits and their snapshots never
change: what was read once is kept.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock

from omnigraph.errors import CorruptionError, ErrorKind, NotFoundError
from omnigraph.manifest.snapshot import GraphCommit, ManifestPlace, Snapshot
from omnigraph.manifest.store import Head, ManifestStore

SNAPSHOTS_MAX = 128
FOUND_MAX = 4096
MILESTONE = 32
MILESTONES_TRIED_MAX = 64

_MINE, _THEIRS, _STALE = 1, 2, 4
_BOTH = _MINE | _THEIRS


@contextmanager
def unless_reclaimed() -> Generator[None]:
    """Leave a block without an error where the history that it reads was reclaimed."""
    try:
        yield
    except NotFoundError as e:
        if e.kind is not ErrorKind.HISTORY_RECLAIMED:
            raise


class Lineage:
    """The commit graph of one repository, read as far as it is asked for."""

    def __init__(self, store_at: Callable[[str], ManifestStore]) -> None:
        self._store_at = store_at
        self._heads: OrderedDict[ManifestPlace, Head] = OrderedDict()
        self._found: OrderedDict[tuple[str, int, str], GraphCommit] = OrderedDict()
        self._lock = Lock()

    def head_at(self, place: ManifestPlace) -> Head:
        """A version of a manifest, as of one of its states. Raises ``NotFoundError`` if it was
        reclaimed."""
        if place.back:
            head = self.head_at(place.whole)
            return Head(snapshot=head.snapshot.before(place.back), stored=head.stored)
        with self._lock:
            if place in self._heads:
                self._heads.move_to_end(place)
                return self._heads[place]
        store = self._store_at(place.path)
        try:
            head = store.at(place.version)
        except CorruptionError:
            # A cleanup leaves an emptied object, or none. Anything else that is there is damage.
            if not store.is_reclaimed(place.version):
                raise
            raise NotFoundError(
                f"the history at version {place.version} of {place.path} was reclaimed",
                kind=ErrorKind.HISTORY_RECLAIMED,
                hint="choose a newer commit; tags keep commits from being reclaimed",
                details={"path": place.path, "version": place.version},
            ) from None
        with self._lock:
            self._heads[place] = head
            while len(self._heads) > SNAPSHOTS_MAX:
                self._heads.popitem(last=False)
        return head

    def snapshot(self, place: ManifestPlace) -> Snapshot:
        """The snapshot at a place."""
        return self.head_at(place).snapshot

    def if_kept(self, place: ManifestPlace) -> Snapshot | None:
        """The snapshot at a place; None if it was reclaimed."""
        with unless_reclaimed():
            return self.snapshot(place)
        return None

    def first_parents(self, snapshot: Snapshot) -> Iterator[GraphCommit]:
        """The line of a snapshot, newest first, over the borders of branches."""
        commits = snapshot.commits
        while True:
            yield from commits
            oldest = commits[-1]
            if oldest.parent_id is None:
                return
            commits = self._before(commits)

    def _before(self, commits: Sequence[GraphCommit]) -> tuple[GraphCommit, ...]:
        """The line behind the last of these commits, as far as one manifest shows it.

        The snapshot that a commit made begins with the commit itself. Where that was reclaimed, one
        of the milestones before it shows the same line.
        """
        oldest, missing = commits[-1], None
        for known in (oldest, *(c for c in reversed(commits) if c.id != oldest.id)):
            if known is not oldest and not is_milestone(known, commits):
                continue
            try:
                line = self.snapshot(known.place).commits
            except NotFoundError as e:
                if e.kind is not ErrorKind.HISTORY_RECLAIMED:
                    raise
                missing = missing or e
                continue
            place = next((i for i, c in enumerate(line) if c.id == oldest.id), None)
            if place is not None and line[place + 1 :]:
                return line[place + 1 :]
        raise missing or CorruptionError(
            f"the manifests do not lead behind commit {oldest.id}",
            hint="restore the manifest from a copy of the graph",
        )

    def parents(self, commit: GraphCommit) -> tuple[GraphCommit, ...]:
        """The commits that a commit was made from, the first parent first."""
        return _Walk(self).parents(commit)

    def reachable(self, *snapshots: Snapshot) -> Iterator[GraphCommit]:
        """Everything that went into these snapshots, each commit before its parents."""
        return self.beyond(snapshots, ())

    def beyond(
        self, snapshots: Sequence[Snapshot], known: Sequence[Snapshot]
    ) -> Iterator[GraphCommit]:
        """What went into ``snapshots`` and not into ``known``, each commit before its parents.

        Nothing is read behind the point from which on everything is known.
        """
        walk = _Walk(self, [c for s in (*snapshots, *known) for c in s.commits])
        waiting = _Newest([])
        is_known: dict[str, bool] = {}
        unknown = 0
        """Commits in waiting that no known one has led to."""

        def meet(commit: GraphCommit, as_known: bool) -> None:
            nonlocal unknown
            before = is_known.get(commit.id)
            if before is None:
                waiting.push(commit)
            is_known[commit.id] = as_known or bool(before)
            unknown += (not is_known[commit.id]) - (before is False)

        for snapshot in known:
            meet(snapshot.head, True)
        for snapshot in snapshots:
            meet(snapshot.head, False)
        while unknown:
            # A generation is higher than all behind it, so what is said of the popped is final.
            commit = waiting.pop()
            if not is_known[commit.id]:
                unknown -= 1
                yield commit
            for parent in walk.parents(commit):
                meet(parent, is_known[commit.id])

    def as_far_as_known(
        self, *snapshots: Snapshot
    ) -> Iterator[tuple[GraphCommit, tuple[GraphCommit, ...]]]:
        """As ``reachable``, each commit with its parents. A way that was lost ends where it was
        lost, and the others go on."""
        walk = _Walk(self, [c for s in snapshots for c in s.commits])
        seen = {snapshot.head.id: snapshot.head for snapshot in snapshots}
        waiting = _Newest(seen.values())
        while waiting:
            commit = waiting.pop()
            parents = walk.known_parents(commit)
            for parent in parents:
                if parent.id not in seen:
                    seen[parent.id] = parent
                    waiting.push(parent)
            yield commit, parents

    def find(
        self, snapshot: Snapshot, commit_id: str, search: Callable[[], GraphCommit]
    ) -> GraphCommit:
        """A commit behind a snapshot by its whole id; searched for once.

        What lies behind a branch stays behind it, until the branch is set back.
        """
        key = (snapshot.path, snapshot.rewound_at, commit_id)
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        commit = search()  # Without the lock: two threads that search find the same.
        with self._lock:
            self._found[key] = commit
            while len(self._found) > FOUND_MAX:
                self._found.popitem(last=False)
        return commit

    def merge_bases(self, mine: Snapshot, theirs: Snapshot) -> tuple[GraphCommit, ...]:
        """The best common ancestors: those that are an ancestor of no other common one.

        One, as a rule; more when two lines have been merged into each other.
        """
        walk = _Walk(self, [*mine.commits, *theirs.commits])
        flags: dict[str, int] = {}
        waiting = _Newest([])
        for commit, flag in ((mine.head, _MINE), (theirs.head, _THEIRS)):
            if commit.id not in flags:
                waiting.push(commit)
            flags[commit.id] = flags.get(commit.id, 0) | flag
        bases: list[GraphCommit] = []
        fresh = set(flags)
        """Waiting commits that are not yet known to lie behind a base."""
        while fresh:
            # A generation is higher than all behind it, so the flags of what is popped are final.
            commit = waiting.pop()
            fresh.discard(commit.id)
            flag = flags[commit.id]
            if flag & _BOTH == _BOTH and not flag & _STALE:
                bases.append(commit)
                flag |= _STALE
            for parent in walk.parents(commit):
                if parent.id not in flags:
                    waiting.push(parent)
                flags[parent.id] = flags.get(parent.id, 0) | flag
                if flags[parent.id] & _STALE:
                    fresh.discard(parent.id)
                else:
                    fresh.add(parent.id)
        return tuple(bases)


class _Walk:
    """Parents of commits, remembered for one walk."""

    def __init__(self, lineage: Lineage, known: Iterable[GraphCommit] = ()) -> None:
        self._lineage = lineage
        self._known = {commit.id: commit for commit in known}

    def parents(self, commit: GraphCommit) -> tuple[GraphCommit, ...]:
        found: list[GraphCommit] = []
        if commit.parent_id is not None:
            found.append(self._commit(commit.parent_id, commit.place))
        if commit.merged_parent_id is not None and commit.merged_place is not None:
            found.append(self._commit(commit.merged_parent_id, commit.merged_place))
        return tuple(found)

    def known_parents(self, commit: GraphCommit) -> tuple[GraphCommit, ...]:
        """The same without those that no name leads to any more."""
        found: list[GraphCommit] = []
        places = (
            (commit.parent_id, commit.place),
            (commit.merged_parent_id, commit.merged_place),
        )
        for parent, place in places:
            if parent is not None and place is not None:
                with unless_reclaimed():
                    found.append(self._commit(parent, place))
        return tuple(found)

    def _commit(self, commit_id: str, place: ManifestPlace) -> GraphCommit:
        """A commit of the line that leads to a place."""
        if commit_id not in self._known:
            self._learn(commit_id, place)
        try:
            return self._known[commit_id]
        except KeyError:
            raise CorruptionError(
                f"commit {commit_id} is not in the line that ends at {place.path} {place.version}",
                hint="restore the manifest from a copy of the graph",
            ) from None

    def _learn(self, commit_id: str, place: ManifestPlace) -> None:
        """Read the line that leads to a place, or a milestone after it if it was reclaimed."""
        try:
            line = self._lineage.snapshot(place).commits
        except NotFoundError as missing:
            if missing.kind is not ErrorKind.HISTORY_RECLAIMED:
                raise
            at = next((c for c in self._known.values() if c.place == place), None)
            line = self._shown_by_milestone(commit_id, at.generation) if at is not None else None
            if line is None:
                raise
        self._known.update((c.id, c) for c in line)

    def _shown_by_milestone(
        self, commit_id: str, generation: int
    ) -> tuple[GraphCommit, ...] | None:
        later = [c for c in self._known.values() if c.generation > generation]
        later.sort(key=lambda c: c.generation)
        tried = 0
        for commit in later:
            parent = self._known.get(commit.parent_id or "")
            if parent is None or not crosses(commit.generation, parent.generation):
                continue
            tried += 1
            if tried > MILESTONES_TRIED_MAX:
                return None
            with suppress(NotFoundError):
                line = self._lineage.snapshot(commit.place).commits
                if any(c.id == commit_id for c in line):
                    return line
        return None


def is_milestone(commit: GraphCommit, line: Sequence[GraphCommit]) -> bool:
    """Whether cleanup keeps the manifest version of a commit for ever, for the way back through it.

    A line crosses a multiple of 32 generations at least every 32 commits, and a snapshot shows 50:
    so whatever else is gone, the way back is there.
    """
    parent = next((c for c in line if c.id == commit.parent_id), None)
    return parent is not None and crosses(commit.generation, parent.generation)


def crosses(generation: int, before: int) -> bool:
    """Whether a multiple of 32 lies between the generations of a commit and of its parent."""
    return generation // MILESTONE != before // MILESTONE


class _Newest:
    """Commits waiting to be looked at, the highest generation first."""

    def __init__(self, commits: Iterable[GraphCommit]) -> None:
        self._heap: list[tuple[int, int, str, GraphCommit]] = []
        for commit in commits:
            self.push(commit)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def push(self, commit: GraphCommit) -> None:
        # Ids are unique, so commits themselves are never compared.
        heapq.heappush(self._heap, (-commit.generation, -commit.created_at_us, commit.id, commit))

    def pop(self) -> GraphCommit:
        return heapq.heappop(self._heap)[-1]
