"""Small fragments joined and deleted rows left out, in a version that nobody sees.

    fragments of a version -> [which belong together] -> rewritten files -> staged version -> publish

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
from dataclasses import dataclass
from typing import Any

from lance import LanceDataset, LanceOperation
from lance.optimize import CompactionTask

from omnigraph.storage.changes import Rework
from omnigraph.storage.layout import Fragment
from omnigraph.storage.physical import FILE_FORMAT

FRAGMENT_ROWS_MAX = 1 << 20
"""Fragments are joined up to this size."""
GROWTH = 2
"""A fragment joins smaller ones if it has at most this many times their rows."""
DELETED_MAX = 0.1
"""Beyond this part of deleted rows a fragment is rewritten on its own."""

FragmentIds = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Compact(Rework):
    """Rewrite groups of fragments, each as one."""

    groups: tuple[FragmentIds, ...]

    def commit(self, current: LanceDataset, managed: Mapping[str, Any]) -> LanceDataset:
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
        return LanceDataset.commit(current, operation, read_version=current.version, **managed)


def groups_to_join(
    fragments: Iterable[Fragment], covered_by: Mapping[int, Hashable] | None = None
) -> tuple[FragmentIds, ...]:
    """The fragments that belong together; asked again about the outcome it says nothing.

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


def _rewrite(dataset: LanceDataset, group: FragmentIds) -> tuple[list[Any], list[Any]]:
    """The fragments as they are, and the files that take their place."""
    old = [_fragment(dataset, number) for number in group]
    # Lance plans by its own rules, and takes a plan that was written by somebody else.
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
    for index in dataset.describe_indices():
        for segment in index.segments:
            used.update(segment.fragment_ids)
    return max(used, default=-1) + 1
