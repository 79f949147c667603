"""Merges as people meet them: outcomes, conflicts, decisions, lineage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from merge_support import SCHEMA, World, badge, edge, person

import omnigraph
from omnigraph.branch.merge.conflicts import EntityName
from omnigraph.branch.merge.resolve import PropertyDecision, Resolution, Take
from omnigraph.errors import ErrorKind


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with omnigraph.init(tmp_path, SCHEMA) as graph:
        yield World(graph)


def lines(*items: dict) -> bytes:
    return "\n".join(json.dumps(i) for i in items).encode()


def test_two_properties_of_one_entity_merge_by_property_and_conflict_by_row(world: World) -> None:
    world.set("main", "Alice", "age", "31")
    world.set("work", "Alice", "city", '"Oslo"')
    (conflict,) = world.conflicts(granularity="row")
    assert conflict.kind == "divergent_update"
    assert [(p.name, p.base, p.ours, p.theirs) for p in conflict.properties] == [
        ("age", 30, 31, 30),
        ("city", None, None, "Oslo"),
    ]
    world.merge()
    assert world.people()["Alice"] == {"id": "Alice", "name": "Alice", "age": 31, "city": "Oslo"}


def test_a_conflict_tells_everything(world: World) -> None:
    world.set("main", "Alice", "age", "31")
    world.set("work", "Alice", "age", "32")
    (conflict,) = world.conflicts()
    assert conflict.message == "Person 'Alice': age was 30, is 31 on 'main' and 32 on 'work'"
    assert (conflict.entity_kind, conflict.type_name, conflict.entity_id) == (
        "node",
        "Person",
        "Alice",
    )
    images = [(i or {})["properties"] for i in (conflict.base, conflict.ours, conflict.theirs)]
    assert [i["age"] for i in images] == [30, 31, 32]
    with pytest.raises(omnigraph.OmnigraphError) as caught:
        world.merge()
    assert "--ours" in (caught.value.hint or "")
    assert "main" in caught.value.message


def test_null_and_the_empty_text_are_different(world: World) -> None:
    world.set("main", "Alice", "city", '""')
    world.set("work", "Alice", "city", '"x"')
    (conflict,) = world.conflicts()
    assert [(p.base, p.ours) for p in conflict.properties] == [(None, "")]


def test_what_was_deleted_and_inserted_again_is_what_it_is(world: World) -> None:
    world.drop("work", "Person", "name", "Dan")
    world.put("work", person("Dan", age=30))
    world.set("main", "Dan", "age", "40")
    assert world.merge().outcome == "merged"
    assert world.people()["Dan"]["age"] == 40
    # Inserted again with another value it is an update.
    world.merge("main", "work")
    world.drop("work", "Person", "name", "Dan")
    world.put("work", person("Dan", age=50))
    world.set("main", "Dan", "city", '"Oslo"')
    world.merge()
    assert world.people()["Dan"] == {"id": "Dan", "name": "Dan", "age": 50, "city": "Oslo"}


def test_a_deleted_entity_stays_deleted_when_a_sibling_is_merged(world: World) -> None:
    world.graph.branches.create("sibling")
    world.drop("work", "Knows", "id", "e")
    world.set("sibling", "Dan", "age", "9")
    world.merge("work")
    world.merge("sibling")
    assert world.state()["Knows"] == {}
    assert world.people()["Dan"]["age"] == 9


def test_a_moved_edge_is_one_change(world: World) -> None:
    world.put("work", edge("Knows", "Bob", "Dan", id="e"))
    world.run("main", 'update Knows set { since: 7 } where from = "Bob"')
    world.merge()
    assert world.state()["Knows"]["e"] == {"id": "e", "src": "Bob", "dst": "Dan", "since": 7}
    world.merge("main", "work")
    world.put("work", edge("Knows", "Alice", "Dan", id="e", since=7))
    world.put("main", edge("Knows", "Bob", "Alice", id="e", since=7))
    (conflict,) = world.conflicts()
    assert [(p.name, p.ours, p.theirs) for p in conflict.properties] == [
        ("endpoints", {"from": "Bob", "to": "Alice"}, {"from": "Alice", "to": "Dan"})
    ]


def test_keyed_edges_converge_and_others_do_not(world: World) -> None:
    for branch in ("main", "work"):
        world.put(branch, edge("Likes", "Alice", "Bob"), edge("Knows", "Alice", "Bob"))
    world.merge()
    assert len(world.state()["Likes"]) == 1
    assert len(world.state()["Knows"]) == 3


def test_criss_cross_merges_do_not_conflict_about_what_both_know(world: World) -> None:
    world.graph.branches.create("third")
    world.set("third", "Alice", "age", "77")
    world.set("third", "Bob", "city", '"Rome"')
    world.set("main", "Carol", "age", "1")
    world.set("work", "Dan", "age", "2")
    world.merge("third", "main")
    world.merge("third", "work")
    world.set("main", "Alice", "age", "78")
    assert world.merge().outcome == "merged"
    assert {n: p["age"] for n, p in world.people().items()} == {
        "Alice": 78,
        "Bob": 30,
        "Carol": 1,
        "Dan": 2,
    }


def cross(world: World) -> None:
    """main and work merge each other's state of a moment: two best common ancestors."""
    repository = world.repository
    ours, theirs = (repository.head(b).snapshot for b in ("main", "work"))
    world.merge("work", "main")
    world.graph.branches.create("aside", f"commit:{ours.head.id}")
    world.merge("aside", "work")
    found = repository.lineage.merge_bases(*(repository.head(b).snapshot for b in ("main", "work")))
    assert {c.id for c in found} == {ours.head.id, theirs.head.id}


