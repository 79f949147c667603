"""Inserts, upserts and updates of one type, in the order of the statements.

    statements of a type -> [writes] -> one TableDelta

Statements see what earlier ones did. Those of other types cannot concern them, so each type is
worked through by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

import numpy as np
import pyarrow as pa

from omnigraph.arrow.sets import union
from omnigraph.errors import ConstraintError, ErrorKind, InternalError, ParameterError, Violation
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values, holds
from omnigraph.query.mutate.find import Base, MutationRows, find_ids, find_rows, whole_rows
from omnigraph.query.mutate.images import Images
from omnigraph.rules.identity import identity_members
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, EntityKind, GraphType, PropertyType, Scalar
from omnigraph.schema.identity import canonical_ids, is_keyed
from omnigraph.schema.property_values import ValueRefused, converter, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A statement with the id that its row gets where nothing else gives one."""

    statement: typed.Insert | typed.Update
    fresh_id: str | None = None


@dataclass(slots=True)
class _Put:
    """What a run of inserts leaves for one id."""

    cells: dict[str, Any]
    keep: bool
    """Whether what is not named stays as it was."""


def write_type(
    graph_type: GraphType, statements: Sequence[Numbered], base: Base, values: Values
) -> tuple[TableDelta | None, int]:
    """The change of one table, None if there is none, and how many rows the statements met."""
    work = _TableWrites(graph_type, base, values)
    # Inserts that follow each other are looked up and put together, however many they are.
    for is_insert, run in groupby(statements, lambda s: isinstance(s.statement, typed.Insert)):
        if is_insert:
            work.insert(list(run))
        else:
            for numbered in run:
                work.update(numbered.statement)
    return work.delta(), work.affected


