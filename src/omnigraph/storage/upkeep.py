"""Everything that upkeep does to one table, as one change of it.

    table version, wanted indexes -> [plan] -> drop, join, build -> staged version -> publish

The order matters. An index by identity that is to be built anew is dropped first, so that it keeps
no files apart; then files are joined; then indexes are built over what is there. Asked about the
outcome, the plan is empty.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from lance import LanceDataset

from omnigraph.storage.changes import Rework
from omnigraph.storage.compact import FragmentIds, JoinFiles, groups_to_join
from omnigraph.storage.indexing import (
    LAG_MAX,
    BuildIndexes,
    BuiltIndex,
    DropIndexes,
    IndexSpec,
    table_indexes,
)
from omnigraph.storage.tables import Table


@dataclass(frozen=True, kw_only=True)
class TableUpkeep(Rework):
    """Indexes dropped, files joined, indexes built; in this order."""

    drop: frozenset[str]
    groups: tuple[FragmentIds, ...]
    build: tuple[IndexSpec, ...]
    gate: AbstractContextManager[Any] = field(default_factory=nullcontext, compare=False)
    """Held while this runs: how many tables are worked on at once."""

    @property
    def fragments_removed(self) -> int:
        return sum(map(len, self.groups))

    @property
    def fragments_added(self) -> int:
        return len(self.groups)

    def commit(self, current: LanceDataset, managed: Mapping[str, Any]) -> LanceDataset:
        """At most three commits that are not seen."""
        with self.gate:
            for step in (
                DropIndexes(names=self.drop),
                JoinFiles(groups=self.groups),
                BuildIndexes(specs=self.build),
            ):
                current = step.commit(current, managed)
        return current


def plan_upkeep(
    table: Table,
    wanted: Sequence[IndexSpec],
    *,
    declared: Sequence[IndexSpec],
    join: bool = True,
    whole: bool = False,
    gate: AbstractContextManager[Any] | None = None,
) -> TableUpkeep | None:
    """What a table needs; None if it is as it should be.

    ``wanted`` indexes can be built; ``declared`` are all that the schema has. With ``whole`` every
    index shall cover every row, whatever that costs; without ``join`` files stay as they are.
    """
    built = table_indexes(table)
    fragments = table.layout.fragments
    live = {fragment.id: fragment.live_rows for fragment in fragments}
    drop = frozenset(
        index.name
        for index in built
        if index.is_ours
        and (not any(index.serves(s) for s in declared) or _is_stale(index, live, whole=whole))
    )
    stay = [index for index in built if index.name not in drop]
    groups = groups_to_join(fragments, _apart(stay, live)) if join else ()
    lacking = any(not _is_covered(spec, stay, live) for spec in wanted)
    if not (drop or groups or lacking):
        return None
    return TableUpkeep(drop=drop, groups=groups, build=tuple(wanted), gate=gate or nullcontext())


def _is_stale(index: BuiltIndex, live: Mapping[int, int], *, whole: bool) -> bool:
    """Whether an index by identity has to be built anew."""
    if index.kind is None or index.kind.by_address:
        return False
    rows = sum(live.values())
    missed = rows - sum(live.get(fragment, 0) for fragment in index.fragments)
    return missed > (0 if whole else LAG_MAX * rows)


def _apart(indexes: Sequence[BuiltIndex], live: Mapping[int, int]) -> dict[int, Hashable]:
    """What must not be joined: fragments that differ in the indexes by identity they are in."""
    by_identity = [i for i in indexes if i.kind is None or not i.kind.by_address]
    return {
        fragment: frozenset(
            segment.uuid
            for index in by_identity
            for segment in index.segments
            if fragment in segment.fragments
        )
        for fragment in live
    }


def _is_covered(spec: IndexSpec, indexes: Sequence[BuiltIndex], live: Mapping[int, int]) -> bool:
    index = next((i for i in indexes if i.serves(spec)), None)
    if index is None:
        return not live
    return not spec.kind.by_address or index.fragments >= live.keys()