def test_several_common_ancestors_are_one(world: World) -> None:
    world.set("main", "Alice", "age", "1")
    world.set("work", "Bob", "age", "2")
    cross(world)
    world.set("work", "Alice", "age", "11")
    world.set("main", "Bob", "age", "22")
    result = world.merge()
    assert result.outcome == "merged"
    assert len(result.base_commits) == 2
    assert {n: p["age"] for n, p in world.people().items()} == {
        "Alice": 11,
        "Bob": 22,
        "Carol": 30,
        "Dan": 30,
    }


def test_an_unknown_base_conflicts_only_when_the_sides_differ(world: World) -> None:
    world.set("main", "Alice", "age", "1")
    world.set("work", "Alice", "age", "2")
    repository = world.repository
    ours = repository.head("main").snapshot.head.id
    world.merge("work", "main", prefer="ours")
    world.graph.branches.create("aside", f"commit:{ours}")
    world.merge("aside", "work", prefer="ours")
    # main says 1, work says 2, and the ancestors said both.
    (conflict,) = world.conflicts()
    (found,) = conflict.properties
    assert (found.ours, found.theirs, found.base_known) == (1, 2, False)
    assert "base" not in found.to_dict()
    world.set("work", "Alice", "age", "1")
    assert world.merge().outcome == "merged"
    assert world.people()["Alice"]["age"] == 1


@pytest.mark.parametrize(("prefer", "age"), [("ours", 31), ("theirs", 32)])
def test_preferring_a_side_decides_what_is_in_conflict_and_no_more(
    world: World, prefer: str, age: int
) -> None:
    world.set("main", "Alice", "age", "31")
    world.set("work", "Alice", "age", "32")
    world.set("work", "Alice", "city", '"Oslo"')
    world.merge(prefer=prefer)
    assert world.people()["Alice"] == {
        "id": "Alice", "name": "Alice", "age": age, "city": "Oslo",
    }  # fmt: skip


@pytest.mark.parametrize(("prefer", "there"), [("ours", False), ("theirs", True)])
def test_preferring_a_side_of_a_deletion(world: World, prefer: str, there: bool) -> None:
    world.drop("main", "Person", "name", "Alice")
    world.set("work", "Alice", "age", "32")
    (conflict,) = world.conflicts()
    assert conflict.message == (
        "Person 'Alice' was deleted on 'main' and changed on 'work' (age 30 to 32)"
    )
    assert conflict.ours is None
    world.merge(prefer=prefer)
    assert ("Alice" in world.people()) is there


def test_resolutions_decide_each_property(world: World) -> None:
    for branch, age, city in (("main", 31, "Oslo"), ("work", 32, "Rome")):
        for name in ("Alice", "Bob", "Carol"):
            world.put(branch, person(name, age=age, city=city))
    file = lines(
        {"node": "Person", "id": "Alice", "take": "theirs"},
        {
            "node": "Person",
            "id": "Bob",
            "properties": {"age": {"take": "base"}, "city": {"value": "Bonn"}},
        },
    )
    (left,) = world.conflicts(resolutions=file)
    assert left.entity_id == "Carol"
    world.merge(resolutions=file, prefer="ours")
    people = {n: (p["age"], p["city"]) for n, p in world.people().items()}
    assert people == {
        "Alice": (32, "Rome"),
        "Bob": (30, "Bonn"),
        "Carol": (31, "Oslo"),
        "Dan": (30, None),
    }


