"""Branches that live although their names do not lead to them.

    manifests of branches - heads that names lead to -> [lives] -> what a cleanup must not take

Whether a branch lives is decided by its manifest alone. A look at the names may pass over one that
is just being renamed. And earlier releases gave the number of a life twice: then two branches live
under one name, of which only one is found, or a branch lives and its ref is gone. Until ``repair``
has given such a branch a name it is kept and told of cleanups like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from omnigraph.branch.control import is_over
from omnigraph.errors import CorruptionError, NotFoundError
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.refs import BranchRef, all_lives, branch_ref, find_branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import ManifestPlace, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnamed:
    """A branch that lives and that no listing of names has led to."""

    head: Snapshot
    ref: BranchRef
    """Under which name it wants to be found."""
    found: bool
    """Its name leads to it after all: it was being renamed."""
    refs: tuple[BranchRef, ...]
    """Lives of its name that lead to it and are not over, but are not the last."""
    rival: BranchRef | None
    """The branch that its name leads to instead."""

    @property
    def key(self) -> str:
        """What to call it beside branches that have their names."""
        return self.head.branch if self.found else f"{self.head.branch} ({self.head.path})"


def unnamed_branches(
    repository: Repository, heads: Mapping[str, Snapshot], unreadable: Collection[str] = ()
) -> list[Unnamed]:
    """All branches that live and are not among these heads; not of names that cannot be read."""
    seen = {head.path for head in heads.values()}
    paths = [p for p in repository.objects.folders("_branches") if p not in seen]
    looks = [
        repository.background.pool.submit(_unnamed, repository, path, unreadable) for path in paths
    ]
    return [found for look in looks if (found := look.result()) is not None]


def _unnamed(repository: Repository, path: str, unreadable: Collection[str]) -> Unnamed | None:
    try:
        head = repository.manifest(path).head().snapshot
    except (NotFoundError, CorruptionError):
        return None  # Never finished, or reduced to names already.
    if head.deleted or head.branch in unreadable:
        return None
    last = find_branch(repository.objects, head.branch)
    found = last is not None and last.manifest_path == path
    refs = () if found else _living_refs(repository, head)
    if not found and not refs and head.version == 1:
        return None  # Its maker has not given it a name yet, and may never.
    first = repository.lineage.snapshot(ManifestPlace(path=path, version=1))
    made = BranchRef(
        name=head.branch,
        life=1,
        incarnation=path.rpartition("/")[2],
        parent=first.head.branch,
        fork_commit=first.head.id,
        created_at_us=first.head.created_at_us,
    )
    return Unnamed(
        head=head,
        ref=last if last is not None and found else refs[-1] if refs else made,
        found=found,
        refs=refs,
        rival=None if found or last is None or is_over(repository, last) else last,
    )


def _living_refs(repository: Repository, head: Snapshot) -> tuple[BranchRef, ...]:
    lives = all_lives(repository.objects).get(head.branch, {})
    refs = [branch_ref(repository.objects, head.branch, n) for n, dead in lives.items() if not dead]
    return tuple(ref for ref in refs if ref is not None and ref.manifest_path == head.path)


def lost_tables(repository: Repository, snapshot: Snapshot) -> list[str]:
    """Tables of a state that are not there any more."""
    return [
        key
        for key, pin in snapshot.pins.items()
        if not repository.objects.exists(pin.name.manifest)
    ]


def branch_at(repository: Repository, path: str) -> Branch | None:
    """A branch by its manifest, whatever it is called; None if it has ended."""
    store = repository.manifest(path)
    head = store.head()
    if head.snapshot.deleted:
        return None
    return Branch(head.snapshot.branch, store, head, clock=repository.clock)
