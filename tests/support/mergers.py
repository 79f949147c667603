"""Merges for race tests: branches that come together while others write and delete.

Every racer works on a branch of its own and merges it again and again. All of them change one and
the same row, each its own property; so an update that is lost shows, and so does a row that a
merge brings back after somebody deleted it.
"""

from __future__ import annotations

from omnigraph.api import graph as graphs
from omnigraph.branch.merge.three_way import merge
from omnigraph.errors import ConstraintError, MergeConflictError
from support.mutators import PEOPLE

SLOTS = 4
SCHEMA = f"""
node Person {{ name: String @key }}
node Tally {{ name: String @key  {"  ".join(f"w{i}: I64?" for i in range(SLOTS))} }}
edge Knows: Person -> Person {{ since: I32? }}
"""


def deliver(graph: graphs.Graph, name: str, i: int, type_name: str) -> None:
    """Work on the branch ``name`` and merge it into main; now and then take main's work over.

    ``type_name`` is the racer's own property of the one tally.
    """
    graph.mutate(f'update Tally set {{ {type_name}: {i + 1} }} where name = "t"', branch=name)
    person = f"{name}-{i}"
    rows = [
        {"type": "Person", "data": {"name": person}},
        {"edge": "Knows", "from": person, "to": f"p{i % PEOPLE}", "data": {"since": i}},
    ]
    try:
        graph.load(rows, branch=name)
    except ConstraintError:  # The person may be gone here since main was taken over.
        graph.load(rows[:1], branch=name)
    _merge(graph, name, "main")
    if i % 3 == 2:
        _merge(graph, "main", name)


def retire(graph: graphs.Graph, name: str, i: int, type_name: str) -> None:
    """Delete somebody for good."""
    graph.mutate(f'delete {type_name} where name = "old-{name}-{i}"', actor=name)


def _merge(graph: graphs.Graph, source: str, into: str) -> None:
    repository = graph._repository  # pyright: ignore[reportPrivateUsage]
    try:
        merge(repository, source, into=into, actor=source)
    except MergeConflictError:
        # An edge to somebody whom the other side removed: the target is right.
        merge(repository, source, into=into, prefer="ours", actor=source)