def test_resolutions_as_values(world: World) -> None:
    world.set("main", "Alice", "age", "31")
    world.set("work", "Alice", "age", "32")
    alice = EntityName(kind="node", type_name="Person", id="Alice")
    decided = Resolution(entity=alice, properties={"age": PropertyDecision(value=99)})
    world.merge(resolutions=[decided])
    assert world.people()["Alice"]["age"] == 99
    world.merge("main", "work")
    world.drop("main", "Person", "name", "Alice")
    world.set("work", "Alice", "age", "32")
    world.merge(resolutions=[Resolution(entity=alice, take=Take.BASE)])
    assert world.people()["Alice"]["age"] == 99


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"node": "Person", "id": "Nobody", "take": "ours"}, "not in conflict"),
        ({"node": "Person", "id": "Bob", "take": "ours"}, "not in conflict"),
        ({"node": "Ghost", "id": "Alice", "take": "ours"}, "not in conflict"),
        ({"node": "Person", "id": "Alice", "take": "mine"}, "not a side"),
        ({"node": "Person", "id": "Alice"}, "not a resolution"),
        ({"node": "Person", "edge": "Knows", "id": "Alice", "take": "ours"}, "not a resolution"),
        ({"node": "Person", "id": 7, "take": "ours"}, "not a resolution"),
        ({"node": "Person", "id": "Alice", "take": "ours", "x": 1}, "not a resolution"),
        ({"node": "Person", "id": "Alice", "properties": {}}, "not a resolution"),
        ({"node": "Person", "id": "Alice", "properties": {"age": 3}}, "takes a side"),
        (
            {"node": "Person", "id": "Alice", "properties": {"size": {"take": "ours"}}},
            "no property 'size'",
        ),
        (
            {"node": "Person", "id": "Alice", "properties": {"city": {"take": "ours"}}},
            "'city' is not in conflict",
        ),
        (
            {"node": "Person", "id": "Alice", "properties": {"age": {"value": "old"}}},
            "expected I32",
        ),
    ],
)
def test_resolutions_that_make_no_sense_are_refused(world: World, item: dict, words: str) -> None:
    world.set("main", "Alice", "age", "31")
    world.set("work", "Alice", "age", "32")
    before = world.head()
    for dry_run in (True, False):
        with pytest.raises(omnigraph.InputError, match=words):
            world.merge(resolutions=lines(item), prefer="ours", dry_run=dry_run)
    assert world.head() == before


@pytest.mark.parametrize("content", [b"{", b"[1]", b"[{}]", b'"x"', b'{"a":1,"a":2}', b"\xff"])
def test_files_that_are_no_resolutions(world: World, content: bytes) -> None:
    with pytest.raises(omnigraph.InputError):
        world.merge(resolutions=content)


def test_a_resolution_twice(world: World) -> None:
    item = {"node": "Person", "id": "Alice", "take": "ours"}
    with pytest.raises(omnigraph.InputError, match="decided twice"):
        world.merge(resolutions=json.dumps([item, item], indent=1).encode())


def orphan(world: World, deletes: str, draws: str) -> None:
    world.drop(deletes, "Person", "name", "Alice")
    world.put(draws, edge("Knows", "Alice", "Carol", id="new"))


@pytest.mark.parametrize(("deletes", "draws"), [("main", "work"), ("work", "main")])
@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_an_edge_without_its_node(world: World, deletes: str, draws: str, prefer: str) -> None:
    orphan(world, deletes, draws)
    (conflict,) = world.conflicts()
    assert conflict.kind == "orphan_edge"
    assert (conflict.type_name, conflict.entity_id) == ("Knows", "new")
    assert [e.to_dict()["entity_id"] for e in conflict.entities] == ["new", "Alice"]
    assert "Person 'Alice' is not there" in conflict.message
    assert f"'{deletes}' changed Person 'Alice'" in conflict.message
    assert f"'{draws}' changed Knows 'new'" in conflict.message
    world.merge(prefer=prefer)
    keeps_node = (prefer == "ours") == (draws == "main")
    state = world.state()
    assert ("Alice" in state["Person"], "new" in state["Knows"]) == (keeps_node, keeps_node)
    assert world.head().merged_parent_id is not None


