"""The past is read with the schema that it had, whatever the schema is now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph
from omnigraph.manifest.schemas import schema_object
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.ir import schema_hash, to_ir
from omnigraph.write.publish import restate

BEFORE = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
"""
AFTER = """
node Person { name: String @key  age: I32? }
"""


def accept(graph: omnigraph.Graph, text: str) -> None:
    """Show a branch with another schema, as applying one will do."""
    repository = graph._repository
    ir = to_ir(compile_schema(text, source_name="schema.pg"), text)
    digest = schema_hash(ir)
    repository.objects.put(schema_object(digest), ir)

    def changed(snapshot):
        pins = {k: p for k, p in snapshot.pins.items() if k != "node:City"}
        return replace(snapshot, schema_hash=digest, pins=pins)

    restate(repository, repository.branch("main"), changed)


def test_a_dropped_type_is_there_in_the_past(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path, BEFORE) as graph:
        rows = [
            {"type": "Person", "data": {"name": "a", "age": 3}},
            {"type": "City", "data": {"name": "oslo"}},
        ]
        graph.load(rows)
        graph.tags.create("before")
        accept(graph, AFTER)
        assert graph.snapshot().schema == AFTER
        with pytest.raises(omnigraph.NotFoundError):
            graph.snapshot().rows("City")
        with pytest.raises(omnigraph.QueryError):
            graph.query("match { $c: City } return { $c.name }")
        past = graph.at("before")
        assert past.schema == BEFORE
        assert [r["name"] for r in past.rows("City")] == ["oslo"]
        found = past.query("match { $c: City } return { $c.name }")
        assert [list(r.values()) for r in found.to_dicts()] == [["oslo"]]
        assert "City" in [d.type_name for d in past.datasets]
        # A branch of the past has that schema, and goes on with it.
        graph.branches.create("old", "before")
        graph.load([{"type": "City", "data": {"name": "rome"}}], branch="old")
        assert graph.snapshot("old").count("City") == 2
        assert graph.snapshot().schema == AFTER
