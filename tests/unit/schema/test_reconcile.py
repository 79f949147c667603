"""Two schemas that grew out of one become one: laws over any schemas, and the single cases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from schema_texts import schema_texts

from omnigraph.schema.catalog import Annotation
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.format import render
from omnigraph.schema.migrate import make_plan, resolve
from omnigraph.schema.migrate.facts import catalog_of, things_of
from omnigraph.schema.migrate.reconcile import (
    Reconciled,
    SchemaChoices,
    SchemaText,
    reconcile,
)
from support.examples import examples

OURS, THEIRS = SchemaChoices(prefer="ours"), SchemaChoices(prefer="theirs")


def text(source: str, base: SchemaText | None = None, skip: int = 0) -> SchemaText:
    """A schema, new or continuing another; ``skip`` keeps the numbers of two sides apart."""
    if base is None:
        return SchemaText(catalog=compile_schema(source), source=source)
    first = base.catalog.next_id + skip
    catalog = resolve(base.catalog, source, numbers_from=first).catalog
    return SchemaText(catalog=catalog, source=source)


def sides(base: str, ours: str, theirs: str) -> tuple[SchemaText, SchemaText, SchemaText]:
    start = text(base)
    return start, text(ours, start), text(theirs, start, skip=1000)


def merged(base: str, ours: str, theirs: str, **options) -> Reconciled:
    return reconcile(*sides(base, ours, theirs), **options)


def shape(found: Reconciled) -> dict[str, dict[str, str]]:
    assert found.conflicts == ()
    return {
        t.name: {p.name: str(p.type) for p in t.properties} for t in found.schema.catalog.types()
    }


# -- laws ----------------------------------------------------------------------------------------


@given(schema_texts())
def test_facts_say_the_whole_catalog(source: str) -> None:
    catalog = compile_schema(source)
    things = things_of(catalog)
    back = catalog_of(things, catalog.next_id)
    assert things_of(back) == things
    assert not make_plan(catalog, source, resolve(catalog, render(back))).steps[1:]


@given(schema_texts())
def test_a_rendered_schema_means_the_same(source: str) -> None:
    catalog = compile_schema(source)
    written = render(catalog)
    plan = make_plan(catalog, written, resolve(catalog, written))
    assert plan.steps == ()
    assert render(resolve(catalog, written).catalog) == written


@given(schema_texts(), schema_texts())
def test_what_only_one_side_changed_is_as_that_side_says(before: str, after: str) -> None:
    base = text(before)
    other = text(after, base)
    assert reconcile(base, other, base).schema == other
    assert reconcile(base, base, other).schema == (base if other.catalog == base.catalog else other)
    assert reconcile(base, other, other).schema == other


@settings(max_examples=examples(60))
@given(schema_texts(), schema_texts(), schema_texts())
def test_both_ways_come_to_the_same_or_to_conflicts(one: str, two: str, three: str) -> None:
    base, ours, theirs = sides(one, two, three)
    here, there = reconcile(base, ours, theirs), reconcile(base, theirs, ours)
    assert bool(here.conflicts) == bool(there.conflicts)
    if here.conflicts:
        return
    assert shape(here) == shape(there)
    numbers = [t.id for t in here.schema.catalog.types()]
    numbers += [p.id for t in here.schema.catalog.types() for p in t.properties]
    assert len(set(numbers)) == len(numbers)
    assert here.schema.catalog.next_id > max(numbers, default=0)
    # Merged again, there is nothing left to do.
    assert reconcile(base, here.schema, theirs).schema.catalog == here.schema.catalog


# -- cases ---------------------------------------------------------------------------------------

BASE = (
    "node A { k: String @key  x: I32?  e: enum(p, q)? }\nnode B { k: String @key }\nedge E: A -> B"
)


def change(old: str, new: str) -> str:
    assert old in BASE
    return BASE.replace(old, new)


def test_additions_renames_and_values_combine() -> None:
    found = merged(
        BASE,
        change("x: I32?", 'y: I32? @rename_from("x")  n: I32?').replace("p, q", "p, q, r"),
        change("x: I32?", "x: I64?  m: String? @unique").replace("p, q", "q, s")
        + "\nnode C { k: I32 @key }",
    )
    assert shape(found) == {
        "A": {"k": "String", "y": "I64?", "n": "I32?", "e": "enum(q, r, s)?", "m": "String?"},
        "B": {"k": "String"},
        "C": {"k": "I32"},
        "E": {},
    }
    assert found.schema.catalog.nodes["A"].unique == (("m",),)
    assert text(found.schema.source).catalog.nodes["A"].unique == (("m",),)


def test_the_same_additions_are_one_with_the_numbers_of_ours() -> None:
    both = BASE + "\nnode C { k: I32 @key  v: I32? @index }\nedge F: C -> A { w: I32? }"
    base, ours, theirs = sides(
        BASE, both, change("x: I32?", "x: I32?  z: I32?") + both[len(BASE) :]
    )
    found = reconcile(base, ours, theirs)
    assert found.schema.catalog.nodes["C"].id == ours.catalog.nodes["C"].id
    assert (
        found.schema.catalog.nodes["A"].by_name["z"].id == theirs.catalog.nodes["A"].by_name["z"].id
    )
    theirs_c = theirs.catalog.nodes["C"]
    assert found.numbers[theirs_c.id] == ours.catalog.nodes["C"].id
    assert found.numbers[theirs_c.incarnation] == ours.catalog.nodes["C"].incarnation


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        (
            change("x: I32?", 'y: I32? @rename_from("x")'),
            change("x: I32?", 'z: I32? @rename_from("x")'),
            "the name of A.y is 'y' on {ours} and 'z' on {theirs} (it was 'x')",
        ),
        (
            change("x: I32?", "x: I64?"),
            change("x: I32?", "x: F64?"),
            "the type of A.x is I64 on {ours} and F64 on {theirs} (it was I32)",
        ),
        (
            change("-> B", "-> B @card(0..1)"),
            change("-> B", "-> B @card(0..2)"),
            "the cardinality of edge E is @card(0..1) on {ours} and @card(0..2) on {theirs} "
            "(it was @card(0..))",
        ),
        (
            change("  x: I32?", ""),
            change("x: I32?", 'x: I32? @description("d")'),
            "A.x was dropped on {ours} and changed on {theirs}",
        ),
        (
            change("x: I32?", "x: I32?  n: I32?"),
            change("x: I32?", "x: I32?  n: String?"),
            "the type of A.n is I32 on {ours} and String on {theirs}",
        ),
        (
            change("x: I32?", "x: I32?  @range(x, 0..5)"),
            change("  x: I32?", ""),
            "node A needs A.x, which the other side dropped",
        ),
        (
            change("x: I32?", 'n: I32? @rename_from("x")'),
            change("x: I32?", "x: I32?  n: I32?"),
            "two sides call different things A.n",
        ),
        (
            BASE + "\nedge F: A -> B",
            "node A { k: String @key  x: I32?  e: enum(p, q)? }",
            "edge F needs node B, which the other side dropped",
        ),
    ],
)
def test_contradictions(ours: str, theirs: str, message: str) -> None:
    found = merged(BASE, ours, theirs)
    assert [c.message for c in found.conflicts] == [message]
    assert found.schema.source == ours


def test_a_side_may_be_preferred() -> None:
    ours, theirs = change("x: I32?", "x: I64?"), change("x: I32?", "x: F64?")
    assert shape(merged(BASE, ours, theirs, choices=OURS))["A"]["x"] == "I64?"
    assert shape(merged(BASE, ours, theirs, choices=THEIRS))["A"]["x"] == "F64?"
    gone = "node A { k: String @key  x: I32?  e: enum(p, q)? }"
    grown = BASE.replace("node B { k: String @key }", "node B { k: String @key  s: I32? }")
    assert set(shape(merged(BASE, gone, grown, choices=OURS))) == {"A"}
    kept = shape(merged(BASE, gone, grown, choices=THEIRS))
    assert kept["B"] == {"k": "String", "s": "I32?"}


def test_an_interface_of_one_side_reaches_a_node_of_the_other() -> None:
    base = "interface I { a: I32? }\nnode N { k: String @key }"
    ours = base.replace("a: I32?", "a: I32?  b: I32?")
    theirs = base + "\nnode M implements I { k: String @key }"
    found = merged(base, ours, theirs, numbers_from=5000)
    assert shape(found)["M"] == {"k": "String", "a": "I32?", "b": "I32?"}
    assert (found.numbers_used, found.schema.catalog.nodes["M"].by_name["b"].id) == (1, 5000)
    assert found.schema.catalog.next_id == 5001


def test_interfaces_are_merged_too() -> None:
    base = "interface I { a: I32? }\nnode N implements I { k: String @key }"
    ours = base.replace("a: I32?", "a: I32?  b: I32?")
    theirs = "interface I { a: I32? }\ninterface J { c: I32? }\nnode N implements I, J { k: String @key }"
    found = merged(base, ours, theirs)
    assert shape(found)["N"] == {"k": "String", "a": "I32?", "b": "I32?", "c": "I32?"}
    assert set(found.schema.catalog.nodes["N"].implements) == {"I", "J"}


def test_annotations_that_were_accepted_before_they_were_refused_stay_readable():
    kept = compile_schema("node A { k: String @key  n: I64 @defaults(3) }")
    (node,) = kept.nodes.values()
    old = replace(node.by_name["n"], annotations=(Annotation(name="default", value="3"),))
    node = replace(node, properties=(node.by_name["k"], old))
    assert '@default("3")' in render(replace(kept, nodes={"A": node}))
