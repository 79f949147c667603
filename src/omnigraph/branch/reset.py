"""Setting a branch back to a state that it, or another branch, has shown.

The state is shown again by pointing at it; nothing is copied. The new commit follows the commit of
that state, so what came after it is no longer in the branch's history. It still exists: by its id,
by a tag or on another branch it can be read until it is reclaimed.
"""

from __future__ import annotations

from omnigraph.branch.diff import Diff
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.write.delta import Adoption
from omnigraph.write.publish import publish
from omnigraph.write.request import Receipt, Requires, WriteRequest
from omnigraph.write.txn import WriteTxn


def reset_branch(
    repository: Repository,
    branch: str,
    target: Snapshot,
    *,
    actor: str | None = None,
    message: str | None = None,
    expected_commit: str | None = None,
) -> Receipt:
    """Make a branch show ``target`` again. Nothing happens if that is its head already."""
    head = repository.head(branch).snapshot
    if head.head.id == target.head.id:
        return Receipt(commit=None, changes={}, attempts=1)

    def prepare(txn: WriteTxn) -> Adoption:
        changes = Diff(repository, txn.snapshot, target).counts
        return Adoption(snapshot=target, changes=changes, rewinds=True)

    return publish(
        repository,
        WriteRequest(
            kind="reset",
            branch=branch,
            prepare=prepare,
            actor=actor,
            message=message,
            # What is left behind is what was looked at: a commit in between would vanish unseen.
            expected_commit=expected_commit or head.head.id,
            requires=Requires.COMMIT | Requires.NEWEST_HEAD,
        ),
    )
