"""The tables of variables: nodes with their filters, edges as rows or as pairs.

    Tables, slots -> [sources] -> steps

A table is asked for exactly the columns that the query needs of a variable, and for the rows that
pass the conditions on that variable alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from omnigraph.query import typed
from omnigraph.query.plan.nodes import Scan
from omnigraph.query.plan.rules.keys import sought
from omnigraph.schema.catalog import Catalog, EdgeType
from omnigraph.spark.lower.expressions import LoweredExpressions
from omnigraph.spark.lower.frame import LoweredFrame, Slots


class Tables(Protocol):
    """Where the rows of a snapshot come from."""

    @property
    def takes_conditions(self) -> bool:
        """Whether ``read`` answers conditions; else it is never given any."""
        ...

    def read(
        self, table_key: str, columns: Sequence[str], conditions: Sequence[typed.Expr]
    ) -> DataFrame:
        """These columns, in this order, of the rows for which every condition is true."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops:
    """Steps from one node to another: two columns of ids, and those of a bound edge."""

    df: DataFrame
    start: str
    end: str
    reads: int = 1


class Sources:
    """Tables as frames."""

    def __init__(
        self, tables: Tables, slots: Slots, catalog: Catalog, expressions: LoweredExpressions
    ) -> None:
        self._tables = tables
        self._slots = slots
        self._catalog = catalog
        self._expressions = expressions
        self._fresh = 0

    def fresh(self, word: str) -> str:
        """A column name that is not used."""
        self._fresh += 1
        return f"_{word}_{self._fresh}"

    def nodes(self, variable: str, type_name: str, filters: Sequence[typed.Expr]) -> LoweredFrame:
        """The nodes of a type that pass the filters."""
        df = self._read(f"node:{type_name}", self._slots.stored(variable), filters)
        df = self._filtered(df.toDF(*self._slots.names(variable)), filters)
        scan = Scan(variable=variable, type_name=type_name, filters=tuple(filters))
        if filters and sought(scan, self._catalog.nodes[type_name]) is not None:
            # A lookup by key. Spark cannot know that there are so few, and would rather move all
            # edges than these.
            df = F.broadcast(df)
        return LoweredFrame(df=df, variables=frozenset((variable,)))

    def pairs(self, edge: EdgeType, direction: typed.Direction, *, distinct: bool) -> Hops:
        """Nodes that an edge connects: a row per edge, or with ``distinct`` per pair of nodes."""
        start, end = self.fresh("start"), self.fresh("end")
        df = self._read(edge.table_key, ("src", "dst"), ()).toDF(start, end)
        if direction == "in":
            start, end = end, start
        elif direction == "both":
            df = df.select(F.inline(_ways(start, end)))
        if distinct and (direction == "both" or not _one_per_pair(edge)):
            df = df.distinct()
        return Hops(df=df, start=start, end=end)

    def edges(
        self,
        variable: str,
        edge: EdgeType,
        direction: typed.Direction,
        filters: Sequence[typed.Expr],
    ) -> Hops:
        """Edges of a variable as rows; without a direction each stands for both ways."""
        slots, start, end = self._slots, self.fresh("start"), self.fresh("end")
        names = slots.names(variable)
        df = self._read(edge.table_key, ("src", "dst", *slots.stored(variable)), filters)
        # A column that is asked for twice, as an end and for itself, is read once.
        df = self._filtered(df.toDF(start, end, *names), filters)
        if direction == "in":
            start, end = end, start
        elif direction == "both":
            df = df.select(F.inline(_ways(start, end)), *names)
        return Hops(df=df, start=start, end=end)

    def _read(
        self, table_key: str, columns: Sequence[str], filters: Sequence[typed.Expr]
    ) -> DataFrame:
        unique = list(dict.fromkeys(columns))
        given = filters if self._tables.takes_conditions else ()
        df = self._tables.read(table_key, unique, given)
        if len(unique) == len(columns):
            return df
        plain = [f"c{i}" for i in range(len(unique))]
        places = [unique.index(name) for name in columns]
        return df.toDF(*plain).select(
            *(F.col(plain[p]).alias(f"d{i}") for i, p in enumerate(places))
        )

    def _filtered(self, df: DataFrame, filters: Sequence[typed.Expr]) -> DataFrame:
        if not filters or self._tables.takes_conditions:
            return df
        return df.filter(self._expressions.condition(filters))


def _ways(start: str, end: str) -> Column:
    """Both ways of an edge; a loop has one."""
    there, back = F.col(start), F.col(end)
    out = F.struct(there, back)
    reverse = F.struct(back.alias(start), there.alias(end))
    return F.when(there == back, F.array(out)).otherwise(F.array(out, reverse))


def _one_per_pair(edge: EdgeType) -> bool:
    """Whether the schema allows no second edge between the same two nodes."""
    return ("src", "dst") in edge.unique or (edge.keyed and not edge.key)
