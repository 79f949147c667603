"""What commands did to branches and tags: values for the output."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.manifest.snapshot import GraphCommit


class RefChange(StrEnum):
    """What was done to a branch or a tag."""

    CREATED = "created"
    DELETED = "deleted"
    RENAMED = "renamed"
    DESCRIBED = "described"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetDone:
    """A branch was set back."""

    branch: str
    target_commit: str
    previous_commit: str
    left_behind: int
    """Commits that the branch had and has no longer."""
    commit: GraphCommit | None
    """None: the branch was there already."""

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``commit reset --json``."""
        return {
            "branch": self.branch,
            "target_commit_id": self.target_commit,
            "previous_commit_id": self.previous_commit,
            "commits_left_behind": self.left_behind,
            "commit": self.commit.to_dict() if self.commit else None,
        }
