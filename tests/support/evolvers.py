"""Schema changes for race and crash tests, each made from the schema that the graph has now."""

from __future__ import annotations

from omnigraph.api import graph as graphs
from omnigraph.errors import ErrorKind, MigrationError, OmnigraphError

START = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge LivesIn: Person -> City
"""
GROWN = """
node Human @rename_from("Person") { name: String @key  years: I64? @rename_from("age")
  country: String @backfill("no")
  @range(years, 0..200) }
node City { name: String @key  size: I32? }
node Port { name: String @key }
edge LivesIn: Human -> City
"""


def grow(graph: graphs.Graph, name: str, i: int, type_name: str) -> None:
    """Rename, cast, backfill and add in one commit."""
    graph.schema_apply(GROWN, actor=name)


def extend(graph: graphs.Graph, name: str, i: int, type_name: str) -> None:
    """Add a property of its own to a type whose schema everybody extends.

    A text says the whole schema, so it is made again if somebody else was faster.
    """
    while True:
        view = graph.snapshot()
        text = view.schema.replace(
            f"node {type_name} {{", f"node {type_name} {{ {name}_{i}: I32? @backfill({i})"
        )
        try:
            graph.schema_apply(text, actor=name, if_commit=view.commit.id)
            return
        except OmnigraphError as e:
            if e.kind is not ErrorKind.PRECONDITION_FAILED:
                raise


def insist(graph: graphs.Graph, name: str, i: int, type_name: str) -> str:
    """Make a property required, or say that a row is in the way."""
    text = graph.snapshot().schema.replace("age: I32?", "age: I32")
    try:
        graph.schema_apply(text, actor=name)
    except MigrationError as e:
        return f"refused {e.total}"
    return "required"
