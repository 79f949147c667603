"""The diff of two snapshots: applied to the one it gives the other; three ways to read it agree."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from branch_histories import SCHEMA, Entity, State, fork, history, naive_diff, p, q, steps
from hypothesis import Phase, given, settings

import omnigraph
from omnigraph.branch.changes import ARROW_SCHEMA, EntityChange, Image, parse_change
from omnigraph.branch.delta import UPDATE, table_delta
from omnigraph.branch.diff import Diff
from omnigraph.branch.types import ComparedTypes, matched_types
from omnigraph.manifest.snapshot import TableChange
from omnigraph.schema.catalog import Catalog
from support.examples import examples


def diff(graph: omnigraph.Graph, before: str, after: str) -> Diff:
    repository = graph._repository
    return Diff(repository, *(repository.branch(b).refresh().snapshot for b in (before, after)))


def as_line(change: EntityChange, image: Image) -> dict[str, Any]:
    data = {"id": change.id, **image.properties}
    if change.kind == "node":
        return {"type": change.type_name, "data": data}
    assert image.endpoints is not None
    source, target = image.endpoints
    return {"edge": change.type_name, "from": source, "to": target, "data": data}


def applied(state: State, changes: list[EntityChange]) -> State:
    """The state after the changes; each of them must find what it says was there."""
    made = dict(state)
    for change in changes:
        key: Entity = (change.type_name, change.id)
        was = made.pop(key, None)
        assert spelled(was) == spelled(as_line(change, change.before) if change.before else None)
        if change.after is not None:
            made[key] = as_line(change, change.after)
    return made


def spelled(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def in_order(state: State) -> str:
    return spelled(sorted((t, i, spelled(line)) for (t, i), line in state.items()))


@settings(max_examples=examples(10), derandomize=True, phases=[Phase.generate])
@given(steps=steps)
def test_a_diff_applied_to_one_state_gives_the_other(steps: list[tuple]) -> None:
    with history(steps) as made:
        repository = made.graph._repository
        after, now = made.seen[-1]
        for before, was in made.seen:
            for a, b, left, right in ((before, after, was, now), (after, before, now, was)):
                found = Diff(repository, a, b)
                changes = list(found.changes())
                assert in_order(applied(left, changes)) == in_order(right)
                check_changes(found, changes, naive_diff(left, right))


def check_changes(found: Diff, changes: list[EntityChange], expected: dict[Entity, tuple]) -> None:
    assert {(c.type_name, c.id) for c in changes} == set(expected)
    order = [(c.kind != "node", c.type_id, c.id.encode()) for c in changes]
    assert order == sorted(order)
    counts = {key: counted.total for key, counted in found.counts.items()}
    assert sum(counts.values()) == len(changes)
    for change in changes:
        was, now = expected[change.type_name, change.id]
        if change.op == "update":
            names = {*was["data"], *now["data"]}
            changed = {
                n for n in names if spelled(was["data"].get(n)) != spelled(now["data"].get(n))
            }
            changed |= {c for c, n in (("src", "from"), ("dst", "to")) if was.get(n) != now.get(n)}
            assert set(change.properties) == changed != set()
        else:
            assert change.properties == ()
    # The other two spellings say the same.
    lines = [parse_change(line).to_dict() for piece in found.lines() for line in piece.to_pylist()]
    assert spelled(lines) == spelled([c.to_dict() for c in changes])
    rows = found.to_arrow().to_pylist()
    assert [row["id"] for row in rows] == [c.id for c in changes]
    for row, line in zip(rows, lines, strict=True):
        assert row["op"] == line["op"] and row["changed"] == line.get("changed")
        for side in ("before", "after"):
            image = json.loads(row[side]) if row[side] is not None else None
            assert image == line.get(side)


def test_values_are_spelled_as_an_export_spells_them(tmp_path: Path) -> None:
    schema = """
    node All { k: String @key  t: String?  b: Bool?  i: I32?  l: I64?  u: U32?  w: U64?  f: F32?
        d: F64?  day: Date?  at: DateTime?  raw: Blob?  v: Vector(2)?  many: [F32]?  days: [Date]? }
    """
    everything = {
        "k": "k\"\\\n", "t": "ä\u2028", "b": False, "i": -1, "l": 2**63 - 1, "u": 7, "w": 2**64 - 1,
        "f": 0.1, "d": -0.0, "day": "2026-01-31", "at": "2026-01-31T12:00:00.250Z",
        "raw": "base64:AAEC", "v": [0.1, 1e20], "many": [1e-7, -0.0], "days": ["0001-01-01"],
    }  # fmt: skip
    with omnigraph.init(tmp_path, schema) as graph:
        fork(tmp_path, "empty")
        graph.load([{"type": "All", "data": everything}])
        found = diff(graph, "empty", "main")
        [line] = [line for piece in found.lines() for line in piece.to_pylist()]
        graph.snapshot().export(tmp_path / "all.jsonl")
        exported = (tmp_path / "all.jsonl").read_text()
        data = exported[exported.index('"k":') : exported.rindex("}}")]
        assert f'"after":{{"properties":{{{data}}}}}' in line
        [change] = found.changes()
        assert change.after is not None and str(change.after.properties["d"]) == "-0.0"


def test_counts_and_filters(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        graph.load([p("a", n=1), p("b"), q("q")])
        fork(tmp_path, "other")
        graph.load([p("a", n=2), p("c"), p("b")], mode="merge")
        graph.mutate('query m() { delete Q where code = "q" }')
        graph.load([{"edge": "E", "from": "a", "to": "b", "data": {"id": "e"}}])
        found = diff(graph, "other", "main")
        assert found.counts == {
            "node:P": TableChange(inserted=1, updated=1),
            "node:Q": TableChange(deleted=1),
            "edge:E": TableChange(inserted=1),
        }
        chosen = {
            "kinds=node": found.changes(kinds=["node"]),
            "types=E": found.changes(types=["e"]),
            "ops=update,delete": found.changes(ops=["update", "delete"]),
            "all": found.changes(["node"], ["P", "E"], ["insert"]),
        }
        assert {name: [c.id for c in changes] for name, changes in chosen.items()} == {
            "kinds=node": ["a", "c", "q"],
            "types=E": ["e"],
            "ops=update,delete": ["a", "q"],
            "all": ["c"],
        }
        assert found.count(ops=["update"]) == {"node:P": TableChange(updated=1)}
        assert found and not diff(graph, "main", "main")
        assert list(diff(graph, "main", "main")) == []
        assert diff(graph, "main", "main").to_arrow().schema == ARROW_SCHEMA


@pytest.mark.parametrize(
    "wrong", [{"kinds": ["nodes"]}, {"ops": ["upsert"]}, {"types": "P"}, {"kinds": "node"}]
)
def test_wrong_filters(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        with pytest.raises(omnigraph.UsageError):
            diff(graph, "main", "main").count(**wrong)
        with pytest.raises(omnigraph.NotFoundError):
            diff(graph, "main", "main").count(types=["Nobody"])


def test_only_tables_that_differ_are_opened(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        graph.load([p("a"), q("q")])
        fork(tmp_path, "other")
        graph.load([p("b")])
    with omnigraph.open(tmp_path) as graph:
        assert diff(graph, "main", "other").counts == {"node:P": TableChange(deleted=1)}
        assert {name.path for name in graph._repository.open_tables} == {
            graph.catalog.nodes["P"].table_path
        }


def test_a_property_that_one_side_does_not_have(tmp_path: Path) -> None:
    """A new one counts as changed where it has a value, even if no file differs; one that is gone
    is told by the schema."""
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        graph.load([p("a", n=1), p("b", x=0.5), p("c", n=1)])
        now = graph.catalog.nodes["P"]
        was = replace(now, properties=tuple(x for x in now.properties if x.name != "n"))
        pin = graph._repository.branch("main").head.snapshot.pins["node:P"]
        table = graph._repository.table(pin)
        found = table_delta(table, table, ComparedTypes(before=was, after=now))
        assert found.ids.to_pylist() == ["a", "c"]
        assert set(found.ops.tolist()) == {UPDATE}
        assert len(table_delta(table, table, ComparedTypes(before=now, after=was))) == 0
        assert len(table_delta(table, table, ComparedTypes.unchanged(now))) == 0


def test_types_and_properties_are_matched_by_number(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        before: Catalog = graph.catalog
        node = before.nodes["P"]
        renamed = replace(
            node,
            name="Person",
            properties=tuple(replace(x, name="m") if x.name == "n" else x for x in node.properties),
        )
        reborn = replace(before.nodes["Q"], incarnation=before.next_id)
        after = replace(before, nodes={"Person": renamed, "Q": reborn})
        pairs = list(matched_types(before, after))
        assert [(pair.table_key, bool(pair.before), bool(pair.after)) for pair in pairs] == [
            ("node:Person", True, True),
            ("node:Q", True, False),
            ("node:Q", False, True),
            ("edge:E", True, True),
            ("edge:F", True, True),
        ]
        assert pairs[0].comparable
        assert ("n", "m") in [(c.before, c.after) for c in pairs[0].columns]
