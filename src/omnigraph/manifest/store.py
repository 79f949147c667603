"""One branch's manifest: read the head, and replace it strictly.

    txn -> stage -> [manifest store: rows -> strict commit] -> visible

A commit here is the single moment at which a write becomes visible (INV-1). Everything before it is
invisible, everything after it is housekeeping.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from omnigraph.errors import (
    ConflictError,
    CorruptionError,
    ErrorKind,
    NotFoundError,
    OmnigraphError,
)
from omnigraph.manifest import codec
from omnigraph.manifest.hint import Hint
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.objects import Objects
from omnigraph.storage.reach import rows_files
from omnigraph.storage.strict import StagedRows, StrictDataset, StrictVersion

PROBES_MAX = 4
"""How many versions a warm handle steps forward before it asks like a cold one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A snapshot together with what is needed to replace it."""

    snapshot: Snapshot
    stored: StrictVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedHead:
    """The next head, its files written, not yet committed."""

    snapshot: Snapshot
    files: StagedRows


class ManifestStore:
    """The manifest dataset of one branch."""

    def __init__(self, objects: Objects, path: str) -> None:
        self._objects = objects
        self._path = path
        self._dataset = StrictDataset(objects.location, objects, path)
        self.mirrors_at: str | None = None
        """Where the graph was when its mirrors were made, as far as the hint says so: main's."""

    @property
    def where(self) -> str:
        """The graph it belongs to."""
        return self._objects.location.uri

    def stage_first(self, snapshot: Snapshot) -> StagedHead | None:
        """Write the files of the first version; None when the graph exists already."""
        files = self._dataset.stage_first(codec.to_table(snapshot))
        return StagedHead(snapshot=snapshot, files=files) if files is not None else None

    def create(self, staged: StagedHead) -> Head | None:
        """Commit the first version; None when the graph exists already."""
        stored = self._dataset.create(staged.files)
        return Head(snapshot=staged.snapshot, stored=stored) if stored is not None else None

    def hinted(self) -> bool:
        """Whether a hint shows that there is a graph; False proves nothing."""
        return self._hint() is not None

    def head(self, ahead: Callable[[Snapshot], object] | None = None) -> Head:
        """The newest version: by the hint and one probe, else by listing.

        ``ahead`` is done beside the probe with the snapshot that will probably be the newest.
        """
        hint = self._hint()
        if hint is not None and (head := self._hinted_head(hint, ahead)) is not None:
            return head
        stored = self._dataset.latest()
        where = self._objects.location.uri
        if stored is not None and stored.version >= (hint.version if hint else 0):
            return self._head(stored)
        if hint is not None:
            # A hint is written after its version. Showing an older one would be a silent rollback.
            missing = self._dataset.manifest_name(hint.version)
            raise CorruptionError(
                f"manifest version {hint.version} of {where} is missing",
                hint=f"restore {missing} from a copy of the graph; "
                f"after a power cut, delete {self._hint_name} to go on from what is left",
            )
        raise NotFoundError(
            f"no graph at {where}",
            hint=f"create one: omnigraph init --schema FILE {where}",
        )

    def _hinted_head(self, hint: Hint, ahead: Callable[[Snapshot], object] | None) -> Head | None:
        """The version that a hint names if it is the newest; its rows may be in the hint."""
        exists, version = self._dataset.exists, hint.version
        if hint.rows is not None:
            with suppress(CorruptionError):  # Then the version itself is looked for.
                head = self._head(self._dataset.known(version, hint.rows))
                beside = self._objects.beside
                if ahead is not None:
                    beside(lambda: _attempted(ahead, head.snapshot))
                over = beside(lambda: exists(version + 1))
                # That it is there is seen by what a write will need of it.
                there = len(head.stored.manifest) > 0
                return head if not over.result() and there else None
        if not exists(version + 1):
            with suppress(CorruptionError):  # Perhaps only the hint is wrong: the listing decides.
                return self._head(self._dataset.at(version))
        return None

    def listed(self) -> Head:
        """The newest version by listing: fewer requests, but a long answer at a long history."""
        stored = self._dataset.latest()
        if stored is None:
            raise CorruptionError(
                f"the manifest {self._path} of {self.where} is missing",
                hint="restore it from a copy of the graph",
            )
        return self._head(stored)

    def at(self, version: int) -> Head:
        """A version by number."""
        return self._head(self._dataset.at(version))

    def newer(self, head: Head) -> Head | None:
        """The newest version if there is one after ``head``; one HEAD when there is none."""
        known = head.snapshot.version
        if not self._dataset.exists(known + 1):
            return None
        # Writers that race are a few versions apart, and probing beats listing a long history.
        # A handle that slept for long asks like a cold one.
        for version in range(known + 1, known + 1 + PROBES_MAX):
            if not self._dataset.exists(version + 1):
                return self._same_graph(self.at(version), head)
        return self._same_graph(self.head(), head)

    def _same_graph(self, newer: Head, head: Head) -> Head:
        if newer.snapshot.graph_id != head.snapshot.graph_id:
            raise ConflictError(
                f"{self._objects.location.uri} is another graph now",
                kind=ErrorKind.READ_SET_CONFLICT,
                hint="it was deleted and created anew: open it again",
            )
        return newer

    def expect_commit(self, head: Head) -> None:
        """This head will be replaced: begin to read what that takes."""
        self._dataset.expect_commit(head.stored)

    def stage(self, head: Head, snapshot: Snapshot) -> StagedHead:
        """Write the files of the next version; may overlap other staging."""
        rows = codec.to_table(snapshot, (head.snapshot, head.stored.rows))
        files = self._dataset.stage(head.stored, rows)
        return StagedHead(snapshot=snapshot, files=files)

    def commit(self, head: Head, staged: StagedHead) -> Head:
        """The one door. Raises ``LostRaceError`` when ``head`` is no longer the newest."""
        stored = self._dataset.commit(head.stored, staged.files)
        return Head(snapshot=staged.snapshot, stored=stored)

    def files_of(self, staged: StagedHead) -> list[str]:
        """Files a durable commit must sync before it commits."""
        return self._dataset.files_of(staged.files)

    def manifest_name(self, version: int) -> str:
        """The object whose creation is the commit of a version."""
        return self._dataset.manifest_name(version)

    def write_hint(self, head: Head) -> None:
        """Tell cold readers where to start looking. Lagging or missing, it costs a listing."""
        # A disk gives the version itself as fast.
        rows = None if self._objects.location.is_local else head.stored.rows
        hint = Hint(version=head.snapshot.version, rows=rows, mirrors=self.mirrors_at)
        self._objects.put(self._hint_name, hint.encode())

    def note_mirrors(self, place: str, head: Head) -> None:
        """Let readers know where the graph was when its mirrors were made, if that is news."""
        if place != self.mirrors_at:
            self.mirrors_at = place
            self.write_hint(head)

    def exists(self, version: int) -> bool:
        """Whether a version is there: one HEAD."""
        return self._dataset.exists(version)

    def is_reclaimed(self, version: int) -> bool:
        """Whether a version is gone, or only its name is left: one HEAD."""
        found = self._objects.entry(self.manifest_name(version))
        return found is None or found.size == 0

    def files(self, head: Head) -> list[str]:
        """What a version consists of, from the root, beside the object that is its commit."""
        return rows_files(self._path, head.stored)

    def _head(self, stored: StrictVersion) -> Head:
        codec.check_format(stored.metadata, f"{self._objects.location.uri}/{self._path}")
        snapshot = codec.from_table(
            stored.rows, path=self._path, version=stored.version, metadata=stored.metadata
        )
        return Head(snapshot=snapshot, stored=stored)

    @property
    def _hint_name(self) -> str:
        return f"{self._path}/_head.json"

    def _hint(self) -> Hint | None:
        content = self._objects.get(self._hint_name)
        found = Hint.decode(content) if content else None
        self.mirrors_at = found.mirrors if found is not None else None
        return found


def _attempted(work: Callable[[Snapshot], object], snapshot: Snapshot) -> None:
    """Do something ahead; what goes wrong here does so again when it is needed."""
    with suppress(OmnigraphError):
        work(snapshot)
