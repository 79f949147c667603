"""The columns in which a merge compares one type, whatever each state calls and types them.

    rows of a state, its declaration -> [frame] -> rows in the columns of the schema to come

A value that the type to come does not hold is null there. Its text then stands in a column beside
it, so that it still differs from other values, is taken along with its side, and can be reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.branch.merge.images import ENDPOINTS, MergeImages, MergeProperty
from omnigraph.schema.arrow import arrow_type, table_schema
from omnigraph.schema.catalog import Backfill, GraphType
from omnigraph.schema.json_text import json_text
from omnigraph.schema.migrate.column_changes import column_of, is_unchanged
from omnigraph.schema.migrate.reconcile import Prefer
from omnigraph.schema.migrate.type_changes import TypeChange, misfits, type_change

_BESIDE = "\0"
"""Begins the name of a column with texts; no property is called so."""


@dataclass(frozen=True, kw_only=True)
class MergeFrame:
    """One type of a merge, as the schema to come declares it."""

    type: GraphType
    backfills: Mapping[int, Backfill]
    converted: frozenset[str] = frozenset()
    """Properties that a state has in a type whose values may have no place here."""
    restored: Mapping[str, Prefer] = field(default_factory=dict[str, Prefer])
    """Properties that go on although a side dropped them, with the side that has them."""

    @staticmethod
    def of(
        graph_type: GraphType,
        states: Iterable[GraphType | None],
        backfills: Mapping[int, Backfill],
        restored: Mapping[str, Prefer],
    ) -> MergeFrame:
        """The frame for some states of a type."""
        converted: set[str] = set()
        for state in states:
            kinds = {p.id: p.type for p in state.properties} if state is not None else {}
            converted |= {
                p.name
                for p in graph_type.properties
                if p.id in kinds and type_change(kinds[p.id], p.type) is TypeChange.OTHER
            }
        return MergeFrame(
            type=graph_type,
            backfills=backfills,
            converted=frozenset(converted),
            restored=restored,
        )

    @cached_property
    def columns(self) -> pa.Schema:
        """Every column but the id; any may be null where a state has no row."""
        fields = [f.with_nullable(True) for f in table_schema(self.type) if f.name != "id"]
        return pa.schema([*fields, *(pa.field(_BESIDE + n, pa.string()) for n in self._texts)])

    @cached_property
    def properties(self) -> tuple[MergeProperty, ...]:
        """What is compared: endpoints first where there are some, then as they are declared."""
        ends = self.type.end_columns
        first = [MergeProperty(name=ENDPOINTS, columns=ends)] if ends else []
        own = [n for n in table_schema(self.type).names if n not in self.type.system_columns]
        return (
            *first,
            *(
                MergeProperty(name=n, columns=(n, _BESIDE + n) if n in self.converted else (n,))
                for n in own
            ),
        )

    @property
    def _texts(self) -> list[str]:
        return sorted(self.converted)

    def read(self, rows: pa.Table, declared: GraphType) -> pa.Table:
        """Rows of another declaration of the type in these columns."""
        if not self.converted and is_unchanged(declared, self.type, self.backfills):
            return pa.table(rows.select(self.columns.names).columns, schema=self.columns)
        columns: list[pa.Array | pa.ChunkedArray] = []
        for column in self.columns:
            if column.name.startswith(_BESIDE):
                columns.append(self._text(rows, declared, column.name.removeprefix(_BESIDE)))
            elif column.name in self.type.system_columns:
                columns.append(rows.column(column.name))
            else:
                prop = self.type.by_name[column.name]
                columns.append(column_of(declared, prop, self.backfills).make(rows))
        return pa.table(columns, schema=self.columns)

    def carried(self, images: MergeImages, before: GraphType, after: GraphType) -> MergeImages:
        """Images of one declaration, as another shows the same rows where they did not change.

        What only the first has is gone. What only the second has is null: a row with a value in it
        has changed.
        """
        old = {p.id for p in before.properties}
        new = {p.id: p for p in after.properties}
        differing = {p.name for p in self.type.properties if (p.id in old) != (p.id in new)}
        if not differing:
            return images
        names = [c for p in self.properties if p.name in differing for c in p.columns]
        rows = images.rows
        for name in names:
            rows = _with_column(rows, name, pa.nulls(rows.num_rows, rows.schema.field(name).type))
        # As the second declares them, in the types of this frame, in which the images are.
        declared = tuple(
            replace(
                p,
                type=replace(p.type, nullable=new[p.id].type.nullable),
                backfill=new[p.id].backfill,
            )
            for p in self.type.properties
            if p.id in new
        )
        shown = self.read(rows, replace(self.type, properties=declared))
        for name in names:
            rows = _with_column(rows, name, shown.column(name))
        unknown = {name: mask for name, mask in images.unknown.items() if name not in differing}
        return replace(images, rows=rows, unknown=unknown)

    def _text(self, rows: pa.Table, declared: GraphType, name: str) -> pa.Array | pa.ChunkedArray:
        """The values of a property that have no place here, as texts."""
        prop = self.type.by_name[name]
        was = next((p for p in declared.properties if p.id == prop.id), None)
        if was is None or arrow_type(was.type) == arrow_type(prop.type):
            return pa.nulls(rows.num_rows, pa.string())
        values = rows.column(was.name).combine_chunks()
        misfit = misfits(values, arrow_type(prop.type))
        return pc.if_else(misfit, json_text(values).cast(pa.string()), pa.scalar(None, pa.string()))

    def misfits(self, ids: pa.Array, images: MergeImages) -> Iterator[tuple[str, str, str]]:
        """Ids, properties and texts of values that have no place here."""
        for name in self._texts:
            texts = images.rows.column(_BESIDE + name).combine_chunks()
            for row in pc.indices_nonzero(texts.is_valid()).to_pylist():
                if images.present[row]:
                    yield ids[row].as_py(), name, texts[row].as_py()


def _with_column(rows: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), rows.schema.field(name), column)
