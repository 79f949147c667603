"""A copy that follows the feed has the branch's rows after every commit, also across schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from feed_replay import Replica, exported

import omnigraph

START = """
node A { k: String @key  x: I32?  y: I32? }
node B { k: String @key }
edge E: A -> B { w: I32? }
"""
ROWS: list[dict[str, Any]] = [
    {"type": "A", "data": {"k": "a", "x": 1, "y": 2}},
    {"type": "A", "data": {"k": "b", "x": 3}},
    {"type": "B", "data": {"k": "a"}},
    {"edge": "E", "from": "a", "to": "a", "data": {"id": "e", "w": 5}},
]
SCHEMAS = {
    "rename": START.replace("x: I32?", 'z: I32? @rename_from("x")'),
    "swap": START.replace("x: I32?  y: I32?", "x: I32? @rename_from(\"y\")  y: I32? @rename_from(\"x\")"),
    "shift": START.replace("x: I32?  y: I32?", 'y: I32? @rename_from("x")'),
    "drop": START.replace("x: I32?", ""),
    "drop type": START.replace("edge E: A -> B { w: I32? }", ""),
    "rename type": START.replace("node A", 'node N @rename_from("A")').replace("A ->", "N ->"),
    "take over a name": """
node B @rename_from("A") { k: String @key  x: I32?  y: I32? }
""",
    "widen": START.replace("x: I32?", "x: I64?"),
    "to float": START.replace("x: I32?", "x: F64?"),
    "fill": START.replace("x: I32?", 'x: I32?  c: String @backfill("no")'),
    "copy": START.replace("x: I32?", "x: I32?  c: I32? @backfill(y)"),
    "required": START.replace("y: I32?", "y: I32 @backfill(0)"),
    "rules": START.replace("x: I32?", "x: I32?  @range(x, 0..9)"),
}  # fmt: skip


def follow(graph: omnigraph.Graph, branch: str = "main", **size: int) -> Replica:
    """Replay a branch, and compare after every commit."""
    replica = Replica()
    for block in graph.changes.follow(
        branch=branch, start="beginning", until_caught_up=True, **size
    ):
        told = json.loads(block.to_json())
        assert told == json.loads(json.dumps(block.to_dict()))
        replica.apply(told)
        if not block.continued:
            view = graph.at(f"commit:{block.cause.commit_id}")
            assert replica.state() == exported(view), block.cause
            if block.schema is not None:
                assert block.schema.source == view.schema
    assert replica.state() == exported(graph.snapshot(branch))
    return replica


@pytest.mark.parametrize("size", [{}, {"max_changes": 1}], ids=["pages", "single changes"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_copy_follows_a_schema_change(tmp_path: Path, name: str, size: dict[str, int]) -> None:
    with omnigraph.init(tmp_path / "g", START) as graph:
        graph.load(ROWS)
        assert graph.schema_apply(SCHEMAS[name], confirm=True).applied
        follow(graph, **size)


def test_a_copy_follows_all_of_them_in_turn(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", START) as graph:
        for name, text in SCHEMAS.items():
            # Everything goes, and others come under the old names.
            graph.schema_apply("node Z { k: String @key }\n", confirm=True)
            graph.schema_apply(START, confirm=True)
            graph.load(ROWS, mode="overwrite")
            assert graph.schema_apply(text, confirm=True).applied, name
        follow(graph)


def test_a_copy_follows_a_branch_that_takes_over_another_number(tmp_path: Path) -> None:
    grown = START + "node C { k: String @key  v: I32? }\n"
    with omnigraph.init(tmp_path / "g", START) as graph:
        graph.load(ROWS)
        graph.branches.create("s")
        for branch in ("main", "s"):
            graph.schema_apply(grown, branch=branch)
            graph.load([{"type": "C", "data": {"k": branch, "v": 1}}], branch=branch)
        graph.merge("s")
        graph.mutate('update C set { v: 2 } where k = "s"')
        assert graph.merge("main", into="s").outcome == "fast_forward"
        follow(graph)
        follow(graph, "s")


def test_a_filter_tells_schema_steps_of_its_types(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", START) as graph:
        graph.load(ROWS)
        graph.schema_apply(SCHEMAS["rename"])
        poll = graph.changes.poll(start="beginning", types=["A"])
        steps = [b.schema.to_dict()["steps"] for b in poll.blocks if b.schema is not None]
        number = f"{graph.catalog.nodes['A'].id:016x}"
        assert steps == [
            [
                {
                    "op": "rename_property",
                    "kind": "node",
                    "type": {"id": number, "name": "A"},
                    "property": "z",
                    "from": "x",
                    "to": "z",
                }
            ]
        ]
        assert all(
            b.schema is None for b in graph.changes.poll(start="beginning", types=["B"]).blocks
        )
