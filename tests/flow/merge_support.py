"""A small graph with branches, and short words for what happens to it."""

from __future__ import annotations

from typing import Any

import omnigraph
from omnigraph.branch.merge.conflicts import MergeConflict, MergeResult
from omnigraph.branch.merge.three_way import merge

SCHEMA = """
node Person { name: String @key  age: I32?  city: String? }
node Badge { code: String @key  owner: String?  @unique(owner) }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person { how: String?  @key(@src, @dst) }
edge Wears: Person -> Badge @card(0..1)
"""
PEOPLE = ("Alice", "Bob", "Carol", "Dan")

State = dict[str, dict[str, dict[str, Any]]]
"""Rows by type and id."""


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def badge(code: str, **data: Any) -> dict[str, Any]:
    return {"type": "Badge", "data": {"code": code, **data}}


def edge(kind: str, source: str, target: str, **data: Any) -> dict[str, Any]:
    return {"edge": kind, "from": source, "to": target, "data": data}


class World:
    """A graph with the branches ``main`` and ``work``, which start from the same people."""

    def __init__(self, graph: omnigraph.Graph) -> None:
        self.graph = graph
        self.put(
            "main", *(person(n, age=30) for n in PEOPLE), edge("Knows", "Bob", "Carol", id="e")
        )
        graph.branches.create("work")

    @property
    def repository(self) -> Any:
        return self.graph._repository

    def put(self, branch: str, *records: dict[str, Any]) -> None:
        assert self.graph.load(list(records), mode="merge", branch=branch).commit is not None

    def run(self, branch: str, text: str) -> None:
        assert self.graph.mutate(text, branch=branch).commit is not None

    def set(self, branch: str, name: str, column: str, value: str) -> None:
        self.run(branch, f'update Person set {{ {column}: {value} }} where name = "{name}"')

    def drop(self, branch: str, kind: str, key: str, value: str) -> None:
        self.run(branch, f'delete {kind} where {key} = "{value}"')

    def merge(self, source: str = "work", into: str = "main", **options: Any) -> MergeResult:
        return merge(self.repository, source, into=into, **options)

    def conflicts(
        self, source: str = "work", into: str = "main", **options: Any
    ) -> list[MergeConflict]:
        """The conflicts of a merge, which a dry run must tell alike; nothing may have changed."""
        before = self.state(into), self.head(into)
        seen = self.merge(source, into, dry_run=True, **options)
        assert seen.outcome == "conflicts"
        assert seen.commit is None
        try:
            self.merge(source, into, **options)
        except omnigraph.OmnigraphError as error:
            assert str(error.kind) == "merge_conflict"
            assert error.conflicts == seen.conflicts  # pyright: ignore
            assert error.to_dict()["merge_conflicts"] == [c.to_dict() for c in seen.conflicts]
        else:
            raise AssertionError("it was merged")
        assert (self.state(into), self.head(into)) == before
        return list(seen.conflicts)

    def head(self, branch: str = "main") -> Any:
        return self.repository.head(branch).snapshot.head

    def state(self, branch: str = "main") -> State:
        view = self.graph.snapshot(branch)
        return {t: rows_of(view, t) for t in ("Person", "Badge", "Knows", "Likes", "Wears")}

    def people(self, branch: str = "main") -> dict[str, dict[str, Any]]:
        return self.state(branch)["Person"]


def rows_of(view: Any, type_name: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in view.rows(type_name)}
