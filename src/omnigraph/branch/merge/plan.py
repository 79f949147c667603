"""All tables of a merge together: what theirs changed, decided as far as it can be.

    bases, ours, theirs -> [plan] -> conflicts, or a delta for the one door

Only tables that theirs changed are planned. The others are looked at when a broken rule leads to
them: an edge that ours drew to a node that theirs deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.branch.merge.bases import is_changed, table_sides
from omnigraph.branch.merge.conflicts import EntityName, MergeConflict, SideNames
from omnigraph.branch.merge.resolve import Decisions
from omnigraph.branch.merge.schemas import OneSchema
from omnigraph.branch.merge.tables import (
    NOTHING,
    TablePlan,
    Undo,
    open_conflicts,
    plan_table,
    reshaped,
)
from omnigraph.branch.merge.threeway import Granularity
from omnigraph.errors import Violation
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.rules.table_delta import TableDelta
from omnigraph.schema.catalog import Catalog
from omnigraph.write.delta import GraphDelta


class MergePlan:
    """A merge on one state of ours. Tables are planned when they are asked for, each once."""

    def __init__(
        self,
        one: OneSchema,
        bases: Sequence[Snapshot],
        *,
        granularity: Granularity,
        decisions: Decisions,
        names: SideNames,
    ) -> None:
        self.one = one
        self._history = one.history
        self._bases = bases
        self._ours = one.txn.snapshot
        self._granularity = granularity
        self._decisions = decisions
        self.names = names
        self.catalog: Catalog = one.schema.catalog
        self._plans: dict[str, TablePlan] = {}
        self.changed: tuple[str, ...] = tuple(
            t.table_key
            for t in self.catalog.types()
            if is_changed(self._history, bases, self._ours, t)
        )
        """Table keys that theirs changed, in the order of the schema."""

    def at(self, table_key: str) -> TablePlan | None:
        """The plan of a table; None for a type that there is not."""
        if table_key not in self._plans:
            graph_type = next((t for t in self.catalog.types() if t.table_key == table_key), None)
            if graph_type is None:
                return None
            sides = table_sides(self._history, self._bases, self._ours, graph_type)
            self._plans[table_key] = plan_table(sides, self._granularity, self._decisions)
        return self._plans[table_key]

    def conflicts(self) -> list[MergeConflict]:
        """What both sides changed and is not decided."""
        return [
            c
            for key in self.changed
            if (plan := self.at(key)) is not None
            for c in open_conflicts(plan, self.names)
        ]

    def used(self) -> set[EntityName]:
        """Entities whose resolutions were needed."""
        return {e for plan in self._plans.values() for e in plan.settled.used}

    def delta(self, undo: Mapping[str, Undo] | None = None) -> GraphDelta:
        """The change of ours, without what is undone."""
        taken_back = undo or {}
        tables: dict[str, TableDelta] = {}
        for graph_type in self.catalog.types():
            key = graph_type.table_key
            delta: TableDelta | None = None
            if (key in self.changed or key in taken_back) and (plan := self.at(key)) is not None:
                delta = plan.delta(taken_back.get(key, NOTHING))
            if self._has_table(key):
                delta = reshaped(delta, graph_type, self.one.lens)
            if delta is not None:
                tables[key] = delta
        return GraphDelta(
            tables=tables,
            adopts_from=self._history.theirs.place,
            schema=self.one.schema if self.one.changes else None,
        )

    def misfits(self, undo: Mapping[str, Undo]) -> list[Violation]:
        """Values of the change that the types to come have no place for."""
        keys = dict.fromkeys([*self.changed, *undo])
        plans = {key: plan for key in keys if (plan := self.at(key)) is not None}
        return [v for key, plan in plans.items() for v in plan.misfits(undo.get(key, NOTHING))]

    def _has_table(self, table_key: str) -> bool:
        """Whether ours has a table of this type, even one without rows."""
        return self.one.txn.pin_of(self.catalog.table(table_key)) is not None
