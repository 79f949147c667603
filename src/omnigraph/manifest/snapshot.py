"""The snapshot: everything a graph is at one moment on one branch, as one immutable value.

It names the exact version of every table, the schema and the newest commits. A reader that holds
one reads the same graph for ever, whatever others publish. It does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from omnigraph.manifest.format import FORMAT
from omnigraph.show.shown import Shown
from omnigraph.storage.names import TableVersion

MAIN = "main"
MAIN_PATH = "__manifest"
"""The manifest dataset of main."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestPlace:
    """A version of a manifest dataset: where a snapshot is read from."""

    path: str
    """The dataset, from the root. One life of one branch, whatever it is called."""
    version: int
    back: int = 0
    """How many commits before the newest one of the version: writes that were published together
    share it, and each of their states can be read."""

    @property
    def whole(self) -> ManifestPlace:
        """The version itself: its newest state."""
        return replace(self, back=0) if self.back else self

    @property
    def fields(self) -> list[str | int]:
        """As JSON has it."""
        return [self.path, self.version, *([self.back] if self.back else [])]

    @staticmethod
    def of(fields: Sequence[Any]) -> ManifestPlace:
        """From JSON."""
        path, version, *back = fields
        return ManifestPlace(path=path, version=version, back=back[0] if back else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePin:
    """A table at the exact version that a snapshot shows."""

    table_key: str
    """``node:Name`` or ``edge:Name`` under the snapshot's schema."""
    type_id: int
    incarnation: int
    name: TableVersion
    row_count: int

    @property
    def stable_id(self) -> tuple[int, int]:
        """As ``GraphType.stable_id``: whose table it is, whatever the type is called."""
        return self.type_id, self.incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """What one commit did to one table."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCommit(Shown):
    """One record of the lineage."""

    id: str
    parent_id: str | None
    merged_parent_id: str | None
    branch: str
    place: ManifestPlace
    """Where the snapshot that it made is found."""
    kind: str
    """init, load, mutate, merge, schema_apply, optimize, repair …"""
    actor: str | None
    message: str | None
    created_at_us: int
    changes: Mapping[str, TableChange]
    """By table key."""
    generation: int = 1
    """One more than the highest of its parents: a commit has a lower one than its descendants."""
    merged_place: ManifestPlace | None = None
    """Where the merged parent is found."""

    @property
    def path(self) -> str:
        """The manifest dataset it was made in."""
        return self.place.path

    @property
    def manifest_version(self) -> int:
        """The version of that dataset."""
        return self.place.version

    def to_dict(self) -> dict[str, Any]:
        """As ``commit list --json`` shows it."""
        return {
            "graph_commit_id": self.id,
            "parent_commit_id": self.parent_id,
            "merged_parent_commit_id": self.merged_parent_id,
            "graph_branch": None if self.branch == MAIN else self.branch,
            "graph_manifest_version": self.manifest_version,
            "actor_id": self.actor,
            "created_at": self.created_at_us,
            "kind": self.kind,
            "message": self.message,
            "changes": {key: asdict(change) for key, change in self.changes.items()},
        }

    def _facts(self) -> tuple[str, dict[str, Any]]:
        return f"Commit {self.id}", {
            "branch": self.branch,
            "version": self.manifest_version,
            "kind": self.kind,
            "actor": self.actor,
            "message": self.message,
            "created": moment_text(self.created_at_us),
            "changes": changes_text(self.changes),
            "parent": self.parent_id,
            "merged parent": self.merged_parent_id,
        }


def moment_text(micros: int) -> str:
    """``2026-11-15 10:30:00Z``."""
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}Z"


def changes_text(changes: Mapping[str, TableChange]) -> str | None:
    """``Person +2 ~1, Knows -3``: inserted, updated, deleted by type; None if nothing changed."""
    words: list[str] = []
    for key, change in changes.items():
        counts = (("+", change.inserted), ("~", change.updated), ("-", change.deleted))
        signs = " ".join(f"{sign}{count:,}" for sign, count in counts if count)
        words += [f"{key.partition(':')[2]} {signs}"] if signs else []
    return ", ".join(words) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchFacts:
    """What a version of a manifest says about its branch, beside what the graph shows."""

    rewound_at: int = 0
    """The last version at which the branch left commits behind; 0 if it never did."""
    deleted: bool = False
    """The branch's life ended with this version."""
    revoked: tuple[str, ...] = ()
    """Operations that may not publish any more: what they staged is being reclaimed."""
    swept: int = 0
    """The number of the newest cleanup announced on this branch; what a write put into files before
    it may be gone (``manifest/sweeps.py``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A graph at one moment on one branch."""

    graph_id: str
    branch: str
    version: int
    """Of the branch's manifest."""
    schema_hash: str
    pins: Mapping[str, TablePin]
    """By table key; a declared type without a pin has no rows and no dataset yet."""
    commits: tuple[GraphCommit, ...]
    """The newest part of the first-parent lineage, newest first, never empty."""
    path: str = MAIN_PATH
    """The branch's manifest dataset."""
    facts: BranchFacts = BranchFacts()
    format: int = FORMAT
    """The stamp of this version of the manifest (``manifest/format.py``)."""
    steps: tuple[Mapping[str, TablePin], ...] = ()
    """The states that led here, if several writes were published together: the newest first, each
    by the tables that it shows in another version than this snapshot."""

    @property
    def place(self) -> ManifestPlace:
        """Where it is found."""
        if self._made(self.head):
            return self.head.place
        return ManifestPlace(path=self.path, version=self.version)

    @property
    def rewound_at(self) -> int:
        return self.facts.rewound_at

    @property
    def deleted(self) -> bool:
        return self.facts.deleted

    @property
    def revoked(self) -> tuple[str, ...]:
        return self.facts.revoked

    @property
    def swept(self) -> int:
        return self.facts.swept

    def saying(self, **facts: Any) -> Snapshot:
        """The same graph with something else to say about its branch."""
        return replace(self, facts=replace(self.facts, **facts))

    @property
    def head(self) -> GraphCommit:
        """The commit that made this snapshot."""
        return self.commits[0]

    @property
    def made(self) -> tuple[GraphCommit, ...]:
        """The commits that this version made, newest first; none if it only says something else
        about the branch."""
        return tuple(takewhile(self._made, self.commits))

    def _made(self, commit: GraphCommit) -> bool:
        return (commit.path, commit.manifest_version) == (self.path, self.version)

    @property
    def all_pins(self) -> Iterator[TablePin]:
        """The tables of this state and of those that led to it."""
        for pins in (self.pins, *self.steps):
            yield from pins.values()

    def before(self, back: int) -> Snapshot:
        """The state so many commits earlier, of those that were published together."""
        if not back:
            return self
        pins = {**self.pins, **self.steps[back - 1]}
        return replace(self, pins=pins, commits=self.commits[back:], steps=())

    def row_count(self, table_key: str) -> int:
        """Rows of a type."""
        pin = self.pins.get(table_key)
        return pin.row_count if pin is not None else 0
