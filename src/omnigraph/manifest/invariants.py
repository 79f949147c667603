"""What holds of every version of a manifest: checked just before it is committed, never assumed.

    snapshot that is replaced, snapshot to come -> [invariants] -> commit, or an internal error

Each is a predicate with the sentence that it stands for. A snapshot that breaks one is a fault of
this program; it is refused while that costs nothing but the write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.errors import InternalError
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.schema.catalog import Catalog

Pair = Callable[[Snapshot, Snapshot], bool]


def _follows(before: Snapshot, after: Snapshot) -> bool:
    return after.version == before.version + 1 and after.format == graph_format.FORMAT


def _same_graph(before: Snapshot, after: Snapshot) -> bool:
    return (after.graph_id, after.path) == (before.graph_id, before.path)


def _only_forward(before: Snapshot, after: Snapshot) -> bool:
    return after.swept >= before.swept and after.rewound_at >= before.rewound_at


def _lineage_grows(before: Snapshot, after: Snapshot) -> bool:
    if after.head.id == before.head.id:
        return after.commits == before.commits and not after.steps
    made = after.commits[: len(after.steps) + 1]
    return all(
        new.place == replace(after.place, back=back)
        and new.created_at_us >= before.head.created_at_us
        and all(
            new.parent_id == parent.id and new.generation > parent.generation
            for parent in after.commits[back + 1 : back + 2]
        )
        for back, new in enumerate(made)
    )


def _steps_of_tables(before: Snapshot, after: Snapshot) -> bool:
    return all(
        pins and all(key in after.pins and pin.table_key == key for key, pin in pins.items())
        for pins in after.steps
    )


def _named_by_key(before: Snapshot, after: Snapshot) -> bool:
    return all(pin.table_key == key and pin.row_count >= 0 for key, pin in after.pins.items())


def _one_table_each(before: Snapshot, after: Snapshot) -> bool:
    types = {pin.stable_id for pin in after.pins.values()}
    return len(types) == len(after.pins)


INVARIANTS: tuple[tuple[str, Pair], ...] = (
    ("a version follows the one that it replaces, in the current format", _follows),
    ("a manifest stays that of one graph and one life of a branch", _same_graph),
    ("cleanups and resets are never forgotten", _only_forward),
    ("states on the way have the tables of the newest one", _steps_of_tables),
    ("a new commit is younger than its parent and stands on it", _lineage_grows),
    ("a table is pinned under its own key", _named_by_key),
    ("a type has one table", _one_table_each),
)


def check_invariants(before: Snapshot, after: Snapshot, catalog: Catalog) -> None:
    """Raise ``InternalError`` if the snapshot to come cannot be right; ``catalog`` is its own."""
    for sentence, holds in INVARIANTS:
        if not holds(before, after):
            raise _broken(sentence, after)
    declared = {t.table_key: t.stable_id for t in catalog.types()}
    for key, pin in after.pins.items():
        if declared.get(key) != pin.stable_id:
            raise _broken("every table has a type in the schema", after)


def _broken(sentence: str, after: Snapshot) -> InternalError:
    return InternalError(
        f"version {after.version} of branch '{after.branch}' was not published: it would break "
        f"the rule that {sentence}"
    )
