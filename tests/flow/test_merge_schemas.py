"""Merges between branches whose schemas are not the same: schemas and rows in one commit."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph
from omnigraph.branch.merge.conflicts import MergeConflict, MergeResult
from omnigraph.branch.merge.revert import revert
from omnigraph.branch.merge.three_way import merge

BOTH = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
"""
CITY = "node City { name: String @key }\n"
PEOPLE = """
node Person { name: String @key  age: I32? }
"""


def person(name: str, age: int | None = None, **data: Any) -> dict:
    return {"type": "Person", "data": {"name": name, "age": age, **data}}


def people(body: str, more: str = CITY) -> str:
    return f"node Person {{ name: String @key  {body} }}\n{more}"


@pytest.fixture
def graph(store_root: str) -> omnigraph.Graph:
    graph = omnigraph.init(store_root, BOTH)
    graph.load([person("a", 1), {"type": "City", "data": {"name": "oslo"}}])
    graph.branches.create("work")
    return graph


def apply(graph: omnigraph.Graph, branch: str, text: str) -> None:
    assert graph.schema_apply(text, branch=branch, confirm=True).applied


def ages(graph: omnigraph.Graph, branch: str = "main", name: str = "age") -> dict[str, Any]:
    with omnigraph.open(graph.uri) as fresh:
        return {r["name"]: r[name] for r in fresh.snapshot(branch).rows("Person")}


def merged(graph: omnigraph.Graph, source: str = "work", into: str = "main", **options: Any):
    """Merge, and look that it was one commit and that the other way is a fast forward."""
    before = graph.snapshot(into).commit
    seen = merge(graph._repository, source, into=into, dry_run=True, **options)
    assert seen.outcome == "merged"
    done: MergeResult = merge(graph._repository, source, into=into, **options)
    assert done.outcome == "merged"
    assert done.commit is not None
    assert done.commit.parent_id == before.id
    assert merge(graph._repository, into, into=source).outcome == "fast_forward"
    assert graph.snapshot(source).catalog == graph.snapshot(into).catalog
    return done


def conflicts(graph: omnigraph.Graph, **options: Any) -> list[MergeConflict]:
    seen = merge(graph._repository, "work", dry_run=True, **options)
    assert seen.outcome == "conflicts"
    before = graph.snapshot()
    with pytest.raises(omnigraph.MergeConflictError) as caught:
        merge(graph._repository, "work", **options)
    assert caught.value.conflicts == seen.conflicts
    assert {c.kind for c in seen.conflicts} == {"schema_conflict"}
    assert graph.snapshot().commit == before.commit
    assert all(c.to_dict()["message"] == c.message for c in seen.conflicts)
    return list(seen.conflicts)


def test_a_type_that_the_target_dropped_is_no_matter_if_nobody_changed_it(
    graph: omnigraph.Graph,
) -> None:
    graph.load([person("b", 2)], branch="work")
    apply(graph, "main", PEOPLE)
    graph.load([person("c", 3)])
    merged(graph)
    assert ages(graph) == {"a": 1, "b": 2, "c": 3}
    assert graph.snapshot().schema == PEOPLE


def test_changes_of_a_type_that_the_target_dropped_are_not_lost_silently(
    graph: omnigraph.Graph,
) -> None:
    graph.load([{"type": "City", "data": {"name": "rome"}}], branch="work")
    apply(graph, "main", PEOPLE)
    graph.load([person("c", 3)])
    (conflict,) = conflicts(graph)
    assert conflict.message == "'work' changed 1 of City, which 'main' dropped"
    merged(graph, prefer="ours")
    assert graph.snapshot().schema == PEOPLE


def test_changes_of_a_property_that_theirs_dropped_are_not_lost_silently(
    graph: omnigraph.Graph,
) -> None:
    apply(graph, "work", "node Person { name: String @key }\n" + CITY)
    graph.load([person("b")])
    graph.mutate('update Person set { age: 9 } where name = "a"')
    (conflict,) = conflicts(graph)
    assert conflict.message == "'main' changed 1 of Person.age, which 'work' dropped"


