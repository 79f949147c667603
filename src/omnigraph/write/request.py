"""What is asked of the door, and what it answers.

caller -> [request] -> publish -> [receipt]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Flag, auto

from omnigraph.manifest.snapshot import GraphCommit, TableChange
from omnigraph.write.plan import HeadIs
from omnigraph.write.stage import BulkChange
from omnigraph.write.txn import Adoption, GraphDelta, WriteTxn

Change = GraphDelta | BulkChange | Adoption


class Requires(Flag):
    """What a write needs beyond being published whole or not at all."""

    NOTHING = 0
    NEWEST_HEAD = auto()
    """Pin the newest head of all processes, not merely the newest this one knows of (one request).
    For writes that replace what they have seen; others find out when they publish."""
    OWN_DECISION = auto()
    """``prepare`` derives from the snapshot it is given whatever it removes. After a lost race it
    is simply asked again: what it then removes it has seen (ADR 0007). A delta that was fixed
    before instead expects its tables unchanged."""
    COMMIT = auto()
    """Publish a commit although no table changes: for what it says about the lineage."""
    LEASE = auto()
    """Files are written while it is prepared, perhaps for hours, perhaps elsewhere: its intent is
    there from the beginning and is renewed, so that it is not taken for dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """What is to be published."""

    kind: str
    branch: str
    prepare: Callable[[WriteTxn], Change]
    """The change against a pinned snapshot. Called again only when the schema or the read set
    moved; an equal delta (the same object) keeps its data files."""
    actor: str | None = None
    message: str | None = None
    expected_commit: str | None = None
    requires: Requires = Requires.NOTHING
    joins: bool = False
    """It may be published together with others that wait on the same handle, if they do not
    concern each other: its change is rows in memory."""
    merged: GraphCommit | None = None
    """Recorded as the second parent."""
    revokes: tuple[str, ...] = ()
    """Operations that may not publish on this branch from now on."""

    @property
    def expects(self) -> tuple[HeadIs, ...]:
        """What the caller says about the state that is replaced."""
        return () if self.expected_commit is None else (HeadIs(commit_id=self.expected_commit),)

    @property
    def begins_on_newest(self) -> bool:
        """Whether the first snapshot must be the newest there is."""
        # A long write must not find out after hours that a cleanup ran before it began.
        needs = Requires.NEWEST_HEAD | Requires.LEASE
        return bool(self.requires & needs) or self.expected_commit is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a write did."""

    commit: GraphCommit | None
    """None when nothing changed: then nothing was published."""
    changes: Mapping[str, TableChange]
    attempts: int
    unchanged: Mapping[str, int]
    """By table key: rows that were asked for and are committed as they are."""
