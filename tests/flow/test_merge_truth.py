"""Merges of branches that changed their schema: no dangling edge, no lost value, no lie in counts.

Each case was once wrong; the matrix in tests/model has their neighbours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.branch.diff import Diff
from omnigraph.branch.merge.conflicts import MergeResult
from omnigraph.branch.merge.revert import revert
from omnigraph.branch.merge.three_way import merge
from omnigraph.manifest.snapshot import TableChange
from omnigraph.schema.catalog import Catalog

AB = """
node A { k: String @key  x: I32? }
edge E: A -> A { w: I32? }
"""


def a(key: str, **data: Any) -> dict[str, Any]:
    return {"type": "A", "data": {"k": key, **data}}


def e(source: str, target: str, name: str, kind: str = "E") -> dict[str, Any]:
    return {"edge": kind, "from": source, "to": target, "data": {"id": name}}


class Two:
    """A graph with the branches ``main`` and ``s``."""

    def __init__(self, root: str, schema: str = AB, *rows: dict[str, Any]) -> None:
        self.graph = omnigraph.init(root, schema)
        if rows:
            self.graph.load(list(rows))
        self.graph.branches.create("s")

    def apply(self, branch: str, text: str) -> None:
        assert self.graph.schema_apply(text, branch=branch, confirm=True).applied

    def load(self, branch: str, *rows: dict[str, Any], mode: str = "merge") -> None:
        assert self.graph.load(list(rows), mode=mode, branch=branch).commit is not None

    def delete(self, branch: str, kind: str, key: str) -> None:
        assert self.graph.mutate(f'delete {kind} where k = "{key}"', branch=branch).commit

    def set(self, branch: str, key: str, what: str) -> None:
        text = f'update A set {{ {what} }} where k = "{key}"'
        assert self.graph.mutate(text, branch=branch).commit

    def merge(self, source: str = "s", into: str = "main", **options: Any) -> MergeResult:
        """Merge; a dry run must say the same, and counts must be those of the difference."""
        repository = self.graph._repository
        before = repository.head(into).snapshot
        seen = merge(repository, source, into=into, dry_run=True, **options)
        done = merge(repository, source, into=into, **options)
        assert (seen.outcome, seen.conflicts) == (done.outcome, ())
        assert dict(seen.changes) == dict(done.changes)
        if done.commit is not None:
            self.counted(before, repository.head(into).snapshot)
        return done

    def counted(self, before: Any, after: Any) -> None:
        diff = Diff(self.graph._repository, before, after)
        assert dict(after.head.changes) == dict(diff.counts)
        assert self.graph.upkeep.check(full=True).findings == ()

    def conflicts(self, source: str = "s", into: str = "main", **options: Any) -> set[Any]:
        repository = self.graph._repository
        head = repository.head(into).snapshot.head
        seen = merge(repository, source, into=into, dry_run=True, **options)
        with pytest.raises(omnigraph.MergeConflictError) as caught:
            merge(repository, source, into=into, **options)
        assert caught.value.conflicts == seen.conflicts
        assert repository.head(into).snapshot.head == head
        return {(str(c.kind), c.type_name, c.entity_id) for c in seen.conflicts}

    def rows(self, kind: str = "A", branch: str = "main") -> dict[str, dict[str, Any]]:
        with omnigraph.open(self.graph.uri) as fresh:
            found = {r["id"]: r for r in fresh.snapshot(branch).rows(kind)}
        return {
            i: {n: v for n, v in row.items() if n not in ("id", "k")} for i, row in found.items()
        }

    @property
    def catalog(self) -> Catalog:
        return self.graph.snapshot().catalog


@pytest.fixture
def store_root(tmp_path: Path) -> str:
    return str(tmp_path / "graph")


@pytest.fixture
def two(store_root: str) -> Two:
    return Two(store_root, AB, a("a", x=1), a("b", x=2))


# -- 1: dangling edges -------------------------------------------------------------------------------


@pytest.mark.parametrize("deleter", ["s", "main"])
@pytest.mark.parametrize("changer", ["s", "main", "both", "drawer's"])
def test_an_edge_to_a_deleted_node_is_an_orphan_whoever_changed_the_schema(
    two: Two, deleter: str, changer: str
) -> None:
    drawer = {"s": "main", "main": "s"}[deleter]
    for branch in {"both": ["s", "main"], "drawer's": [drawer]}.get(changer, [changer]):
        two.apply(branch, AB.replace("x: I32?", f"x: I32?  {branch}: String?"))
    two.delete(deleter, "A", "b")
    two.load(drawer, e("a", "b", "e1"))
    assert two.conflicts() == {("orphan_edge", "E", "e1")}
    assert two.conflicts("main", "s") == {("orphan_edge", "E", "e1")}
    two.merge(prefer="ours")
    kept = two.rows("E")
    assert (set(two.rows()), set(kept)) == (
        ({"a"}, set()) if deleter == "main" else ({"a", "b"}, {"e1"})
    )


@pytest.mark.parametrize("deleter", ["s", "main"])
def test_an_edge_of_a_new_type_to_a_deleted_node_is_an_orphan(two: Two, deleter: str) -> None:
    drawer = {"s": "main", "main": "s"}[deleter]
    two.apply(drawer, AB + "edge F: A -> A\n")
    two.load(drawer, e("a", "b", "f1", "F"))
    two.delete(deleter, "A", "b")
    assert two.conflicts() == {("orphan_edge", "F", "f1")}
    two.merge(prefer="theirs")
    assert set(two.rows("F")) == ({"f1"} if drawer == "s" else set())


# -- 2: values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("retyper", ["s", "main"])
def test_values_of_another_type_are_a_conflict_not_null(store_root: str, retyper: str) -> None:
    other = {"s": "main", "main": "s"}[retyper]
    two = Two(store_root, "node A { k: String @key  v: String? }\n")
    two.apply(retyper, "node A { k: String @key  v: I64? }\n")
    two.load(other, a("t", v="seven"))
    two.load(retyper, a("n", v=7))
    assert two.conflicts() == {("schema_conflict", "A", "t")}
    two.merge(prefer="ours")
    if retyper == "main":
        assert two.rows() == {"n": {"v": 7}}
    else:
        assert two.rows() == {"t": {"v": "seven"}}
        assert str(two.catalog.nodes["A"].by_name["v"].type) == "String?"


@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_a_required_value_without_a_place_is_told_once(store_root: str, prefer: str) -> None:
    two = Two(store_root, "node A { k: String @key  v: String }\n")
    two.apply("main", "node A { k: String @key  v: I64 }\n")
    two.load("s", a("t", v="seven"))
    two.load("main", a("n", v=7))
    assert two.conflicts() == {("schema_conflict", "A", "t")}
    two.merge(prefer=prefer)
    assert two.rows() == ({"n": {"v": 7}} if prefer == "ours" else {"t": {"v": "seven"}})


def test_both_gave_a_property_another_type_and_a_side_decides(store_root: str) -> None:
    two = Two(store_root, "node A { k: String @key  v: String? }\n")
    two.apply("main", "node A { k: String @key  v: I64? }\n")
    two.apply("s", "node A { k: String @key  v: F64? }\n")
    two.load("main", a("m", v=7))
    two.load("s", a("s", v=0.5), a("whole", v=3.0))
    assert two.conflicts() == {("schema_conflict", "A", None)}
    two.merge(prefer="ours")
    # What an integer can be is one; the rest of theirs is not taken.
    assert two.rows() == {"m": {"v": 7}, "whole": {"v": 3}}


def test_a_widening_is_reverted_without_a_loss(store_root: str) -> None:
    two = Two(store_root, AB, a("a", x=1))
    two.apply("main", AB.replace("x: I32?", "x: I64?"))
    widened = two.graph.snapshot().commit
    two.load("main", a("b", x=5))
    assert revert(two.graph._repository, widened).outcome == "merged"
    assert two.rows() == {"a": {"x": 1}, "b": {"x": 5}}
    assert str(two.catalog.nodes["A"].by_name["x"].type) == "I32?"


def test_a_widening_with_large_values_is_not_reverted_silently(store_root: str) -> None:
    two = Two(store_root, AB, a("a", x=1))
    two.apply("main", AB.replace("x: I32?", "x: I64?"))
    widened = two.graph.snapshot().commit
    two.load("main", a("b", x=2**40))
    with pytest.raises(omnigraph.MergeConflictError) as caught:
        revert(two.graph._repository, widened)
    assert [(c.kind, c.entity_id) for c in caught.value.conflicts] == [("schema_conflict", "b")]
    assert two.rows() == {"a": {"x": 1}, "b": {"x": 2**40}}


# -- 3: keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("changer", ["s", "main"])
def test_a_key_that_changed_against_rows_of_the_other_side(store_root: str, changer: str) -> None:
    other = {"s": "main", "main": "s"}[changer]
    two = Two(store_root, "node A { k: String @key  c: String }\n")
    two.apply(changer, "node A { k: String  c: String @key }\n")
    two.load(changer, a("one", c="same"))
    two.load(other, a("two", c="same"))
    assert two.conflicts() == {("schema_conflict", "A", "two")}
    two.merge(prefer="ours")
    rows = {r["id"]: (r["k"], r["c"]) for r in two.graph.snapshot().rows("A")}
    assert rows == ({"same": ("one", "same")} if changer == "main" else {"two": ("two", "same")})


# -- 5: what is no conflict, and what can be decided ---------------------------------------------------

FILLED = AB.replace("x: I32?", 'x: I32?  c: String @backfill("no")')


@pytest.mark.parametrize("filler", ["s", "main"])
def test_a_backfill_is_no_change(two: Two, filler: str) -> None:
    other = {"s": "main", "main": "s"}[filler]
    two.apply(filler, FILLED)
    two.delete(other, "A", "b")
    two.set(other, "a", "x: 9")
    two.load(other, a("n", x=3))
    two.merge()
    assert two.rows() == {"a": {"x": 9, "c": "no"}, "n": {"x": 3, "c": "no"}}


@pytest.mark.parametrize("filler", ["s", "main"])
def test_a_property_made_required_with_a_backfill_is_no_change(two: Two, filler: str) -> None:
    other = {"s": "main", "main": "s"}[filler]
    two.load("main", a("z"))
    two.merge("main", "s")
    two.apply(filler, AB.replace("x: I32?", "x: I32 @backfill(0)"))
    two.delete(other, "A", "z")
    two.load(other, a("n"))
    two.merge()
    assert two.rows() == {"a": {"x": 1}, "b": {"x": 2}, "n": {"x": 0}}


@pytest.mark.parametrize("dropper", ["s", "main"])
@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_a_dropped_property_against_values(two: Two, dropper: str, prefer: str) -> None:
    other = {"s": "main", "main": "s"}[dropper]
    two.apply(dropper, AB.replace("x: I32?", ""))
    two.set(other, "a", "x: 9")
    two.load(other, a("n", x=3))
    assert two.conflicts() == {("schema_conflict", "A", None)}
    two.merge(prefer=prefer)
    stays = (prefer == "ours") == (other == "main")
    rows = {"a": {"x": 9}, "b": {"x": 2}, "n": {"x": 3}}
    assert two.rows() == (rows if stays else {key: {} for key in rows})


@pytest.mark.parametrize("dropper", ["s", "main"])
@pytest.mark.parametrize("deleter", ["s", "main"])
@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_a_property_that_stays_brings_no_deleted_row_back(
    store_root: str, dropper: str, deleter: str, prefer: str
) -> None:
    two = Two(store_root, AB, *(a(k, x=n) for n, k in enumerate("abcd")), a("null"))
    two.set({"s": "main", "main": "s"}[dropper], "a", "x: 9")
    two.apply(dropper, AB.replace("x: I32?", "y: I32?"))
    two.delete(deleter, "A", "b")
    two.load(dropper, a("c", y=5), a("n", y=6))
    two.merge(prefer=prefer)
    stays = (prefer == "ours") == (dropper != "main")
    y = {"a": None, "c": 5, "d": None, "n": 6, "null": None}
    x = {"a": 9, "c": 2, "d": 3, "n": None, "null": None}
    rows = {k: {"y": y[k], "x": x[k]} if stays else {"y": y[k]} for k in y}
    assert two.rows() == rows


def test_a_property_that_stays_without_a_value_changes_no_row(store_root: str) -> None:
    two = Two(store_root, AB, a("a"), a("b", x=1))
    two.apply("main", AB.replace("x: I32?", ""))
    two.apply("s", AB.replace("x: I32?", 'x: I32? @description("how many")'))
    done = two.merge(prefer="theirs")
    assert dict(done.changes) == {"node:A": TableChange(updated=1)}
    assert two.rows() == {"a": {"x": None}, "b": {"x": 1}}


@pytest.mark.parametrize("dropper", ["s", "main"])
def test_a_dropped_property_that_the_other_side_described_keeps_its_values(
    two: Two, dropper: str
) -> None:
    other = {"s": "main", "main": "s"}[dropper]
    two.apply(dropper, AB.replace("x: I32?", ""))
    two.apply(other, AB.replace("x: I32?", 'x: I32? @description("how many")'))
    assert two.conflicts() == {("schema_conflict", "A", None)}
    two.merge(prefer="theirs" if other == "s" else "ours")
    assert two.rows() == {"a": {"x": 1}, "b": {"x": 2}}


@pytest.mark.parametrize("dropper", ["s", "main"])
@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_a_dropped_type_against_rows(store_root: str, dropper: str, prefer: str) -> None:
    other = {"s": "main", "main": "s"}[dropper]
    text = "node A { k: String @key  x: I32? }\nnode B { k: String @key }\n"
    two = Two(store_root, text, {"type": "B", "data": {"k": "old"}})
    two.apply(dropper, "node A { k: String @key  x: I32? }\n")
    two.load(other, {"type": "B", "data": {"k": "new"}})
    two.load(dropper, a("n"))
    assert two.conflicts() == {("schema_conflict", "B", None)}
    two.merge(prefer=prefer)
    stays = (prefer == "ours") == (other == "main")
    assert ("B" in two.catalog.nodes) == stays
    if stays:
        assert set(two.rows("B")) == {"old", "new"}
    assert set(two.rows()) == {"n"}


@pytest.mark.parametrize("ruler", ["s", "main"])
@pytest.mark.parametrize("prefer", ["ours", "theirs"])
@pytest.mark.parametrize("rule", ["@range(x, 0..10)", "@unique(x)"])
def test_a_new_rule_against_a_new_row(two: Two, ruler: str, prefer: str, rule: str) -> None:
    other = {"s": "main", "main": "s"}[ruler]
    two.apply(ruler, AB.replace("x: I32?", f"x: I32?  {rule}"))
    two.load(ruler, a("m", x=7))
    two.load(other, a("n", x=30 if "range" in rule else 7))
    (found,) = two.conflicts()
    assert found[:2] == ("schema_conflict", "A")
    two.merge(prefer=prefer)
    holds = (prefer == "ours") == (ruler == "main")
    declared = two.catalog.nodes["A"]
    assert bool(declared.ranges or declared.unique) == holds
    assert set(two.rows()) == ({"a", "b", "m"} if holds else {"a", "b", "m", "n"})


def test_resolutions_decide_about_the_schema(two: Two) -> None:
    two.apply("main", AB.replace("x: I32?", ""))
    two.set("s", "a", "x: 9")
    line = b'{"node": "A", "property": "x", "take": "theirs"}\n'
    two.merge(resolutions=line)
    assert two.rows() == {"a": {"x": 9}, "b": {"x": 2}}
    with pytest.raises(omnigraph.InputError, match=r"A\.x is not in conflict"):
        two.load("s", a("q"))
        two.load("main", a("r"))
        merge(two.graph._repository, "s", resolutions=line)


@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_several_edges_to_deleted_nodes_are_decided(two: Two, prefer: str) -> None:
    two.load("main", e("a", "b", "e1"), e("b", "b", "e2"), e("b", "a", "e3"))
    two.delete("s", "A", "b")
    assert {found[0] for found in two.conflicts()} == {"orphan_edge"}
    two.merge(prefer=prefer)
    if prefer == "ours":
        assert (set(two.rows()), set(two.rows("E"))) == ({"a", "b"}, {"e1", "e2", "e3"})
    else:
        assert (set(two.rows()), set(two.rows("E"))) == ({"a"}, set())


# -- 6: merging again --------------------------------------------------------------------------------


def test_the_same_addition_is_one_in_every_later_merge(two: Two) -> None:
    grown = AB.replace("x: I32?", "x: I32?  c: String?") + "node N { k: String @key }\n"
    for branch in ("main", "s"):
        two.apply(branch, grown)
        two.load(branch, a(branch, c=branch), {"type": "N", "data": {"k": branch}})
    two.merge()
    for number in range(3):
        two.load("s", a(f"s{number}", c="s"), {"type": "N", "data": {"k": f"s{number}"}})
        two.load("main", a(f"m{number}", c="m"), {"type": "N", "data": {"k": f"m{number}"}})
        two.merge()
        two.load("main", a(f"o{number}", c="o"))
        two.load("s", a(f"t{number}", c="t"))
        two.merge("main", "s")
    two.merge("s", "main")
    assert two.rows() == two.rows(branch="s")
    assert two.rows("N") == two.rows("N", branch="s")
    assert len(two.rows()) == 4 + 4 * 3


def test_a_rename_that_one_side_takes_back_after_criss_cross_merges(two: Two) -> None:
    repository = two.graph._repository
    renamed = AB.replace("x: I32?", 'y: I32? @rename_from("x")')
    two.load("s", a("s"))
    two.apply("main", renamed)
    old = {b: repository.head(b).snapshot for b in ("main", "s")}
    merge(repository, old["main"], into="s")
    merge(repository, old["s"], into="main")
    two.apply("s", AB.replace("x: I32?", 'x: I32? @rename_from("y")'))
    two.load("main", a("m"))
    two.merge()
    assert "x" in two.catalog.nodes["A"].by_name
    assert set(two.rows()) == {"a", "b", "s", "m"}


def test_a_type_that_one_ancestor_dropped_and_another_extended_comes_back_whole(two: Two) -> None:
    repository = two.graph._repository
    two.apply("s", AB.replace("w: I32?", "w: I32?  v: I32?"))
    two.apply("main", "node A { k: String @key  x: I32? }")
    old = {b: repository.head(b).snapshot for b in ("main", "s")}
    merge(repository, old["main"], into="s", prefer="ours")
    merge(repository, old["s"], into="main", prefer="ours")
    two.merge(prefer="theirs")
    assert set(two.catalog.edges["E"].by_name) >= {"w", "v"}


@pytest.mark.parametrize("dropper", ["main", "s"])
def test_rows_that_two_ancestors_disagree_about_count_as_changed(two: Two, dropper: str) -> None:
    repository, keeper = two.graph._repository, "s" if dropper == "main" else "main"
    two.load("main", e("a", "b", "e1"))
    two.merge("main", "s")
    for branch, weight in (("main", 1), ("s", 2)):
        two.graph.mutate(f'update E set {{ w: {weight} }} where id = "e1"', branch=branch)
    old = {b: repository.head(b).snapshot for b in ("main", "s")}
    merge(repository, old["main"], into="s", prefer="ours")
    merge(repository, old["s"], into="main", prefer="ours")
    two.apply(dropper, "node A { k: String @key  x: I32? }")
    with pytest.raises(omnigraph.MergeConflictError):
        two.merge(dropper, keeper)
    two.merge(dropper, keeper, prefer="ours")
    assert "E" in repository.schema(repository.head(keeper).snapshot.schema_hash).catalog.edges


def test_a_new_rule_that_several_rows_break_is_decided_once(two: Two) -> None:
    two.apply("s", AB.replace("x: I32?", "x: I32?  @unique(x)"))
    two.load("main", *(a(f"m{i}", x=7) for i in range(4)))
    with pytest.raises(omnigraph.MergeConflictError):
        two.merge()
    two.merge(prefer="ours")
    assert two.catalog.nodes["A"].unique == ()
    assert len(two.rows()) == 2 + 4


@pytest.mark.parametrize("into", ["main", "s"])
def test_rows_that_ancestors_disagree_about_under_two_types(store_root: str, into: str) -> None:
    two = Two(store_root, AB.replace("x: I32?", "x: I32?  y: I32?"), a("a", x=1, y=1))
    repository, source = two.graph._repository, "s" if into == "main" else "main"
    for branch, number in (("main", 7), ("s", 8)):
        two.set(branch, "a", f"x: {number}")
    old = {b: repository.head(b).snapshot for b in ("main", "s")}
    merge(repository, old["main"], into="s", prefer="ours")
    merge(repository, old["s"], into="main", prefer="ours")
    for branch, kind in (("main", "I64"), ("s", "F64")):
        two.apply(branch, AB.replace("x: I32?", f"x: {kind}?  y: I32?"))
    two.merge(source, into, prefer="ours")
    assert two.rows(branch=into)["a"]["x"] == (7 if into == "main" else 8.0)


@pytest.mark.parametrize("prefer", ["ours", "theirs"])
def test_a_backfill_goes_with_the_type_it_is_a_value_of(two: Two, prefer: str) -> None:
    two.apply("main", AB.replace("x: I32?", "x: I32?  p: I32?"))
    two.apply("s", AB.replace("x: I32?", "x: I32?  p: F64? @backfill(0.5)"))
    two.merge(prefer=prefer)
    found = two.catalog.nodes["A"].by_name["p"]
    assert (str(found.type), found.backfill is None) == (
        ("I32?", True) if prefer == "ours" else ("F64?", False)
    )


def test_both_sides_make_a_property_required_over_deleted_rows(store_root: str) -> None:
    two = Two(store_root, AB, a("a", x=1), a("null"))
    for branch in ("main", "s"):
        two.delete(branch, "A", "null")
        two.apply(branch, AB.replace("x: I32?", "x: I32"))
        two.load(branch, a(branch, x=3))
    two.merge()
    assert two.rows() == {"a": {"x": 1}, "main": {"x": 3}, "s": {"x": 3}}


# -- 4: counts ---------------------------------------------------------------------------------------


def test_counts_of_schema_changes_are_those_of_the_difference(two: Two) -> None:
    repository = two.graph._repository
    two.load("main", e("a", "b", "e1"))
    for text in (
        FILLED,
        AB.replace("x: I32?", "x: I64?  d: String?"),
        AB.replace("x: I32?", "x: I64  d: String @backfill(x)").replace("(x)", '("d")'),
        "node A { k: String @key }\n",
    ):
        before = repository.head("main").snapshot
        two.apply("main", text)
        two.counted(before, repository.head("main").snapshot)
    assert [dict(c.changes) for c in two.graph.commits()][:3] == [
        {"edge:E": TableChange(deleted=1)},
        {"node:A": TableChange(updated=2)},
        {},
    ]


def test_who_changed_what_is_asked_of_all_common_ancestors(store_root: str) -> None:
    """Which of them is the newer one must not matter."""
    two = Two(store_root, AB, a("a"), e("a", "a", "l"))
    repository = two.graph._repository
    two.load("s", a("r"), {"edge": "E", "from": "r", "to": "r", "data": {"id": "l", "w": 2}})
    two.load("main", {"edge": "E", "from": "a", "to": "a", "data": {"id": "l", "w": 3}})
    old = repository.head("s").snapshot
    merge(repository, "main", into="s", prefer="ours")
    merge(repository, old, into="main", prefer="theirs")
    two.delete("main", "A", "r")
    two.merge(prefer="theirs")
    assert set(two.rows()) == {"a", "r"}
    assert set(two.rows("E")) == {"l"}


ADDED = "node A { k: String @key  x: I32?  p: %s }\nedge E: A -> A { w: I32? }"


@pytest.mark.parametrize("touched", [(), ("main",), ("s",), ("main", "s")])
@pytest.mark.parametrize(
    "ours, theirs", [("I32?", "I32 @backfill(0)"), ("I32? @backfill(0)", "I32?")]
)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_backfill_that_one_side_never_knew_is_for_its_nulls_too(
    store_root: str, ours: str, theirs: str, swapped: bool, touched: tuple[str, ...]
) -> None:
    """Both sides add a property. What else a row went through, and who merges whom, is no matter."""
    two = Two(store_root, AB, a("a", x=1), a("b", x=1))
    two.apply("main", ADDED % (theirs if swapped else ours))
    two.apply("s", ADDED % (ours if swapped else theirs))
    for branch in touched:
        two.set(branch, "a" if branch == "main" else "b", "x: 5")
    two.load("main", a("m", p=7))
    two.load("s", a("n", p=8))
    two.merge()
    assert {k: row["p"] for k, row in two.rows().items()} == {"a": 0, "b": 0, "m": 7, "n": 8}


def test_a_null_that_was_written_over_a_backfill_stays(store_root: str) -> None:
    two = Two(store_root, AB, a("a", x=1), a("b", x=1))
    two.apply("main", ADDED % "I32? @backfill(0)")
    two.apply("s", ADDED % "I32?")
    two.set("main", "a", "p: null")
    two.merge()
    assert {k: row["p"] for k, row in two.rows().items()} == {"a": None, "b": 0}


def test_a_backfill_of_a_type_that_was_not_decided_for_is_for_no_row(store_root: str) -> None:
    """0.5 is no I32, and 0 was never said."""
    two = Two(store_root, AB)
    two.apply("main", ADDED % "I32?")
    two.apply("s", ADDED % "F64 @backfill(0.5)")
    two.load("main", a("a", x=1))
    two.merge(prefer="ours")
    assert two.rows()["a"]["p"] is None


def test_a_value_of_an_entity_that_ancestors_disagree_about_is_not_dropped_unseen(
    store_root: str,
) -> None:
    """One ancestor has it, the other deleted it: so it is not known which value it had."""
    two = Two(store_root, AB, a("a", x=1))
    two.set("main", "a", "x: 2")
    two.delete("s", "A", "a")
    changed = two.graph.commits(limit=1)[0].id
    two.merge("s", "main", prefer="ours")
    two.merge(f"commit:{changed}", "s", prefer="ours")
    two.apply("s", "node A { k: String @key }\nedge E: A -> A { w: I32? }")
    assert ("schema_conflict", "A", None) in two.conflicts("s", "main")


def test_a_property_that_only_one_ancestor_dropped_comes_back_with_all_its_values(
    store_root: str,
) -> None:
    """Also with those of rows that no side has touched since."""
    two = Two(store_root, AB, a("a", x=1), a("b", x=2))
    two.load("main", a("c"))
    two.set("main", "b", "x: 3")
    kept = two.graph.commits(limit=1)[0].id
    two.apply("s", "node A { k: String @key }\nedge E: A -> A { w: I32? }")
    two.merge("s", "main", prefer="ours")
    two.merge(f"commit:{kept}", "s", prefer="ours")
    two.merge("main", "s", prefer="theirs")
    assert two.rows(branch="s") == {"a": {"x": 1}, "b": {"x": 3}, "c": {"x": None}}


@pytest.mark.parametrize("first", ["main", "s"])
def test_a_type_that_only_one_ancestor_dropped_comes_back_with_all_its_rows(
    store_root: str, first: str
) -> None:
    two = Two(store_root, AB, a("a"), a("b"), e("a", "b", "e1"))
    two.load("main", e("b", "a", "e2"))
    kept = two.graph.commits(limit=1)[0].id
    two.apply("s", "node A { k: String @key  x: I32? }")
    two.load(first, a("c"))  # Its commits are younger, so it comes first among the ancestors.
    two.merge("s", "main", prefer="ours")
    two.merge(f"commit:{kept}", "s", prefer="ours")
    two.merge("main", "s", prefer="theirs")
    assert two.rows("E", branch="s").keys() == {"e1", "e2"}


def test_a_null_that_was_written_over_a_backfill_is_a_change(store_root: str) -> None:
    """The other side deleted the row, and has never heard of the property."""
    two = Two(store_root, AB, a("a", x=1), a("b", x=1))
    two.apply("main", ADDED % "I32? @backfill(0)")
    two.set("main", "a", "p: null")
    two.delete("s", "A", "a")
    two.delete("s", "A", "b")
    assert two.conflicts() == {("delete_vs_update", "A", "a")}
    assert two.conflicts("main", "s") == {("delete_vs_update", "A", "a")}


@pytest.mark.parametrize("prefer, left", [("ours", {"A"}), ("theirs", {"B"})])
def test_what_goes_on_because_its_rows_changed_is_part_of_the_schema(
    store_root: str, prefer: str, left: set[str]
) -> None:
    """Each side dropped the type that the other wrote to: without the decision none is left."""
    both = "node A { k: String @key  x: I32? }\nnode B { k: String @key }"
    two = Two(store_root, both, a("a", x=1), {"type": "B", "data": {"k": "b"}})
    two.apply("main", "node A { k: String @key  x: I32? }")
    two.set("main", "a", "x: 2")
    two.apply("s", "node B { k: String @key }")
    two.load("s", {"type": "B", "data": {"k": "c"}})
    assert {kind for kind, _, _ in two.conflicts()} == {"schema_conflict"}
    two.merge(prefer=prefer)
    assert two.catalog.nodes.keys() == left


@pytest.mark.parametrize("prefer, left", [("ours", {"b", "c"}), ("theirs", {"c"})])
def test_a_rule_that_one_side_gave_a_new_type_is_that_sides_rule(
    store_root: str, prefer: str, left: set[str]
) -> None:
    """Both added the type, so rows of the other were not written under the rule."""
    two = Two(store_root, AB)
    both = AB + "\nnode B { k: String @key  n: I32? %s }"
    two.apply("main", both % "")
    two.apply("s", both % "@unique")
    two.load("s", {"type": "B", "data": {"k": "c", "n": 1}})
    two.load("main", *({"type": "B", "data": {"k": k, "n": 1}} for k in "bc"))
    assert {kind for kind, _, _ in two.conflicts()} == {"schema_conflict"}
    two.merge(prefer=prefer)
    assert two.rows("B").keys() == left


def test_new_rows_of_the_side_that_dropped_a_property_get_its_backfill(store_root: str) -> None:
    without = "node A { k: String @key  y: I32? }"
    two = Two(store_root, without, a("a"))
    two.apply("main", "node A { k: String @key  y: I32?  x: I32 @backfill(2) }")
    two.merge("main", "s")
    two.apply("s", without)
    two.load("s", a("b", y=3))
    two.set("main", "a", "x: 5")
    two.merge(prefer="ours")
    shown = {k: (row["x"], row["y"]) for k, row in two.rows().items()}
    assert shown == {"a": (5, None), "b": (2, 3)}


def test_a_property_that_came_back_is_another_column_of_the_same_rows(store_root: str) -> None:
    """The row that became null is not written again: only the column tells that it changed."""
    two = Two(store_root, "node A { k: String @key  x: I32?  y: I32? }", a("a", x=1), a("b", x=2))
    base = two.graph.commits(limit=1)[0].id
    two.set("s", "a", "x: null")
    two.apply("main", "node A { k: String @key  y: I32? }")
    two.merge(prefer="theirs")
    assert {k: row["x"] for k, row in two.rows().items()} == {"a": None, "b": 2}
    assert [(c.id, c.properties) for c in two.graph.diff(base, "main")] == [("a", ("x",))]
