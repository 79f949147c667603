"""What another schema means for a graph: the types that go on, and their tables.

two schemas -> [reshaping] -> reworks of tables -> stage -> publish
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from omnigraph.schema.catalog import Backfill, Catalog, GraphType
from omnigraph.schema.migrate.column_changes import column_changes
from omnigraph.storage.reshape import Reshape


@dataclass(frozen=True, kw_only=True)
class TypePair:
    """A type that goes on, before and after."""

    before: GraphType
    after: GraphType


def continued(accepted: Catalog, desired: Catalog) -> list[TypePair]:
    """The types that both schemas have, in the order of the desired one."""
    old = {t.stable_id: t for t in accepted.types()}
    return [
        TypePair(before=before, after=after)
        for after in desired.types()
        if (before := old.get(after.stable_id)) is not None
    ]


def reshape_of(
    pair: TypePair, backfills: Mapping[int, Backfill], *, lenient: bool = False
) -> Reshape | None:
    """The change of a type's columns; None if they stay as they are.

    A ``lenient`` one lets columns be null that must not be: the rows in question are replaced or
    removed in the same write.
    """
    changes = column_changes(pair.before, pair.after, backfills)
    if not changes:
        return None
    if not lenient:
        return Reshape(
            dropped=changes.dropped,
            renamed=changes.renamed,
            nullable=changes.nullable,
            empty=changes.empty,
            made=changes.made,
        )
    loosened = {name: True for name, nullable in changes.nullable.items() if nullable}
    if not replace(changes, nullable=loosened):
        return None
    return Reshape(
        dropped=changes.dropped,
        renamed=changes.renamed,
        nullable=loosened,
        empty=tuple(f.with_nullable(True) for f in changes.empty),
        made=tuple(replace(m, field=m.field.with_nullable(True)) for m in changes.made),
    )
