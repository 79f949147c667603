"""What one side of a merge changed and the other dropped: rows of a type, values of a property.

bases, a side, the schema to come -> [lost] -> conflicts, or what goes on all the same
"""

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.branch.merge.bases import SideChanges, changes_since
from omnigraph.branch.merge.conflicts import ConflictKind, MergeConflict, SideNames
from omnigraph.branch.merge.history import History
from omnigraph.branch.merge.images import MergeProperty, same
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.migrate.facts import Things
from omnigraph.schema.migrate.reconcile import Prefer


@dataclass(frozen=True, kw_only=True)
class Lost:
    """Entities that a side changed in what the other dropped."""

    number: int
    """Of the type or the property."""
    side: Prefer
    """The side that changed them."""
    graph_type: GraphType
    property_name: str | None
    count: int

    def told(self, names: SideNames) -> MergeConflict:
        """As a conflict."""
        changer, dropper = names.ours, names.theirs
        if self.side == "theirs":
            changer, dropper = dropper, changer
        what = self.graph_type.name
        if self.property_name is not None:
            what = f"{what}.{self.property_name}"
        return MergeConflict(
            kind=ConflictKind.SCHEMA_CONFLICT,
            entity_kind=self.graph_type.kind,
            type_name=self.graph_type.name,
            entity_id=None,
            message=f"'{changer}' changed {self.count:,} of {what}, which '{dropper}' dropped",
            schema_property=self.property_name,
        )


def lost_changes(
    history: History,
    bases: Sequence[Snapshot],
    snapshot: Snapshot,
    side: Prefer,
    merged: Things,
) -> Iterator[Lost]:
    """What a side changed since the bases, made one, and the schema to come does not have."""
    for graph_type in history.catalog(snapshot).types():
        type_id = (graph_type.id, graph_type.incarnation)
        before = [declared for base in bases if (declared := history.type(base, type_id))]
        now = history.version(snapshot, type_id)
        if not before or all(history.version(base, type_id) == now for base in bases):
            continue
        changes = changes_since(history, bases, snapshot, graph_type)
        if graph_type.id not in merged:
            if count := len(changes.ids):
                yield Lost(
                    number=graph_type.id,
                    side=side,
                    graph_type=graph_type,
                    property_name=None,
                    count=count,
                )
            continue
        known = {p.id for declared in before for p in declared.properties}
        for prop in graph_type.properties:
            if prop.id in merged or prop.id not in known:
                continue
            if count := _changed_values(changes, graph_type, prop.name):
                yield Lost(
                    number=prop.id,
                    side=side,
                    graph_type=graph_type,
                    property_name=prop.name,
                    count=count,
                )


def _changed_values(changes: SideChanges, graph_type: GraphType, name: str) -> int:
    """How many entities have another value of a property than they had."""
    if name in graph_type.system_columns:
        return len(changes.ids)
    rows = np.arange(len(changes.ids))
    before, after = changes.read("before", rows), changes.read("after", rows)
    value = MergeProperty(name=name, columns=(name,))
    given = after.rows.column(name).is_valid().to_numpy()
    other = ~same(value, before, after) | before.unknown_in(name)
    # Of an entity that may not have been there no value is known: any that it has may be new.
    known = before.present & ~before.doubtful
    return int((after.present & np.where(known, other, given)).sum())
