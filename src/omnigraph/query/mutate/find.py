"""Committed rows that a condition is true for.

    where -> access (ids, endpoints or everything) -> [find] -> rows

Only what is needed is read: the columns of the condition first, whole rows for matches alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import Positions
from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.exec import numbers
from omnigraph.query.exec.evaluate import Values, holds, is_constant, number_of
from omnigraph.rules.identity import identity_members
from omnigraph.rules.table_delta import CommittedState
from omnigraph.schema.arrow import arrow_type, table_schema
from omnigraph.schema.catalog import EdgeType, GraphType, PropertyType, Scalar
from omnigraph.schema.identity import canonical_ids, is_keyed

NOTHING: Positions = np.empty(0, np.int64)


def find_ids(
    base: Base, graph_type: GraphType, where: typed.Expr, values: Values
) -> pa.StringArray:
    """Ids of the committed rows that match."""
    _, rows = _find(base, graph_type, where, values, by_id=())
    return one_array(rows.column("id"))


def find_rows(
    base: Base,
    graph_type: GraphType,
    where: typed.Expr,
    values: Values,
    skipped: pa.StringArray,
) -> pa.Table:
    """Whole committed rows that match, without those of the skipped ids."""
    schema = table_schema(graph_type)
    positions, rows = _find(base, graph_type, where, values, by_id=tuple(schema.names))
    if len(skipped) and len(positions):
        kept = pc.invert(pc.is_in(rows.column("id"), value_set=skipped))
        positions, rows = positions[kept.to_numpy(zero_copy_only=False)], rows.filter(kept)
    if len(rows.column_names) == len(schema):
        return rows.select(schema.names).cast(schema)
    return whole_rows(base, graph_type, positions)


def whole_rows(base: Base, graph_type: GraphType, positions: Positions) -> pa.Table:
    """Complete images of the rows at these positions."""
    schema = table_schema(graph_type)
    if not len(positions):
        return schema.empty_table()
    rows = base.rows_at(graph_type.table_key, positions, tuple(schema.names))
    return rows.cast(schema)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _find(
    base: Base,
    graph_type: GraphType,
    where: typed.Expr,
    values: Values,
    *,
    by_id: tuple[str, ...],
) -> tuple[Positions, pa.Table]:
    """Matches: where they stand, and the columns of the condition.

    A lookup of ids finds few rows that match nearly always: columns that are wanted next are read
    with the first request.
    """
    key = graph_type.table_key
    columns = tuple(dict.fromkeys(("id", *where_columns(where))))
    lookup = access(graph_type, where, values)
    if lookup is None:
        rows = base.scan(key, columns)
        mask = holds(where, MutationRows(rows), values)
        return np.flatnonzero(mask), rows.filter(pa.array(mask))
    if lookup.column == "id":
        columns = tuple(dict.fromkeys((*columns, *by_id)))
    # The table is part of the read set even where there is nothing to look up.
    wanted = pa.array(sorted(lookup.values), pa.string())
    positions = base.positions(key, lookup.column, wanted, then=columns)
    rows = base.rows_at(key, positions, columns)
    mask = holds(where, MutationRows(rows), values)
    return positions[mask], rows.filter(pa.array(mask))


# -- access ----------------------------------------------------------------------------------------
# Which rows a condition can be true for, as far as keys and endpoints tell.
#
#     where -> [access] -> ids, or endpoints, to look up; nothing: the table is scanned
#
# The answer may name rows that do not match (the whole condition is still evaluated on what is
# found) but never leaves one out.


LOOKUPS_MAX = 10_000
"""Beyond so many combinations of key members a scan is the better plan."""

_TEXT = PropertyType(scalar=Scalar.STRING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Only rows whose column has one of these values can match."""

    column: str
    """``id``, or on edges ``src`` or ``dst``."""
    values: frozenset[str]


def access(graph_type: GraphType, where: typed.Expr, values: Values) -> Lookup | None:
    """The best lookup that a condition allows."""
    if isinstance(where, typed.Or):
        return _union([access(graph_type, o, values) for o in where.operands])
    conjuncts = where.operands if isinstance(where, typed.And) else (where,)
    found = [
        lookup
        for lookup in (access(graph_type, c, values) for c in conjuncts if isinstance(c, typed.Or))
        if lookup is not None
    ]
    bound = _bound(graph_type, conjuncts, values)
    columns = ("id", "src", "dst") if isinstance(graph_type, EdgeType) else ("id",)
    found += [Lookup(column=c, values=frozenset(bound[c])) for c in columns if c in bound]
    members = identity_members(graph_type)
    if is_keyed(graph_type) and all(m in bound for m in members):
        count = prod(len(bound[m]) for m in members)
        if count <= LOOKUPS_MAX:
            found.append(_by_key(graph_type, members, bound))
    if not found:
        return None
    return min(found, key=lambda lookup: (lookup.column != "id", len(lookup.values)))