def test_a_schema_of_theirs_comes_with_its_rows(graph: omnigraph.Graph) -> None:
    text = people(
        'years: I64? @rename_from("age")  email: String?', CITY + "node Port { k: I32 @key }\n"
    )
    apply(graph, "work", text)
    graph.load(
        [
            {"type": "Person", "data": {"name": "b", "years": 2**40, "email": "b@x"}},
            {"type": "Port", "data": {"k": 7}},
        ],
        branch="work",
    )
    graph.load([person("c", 3), {"type": "City", "data": {"name": "rome"}}])
    merged(graph)
    assert graph.snapshot().schema == text
    assert ages(graph, name="years") == {"a": 1, "b": 2**40, "c": 3}
    assert ages(graph, name="email") == {"a": None, "b": "b@x", "c": None}
    assert graph.snapshot().count("Port") == 1
    assert graph.snapshot().count("City") == 2


def test_a_backfill_of_theirs_reaches_rows_of_ours(graph: omnigraph.Graph) -> None:
    apply(graph, "work", people('age: I32?  country: String @backfill("no")'))
    graph.load([person("b", 2, country="se")], branch="work")
    graph.load([person("c", 3)])
    merged(graph)
    assert ages(graph, name="country") == {"a": "no", "b": "se", "c": "no"}


def test_a_backfill_is_remembered_when_the_text_no_longer_says_it(graph: omnigraph.Graph) -> None:
    apply(graph, "work", people('age: I32?  country: String @backfill("no")'))
    apply(graph, "work", people("age: I32?  country: String"))
    graph.load([person("c", 3)])
    merged(graph)
    assert ages(graph, name="country") == {"a": "no", "c": "no"}


def test_a_required_property_without_values_for_rows_of_ours_is_a_conflict(
    graph: omnigraph.Graph,
) -> None:
    graph.mutate('delete Person where name = "a"', branch="work")
    apply(graph, "work", people("age: I32?  country: String"))
    graph.load([person("c", 3)])
    (conflict,) = conflicts(graph)
    assert conflict.entity_id == "c"
    assert "missing required value for Person.country" in conflict.message


def test_independent_changes_combine(graph: omnigraph.Graph) -> None:
    graph.schema_apply(people("age: I32?  tag: enum(x, y)?"))
    assert merge(graph._repository, "main", into="work").outcome == "fast_forward"
    apply(
        graph,
        "main",
        people("age: I64?  tag: enum(x, y, z)?  email: String?") + "node A { k: I32 @key }\n",
    )
    graph.load([person("m", 5, email="m@x", tag="z"), {"type": "A", "data": {"k": 1}}])
    apply(
        graph,
        "work",
        people(
            'years: I32? @rename_from("age")  tag: enum(x, y, w)?  phone: I32?\n@range(years, 0..150)'
        )
        + "node B { k: I32 @key }\nedge AtHome: Person -> City\n",
    )
    graph.load(
        [
            {"type": "Person", "data": {"name": "w", "years": 6, "phone": 1, "tag": "w"}},
            {"type": "B", "data": {"k": 2}},
            {"edge": "AtHome", "from": "a", "to": "oslo"},
        ],
        branch="work",
    )
    merged(graph)
    view = graph.snapshot()
    person_type = view.catalog.nodes["Person"]
    assert {p.name: str(p.type) for p in person_type.properties} == {
        "name": "String",
        "years": "I64?",
        "tag": "enum(w, x, y, z)?",
        "email": "String?",
        "phone": "I32?",
    }
    assert [r.property_name for r in person_type.ranges] == ["years"]
    assert set(view.catalog.nodes) == {"Person", "City", "A", "B"}
    rows = {r["name"]: r for r in view.rows("Person")}
    assert rows["m"] | {"id": "m"} == {
        "id": "m", "name": "m", "years": 5, "tag": "z", "email": "m@x", "phone": None,
    }  # fmt: skip
    assert (rows["w"]["years"], rows["w"]["phone"], rows["w"]["email"]) == (6, 1, None)
    assert [view.count(t) for t in ("A", "B", "AtHome")] == [1, 1, 1]
    found = graph.query("match { $p: Person  $p atHome $c } return { $p.years, $c.name }")
    assert found.to_dicts() == [{"p.years": 1, "c.name": "oslo"}]
    with pytest.raises(omnigraph.ConstraintError):
        graph.load([{"type": "Person", "data": {"name": "x", "years": 151}}])