def test_a_broken_rule_is_decided_by_any_entity_involved(world: World) -> None:
    orphan(world, "work", "main")
    for item in (
        {"node": "Person", "id": "Alice", "take": "ours"},
        {"edge": "Knows", "id": "new", "take": "ours"},
    ):
        assert world.merge(resolutions=lines(item), dry_run=True).outcome == "merged"
    world.merge(resolutions=lines({"edge": "Knows", "id": "new", "take": "theirs"}))
    assert "Alice" not in world.people()
    assert "new" not in world.state()["Knows"]


def test_undoing_one_change_may_break_another_rule_that_is_undone_too(world: World) -> None:
    # The source deletes Alice and gives her badge to Dan; the target draws an edge to Alice.
    world.put("main", badge("b1", owner="x"))
    world.merge("main", "work")
    world.run("work", 'update Badge set { owner: "y" } where code = "b1"')
    world.put("work", badge("b2", owner="x"))
    world.put("main", badge("b3", owner="y"))
    (conflict,) = world.conflicts()
    assert {e.id for e in conflict.entities} == {"b1", "b3"}
    # To keep ours b1 keeps its owner, and so b2 cannot have it either.
    world.merge(prefer="ours")
    assert {i: r["owner"] for i, r in world.state()["Badge"].items()} == {"b1": "x", "b3": "y"}


@pytest.mark.parametrize(("prefer", "left"), [("ours", "b1"), ("theirs", "b2")])
def test_a_unique_value_on_both_sides(world: World, prefer: str, left: str) -> None:
    world.put("main", badge("b1", owner="Ann"))
    world.put("work", badge("b2", owner="Ann"), badge("b9", owner="Joe"))
    (conflict,) = world.conflicts()
    assert conflict.kind == "unique_violation"
    assert {e.id for e in conflict.entities} == {"b1", "b2"}
    world.merge(prefer=prefer)
    assert set(world.state()["Badge"]) == {left, "b9"}


@pytest.mark.parametrize(("prefer", "left"), [("ours", "w1"), ("theirs", "w2")])
def test_too_many_edges_at_one_node(world: World, prefer: str, left: str) -> None:
    world.put("main", badge("b1"), badge("b2"))
    world.merge("main", "work")
    world.put("main", edge("Wears", "Alice", "b1", id="w1"))
    world.put("work", edge("Wears", "Alice", "b2", id="w2"), edge("Wears", "Bob", "b2", id="w3"))
    (conflict,) = world.conflicts()
    assert conflict.kind == "cardinality_violation"
    assert {e.id for e in conflict.entities} == {"w1", "w2"}
    assert "source 'Alice' has 2 edges" in conflict.message
    world.merge(prefer=prefer)
    assert set(world.state()["Wears"]) == {left, "w3"}


def test_a_given_value_that_breaks_a_rule(tmp_path: Path) -> None:
    schema = "node P { name: String @key  age: I32?  @range(age, 0..150) }"
    with omnigraph.init(tmp_path, schema) as graph:
        graph.load([{"type": "P", "data": {"name": "a", "age": 1}}])
        graph.branches.create("work")
        for branch, age in (("main", 2), ("work", 3)):
            graph.load(
                [{"type": "P", "data": {"name": "a", "age": age}}], mode="merge", branch=branch
            )
        from omnigraph.branch.merge.three_way import merge

        item = {"node": "P", "id": "a", "properties": {"age": {"value": 999}}}
        with pytest.raises(omnigraph.OmnigraphError) as caught:
            merge(graph._repository, "work", resolutions=lines(item))
        (conflict,) = caught.value.conflicts  # pyright: ignore
        assert conflict.kind == "value_constraint_violation"
        key = {"node": "P", "id": "a", "properties": {"name": {"value": "b"}}}
        with pytest.raises(omnigraph.InputError):
            merge(graph._repository, "work", resolutions=lines(key))


def test_both_kinds_of_conflicts_are_told_together(world: World) -> None:
    orphan(world, "main", "work")
    world.set("main", "Bob", "age", "1")
    world.set("work", "Bob", "age", "2")
    kinds = sorted(str(c.kind) for c in world.conflicts())
    assert kinds == ["divergent_update", "orphan_edge"]
    world.merge(prefer="theirs")
    assert world.people()["Bob"]["age"] == 2
    assert "Alice" in world.people()


