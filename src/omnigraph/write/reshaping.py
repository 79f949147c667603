"""What another schema means for a graph: its objects, the types that go on, their tables.

two schemas -> [reshaping] -> schema objects, reworks of tables -> stage -> publish
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema, schema_object
from omnigraph.schema.catalog import Backfill, Catalog, GraphType
from omnigraph.schema.ir import schema_hash, to_ir
from omnigraph.schema.migrate.columns import column_changes
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


def named_schema(catalog: Catalog, source: str) -> AcceptedSchema:
    """A schema with the name that it will have; nothing is written."""
    return AcceptedSchema(hash=schema_hash(to_ir(catalog, source)), source=source, catalog=catalog)


def accept_schema(repository: Repository, accepted: AcceptedSchema) -> None:
    """Write a schema's objects; named by their content, they do no harm if nothing follows."""
    objects = {
        schema_object(accepted.hash, "pg"): accepted.source.encode(),
        schema_object(accepted.hash): to_ir(accepted.catalog, accepted.source),
    }
    writing = [
        repository.background.pool.submit(repository.objects.put, *o) for o in objects.items()
    ]
    for task in writing:
        task.result()
    repository.sync(list(objects))
    repository.schemas.keep(accepted)
