"""The final image of one table: the input without superseded rows, beside what is committed.

    rules on the input -> [image] -> rules on the resulting state

Knows which ids exist already, which really disappear, and the exact counts. This is where a table
is read by id, at most once. No rule is checked here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import NO_POSITIONS, among, strings, true_at, union, without
from omnigraph.rules.findings import Positions
from omnigraph.rules.table_delta import NO_IDS, CommittedState, TableDelta, WriteMode
from omnigraph.rules.unchanged import plain_columns, unchanged_rows
from omnigraph.schema.catalog import Cardinality, Catalog, EdgeType, GraphType


@dataclass(frozen=True, slots=True, kw_only=True)
class TableImage:
    """One table as it will be, in terms of the delta."""

    delta: TableDelta
    rows: pa.Table
    """The last row of every id."""
    positions: Positions | None = None
    """The input row behind each row; None when they are the same."""
    matched: pa.StringArray = field(default_factory=lambda: NO_IDS)
    """Ids in ``rows`` that are committed already. Not known, and empty, for an overwrite."""
    removed: pa.StringArray = field(default_factory=lambda: NO_IDS)
    """Committed ids that disappear. Empty for an overwrite that did not have to know them."""
    sources_before: pa.StringArray = field(default_factory=lambda: NO_IDS)
    """Distinct committed ``src`` of replaced and removed edges, where cardinality needs them."""
    unchanged: Positions = field(default_factory=lambda: NO_POSITIONS)
    """Rows that are committed as they are. Rules look at them like at any other; they are not
    written, and not among those that are updated."""
    inserted_count: int = 0
    updated_count: int = 0
    deleted_count: int = 0

    @property
    def overwrites(self) -> bool:
        """Whether the rows become the whole content."""
        return self.delta.mode is WriteMode.OVERWRITE

    def input_rows(self, rows: Positions) -> Positions:
        """Rows of the image as rows of the input."""
        return rows if self.positions is None else self.positions[rows]

    def untouched(self, committed_rows: pa.Table) -> pa.Table:
        """The committed rows that the delta neither replaces nor removes."""
        kept = committed_rows
        if kept.num_rows and self.rows.num_rows and not self.delta.ids_fresh:
            kept = kept.filter(pc.invert(among(kept.column("id"), self.rows.column("id"))))
        if kept.num_rows and len(self.delta.removed):
            kept = kept.filter(pc.invert(among(kept.column("id"), self.delta.removed)))
        return kept


def build_image(
    catalog: Catalog,
    written: Collection[str],
    table: TableDelta,
    superseded: Positions,
    committed: CommittedState,
) -> TableImage:
    """The image of one table. Costs one read by id, or none where ids cannot be known already.

    ``written`` has the keys of all tables that the same write changes.
    """
    rows, positions = table.rows, None
    if len(superseded):
        positions = np.delete(np.arange(rows.num_rows, dtype=np.int64), superseded)
        rows = rows.take(pa.array(positions))
    if table.mode is WriteMode.OVERWRITE:
        return _overwrite(catalog, written, table, rows, positions, committed)
    return _change(table, rows, positions, committed)


def image_of(delta: TableDelta, matched: pa.StringArray = NO_IDS) -> TableImage:
    """The image of rows that are all written, and each the last of its id."""
    return TableImage(delta=delta, rows=delta.rows, matched=matched)


def bounded(graph_type: GraphType) -> Cardinality | None:
    """The cardinality of an edge type that has one."""
    if isinstance(graph_type, EdgeType) and graph_type.cardinality != Cardinality():
        return graph_type.cardinality
    return None


def _change(
    table: TableDelta, rows: pa.Table, positions: Positions | None, committed: CommittedState
) -> TableImage:
    key = table.type.table_key
    matched, removed, sources, unchanged = NO_IDS, NO_IDS, NO_IDS, NO_POSITIONS
    if committed.row_count(key) and len(asked := _asked_ids(table, rows)):
        columns = ("id", "src") if bounded(table.type) else ("id",)
        if table.may_repeat:
            before = committed.rows_of(key, asked, plain_columns(table.type))
        else:
            before = committed.lookup(key, "id", asked, columns)
        matched = strings(before.column("id"))
        if len(table.removed):
            gone = among(matched, table.removed)
            matched, removed = matched.filter(pc.invert(gone)), matched.filter(gone)
        if bounded(table.type):
            sources = union([before.column("src")])
        if table.may_repeat:
            unchanged = unchanged_rows(table.type, rows, before, committed)
    return TableImage(
        delta=table,
        rows=rows,
        positions=positions,
        unchanged=unchanged,
        matched=matched,
        removed=removed,
        sources_before=sources,
        inserted_count=rows.num_rows - len(matched),
        updated_count=len(matched) - len(unchanged),
        deleted_count=len(removed),
    )


def _asked_ids(table: TableDelta, rows: pa.Table) -> pa.StringArray:
    """The ids whose presence matters: those that may exist already and those to remove."""
    asked = NO_IDS if table.ids_fresh else strings(rows.column("id")).drop_null()
    return union([asked, table.removed]) if len(table.removed) else asked


def _overwrite(
    catalog: Catalog,
    written: Collection[str],
    table: TableDelta,
    rows: pa.Table,
    positions: Positions | None,
    committed: CommittedState,
) -> TableImage:
    key = table.type.table_key
    before_count = committed.row_count(key)
    cardinality = bounded(table.type)
    # The minimum is the only bound that a source without any edge left can break.
    needs_sources = cardinality is not None and cardinality.low > 0
    all_new = table.ids_fresh or not rows.num_rows
    removed, sources, updated_count = NO_IDS, NO_IDS, 0
    if before_count and (
        needs_sources or not all_new or _has_edges(catalog, written, table, committed)
    ):
        before = committed.scan(key, ("id", "src") if needs_sources else ("id",))
        removed = strings(before.column("id"))
        removed = removed if all_new else without(removed, rows.column("id"))
        updated_count = before.num_rows - len(removed)
        if needs_sources:
            sources = union([before.column("src")])
    return TableImage(
        delta=table,
        rows=rows,
        positions=positions,
        removed=removed,
        sources_before=sources,
        inserted_count=rows.num_rows - updated_count,
        updated_count=updated_count,
        deleted_count=before_count - updated_count,
    )


def _has_edges(
    catalog: Catalog, written: Collection[str], table: TableDelta, committed: CommittedState
) -> bool:
    """Whether any edge could ask which nodes of this type disappear."""
    if table.type.kind == "edge":
        return False
    keys = [edge.table_key for edge in catalog.edges_at(table.type.name)]
    return any(key in written or committed.row_count(key) for key in keys)


def conflicts(image: TableImage) -> Positions:
    """Rows of the image whose id exists already although the write is a strict insert."""
    if image.delta.mode is not WriteMode.APPEND or not len(image.matched):
        return np.empty(0, dtype=np.int64)
    return true_at(among(image.rows.column("id"), image.matched))
