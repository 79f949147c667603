"""The changes that one commit made, as many at a time as a page takes.

    commit, its first parent -> diff -> [blocks] -> cause and changes

Changes stay the lines of text that they will be sent as; they become objects when they are asked
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import orjson

from omnigraph.arrow.compute import pc
from omnigraph.branch.changes import EntityChange, parse_change, pieces
from omnigraph.branch.delta import RowDelta
from omnigraph.branch.diff import Diff
from omnigraph.branch.feed.schema_changes import SchemaChange, schema_change
from omnigraph.branch.feed.tokens import ChangeFilter
from omnigraph.errors import UsageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import GraphCommit, ManifestPlace, Snapshot

CHANGES, CHANGES_MAX = 1_000, 8_192
BYTES, BYTES_MAX = 4 << 20, 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSize:
    """How much one page holds at most; a single change that is larger travels alone."""

    changes: int = CHANGES
    nbytes: int = BYTES

    @staticmethod
    def of(max_changes: int | None, max_bytes: int | None) -> PageSize:
        """From what was asked for."""
        return PageSize(
            changes=within("max_changes", max_changes, CHANGES, CHANGES_MAX),
            nbytes=within("max_bytes", max_bytes, BYTES, BYTES_MAX),
        )


def within(name: str, asked: object, default: int, most: int) -> int:
    """A limit that was asked for, between 1 and ``most``."""
    if asked is None:
        return default
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= most:
        raise UsageError(f"{name} is {asked!r}", hint=f"it is a number from 1 to {most:,}")
    return asked


class Room:
    """What is left of a page."""

    def __init__(self, size: PageSize) -> None:
        self._changes = size.changes
        self._bytes = size.nbytes
        self._is_empty = True
        self.is_full = False

    @property
    def changes(self) -> int:
        """So many more may come, if they are not too large."""
        return 0 if self.is_full else self._changes

    def take(self, sizes: np.ndarray[Any, np.dtype[np.int64]]) -> int:
        """How many of the next changes go onto the page, by their sizes in bytes."""
        fitting = int(np.searchsorted(np.cumsum(sizes), self._bytes, side="right"))
        taken = min(fitting, self._changes)
        if not taken and self._is_empty and len(sizes):
            taken = 1  # Larger than any page: alone on this one.
        self._changes -= taken
        self._bytes -= int(sizes[:taken].sum())
        self._is_empty = self._is_empty and not taken
        self.is_full = taken < len(sizes) or self._changes <= 0 or self._bytes <= 0
        return taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The commit that made changes."""

    commit_id: str
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    branch: str
    """The name of the branch it was made on, then."""
    actor: str | None
    authored_at_us: int

    @staticmethod
    def of(commit: GraphCommit) -> Cause:
        return Cause(
            commit_id=commit.id,
            parent_commit_id=commit.parent_id,
            merged_parent_commit_id=commit.merged_parent_id,
            branch=commit.branch,
            actor=commit.actor,
            authored_at_us=commit.created_at_us,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without what is absent."""
        found = {
            "graph_commit_id": self.commit_id,
            "parent_commit_id": self.parent_commit_id,
            "merged_parent_commit_id": self.merged_parent_commit_id,
            "authored_branch": self.branch,
            "actor_id": self.actor,
            "authored_at": self.authored_at_us,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ChangeBlock:
    """What one commit changed, or the part of it that is on this page."""

    cause: Cause
    lines: tuple[str, ...]
    """Each change as JSON."""
    place: ManifestPlace
    """Where the commit's snapshot is found."""
    schema: SchemaChange | None = None
    """What it changed about the schema, on the first of its pages: to be followed first."""
    continued: bool = False
    """More changes of this commit are on the next page."""
    next_page_token: str | None = None
    """Only of changes that were asked for by commit."""

    @cached_property
    def changes(self) -> tuple[EntityChange, ...]:
        """Nodes before edges, types by number, then by id."""
        return tuple(parse_change(line) for line in self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def to_json(self) -> str:
        """One line of JSON, without its end."""
        parts = [f'"cause":{_json(self.cause.to_dict())}']
        if self.schema is not None:
            parts.append(f'"schema":{_json(self.schema.to_dict())}')
        parts.append(f'"changes":[{",".join(self.lines)}]')
        if self.continued:
            parts.append('"continued":true')
        if self.next_page_token is not None:
            parts.append(f'"next_page_token":{_json(self.next_page_token)}')
        return f"{{{','.join(parts)}}}"

    def to_dict(self) -> dict[str, Any]:
        """As ``changes show --json`` shows it."""
        shown: dict[str, Any] = {"cause": self.cause.to_dict()}
        if self.schema is not None:
            shown["schema"] = self.schema.to_dict()
        shown["changes"] = [change.to_dict() for change in self.changes]
        if self.continued:
            shown["continued"] = True
        if self.next_page_token is not None:
            shown["next_page_token"] = self.next_page_token
        return shown


class BlockReader:
    """Changes of commits. A commit of many pages is compared once, as long as they are asked for
    one after the other."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._open: Diff | None = None
        self._lock = Lock()

    def lines(
        self, before: Snapshot, after: Snapshot, chosen: ChangeFilter, offset: int, room: Room
    ) -> tuple[list[str], bool]:
        """Changes from ``offset`` on that fit into the room, and whether these were the last."""
        diff = self._diff(before, after)
        found: list[str] = []
        for delta in _deltas(diff, chosen):
            if offset >= len(delta):
                offset -= len(delta)
                continue
            if not room.changes:
                return self._unfinished(diff, found)
            taken = _take(delta, offset, room, found)
            if offset + taken < len(delta):
                return self._unfinished(diff, found)
            offset = 0
        self._keep(None)
        return found, True

    def schema(
        self, before: Snapshot, after: Snapshot, chosen: ChangeFilter, offset: int
    ) -> SchemaChange | None:
        """What changed about the schema; sent with the first changes of a commit."""
        if offset or before.schema_hash == after.schema_hash:
            return None
        schemas = [self._repository.schema(s.schema_hash) for s in (before, after)]
        return schema_change(schemas[0], schemas[1], chosen)

    def _unfinished(self, diff: Diff, found: list[str]) -> tuple[list[str], bool]:
        self._keep(diff)
        return found, False

    def _diff(self, before: Snapshot, after: Snapshot) -> Diff:
        with self._lock:
            known = self._open
        places = (before.place, after.place)
        if known is not None and (known.before.place, known.after.place) == places:
            return known
        return Diff(self._repository, before, after)

    def _keep(self, diff: Diff | None) -> None:
        with self._lock:
            self._open = diff


def _deltas(diff: Diff, chosen: ChangeFilter) -> Sequence[RowDelta]:
    if chosen.types:
        found = [diff.delta(pair) for pair in diff.types if chosen.wants(pair.newest)]
    else:
        found = diff.deltas(chosen.kinds)
    return [d.select(d.rows(*chosen.ops)) for d in found] if chosen.ops else found


def _take(delta: RowDelta, offset: int, room: Room, found: list[str]) -> int:
    """Move changes of a delta onto the page; returns how many."""
    end = min(len(delta), offset + room.changes)
    wanted = delta if end - offset == len(delta) else delta.select(np.arange(offset, end))
    taken = 0
    for piece in pieces(wanted):
        lines = piece.lines()
        count = room.take(pc.binary_length(lines).to_numpy())
        found += [line[:-1] for line in lines[:count].to_pylist()]
        taken += count
        if count < len(lines):
            break
    return taken


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