class _TableWrites:
    """The images of one type under construction."""

    def __init__(self, graph_type: GraphType, base: Base, values: Values) -> None:
        self._type = graph_type
        self._base = base
        self._values = values
        self._images = Images(graph_type)
        self._keyed = is_keyed(graph_type)
        self._all_fresh = not self._keyed
        """Every row so far got an id of its own just now."""
        self.affected = 0

    def delta(self) -> TableDelta | None:
        """What really changes."""
        rows = self._images.changed()
        if not rows.num_rows:
            return None
        return TableDelta(
            type=self._type, mode=WriteMode.MERGE, rows=rows, ids_fresh=self._all_fresh
        )

    def update(self, statement: typed.Statement) -> None:
        """Assign in all rows that match, as they are now."""
        if not isinstance(statement, typed.Update):
            raise InternalError(f"not an update: {statement}")
        fixed = {*self._type.system_columns, *identity_members(self._type)}
        assigned = cells(self._type, statement.assignments, self._values)
        if fixed & set(assigned):
            raise InternalError(f"an update of {fixed & set(assigned)}, which never change")
        images = self._images
        mask = holds(statement.where, MutationRows(images.rows), self._values)
        found = find_rows(
            self._base, self._type, statement.where, self._values, images.committed_ids
        )
        if found.num_rows:
            images.adopt(found)
            mask = np.concatenate([mask, np.ones(found.num_rows, np.bool_)])
            self._all_fresh = False
        if mask.any():
            images.set(mask, assigned)
        self.affected += int(np.count_nonzero(mask))

    def insert(self, run: Sequence[Numbered]) -> None:
        """Put rows; what exists of a keyed type is replaced, or kept where not assigned."""
        given = [
            cells(self._type, s.statement.assignments, self._values)
            for s in run
            if isinstance(s.statement, typed.Insert)
        ]
        self.affected += len(given)
        ids = self._keyed_ids(given) if self._keyed else self._own_ids(run, given)
        if self._keyed:
            self._adopt(ids)
        puts: dict[str | int, _Put] = {}
        for number, (row, entity_id, numbered) in enumerate(zip(given, ids, run, strict=True)):
            named = {**row, "id": entity_id}
            # Rows without an id cannot meet each other; the validator says what they lack.
            key = number if entity_id is None else entity_id
            upsert = isinstance(numbered.statement, typed.Insert) and numbered.statement.upsert
            if upsert and key in puts:
                puts[key].cells.update(named)
            else:
                puts[key] = _Put(named, upsert)
        self._put(list(puts.values()))

    def _put(self, puts: Sequence[_Put]) -> None:
        rows = [put.cells for put in puts]
        places = self._images.places([row["id"] for row in rows])
        self._images.put(rows, places, np.array([put.keep for put in puts], np.bool_))

    def _keyed_ids(self, given: Sequence[dict[str, Any]]) -> list[str | None]:
        schema = table_schema(self._type)
        members = identity_members(self._type)
        columns = {m: pa.array([r.get(m) for r in given], schema.field(m).type) for m in members}
        return canonical_ids(self._type, pa.table(columns)).to_pylist()

    def _adopt(self, ids: Sequence[str | None]) -> None:
        """Take up the committed rows of these ids; those that are here were asked for before."""
        distinct = sorted({i for i in ids if i is not None})
        here = self._images.places(distinct)
        asked = [i for i, place in zip(distinct, here, strict=True) if place < 0]
        if asked:
            wanted = pa.array(asked, pa.string())
            positions = self._base.positions(self._type.table_key, "id", wanted)
            self._images.adopt(whole_rows(self._base, self._type, positions))

    def _own_ids(self, run: Sequence[Numbered], given: Sequence[dict[str, Any]]) -> list[str]:
        """Ids of rows without a key: given ones must be new, others are drawn already."""
        chosen = [r["id"] for r in given if r.get("id") is not None]
        if chosen:
            self._all_fresh = False
            self._refuse_taken(chosen)
        ids: list[str] = []
        for row, numbered in zip(given, run, strict=True):
            entity_id = row.get("id")
            if entity_id is None:
                entity_id = numbered.fresh_id
            if entity_id is None:
                raise InternalError("no id was drawn for an insert")
            ids.append(entity_id)
        return ids

    def _refuse_taken(self, chosen: Sequence[str]) -> None:
        """A chosen id is a strict insert: it must not exist, not even by an earlier statement."""
        here = self._images.places(chosen)
        asked = pa.array(sorted(set(chosen)), pa.string())
        stored = self._base.lookup(self._type.table_key, "id", asked, ("id",))
        taken = set(stored.column("id").to_pylist())
        seen: set[str] = set()
        violations: list[Violation] = []
        for entity_id, place in zip(chosen, here, strict=True):
            if entity_id in taken or entity_id in seen or place >= 0:
                violations.append(_taken(self._type, entity_id))
            seen.add(entity_id)
        if violations:
            raise ConstraintError(
                violations,
                total=len(violations),
                kind=ErrorKind.KEY_CONFLICT,
                hint="choose another id, or leave it out to get a fresh one",
            )


def _taken(graph_type: GraphType, entity_id: str) -> Violation:
    return Violation(
        rule="key",
        message=f"key conflict on {graph_type.name}: '{entity_id}' exists already",
        entity_kind=graph_type.kind,
        type_name=graph_type.name,
        entity_id=entity_id,
        property_name="id",
    )


# -- cells -----------------------------------------------------------------------------------------
# Assigned values as cells of their column.
#
#     assignment, parameters -> [cells] -> Python values that ``pa.array`` takes for the column
#
# Literals were fitted when the query was checked; what a parameter brings is only known now.
# Numbers change their kind without loss or not at all. A decimal may be rounded to the width of its
# column, as in a load.


_ID = PropertyType(scalar=Scalar.STRING)


def cells(
    graph_type: GraphType, assignments: tuple[typed.Assignment, ...], values: Values
) -> dict[str, Any]:
    """The assigned columns with their values; None clears."""
    return {a.column: _cell(graph_type, a, values) for a in assignments}


