"""A small social graph with search, and short ways to ask it, for the flow tests of reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph

MODES = ("csr", "indexed", "auto")
SCHEMA = """
node Person {
  name: String @key  age: I32?  score: F64?  city: String?  bio: String? @index
  place: Vector(2)?  nicks: [String]?
}
node Club { title: String @key }
edge Knows: Person -> Person { since: I32? }
edge MemberOf: Person -> Club
"""


def person(name: str, **data: object) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def club(title: str) -> dict[str, Any]:
    return {"type": "Club", "data": {"title": title}}


def knows(source: str, target: str, **data: object) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": data}


def member(source: str, target: str) -> dict[str, Any]:
    return {"edge": "MemberOf", "from": source, "to": target}


PEOPLE = [
    person("ann", age=30, score=30.5, city="Oslo", bio="quick red fox", place=[0.0, 0.0]),
    person("bob", age=40, score=40.0, city="Oslo", bio="red quick fox", place=[1.0, 0.0]),
    person("cat", age=30, city="Rome", bio="Fox and hound", place=[2.0, 0.0], nicks=["c"]),
    person("dan", score=-1.0, bio="a slow hound", place=[3.0, 0.0]),
    club("chess"),
    club("ski"),
    knows("ann", "bob", since=1),
    knows("ann", "bob", since=2),
    knows("bob", "cat"),
    knows("cat", "dan"),
    knows("cat", "cat"),
    member("ann", "chess"),
    member("bob", "chess"),
    member("dan", "ski"),
]


def people(place: Path, **options: Any) -> omnigraph.Graph:
    graph = omnigraph.init(place, SCHEMA, **options)
    graph.load(PEOPLE)
    return graph


def ask(graph: Any, text: str, params: dict[str, Any] | None = None, **options: Any) -> list[Any]:
    """Rows as tuples, single columns as values; the same in every way of traversing."""
    answers = []
    for mode in MODES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
            rows = [tuple(r.values()) for r in graph.query(text, params, **options).to_dicts()]
            answers.append([r[0] if len(r) == 1 else r for r in rows])
    assert all(sorted(map(repr, a)) == sorted(map(repr, answers[0])) for a in answers), answers
    return answers[0]
