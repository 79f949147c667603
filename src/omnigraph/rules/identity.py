"""What makes an entity's identity, in columns."""

from __future__ import annotations

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import true_at
from omnigraph.rules.findings import Finding, member_values, row_finding
from omnigraph.rules.table_delta import TableDelta
from omnigraph.rules.words import not_derived, single
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.identity import canonical_ids, is_keyed


def identity_members(graph_type: GraphType) -> tuple[str, ...]:
    """The columns an id is derived from; ``id`` itself where it is supplied or generated."""
    if isinstance(graph_type, EdgeType) and graph_type.keyed:
        return ("src", "dst", *graph_type.key)
    return graph_type.key or ("id",)


def check_derived(delta: TableDelta) -> list[Finding]:
    """Ids that do not follow from the key: of rows that were written under another one."""
    if not is_keyed(delta.type) or not delta.rows.num_rows:
        return []
    members = identity_members(delta.type)
    expected = canonical_ids(delta.type, delta.rows)
    # A missing member is told as a missing value.
    rows = true_at(pc.fill_null(pc.not_equal(delta.rows.column("id"), expected), False))
    ids = delta.rows.column("id")

    def message(index: int) -> str:
        row = int(rows[index])
        values = member_values(delta.rows, members, row)
        return not_derived(delta.type, members, values, ids[row].as_py())

    return row_finding(delta, rows, rule="key", property_name=single(members), message=message)
