"""What a merge did, or would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.branch.merge.conflicts import MergeConflict
from omnigraph.manifest.snapshot import GraphCommit, TableChange


class MergeOutcome(StrEnum):
    """How a merge ended."""

    UP_TO_DATE = "already_up_to_date"
    """There was nothing to merge: no commit."""
    FAST_FORWARD = "fast_forward"
    """The target had nothing of its own: it shows the state of the source."""
    MERGED = "merged"
    CONFLICTS = "conflicts"
    """Only of dry runs: a merge would be refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What a merge did."""

    outcome: MergeOutcome
    source: str
    """What was merged: a branch, a tag or a commit, as it was named."""
    target: str
    source_commit: str
    base_commits: tuple[str, ...]
    """The common ancestors that were compared with; several after criss-cross merges."""
    commit: GraphCommit | None
    """None when nothing was published."""
    changes: Mapping[str, TableChange]
    """What it did to the target, by table key."""
    conflicts: tuple[MergeConflict, ...] = ()
    """Only of dry runs."""
    dry_run: bool = False
    branch_deleted: bool | None = None
    """Whether the source was deleted; None when it was not asked for."""
    branch_delete_error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``branch merge --json``."""
        body: dict[str, Any] = {
            "outcome": str(self.outcome),
            "source": self.source,
            "target": self.target,
            "source_commit_id": self.source_commit,
            "base_commit_ids": list(self.base_commits),
            "commit": self.commit.to_dict() if self.commit is not None else None,
            "changes": {
                key: {"inserted": c.inserted, "updated": c.updated, "deleted": c.deleted}
                for key, c in self.changes.items()
            },
            "merge_conflicts": [c.to_dict() for c in self.conflicts],
        }
        if self.dry_run:
            body["dry_run"] = True
        if self.branch_deleted is not None:
            body["branch_deleted"] = self.branch_deleted
        if self.branch_delete_error is not None:
            body["branch_delete_error"] = self.branch_delete_error
        return body