def test_a_fast_forward_shows_the_very_same_tables(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    result = world.merge(actor="ann", message="done")
    assert result.outcome == "fast_forward"
    assert {k: c.updated for k, c in result.changes.items()} == {"node:Person": 1}
    ours, theirs = (world.repository.head(b).snapshot for b in ("main", "work"))
    assert ours.pins == theirs.pins
    assert (ours.head.kind, ours.head.actor, ours.head.message) == ("merge", "ann", "done")


def test_a_table_that_the_target_left_alone_is_adopted_by_pointer(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    world.put("main", badge("b1"))
    before = world.repository.head("main").snapshot.pins
    assert world.merge().outcome == "merged"
    ours, theirs = (world.repository.head(b).snapshot for b in ("main", "work"))
    assert ours.pins["node:Person"] == theirs.pins["node:Person"]
    assert ours.pins["node:Badge"] == before["node:Badge"]
    # Both go on from the same version without meeting each other.
    world.set("main", "Bob", "age", "1")
    world.set("work", "Bob", "age", "2")
    assert (world.people()["Bob"]["age"], world.people("work")["Bob"]["age"]) == (1, 2)


def test_an_adopted_table_is_still_checked(world: World) -> None:
    # The target touched edges only, the source nodes only: together they break a rule.
    world.drop("work", "Person", "name", "Alice")
    world.put("main", edge("Knows", "Alice", "Carol", id="new"))
    assert [str(c.kind) for c in world.conflicts()] == ["orphan_edge"]


def test_merging_a_tag_a_commit_and_a_snapshot(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    first = world.head("work").id
    world.graph.tags.create("v1", "work")
    world.set("work", "Alice", "age", "32")
    world.set("main", "Bob", "age", "1")
    assert world.merge("v1", dry_run=True).outcome == "merged"
    world.merge(f"commit:{first}")
    assert world.people()["Alice"]["age"] == 31
    world.merge("work")
    assert world.people()["Alice"]["age"] == 32


def test_a_branch_that_was_deleted_after_its_merge_stays_in_the_lineage(world: World) -> None:
    world.set("work", "Alice", "age", "31")
    world.set("main", "Bob", "age", "1")
    world.merge()
    world.graph.branches.delete("work")
    world.graph.branches.create("work")
    world.set("work", "Alice", "age", "32")
    world.set("main", "Carol", "age", "3")
    assert world.merge().outcome == "merged"
    assert world.people()["Alice"]["age"] == 32


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"source": "main"}, ErrorKind.USAGE),
        ({"source": " main "}, ErrorKind.USAGE),
        ({"source": "nowhere"}, ErrorKind.BRANCH_NOT_FOUND),
        ({"into": "nowhere"}, ErrorKind.BRANCH_NOT_FOUND),
        ({"into": ""}, ErrorKind.USAGE),
        ({"granularity": "cell"}, ErrorKind.USAGE),
        ({"prefer": "mine"}, ErrorKind.USAGE),
        ({"actor": ""}, ErrorKind.USAGE),
        ({"message": "x" * 5000}, ErrorKind.USAGE),
    ],
)
def test_bad_calls_change_nothing(world: World, options: dict, kind: ErrorKind) -> None:
    world.set("work", "Alice", "age", "31")
    before = world.head()
    with pytest.raises(omnigraph.OmnigraphError) as caught:
        world.merge(**options)
    assert caught.value.kind is kind
    assert world.head() == before