def _union(lookups: list[Lookup | None]) -> Lookup | None:
    known = [lookup for lookup in lookups if lookup is not None]
    if not known or len(known) < len(lookups) or len({lookup.column for lookup in known}) > 1:
        return None
    return Lookup(column=known[0].column, values=frozenset().union(*(k.values for k in known)))


def _bound(
    graph_type: GraphType, conjuncts: Iterable[typed.Expr], values: Values
) -> Mapping[str, tuple[Any, ...]]:
    """Columns that a conjunct pins to a few values, in the form that the column stores."""
    bound: dict[str, tuple[Any, ...]] = {}
    for conjunct in conjuncts:
        column, wanted = _pinned(conjunct, values)
        if column is None:
            continue
        stored = tuple(dict.fromkeys(_stored(graph_type, column, wanted)))
        if column not in bound or len(stored) < len(bound[column]):
            bound[column] = stored
    return bound


def _pinned(expr: typed.Expr, values: Values) -> tuple[str | None, tuple[Any, ...]]:
    match expr:
        case typed.Compare(op="=", left=typed.Prop(column=c), right=right) if is_constant(right):
            return c, (values.of(right),)
        case typed.Compare(op="=", left=left, right=typed.Prop(column=c)) if is_constant(left):
            return c, (values.of(left),)
        case typed.InList(item=typed.Prop(column=c), values=listed) if is_constant(listed):
            return c, values.of(listed) or ()
        case _:
            return None, ()


def _stored(graph_type: GraphType, column: str, wanted: tuple[Any, ...]) -> Iterable[Any]:
    """The wanted values in the column's type; those that it cannot hold match nothing."""
    kind = graph_type.by_name[column].type if column in graph_type.by_name else _TEXT
    arrow = arrow_type(kind)
    for value in wanted:
        if value is None or not numbers.is_plain(arrow):
            stored = value
        else:
            stored = numbers.fitted(numbers.dtype_of(arrow), number_of(value))
        if stored is not None:
            yield stored


def _by_key(
    graph_type: GraphType, members: tuple[str, ...], bound: Mapping[str, tuple[Any, ...]]
) -> Lookup:
    rows = list(product(*(bound[m] for m in members)))
    columns: dict[str, pa.Array] = {}
    for place, member in enumerate(members):
        declared = graph_type.by_name.get(member)
        arrow = arrow_type(declared.type if declared is not None else _TEXT)
        stored = [row[place] for row in rows]
        if numbers.is_plain(arrow):
            # Days and instants are numbers here; their column is made from those.
            plain = pa.from_numpy_dtype(numbers.dtype_of(arrow))
            columns[member] = pa.array(stored, plain).cast(arrow)
        else:
            columns[member] = pa.array(stored, arrow)
    ids = canonical_ids(graph_type, pa.table(columns))
    return Lookup(column="id", values=frozenset(ids.to_pylist()))


# -- base ------------------------------------------------------------------------------------------
# What a mutation may read: the pinned snapshot, and nothing else.
#
# ``WriteTxn`` is one; every read through it is part of the read set by which a lost race is judged.


class Base(CommittedState, Protocol):
    """The committed state, with access to whole rows."""

    def positions(
        self, table_key: str, column: str, values: pa.Array, *, then: tuple[str, ...] = ()
    ) -> Positions:
        """Where in a ``scan`` the rows stand whose ``column`` is among ``values``; ascending. The
        columns ``then`` will be asked for next."""
        ...

    def ids_with(self, asks: Sequence[tuple[str, str, pa.StringArray]]) -> list[pa.Table]:
        """The ids of rows with some values, for several tables, columns and values."""
        ...

    def rows_at(self, table_key: str, positions: Positions, columns: tuple[str, ...]) -> pa.Table:
        """Rows by their positions in a ``scan``; blobs as plain bytes."""
        ...


class MutationRows:
    """Rows of one table as the columns that a ``where`` speaks of. Implements ``Columns``."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    @property
    def length(self) -> int:
        """How many rows."""
        return self._rows.num_rows

    def column(self, prop: typed.Prop) -> pa.ChunkedArray:
        """A stored column; the only variable is the target itself."""
        return self._rows.column(prop.column)

    def present(self, variable: str) -> pa.BooleanArray:
        """Not asked: a target is always there."""
        raise InternalError(f"a mutation has no variable {variable}")

    def block(self, expr: typed.Exists | typed.CountOf) -> pa.Array:
        """Not asked: the checker refuses blocks here."""
        raise InternalError("a mutation's condition has no blocks")

    def text(self, expr: typed.TextMatch) -> pa.Array:
        """Not asked: the checker refuses searches here."""
        raise InternalError("a mutation's condition has no search")

    def score(self, expr: typed.Score) -> pa.Array:
        """Not asked."""
        raise InternalError("a mutation's condition has no score")


def where_columns(where: typed.Expr) -> Sequence[str]:
    """The columns that a condition reads."""
    return tuple(dict.fromkeys(e.column for e in typed.walk(where) if isinstance(e, typed.Prop)))
