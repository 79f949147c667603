"""Small fragments joined and deleted rows left out, in a version that is not seen yet.

    fragments of a version -> [which belong together] -> joined files -> staged version -> publish

Every write adds a small fragment, and every version lists all of them. Joining is by size: a
fragment is rewritten together with others of its own size, never because something small came, so
a row is rewritten a logarithmic number of times and a large table is left alone by small writes.
Rows keep their identity, blobs their bytes. An index by address loses the files that are rewritten
(``indexing`` covers them again in the same version); one by row identity keeps them, but only when
all or none of the files that are joined were covered: so those are never joined.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments
from lance.optimize import CompactionTask

from omnigraph.storage.changes import CommitPlace, Rework, StagedFiles
from omnigraph.storage.faults import translated
from omnigraph.storage.indexing import (
    LAG_MAX,
    BuildIndexes,
    BuiltIndex,
    DropIndexes,
    IndexSpec,
    table_indexes,
)
from omnigraph.storage.layout import FILE_FORMAT, Fragment
from omnigraph.storage.namespace import StagingNamespace
from omnigraph.storage.row_changes import LARGE_ROWS, identify, without_files
from omnigraph.storage.rows import RowIds
from omnigraph.storage.tables import Table, is_blob

FRAGMENT_ROWS_MAX = 1 << 20
"""Fragments are joined up to this size."""
GROWTH = 2
"""A fragment joins smaller ones if it has at most this many times their rows."""
DELETED_MAX = 0.1
"""Beyond this part of deleted rows a fragment is rewritten on its own."""

TAIL_MAX = 48
"""So many small fragments at the end of a table are joined by the next write."""
TAIL_MAX_REMOTE = 16
"""The same on a remote store, where a process just started asks for each of them: a request."""
TAIL_BYTES_MAX = 4 << 20
"""More than this is not read and written again inside an ordinary write."""

FragmentIds = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class JoinFiles(Rework):
    """Rewrite groups of fragments, each as one."""

    groups: tuple[FragmentIds, ...]

    def commit(self, current: LanceDataset, space: StagingNamespace) -> LanceDataset:
        """One commit for all groups; what they hold is read and written by Lance."""
        groups = [group for group in self.groups if group]
        if not groups:
            return current
        rewritten: list[Any] = []
        fresh = _fresh_id(current)
        for group in sorted(groups):
            old, new = _rewrite(current, group)
            for fragment in new:
                fragment.id, fresh = fresh, fresh + 1
            rewritten.append(LanceOperation.RewriteGroup(old, new))
        operation = LanceOperation.Rewrite(rewritten, [])
        return space.commit(current, operation)


@dataclass(frozen=True, kw_only=True)
class RewriteAll(Rework):
    """Write every fragment anew, each on its own: columns that were left out are gone for good."""

    def commit(self, current: LanceDataset, space: StagingNamespace) -> LanceDataset:
        """One commit; rows keep their order and identity."""
        groups = tuple((int(f.fragment_id),) for f in current.get_fragments())
        return JoinFiles(groups=groups).commit(current, space)


def groups_to_join(
    fragments: Iterable[Fragment], covered_by: Mapping[int, Hashable] | None = None
) -> tuple[FragmentIds, ...]:
    """The fragments that belong together; none once they are joined.

    ``covered_by`` tells apart fragments that may not be joined, by their ids.
    """
    apart: dict[Hashable, list[Fragment]] = {}
    for fragment in fragments:
        key = None if covered_by is None else covered_by.get(fragment.id)
        apart.setdefault(key, []).append(fragment)
    found = [group for some in apart.values() for group in _by_size(some)]
    return tuple(sorted(found))


def _by_size(fragments: Sequence[Fragment]) -> Iterable[FragmentIds]:
    group: list[Fragment] = []
    rows = 0
    for fragment in sorted(fragments, key=lambda f: (f.live_rows, f.id)):
        fits = rows + fragment.live_rows <= FRAGMENT_ROWS_MAX
        if group and not (fits and fragment.live_rows <= GROWTH * rows):
            yield from _worth(group)
            group, rows = [], 0
        group.append(fragment)
        rows += fragment.live_rows
    yield from _worth(group)


def _worth(group: Sequence[Fragment]) -> Iterable[FragmentIds]:
    alone = group[0]
    deleted = alone.physical_rows - alone.live_rows
    if len(group) > 1 or deleted > DELETED_MAX * alone.physical_rows:
        yield tuple(sorted(f.id for f in group))


def tail_to_join(fragments: Sequence[Fragment], covered: frozenset[int]) -> FragmentIds:
    """The newest fragments that no index covers, back to the first that is too large for them.

    In storage order: what is known of the columns of the whole stays true when they are joined.
    """
    tail: list[Fragment] = []
    rows = 0
    for fragment in reversed(fragments):
        fits = rows + fragment.live_rows <= FRAGMENT_ROWS_MAX
        small = not tail or fragment.live_rows <= GROWTH * rows
        if fragment.id in covered or not (fits and small):
            break
        tail.append(fragment)
        rows += fragment.live_rows
    return tuple(f.id for f in reversed(tail)) if len(tail) > 1 else ()


@dataclass(frozen=True, kw_only=True)
class Fold(Rework):
    """Join small fragments whose rows are mostly in memory: what was written here is not read back.

    The same as ``Compact`` of one group, for a table without blobs.
    """

    table: Table
    group: FragmentIds

    def commit(self, current: LanceDataset, space: CommitPlace) -> LanceDataset:
        """One commit. Reads the files that this process has not seen."""
        table, names = self.table, self.table.facts.schema.names
        wanted = set(self.group)
        fragments = [f for f in table.layout.fragments if f.id in wanted]
        parts = table.fragment_columns(fragments, names)
        columns = [
            pa.chunked_array([chunk for part in parts for chunk in part[i].chunks], field.type)
            for i, field in enumerate(table.facts.schema)
        ]
        rows = pa.table(columns, schema=table.facts.schema)
        old = [_fragment(current, fragment.id) for fragment in fragments]
        new: Any = write_fragments(
            rows.combine_chunks(), current, mode="append", data_storage_version=FILE_FORMAT
        )
        identify(new, _row_ids(current, self.group))
        table.memory.seed(StagedFiles(fragments=tuple(new), rows=rows), names)
        if not table.is_remote and table.layout.row_count >= LARGE_ROWS:
            # A rewrite looks through all row ids of the table. No index covers these files, so
            # nothing has to be told that they go on in another one.
            current = space.commit(current, without_files(self.group))
            return space.commit(current, LanceOperation.Append(list(new)))
        for number, fragment in enumerate(new, _fresh_id(current)):
            fragment.id = number
        operation = LanceOperation.Rewrite([LanceOperation.RewriteGroup(old, new)], [])
        return space.commit(current, operation)


def _row_ids(dataset: LanceDataset, group: FragmentIds) -> RowIds:
    """The identity of the live rows of some fragments, from their metadata."""
    scanner = dataset.scanner(
        columns=[],
        with_row_id=True,
        fragments=[dataset.get_fragment(number) for number in group],
        scan_in_order=True,
    )
    return scanner.to_table()["_rowid"].to_numpy()


def worn_tail(table: Table) -> Fold | None:
    """What a write joins beside its own change: the many small files of those before it.

    Every version lists all its fragments, so without this each write would be larger than the one
    before. Tables with blobs are left to ``optimize``: their files say little about their size.
    """
    fragments = table.layout.fragments
    longest = TAIL_MAX_REMOTE if table.is_remote else TAIL_MAX
    if len(fragments) < longest or len(tail_to_join(fragments, frozenset())) < longest:
        return None
    if any(is_blob(field) for field in table.facts.schema):
        return None
    with translated(f"reading indexes of {table.name.path}", referenced=True):
        tail = tail_to_join(fragments, _indexed(table.facts))
        sizes = {number: _byte_count(table.facts, number) for number in tail}
    while tail and sum(sizes[number] for number in tail) > TAIL_BYTES_MAX:
        tail = tail[1:]
    return Fold(table=table, group=tail) if len(tail) >= longest else None


def _indexed(dataset: LanceDataset) -> frozenset[int]:
    """Fragments that some index covers, also fragments that are gone."""
    found: set[int] = set()
    for index in dataset.describe_indices():
        for segment in index.segments:
            found.update(segment.fragment_ids)
    return frozenset(found)


def _byte_count(dataset: LanceDataset, number: int) -> int:
    return sum(file.file_size_bytes or 0 for file in _fragment(dataset, number).files)


def _rewrite(dataset: LanceDataset, group: FragmentIds) -> tuple[list[Any], list[Any]]:
    """The fragments as they are, and the files that take their place."""
    old = [_fragment(dataset, number) for number in group]
    # Lance plans by its own rules, and takes a plan that another program wrote.
    task = CompactionTask.from_json(  # pyright: ignore[reportAttributeAccessIssue]
        json.dumps(
            {
                "task": {"fragments": [fragment.to_json() for fragment in old]},
                "read_version": dataset.version,
                "options": _OPTIONS,
            }
        )
    )
    return old, list(task.execute(dataset).new_fragments)


_OPTIONS: dict[str, Any] = {
    "target_rows_per_fragment": FRAGMENT_ROWS_MAX,
    "max_rows_per_group": 1024,
    "materialize_deletions": True,
    "materialize_deletions_threshold": DELETED_MAX,
    "defer_index_remap": False,
    "enable_binary_copy": False,
    "enable_binary_copy_force": False,
    "data_storage_version": FILE_FORMAT,
}


def _fragment(dataset: LanceDataset, number: int) -> Any:
    fragment: Any = dataset.get_fragment(number)
    return fragment.metadata


def _fresh_id(dataset: LanceDataset) -> int:
    """A number that no fragment has and no index remembers: one that is gone left addresses."""
    used = {int(f.fragment_id) for f in dataset.get_fragments()}
    return max(used | _indexed(dataset), default=-1) + 1


# -- upkeep ----------------------------------------------------------------------------------------
# Everything that upkeep does to one table, as one change of it.
#
#     table version, wanted indexes -> [plan] -> drop, join, build -> staged version -> publish
#
# The order matters. An index by identity that is to be built anew is dropped first, so that it
# keeps no files apart; then files are joined; then indexes are built over what is there. Asked
# about the outcome, the plan is empty.


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

    def commit(self, current: LanceDataset, space: StagingNamespace) -> LanceDataset:
        """At most three commits that are not seen."""
        with self.gate:
            for step in (
                DropIndexes(names=self.drop),
                JoinFiles(groups=self.groups),
                BuildIndexes(specs=self.build),
            ):
                current = step.commit(current, space)
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
