"""A schema changes under data: every kind of step, as one commit or not at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.failpoints import FailPoint, armed
from omnigraph.upkeep.schema_apply import SchemaApplyResult

PEOPLE = """
node Person { name: String @key  age: I32?  nick: String?  photo: Blob?  tags: [String]? }
node City { name: String @key }
edge Lives: Person -> City { since: I32? }
"""
ROWS = [
    {"type": "Person", "data": {"name": "ann", "age": 30, "nick": "an", "photo": b"p1"}},
    {"type": "Person", "data": {"name": "bob", "age": 40, "tags": ["x", "y"]}},
    {"type": "Person", "data": {"name": "cat", "nick": "ca"}},
    {"type": "City", "data": {"name": "oslo"}},
    {"edge": "Lives", "from": "ann", "to": "oslo", "data": {"since": 2001}},
    {"edge": "Lives", "from": "bob", "to": "oslo"},
]
EDGES = "node City { name: String @key }\nedge Lives: Person -> City { since: I32? }\n"


@pytest.fixture
def graph(store_root: str) -> omnigraph.Graph:
    made = omnigraph.init(store_root, PEOPLE)
    made.load(ROWS)
    return made


def person(body: str, more: str = EDGES) -> str:
    return f"node Person {{ {body} }}\n{more}"


ALL = "name: String @key  age: I32?  nick: String?  photo: Blob?  tags: [String]?"


def apply(graph: omnigraph.Graph, text: str, **options: Any) -> SchemaApplyResult:
    """Apply, and look that it was one commit whose second application does nothing."""
    before = graph.commits()[0]
    done = graph.schema_apply(text, confirm=True, **options)
    assert done.applied
    assert done.commit is not None
    assert done.commit.kind == "schema_apply"
    assert done.commit.parent_id == before.id
    again = graph.schema_apply(text)
    assert not again.applied
    assert not again.plan.steps
    assert graph.commits()[0].id == done.commit.id
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.schema == text
    return done


def values(graph: omnigraph.Graph, name: str, type_name: str = "Person") -> dict[str, Any]:
    with omnigraph.open(graph.uri) as fresh:
        found = {r["id"]: r[name] for r in fresh.snapshot().rows(type_name)}
    assert {r["id"]: r[name] for r in graph.snapshot().rows(type_name)} == found
    return found


def row_ids(graph: omnigraph.Graph, key: str) -> dict[str, int]:
    pin = graph._repository.branch("main").head.snapshot.pins[key]
    table = graph._repository.table(pin).dataset.to_table(columns=["id", "_rowid"])
    return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))


# -- properties ----------------------------------------------------------------------------------


def test_a_nullable_property_is_added_and_used(graph: omnigraph.Graph) -> None:
    graph.snapshot().rows("Person")
    before = row_ids(graph, "node:Person")
    apply(graph, person(f"{ALL}  email: String?  raw: Blob?  v: Vector(2)?  l: [I64]?"))
    assert values(graph, "email") == {"ann": None, "bob": None, "cat": None}
    assert values(graph, "raw") == {"ann": None, "bob": None, "cat": None}
    assert row_ids(graph, "node:Person") == before
    row = {"name": "ann", "email": "a@b", "raw": b"r", "v": [1.0, 2.0], "l": [1]}
    graph.load([{"type": "Person", "data": row}], mode="merge")
    graph.load([{"type": "Person", "data": {"name": "dan", "email": "d@b", "age": 1}}])
    assert values(graph, "email") == {"ann": "a@b", "bob": None, "cat": None, "dan": "d@b"}
    assert values(graph, "raw")["ann"] == b"r"
    assert values(graph, "photo")["ann"] is None
    found = graph.query('match { $p: Person  $p.email = "d@b" } return { $p.name, $p.age }')
    assert found.to_dicts() == [{"p.name": "dan", "p.age": 1}]


def test_a_required_property_is_backfilled(graph: omnigraph.Graph) -> None:
    apply(
        graph,
        person(
            f'{ALL}  country: String @backfill("NO")  n: I64 @backfill(-7)  f: F64 @backfill(0.5)'
            '  ok: Bool @backfill(true)  day: Date @backfill("2026-11-15")'
            '  at: DateTime @backfill("2026-11-15T10:00:00Z")  e: enum(a, b) @backfill("b")'
        ),
    )
    assert set(values(graph, "country").values()) == {"NO"}
    assert set(values(graph, "n").values()) == {-7}
    assert set(values(graph, "f").values()) == {0.5}
    assert set(values(graph, "ok").values()) == {True}
    assert {str(v) for v in values(graph, "day").values()} == {"2026-11-15"}
    assert {v.isoformat() for v in values(graph, "at").values()} == {"2026-11-15T10:00:00+00:00"}
    assert set(values(graph, "e").values()) == {"b"}
    with pytest.raises(omnigraph.ConstraintError, match=r"missing required value for Person\.n"):
        graph.load([{"type": "Person", "data": {"name": "dan"}}])


def test_a_property_is_copied(graph: omnigraph.Graph) -> None:
    body = "name: String @key  age: I32?  nick: String?  photo: Blob?  years: I64? @backfill(age)"
    apply(graph, person(f"{body}  labels: [String]? @backfill(tags)"))
    assert values(graph, "years") == {"ann": 30, "bob": 40, "cat": None}
    assert values(graph, "labels") == {"ann": None, "bob": ["x", "y"], "cat": None}


def test_a_copy_that_is_null_is_in_the_way_of_a_required_property(graph: omnigraph.Graph) -> None:
    text = person(f"{ALL}  years: I32 @backfill(age)")
    with pytest.raises(omnigraph.MigrationError) as caught:
        graph.schema_apply(text)
    assert [v.entity_id for v in caught.value.violations] == ["cat"]
    assert caught.value.steps[0]["kind"] == "add_property"
    assert graph.schema == PEOPLE


def test_a_property_is_renamed_and_the_old_name_is_used_for_another(graph: omnigraph.Graph) -> None:
    graph.query('match { $p: Person  $p.nick contains "a" } return { $p.name }')
    before = row_ids(graph, "node:Person")
    body = "name: String @key  age: I32?  photo: Blob?  tags: [String]?"
    apply(graph, person(f'{body}  alias: String? @rename_from("nick")'))
    apply(graph, person(f"{body}  alias: String?  nick: String?"))
    assert values(graph, "alias") == {"ann": "an", "bob": None, "cat": "ca"}
    assert values(graph, "nick") == {"ann": None, "bob": None, "cat": None}
    assert values(graph, "photo") == {"ann": b"p1", "bob": None, "cat": None}
    assert row_ids(graph, "node:Person") == before
    found = graph.query('match { $p: Person  $p.nick contains "a" } return { $p.name }')
    assert not len(found)
    assert not graph.diff("main@2", "main").counts


def test_a_dropped_property_is_hidden_and_a_new_one_of_its_name_is_another(
    graph: omnigraph.Graph,
) -> None:
    without = person("name: String @key  nick: String?  photo: Blob?  tags: [String]?")
    with pytest.raises(omnigraph.UsageError, match=r"OG-DS-104.*Person\.age"):
        graph.schema_apply(without)
    apply(graph, without)
    with pytest.raises(omnigraph.QueryError):
        graph.query("match { $p: Person } return { $p.age }")
    with pytest.raises(omnigraph.InputError):
        graph.load([{"type": "Person", "data": {"name": "dan", "age": 3}}])
    old = graph.catalog.nodes["Person"].by_name
    apply(graph, PEOPLE)
    assert values(graph, "age") == {"ann": None, "bob": None, "cat": None}
    assert graph.catalog.nodes["Person"].by_name["age"].id >= max(p.id for p in old.values())
    past = graph.snapshot(version=2)
    assert {r["id"]: r["age"] for r in past.rows("Person")} == {"ann": 30, "bob": 40, "cat": None}
    found = past.query("match { $p: Person  $p.age > 30 } return { $p.name }").to_dicts()
    assert found == [{"p.name": "bob"}]
    out = io.BytesIO()
    past.export(out, types=["Person"])
    assert b'"age":30' in out.getvalue()


def test_numbers_are_widened(store_root: str) -> None:
    before = "node N { k: I32 @key  a: I32?  b: U32  c: F32  d: I32  l: [I32]? }"
    after = "node N { k: I64 @key  a: I64?  b: U64  c: F64  d: F64  l: [F64]? }"
    with omnigraph.init(store_root, before) as graph:
        rows = [{"k": 1, "a": 2**31 - 1, "b": 2**32 - 1, "c": 0.5, "d": -7, "l": [1, 2]},
                {"k": 2, "b": 0, "c": 1.25, "d": 0}]  # fmt: skip
        graph.load({"N": rows})
        apply(graph, after)
        found = graph.snapshot().rows("N").to_dicts()
        assert found[0] == {"id": "1", "k": 1, "a": 2**31 - 1, "b": 2**32 - 1, "c": 0.5,
                            "d": -7.0, "l": [1.0, 2.0]}  # fmt: skip
        assert found[1] == {"id": "2", "k": 2, "a": None, "b": 0, "c": 1.25, "d": 0.0, "l": None}
        graph.load({"N": [{"k": 2**40, "a": 2**40, "b": 2**40, "c": 0.1, "d": 0.1, "l": [0.1]}]})
        assert graph.snapshot().rows("N").to_dicts()[2]["a"] == 2**40
        assert graph.query("match { $n: N  $n.a > 5 } return { $n.k }").to_arrow().num_rows == 2
        assert not graph.diff("main@2", "main@3").counts


def test_nullability(graph: omnigraph.Graph) -> None:
    required = person(ALL.replace("age: I32?", "age: I32"))
    with pytest.raises(omnigraph.MigrationError) as caught:
        graph.schema_apply(required)
    assert [v.entity_id for v in caught.value.violations] == ["cat"]
    assert "OG-MF-104" in str(caught.value)
    filled = required.replace("age: I32", "age: I32 @backfill(0)")
    apply(graph, filled)
    assert values(graph, "age") == {"ann": 30, "bob": 40, "cat": 0}
    with pytest.raises(omnigraph.ConstraintError):
        graph.load([{"type": "Person", "data": {"name": "dan"}}])
    apply(graph, PEOPLE)
    graph.load([{"type": "Person", "data": {"name": "dan"}}])
    assert values(graph, "age")["dan"] is None


def test_enums(graph: omnigraph.Graph) -> None:
    apply(graph, person(ALL.replace("nick: String?", "nick: enum(an, ca)?")))
    with pytest.raises(omnigraph.ConstraintError):
        graph.load([{"type": "Person", "data": {"name": "dan", "nick": "da"}}])
    apply(graph, person(ALL.replace("nick: String?", "nick: enum(an, ca, da)?")))
    graph.load([{"type": "Person", "data": {"name": "dan", "nick": "da"}}])
    narrow = person(ALL.replace("nick: String?", "nick: enum(an, ca)?"))
    with pytest.raises(omnigraph.MigrationError, match="invalid enum value 'da'") as caught:
        graph.schema_apply(narrow)
    assert [v.entity_id for v in caught.value.violations] == ["dan"]
    apply(graph, PEOPLE)
    graph.load([{"type": "Person", "data": {"name": "eve", "nick": "anything"}}])


def test_what_is_refused_names_the_step_and_the_rows(graph: omnigraph.Graph) -> None:
    head = graph.commits()[0]
    text = person(f"{ALL.replace('age: I32?', 'age: String?')}  must: I32")
    plan = graph.schema_plan(text)
    assert not plan.supported
    assert [s.code for s in plan.unsupported] == ["OG-MF-106", "OG-MF-103"]
    with pytest.raises(omnigraph.MigrationError, match="3 rows have") as caught:
        graph.schema_apply(text)
    assert [s["change"] for s in caught.value.steps] == ["change_property_type", "add_property"]
    assert graph.commits()[0] == head


def test_an_empty_type_may_change_in_any_way(graph: omnigraph.Graph) -> None:
    graph.mutate('delete Lives where src = "ann"')
    graph.mutate('delete Lives where src = "bob"')
    graph.mutate('delete Person where name != "nobody"')
    assert graph.snapshot().count("Person") == 0
    text = person("code: I64 @key  age: String  nick: [I32]  v: Vector(3)")
    assert not graph.schema_plan(text).destructive
    done = graph.schema_apply(text)
    assert done.applied
    row = {"code": 1, "age": "old", "nick": [1], "v": [1.0, 2.0, 3.0]}
    graph.load([{"type": "Person", "data": row}])
    assert values(graph, "age") == {"1": "old"}


def test_indexes_of_columns_that_stay_are_kept_and_others_are_built_again(store_root: str) -> None:
    before = "node P { k: String @key  a: I32? @index  b: String? @index  c: I32? @index }"
    after = (
        'node P { k: String @key  aa: I32? @index @rename_from("a")  c: I64? @index'
        '  bb: String? @index @rename_from("b")  d: I32? @index @backfill(3) }'
    )
    with omnigraph.init(store_root, before) as graph:
        graph.load({"P": [{"k": f"{i}", "a": i, "b": f"w{i}", "c": i} for i in range(300)]})
        graph.optimize()

        def indexed() -> set[str]:
            pin = graph._repository.branch("main").head.snapshot.pins["node:P"]
            found = graph._repository.table(pin).dataset.describe_indices()
            return {name for index in found for name in index.field_names}

        assert indexed() == {"id", "k", "a", "b", "c"}
        apply(graph, after)
        assert indexed() == {"id", "k", "aa", "bb"}
        asked = "match { $p: P  $p.aa = 7  $p.c = 7 } return { $p.k, $p.d }"
        assert graph.query(asked).to_dicts() == [{"p.k": "7", "p.d": 3}]
        graph.optimize()
        assert indexed() == {"id", "k", "aa", "bb", "c", "d"}
        assert graph.query(asked).to_dicts() == [{"p.k": "7", "p.d": 3}]


# -- rules ---------------------------------------------------------------------------------------


def test_rules_are_checked_before_they_hold(graph: omnigraph.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": "dan", "age": 30, "nick": "DAN"}}])
    for rule, ids in {
        "@unique(age)": ["dan"],
        "@range(age, 0..35)": ["bob"],
        '@check(nick, "^[a-z]+$")': ["dan"],
    }.items():
        with pytest.raises(omnigraph.MigrationError) as caught:
            graph.schema_apply(person(f"{ALL}\n{rule}"))
        assert [v.entity_id for v in caught.value.violations] == ids, rule
        assert graph.schema == PEOPLE
    graph.mutate('delete Person where name = "dan"')
    apply(graph, person(f'{ALL}\n@unique(age)\n@range(age, 0..40)\n@check(nick, "^[a-z]+$")'))
    for row in ({"age": 30}, {"age": 41}, {"nick": "X"}):
        with pytest.raises(omnigraph.ConstraintError):
            graph.load([{"type": "Person", "data": {"name": "dan", **row}}])
    apply(graph, PEOPLE)
    graph.load([{"type": "Person", "data": {"name": "dan", "age": 30, "nick": "X"}}])


def test_a_backfill_must_keep_the_rules(graph: omnigraph.Graph) -> None:
    with pytest.raises(omnigraph.MigrationError, match=r"@range violation on Person\.n") as caught:
        graph.schema_apply(person(f"{ALL}  n: I32 @backfill(-1)\n@range(n, 0..5)"))
    assert caught.value.total == 3
    with pytest.raises(omnigraph.MigrationError, match=r"@unique violation on Person\.n"):
        graph.schema_apply(person(f"{ALL}  n: I32 @backfill(1) @unique"))


def test_cardinality(graph: omnigraph.Graph) -> None:
    graph.load([{"type": "City", "data": {"name": "rome"}}])
    graph.load([{"edge": "Lives", "from": "ann", "to": "rome"}])
    text = PEOPLE.replace("-> City", "-> City @card(0..1)")
    with pytest.raises(omnigraph.MigrationError, match="source 'ann' has 2 edges"):
        graph.schema_apply(text)
    apply(graph, PEOPLE.replace("-> City", "-> City @card(0..2)"))
    with pytest.raises(omnigraph.ConstraintError):
        graph.load([{"edge": "Lives", "from": "ann", "to": "rome"}])
    apply(graph, PEOPLE)


def test_endpoints_change_where_the_nodes_exist(graph: omnigraph.Graph) -> None:
    text = PEOPLE.replace("-> City", "-> Town") + "node Town { name: String @key }\n"
    with pytest.raises(omnigraph.MigrationError, match="dst 'oslo' not found in Town") as caught:
        graph.schema_apply(text)
    assert caught.value.total == 2
    both = PEOPLE + "node Town { name: String @key }\n"
    apply(graph, both)
    graph.load([{"type": "Town", "data": {"name": "oslo"}}])
    moved = text.replace("node Town", 'node Place @rename_from("Town")').replace(
        "Town {", "Place {"
    )
    moved = moved.replace("-> Town", "-> Place")
    apply(graph, moved)
    found = graph.query("match { $p: Person  $p lives $t } return { $p.name, $t.name }")
    assert len(found) == 2
    assert graph.catalog.edges["Lives"].target == "Place"


def test_interfaces(graph: omnigraph.Graph) -> None:
    text = "interface Aged { age: I32?  height: I32? }\n" + PEOPLE.replace(
        "node Person {", "node Person implements Aged {"
    )
    number = graph.catalog.nodes["Person"].by_name["age"].id
    apply(graph, text)
    assert graph.catalog.nodes["Person"].by_name["age"].id == number
    assert values(graph, "height") == {"ann": None, "bob": None, "cat": None}
    apply(graph, PEOPLE)
    assert values(graph, "age") == {"ann": 30, "bob": 40, "cat": None}


# -- types ---------------------------------------------------------------------------------------


def test_types_are_renamed_with_their_rows_and_files(graph: omnigraph.Graph) -> None:
    path = graph.catalog.nodes["Person"].table_path
    text = PEOPLE.replace("node Person", 'node Human @rename_from("Person")').replace(
        "Lives: Person -> City", 'Dwells: Human -> City @rename_from("Lives")'
    )
    done = apply(graph, text)
    assert [s.kind for s in done.plan.steps] == ["rename_type", "rename_type"]
    assert graph.catalog.nodes["Human"].table_path == path
    found = graph.query("match { $h: Human  $h dwells $c } return { $h.name, $c.name }")
    assert len(found) == 2
    graph.load([{"edge": "Dwells", "from": "cat", "to": "oslo"}])
    with pytest.raises(omnigraph.NotFoundError):
        graph.snapshot().rows("Person")
    assert len(graph.snapshot(version=2).rows("Person")) == 3
    assert graph.diff("main@2", "main@3").counts == {}
    assert graph.diff("main@2", "main").counts["edge:Dwells"].inserted == 1


def test_types_are_dropped_and_come_back_empty(graph: omnigraph.Graph) -> None:
    graph.tags.create("before")
    numbers = graph.catalog.next_id
    apply(graph, f"node Person {{ {ALL} }}\n")
    with pytest.raises(omnigraph.NotFoundError):
        graph.snapshot().rows("City")
    apply(graph, PEOPLE)
    assert graph.snapshot().count("City") == 0
    assert graph.catalog.nodes["City"].id >= numbers
    graph.load([{"type": "City", "data": {"name": "rome"}}])
    past = graph.at("before")
    assert [r["name"] for r in past.rows("City")] == ["oslo"]
    assert (
        past.query("match { $p: Person  $p lives $c } return { $p.name }").to_arrow().num_rows == 2
    )
    counts = graph.diff("before", "main").counts
    assert (counts["node:City"].inserted, counts["node:City"].deleted) == (1, 1)


def test_many_types_change_in_one_commit(store_root: str) -> None:
    before = "".join(f"node T{i} {{ k: I32 @key  a: I32? }}\n" for i in range(20))
    after = "".join(f'node T{i} {{ k: I32 @key  b: I64? @rename_from("a") }}\n' for i in range(20))
    with omnigraph.init(store_root, before) as graph:
        graph.load({f"T{i}": [{"k": i, "a": i}] for i in range(20)})
        apply(graph, after)
        assert [graph.snapshot().rows(f"T{i}").to_dicts()[0]["b"] for i in range(20)] == [
            *range(20)
        ]


def test_texts_and_comments(graph: omnigraph.Graph) -> None:
    apply(graph, PEOPLE.replace("node City", 'node City @description("a town")'))
    done = apply(graph, "// people\n" + PEOPLE)
    assert [s.kind for s in done.plan.steps] == ["update_type_metadata"]
    done = apply(graph, PEOPLE)
    assert [s.kind for s in done.plan.steps] == ["update_source"]


# -- apply itself --------------------------------------------------------------------------------


def test_a_dry_run_checks_rows_and_changes_nothing(graph: omnigraph.Graph) -> None:
    head = graph.commits()[0]
    done = graph.schema_apply(person("name: String @key"), dry_run=True)
    assert (done.applied, done.dry_run, len(done.plan.destructive)) == (False, True, 4)
    with pytest.raises(omnigraph.MigrationError):
        graph.schema_apply(person(f"{ALL}\n@range(age, 0..35)"), dry_run=True)
    assert graph.commits()[0] == head
    assert graph.schema == PEOPLE


def test_each_branch_keeps_its_schema(graph: omnigraph.Graph) -> None:
    graph.branches.create("dev")
    apply(graph, person(f"{ALL}  email: String?"))
    assert graph.snapshot("dev").schema == PEOPLE
    graph.load([{"type": "Person", "data": {"name": "dev"}}], branch="dev")
    done = graph.schema_apply(person(f"{ALL}  phone: I32?"), branch="dev", actor="eve")
    assert done.commit is not None
    assert (done.commit.branch, done.commit.actor) == ("dev", "eve")
    assert "email" in graph.catalog.nodes["Person"].by_name
    numbers = [
        graph.snapshot(b).catalog.nodes["Person"].by_name[n].id
        for b, n in (("main", "email"), ("dev", "phone"))
    ]
    assert numbers[0] != numbers[1]
    graph.load([{"type": "Person", "data": {"name": "m", "email": "x"}}])
    graph.load([{"type": "Person", "data": {"name": "d", "phone": 1}}], branch="dev")
    assert values(graph, "email")["m"] == "x"
    assert {r["id"]: r["phone"] for r in graph.snapshot("dev").rows("Person")}["d"] == 1
    assert {r["id"]: r["age"] for r in graph.snapshot("dev").rows("Person")}["ann"] == 30


def test_numbers_are_not_given_twice_after_a_reset(graph: omnigraph.Graph) -> None:
    start = graph.commits()[0].id
    apply(graph, PEOPLE + "node A { k: String @key }\n")
    first = graph.catalog.nodes["A"].id
    graph.reset(start)
    apply(graph, PEOPLE + "node B { k: String @key }\n")
    assert graph.catalog.nodes["B"].id > first


def test_findings_of_the_text_change_nothing(graph: omnigraph.Graph, tmp_path: Path) -> None:
    file = tmp_path / "bad.pg"
    file.write_text("node Person { name: Strng @key }")
    with pytest.raises(omnigraph.SchemaError, match=r"bad.pg:1:21"):
        graph.schema_apply(file)
    with pytest.raises(omnigraph.SchemaError, match="M101"):
        graph.schema_plan(person(f'{ALL}  x: I32? @rename_from("zz")'))
    with pytest.raises(omnigraph.NotFoundError):
        graph.schema_apply(PEOPLE, branch="nope")


def test_nothing_moves_a_head_of_a_table(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", PEOPLE) as graph:
        graph.load(ROWS)
        apply(graph, person(f"{ALL.replace('age: I32?', 'age: I64?')}  n: I32 @backfill(1)"))
        tables = list((tmp_path / "g").glob("nodes/*/_versions/*.manifest"))
        assert tables == []


def test_if_commit(graph: omnigraph.Graph) -> None:
    with pytest.raises(omnigraph.ConflictError) as caught:
        graph.schema_apply(person(f"{ALL}  n: I32?"), if_commit=graph.commits()[1].id)
    assert caught.value.kind == "precondition_failed"


# -- others write meanwhile ----------------------------------------------------------------------


def overtaken(graph: omnigraph.Graph, text: str, other, **options: Any) -> SchemaApplyResult:
    """Apply while somebody else publishes just before the commit."""
    with (
        omnigraph.open(graph.uri) as theirs,
        armed(FailPoint.PUBLISH_BEFORE_COMMIT, once(lambda: other(theirs))),
    ):
        return graph.schema_apply(text, **options)


def once(step):
    left = [step]

    def run() -> None:
        if left:
            left.pop()()

    return run


def test_rows_that_arrive_meanwhile_are_reshaped_too(graph: omnigraph.Graph) -> None:
    row = {"type": "Person", "data": {"name": "dan", "age": 5}}
    text = person(f"{ALL.replace('age: I32?', 'age: I64?')}  n: I32 @backfill(1)")
    done = overtaken(graph, text, lambda theirs: theirs.load([row]))
    assert done.commit is not None
    assert done.commit.parent_id == graph.commits()[1].id
    assert values(graph, "age") == {"ann": 30, "bob": 40, "cat": None, "dan": 5}
    assert values(graph, "n") == {"ann": 1, "bob": 1, "cat": 1, "dan": 1}


def test_the_first_rows_of_a_type_arrive_meanwhile(store_root: str) -> None:
    with omnigraph.init(store_root, PEOPLE) as graph:
        row = {"type": "Person", "data": {"name": "dan", "age": 5}}
        text = PEOPLE.replace("age: I32?", 'years: I64? @rename_from("age")')
        overtaken(graph, text, lambda theirs: theirs.load([row]))
        assert values(graph, "years") == {"dan": 5}


def test_a_row_in_the_way_that_arrives_meanwhile_is_seen(graph: omnigraph.Graph) -> None:
    row = {"type": "Person", "data": {"name": "dan", "age": 50}}
    with pytest.raises(omnigraph.MigrationError, match="value 50 not in"):
        overtaken(graph, person(f"{ALL}\n@range(age, 0..45)"), lambda theirs: theirs.load([row]))
    assert graph.schema == PEOPLE


def test_a_schema_change_of_somebody_else_is_not_undone(graph: omnigraph.Graph) -> None:
    theirs_text = person(f"{ALL}  email: String? @backfill(nick)")
    with pytest.raises(omnigraph.ConflictError, match=r"Person\.email"):
        overtaken(
            graph,
            person(f"{ALL}  phone: I32?"),
            lambda theirs: theirs.schema_apply(theirs_text),
            confirm=True,
        )
    assert graph.snapshot().schema == theirs_text


def test_a_backfill_may_not_repeat_what_is_unique(tmp_path: Path) -> None:
    text = "node P { k: String @key  n: I32? @unique }\n"
    with omnigraph.init(tmp_path / "g", text) as graph:
        graph.load([{"type": "P", "data": {"k": k}} for k in "ab"])
        with pytest.raises(omnigraph.MigrationError, match="@unique violation"):
            graph.schema_apply(text.replace("I32?", "I32 @backfill(2)"))
        graph.mutate('delete P where k = "b"')
        assert graph.schema_apply(text.replace("I32?", "I32 @backfill(2)")).applied


@pytest.mark.parametrize(
    "added",
    [
        person(f"{ALL}  email: String?"),
        person(ALL) + "node Empty { k: String @key }\n",
        person(f"{ALL}\n@unique(nick)"),
        person(ALL.replace("age: I32?", "age: I64?")),
        person(ALL.replace("age: I32?", 'years: I32? @rename_from("age")')),
        person(ALL).replace("node Person", 'node Person @description("people")'),
    ],
)
def test_nothing_that_somebody_else_has_just_changed_is_undone(tmp_path: Path, added: str) -> None:
    """Also what no row has lost anything by, and without a word of confirmation."""
    with omnigraph.init(tmp_path / "g", person(ALL)) as graph:
        with pytest.raises(omnigraph.ConflictError, match="changed meanwhile") as caught:
            overtaken(
                graph,
                person(f"{ALL}  phone: I32?"),
                lambda theirs: theirs.schema_apply(added),
            )
        assert caught.value.kind == "read_set_conflict"
        assert graph.snapshot().schema == added


def test_the_same_change_of_somebody_else_is_enough(graph: omnigraph.Graph) -> None:
    text = person(f"{ALL}  email: String?")
    done = overtaken(graph, text, lambda theirs: theirs.schema_apply(text))
    assert not done.applied
    assert [c.kind for c in graph.commits()][:2] == ["schema_apply", "load"]


def test_writers_are_checked_again_under_the_schema_that_overtook_them(
    graph: omnigraph.Graph,
) -> None:
    def load_while(text: str, row: dict[str, Any]) -> None:
        with (
            omnigraph.open(graph.uri) as theirs,
            armed(
                FailPoint.PUBLISH_BEFORE_COMMIT,
                once(lambda: theirs.schema_apply(text, confirm=True)),
            ),
        ):
            graph.load([{"type": "Person", "data": row}])

    with pytest.raises(omnigraph.ConstraintError, match=r"not in 0\.\.45"):
        load_while(person(f"{ALL}\n@range(age, 0..45)"), {"name": "dan", "age": 50})
    wider = person(ALL.replace("age: I32?", "age: I64?"))
    load_while(wider, {"name": "eve", "age": 5})
    assert values(graph, "age")["eve"] == 5
    renamed = person(ALL.replace("age: I32?", 'years: I64? @rename_from("age")'))
    with pytest.raises(omnigraph.InputError, match="age"):
        load_while(renamed, {"name": "fay", "age": 5})
    assert set(values(graph, "years")) == {"ann", "bob", "cat", "eve"}


@pytest.mark.parametrize(
    "later",
    [
        'node P { name: String @key  b: String?  c: String? @rename_from("a") }',
        "node P { name: String @key  b: String?  c: String? }",
        "node P { b: String?  name: String @key  c: String? }",
    ],
)
def test_rows_that_replace_all_are_in_their_own_columns(tmp_path: Path, later: str) -> None:
    """Columns have numbers, and those of a table that was changed are in another order."""
    with omnigraph.init(
        tmp_path / "g", "node P { name: String @key  a: String?  b: String? }"
    ) as graph:
        graph.load([{"type": "P", "data": {"name": "x", "a": "A", "b": "B"}}])
        graph.schema_apply(later, confirm=True)
        for name, mode in (("y", "overwrite"), ("z", "merge"), ("y", "merge"), ("z", "overwrite")):
            row = {"name": name, "b": "B", "c": "C"}
            graph.load([{"type": "P", "data": row}], mode=mode)
            with omnigraph.open(graph.uri) as fresh:
                found = [r for r in fresh.snapshot().rows("P").to_dicts() if r["name"] == name]
            assert found == [row | {"id": name}]
