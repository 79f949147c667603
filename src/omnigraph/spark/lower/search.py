"""Text tests and rankings: found on the driver by the local engine, joined to rows by Spark.

    text test or ranking -> local engine, same snapshot -> [search] -> ids and scores as DataFrames

Which nodes pass a text test depends on the type alone, and a ranking is among the nodes that pass
the conditions on its own variable, blocks included. So neither needs rows of the frame it is for,
and what it finds is the same whatever Spark does with it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.errors import InternalError, LimitError
from omnigraph.query import typed
from omnigraph.query.plan.nodes import Filter, Plan, Project, Rank, Scan, Semi
from omnigraph.schema.catalog import PropertyType, Scalar

Search = Callable[[Plan, Mapping[typed.Pattern, Plan]], pa.Table]
"""Runs a plan, with those of its blocks, where the indexes are: rows of the local engine."""

FOUND_BYTES_MAX = 256 << 20
"""Ids and scores that the driver hands to Spark for one search: some millions."""
FEW = 1_000
"""So few ranked nodes are looked up by their ids; for more the table is read."""

_TEXT = PropertyType(scalar=Scalar.STRING)
_FLOAT = PropertyType(scalar=Scalar.F64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Nodes that a ranking has, and their scores."""

    df: DataFrame
    """Two columns: ids and scores."""
    among: typed.Expr | None
    """The condition that a node is one of them, if they are few."""


class Searches:
    """The searches of one query."""

    def __init__(
        self, spark: SparkSession, search: Search, blocks: Mapping[typed.Pattern, Plan]
    ) -> None:
        self._spark = spark
        self._search = search
        self._blocks = blocks
        self._matching: dict[tuple[str, typed.TextMatch], DataFrame] = {}

    def matching(self, test: typed.TextMatch, type_name: str) -> DataFrame:
        """One column: the ids of all nodes of the type that pass. Equal tests are made once."""
        key = (type_name, replace(test, variable=""))
        if key not in self._matching:
            scan = Scan(variable=test.variable, type_name=type_name, filters=(test,))
            outputs = (_id_of(test.variable),)
            found = self._search(Project(input=scan, outputs=outputs), self._blocks)
            self._matching[key] = self._frame(found, f"a search in {type_name}.{test.column}")
        return self._matching[key]

    def ranked(self, step: Rank) -> Ranked:
        """The nodes of a ranking; of one with a limit those that can be among the first."""
        scan = step.input
        while isinstance(scan, Filter | Semi):
            scan = scan.input
        if not isinstance(scan, Scan):
            raise InternalError("a ranking starts from the nodes of a type")
        score = typed.Output(name="score", value=step.score, type=_FLOAT)
        outputs = (_id_of(step.variable), score)
        found = self._search(Project(input=step, outputs=outputs), self._blocks)
        df = self._frame(found, f"a ranking of {scan.type_name}")
        if found.num_rows > FEW:
            return Ranked(df=df, among=None)
        listed = PropertyType(scalar=Scalar.STRING, is_list=True)
        ids = typed.Const(value=tuple(found["id"].to_pylist()), type=listed)
        item = typed.Prop(variable=step.variable, column="id", type=_TEXT)
        return Ranked(df=df, among=typed.InList(item=item, values=ids))

    def _frame(self, found: pa.Table, what: str) -> DataFrame:
        if found.nbytes > FOUND_BYTES_MAX:
            raise LimitError(
                f"{what} finds {found.num_rows:,} nodes, {found.nbytes:,} bytes of ids and scores;"
                f" Spark is handed at most {FOUND_BYTES_MAX:,}",
                hint='search for rarer words, rank fewer nodes, or run it with engine="local"',
                details={
                    "limit": "search",
                    "bytes": found.nbytes,
                    "bytes_max": FOUND_BYTES_MAX,
                    "rows": found.num_rows,
                },
            )
        return self._spark.createDataFrame(found)


def _id_of(variable: str) -> typed.Output:
    value = typed.Prop(variable=variable, column="id", type=_TEXT)
    return typed.Output(name="id", value=value, type=_TEXT)
