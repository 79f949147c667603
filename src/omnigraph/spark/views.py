"""SQL over a snapshot: its types as temporary views of a session.

    PinnedGraph -> [views] -> Person, Knows, …

Every view reads the same snapshot. Spark cannot take columns away from a view: ``columns`` says
which ones a type shall have, and a view without long texts and vectors is read much faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.errors import UsageError
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.schema.catalog import GraphType
from omnigraph.spark.tables import table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Columns = Mapping[str, Sequence[str]]
"""Columns by the name of a type; a type that is not named has all of its columns."""


def graph_tables(
    spark: SparkSession,
    pinned: PinnedGraph,
    types: Sequence[str] = (),
    *,
    columns: Columns | None = None,
) -> dict[str, DataFrame]:
    """A DataFrame for each of these types, or for all, by the name that its view would have."""
    if isinstance(types, str):
        raise UsageError("types is a list of names", hint=f'say types=["{types}"]')
    wanted = {pinned.type(name).table_key for name in types}
    chosen = {pinned.type(name).table_key: list(names) for name, names in (columns or {}).items()}
    return {
        name: table_frame(spark, pinned, table_key, chosen.get(table_key))
        for table_key, name in view_names(pinned).items()
        if not wanted or table_key in wanted
    }


def register_views(
    spark: SparkSession,
    pinned: PinnedGraph,
    prefix: str = "",
    types: Sequence[str] = (),
    *,
    columns: Columns | None = None,
) -> list[str]:
    """Make a temporary view of each type, named after it; replaces views of the same names.

    Nodes have ``id`` and their properties, edges ``id``, ``src``, ``dst`` and theirs.
    """
    names: list[str] = []
    for name, frame in graph_tables(spark, pinned, types, columns=columns).items():
        frame.createOrReplaceTempView(prefix + name)
        names.append(prefix + name)
    return names


def view_names(pinned: PinnedGraph) -> dict[str, str]:
    """The name of each type's view, by table key. Spark looks names up without regard to case.

    An edge type with the name of a node type is called ``Name_edge``.
    """
    taken: dict[str, str] = {}
    for graph_type in pinned.catalog.types():
        name = graph_type.name
        if graph_type.kind == "edge" and name.lower() in taken:
            name = f"{name}_edge"
        other = taken.setdefault(name.lower(), graph_type.table_key)
        if other != graph_type.table_key:
            raise _collision(pinned.catalog.table(other), graph_type)
    return {key: _name(pinned, key, folded) for folded, key in taken.items()}


def _name(pinned: PinnedGraph, table_key: str, folded: str) -> str:
    name = pinned.catalog.table(table_key).name
    return name if name.lower() == folded else f"{name}_edge"


def _collision(first: GraphType, second: GraphType) -> UsageError:
    return UsageError(
        f"the views of {first.table_key} and {second.table_key} would have the same name",
        hint="read these types one by one",
    )
