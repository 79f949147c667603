"""Mutations for race tests: writers that would betray a lost, doubled or half-seen update.

``claim`` and ``increment`` are conditional updates. They only keep their promises if the condition
is asked again on the state that a lost race left.
"""

from __future__ import annotations

from datetime import UTC, datetime

from omnigraph.api import graph as graphs
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.mutate import MutationOutcome, run_mutation

SCHEMA = """
node Slot { name: String @key  owner: String? }
node Counter { name: String @key  value: I64 }
node Person { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = 6


def mutate(graph: graphs.Graph, actor: str, text: str) -> MutationOutcome:
    """Run the one mutation of a text."""
    (query,) = compile_queries(text, graph.catalog)
    if not isinstance(query.body, typed.Mutation):
        raise TypeError(f"not a mutation: {text}")
    values = Values(params={}, now=datetime(2026, 1, 1, tzinfo=UTC))
    # The repository is what the mutation engine works on, below the public surface.
    repository = graph._repository  # pyright: ignore[reportPrivateUsage]
    return run_mutation(repository, lambda _: (query, values), branch="main", actor=actor)


def claim(graph: graphs.Graph, name: str, i: int, type_name: str) -> None:
    """Take a slot that nobody has. All racers want the same slots in the same order."""
    where = f'name = "s{i}" and owner is null'
    mutate(graph, name, f'update {type_name} set {{ owner: "{name}" }} where {where}')


def increment(graph: graphs.Graph, name: str, i: int, type_name: str) -> None:
    """Add one to the counter: read it, and write the sum if it is still what was read."""
    while True:
        (row,) = graph.snapshot().rows(type_name, ["value"]).to_dicts()
        value = row["value"]
        text = f"update {type_name} set {{ value: {value + 1} }} where value = {value}"
        if mutate(graph, name, text).affected_nodes:
            return


def relate(graph: graphs.Graph, name: str, i: int, type_name: str) -> None:
    """Insert an edge between two people; somebody may be removing them meanwhile."""
    ends = f'from: "p{i % PEOPLE}", to: "p{(i + 1) % PEOPLE}"'
    mutate(graph, name, f"insert {type_name} {{ {ends}, since: {i} }}")


def drop(graph: graphs.Graph, name: str, i: int, type_name: str) -> None:
    """Delete a person with all edges, then bring the person back."""
    person = f"p{i % PEOPLE}"
    mutate(graph, name, f'delete {type_name} where name = "{person}"')
    mutate(graph, name, f'insert {type_name} {{ name: "{person}" }}')


def join(graph: graphs.Graph, name: str, i: int, type_name: str) -> None:
    """Insert a new person and an edge to it in one mutation."""
    person = f"{name}-{i}"
    text = (
        f'insert Person {{ name: "{person}" }} insert Knows {{ from: "{person}", to: "{person}" }}'
    )
    mutate(graph, name, text)
