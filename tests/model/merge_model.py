"""Branches and merges as plain dicts, one entity and one property at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

Entity = tuple[str, str]
"""Type and id."""
Row = dict[str, Any]
"""Values by property; the ends of an edge are one property."""
Content = dict[Entity, Row]

ABSENT = None


class Unknown:
    """A value that equals nothing, not even itself."""

    __hash__ = None  # pyright: ignore

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True


UNKNOWN = Unknown()
"""As a row: it is not known whether the entity was there. As a value: not known which."""


@dataclass(eq=False)
class Commit:
    """A node of the commit graph with everything it shows."""

    content: Content
    parents: tuple[Commit, ...] = ()
    serial: int = field(default_factory=count().__next__)

    @property
    def generation(self) -> int:
        return 1 + max((p.generation for p in self.parents), default=0)

    def ancestors(self) -> set[Commit]:
        """With the commit itself."""
        found: set[Commit] = set()
        waiting = [self]
        while waiting:
            commit = waiting.pop()
            if commit not in found:
                found.add(commit)
                waiting += commit.parents
        return found


def merge_bases(one: Commit, other: Commit) -> list[Commit]:
    """Common ancestors that are behind no other one; the newest first."""
    common = one.ancestors() & other.ancestors()
    best = [c for c in common if not any(c is not o and c in o.ancestors() for o in common)]
    return sorted(best, key=lambda c: (-c.generation, -c.serial))


Conflict = tuple[Entity, str, frozenset[str]]
"""Entity, kind, disputed properties."""


@dataclass
class Merged:
    """What a merge comes to."""

    outcome: str
    content: Content
    conflicts: set[Conflict] = field(default_factory=set)


def merge(ours: Commit, theirs: Commit, granularity: str, prefer: str | None) -> Merged:
    """The three-way merge of whole contents."""
    bases = merge_bases(ours, theirs)
    if theirs in bases:
        return Merged("already_up_to_date", ours.content)
    if ours in bases:
        return Merged("fast_forward", theirs.content)
    content: Content = {}
    conflicts: set[Conflict] = set()
    for entity in {*ours.content, *theirs.content}:
        base = virtual(bases, entity)
        mine, other = ours.content.get(entity), theirs.content.get(entity)
        row, kind, disputed = decide(base, mine, other, granularity)
        if kind is not None:
            if prefer is None:
                conflicts.add((entity, kind, frozenset(disputed)))
            elif kind == "delete_vs_update":
                row = mine if prefer == "ours" else other
            elif prefer == "theirs":
                row = {**(row or {}), **{n: (other or {})[n] for n in disputed}}
        if row is not None:
            content[entity] = row
    if conflicts:
        return Merged("conflicts", ours.content, conflicts)
    return Merged("merged", content)


def virtual(commits: list[Commit], entity: Entity) -> Any:
    """What several ancestors say about an entity, made one."""
    made: Any = commits[0].content.get(entity)
    for number, commit in enumerate(commits[1:], 1):
        other = commit.content.get(entity)
        if same_row(made, other):
            continue
        older = list(dict.fromkeys(b for c in commits[:number] for b in merge_bases(c, commit)))
        base = virtual(older, entity)
        if made is UNKNOWN:
            continue
        row, kind, disputed = decide(base, made, other, "property")
        if kind == "delete_vs_update":
            made = UNKNOWN
        else:
            made = row if row is None else {**row, **dict.fromkeys(disputed, UNKNOWN)}
    return made


def same_row(one: Any, other: Any) -> bool:
    if one is UNKNOWN or other is UNKNOWN:
        return False
    if one is None or other is None:
        return one is other
    return all(one[n] == other[n] for n in one)


def decide(
    base: Any, ours: Row | None, theirs: Row | None, granularity: str
) -> tuple[Row | None, str | None, set[str]]:
    """One entity: the row, the kind of conflict, the disputed properties."""
    if same_row(ours, theirs) or same_row(base, theirs):
        return ours, None, set()
    if same_row(base, ours):
        return theirs, None, set()
    if ours is None or theirs is None:
        return ours, "delete_vs_update", set()
    differing = {n for n in ours if ours[n] != theirs[n]}
    if base is None:
        return ours, "divergent_insert", differing
    if base is UNKNOWN or granularity == "row":
        return ours, "divergent_update", differing
    result, disputed = dict(ours), set[str]()
    for name in differing:
        if base[name] == ours[name]:
            result[name] = theirs[name]
        elif base[name] != theirs[name]:
            disputed.add(name)
    return result, "divergent_update" if disputed else None, disputed
