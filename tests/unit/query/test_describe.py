"""What a query says about itself: columns, parameters, types that it touches."""

from __future__ import annotations

import json

from check_support import CATALOG, one, read_text

from omnigraph.query.describe import describe


def described(text):
    return describe(one(text), CATALOG)


def touched(items):
    return [f"{t.kind}:{t.type_name}" for t in items]


def test_kinds_of_columns():
    returned = (
        "$v.name, $v.imo, $p.berths, $v.draft, $v.active, $v.built, $v.seen, $v.tags, $v.years,"
        " $v.shape, $v, $v.flag, count { $v callsAt $_ } as n"
    )
    found = described(read_text("$v: Vessel $v callsAt $p", returned))
    kinds = {c.name: (c.kind, c.item_kind, c.vector_dim, c.nullable) for c in found.result}
    assert kinds == {
        "v.name": ("string", None, None, False),
        "v.imo": ("bigint", None, None, False),
        "p.berths": ("int", None, None, False),
        "v.draft": ("float", None, None, True),
        "v.active": ("bool", None, None, True),
        "v.built": ("date", None, None, True),
        "v.seen": ("datetime", None, None, True),
        "v.tags": ("list", "string", None, True),
        "v.years": ("list", "int", None, True),
        "v.shape": ("vector", None, 3, True),
        "v": ("object", None, None, False),
        "v.flag": ("string", None, None, True),
        "n": ("bigint", None, None, False),
    }


def test_parameters():
    text = (
        "query q($a: String, $b: [U64]?, $c: Vector(3), $d: Blob?)"
        " { insert Vessel { imo: 1, name: $a, photo: $d, shape: $c } }"
    )
    found = described(text)
    assert [p.to_dict() for p in found.params] == [
        {"name": "a", "kind": "string", "nullable": False},
        {"name": "b", "kind": "list", "item_kind": "bigint", "nullable": True},
        {"name": "c", "kind": "vector", "vector_dim": 3, "nullable": False},
        {"name": "d", "kind": "blob", "nullable": True},
    ]


def test_reads_are_found_in_every_block():
    found = described(
        read_text(
            "$l: Log not { $l.text = $v.name $v: Vessel not { $v charters $_ } }"
            " exists { $p: Port $p.name = $l.text $p feeds $_ }"
            " optional { $g: Page $g.title = $l.text }",
            "$l.text",
        )
    )
    assert touched(found.reads) == [
        "edge:Charters", "edge:Feeds", "node:Log", "node:Page", "node:Port", "node:Vessel",
    ]  # fmt: skip
    assert found.writes == ()


def test_reads_are_found_in_results_and_order():
    text = read_text(
        "$v: Vessel",
        "exists { $v callsAt $_ } as a",
        "order { count { $v charters $_ } desc }",
    )
    assert touched(described(text).reads) == [
        "edge:CallsAt", "edge:Charters", "node:Port", "node:Vessel",
    ]  # fmt: skip


def test_writes():
    added = described('insert CallsAt { from: "1", to: "A", on: date("2026-01-02") }')
    assert touched(added.writes) == ["edge:CallsAt"]
    assert touched(added.reads) == ["edge:CallsAt", "node:Port", "node:Vessel"]
    changed = described('update CallsAt set { cargo: "x" } where from = "1"')
    assert touched(changed.reads) == touched(changed.writes) == ["edge:CallsAt"]
    assert changed.result == ()


def test_a_deleted_node_takes_its_edges_along():
    removed = described("delete Port where berths = 0")
    everything = ["edge:CallsAt", "edge:Charters", "edge:Feeds", "node:Port"]
    assert touched(removed.writes) == touched(removed.reads) == everything
    edges = described("delete Feeds where weight is null")
    assert touched(edges.writes) == ["edge:Feeds"]


def test_plain_data():
    text = 'query q($a: I64) @description("d") @instruction("i") { match { $v: Vessel { imo: $a } } return { $v.name } }'
    found = described(text).to_dict()
    assert found == {
        "name": "q",
        "operation": "read",
        "description": "d",
        "instruction": "i",
        "params": [{"name": "a", "kind": "bigint", "nullable": False}],
        "result": [{"name": "v.name", "kind": "string", "nullable": False}],
        "reads": [{"kind": "node", "type_name": "Vessel"}],
        "writes": [],
    }
    json.dumps(found)