def test_values_of_every_type_are_merged(tmp_path: Path) -> None:
    schema = """
    node Thing {
      code: String @key  flag: Bool?  i: I64?  u: U64?  f: F32?  d: Date?  t: DateTime?
      list: [String]?  at: Vector(2)?  raw: Blob?  kind: enum(a, b)?
    }
    """
    values = {
        "flag": True, "i": -(2**60), "u": 2**63, "f": 0.1, "d": "2026-01-02",
        "t": "2026-01-02T03:04:05.006Z", "list": ["x", "é"], "at": [1, 2], "raw": "base64:AAE=",
        "kind": "b",
    }  # fmt: skip
    with omnigraph.init(tmp_path, schema) as graph:
        graph.load([{"type": "Thing", "data": {"code": c}} for c in ("one", "two")])
        graph.branches.create("work")
        names = list(values)
        for branch, some in (("main", names[::2]), ("work", names[1::2])):
            data = {n: values[n] for n in some}
            graph.load(
                [{"type": "Thing", "data": {"code": "one", **data}}], mode="merge", branch=branch
            )
        from omnigraph.branch.merge.three_way import merge

        merge(graph._repository, "work")
        row = next(json.loads(line)["data"] for line in exported(graph) if '"one"' in line)
        assert row == {"id": "one", "code": "one", **values}
        for branch, extra in (("main", b"\x01"), ("work", b"\x02")):
            thing = {"code": "one", **values, "raw": extra, "at": [extra[0], 0]}
            graph.load([{"type": "Thing", "data": thing}], mode="merge", branch=branch)
        with pytest.raises(omnigraph.OmnigraphError) as caught:
            merge(graph._repository, "work")
        (conflict,) = caught.value.conflicts  # pyright: ignore
        assert [(p.name, p.ours, p.theirs) for p in conflict.properties] == [
            ("at", [1.0, 0.0], [2.0, 0.0]),
            ("raw", "base64:AQ==", "base64:Ag=="),
        ]
        json.dumps(conflict.to_dict())


def exported(graph: omnigraph.Graph) -> list[str]:
    from io import BytesIO

    out = BytesIO()
    graph.export(out)
    return out.getvalue().decode().splitlines()


BARE = """
node Tag { id: String @key }
node Note { text: String? }
edge On: Note -> Tag
"""


def tags(*ids: str) -> list[dict]:
    return [{"type": "Tag", "data": {"id": i}} for i in ids]


@pytest.mark.parametrize("granularity", ["property", "row"])
def test_types_without_properties_and_tables_without_rows(tmp_path: Path, granularity: str) -> None:
    from omnigraph.branch.merge.three_way import merge

    with omnigraph.init(tmp_path, BARE) as graph:
        graph.branches.create("work")
        # Both sides make the table; what both insert is the same.
        graph.load(tags("a", "b"), branch="work")
        graph.load(tags("b", "c"))
        merge(graph._repository, "work", granularity=granularity)
        assert {r["id"] for r in graph.snapshot().rows("Tag")} == {"a", "b", "c"}
        merge(graph._repository, "main", into="work", granularity=granularity)
        # One side makes a table that the other does not have.
        note = {"type": "Note", "data": {"id": "n", "text": "x"}}
        graph.load(
            [note, {"edge": "On", "from": "n", "to": "a", "data": {"id": "e"}}], branch="work"
        )
        graph.load(tags("d"))
        merge(graph._repository, "work", granularity=granularity)
        assert [r["id"] for r in graph.snapshot().rows("On")] == ["e"]
        merge(graph._repository, "main", into="work", granularity=granularity)
        # Nothing is left of a table.
        graph.mutate('delete Note where id = "n"', branch="work")
        graph.load(tags("f"))
        merge(graph._repository, "work", granularity=granularity)
        state = graph.snapshot()
        assert not len(state.rows("Note")) and not len(state.rows("On"))
        assert {r["id"] for r in state.rows("Tag")} == {"a", "b", "c", "d", "f"}


def test_rows_that_are_removed_on_both_sides_stay_removed(tmp_path: Path) -> None:
    from omnigraph.branch.merge.three_way import merge

    with omnigraph.init(tmp_path, BARE) as graph:
        graph.load(tags("a", "b", "c"))
        graph.branches.create("work")
        for branch, gone in (("main", "a"), ("work", "a"), ("work", "b")):
            graph.mutate(f'delete Tag where id = "{gone}"', branch=branch)
        result = merge(graph._repository, "work")
        assert result.changes["node:Tag"].deleted == 1
        assert [r["id"] for r in graph.snapshot().rows("Tag")] == ["c"]


def test_a_large_branch_merges(world: World) -> None:
    many = [person(f"x{i}", age=i) for i in range(20_000)]
    world.graph.load([*many, person("Alice", age=99)], mode="merge", branch="work")
    world.set("main", "Alice", "city", '"Oslo"')
    world.put("main", *many[:10_000])
    result = world.merge()
    # Half of it both sides inserted alike: nothing to do for those.
    assert result.changes["node:Person"].inserted == 10_000
    assert result.changes["node:Person"].updated == 1
    assert (world.people()["Alice"]["age"], world.people()["Alice"]["city"]) == (99, "Oslo")
