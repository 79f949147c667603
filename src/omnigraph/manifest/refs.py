"""Which branches exist, and where each one's manifest lives.

``main`` is the dataset ``__manifest``. Every other branch is a ref object that names one
*incarnation* (a ULID) and the fork point; the incarnation has a manifest dataset of its own. The
ref is created with put-if-absent and is the authority that the branch exists: deleting and
creating a name again gives a new incarnation, so nothing of the old life is mistaken for the new.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote

from omnigraph.errors import CorruptionError, ErrorKind, NotFoundError, UsageError
from omnigraph.manifest.snapshot import MAIN
from omnigraph.storage.objects import Objects

MAIN_PATH = "__manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRef:
    """The authority on one life of one branch."""

    name: str
    incarnation: str
    parent: str
    fork_commit: str
    """The commit the branch started from."""

    @property
    def manifest_path(self) -> str:
        """The branch's manifest dataset, relative to the root."""
        return f"_branches/{self.incarnation}"

    def encode(self) -> bytes:
        """The ref object's bytes."""
        return json.dumps(
            {
                "name": self.name,
                "incarnation": self.incarnation,
                "parent": self.parent,
                "fork_commit": self.fork_commit,
            },
            separators=(",", ":"),
        ).encode()

    @staticmethod
    def decode(content: bytes, name: str) -> BranchRef:
        """Read a ref object."""
        try:
            fields = json.loads(content)
            return BranchRef(
                name=fields["name"],
                incarnation=fields["incarnation"],
                parent=fields["parent"],
                fork_commit=fields["fork_commit"],
            )
        except (ValueError, KeyError, TypeError) as e:
            raise CorruptionError(f"the ref of branch '{name}' cannot be read: {e}") from e


def ref_name(branch: str) -> str:
    """The name of a branch's ref object: one flat folder, so no name is a prefix of another."""
    return f"_refs/branches/{quote(branch, safe='')}.json"


def check_branch_name(branch: str) -> str:
    """A usable branch name, trimmed."""
    if not isinstance(branch, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a branch is named by a text, not by {branch!r}")
    name = branch.strip()
    if not name or len(name) > 200 or any(ord(c) < 32 for c in name):
        raise UsageError(f"not a branch name: {branch!r}", hint="use 1 to 200 printable characters")
    return name


def manifest_path(objects: Objects, branch: str) -> str:
    """Where a branch's manifest dataset is. ``main`` costs nothing, others one request."""
    name = check_branch_name(branch)
    if name == MAIN:
        return MAIN_PATH
    content = objects.get(ref_name(name))
    if content is None:
        raise NotFoundError(
            f"no branch '{name}' in {objects.location.uri}",
            kind=ErrorKind.BRANCH_NOT_FOUND,
            hint="the default branch is 'main'",
            details={"branch": name},
        )
    return BranchRef.decode(content, name).manifest_path
