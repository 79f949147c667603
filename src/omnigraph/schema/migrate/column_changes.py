"""What a change of a type means for the columns of its table, under the names that are stored.

    type before, type after -> [columns] -> storage/reshape

Derived from the two declarations alone, like the steps of the plan: both say the same change, one
to people and one to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.errors import InternalError
from omnigraph.schema.arrow import arrow_field, arrow_type
from omnigraph.schema.catalog import Backfill, GraphType, Property
from omnigraph.schema.migrate.type_changes import TypeChange, exactly, type_change


@dataclass(frozen=True, slots=True, kw_only=True)
class LateBackfill(Backfill):
    """A backfill that rows meet for the first time: null is no value that was chosen over it.

    Two branches that add one property, one with a backfill and one without, are merged so. Where
    a declaration already has the backfill its rows were filled, and a null was written later.
    """

    @staticmethod
    def of(fill: Backfill) -> LateBackfill:
        return LateBackfill(value=fill.value, copy_of=fill.copy_of, text=fill.text)


@dataclass(frozen=True, kw_only=True)
class Made:
    """A column that is made from stored ones, batch by batch."""

    field: pa.Field
    """As it will be."""
    reads: tuple[str, ...]
    """Stored columns that it is made from; none for a constant."""
    make: Callable[[pa.RecordBatch | pa.Table], pa.Array | pa.ChunkedArray]
    stored: str | None = None
    """The stored column that it simply is."""


@dataclass(frozen=True, kw_only=True)
class ColumnChanges:
    """All that happens to the columns of one table, at once."""

    dropped: tuple[str, ...] = ()
    """Stored columns that go; a column that is made anew is among them."""
    renamed: Mapping[str, str]
    """Stored columns that stay under another name."""
    nullable: Mapping[str, bool]
    """Stored columns that stay, and may be null from now on or may not."""
    empty: tuple[pa.Field, ...] = ()
    """New columns without values."""
    made: tuple[Made, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.dropped or self.renamed or self.nullable or self.empty or self.made)


def is_unchanged(before: GraphType, after: GraphType, backfills: Mapping[int, Backfill]) -> bool:
    """Whether rows of one declaration are rows of the other as they are."""
    if before != after:
        return False
    was = {p.id: p for p in before.properties}
    return not any(
        p.id in backfills and _has_gaps(was[p.id], p, backfills[p.id]) for p in after.properties
    )


def column_changes(
    before: GraphType, after: GraphType, backfills: Mapping[int, Backfill]
) -> ColumnChanges:
    """Compare the tables of two declarations of a type, property by property."""
    old = {p.id: p for p in before.properties if p.name not in before.system_columns}
    sources = {p.id: p for p in before.properties}
    dropped: list[str] = []
    renamed: dict[str, str] = {}
    nullable: dict[str, bool] = {}
    empty: list[pa.Field] = []
    made: list[Made] = []
    for prop in after.properties:
        was = old.pop(prop.id, None)
        if prop.name in after.system_columns:
            if was is not None:
                dropped.append(was.name)
            continue
        fill = _fill(prop, was, backfills, sources)
        if was is None:
            column = _filled(prop, None, fill, sources)
            if column is None:
                empty.append(arrow_field(prop))
            else:
                made.append(column)
            continue
        change = type_change(was.type, prop.type)
        column = _filled(prop, was, fill, sources) if fill else _cast(prop, was, change)
        if column is not None:
            dropped.append(was.name)
            made.append(column)
            continue
        if was.name != prop.name:
            renamed[was.name] = prop.name
        if was.type.nullable != prop.type.nullable:
            nullable[was.name] = prop.type.nullable
    return ColumnChanges(
        dropped=(*dropped, *(p.name for p in old.values())),
        renamed=renamed,
        nullable=nullable,
        empty=tuple(empty),
        made=tuple(made),
    )


def column_of(before: GraphType, prop: Property, backfills: Mapping[int, Backfill]) -> Made:
    """A property of the type to come, made from stored columns: to check its values first."""
    sources = {p.id: p for p in before.properties}
    was = sources.get(prop.id)
    column = _filled(prop, was, _fill(prop, was, backfills, sources), sources)
    if column is not None:
        return column
    kind = arrow_type(prop.type)
    if was is None:
        return Made(field=arrow_field(prop), reads=(), make=lambda b: pa.nulls(b.num_rows, kind))
    name = was.name
    same = arrow_type(was.type) == kind
    return Made(
        field=arrow_field(prop),
        reads=(name,),
        make=lambda b: exactly(b.column(name), kind),
        stored=name if same else None,
    )


def _fill(
    prop: Property,
    was: Property | None,
    backfills: Mapping[int, Backfill],
    sources: Mapping[int, Property],
) -> Backfill | None:
    """The backfill of a property, where it has anything to fill."""
    fill = backfills.get(prop.id)
    if fill is None or (was is not None and not _has_gaps(was, prop, fill)):
        return None
    # What is to be copied may be gone.
    return fill if fill.copy_of is None or fill.copy_of in sources else None


def _has_gaps(was: Property, prop: Property, fill: Backfill) -> bool:
    """Whether nulls that are stored are to be filled."""
    is_new = isinstance(fill, LateBackfill) and was.backfill is None
    return was.type.nullable and (is_new or not prop.type.nullable)


def _filled(
    prop: Property,
    was: Property | None,
    fill: Backfill | None,
    sources: Mapping[int, Property],
) -> Made | None:
    """A column whose missing values come from a backfill."""
    if fill is None:
        return None
    kind = arrow_type(prop.type)
    own = was.name if was is not None else None
    if fill.copy_of is not None:
        source = sources[fill.copy_of].name
        reads = tuple(dict.fromkeys(n for n in (own, source) if n is not None))

        def copied(batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
            values = exactly(batch.column(source), kind)
            return values if own is None else pc.coalesce(exactly(batch.column(own), kind), values)

        return Made(field=arrow_field(prop), reads=reads, make=copied)
    if fill.value is None:
        raise InternalError(f"nothing to fill {prop.name} with")
    value = _scalar(fill.value, kind)

    def constant(batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        if own is None:
            return pa.repeat(value, batch.num_rows)
        return pc.fill_null(exactly(batch.column(own), kind), value)

    return Made(field=arrow_field(prop), reads=() if own is None else (own,), make=constant)


def _cast(prop: Property, was: Property, change: TypeChange) -> Made | None:
    if change not in (TypeChange.WIDENED, TypeChange.OTHER):
        return None
    kind, name = arrow_type(prop.type), was.name
    return Made(
        field=arrow_field(prop), reads=(name,), make=lambda b: exactly(b.column(name), kind)
    )


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    if pa.types.is_date32(kind):
        return pa.scalar(value, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.scalar(value, pa.int64()).cast(kind)
    return pa.scalar(value, kind)
