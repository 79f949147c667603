"""Branches as this process knows them: a name to one life of a branch, and that to its newest head.

    name -> [branches] -> ref -> manifest dataset -> head

Whether a branch lives and what it is called is decided by its manifest alone; refs only lead there.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, RLock

from omnigraph.clock import Clock
from omnigraph.errors import NotFoundError
from omnigraph.manifest.refs import (
    BranchRef,
    branch_not_found,
    check_branch_name,
    find_branch,
    first_life,
)
from omnigraph.manifest.snapshot import MAIN, MAIN_PATH, Snapshot
from omnigraph.manifest.store import Head, ManifestStore
from omnigraph.storage.objects import Objects

LOOK_AGAIN_US = 1_800_000_000
"""After half an hour a writer looks for newer versions first. A cleanup empties no version that is
younger than its grace window, an hour: a process that looked since does not run into an emptied
name, which Lance would examine three times, with pauses, before it reports anything."""


class Branch:
    """One life of a branch as this process last saw it."""

    def __init__(
        self,
        name: str,
        store: ManifestStore,
        head: Head,
        ref: BranchRef | None = None,
        *,
        clock: Clock,
    ) -> None:
        self.name = name
        self.store = store
        self.ref = ref
        """None for main."""
        self.gone = False
        """This life ended, or goes on under another name."""
        self._head = head
        self._clock = clock
        # The wall clock: a machine that is asleep stops the other one.
        self._looked_us = clock.now_us()
        self._lock = Lock()

    @property
    def head(self) -> Head:
        """The newest head this process knows of."""
        with self._lock:
            return self._head

    def recent(self) -> Head:
        """The same for a write that will replace it: after a long pause it is read anew."""
        with self._lock:
            slept = abs(self._clock.now_us() - self._looked_us) >= LOOK_AGAIN_US
        return self.refresh() if slept else self.head

    def advance(self, head: Head) -> None:
        """Learn of a newer head; an older one is ignored."""
        with self._lock:
            if head.snapshot.version > self._head.snapshot.version:
                self._head = head
                self._looked_us = self._clock.now_us()

    def refresh(self) -> Head:
        """Look for a newer version; one HEAD request when there is none.

        Raises ``NotFoundError`` when the branch was deleted or has another name now: both are
        versions of its manifest, so no holder can miss that.
        """
        # Before the store answers: what is published while it does was not seen.
        looked_us = self._clock.now_us()
        newer = self.store.newer(self.head)
        with self._lock:
            self._looked_us = looked_us
        if newer is not None:
            if not lives_as(newer.snapshot, self.name):
                self.gone = True
                raise branch_not_found(self.name, self.store.where)
            self.advance(newer)
        return self.head


def lives_as(snapshot: Snapshot, name: str) -> bool:
    """Whether a branch lives and has this name: its manifest decides, in one place for both."""
    return snapshot.branch == name and not snapshot.deleted


class OpenBranches:
    """The branches of a graph that are open, by name."""

    def __init__(
        self,
        objects: Objects,
        where: str,
        clock: Clock,
        *,
        ahead: Callable[[Snapshot], object] | None = None,
    ) -> None:
        self._objects = objects
        self._ahead = ahead
        """Is done with a snapshot while it is looked up whether it is the newest."""
        self._where = where
        self._clock = clock
        self._manifests: dict[str, ManifestStore] = {}
        self._open: dict[str, Branch] = {}
        # Held while the store is asked, so that a branch is opened once.
        self._opening = RLock()
        self._lock = Lock()
        self.published: str | None = None
        """The newest commit that this handle has published, on whichever branch."""

    def manifest(self, path: str) -> ManifestStore:
        """The manifest dataset of one life of a branch."""
        with self._lock:
            if path not in self._manifests:
                self._manifests[path] = ManifestStore(self._objects, path)
            return self._manifests[path]

    def open(self, name: str) -> Branch:
        """A branch by name; opened once, then kept."""
        with self._opening:
            return self.known(name) or self._open_anew(check_branch_name(name))

    def head(self, name: str) -> Head:
        """The newest head of a branch, whatever became of its name."""
        with self._opening:
            known = self.known(name)
            if known is None:
                return self._open_anew(check_branch_name(name)).head
        try:
            return known.refresh()
        except NotFoundError:
            if not known.gone:
                raise
            return self.open(name).head  # Another branch may have the name by now.

    def known(self, name: str) -> Branch | None:
        """A branch that is open already and lives, as far as this process knows."""
        with self._opening:
            # A name under which a branch is open was checked when it was opened.
            known = self._open.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
            if known is None:
                known = self._open.get(check_branch_name(name))
            return known if known is not None and not known.gone else None

    def living(self) -> list[Branch]:
        """All that are open and live, as far as this process knows."""
        return [branch for branch in list(self._open.values()) if not branch.gone]

    def keep(self, branch: Branch) -> None:
        """Keep a branch that was just created."""
        with self._opening:
            self._open[branch.name] = branch

    def of(self, ref: BranchRef, head: Head) -> Branch:
        """A branch whose ref and head are known."""
        return Branch(ref.name, self.manifest(ref.manifest_path), head, ref, clock=self._clock)

    def life(self, name: str, read: Callable[[ManifestStore], Head]) -> tuple[BranchRef, Head]:
        """The ref and the newest head of a living branch, read anew.

        A ref without a manifest that lives under its name was left by a process that died on the
        way.
        """
        for find in (first_life, find_branch):
            ref = find(self._objects, name)
            if ref is not None:
                head = read(self.manifest(ref.manifest_path))
                if lives_as(head.snapshot, name):
                    return ref, head
        raise branch_not_found(name, self._where)

    def _open_anew(self, name: str) -> Branch:
        if name == MAIN:
            store = self.manifest(MAIN_PATH)
            opened = Branch(name, store, store.head(self._ahead), clock=self._clock)
        else:
            opened = self.of(*self.life(name, lambda store: store.head(self._ahead)))
        self._open[name] = opened
        return opened