def test_the_same_additions_on_both_sides_are_one(graph: omnigraph.Graph) -> None:
    text = people("age: I32?  email: String?", CITY + "node Port { k: I32 @key  n: I32? }\n")
    for branch, number in (("main", 1), ("work", 2)):
        apply(graph, branch, text)
        graph.load(
            [
                person(branch, number, email=branch),
                {"type": "Port", "data": {"k": number}},
                {"type": "Port", "data": {"k": 9, "n": 9}},
            ],
            branch=branch,
        )
    numbers = graph.snapshot().catalog
    merged(graph)
    assert graph.snapshot().catalog == numbers
    assert graph.snapshot().schema == text
    assert ages(graph, name="email") == {"a": None, "main": "main", "work": "work"}
    assert sorted(r["k"] for r in graph.snapshot().rows("Port")) == [1, 2, 9]


def test_contradictions_are_conflicts(graph: omnigraph.Graph) -> None:
    apply(graph, "main", people('years: I32? @rename_from("age")  x: I32?'))
    apply(graph, "work", people('ages: I64? @rename_from("age")  x: String?'))
    told = {c.message for c in conflicts(graph)}
    assert told == {
        "the name of Person.years is 'years' on 'main' and 'ages' on 'work' (it was 'age')",
        "the type of Person.x is I32 on 'main' and String on 'work'",
    }
    kept = merge(graph._repository, "work", prefer="ours")
    assert kept.outcome == "merged"
    types = {p.name: str(p.type) for p in graph.catalog.nodes["Person"].properties}
    assert types == {"name": "String", "years": "I64?", "x": "I32?"}


def test_a_drop_and_a_change_of_the_same_type(graph: omnigraph.Graph) -> None:
    apply(graph, "main", PEOPLE)
    apply(graph, "work", people("age: I32?", "node City { name: String @key  size: I32? }\n"))
    (conflict,) = conflicts(graph)
    assert conflict.message == "node City was dropped on 'main' and changed on 'work'"
    assert (conflict.entity_kind, conflict.type_name) == ("node", "City")


def test_an_edge_to_a_type_that_the_other_side_dropped(graph: omnigraph.Graph) -> None:
    apply(graph, "main", PEOPLE)
    apply(graph, "work", BOTH + "edge Lives: Person -> City\n")
    assert [c.message for c in conflicts(graph)] == [
        "edge Lives needs node City, which the other side dropped"
    ]


def test_a_new_rule_of_theirs_and_a_row_of_ours(graph: omnigraph.Graph) -> None:
    apply(graph, "work", people("age: I32?\n@range(age, 0..10)"))
    graph.load([person("c", 30)])
    (conflict,) = conflicts(graph)
    assert conflict.entity_id == "c"
    assert "@range violation on Person.age" in conflict.message


def test_a_schema_change_is_reverted_with_its_values(graph: omnigraph.Graph) -> None:
    apply(graph, "main", "node Person { name: String @key }\n" + CITY)
    dropped = graph.snapshot().commit
    graph.load([{"type": "Person", "data": {"name": "c"}}])
    assert revert(graph._repository, dropped).outcome == "merged"
    assert graph.snapshot().schema == BOTH
    assert ages(graph) == {"a": 1, "c": None}


def test_a_schema_change_without_rows_is_reverted(graph: omnigraph.Graph) -> None:
    apply(graph, "main", BOTH + "node Port { k: I32 @key }\n")
    added = graph.snapshot().commit
    apply(graph, "main", BOTH + 'node Port @description("p") { k: I32 @key }\n')
    assert revert(graph._repository, graph.snapshot().commit).outcome == "merged"
    assert graph.catalog.nodes["Port"].description is None
    assert revert(graph._repository, added).outcome == "merged"
    assert set(graph.catalog.nodes) == {"Person", "City"}
    assert ages(graph) == {"a": 1}


def test_a_merge_that_is_overtaken_is_made_again(graph: omnigraph.Graph) -> None:
    from omnigraph.failpoints import FailPoint, armed

    apply(graph, "work", people("age: I64?  email: String?"))
    graph.load([person("b", 2, email="b")], branch="work")
    graph.load([person("c", 3)])
    left = [person("d", 4)]

    def overtake() -> None:
        if left:
            with omnigraph.open(graph.uri) as theirs:
                theirs.load([left.pop()])

    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, overtake):
        assert merge(graph._repository, "work").outcome == "merged"
    assert ages(graph) == {"a": 1, "b": 2, "c": 3, "d": 4}
    assert ages(graph, name="email") == {"a": None, "b": "b", "c": None, "d": None}
