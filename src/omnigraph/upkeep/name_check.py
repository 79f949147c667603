"""Names of branches that do not say what they should, found and put right.

    refs, manifests of branches -> [faults] -> findings of a check, steps of a repair

| fault        | what is wrong                                                | repair             |
|--------------|--------------------------------------------------------------|--------------------|
| `unfinished` | a name leads to a branch that ended, or has another name now | ends the name      |
| `two_lives`  | two branches have one name; it leads to the newer            | a name of its own  |
| `no_ref`     | a branch has not ended, and no name leads to it              | its name back      |
| `no_tables`  | the same, and an earlier release took tables of it           | refuses: `discard` |

The first one is left by a process that dies on the way; it is harmless, but the name is listed. The
others come from releases whose cleanups took away what kept numbers of lives taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from omnigraph.branch.control import give_free_name, is_over
from omnigraph.errors import CorruptionError, NotFoundError, OmnigraphError
from omnigraph.manifest.branches import Branch, lives_as
from omnigraph.manifest.refs import (
    BranchRef,
    all_lives,
    branch_names,
    branch_ref,
    end_branch_ref,
    find_branch,
)
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import ManifestPlace, Snapshot
from omnigraph.write.publish import restate

REPAIR = "run 'omnigraph repair', and with --confirm"
DISCARD = "run 'omnigraph repair --discard --confirm', which ends it"


class NameFaultKind(StrEnum):
    """What is wrong about a name."""

    UNFINISHED = "unfinished"
    TWO_LIVES = "two_lives"
    NO_REF = "no_ref"
    NO_TABLES = "no_tables"


_REMEDIES = {
    NameFaultKind.UNFINISHED: f"{REPAIR} the name is ended; the next use of it does the same",
    NameFaultKind.TWO_LIVES: f"{REPAIR} the second one gets a name of its own",
    NameFaultKind.NO_REF: f"{REPAIR} it gets its name back",
    NameFaultKind.NO_TABLES: DISCARD,
}


class NameAction(StrEnum):
    """What was done about a name."""

    PREVIEW = "preview"
    HEALED = "healed"
    DISCARDED = "discarded"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFault:
    """A name that does not say what it should."""

    fault: NameFaultKind
    name: str
    path: str
    """The manifest of the branch that it is about."""
    message: str
    ref: BranchRef
    """The ref that is wrong, or that the branch should have."""
    refs: tuple[BranchRef, ...] = ()
    """Refs that lead to it and are not the last life of its name."""

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return _REMEDIES[self.fault]


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRepair:
    """What was found and done about one name."""

    name: str
    fault: NameFaultKind
    action: NameAction
    path: str
    """The manifest of the branch."""
    message: str
    new_name: str | None = None
    """What the branch is called now."""
    reason: str | None = None
    """Why it was refused."""

    def to_dict(self) -> dict[str, Any]:
        """As ``repair --json`` shows it."""
        return asdict(self) | {"fault": str(self.fault), "action": str(self.action)}


def name_faults(repository: Repository) -> list[NameFault]:
    """Everything that is wrong about names. Changes nothing.

    A ref or a manifest that cannot be read is no fault of a name; a check reports it by itself.
    """
    names = branch_names(repository.objects)
    looks = [repository.background.pool.submit(_look_at, repository, name) for name in names]
    found: list[NameFault] = []
    heads: dict[str, Snapshot] = {}
    unreadable: set[str] = set()
    for name, look in zip(names, looks, strict=True):
        try:
            head, fault = look.result()
        except (CorruptionError, NotFoundError):
            unreadable.add(name)
            continue
        found += [fault] if fault is not None else []
        heads |= {name: head} if head is not None else {}
    return [*found, *_unnamed(repository, heads, unreadable)]


def repair_names(
    repository: Repository, *, confirm: bool = False, discard: bool = False
) -> tuple[NameRepair, ...]:
    """What is wrong about names; with ``confirm`` it is put right.

    What has not ended gets a name. ``discard`` ends branches of which tables are gone.
    """
    return tuple(
        _repaired(repository, fault, discard=discard) if confirm else _preview(fault)
        for fault in name_faults(repository)
    )


def _look_at(repository: Repository, name: str) -> tuple[Snapshot | None, NameFault | None]:
    """The branch that a name leads to, or what is wrong about the name; neither if it is over."""
    ref = find_branch(repository.objects, name)
    if ref is None:
        return None, None
    head = repository.manifest(ref.manifest_path).head().snapshot
    if lives_as(head, name):
        return head, None
    # Another process may be about to finish: a second look sees both steps.
    if find_branch(repository.objects, name) != ref or not is_over(repository, ref):
        return None, None
    became = "has ended" if head.deleted else f"is called '{head.branch}'"
    fault = NameFault(
        fault=NameFaultKind.UNFINISHED,
        name=name,
        path=ref.manifest_path,
        message=f"it leads to {ref.manifest_path}, which {became}",
        ref=ref,
    )
    return None, fault


def _unnamed(
    repository: Repository, heads: Mapping[str, Snapshot], unreadable: Collection[str]
) -> Iterator[NameFault]:
    for branch in unnamed_branches(repository, heads, unreadable):
        if branch.found:
            continue
        fault, message = _fault_of(repository, branch)
        yield NameFault(
            fault=fault,
            name=branch.head.branch,
            path=branch.head.path,
            message=message,
            ref=branch.ref,
            refs=branch.refs,
        )


def _fault_of(repository: Repository, branch: Unnamed) -> tuple[NameFaultKind, str]:
    path = branch.head.path
    if lost := lost_tables(repository, branch.head):
        return NameFaultKind.NO_TABLES, f"nothing leads to {path}, and it lost {', '.join(lost)}"
    if branch.named is not None:
        named = branch.named.manifest_path
        return NameFaultKind.TWO_LIVES, f"two branches have this name: {named} and {path}"
    return NameFaultKind.NO_REF, f"the branch at {path} has not ended, and no name leads to it"


def _preview(fault: NameFault) -> NameRepair:
    return NameRepair(
        name=fault.name,
        fault=fault.fault,
        action=NameAction.PREVIEW,
        path=fault.path,
        message=fault.message,
    )


def _repaired(repository: Repository, fault: NameFault, *, discard: bool) -> NameRepair:
    preview = _preview(fault)
    try:
        match fault.fault:
            case NameFaultKind.UNFINISHED:
                end_branch_ref(repository.objects, fault.ref)
                return replace(preview, action=NameAction.HEALED)
            case NameFaultKind.NO_TABLES if discard:
                _end(repository, fault.path)
                return replace(preview, action=NameAction.DISCARDED)
            case NameFaultKind.NO_TABLES:
                return replace(preview, action=NameAction.REFUSED, reason=DISCARD)
            case NameFaultKind.TWO_LIVES | NameFaultKind.NO_REF:
                given = give_free_name(repository, fault.ref)
                _forget(repository, fault, given)
                return replace(preview, action=NameAction.HEALED, new_name=given.name)
    except OmnigraphError as e:
        return replace(preview, action=NameAction.REFUSED, reason=e.message)


def _forget(repository: Repository, fault: NameFault, given: BranchRef) -> None:
    """Say of refs that led to a branch that they are over: it has another now."""
    for ref in fault.refs:
        if ref.object_name != given.object_name:
            repository.objects.create(ref.death_name, b"{}")


def _end(repository: Repository, path: str) -> None:
    branch = branch_at(repository, path)
    if branch is None:
        return
    try:
        restate(repository, branch, lambda snapshot: snapshot.saying(deleted=True))
    except NotFoundError:
        if not branch.gone:
            raise  # Else another process has ended it.


# -- unnamed branches ------------------------------------------------------------------------------
# Branches that have not ended although their names do not lead to them.
#
#     manifests of branches - heads that names lead to -> [unnamed] -> what a cleanup must not take
#
# Whether a branch has ended is decided by its manifest alone. A listing of names may pass over one
# that is just being renamed. And earlier releases gave the number of a life twice: then two
# branches have one name, of which only one is found, or a branch goes on and its ref is gone.
# Until ``repair`` has given such a branch a name, cleanups keep it and announce themselves on it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Unnamed:
    """A branch that has not ended and that no listing of names has led to."""

    head: Snapshot
    ref: BranchRef
    """Under which name it wants to be found."""
    found: bool
    """Its name leads to it after all: it was being renamed."""
    refs: tuple[BranchRef, ...]
    """Lives of its name that lead to it and are not over, but are not the last."""
    named: BranchRef | None
    """The branch that its name leads to instead."""

    @property
    def key(self) -> str:
        """What to call it beside branches that have their names."""
        return self.head.branch if self.found else f"{self.head.branch} ({self.head.path})"


def unnamed_branches(
    repository: Repository, heads: Mapping[str, Snapshot], unreadable: Collection[str] = ()
) -> list[Unnamed]:
    """All branches that have not ended and are not among these heads; not of unreadable names."""
    seen = {head.path for head in heads.values()}
    paths = [p for p in repository.objects.folders("_branches") if p not in seen]
    looks = [
        repository.background.pool.submit(_unnamed_at, repository, path, unreadable)
        for path in paths
    ]
    return [found for look in looks if (found := look.result()) is not None]


def _unnamed_at(repository: Repository, path: str, unreadable: Collection[str]) -> Unnamed | None:
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
        named=None if found or last is None or is_over(repository, last) else last,
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
