"""Taking a commit back, as a new commit.

    commit -> merge with base = the commit, theirs = its first parent -> [publish]

What the commit changed and was not changed since goes back to what it was. What was
changed since is a conflict, reported and decided as in a merge. A merge commit goes back to its
first parent: what came from the other branch is taken out.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.branch.diff import Diff
from omnigraph.branch.merge.conflicts import MergeResult, SideNames
from omnigraph.branch.merge.resolve import Decisions, Resolution, as_resolutions
from omnigraph.branch.merge.three_way import ThreeWay, carry_out
from omnigraph.branch.merge.threeway import Granularity
from omnigraph.errors import ErrorKind, UsageError
from omnigraph.manifest.kept import check_kept
from omnigraph.manifest.refs import check_branch_name
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot
from omnigraph.manifest.targets import Target, find_commit
from omnigraph.write.plan import check_lineage_text
from omnigraph.write.publish import publish
from omnigraph.write.request import Receipt, Requires, WriteRequest
from omnigraph.write.txn import Adoption, GraphDelta, WriteTxn

REVERT_ID_LENGTH = 10
"""So much of an id tells commits apart in messages."""


def revert(
    repository: Repository,
    commit: str | GraphCommit,
    *,
    branch: str = MAIN,
    granularity: str = "property",
    prefer: str | None = None,
    resolutions: Sequence[Resolution] | bytes | None = None,
    dry_run: bool = False,
    actor: str | None = None,
    message: str | None = None,
) -> MergeResult:
    """Undo one commit on a branch, as one new commit or not at all.

    *Ours* is the branch as it is, *theirs* the state before the commit. Raises
    ``MergeConflictError`` where later commits changed the same things.
    """
    branch = check_branch_name(branch)
    check_lineage_text(actor, message)
    wanted = Granularity.of(granularity)
    decisions = Decisions.of(prefer, as_resolutions(resolutions))
    if isinstance(commit, str):
        commit = find_commit(repository, Target(branch=branch, commit=commit))
    parents = repository.lineage.parents(commit)
    if not parents:
        raise UsageError(
            f"commit {commit.id} has no parent to go back to",
            kind=ErrorKind.PARENTLESS_COMMIT,
            hint="it made the graph: choose a later commit",
            details={"graph_commit_id": commit.id},
        )
    short = commit.id[:REVERT_ID_LENGTH]
    work = ThreeWay(
        repository,
        repository.lineage.snapshot(parents[0].place),
        base=repository.lineage.snapshot(commit.place),
        names=SideNames(ours=branch, theirs=f"before {short}"),
        granularity=wanted,
        decisions=decisions,
    )
    places = (commit.place, parents[0].place)

    def prepare(txn: WriteTxn) -> GraphDelta | Adoption:
        # What is still in memory of a state that was reclaimed is not enough to go back to it.
        swept = txn.snapshot.swept
        if branch != MAIN:  # Main hears of every cleanup; a new branch may not have.
            swept = max(swept, repository.head(MAIN).snapshot.swept)
        for place in places:
            check_kept(repository, place, swept)
        return work.prepare(txn)

    request = WriteRequest(
        kind="revert",
        branch=branch,
        prepare=prepare,
        actor=actor,
        message=message if message is not None else f"revert {commit.id}",
        requires=Requires.NEWEST_HEAD | Requires.OWN_DECISION,
    )
    return carry_out(repository, work, request, dry_run=dry_run)


# -- reset -----------------------------------------------------------------------------------------
# Setting a branch back to a state that it, or another branch, has shown.
#
# The state is shown again by pointing at it; nothing is copied. The new commit follows the commit
# of that state, so what came after it is no longer in the branch's history. It still exists: by its
# id, by a tag or on another branch it can be read until it is reclaimed.


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
        return Receipt(commit=None, changes={}, attempts=1, unchanged={})

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
