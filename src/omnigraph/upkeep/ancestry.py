"""The history of a graph as one value, and which states merges of any two of its ends look at.

    branches, tags -> commits behind them -> [ancestry] -> common ancestors, the way back

A merge rests on the best common ancestors of its two sides: those that are an ancestor of no other
common one. With many branches that is a question about very many pairs, so it is not asked pair by
pair. The history is read once; then every commit learns from its children which ends lie above it,
as a set of bits. A commit is a best common ancestor of two ends if both lie above it, and not both
above one of its children: what is needed for any pair follows from a commit and its children alone.

Where two sides have several such ancestors a merge makes these one, over the ancestors that *they*
have in common, and so on back (``branch/merge/bases.py``). Those are found in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from omnigraph.manifest.lineage import Lineage, crosses, unless_reclaimed
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import ManifestPlace, Snapshot
from omnigraph.manifest.store import Head
from omnigraph.storage.names import TableVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A commit as far as this needs it."""

    id: str
    place: ManifestPlace
    generation: int
    parent: str | None
    merged: str | None
    """Both only if they are known, too."""
    merged_place: ManifestPlace | None


class Ancestry:
    """All commits behind some snapshots, as far as the way back is there."""

    def __init__(self, lineage: Lineage, ends: Sequence[Snapshot]) -> None:
        self._commits = {commit.id: commit for commit in _known(lineage, ends)}
        """Each before its parents."""

    @property
    def commits(self) -> Collection[Known]:
        """Each before its parents."""
        return self._commits.values()

    def way_back(self) -> Iterator[ManifestPlace]:
        """Manifests that a walk through the whole history needs (``manifest/lineage.py``)."""
        for commit in self._commits.values():
            parent = self._commits[commit.parent] if commit.parent is not None else None
            if parent is not None and crosses(commit.generation, parent.generation):
                yield commit.place
            if commit.merged_place is not None:
                yield commit.merged_place

    def needed_by_merges(
        self, branches: Collection[str], others: Collection[str] = ()
    ) -> set[ManifestPlace]:
        """States that a merge of any of these commits into one of the first ones looks at."""
        found, bases = self._bases(branches, others)
        needed = set(found)
        # Ancestors that a merge makes one: any two of them may be compared, and theirs again.
        while len(bases) > 1:
            bases, _ = self._bases(bases, ())
            needed |= bases
        return {self._commits[one].place for one in needed}

    def _bases(self, first: Collection[str], second: Collection[str]) -> tuple[set[str], set[str]]:
        """The best common ancestors of all pairs that have one of the first, and those that are
        not the only ones of their pair."""
        ends = [one for one in dict.fromkeys((*first, *second)) if one in self._commits]
        bits = {one: 1 << number for number, one in enumerate(ends)}
        chosen = [bits[one] for one in dict.fromkeys(first) if one in bits]
        above: dict[str, int] = {}
        below: dict[str, list[int]] = {}
        """What lies above each child of a commit."""
        met: dict[int, list[tuple[str, int]]] = {}
        """By one of the first: its ancestors in common, each with the ends it is in common with."""
        for one, commit in self._commits.items():
            mine = above.pop(one, 0) | bits.get(one, 0)
            if not mine:
                continue
            fresh = _uncovered(mine, below.pop(one, []), bits.get(one, 0), chosen)
            for end, with_others in fresh.items():
                met.setdefault(end, []).append((one, with_others))
            for parent in (commit.parent, commit.merged):
                if parent is not None:
                    above[parent] = above.get(parent, 0) | mine
                    below.setdefault(parent, []).append(mine)
        several: set[str] = set()
        for bases in met.values():
            seen = twice = 0
            for _, with_others in bases:
                twice |= seen & with_others
                seen |= with_others
            several.update(one for one, with_others in bases if with_others & twice)
        return {one for bases in met.values() for one, _ in bases}, several


def _uncovered(
    mine: int, children: Sequence[int], own: int, chosen: Sequence[int]
) -> dict[int, int]:
    """For each chosen end above a commit, the other ends that no child has together with it."""
    if mine in children or (not own and len(children) < 2):
        return {}
    fresh: dict[int, int] = {}
    for end in chosen:
        if not end & mine:
            continue
        covered = end
        for child in children:
            if child & end:
                covered |= child
        if left := mine & ~covered:
            fresh[end] = left
    return fresh


def _known(lineage: Lineage, ends: Sequence[Snapshot]) -> Iterator[Known]:
    for commit, parents in lineage.as_far_as_known(*ends):
        known = {parent.id for parent in parents}
        yield Known(
            id=commit.id,
            place=commit.place,
            generation=commit.generation,
            parent=commit.parent_id if commit.parent_id in known else None,
            merged=commit.merged_parent_id if commit.merged_parent_id in known else None,
            merged_place=commit.merged_place,
        )


# -- states ----------------------------------------------------------------------------------------
# What states of the past show, read once: a cleanup looks at them several times.
#
#     places -> [states] -> tables, schema and files of each
#
# A manifest version never changes, so what was read stays true. Only what cleanup and check need is
# kept, because a long history does not fit into memory as snapshots. Several are read at a time.


@dataclass(frozen=True, slots=True, kw_only=True)
class PastState:
    """One state, as far as its files are concerned."""

    place: ManifestPlace
    commit_id: str
    tables: tuple[tuple[TableVersion, str, int], ...]
    """With the key and the rows of each."""
    schema_hash: str
    restated: bool
    """It says something else about a state which an earlier version shows."""
    files: tuple[str, ...]
    """Of the manifest version itself."""


class States:
    """The states of one graph that were looked at."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._known: dict[ManifestPlace, PastState | None] = {}
        self._names: dict[TableVersion, TableVersion] = {}

    def at(self, place: ManifestPlace) -> PastState | None:
        """The state at a place; None if it was reclaimed."""
        if place not in self._known:
            self._known[place] = self._read(place)
        return self._known[place]

    def look_at(self, places: Iterable[ManifestPlace]) -> None:
        """Read all that are not known yet."""
        fresh = [place for place in places if place not in self._known]
        self._known.update(
            zip(fresh, self._repository.background.pool.map(self._read, fresh), strict=True)
        )

    def _read(self, place: ManifestPlace) -> PastState | None:
        with unless_reclaimed():
            return self._state(self._repository.lineage.head_at(place))
        return None

    def _state(self, head: Head) -> PastState:
        snapshot, names = head.snapshot, self._names
        return PastState(
            place=snapshot.place,
            commit_id=snapshot.head.id,
            # Most states share most of their tables: one object for all of them.
            tables=tuple(
                (names.setdefault(pin.name, pin.name), pin.table_key, pin.row_count)
                for pin in snapshot.all_pins
            ),
            schema_hash=snapshot.schema_hash,
            restated=not snapshot.made,
            files=tuple(self._repository.manifest(snapshot.path).files(head)),
        )
