"""Making, ending and naming branches; each costs the same for one table and for a thousand.

    create:  manifest dataset (invisible) -> ref            the ref makes the branch exist
    delete:  a last version of the manifest -> its ref ends  no writer gets past the last version
    rename:  ref of the new name -> manifest -> the old ref ends

A table is never touched: a branch pins the versions that its parent pinned. A crash between two
steps leaves an invisible dataset, or a step that the next process takes: a name is never stuck.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from omnigraph.errors import (
    AlreadyExistsError,
    ConflictError,
    ErrorKind,
    InternalError,
    NotFoundError,
    OmnigraphError,
    UsageError,
)
from omnigraph.failpoints import FailPoint, hit
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.kept import reclaimed
from omnigraph.manifest.refs import (
    BranchRef,
    branch_names,
    branch_not_found,
    branch_path,
    branch_ref,
    check_branch_name,
    create_branch_ref,
    end_branch_ref,
    find_branch,
    newest_life,
)
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot, moment_text
from omnigraph.manifest.store import Head, ManifestStore
from omnigraph.manifest.targets import check_new_name
from omnigraph.show.shown import Shown
from omnigraph.storage.objects import Objects
from omnigraph.write.fence import check_still_kept
from omnigraph.write.plan import check_lineage_text

CREATION_S_MAX = 60
"""A process that needed longer to make a branch looks whether all of it is still there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchInfo(Shown):
    """What is known about a branch."""

    name: str
    head: GraphCommit
    manifest_version: int
    parent: str | None = None
    """None for main, as is all that follows."""
    fork_commit: str | None = None
    incarnation: str | None = None
    created_at_us: int | None = None
    actor: str | None = None
    description: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As ``branch show --json`` shows it."""
        return {
            "name": self.name,
            "graph_commit_id": self.head.id,
            "graph_manifest_version": self.manifest_version,
            "parent": self.parent,
            "fork_commit_id": self.fork_commit,
            "incarnation": self.incarnation,
            "created_at": self.created_at_us,
            "actor_id": self.actor,
            "description": self.description,
        }

    def _facts(self) -> tuple[str, dict[str, Any]]:
        return f"Branch {self.name}", {
            "newest commit": self.head.id,
            "version": self.manifest_version,
            "made from": self.parent,
            "at commit": self.fork_commit,
            "created": None if self.created_at_us is None else moment_text(self.created_at_us),
            "actor": self.actor,
            "description": self.description,
        }


def list_branches(repository: Repository) -> list[str]:
    """All names, main first. One request, whatever their number."""
    return [MAIN, *branch_names(repository.objects)]


def create_branch(
    repository: Repository,
    name: str,
    start: Snapshot,
    *,
    description: str | None = None,
    actor: str | None = None,
) -> BranchInfo:
    """Make a branch that shows ``start``. Raises ``AlreadyExistsError`` if the name is taken."""
    name = check_branch_name(name)
    check_new_name(name, "branch")
    check_lineage_text(actor, description)
    if name == MAIN:
        raise _exists(name)
    ref = BranchRef(
        name=name,
        life=1,
        incarnation=repository.ids.ulid(),
        parent=start.branch,
        fork_commit=start.head.id,
        created_at_us=repository.clock.now_us(),
        actor=actor,
    )
    store, began_s = repository.manifest(ref.manifest_path), repository.clock.monotonic_s()
    first = replace(
        start,
        branch=name,
        path=ref.manifest_path,
        version=1,
        facts=replace(start.facts, rewound_at=0),
        format=graph_format.FORMAT,
        steps=(),
    )
    staged = store.stage_first(first)
    if staged is not None:
        repository.sync(store.files_of(staged))
    head = store.create(staged) if staged is not None else None
    if head is None:
        raise UsageError(f"the incarnation {ref.incarnation} was drawn twice")
    repository.sync([store.manifest_name(1)])
    if description is not None:
        repository.objects.put(_about(ref.incarnation), description.encode())
    hit(FailPoint.BRANCH_BEFORE_REF)
    ref = _named(repository, ref, unused=not _was_swept(repository, start))
    try:
        check_still_kept(repository, start)
        # A cleanup takes datasets that nothing has led to for long.
        slow = repository.clock.monotonic_s() - began_s > CREATION_S_MAX
        if slow and store.is_reclaimed(1):
            raise reclaimed(start.place)
    except NotFoundError:
        _take_back(repository, ref, head)
        raise
    repository.branches.keep(repository.branches.of(ref, head))
    return _info(ref, head.snapshot, description)


def _was_swept(repository: Repository, start: Snapshot) -> bool:
    """Whether there may have been a cleanup. Earlier releases let it take first lives of names."""
    known, main = repository.branches.known(start.branch), repository.branch(MAIN)
    is_newest = known is not None and known.head.snapshot.place == start.place
    newest = main.head if is_newest else main.refresh()
    return max(newest.snapshot.swept, start.swept) > 0


def _take_back(repository: Repository, ref: BranchRef, head: Head) -> None:
    """End a branch that should not have been made: in its manifest, too, which decides."""
    with suppress(OmnigraphError):  # If its first version is gone, nothing of it seems to live.
        made = repository.branches.of(ref, head)
        made.refresh()
        _restate(repository, made, lambda snapshot: snapshot.saying(deleted=True))
    end_branch_ref(repository.objects, ref)


def delete_branch(
    repository: Repository, name: str, *, expected_commit: str | None = None
) -> BranchInfo:
    """End a branch. Others that were made from it keep everything they show.

    With ``expected_commit`` only if that is still its newest commit.
    """
    name = check_branch_name(name)
    if name == MAIN:
        raise UsageError("main cannot be deleted", hint="every graph has it")
    branch, ref = _opened(repository, name)

    def ended(snapshot: Snapshot) -> Snapshot:
        if expected_commit is not None and snapshot.head.id != expected_commit:
            raise ConflictError(
                f"branch '{name}' is at commit {snapshot.head.id}, not at {expected_commit}",
                kind=ErrorKind.PRECONDITION_FAILED,
                hint="it was written to meanwhile: look at it before you delete it",
                details={"expected": expected_commit, "actual": snapshot.head.id},
            )
        return snapshot.saying(deleted=True)

    try:
        _restate(repository, branch, ended)
    except NotFoundError:
        # It has ended: by this command, whose answer was lost, or by another one with the same aim.
        # Or another process renamed it: then it is not what was to be deleted.
        if not branch.gone or not branch.store.head().snapshot.deleted:
            raise
    branch.gone = True
    hit(FailPoint.BRANCH_BEFORE_DEATH)
    swept = branch.head.snapshot.swept > 0
    repository.sync([end_branch_ref(repository.objects, ref, swept=swept)])
    return _info(ref, branch.head.snapshot, None)


def rename_branch(repository: Repository, name: str, new_name: str) -> BranchInfo:
    """Give a branch another name. It stays the same branch; running writes go on."""
    name, new_name = check_branch_name(name), check_branch_name(new_name)
    check_new_name(new_name, "branch")
    if name == MAIN or new_name == MAIN:
        raise UsageError("main keeps its name", hint="create a branch from it instead")
    if name == new_name:
        raise UsageError(f"the branch is called '{name}' already")
    branch, ref = _opened(repository, name)
    swept = branch.head.snapshot.swept > 0
    try:
        renamed, head = _renamed(repository, branch, replace(ref, name=new_name), unused=not swept)
    except AlreadyExistsError:
        if branch.gone:  # It had the name for a moment, and then another branch had.
            give_free_name(repository, ref)
        raise
    hit(FailPoint.BRANCH_BEFORE_DEATH)
    repository.sync([end_branch_ref(repository.objects, ref, swept=swept)])
    repository.branches.keep(repository.branches.of(renamed, head))
    return _info(renamed, head.snapshot, _description(repository, renamed))


def branch_info(repository: Repository, name: str) -> BranchInfo:
    """What is known about a branch."""
    name = check_branch_name(name)
    snapshot = repository.head(name).snapshot
    if name == MAIN:
        return BranchInfo(name=MAIN, head=snapshot.head, manifest_version=snapshot.version)
    ref = _ref(repository, name)
    return _info(ref, snapshot, _description(repository, ref))


def describe_branch(repository: Repository, name: str, description: str | None) -> BranchInfo:
    """Say what a branch is for; None takes that back."""
    name = check_branch_name(name)
    check_lineage_text(None, description)
    if name == MAIN:
        raise UsageError("main has no description")
    ref = _ref(repository, name)
    if description is None:
        repository.objects.delete([_about(ref.incarnation)])
    else:
        # Belongs to this life alone, so saying it too late does no harm.
        repository.objects.put(_about(ref.incarnation), description.encode())
    return branch_info(repository, name)


def _named(repository: Repository, ref: BranchRef, *, unused: bool = False) -> BranchRef:
    """Make a name mean this branch: the life after its last one.

    ``unused`` names are nearly all: the first life is tried without looking, if it is certain that
    the number is taken where the name was used.
    """
    objects = repository.objects
    if unused and create_branch_ref(objects, first := replace(ref, life=1)):
        repository.sync([first.object_name])
        return first
    while True:
        life, dead = newest_life(objects, ref.name)
        other = branch_ref(objects, ref.name, life) if life and not dead else None
        if other is not None:
            if other.incarnation == ref.incarnation:
                return other  # It was made, and only the answer got lost, or its maker died.
            if not is_over(repository, other):
                raise _exists(ref.name)
            # The process that deleted or renamed it died before its ref said so.
            end_branch_ref(objects, other)
            if not is_over(repository, other):
                # It was just being given this name, and has it now. The process that did that
                # looks for its ref after its manifest says so, and here it was the other way
                # round: one of both sees the other.
                _named(repository, other)
                raise _exists(ref.name)
        ref = replace(ref, life=life + 1)
        if create_branch_ref(objects, ref) and _is_last(objects, ref):
            repository.sync([ref.object_name])
            return ref


def _renamed(
    repository: Repository, branch: Branch, ref: BranchRef, *, unused: bool = False
) -> tuple[BranchRef, Head]:
    """Give a branch the name of a ref: the ref, then the manifest, then a look at the ref again.

    Another writer of the same name may meanwhile take the ref for an unfinished one, and end it.
    """
    given = _named(repository, ref, unused=unused)
    hit(FailPoint.BRANCH_BEFORE_RENAME)
    try:
        _restate(repository, branch, lambda s: replace(s, branch=ref.name))
        head = branch.head
    except NotFoundError:
        head = branch.store.head()
        if head.snapshot.deleted or head.snapshot.branch != ref.name:
            end_branch_ref(repository.objects, given)  # It ended, or got a third name, meanwhile.
            raise
    branch.gone = True
    if newest_life(repository.objects, ref.name) != (given.life, False):
        given = _named(repository, given)
    return given, head


def give_free_name(repository: Repository, ref: BranchRef) -> BranchRef:
    """Name a branch that lost its name: as its ref says, or with a number if that is taken."""
    for number in count(1):
        head = repository.manifest(ref.manifest_path).head()
        branch = repository.branches.of(replace(ref, name=head.snapshot.branch), head)
        name = ref.name if number == 1 else numbered(ref.name, number)
        with suppress(AlreadyExistsError):
            return _renamed(repository, branch, replace(ref, name=name))[0]
    raise InternalError("numbers have ended")


def numbered(name: str, number: int) -> str:
    """Another name for a branch whose name is taken; as long as a name may be."""
    ending = f"-{number}"
    while True:
        try:
            return check_branch_name(name + ending)
        except UsageError:
            name = name[:-1]


def _restate(
    repository: Repository, branch: Branch, change: Callable[[Snapshot], Snapshot]
) -> None:
    # Most uses of this module only look at branches; the write machine is a large import.
    from omnigraph.write.publish import restate

    restate(repository, branch, change)


def _is_last(objects: Objects, ref: BranchRef) -> bool:
    """Whether a life that was just begun is the last of its name.

    A slow process may have been given a number that others have used since, and that a cleanup took
    away. No reader opens such a life: a later one is there. The first number is never taken away.
    """
    if ref.life == 1 or newest_life(objects, ref.name) == (ref.life, False):
        return True
    objects.create(ref.death_name, b"{}")
    return False


def is_over(repository: Repository, ref: BranchRef) -> bool:
    """Whether a life has ended, or goes on under another name, although its ref is there."""
    snapshot = repository.manifest(ref.manifest_path).head().snapshot
    return snapshot.deleted or snapshot.branch != ref.name


def _ref(repository: Repository, name: str) -> BranchRef:
    repository.head(name)  # That it was deleted or renamed is said there.
    ref = repository.branch(name).ref
    if ref is None:
        raise branch_not_found(name, repository.location.uri)
    return ref


def _description(repository: Repository, ref: BranchRef) -> str | None:
    about = repository.objects.get(_about(ref.incarnation))
    return about.decode() if about else None


def _opened(repository: Repository, name: str) -> tuple[Branch, BranchRef]:
    """A branch at its newest head, and its ref; with as few requests as can be."""
    known = repository.branches.known(name)
    if known is not None and known.ref is not None:
        try:
            known.refresh()
            return known, known.ref
        except NotFoundError:
            if not known.gone:
                raise  # Else another branch may have the name by now.
    try:
        ref, head = repository.branches.life(name, ManifestStore.listed)
    except NotFoundError:
        left = find_branch(repository.objects, name)
        if left is not None:  # The process that deleted it died before.
            end_branch_ref(repository.objects, left)
        raise
    return repository.branches.of(ref, head), ref


def _info(ref: BranchRef, snapshot: Snapshot, description: str | None) -> BranchInfo:
    return BranchInfo(
        name=ref.name,
        head=snapshot.head,
        manifest_version=snapshot.version,
        parent=ref.parent,
        fork_commit=ref.fork_commit,
        incarnation=ref.incarnation,
        created_at_us=ref.created_at_us,
        actor=ref.actor,
        description=description,
    )


def _about(incarnation: str) -> str:
    return f"{branch_path(incarnation)}/_about.txt"


def _exists(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"there is a branch '{name}' already",
        kind=ErrorKind.BRANCH_EXISTS,
        hint="choose another name, or delete that one first",
        details={"branch": name},
    )
