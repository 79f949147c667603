"""Which states of a graph are kept: the first half of a cleanup, which only looks.

    branches, tags, policy -> [retention] -> states that stay whole, manifests that show the way

A state is *whole* if its tables can be read. These are: the newest state of every branch; what the
policy keeps of every branch's line; what a branch stopped to show only within the grace window;
every tag; and the common ancestors of any two branches, and of any branch and any tag, because a
merge needs them (``upkeep/ancestry.py``). Of the others only manifests stay, one in 32 commits
and where something was merged: so the whole list of commits stays readable, and any two states find
their common ancestor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from omnigraph.branch.history import branch_heads
from omnigraph.errors import UsageError
from omnigraph.manifest.lineage import unless_reclaimed
from omnigraph.manifest.moments import left_behind
from omnigraph.manifest.refs import Tag, find_tag, tag_names
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, MAIN_PATH, GraphCommit, ManifestPlace, Snapshot
from omnigraph.manifest.sweeps import Ranges, SweepRecord, numbers, ranges_of
from omnigraph.storage.names import TableVersion, version_of
from omnigraph.upkeep.ancestry import Ancestry, States
from omnigraph.upkeep.name_check import lost_tables, unnamed_branches


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What is to be kept."""

    keep: int | None = None
    """The newest commits of every branch."""
    older_than_s: float | None = None
    """What was shown within so many seconds."""
    grace_s: float = 0.0
    """Whatever was written, or shown, within so many seconds is not touched."""

    def __post_init__(self) -> None:
        if self.keep is None and self.older_than_s is None:
            raise UsageError(
                "cleanup needs to know what to keep", hint="give --keep N, --older-than 30d or both"
            )
        if self.keep is not None and self.keep < 1:
            raise UsageError(
                f"--keep {self.keep} would leave a branch without a state",
                hint="keep at least 1: the newest state of a branch is never removed",
            )
        if (self.older_than_s or 0) < 0 or self.grace_s < 0:
            raise UsageError("a length of time is not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedVersions:
    """The versions of one manifest dataset."""

    path: str
    branch: str | None
    """None if the branch has ended."""
    written: dict[int, int]
    """When each version was written, by the clock of the store; ascending. Without those of which
    only the name is left."""
    newest: int

    @property
    def last_written_us(self) -> int:
        return max(self.written.values(), default=0)


@dataclass(frozen=True, kw_only=True)
class Retained:
    """What is kept."""

    heads: dict[str, Snapshot]
    """The newest states of all branches, by name."""
    states: States
    """What was read of the past so far."""
    datasets: dict[str, RetainedVersions]
    given_up: tuple[SweepRecord, ...] = ()
    """What earlier cleanups said: a state that one of them gave up is not whole any more."""
    whole: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    """By manifest dataset: versions whose tables are kept."""
    signposts: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    """Versions that are kept for the way back alone."""
    tables: dict[str, dict[TableVersion, str]] = field(
        default_factory=dict[str, dict[TableVersion, str]]
    )
    """By folder: the versions of tables that whole states show, with the key of the table."""
    restated: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    """Versions that say something else about a state which an earlier version shows."""

    def add(self, place: ManifestPlace, *, named: bool = False) -> None:
        """Keep a state, unless it was given up before.

        One that has a name was not: what named it looked, after the cleanup or before it.
        """
        if named or all(record.keeps(place) is not False for record in self.given_up):
            self.whole.setdefault(place.path, set()).add(place.version)

    def kept_manifests(self, path: str, cut_us: int) -> set[int]:
        """Versions of a manifest dataset that stay, for whatever reason: what is needed, and what
        is young, or was shown not long ago."""
        versions = self.datasets[path]
        there = list(versions.written)
        young = {v for v, at_us in versions.written.items() if at_us >= cut_us}
        lately = {v for v, after in pairwise(there) if after in young}
        restated = self.restated.get(path, set())
        stated = (self.whole.get(path, set()) | lately) - restated
        newest = {versions.newest} if versions.branch is not None else set[int]()
        return stated | self.signposts.get(path, set()) | young | newest

    def ranges(self) -> dict[str, Ranges]:
        """What a record of this cleanup says."""
        return {
            path: ranges_of(
                self.whole.get(path, set()),
                open_from=versions.newest if versions.branch is not None else None,
            )
            for path, versions in self.datasets.items()
        }


def retained(
    repository: Repository,
    policy: Policy,
    *,
    store_now_us: int,
    before: int | None = None,
    since: Mapping[str, int] | None = None,
    states: States | None = None,
) -> Retained:
    """What a policy keeps of the graph as it is now. ``store_now_us``: by the clock of the store.

    ``before`` is the number of the cleanup that asks, ``since`` says from which versions on it has
    promised to keep all; ``states`` are what was read before. Raises if a branch cannot be
    read: then it is not known what it needs.
    """
    now_us = repository.clock.now_us()
    found, tags = _named_states(repository, before, states)
    for head in found.heads.values():
        for place in _line(repository, head, policy, now_us):
            found.add(place)
    for versions in found.datasets.values():
        promised = (since or {}).get(versions.path)
        shown = set(_shown_lately(versions, policy, store_now_us))
        shown |= set(_shown_since(repository, versions, policy, now_us))
        shown |= {v for v in versions.written if promised is not None and v >= promised}
        for version in shown:
            found.add(ManifestPlace(path=versions.path, version=version))
    ancestry = _ancestry(repository, found, tags)
    _mark_tables(found)
    _mark_way_back(found, ancestry)
    return found


def _left_behind(repository: Repository, versions: RetainedVersions) -> Iterator[Snapshot]:
    """What a branch showed each time before it was set back: without these it is not known
    how long the states before were shown (``manifest/moments.py``)."""
    newest = ManifestPlace(path=versions.path, version=max(versions.newest, 1))
    state = repository.lineage.if_kept(newest)
    return left_behind(repository.lineage, state) if state is not None else iter(())


def _named_states(
    repository: Repository, before: int | None, states: States | None
) -> tuple[Retained, list[Tag]]:
    """What is kept in any case: the newest states of branches, and what tags name."""
    heads = living_heads(repository)
    names = tag_names(repository.objects)
    tags = [tag for name in names if (tag := find_tag(repository.objects, name)) is not None]
    found = Retained(
        heads=heads,
        states=states or States(repository),
        datasets=_datasets(repository, heads),
        given_up=_given_up(repository, heads[MAIN].swept, before),
    )
    for named in (*heads.values(), *tags):
        found.add(named.place, named=True)
    return found, tags


def _ancestry(repository: Repository, found: Retained, tags: Sequence[Tag]) -> Ancestry:
    """The whole history; the states that merges of branches and tags look at are kept."""
    heads = list(found.heads.values())
    tagged = [repository.lineage.snapshot(tag.place) for tag in tags]
    left = [tip for v in found.datasets.values() for tip in _left_behind(repository, v)]
    ancestry = Ancestry(repository.lineage, [*heads, *tagged, *left])
    for tip in left:
        found.signposts.setdefault(tip.path, set()).add(tip.version)
    branches, others = ([state.head.id for state in states] for states in (heads, tagged))
    for place in ancestry.needed_by_merges(branches, others):
        found.add(place)
    return ancestry


def retained_without(
    repository: Repository,
    shows: Callable[[Snapshot], bool],
    until: ManifestPlace,
    *,
    store_now_us: int,
    before: int | None = None,
    since: Mapping[str, int] | None = None,
    states: States | None = None,
) -> Retained:
    """All that there is, but not the past of one branch ``until`` a commit as far as it ``shows``
    something, nor what branches that ended have left of it.

    Newest states, tags and what merges need are kept all the same. ``store_now_us`` plays no part:
    giving data up does not wait for readers.
    """
    found, tags = _named_states(repository, before, states)
    _ancestry(repository, found, tags)
    for versions in found.datasets.values():
        promised = (since or {}).get(versions.path)
        for version in versions.written:
            place = ManifestPlace(path=versions.path, version=version)
            past = place.path == until.path and version < until.version
            safe = promised is not None and version >= promised
            concerned = not safe and (past or versions.branch is None)
            if not concerned or not _shows(repository, place, shows):
                found.add(place)
    _mark_tables(found)
    return found


def _shows(repository: Repository, place: ManifestPlace, shows: Callable[[Snapshot], bool]) -> bool:
    with unless_reclaimed():
        return shows(repository.lineage.snapshot(place))
    return True


def whole_states(repository: Repository) -> Iterator[ManifestPlace]:
    """All states whose tables should be there: on living branches and on those that ended."""
    heads = branch_heads(repository)
    records = _given_up(repository, heads[MAIN].swept, None)
    for versions in _datasets(repository, heads).values():
        for version in versions.written:
            place = ManifestPlace(path=versions.path, version=version)
            if all(record.keeps(place) is not False for record in records):
                yield place


def _given_up(repository: Repository, swept: int, before: int | None) -> tuple[SweepRecord, ...]:
    """Records of earlier cleanups: of the newest that is over, and of those that may be running.

    A cleanup that looks again has announced its own number already; the one before it counts.
    """
    newest = swept if before is None else min(swept, before - 1)
    numbered = [n for n in numbers(repository.objects) if n >= newest]
    found = [repository.sweeps.record(n) for n in numbered if before is None or n < before]
    return tuple(record for record in found if record is not None)


def living_heads(repository: Repository) -> dict[str, Snapshot]:
    """The newest states of all branches that live, by name, or by what to call them."""
    heads = branch_heads(repository)
    unnamed = [
        branch
        for branch in unnamed_branches(repository, heads)
        # What an earlier release took cannot be given back.
        if branch.found or not lost_tables(repository, branch.head)
    ]
    return heads | {branch.key: branch.head for branch in unnamed}


def _datasets(repository: Repository, heads: dict[str, Snapshot]) -> dict[str, RetainedVersions]:
    living = {head.path: name for name, head in heads.items()}
    paths = [MAIN_PATH, *repository.objects.folders("_branches")]
    found: dict[str, RetainedVersions] = {}
    for path in dict.fromkeys([*paths, *living]):
        written: dict[int, int] = {}
        for entry in repository.objects.entries(f"{path}/_versions"):
            version = version_of(entry.name)
            if version is not None and entry.size:
                written[version] = entry.modified_us
        name = living.get(path)
        newest = heads[name].version if name is not None else max(written, default=0)
        found[path] = RetainedVersions(
            path=path,
            branch=name,
            written=dict(sorted(written.items())),
            newest=max(newest, max(written, default=0)),
        )
    return found


def _line(
    repository: Repository, head: Snapshot, policy: Policy, now_us: int
) -> Iterator[ManifestPlace]:
    """States of a branch's line that the policy keeps, wherever they were made."""
    since_us = None if policy.older_than_s is None else now_us - round(policy.older_than_s * 1e6)
    shown_until_us: int | None = None
    for count, commit in enumerate(_as_far_as_known(repository.lineage.first_parents(head))):
        by_count = policy.keep is not None and count < policy.keep
        # A state was shown until the next one came; the newest is shown now.
        by_time = since_us is not None and (shown_until_us is None or shown_until_us >= since_us)
        if not by_count and not by_time:
            return
        yield commit.place
        shown_until_us = commit.created_at_us


def _shown_lately(versions: RetainedVersions, policy: Policy, now_us: int) -> Iterator[int]:
    """Versions that were the newest one within the grace window, also of a branch that ended."""
    there = list(versions.written)
    cut_us = now_us - round(policy.grace_s * 1e6)
    for version, following in pairwise(there):
        if versions.written[following] > cut_us:
            yield version
    if there and (versions.branch is not None or versions.written[there[-1]] > cut_us):
        yield there[-1]


def _shown_since(
    repository: Repository, versions: RetainedVersions, policy: Policy, now_us: int
) -> Iterator[int]:
    """Versions that the policy keeps although the branch may have been set back behind them."""
    there = list(versions.written)
    if versions.branch is None or policy.older_than_s is None:
        return
    since_us = now_us - round(policy.older_than_s * 1e6)

    def made_us(index: int) -> int:
        place = ManifestPlace(path=versions.path, version=there[index])
        return repository.lineage.snapshot(place).head.created_at_us

    low, high = 0, len(there)  # The first version that was made since then: times ascend.
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if made_us(middle) < since_us else (low, middle)
    # Signposts of long ago are no states; only versions without a gap up to the newest are.
    for index in range(len(there) - 1, max(low - 1, 0) - 1, -1):
        yield there[index]
        if index and there[index - 1] != there[index] - 1:
            return


def _mark_tables(found: Retained) -> None:
    """The tables of all states that are kept; states that have lost theirs are kept no longer."""
    places = [
        ManifestPlace(path=path, version=version)
        for path, versions in found.whole.items()
        for version in sorted(versions)
    ]
    found.states.look_at(places)
    for place in places:
        state = found.states.at(place)
        if state is None:
            found.whole[place.path].discard(place.version)
            continue
        if state.restated:
            found.restated.setdefault(place.path, set()).add(place.version)
        for name, key, _ in state.tables:
            found.tables.setdefault(name.path, {})[name] = key


def _mark_way_back(found: Retained, ancestry: Ancestry) -> None:
    """Manifests that a walk through the whole history needs (``manifest/lineage.py``)."""

    def keep(place: ManifestPlace) -> None:
        found.signposts.setdefault(place.path, set()).add(place.version)

    for path in found.datasets:
        keep(ManifestPlace(path=path, version=1))  # Where a look for a moment begins.
    for place in ancestry.way_back():
        keep(place)
    for versions in found.datasets.values():
        if versions.branch is None:
            keep(ManifestPlace(path=versions.path, version=versions.newest))


def _as_far_as_known(commits: Iterable[GraphCommit]) -> Iterator[GraphCommit]:
    """Commits until the way back ends, at the first one or where it was lost."""
    with unless_reclaimed():
        yield from commits