def _cell(graph_type: GraphType, assignment: typed.Assignment, values: Values) -> Any:
    value = values.of(assignment.value)
    if value is None:
        return None
    prop = graph_type.by_name.get(assignment.column)
    # The endpoints of an edge, and the id where it is no declared property, are texts.
    kind = prop.type if prop is not None else _ID
    try:
        return converter(kind)(_fitted(kind, value))
    except ValueRefused as refused:
        raise ParameterError(
            f"{_source(assignment)}{graph_type.name}.{assignment.column}: {refused}",
            details={"type": graph_type.name, "property": assignment.column},
        ) from None


def _source(assignment: typed.Assignment) -> str:
    given = assignment.value
    return f"parameter ${given.name} for " if isinstance(given, typed.Param) else ""


def _fitted(kind: PropertyType, value: Any) -> Any:
    """Whole numbers for integer columns, floats for float columns, where that loses nothing."""
    if kind.vector_size is not None:
        return value
    if isinstance(value, tuple) and kind.is_list:
        return [_fitted_number(kind.scalar, v) for v in cast("tuple[Any, ...]", value)]
    return _fitted_number(kind.scalar, value)


def _fitted_number(scalar: Scalar, value: Any) -> Any:
    if scalar.is_integer and isinstance(value, float):
        if not value.is_integer():
            raise ValueRefused(f"{shown(value)} is not a whole number, as {scalar} needs it")
        return int(value)
    if scalar.is_float and isinstance(value, int) and not isinstance(value, bool):
        try:
            near = float(np.float32(value)) if scalar is Scalar.F32 else float(value)
        except OverflowError:
            near = None
        if near != value:
            raise ValueRefused(f"{shown(value)} has no exact {scalar}")
        return near
    return value


# -- deletes ---------------------------------------------------------------------------------------
# Deletes: which entities go, and which edges go with them.
#
#     delete statements -> [deletes] -> ids to remove, by table
#
# A node takes every edge with it that starts or ends there, whatever its type. Each entity is
# counted once, whichever statements and cascades reach it.


def type_of(catalog: Catalog, kind: EntityKind, name: str) -> GraphType:
    """The type that a statement names."""
    return catalog.nodes[name] if kind == "node" else catalog.edges[name]


def delete(
    catalog: Catalog, statements: Sequence[typed.Delete], base: Base, values: Values
) -> dict[str, TableDelta]:
    """The removals of all statements. A statement sees no row that an earlier one removed, and a
    condition speaks of one row alone: so all may look at the committed rows."""
    found: dict[str, list[pa.Array]] = {}
    for statement in statements:
        graph_type = type_of(catalog, statement.kind, statement.type_name)
        ids = find_ids(base, graph_type, statement.where, values)
        found.setdefault(graph_type.table_key, []).append(ids)
    gone = {key: union(parts) for key, parts in found.items()}
    for key, ids in _incident(catalog, gone, base).items():
        gone[key] = union([gone[key], *ids]) if key in gone else union(ids)
    return {
        t.table_key: TableDelta(
            type=t,
            mode=WriteMode.MERGE,
            rows=table_schema(t).empty_table(),
            removed=gone[t.table_key],
        )
        for t in catalog.types()
        if len(gone.get(t.table_key, ()))
    }


def _incident(
    catalog: Catalog, gone: Mapping[str, pa.StringArray], base: Base
) -> dict[str, list[pa.ChunkedArray]]:
    """Edges that start or end at a node that goes. A lookup per edge column."""
    asks: list[tuple[str, str, pa.StringArray]] = []
    for node in catalog.nodes.values():
        ids = gone.get(node.table_key)
        if ids is None or not len(ids):
            continue
        for edge in catalog.edges_at(node.name):
            ends = (("src", edge.source), ("dst", edge.target))
            asks += [(edge.table_key, column, ids) for column, end in ends if end == node.name]
    edges: dict[str, list[pa.ChunkedArray]] = {}
    for (key, _, _), hit in zip(asks, base.ids_with(asks), strict=True):
        edges.setdefault(key, []).append(hit.column("id"))
    return edges
