"""The life of a graph in a bucket: every kind of request that one makes."""

from __future__ import annotations

import json

import obstore
import pytest

import omnigraph
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects

SCHEMA = "node P { name: String @key  n: I32? }\nedge K: P -> P { since: I32? }"


def live(root: str) -> None:
    """Create, load, change, branch, merge, tidy up, check; two handles race for one commit."""
    lines = "\n".join(json.dumps({"type": "P", "data": {"name": n}}) for n in ("x", "y z%"))
    obstore.put(locate(root).connect(), "in/rows.jsonl", lines.encode())
    place = f"{root}/of graphs/g"
    with omnigraph.init(place, SCHEMA) as graph, omnigraph.open(place) as other:
        graph.load([{"type": "P", "data": {"name": n}} for n in "abc"])
        graph.load(f"{root}/in/*.jsonl")
        other.mutate('insert K { from: "a"  to: "b"  since: 1 }')
        graph.mutate('update P set { n: 3 } where name = "a"')
        graph.branches.create("side")
        graph.load([{"type": "P", "data": {"name": "s"}}], branch="side")
        graph.mutate('delete P where name = "c"')
        graph.merge("side")
        graph.optimize()
        graph.upkeep.cleanup(keep=1, confirm=True)
        asked = "match { $a: P  $a k $b } return { $a.n, $b.name }"
        assert other.query(asked).to_dicts() == [{"a.n": 3, "b.name": "b"}]
    with pytest.raises(omnigraph.AlreadyExistsError):
        omnigraph.init(place, SCHEMA)
    with omnigraph.open(place) as graph:
        assert sorted(row["name"] for row in graph.snapshot().rows("P").to_dicts()) == [
            *("a", "b", "s", "x", "y z%")
        ]
        assert graph.upkeep.check(full=True).ok


def create_once(root: str) -> None:
    """What makes a name an authority: of those who create it, one does."""
    objects = Objects(locate(root))
    assert objects.create("name", b"first")
    assert not objects.create("name", b"second")
    assert objects.get("name") == b"first"
    objects.delete(["name", "nothing"])
    assert objects.get("name") is None
